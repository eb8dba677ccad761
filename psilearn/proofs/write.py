"""Write proof files: fit, state the problem and the point exactly, and hand the evidence to the file.

The numbers of a file are made with the checker's own classes (:mod:`.check`), so writer and checker cannot mean
different problems; every reader can check the file once more. The format is described in ``format.md``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from ..core.losses import JUMP_TOLERANCE
from ..core.problem import Problem
from ..core.result import Certificate, Result, Status, Verification, go_on_after, relative_gap
from . import check as checker
from . import integers
from .convex import convex_leaf
from .files import checker_of, rounded_down, rounded_up, write
from .statement import Array, ProofError, Record, Statement, as_lists, state

#: Seconds for the search that writes a tree if neither the caller nor the estimator has a limit.
DEFAULT_SECONDS = 60.0
#: How much larger than reported an objective may be when margins are moved to the right side of a jump.
REPAIR_COST = 1e-6
#: Margins by which believed samples are lifted above the jump for that, the smallest that works is taken.
MOVES = (1e-8, 1e-7, 1e-6)
#: Least relative gap of a tree: floating-point bounds are not trusted beyond that.
SMALLEST_GAP = 1e-7


def prove(
    estimator: Any,
    X: Any,
    y: Any,
    path: str | Path,
    sample_weight: Any = None,
    *,
    columns: dict | None = None,
    time_limit: float | None = None,
    believed: int | None = None,
) -> Any:
    """Fit an estimator, write a proof of how good the fit is, and return the fitted estimator.

    The proof states the problem, the coefficients with their exact objective, and a lower bound on the objective of
    all coefficients, with evidence. It does not hold the data, only their hash. Anyone can check it without this
    package: ``python check.py PROOF DATA.csv`` needs the standard library alone; ``format.md`` describes the file.

    Parameters
    ----------
    estimator : margin classifier, LPBoostClassifier or L0BoostClassifier
        Convex fits of every kind; truncated losses for two classes (linear with penalty "l2" or "l1", or a kernel) and
        for more (linear, penalty "l2"); LP-Boost, and L0-RBoost for two classes, on numbers without missing values.
    X, y : array-like
        As for ``fit``. Kernels given by a function have no exact meaning; hand in kernel="precomputed" instead.
    path : str or Path
        The file to write (gzip).
    sample_weight : array-like, optional
        As for ``fit``.
    columns : dict, optional
        ``features``, ``target`` and ``weight``: names of the columns in a CSV file of the data.
    time_limit : float, optional
        Seconds for the search that writes the tree of a truncated loss, after the fit; by default the estimator's
        ``time_limit``, else 60. If it ends early, the proof holds, with a smaller bound.
    believed : int, optional
        A row of X. The bound is then about the functions that believe its label (margin at least the truncation point),
        and proves its price, ``bound / objective - 1``: how much worse every such function is than the fit.

    Returns
    -------
    estimator
        The fitted estimator itself.

    Raises
    ------
    ProofError
        If no proof of this kind of fit can be written.
    """
    if hasattr(estimator, "_observations") and believed is None:
        return _prove_rules(estimator, X, y, path, sample_weight, columns)
    if not hasattr(estimator, "_prepare"):
        raise ProofError(f"prove takes margin classifiers, LP-Boost and L0-RBoost, not {type(estimator).__name__}.")
    if getattr(estimator, "restrict", None) is not None:
        raise ProofError("A restricted fit has no global bound; what can be proved is that with restrict=None.")
    estimator.fit(X, y, sample_weight)
    go_on_after(estimator.status_)
    statement = state(estimator, X, y, sample_weight, columns)
    seconds = time_limit if time_limit is not None else getattr(estimator, "time_limit", None)
    certificate, gap = estimator.certificate_, float(estimator.gap_tol)
    seconds = DEFAULT_SECONDS if seconds is None else float(seconds)
    if believed is None:
        records = proof_of(statement, certificate, gap, seconds)
    else:
        records = _price_proof(statement, certificate, gap, seconds, believed)
    write(path, records)
    return estimator


def _prove_rules(booster: Any, X: Any, y: Any, path: str | Path, sample_weight: Any, columns: dict | None) -> Any:
    from .rules import prove_booster

    booster.fit(X, y, sample_weight)
    go_on_after(booster.status_)
    prove_booster(booster, X, y, path, sample_weight, columns)
    return booster


def check(path: str | Path, X: Any, y: Any, sample_weight: Any = None, *, fast: bool = False) -> Verification:
    """Check a proof file against data in memory, in exact rational arithmetic.

    Parameters
    ----------
    path : str or Path
        A file written by :func:`prove`.
    X, y, sample_weight : array-like
        The data, as they were given to :func:`prove`.
    fast : bool, default=False
        Use numpy with bounds on its rounding errors, and exact arithmetic only where these do not decide. What is
        accepted is the same, but it then rests on numpy, too. Proofs about rules are always checked in integers.

    Returns
    -------
    Verification
        ``ok`` is True only if the file proves that the least value of its problem on these data lies between ``bound``
        and ``objective``.
    """
    module = checker_of(path, fast)
    ok, objective, bound, message = module.check_arrays(path, *as_lists(X, y, sample_weight))
    gap = relative_gap(objective, bound) if ok else math.inf
    is_about_rules = checker_of(path) is not checker  # there the bound is the larger end
    return Verification(ok, objective, bound, abs(gap) if is_about_rules else gap, message)


def proof_of(statement: Statement, certificate: Certificate, gap: float, seconds: float) -> Iterable[Record]:
    """Return the records of the proof of a certified fit."""
    assert certificate.point is not None
    W, b = certificate.point
    evidence = certificate.evidence
    if statement.problem.is_convex and evidence is None:
        evidence = statement.problem.loss_multipliers(statement.problem.space.scores(W, b))
    if statement.problem.is_kernel:
        W = statement.collect(W.T).T
    if statement.problem.is_convex:
        unit, point = point_record(W, b)
        value = statement.exact.objective(point, unit)
        leaf_unit, leaf = convex_leaf(statement, np.asarray(evidence))
        bound = checker.Search(statement.exact, Fraction(0), leaf_unit, 0).dual_value(leaf)
        return _records(statement, value, bound, {"coef": unit, "multiplier": leaf_unit, "margin": 0}, point, [leaf])
    refuse_tree(statement.problem)
    hints = tree_hints(statement, certificate.record)
    return _tree_proof(statement, certificate.objective, gap, W, b, seconds, hints)


def _price_proof(
    statement: Statement, certificate: Certificate, gap: float, seconds: float, row: int
) -> Iterable[Record]:
    """Return the records that prove what it costs to believe the label of a row."""
    from ..core.solving import Options
    from ..exact.label_prices import price_labels

    if statement.problem.is_convex:
        raise ProofError("Labels have a price under truncated losses only.")
    refuse_tree(statement.problem)
    if not 0 <= row < statement.rows.size or statement.rows[row] < 0:
        raise ProofError(f"Row {row} is no row of X with a positive weight.")
    assert certificate.point is not None
    W, b = certificate.point
    fit = Result(W, b, Status.OPTIMAL, certificate)
    options = Options(gap_tol=gap, time_limit=seconds)
    price = price_labels(statement.problem, fit, options, [int(statement.rows[row])])[0]
    statement.believe(row)
    W = statement.collect(W.T).T if statement.problem.is_kernel else W
    return _tree_proof(statement, certificate.objective, gap, W, b, seconds, goal=price.bound)


def tree_hints(statement: Statement, record: Any) -> Any:
    """Return what a search remembers of its tree, by the samples of the proof; None without a record."""
    if record is None or statement.problem.n_classes > 2:
        return None
    from ..exact.two_class.reduction import reduce
    from .two_class.node import Hints

    group, sample = reduce(statement.problem).group, np.zeros(statement.problem.n, np.intp)
    for row, at in zip(statement.rows.tolist(), statement.exact.sample):
        if at is not None:
            sample[group[row]] = at
    return Hints(record, sample)


def refuse_tree(problem: Problem) -> None:
    """Raise ProofError unless a tree proves bounds of this problem."""
    if problem.n_classes > 2 and (problem.is_kernel or problem.penalty.has_l1):
        raise ProofError(
            "Proofs of truncated losses with three classes or more take linear functions, penalty l2. What can be "
            "proved is one class against the others, prove(estimator, X, y == label, path), and any convex fit."
        )
    if problem.loss.varies_by_class:
        raise ProofError(
            "Proofs of truncated losses are written for one loss for both classes only. What can be proved is the fit "
            "with equal d, and with slopes by class the convex one (s=None)."
        )
    if problem.penalty.l2 > 0 and problem.penalty.has_l1:
        raise ProofError(
            "Proofs of truncated losses take an l2 or an l1 penalty, not both. What can be proved is the fit with one "
            "of them, and with both the convex one (SVMClassifier, RejectClassifier)."
        )


def _tree_proof(
    statement: Statement, reported: float, gap: float, W: Array, b: Array, seconds: float, hints: Any = None,
    goal: float | None = None,
) -> Iterable[Record]:  # fmt: skip
    from . import k_class  # numba
    from .two_class import search

    model = search.make_model(statement) if statement.problem.n_classes == 2 else None
    unit, point, value = _settled_point(statement, model, reported, W, b)
    goal = float(value) * (1.0 - max(gap, SMALLEST_GAP)) if goal is None else goal * (1.0 - SMALLEST_GAP)
    if model is None:
        evidence = k_class.search_k_class(statement, goal, seconds)
    else:
        evidence = search.search(statement, model, goal, hints, seconds)
    units = {"coef": unit, "multiplier": evidence.unit, "margin": evidence.margin_unit}
    return _records(statement, value, Fraction(evidence.bound), units, point, evidence.records)


def _settled_point(
    statement: Statement, model: Any, reported: float, W: Array, b: Array
) -> tuple[int, Record, Fraction]:
    """The point and its exact value; margins that miss a jump by rounding are first moved across it.

    If that is not possible (for k classes nobody tries), the claim states the library's tolerance at the jump, for
    objective and bound alike.
    """
    for move in (0.0, *MOVES) if model is not None else (0.0,):
        unit, point = point_record(*(model.moved_point(W, b, move) if move else (W, b)))
        value = statement.exact.objective(point, unit)
        if value <= Fraction(reported) + Fraction(REPAIR_COST) * abs(Fraction(reported)):
            return unit, point, value
    statement.allow(JUMP_TOLERANCE)
    if model is not None:
        model.allow(JUMP_TOLERANCE)
    unit, point = point_record(W, b)
    return unit, point, statement.exact.objective(point, unit)


def _records(
    statement: Statement, value: Fraction, bound: Fraction, units: Record, point: Record, evidence: Iterable[Record]
) -> Iterable[Record]:
    yield {**statement.claim, "units": units, "objective": rounded_up(value), "bound": rounded_down(bound)}
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
    unit = integers.unit_of(float(np.abs(full).max(initial=0.0)), integers.FINE_BITS)
    whole = [integers.to_integers(row, unit) for row in full]
    if len(whole) > 1:
        for column in range(len(whole[0])):
            # The largest entry takes the rest: a coefficient that is forbidden, hence zero, stays so.
            largest = max(range(len(whole)), key=lambda j: abs(whole[j][column]))
            whole[largest][column] -= sum(row[column] for row in whole)
    return unit, {"coef": [row[:-1] for row in whole], "intercept": [row[-1] for row in whole]}
