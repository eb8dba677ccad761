"""Write proofs about rules: a best monomial, LP-Boost's soft margin, and the bound of L0-RBoost.

The evidence is short: rules, and multipliers on a grid of integers. What they prove of all rules the checker
(:mod:`.check_rules`) finds out by a search of its own; that search is run here as well, so that no file is written
that does not hold.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..rules.rules import Agreement, best_monomial
from . import check, integers
from . import check_rules as checker
from .files import rounded_down, rounded_up, write
from .statement import Data, ProofError, Record, as_lists

#: By how much a bound may be weakened for what floating-point pricing overlooks, relative to the values priced.
SLACKS = (1e-9, 1e-7, 1e-5)
#: Bits of the weights of rules, and at least of the sum of LP-Boost's multipliers.
_BITS = 60


class RuleStatement:
    """A claim about rules, without objective and bound, and its problem in the checker's exact numbers."""

    def __init__(self, claim: Record, data: Data) -> None:
        rows, labels, weights = data
        hashed = check.data_hash(rows, [check.label_text(label) for label in labels], weights)
        claim["data"] = {"n": len(rows), "d": len(rows[0]) if rows else 0, "sha256": hashed}
        self.claim, self.exact = {"format": "psilearn rules proof", "version": 1, **claim}, checker.Rules(claim, *data)
        self.sample = {key: i for i, key in enumerate(zip(self.exact.which, self.exact.code))}

    def place(self, answers: NDArray[Any], code: int) -> int:
        """Return the checker's number of the sample with these attributes."""
        N = self.exact.N
        return self.sample[sum(1 << (a if holds else N + a) for a, holds in enumerate(answers.tolist())), code]

    def write(self, path: str | Path, objective: float, bound: float, rules: list[Any], evidence: Record) -> None:
        """Write the file."""
        claim = {**self.claim, "objective": objective, "bound": bound}
        write(path, [claim, {"rules": rules}, evidence, {"end": 3}])


def prove_monomial(
    A: Any,
    y: Any,
    path: str | Path,
    sample_weight: Any = None,
    max_order: int | None = None,
    time_limit: float | None = None,
    *,
    columns: dict | None = None,
) -> Agreement:
    """Find a monomial of largest agreement, write a proof of it, and return it.

    Parameters
    ----------
    A, y : array-like
        As for :func:`psilearn.best_monomial`; two classes.
    path : str or Path
        The file to write (gzip); ``psilearn.check(path, A, y, sample_weight)`` checks it.
    sample_weight : array-like, optional
        As for :func:`psilearn.best_monomial`.
    max_order : int, optional
        Largest number of literals.
    time_limit : float, optional
        Seconds for the search.
    columns : dict, optional
        ``features``, ``target`` and ``weight``: names of the columns in a CSV file of the data.

    Returns
    -------
    Agreement
        As :func:`psilearn.best_monomial` returns it. If the time limit ended the search, a larger bound is proved.

    Raises
    ------
    ProofError
        If the checker's own search would be too long.
    """
    found = best_monomial(A, y, sample_weight, max_order, time_limit)
    data = as_lists(A, y, sample_weight)
    N = len(data[0][0])
    attributes, classes = [[j, "equals", 1.0] for j in range(N)], _class_texts(np.unique(np.asarray(y)))
    order = N if max_order is None else min(max_order, N)
    problem: Record = {"kind": "agreement", "classes": classes, "attributes": attributes, "max_order": order}
    if len(problem["classes"]) != 2:
        raise ProofError("Proofs about monomials take two classes.")
    statement = RuleStatement({"problem": problem, **_about(columns)}, data)
    parts = found.rule.condition.parts
    literals = sorted(attribute.feature + (0 if answer else N) for attribute, answer in parts)
    rule = [literals, int(found.rule.sign > 0), 1]
    value = _agreement(statement.exact, rule)
    for slack in (0.0, *SLACKS):
        bound = max(float(value), found.bound * (1.0 + slack))
        if _accepts(checker.agreement, statement, {"rules": [rule]}, {}, value, Fraction(bound)):
            statement.write(path, rounded_down(value), bound, [rule], {})
            return found
    raise ProofError(_TOO_LONG)


_TOO_LONG = "The checker's search does not confirm the bound."


def _agreement(exact: Any, rule: list[Any]) -> Fraction:
    mask = sum(1 << literal for literal in rule[0])
    covered = [(own, m) for which, own, m in zip(exact.which, exact.code, exact.weight) if which & mask == mask]
    return sum((m if own == rule[1] else -m for own, m in covered), Fraction(0))


def _accepts(
    rule: Any, statement: RuleStatement, point: Record, evidence: Record, objective: Fraction, bound: Fraction
) -> bool:
    """Whether the checker accepts a claim."""
    try:
        rule(statement.exact, statement.claim["problem"], point, evidence, objective, bound)
    except check.Rejected:
        return False
    return True


