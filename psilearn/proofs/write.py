"""Write proof files: state the problem exactly, state the point, and hand the evidence to the file.

The numbers of a file are made with the checker's own classes (:mod:`.check`), so writer and checker cannot mean
different problems; the file is checked once more by whoever reads it. The format is described in ``format.md``.
"""

from __future__ import annotations

import csv
import gzip
import json
import math
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import IO, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .. import __version__
from ..core.losses import JUMP_TOLERANCE
from ..core.problem import Problem
from ..core.result import Verification, relative_gap
from ..core.spaces import KernelSpace
from . import check as checker
from . import exact, search

Array = NDArray[np.float64]
Record = dict[str, Any]

#: Seconds for the search that writes a tree if neither the caller nor the estimator has a limit.
DEFAULT_SECONDS = 60.0
#: How much larger than reported an objective may be when margins are moved to the right side of a jump.
REPAIR_COST = 1e-6
#: Margins by which believed samples are lifted above the jump for that, the smallest that works is taken.
MOVES = (1e-8, 1e-7, 1e-6)
#: Least relative gap of a tree: floating-point bounds are not trusted beyond that.
SMALLEST_GAP = 1e-7
#: Part of the largest eigenvalue that may be added to the diagonal of a Gram matrix to make it positive definite.
LARGEST_RIDGE = 1e-8


def prove(
    estimator: Any, X: Any, y: Any, path: str | Path, sample_weight: Any = None, time_limit: float | None = None
) -> Any:
    """Fit an estimator and write a proof of how good the fit is.

    Parameters
    ----------
    estimator : margin classifier
        Convex fits of every kind; truncated losses for two classes (linear with penalty "l2" or "l1", or a kernel).
    X, y, sample_weight
        As for ``fit``. Kernels given by a function have no exact meaning; hand in kernel="precomputed" instead.
    path : str or Path
        The file to be written (gzip).
    time_limit : float, optional
        Seconds for the search that writes the tree of a truncated loss, after the fit; by default the estimator's
        ``time_limit``, else 60. If it ends early, the proof holds, with a smaller bound.

    Returns
    -------
    estimator
        The fitted estimator.
    """
    if not hasattr(estimator, "_prepare"):
        raise ValueError(f"prove takes margin classifiers; {type(estimator).__name__} is none.")
    estimator.fit(X, y, sample_weight=sample_weight)
    statement = state(estimator, X, y, sample_weight)
    seconds = time_limit if time_limit is not None else getattr(estimator, "time_limit", None)
    write(path, proof_of(statement, estimator, DEFAULT_SECONDS if seconds is None else float(seconds)))
    return estimator


def check(path: str | Path, X: Any, y: Any, sample_weight: Any = None) -> Verification:
    """Check a proof file against data, in exact rational arithmetic.

    Returns
    -------
    Verification
        ``ok`` is True only if the file proves that the least value of its problem on these data lies between ``bound``
        and ``objective``.
    """
    ok, objective, bound, message = checker.check_proof(path, *as_lists(X, y, sample_weight))
    if not ok:
        return Verification(False, math.nan, -math.inf, math.inf, message)
    return Verification(
        True, float(objective), float(bound), relative_gap(float(objective), float(bound)), message
    )  # fmt: skip


# -- the statement -----------------------------------------------------------------------------------------------------


@dataclass
class Statement:
    """A problem in the checker's exact numbers, in the library's floating-point ones, and how their rows correspond."""

    claim: Record
    data: tuple[list[list[float]], list[Any], list[float]]
    exact: checker.Problem
    problem: Problem
    rows: NDArray[np.intp]  # row of the library's problem for every given row, -1 if it was dropped

    def collect(self, values: Array) -> Array:
        """Add up values of the library's rows by the checker's samples (first axis)."""
        out = np.zeros((self.exact.n, *values.shape[1:]))
        done: set[int] = set()
        for row, sample in zip(self.rows.tolist(), self.exact.sample):
            if sample is not None and row not in done:
                done.add(row)
                out[sample] += values[row]
        return out


