"""Fits on data in blocks, for every margin classifier: what is said of arrays in ``base.py``, said of blocks.

Nothing of the size of the sample is kept but what the user asks for: support and suspects are indices.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray

from ..core.chunks.blocks import Block, RowBlocks
from ..core.chunks.checkpoint import Remembered, name_of_data
from ..core.chunks.description import Description, describe, join
from ..core.chunks.opening import is_chunked, is_dask, n_features_of, open_workers
from ..core.chunks.problem import ChunkedProblem, ChunkedSpace
from ..core.chunks.start import starting_widths
from ..core.chunks.sums import Form
from ..core.penalties import Penalty
from ..core.problem import Problem
from ..core.result import Result
from ..core.solving import Options
from ..core.spaces import LinearSpace, LowRank
from ..core.spaces.gram import Kernel, scale_of
from ..solvers import solve, solve_convex, solve_path
from .parameters import MarginParameters

#: Rows that are drawn to start from, and for landmarks; at least this many per coefficient.
SAMPLED_ROWS, ROWS_PER_COEFFICIENT = 20_000, 20
#: Landmarks that n_components="auto" takes for data in blocks.
LANDMARKS = 500
#: Relative gap of the fit on the sampled rows.
SAMPLE_TOL = 1e-3

__all__ = [
    "chunked_problem",
    "fit_blocks",
    "fits_in_blocks",
    "is_chunked",
    "lazily",
    "needs_memory",
    "sampled_rows",
    "starts_of",
]


def fits_in_blocks(estimator: MarginParameters, X: Any) -> bool:
    """Whether a fit reads its data block by block.

    A memory-mapped array is read as a whole by what needs all samples at once, such as an exact kernel; other data in
    blocks are refused there.
    """
    return is_chunked(X) and not (isinstance(X, np.memmap) and _refusal(estimator) is not None)


def chunked_problem(
    estimator: MarginParameters, X: Any, y: Any, sample_weight: Any, low_rank: LowRank | None = None
) -> tuple[ChunkedProblem, Description]:
    """State the problem of an estimator on data in blocks; counts, averages and checks them in one pass.

    Sets ``classes_`` and ``n_features_in_`` (and kernel and landmarks; those of an earlier fit are kept if handed in).
    """
    reason = _refusal(estimator)
    if reason is not None:
        raise ValueError(reason)
    workers = open_workers(X, y, sample_weight, effective_n_jobs(estimator.n_jobs))
    estimator.n_features_in_ = p = n_features_of(X)
    if hasattr(X, "columns"):
        estimator.feature_names_in_ = np.asarray([str(name) for name in X.columns], dtype=object)
    unknowns = p if estimator._is_linear else LANDMARKS
    known = _rows_of(X)
    wanted = max(SAMPLED_ROWS, ROWS_PER_COEFFICIENT * unknowns)
    share = 1.0 if known is None else min(1.0, wanted / max(1, known))
    if known is None:  # count first, so that the sample does not outgrow memory
        share = 0.0
    seen: Description = workers.sum(describe, join, share, estimator._seed)
    if known is None:
        seen = workers.sum(describe, join, min(1.0, wanted / max(1, seen.n)), estimator._seed)
    estimator.classes_ = classes = _classes(seen)
    factors = _factors(estimator.class_weight, classes, seen)
    form = _form(estimator, seen, classes, factors, low_rank)
    total = float(sum(factors[i] * seen.labels[label][1] for i, label in enumerate(classes.tolist())))
    space = ChunkedSpace(sum(count for count, _ in seen.labels.values()), form.mean.size)
    problem = ChunkedProblem(
        workers, form, space, estimator._loss(classes.size), Penalty(l2=1.0), float(estimator.C), total
    )
    return replace(problem, penalty=estimator._penalty(problem, None)), seen  # type: ignore[arg-type]


def fit_blocks(estimator: MarginParameters, X: Any, y: Any, sample_weight: Any, options: Options) -> None:
    """Fit an estimator on data in blocks and set its fitted attributes."""
    problem, seen = chunked_problem(estimator, X, y, sample_weight)
    if estimator.checkpoint is not None:
        data = name_of_data(seen, problem.workers.n_blocks)
        problem = replace(problem, workers=Remembered(problem.workers, Path(estimator.checkpoint), data))
    start = _start(problem, seen, options)
    convex = replace(problem, loss=problem.loss.convex_part, penalty=problem.penalty.convex_part)
    if problem.is_convex:
        result = solve(problem, estimator.solver, options, start)  # type: ignore[arg-type]
    else:
        first = solve_convex(convex, options, start)  # type: ignore[arg-type]
        result = solve(problem, estimator.solver, options, first)  # type: ignore[arg-type]
    _keep(estimator, result, problem)
    estimator._learn_from(sampled_rows(seen)[0])


def needs_memory(X: Any, who: str) -> None:
    """Refuse data in blocks, which would be pulled into memory otherwise; a memory-mapped file is read as an array."""
    if is_dask(X) or isinstance(X, RowBlocks):
        raise ValueError(f"{who} needs its data in memory; hand in an array (of a part of the rows, if they are many).")


def _refusal(estimator: MarginParameters) -> str | None:
    """Say why an estimator does not take data in blocks; None if it does."""
    kernel = estimator.kernel
    if not estimator._is_linear and estimator.n_components is None:
        return (
            f"kernel={kernel!r} needs all samples against all; for data in blocks give n_components (a number of "
            "landmarks, or 'auto')."
        )
    if isinstance(kernel, str) and kernel == "precomputed":
        return "kernel='precomputed' does not take data in blocks."
    if estimator.solver not in ("auto", "passes", "dca"):
        return f"solver={estimator.solver!r} does not take data in blocks; use 'auto'."
    return None


def _rows_of(X: Any) -> int | None:
    """Return the number of rows where it is known without reading."""
    if isinstance(X, RowBlocks):
        return None
    n = X.shape[0]
    return int(n) if isinstance(n, (int, np.integer)) or (isinstance(n, float) and math.isfinite(n)) else None


def _classes(seen: Description) -> NDArray[Any]:
    if seen.n == 0:
        raise ValueError("X has no rows.")
    if seen.bad:
        raise ValueError(f"Input X contains NaN or infinity ({seen.bad} values), or sample_weight does.")
    if seen.negative:
        raise ValueError("sample_weight must not be negative.")
    labels = [label for label, (count, _) in seen.labels.items() if count]
    try:
        classes = np.array(sorted(labels))
    except TypeError:
        kinds = sorted({type(label).__name__ for label in labels})
        raise ValueError(f"The labels in y must be of one type, got {' and '.join(kinds)}.") from None
    if classes.size < 2:
        raise ValueError(f"y must contain at least two classes, got only one class: {classes.tolist()}.")
    if classes.dtype.kind == "f" and np.any(classes != np.round(classes)):
        raise ValueError("Unknown label type: y must hold classes, not continuous numbers.")
    return classes


def _factors(class_weight: Any, classes: NDArray[Any], seen: Description) -> NDArray[np.float64]:
    weights = np.array([seen.labels[label][1] for label in classes.tolist()])
    if class_weight is None:
        return np.ones(classes.size)
    if isinstance(class_weight, str):
        return np.asarray(weights.sum() / (classes.size * weights))
    unknown = set(class_weight) - set(classes.tolist())
    if unknown:
        raise ValueError(f"class_weight names classes that y does not hold: {sorted(unknown, key=str)}.")
    factors = np.array([float(class_weight.get(label, 1.0)) for label in classes.tolist()])
    if not np.all(np.isfinite(factors) & (factors > 0)):
        raise ValueError(f"class_weight must hold positive finite numbers for data in blocks, got {class_weight!r}.")
    return factors


def _form(
    estimator: MarginParameters,
    seen: Description,
    classes: NDArray[Any],
    factors: NDArray[np.float64],
    low_rank: LowRank | None,
) -> Form:
    estimator.low_rank_ = None
    if estimator._is_linear:
        return Form(classes, factors, seen.mean, _scales(seen.spread / seen.n, seen.mean))
    X, _, weights = sampled_rows(seen)
    gamma = scale_of(estimator.gamma, X, weights)
    estimator.kernel_ = Kernel(estimator.kernel, gamma, estimator.degree, estimator.coef0)
    rank = LANDMARKS if isinstance(estimator.n_components, str) else int(estimator.n_components)
    if low_rank is None:
        low_rank = LowRank.of(estimator.kernel_, X, rank, weights, estimator._seed)
    estimator.low_rank_ = low_rank
    Z = low_rank.features(X)
    return Form(classes, factors, Z.mean(axis=0), _scales(Z.var(axis=0), Z.mean(axis=0)), low_rank)


def _scales(variance: NDArray[np.float64], mean: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return standard deviations; a constant column is divided by its size."""
    scale = np.sqrt(variance)
    scale = np.where(scale > 1e-12 * np.abs(mean), scale, 0.0)
    return np.where(scale > 0, scale, np.maximum(np.abs(mean), 1.0))