def prove_booster(
    booster: Any, X: Any, y: Any, path: str | Path, sample_weight: Any = None, columns: dict | None = None
) -> None:
    """Write a proof of a fitted LP-Boost or L0-RBoost classifier."""
    statement, training, votes = _booster_statement(booster, X, y, sample_weight, columns)
    if not votes:
        raise ProofError("A list without rules has nothing to prove.")
    kind = statement.claim["problem"]["kind"]
    (_prove_margin if kind == "lpboost" else _prove_l0)(booster, statement, training, votes, path)


def _booster_statement(
    booster: Any, X: Any, y: Any, sample_weight: Any, columns: dict | None
) -> tuple[RuleStatement, Any, list[Any]]:
    """Return the claim of a booster, its observations, and the rules with whole weights."""
    from sklearn.base import clone

    if not hasattr(booster, "results_") or not hasattr(booster, "attributes_") or booster.base_learner is not None:
        raise ProofError("Proofs about rules take LPBoostClassifier and L0BoostClassifier without a base_learner.")
    result, worker = booster.results_[0], clone(booster)
    is_margin = hasattr(booster, "nu_")
    if len(booster.results_) > 1:
        raise ProofError(
            "A proof is about one problem, and here is one problem per class: prove each class against the others, "
            "prove(booster, X, y == label, path)."
        )
    if booster._has_all_cuts:
        raise ProofError(
            "Proofs about rules over all cut points (binarizer='all') are not written; they are for binarizer='auto' "
            "or 'support'."
        )
    if getattr(result, "evidence", None) is None:
        raise ProofError("The fit holds no multipliers that prove a bound.")
    training = worker._read(X, y, sample_weight)
    observations = worker._observations(training, worker._targets()[0])
    attributes = [_attribute_record(attribute) for attribute in booster.attributes_]
    if not all(column.dtype != object and np.isfinite(column).all() for column in training.table):
        raise ProofError(
            "Proofs about rules take numbers without missing values: prove the fit to a table of 0/1 answers, such as "
            "LogicalBinarizer().fit(X, y).transform(X)."
        )
    problem: Record = {"kind": "lpboost" if is_margin else "l0boost", "classes": _class_texts(booster.classes_)}
    problem |= {"attributes": attributes}
    if is_margin:
        problem |= {"max_order": min(int(booster.max_order_[0]), len(attributes)), "nu": float(result.nu)}
    else:
        costs = booster._costs(observations)
        problem |= {"max_order": len(costs) - 1, "rho": float(result.rho), "costs": costs}
        problem |= {"max_rules": booster._most_rules} if booster._is_short else {}
    statement = RuleStatement({"problem": problem, **_about(columns)}, as_lists(X, y, sample_weight))
    whole = [round(math.ldexp(x, _BITS)) for x in result.weights.tolist()]
    votes = [
        [list(map(int, column.key.literals)), _target(column.key), x]
        for column, x in zip(result.columns, whole) if x > 0
    ]  # fmt: skip
    return statement, (observations, worker, result), votes


def _target(key: Any) -> int:
    return int(key.target) if hasattr(key, "target") else int(key.sign > 0)


def _attribute_record(attribute: Any) -> list[Any]:
    if attribute.kind == "above":
        return [attribute.feature, "above", float(attribute.value)]
    if attribute.kind in ("flag", "equals") and isinstance(attribute.value, int | float | np.number):
        return [attribute.feature, "equals", float(attribute.value)]
    raise ProofError(
        f"Proofs about rules take numbers alone, not attributes such as {attribute.text()!r}: prove the fit to a table "
        "of 0/1 answers, such as LogicalBinarizer().fit(X, y).transform(X)."
    )


def _class_texts(classes: NDArray[Any]) -> list[str]:
    return [check.label_text(label) for label in classes.tolist()]


def _about(columns: dict | None) -> Record:
    return {"columns": columns or {"features": None, "target": "y", "weight": None}}


def _codes(observations: Any, statement: RuleStatement) -> list[int]:
    """Return the checker's numbers of the observations."""
    y = observations.y if observations.y.min() >= 0 else (observations.y > 0).astype(int)
    return [statement.place(row, int(code)) for row, code in zip(observations.X, y)]


# -- LP-Boost ----------------------------------------------------------------------------------------------------------


def _prove_margin(booster: Any, statement: RuleStatement, fit: Any, votes: list[Any], path: str | Path) -> None:
    observations, _, result = fit
    exact, nu = statement.exact, Fraction(statement.claim["problem"]["nu"])
    given: dict[tuple[int, int], float] = {}
    for i, row in zip(_codes(observations, statement), np.atleast_2d(result.evidence.T).T):
        for r, value in enumerate(row.tolist()):
            given[i, r if row.size > 1 else 1 - exact.code[i]] = value
    entries = _within_limits(
        {key: x for key, x in given.items() if x > 0}, [m / (nu * exact.total) for m in exact.weight]
    )
    point, evidence = {"rules": votes}, {"multipliers": [[*key, x] for key, x in entries.items() if x]}
    objective = _soft_margin(exact, votes, nu)
    for slack in SLACKS:
        bound = max(rounded_up(objective), result.upper_bound + slack)
        if _accepts(checker.lpboost, statement, point, evidence, objective, Fraction(bound)):
            statement.write(path, rounded_down(objective), bound, votes, evidence)
            return
    raise ProofError(_TOO_LONG)