def as_lists(X: Any, y: Any, sample_weight: Any = None) -> tuple[list[list[float]], list[Any], list[float]]:
    """Return plain lists of rows, labels and weights."""
    X = X.toarray() if sp.issparse(X) else np.asarray(X, dtype=np.float64)
    rows = np.asarray(X, dtype=np.float64).tolist()
    weights = np.ones(len(rows)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    return rows, np.asarray(y).ravel().tolist(), weights.ravel().tolist()


def state(estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> Statement:
    """State the problem of a fitted estimator; raises ValueError if no rule of the checker speaks of it."""
    problem, sample = estimator._prepare(X, y, sample_weight)
    if problem.penalty.l0 or problem.penalty.scad:
        raise ValueError("No proof is known for penalties that are not convex.")
    if problem.penalty.l2 == 0 and np.any(np.asarray(problem.penalty.l1) <= 0):
        raise ValueError("No proof is written for coefficients without a penalty.")
    data = as_lists(X, y, sample_weight)
    texts = [checker.label_text(label) for label in estimator.classes_.tolist()]
    loss, penalty, k = problem.loss, problem.penalty, problem.n_classes
    ratio = sample.weights / sample.sample_weight
    factor = [float(next(iter(ratio[sample.y == j]), 1.0)) for j in range(k)]
    stated = {
        "classes": texts,
        "loss": _loss_record(loss, k),
        "penalty": {"l2": float(penalty.l2).hex(), "l1": _l1_record(problem)},
        "C": float(problem.C).hex(),
        "class_weight": [f.hex() for f in factor],
        "kernel": _kernel_record(estimator, problem),
    }
    labels = [checker.label_text(label) for label in data[1]]
    names = [str(name) for name in getattr(estimator, "feature_names_in_", range(len(data[0][0])))]
    claim = {
        "format": "psilearn proof",
        "version": 1,
        "problem": stated,
        "data": {"n": len(data[0]), "d": len(data[0][0]), "sha256": checker.data_hash(data[0], labels, data[2])},
        "columns": {"features": names, "target": "y", "weight": None if sample_weight is None else "weight"},
        "made_by": _made_by(estimator),
    }
    return Statement(claim, data, checker.Problem(claim, *data), problem, sample.position)


def _made_by(estimator: Any) -> Record:
    options = {name: str(value)[:80] for name, value in sorted(estimator.get_params(deep=False).items())}
    return {"psilearn": __version__, "python": sys.version.split()[0], "numpy": np.__version__,
            "estimator": type(estimator).__name__, "options": options}  # fmt: skip


def _loss_record(loss: Any, k: int) -> Record:
    codes = np.arange(k)
    slopes = [np.broadcast_to(c, k).tolist() for c in loss.slopes(codes)]
    hinges = [[float(t).hex(), [float(c).hex() for c in cs]] for cs, (_, t) in zip(slopes, loss.hinges)]
    if loss.is_convex:
        return {"hinges": hinges, "t": None, "cap": None, "tolerance": (0.0).hex()}
    caps = [float(c).hex() for c in np.broadcast_to(loss.cap_of(codes), k).tolist()]
    return {"hinges": hinges, "t": float(loss.t).hex(), "cap": caps, "tolerance": (0.0).hex()}


def _l1_record(problem: Problem) -> Any:
    if problem.is_kernel or np.ndim(problem.penalty.l1) == 0:
        return float(np.asarray(problem.penalty.l1)).hex()
    l1 = problem.penalty.l1_array((problem.n_functions, problem.space.dim))
    return [["inf" if math.isinf(x) else x.hex() for x in row] for row in l1.tolist()]


def _kernel_record(estimator: Any, problem: Problem) -> Record:
    if not problem.is_kernel:
        return {"kind": "linear"}
    kernel, space = estimator.kernel_, problem.space
    if kernel.kind == "precomputed" and isinstance(space, KernelSpace):
        return {"kind": "precomputed", "ridge": _ridge(np.asarray(space.K, dtype=np.float64)).hex()}
    if kernel.kind == "rbf":
        return {"kind": "rbf", "gamma": float(kernel.gamma).hex()}
    if kernel.kind == "poly" and kernel.known_psd:
        numbers = {"gamma": float(kernel.gamma).hex(), "coef0": float(kernel.coef0).hex()}
        return {"kind": "poly", **numbers, "degree": int(kernel.degree)}
    raise ValueError("Proofs speak of linear, rbf, precomputed, and poly kernels with gamma, coef0 >= 0 only.")


def _ridge(K: Array) -> float:
    """What must be added to the diagonal so that the matrix is positive definite beyond doubt."""
    values = np.linalg.eigvalsh(K)
    rounding = 1e-13 * K.shape[0] * float(np.abs(values).max())
    if values[0] > rounding:
        return 0.0
    ridge = 2.0 * max(-float(values[0]), 0.0) + rounding
    if ridge > LARGEST_RIDGE * max(float(values[-1]), 0.0):
        raise ValueError("The kernel matrix is not positive semidefinite: the objective has no lower bound to prove.")
    return ridge


# -- the proof ---------------------------------------------------------------------------------------------------------


def proof_of(statement: Statement, estimator: Any, seconds: float) -> Iterable[Record]:
    """Return the records of the proof of a fitted estimator."""
    W, b = estimator.certificate_.point
    evidence = estimator.certificate_.evidence
    if statement.problem.is_convex and evidence is None:
        evidence = statement.problem.loss_multipliers(statement.problem.space.scores(W, b))
    if statement.problem.is_kernel:
        W = statement.collect(W.T).T
    if statement.problem.is_convex:
        unit, point = point_record(W, b)
        value = statement.exact.objective(point, unit)
        leaf_unit, leaf = convex_leaf(statement, evidence)
        bound = checker.Search(statement.exact, Fraction(0), leaf_unit, 0).dual_value(leaf)
        return _records(statement, value, bound, {"coef": unit, "multiplier": leaf_unit, "margin": 0}, point, [leaf])
    _refuse_tree(statement)
    return _tree_proof(statement, estimator.objective_, float(estimator.gap_tol), W, b, seconds)


def _refuse_tree(statement: Statement) -> None:
    problem = statement.problem
    if problem.n_classes > 2:
        raise ValueError("Proofs of truncated losses are written for two classes only.")
    if problem.loss.varies_by_class:
        raise ValueError("Proofs of truncated losses are written for one loss for both classes only.")
    if problem.penalty.l2 > 0 and problem.penalty.has_l1:
        raise ValueError("Proofs of truncated losses take an l2 or an l1 penalty, not both.")


def _tree_proof(
    statement: Statement, reported: float, gap: float, W: Array, b: Array, seconds: float
) -> Iterable[Record]:
    model = search.make_model(statement)
    unit, point, value = _settled_point(statement, model, reported, W, b)
    replay = search.Replay(model, float(value) * (1.0 - max(gap, SMALLEST_GAP)))
    bound = replay.run(seconds)
    units = {"coef": unit, "multiplier": replay.unit, "margin": search.MARGIN_UNIT}
    return _records(statement, value, Fraction(bound), units, point, replay.records())


def _settled_point(
    statement: Statement, model: search.Scaled, reported: float, W: Array, b: Array
) -> tuple[int, Record, Fraction]:
    """The point and its exact value; margins that miss a jump by rounding are first moved across it.

    If that is not possible, the claim states the library's tolerance at the jump, for objective and bound alike.
    """
    for move in (0.0, *MOVES):
        unit, point = point_record(*(model.moved_point(W, b, move) if move else (W, b)))
        value = statement.exact.objective(point, unit)
        if value <= Fraction(reported) + Fraction(REPAIR_COST) * abs(Fraction(reported)):
            return unit, point, value
    statement.claim["problem"]["loss"]["tolerance"] = JUMP_TOLERANCE.hex()
    statement.exact = checker.Problem(statement.claim, *statement.data)
    model.allow(JUMP_TOLERANCE)
    unit, point = point_record(W, b)
    return unit, point, statement.exact.objective(point, unit)


def _records(
    statement: Statement, value: Fraction, bound: Fraction, units: Record, point: Record, evidence: Iterable[Record]
) -> Iterable[Record]:
    objective = float(value)
    objective = math.nextafter(objective, math.inf) if Fraction(objective) < value else objective
    low = float(bound)
    low = math.nextafter(low, -math.inf) if Fraction(low) > bound else low
    yield {**statement.claim, "units": units, "objective": objective.hex(), "bound": low.hex()}
    yield point
    count = 2
    for record in evidence:
        yield record
        count += 1
    yield {"end": count}


def point_record(W: Array, b: Array) -> tuple[int, Record]:
    """Round coefficients to a fine grid; k functions are made to sum to zero there exactly."""
    if W.shape[0] > 1:
        W, b = W - W.mean(axis=0), b - b.mean()
    full = np.column_stack([W, b])
    unit = exact.unit_of(float(np.abs(full).max(initial=0.0)), exact.FINE_BITS)
    whole = [exact.to_integers(row, unit) for row in full]
    if len(whole) > 1:
        for column in range(len(whole[0])):
            # The largest entry takes the rest: a coefficient that is forbidden, hence zero, stays so.
            largest = max(range(len(whole)), key=lambda j: abs(whole[j][column]))
            whole[largest][column] -= sum(row[column] for row in whole)
    return unit, {"coef": [row[:-1] for row in whole], "intercept": [row[-1] for row in whole]}


def convex_leaf(statement: Statement, R: Array) -> tuple[int, Record]:
    """Return (unit, leaf) with dual feasible multipliers near R."""
    problem, stated = statement.problem, statement.exact
    repaired = problem.repaired_multipliers(R)
    R = statement.collect(np.zeros_like(R) if repaired is None else repaired)
    slopes = [sum(cs[code] for _, cs in stated.hinges) for code in range(stated.k)]
    limits = [cost * slopes[code] for cost, code in zip(stated.cost, stated.code)]
    unit = exact.unit_of(float(max(limits)), exact.FINE_BITS)
    room = [exact.floor_units(limit, unit) for limit in limits]
    whole = [exact.to_integers(row, unit) for row in R]
    space = stated.space

    def leaf(theta: Fraction) -> Record | None:
        shrunk = [[int(theta * x) for x in row] for row in whole]
        record: Record = {"leaf": _entries(shrunk, stated, room)}
        _, rows = checker.Search(stated, Fraction(0), unit, 0)._read(record["leaf"])
        V = space.combine(rows)
        if stated.k > 2 and problem.penalty.has_l1:
            record["shift"] = _shift(V, unit + space.e, problem)
        try:
            nu = (record["shift"][0], record["shift"][1:]) if "shift" in record else None
            space.conjugate(V, unit, nu)
        except checker.Rejected:
            return None
        return record

    for attempt in range(42):
        record = leaf(1 - Fraction(1, 1 << (44 - attempt)) if attempt else Fraction(1))
        if record is not None:
            return unit, record
    raise ArithmeticError("The multipliers cannot be made feasible for the l1 penalty.")


def _entries(R: list[list[int]], stated: checker.Problem, room: list[int]) -> list[list[int]]:
    if stated.k == 2:
        a = exact.balance_two_class([s * row[0] for s, row in zip(stated.sign, R)], stated.sign, room)
        return [[i, x] for i, x in enumerate(a) if x]
    A = exact.balance_k_class([[-x for x in row] for row in R], stated.code, room, stated.k)
    return [[i, j, x] for i, row in enumerate(A) for j, x in enumerate(row) if x]


def _shift(V: list[list[int]], e: int, problem: Problem) -> list[int]:
    """Return [unit, nu]: per feature the shift that makes the conjugate of an l1 part small, on a grid."""
    values = np.array([[math.ldexp(v, e) if abs(v) < 1 << 900 else 0.0 for v in row] for row in V])
    l1 = problem.penalty.l1_array(values.shape)
    low, high = np.max(values - l1, axis=0), np.min(values + l1, axis=0)
    inner = np.clip(0.5 * (np.maximum(low, values.min(axis=0)) + np.minimum(high, values.max(axis=0))), low, high)
    left, right = values.min(axis=0), values.max(axis=0)
    for _ in range(100):
        nu = 0.5 * (left + right)
        z = values - nu
        slope = np.sum(np.sign(z) * np.maximum(np.abs(z) - l1, 0.0), axis=0)
        left, right = np.where(slope > 0, nu, left), np.where(slope > 0, right, nu)
    nu = np.where(low <= high, inner, 0.5 * (left + right))
    unit = exact.unit_of(float(np.abs(nu).max(initial=0.0)), exact.FINE_BITS)
    return [unit, *exact.to_integers(nu, unit)]


# -- files -------------------------------------------------------------------------------------------------------------


@contextmanager
def _whole(path: str | Path) -> Iterator[IO[bytes]]:
    """Open a temporary neighbour of ``path`` and rename it at the end, so that nobody sees half a proof."""
    path = Path(path)
    part = path.with_name(f".{path.name[:40]}.{os.getpid()}.part")
    try:
        with open(part, "wb") as file:
            yield file
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def write(path: str | Path, records: Iterable[Record]) -> None:
    """Write records as JSON lines, gzip."""
    with _whole(path) as file, gzip.GzipFile("", "wb", fileobj=file, mtime=0) as packed:
        for record in records:
            packed.write(json.dumps(record, separators=(",", ":")).encode() + b"\n")


def write_csv(path: str | Path, X: Any, y: Any, sample_weight: Any = None, names: list[str] | None = None) -> None:
    """Write data as the CSV file that the checker reads on its command line: features, "weight" if any, "y" last."""
    rows, labels, weights = as_lists(X, y, sample_weight)
    names = [str(name) for name in (names or range(len(rows[0])))]
    with open(path, "w", newline="", encoding="utf-8") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow([*names, *([] if sample_weight is None else ["weight"]), "y"])
        for row, label, weight in zip(rows, labels, weights):
            out.writerow([*map(repr, row), *([] if sample_weight is None else [repr(weight)]), label])