def sampled_rows(seen: Description) -> tuple[NDArray[np.float64], NDArray[Any], NDArray[np.float64]]:
    """Return the sampled rows."""
    parts: list[Block] = [part for part in seen.rows if part.X.shape[0]]
    X = np.vstack([part.X for part in parts])
    return X, np.concatenate([part.y for part in parts]), np.concatenate([part.weights for part in parts])


def _start(problem: ChunkedProblem, seen: Description, options: Options) -> Result | None:
    """Return the solution of the convex problem on the sampled rows; None if they lack a class."""
    return starts_of([problem], seen, options)[0]


def starts_of(problems: Sequence[ChunkedProblem], seen: Description, options: Options) -> list[Result | None]:
    """Return the solutions of convex problems, of rising C, on the sampled rows; None if they lack a class."""
    nothing: list[Result | None] = [None] * len(problems)
    if not any(part.X.shape[0] for part in seen.rows):
        return nothing
    X, y, weights = sampled_rows(seen)
    form = problems[0].form
    codes = np.searchsorted(form.classes, y).astype(np.intp)
    if np.unique(codes).size < form.classes.size:
        return nothing
    weights = weights * form.factors[codes]
    share = problems[0].total_weight / float(weights.sum())
    penalty, loss = problems[0].penalty.convex_part, problems[0].loss.convex_part
    few = Problem(LinearSpace(form.features(X)), codes, form.classes.size, loss, penalty, 1.0, weights)
    roughly = replace(options, tol=max(options.tol, SAMPLE_TOL), certify=False)
    found = solve_path([replace(few, C=problem.C * share) for problem in problems], "auto", roughly)
    block = Block(X, y, weights / form.factors[codes])
    widths = starting_widths(
        [replace(p, C=p.C * share) for p in problems], [(f.coef, f.intercept) for f in found], block, options.tol
    )
    return [replace(f, multipliers=None, extra={"width": width}) for f, width in zip(found, widths)]