def _soft_margin(exact: Any, votes: list[Any], nu: Fraction) -> Fraction:
    margins = exact.margins(exact.read({"rules": votes}))
    per = 1 / (nu * exact.total)
    best = Fraction(-2)
    reached = short = Fraction(0)  # weight of smaller margins, and what they lack in all of the present one
    last = None
    for u, m in sorted(zip(margins, exact.weight)):
        short += 0 if last is None else reached * (u - last)
        best, last, reached = max(best, u - per * short), u, reached + m
    return best


def _within_limits(given: dict[tuple[int, int], float], caps: Sequence[Fraction]) -> dict[tuple[int, int], int]:
    """Return whole multipliers near the given ones: of each sample at most its cap times their sum, exactly."""
    total = math.lcm(*(cap.denominator for cap in caps))
    total <<= max(_BITS - total.bit_length(), 0)
    room = [int(cap * total) for cap in caps]
    whole: dict[tuple[int, int], int] = {}
    for (i, r), x in given.items():
        whole[i, r] = min(int(Fraction(x) * total), room[i])
        room[i] -= whole[i, r]
    missing = total - sum(whole.values())
    for i, r in sorted(whole, key=lambda key: -whole[key]):
        step = min(missing, room[i]) if missing > 0 else max(missing, -whole[i, r])
        whole[i, r], room[i], missing = whole[i, r] + step, room[i] - step, missing - step
    if missing:
        raise ProofError("The multipliers leave no room to be made feasible.")
    return whole


# -- L0-RBoost ---------------------------------------------------------------------------------------------------------


def _prove_l0(booster: Any, statement: RuleStatement, fit: Any, votes: list[Any], path: str | Path) -> None:
    observations, worker, result = fit
    exact, problem = statement.exact, statement.claim["problem"]
    rho, costs, theta = Fraction(problem["rho"]), [Fraction(c) for c in problem["costs"]], float(result.theta)
    raised, less = [c + Fraction(theta) for c in costs], Fraction(theta) * problem.get("max_rules", 0)
    w, v, alpha, first, second = _feasible(worker, observations, [float(c) for c in raised], result.evidence)
    place = _codes(observations, statement)
    objective = _l0_objective(exact, votes, rho, costs)
    largest = max(float(max(exact.weight)), abs(alpha), max(problem["costs"]))
    unit = integers.unit_of(largest, integers.FINE_BITS)
    for slack in SLACKS:
        shrink = 1.0 - slack
        entries = [[place[i], _floor(x * shrink, unit)] for i, x in enumerate(w.tolist()) if x > 0]
        pairs = [[place[i], place[j], _floor(x * shrink, unit)] for i, j, x in zip(first, second, v.tolist())]
        whole = _floor(alpha - slack * largest, unit)
        size = Fraction(1, 1 << -unit)
        exact_w = [Fraction(0)] * exact.n
        for i, x in entries:
            exact_w[i] += x * size
        exact_pairs = [(i, j, x * size) for i, j, x in pairs]
        if checker.l0_feasible(exact, raised, exact_w, exact_pairs, whole * size):
            proved = checker.l0_value(exact, rho, costs, exact_w, exact_pairs, whole * size, less)
            evidence = {"unit": unit, "multipliers": entries, "pairs": pairs, "alpha": whole, "theta": theta}
            statement.write(path, rounded_up(objective), rounded_down(proved), votes, evidence)
            return
    raise ProofError(_TOO_LONG)


def _feasible(worker: Any, observations: Any, costs: list[float], evidence: Any) -> tuple[Any, Any, float, Any, Any]:
    """Scale multipliers until no rule costs less than they say; the argument is that of the fit's own bound."""
    from ..rules.pricing.data import Pairs

    w, v, alpha, first, second = evidence
    oracle, used = worker._oracle(observations, costs.__getitem__), v > 0
    pairs = Pairs(first[used], second[used], v[used], True)
    vote = min(0.0, -alpha - oracle.offer(w, pairs, -alpha, 1).bound)
    mark = min(0.0, -oracle.offer(np.zeros_like(w), pairs, 0.0, 1).bound)
    least = min(costs)
    t = least / (least - mark)
    return t * w, t * v[used], t * (alpha + vote) + (1.0 - t) * least, first[used].tolist(), second[used].tolist()


def _l0_objective(exact: Any, votes: list[Any], rho: Fraction, costs: list[Fraction]) -> Fraction:
    margins = exact.margins(exact.read({"rules": votes}))
    mistakes = sum((m for u, m in zip(margins, exact.weight) if u < rho), Fraction(0))
    return mistakes + sum((costs[len(literals)] for literals, _, _ in votes), Fraction(0))


def _floor(value: float, unit: int) -> int:
    return integers.floor_units(Fraction(value), unit)
