"""Write proof files: fit, state the problem and the claim exactly, and add the evidence that a checker needs."""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from ..core.result import Verification, relative_gap
from ..core.solving import Clock
from ..estimators.base import MarginEstimator
from ..estimators.margin import PsiClassifier, SVMClassifier, TruncatedHingeClassifier
from ..estimators.reject import RejectClassifier
from . import check as checker
from .repair import best_leaf
from .statement import Statement, records_of
from .table import ProofError, rounded_down, table_of

#: Least relative gap of a proof by a tree: below it rounding of the node solver decides.
_LEAST_GAP = 1e-7


#: What the command line offers: name -> (C, seconds) -> unfitted classifier.
PROVABLE: dict[str, Callable[[float, float], MarginEstimator]] = {
    "svm-l2": lambda C, limit: SVMClassifier(C=C, time_limit=limit),
    "svm-l1": lambda C, limit: SVMClassifier(C=C, penalty="l1", time_limit=limit),
    "truncated": lambda C, limit: TruncatedHingeClassifier(C=C, s=0.0, solver="mip", time_limit=limit),
    "psi": lambda C, limit: PsiClassifier(C=C, solver="mip", time_limit=limit),
    "reject": lambda C, limit: RejectClassifier(C=C, time_limit=limit),
}


def prove(
    estimator: Any, X: Any, y: Any, path: str | Path, sample_weight: Any = None, *, columns: dict | None = None
) -> Any:
    """Fit, write a proof of what is claimed, and return the fitted estimator.

    The proof states the problem, the coefficients with their exact objective, and a lower bound on the objective of
    all coefficients, with evidence. It does not hold the data, only their hash. Anyone can check it without this
    package: ``python check.py PROOF DATA.csv`` needs the standard library alone; ``format.md`` describes the file.

    Parameters
    ----------
    estimator : margin classifier
        Convex fits of any number of classes; truncated losses of two classes with penalty "l2" or "l1".
    X, y, sample_weight
        As for ``fit``; X must be numbers that fit in memory.
    path : str or Path
        The file to write (gzip).
    columns : dict, optional
        ``features``, ``target`` and ``weight``: names of the columns in a CSV file of the data.

    Raises
    ------
    ProofError
        If no proof of this kind of fit can be written.
    """
    if not isinstance(estimator, MarginEstimator):
        raise ProofError(f"{type(estimator).__name__} has no proof files; margin classifiers have.")
    if getattr(estimator, "restrict", None) is not None:
        raise ProofError("A restricted fit has no global bound; use restrict=None.")
    estimator.fit(X, y, sample_weight)
    statement = Statement(estimator, table_of(X, y, sample_weight, columns), X, y, sample_weight)
    bound, evidence = (convex_evidence if statement.problem.is_convex else global_evidence)(statement)
    _write(Path(path), records_of(statement, rounded_down(bound), evidence))
    return estimator


def check(path: str | Path, X: Any, y: Any, sample_weight: Any = None) -> Verification:
    """Check a proof file against data in memory, in exact rational arithmetic.

    Parameters
    ----------
    path : str or Path
        A file written by :func:`prove`.
    X, y, sample_weight
        The data, as they were given to :func:`prove`.
    """
    table = table_of(X, y, sample_weight, None)
    ok, objective, bound, message = checker.check_arrays(path, table.rows, table.labels, table.weights)
    return Verification(ok, objective, bound, relative_gap(objective, bound) if ok else math.inf, message)


def convex_evidence(statement: Statement) -> tuple[Fraction, list[dict]]:
    """Return the bound of a convex fit and its one leaf, the multipliers of the fit's certificate."""
    exact, multipliers = statement.exact, statement.estimator.certificate_.evidence
    if multipliers is None:
        raise ProofError("The fit carries no multipliers, so there is nothing to prove its bound with.")
    R = statement.carried(multipliers)
    values = R[:, 0] * statement.problem.signs if exact.k == 2 else -R
    regions = [exact.region(i, None, None, 0) for i in range(exact.n)]
    found = best_leaf(exact, np.asarray(values), regions)
    if found is None:
        raise ProofError("No feasible multipliers were found near those of the fit.")
    return found[0], [found[1]]


def global_evidence(statement: Statement) -> tuple[Fraction, list[dict]]:
    """Return the bound of a truncated fit and its tree."""
    from .replay import tree_evidence  # numba

    estimator, problem = statement.estimator, statement.problem
    if problem.n_classes > 2 or {"elastic net", "free coefficients"} & problem.penalty.parts:
        raise ProofError("Proofs of truncated losses are for two classes and the penalties l2 and l1.")
    if problem.loss.varies_by_class:
        raise ProofError("Proofs of truncated losses are for slopes that do not differ by class.")
    objective = statement.claim["objective"]
    target = objective * (1.0 - max(estimator.gap_tol, _LEAST_GAP))
    if math.isfinite(estimator.lower_bound_):
        target = min(target, estimator.lower_bound_ * (1.0 - _LEAST_GAP))
    limit = math.inf if estimator.time_limit is None else float(estimator.time_limit)
    return tree_evidence(statement, target, Clock(limit))


def _write(path: Path, records: Iterable[dict]) -> None:
    """Write JSON lines, compressed; the same records always give the same bytes."""
    with open(path, "wb") as raw, gzip.GzipFile(fileobj=raw, mode="wb", mtime=0, filename="") as file:
        for record in records:
            file.write(json.dumps(record, separators=(",", ":"), allow_nan=False).encode() + b"\n")