def _keep(estimator: MarginParameters, result: Result, problem: ChunkedProblem) -> None:
    estimator.status_ = result.status
    estimator.certificate_ = result.certificate
    estimator.n_iter_ = max(1, result.n_iter)
    estimator.history_ = list(result.history)
    estimator.intercept_ = result.intercept
    found = problem.workers.map(_indices, problem.form, problem.query_of(result.coef, result.intercept))
    starts = np.concatenate([[0], np.cumsum([n for n, _, _ in found])]).astype(np.intp)
    estimator.support_ = np.concatenate([at + rows for at, (_, rows, _) in zip(starts, found)])
    estimator.suspects_ = np.concatenate([at + rows for at, (_, _, rows) in zip(starts, found)])
    if estimator.low_rank_ is None:
        estimator.coef_ = result.coef
    else:
        estimator.component_coef_ = result.coef
        estimator.dual_coef_ = estimator.low_rank_.expansion(result.coef)
        estimator.support_vectors_, estimator.dual_support_ = estimator.low_rank_.landmarks, None


def _indices(index: int, block: Block, form: Form, query: Any) -> tuple[int, NDArray[np.intp], NDArray[np.intp]]:
    """Return a block's rows, those a solution may depend on (margin up to the last breakpoint), and the capped ones."""
    used = np.arange(block.X.shape[0])
    if block.weights is not None:
        used = used[np.asarray(block.weights) > 0]
    support, suspects = [np.empty(0, np.intp)], [np.empty(0, np.intp)]
    first = 0
    for rows in form.samples(block, query.loss, query.C):
        u = rows.margins_of_scores(form.scores(rows, query.at.V))
        highest = max((t for _, t in rows.loss.hinges), default=rows.loss.t)
        capped = rows.loss.is_capped(u)
        mine = used[first : first + rows.n]
        first += rows.n
        support.append(mine[(u <= highest + 1e-6) & ~capped])
        suspects.append(mine[capped])
    return block.X.shape[0], np.concatenate(support), np.concatenate(suspects)


def lazily(estimator: Any, function: Any, X: Any, n_columns: int | None, dtype: Any) -> Any:
    """Apply a function of rows to data in blocks: lazily to dask's, block by block to the others.

    Parameters
    ----------
    estimator : estimator
        Fitted; X must have as many columns as the data it was fitted to.
    function : callable
        Rows (an array) -> array of shape (rows,) or (rows, n_columns).
    X : dask array or data frame, memmap, RowBlocks
        The rows.
    n_columns : int or None
        Columns of what comes back; None for a vector.
    dtype : dtype
        Of what comes back.
    """
    p = n_features_of(X)
    if p != estimator.n_features_in_:
        name, expected = type(estimator).__name__, estimator.n_features_in_
        raise ValueError(f"X has {p} features, but {name} is expecting {expected} features as input.")
    if not is_dask(X):
        if isinstance(X, RowBlocks):
            return np.concatenate([function(_rows(X.load(i))) for i in range(X.n_blocks)])
        step = max(1, (1 << 22) // max(1, X.shape[1]))
        return np.concatenate([function(_rows(X[i : i + step])) for i in range(0, max(1, X.shape[0]), step)])
    if hasattr(X, "to_dask_array"):
        X = X.to_dask_array()
    if len(X.chunks[1]) > 1:
        X = X.rechunk({1: -1})
    shape = {"drop_axis": 1} if n_columns is None else {"chunks": (X.chunks[0], (n_columns,))}
    return X.map_blocks(
        lambda rows: function(_rows(rows)),
        dtype=dtype,
        meta=np.empty((0,) * (1 if n_columns is None else 2), dtype=dtype),
        **shape,
    )


def _rows(X: Any) -> Any:
    rows = np.asarray(X) if not hasattr(X, "tocsr") else X.tocsr()
    return rows if rows.dtype in (np.float32, np.float64) else rows.astype(np.float64)
