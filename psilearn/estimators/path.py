"""Solution paths: one estimator along C, or along the truncation point s, each fit starting from its neighbour."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from ..core.chunks.description import Description
from ..core.result import Result, go_on_after
from ..solvers import solve, solve_path
from .base import MarginEstimator
from .chunked import chunked_problem, fits_in_blocks, starts_of


@dataclass(frozen=True)
class Path:
    """Solutions along a parameter.

    Attributes
    ----------
    Cs : ndarray of shape (p,)
        The parameter, in the order given.
    coefs : ndarray of shape (p, m, d)
        Coefficients (of the kernel expansion for kernels).
    intercepts : ndarray of shape (p, m)
    objectives, lower_bounds, gaps : ndarray of shape (p,)
    n_iters : ndarray of shape (p,)
    classes : ndarray
        The labels.
    """

    Cs: NDArray[np.float64]
    coefs: NDArray[np.float64]
    intercepts: NDArray[np.float64]
    objectives: NDArray[np.float64]
    lower_bounds: NDArray[np.float64]
    gaps: NDArray[np.float64]
    n_iters: NDArray[np.intp]
    classes: NDArray[Any]


def regularization_path(
    estimator: MarginEstimator, X: Any, y: Any, Cs: ArrayLike, *, sample_weight: Any = None
) -> Path:
    """Fit ``estimator`` at every C, warm-started from its neighbours.

    A convex fit starts from the next smaller C. A fit of a truncated loss or a folded penalty is made on its own and
    again from a neighbour wherever that one's solution is better, so it is never worse than a fit made alone. Data in
    blocks are read for all values of C at a time.

    Parameters
    ----------
    estimator : MarginEstimator
        Its parameters but C are used; it is not changed.
    X, y : array-like
        As for ``fit``.
    Cs : array-like of shape (p,)
        Positive numbers in any order.
    sample_weight : array-like, optional
        As for ``fit``.

    Returns
    -------
    Path
        Solutions in the order of ``Cs``.

    Examples
    --------
    >>> import numpy as np
    >>> from psilearn import SVMClassifier, regularization_path
    >>> X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), [0, 0, 1, 1]
    >>> path = regularization_path(SVMClassifier(), X, y, [0.01, 100.0])
    >>> path.coefs.shape
    (2, 1, 1)
    >>> bool(path.coefs[0, 0, 0] < path.coefs[1, 0, 0])
    True
    """
    _check_estimator(estimator)
    values = np.asarray(Cs, dtype=np.float64)
    if values.ndim != 1 or values.size == 0 or not np.all(np.isfinite(values) & (values > 0)):
        raise ValueError("Cs must be a non-empty list of positive numbers.")
    order = np.argsort(values, kind="stable")
    worker = clone(estimator)
    worker._validate_params()
    problems: list[Any] = []
    for at in order:
        worker.C = float(values[at])
        if not problems or worker.penalty == "adaptive-l1":
            problem, seen = _stated(worker, X, y, sample_weight)
        problems.append(replace(problem, C=worker.C))
    options = worker._options()
    starts = partial(starts_of, seen=seen, options=options) if isinstance(seen, Description) else None
    results = dict(zip(order, solve_path(problems, worker.solver, options, starts)))
    return _path(values, [results[i] for i in range(values.size)], worker.classes_)


def truncation_path(estimator: MarginEstimator, X: Any, y: Any, ss: ArrayLike, *, sample_weight: Any = None) -> Path:
    """Fit a classifier with a truncation point at every s, from the least truncated (the hinge at -inf) to the most.

    Parameters
    ----------
    estimator : MarginEstimator
        A classifier with a parameter ``s``; it is not changed.
    X, y : array-like
        As for ``fit``.
    ss : array-like of shape (p,)
        Truncation points below 1 in any order; -inf is the plain hinge.
    sample_weight : array-like, optional
        As for ``fit``.

    Returns
    -------
    Path
        Its ``Cs`` holds the values of s in the order given.
    """
    _check_estimator(estimator)
    values = np.asarray(ss, dtype=np.float64)
    if values.ndim != 1 or values.size == 0 or np.any(np.isnan(values)) or np.any(values >= 1):
        raise ValueError("ss must be a non-empty list of numbers below 1 (-inf is the plain hinge).")
    if "s" not in estimator.get_params():
        raise ValueError(f"{type(estimator).__name__} has no parameter s; use TruncatedHingeClassifier.")
    worker = clone(estimator)
    worker._validate_params()
    results: dict[int, Result] = {}
    problem, _ = _stated(worker, X, y, sample_weight)
    warm = None
    for at in np.argsort(values, kind="stable"):
        if np.isinf(values[at]):
            loss = worker._loss(problem.n_classes).convex_part
        else:
            worker.s = float(values[at])
            loss = worker._loss(problem.n_classes)
        warm = results[at] = solve(replace(problem, loss=loss), worker.solver, worker._options(), warm)
        go_on_after(warm.status)
    return _path(values, [results[i] for i in range(values.size)], worker.classes_)


def _stated(worker: MarginEstimator, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any]:
    """Return the problem of an estimator, and the samples: those of arrays, or the description of data in blocks."""
    if fits_in_blocks(worker, X):
        return chunked_problem(worker, X, y, sample_weight)
    return worker._prepare(X, y, sample_weight)


def _check_estimator(estimator: Any) -> None:
    if not isinstance(estimator, MarginEstimator):
        raise ValueError(
            "Paths are for margin classifiers (SVMClassifier, PsiClassifier, TruncatedHingeClassifier, "
            f"RejectClassifier, MarginClassifier), got {type(estimator).__name__}."
        )


def _path(values: NDArray[np.float64], results: list[Result], classes: NDArray[Any]) -> Path:
    return Path(
        values,
        np.array([r.coef for r in results]),
        np.array([r.intercept for r in results]),
        np.array([r.objective for r in results]),
        np.array([r.lower_bound for r in results]),
        np.array([r.gap for r in results]),
        np.array([r.n_iter for r in results]),
        classes,
    )
