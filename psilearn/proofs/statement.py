"""The claim of a proof file: the problem as it was given, in numbers that are meant exactly."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..core.problem import Problem
from ..core.spaces import KernelSpace
from . import check as checker

Array = NDArray[np.float64]
Record = dict[str, Any]
Data = tuple[list[list[float]], list[Any], list[float]]

#: Part of the largest eigenvalue that may be added to the diagonal of a Gram matrix to make it positive definite.
LARGEST_RIDGE = 1e-8


class ProofError(ValueError):
    """No proof of this fit can be written; the text says why."""


class Evidence(NamedTuple):
    """A bound, the units of its multipliers and margins, and the records of its tree."""

    bound: float | Fraction
    unit: int
    margin_unit: int
    records: Iterable[Record]


@dataclass
class Statement:
    """A problem in the checker's exact numbers, in the library's floating-point ones, and how their rows correspond."""

    claim: Record
    data: Data
    exact: checker.Problem
    problem: Problem
    rows: NDArray[np.intp]  # row of the library's problem for every given row, -1 if it was dropped

    def allow(self, tolerance: float) -> None:
        """State the loss with a tolerance at its jump."""
        self.claim["problem"]["loss"]["tolerance"] = tolerance
        self.exact = checker.Problem(self.claim, *self.data)

    def believe(self, row: int) -> None:
        """State a bound about the functions that believe the label of a row."""
        self.claim["problem"]["believed"] = [int(row)]
        self.exact = checker.Problem(self.claim, *self.data)

    def collect(self, values: Array) -> Array:
        """Add up values of the library's rows by the checker's samples (first axis)."""
        out = np.zeros((self.exact.n, *values.shape[1:]))
        done: set[int] = set()
        for row, sample in zip(self.rows.tolist(), self.exact.sample):
            if sample is not None and row not in done:
                done.add(row)
                out[sample] += values[row]
        return out


def as_lists(X: Any, y: Any, sample_weight: Any = None) -> Data:
    """Return plain lists of rows, labels and weights."""
    X = X.toarray() if sp.issparse(X) else np.asarray(X, dtype=np.float64)
    rows = np.asarray(X, dtype=np.float64).tolist()
    weights = np.ones(len(rows)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    return rows, np.asarray(y).ravel().tolist(), weights.ravel().tolist()


def state(estimator: Any, X: Any, y: Any, sample_weight: Any = None, columns: Record | None = None) -> Statement:
    """State the problem of a fitted estimator on the data it was given."""
    problem, sample = estimator._prepare(X, y, sample_weight)
    if estimator.low_rank_ is not None:
        raise ProofError(
            "Proofs speak of exact kernels: landmarks are not in the data. What can be proved is the fit with "
            "n_components=None."
        )
    data = as_lists(X, y, sample_weight)
    ratio = sample.weights / sample.sample_weight
    factor = [float(next(iter(ratio[sample.y == j]), 1.0)) for j in range(problem.n_classes)]
    kernel = _kernel_record(estimator.kernel_, problem.space) if problem.is_kernel else {"kind": "linear"}
    if columns is None:
        names = getattr(estimator, "feature_names_in_", None)
        names = None if names is None else [str(name) for name in names]
        columns = {"features": names, "target": "y", "weight": None if sample_weight is None else "weight"}
    about = {"columns": columns, "made_by": _made_by(estimator)}
    return _statement(problem, data, estimator.classes_.tolist(), factor, kernel, about, sample.position)


def state_problem(problem: Problem) -> Statement:
    """State a problem as it stands: its own rows, costs and codes of the classes are the data."""
    if problem.tilt is not None:
        raise ProofError("No rule of the checker speaks of a tilted problem.")
    X: Any = getattr(problem.space, "X", None)
    if isinstance(problem.space, KernelSpace):
        X = np.asarray(problem.space.K)
    if X is None:
        raise ProofError("A proof needs the rows of the data or their Gram matrix.")
    kernel: Record = {"kind": "linear"}
    if isinstance(problem.space, KernelSpace):
        kernel = {"kind": "precomputed", "ridge": _ridge(np.asarray(X, dtype=np.float64))}
    factor, classes = [1.0] * problem.n_classes, list(range(problem.n_classes))
    data = as_lists(X, problem.y, problem.weights)
    return _statement(problem, data, classes, factor, kernel, {}, np.arange(problem.n))


def _statement(
    problem: Problem, data: Data, classes: list[Any], factor: list[float], kernel: Record, about: Record,
    position: NDArray[np.intp],
) -> Statement:  # fmt: skip
    loss, penalty, k = problem.loss, problem.penalty, problem.n_classes
    if penalty.l0 or penalty.scad:
        raise ProofError("No proof is known for penalties that are not convex; what can be proved is the fit with l1.")
    if penalty.l2 == 0 and np.any(np.asarray(penalty.l1) <= 0):
        raise ProofError("No proof is written for coefficients without a penalty.")
    stated = {
        "classes": [checker.label_text(label) for label in classes],
        "loss": _loss_record(loss, k),
        "penalty": {"l2": float(penalty.l2), "l1": _l1_record(problem)},
        "C": float(problem.C),
        "class_weight": factor,
        "kernel": kernel,
    }
    labels = [checker.label_text(label) for label in data[1]]
    digest = checker.data_hash(data[0], labels, data[2])
    claim = {
        "format": "psilearn proof",
        "version": 1,
        "problem": stated,
        "data": {"n": len(data[0]), "d": len(data[0][0]), "sha256": digest},
        **about,
    }
    return Statement(claim, data, checker.Problem(claim, *data), problem, position)


def _made_by(estimator: Any) -> Record:
    from .. import __version__

    options = {name: str(value)[:80] for name, value in sorted(estimator.get_params(deep=False).items())}
    versions = {"psilearn": __version__, "python": sys.version.split()[0], "numpy": np.__version__}
    return {**versions, "estimator": type(estimator).__name__, "options": options}


def _loss_record(loss: Any, k: int) -> Record:
    codes = np.arange(k)
    slopes = [np.broadcast_to(c, k).tolist() for c in loss.slopes(codes)]
    hinges = [[float(t), [float(c) for c in cs]] for cs, (_, t) in zip(slopes, loss.hinges)]
    if loss.is_convex:
        return {"hinges": hinges, "t": None, "cap": None, "tolerance": 0.0}
    caps = [float(c) for c in np.broadcast_to(loss.cap_of(codes), k).tolist()]
    return {"hinges": hinges, "t": float(loss.t), "cap": caps, "tolerance": 0.0}


def _l1_record(problem: Problem) -> Any:
    if problem.is_kernel or np.ndim(problem.penalty.l1) == 0:
        return float(np.asarray(problem.penalty.l1))
    l1 = problem.penalty.l1_array((problem.n_functions, problem.space.dim))
    return [[None if math.isinf(x) else x for x in row] for row in l1.tolist()]


def _kernel_record(kernel: Any, space: Any) -> Record:
    if kernel.kind == "precomputed" and isinstance(space, KernelSpace):
        return {"kind": "precomputed", "ridge": _ridge(np.asarray(space.K, dtype=np.float64))}
    if kernel.kind == "rbf":
        return {"kind": "rbf", "gamma": float(kernel.gamma)}
    if kernel.kind == "poly" and kernel.known_psd:
        numbers = {"gamma": float(kernel.gamma), "coef0": float(kernel.coef0)}
        return {"kind": "poly", **numbers, "degree": int(kernel.degree)}
    raise ProofError(
        "Proofs speak of linear, rbf, precomputed, and poly kernels with gamma, coef0 >= 0 only. What can be proved is "
        "the fit to a positive semidefinite matrix of kernel values, kernel='precomputed'."
    )


def _ridge(K: Array) -> float:
    """What must be added to the diagonal so that the matrix is positive definite beyond doubt."""
    values = np.linalg.eigvalsh(K)
    rounding = 1e-13 * K.shape[0] * float(np.abs(values).max())
    if values[0] > rounding:
        return 0.0
    ridge = 2.0 * max(-float(values[0]), 0.0) + rounding
    if ridge > LARGEST_RIDGE * max(float(values[-1]), 0.0):
        raise ProofError("The kernel matrix is not positive semidefinite: the objective has no lower bound to prove.")
    return ridge
