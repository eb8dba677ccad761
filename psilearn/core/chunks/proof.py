"""A lower bound from sums over blocks: multipliers are put on a grid of integers, balanced exactly, and summed safely.

The bound is the one of :meth:`psilearn.core.problem.Problem.dual_bound`, in one pass and a little. Every block puts its
multipliers D = R - tilt on the grid, and adds up gain and sum_i D_i x_i with their rounding errors, and in integers
what the multipliers of each class are. Some blocks, the reserve, keep this apart: from all the integers follows what
they have to hold so that the intercepts' equation is met exactly (:mod:`psilearn.core.bounds.duality`), and as few of
them as can do it are asked once more. Two classes are treated as k = 2 here: R_i,other = -R_i,own.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import reduce
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..bounds.duality import (
    balanced_sums,
    gain_below,
    l1_shrinkage,
)
from ..bounds.rounding import UNIT, gamma
from ..penalties import Penalty
from ..problem import Problem
from ..spaces import LinearSpace
from .blocks import Block
from .grid import Change, Grid, Table, Totals, zero_totals
from .sums import Compensated, Form, Query, Scores, own_entries, respond, tilt_of

Array = NDArray[np.float64]


class Claim(NamedTuple):
    """What blocks are asked to prove: multipliers, and a point whose objective is wanted.

    Attributes
    ----------
    query, value : Query
        Those of the multipliers and of the objective.
    exponent : int
        That of the grid.
    reserve : tuple of int
        Blocks whose evidence is kept apart, because they may have to change.
    wanted : dict of int to table, or None
        Only these blocks answer, and change their multipliers until :attr:`Totals.held` is this.
    """

    query: Query
    value: Query
    exponent: int
    reserve: tuple[int, ...] = ()
    wanted: dict[int, Table] | None = None


class Evidence(NamedTuple):
    """What blocks prove.

    Attributes
    ----------
    vector : Compensated (m, p)
        sum_i D_i (x_i - mean); its ``size`` bounds the absolute values of the terms.
    numbers : Compensated (5,)
        Gain of R, its error, gain of the tilt, its error, and the objective's loss and tilt part.
    balance : list of int
        Sums of the columns of D; over all blocks they must be 0.
    score_error : float
        Bound on what rounding of scores does to the objective.
    longest : int
        Rows that were added up at a time.
    feasible : bool
        Whether every sample's limits hold an integer.
    kept : dict
        Totals and evidence of the reserve, which is not added up.
    """

    vector: Compensated
    numbers: Compensated
    balance: list[int]
    score_error: float = 0.0
    longest: int = 0
    feasible: bool = True
    kept: dict[int, tuple[Totals, Evidence]] | None = None

    def plus(self, other: Evidence) -> Evidence:
        """Add the evidence of other samples."""
        return Evidence(
            self.vector.plus(other.vector),
            self.numbers.plus(other.numbers),
            [a + b for a, b in zip(self.balance, other.balance)],
            self.score_error + other.score_error,
            max(self.longest, other.longest),
            self.feasible and other.feasible,
            {**(self.kept or {}), **(other.kept or {})},
        )


def join_evidence(left: list[Evidence], right: list[Evidence]) -> list[Evidence]:
    """Add the answers to the same claims."""
    return [a.plus(b) for a, b in zip(left, right)]


def collect(index: int, block: Block, form: Form, claims: list[Claim]) -> list[Evidence]:
    """Return a block's evidence for every claim that it is asked about; the rows are read once."""
    k, p, m = form.classes.size, form.mean.size, form.n_functions
    nothing = Evidence(Compensated.of(np.zeros((m, p))), Compensated.of(np.zeros(5)), [0] * k)
    found = [nothing for _ in claims]
    mine = [at for at, claim in enumerate(claims) if claim.wanted is None or index in claim.wanted]
    if not mine:
        return found
    asked = [claims[at] for at in mine]
    totals = [zero_totals(k) for _ in asked]
    changes: list[Change | None] = [None] * len(asked)
    if any(claim.wanted for claim in asked):
        changes = [None if claim.wanted is None else Change.none(k) for claim in asked]
        for rows in form.samples(block, asked[0].query.loss, 1.0):
            for at, step in enumerate(_steps(rows, form, asked, changes)[1]):
                totals[at] = totals[at].plus(step.totals)
        for at, claim in enumerate(asked):
            changes[at] = None if claim.wanted is None else Change.between(totals[at].held, claim.wanted[index])
        totals = [zero_totals(k) for _ in asked]
    for rows in form.samples(block, asked[0].query.loss, 1.0):
        scores, steps = _steps(rows, form, asked, changes)
        for at, (step, evidence) in enumerate(zip(steps, _evidence(rows, form, asked, scores, steps))):
            totals[at] = totals[at].plus(step.totals)
            found[mine[at]] = found[mine[at]].plus(evidence)
    for at, claim in zip(mine, asked):
        if index in claim.reserve:
            found[at] = nothing._replace(kept={index: (totals[mine.index(at)], found[at])})
    return found


class _Step(NamedTuple):
    """Multipliers of some samples on the grid, less the tilt, a row for every function; their gain and the tilt's."""

    D: Array
    totals: Totals
    numbers: tuple[float, float, float, float]


def _steps(rows: Problem, form: Form, claims: list[Claim], changes: list[Change | None]) -> tuple[Scores, list[_Step]]:
    """Return the scores of some samples at all points, and the multipliers for every claim."""
    scores = Scores.of(rows, form, [query for claim in claims for query in (claim.query, claim.value)])
    return scores, [_step(rows, claim, scores, change) for claim, change in zip(claims, changes)]


def _step(rows: Problem, claim: Claim, scores: Scores, change: Change | None) -> _Step:
    query, k = claim.query, rows.n_classes
    wish, tilt = respond(rows.priced(query.loss, 1.0), query, scores).R, tilt_of(rows, query, scores)
    problem = rows.priced(query.loss, query.C)
    if k == 2 and tilt is None and change is None:
        return _two_class_step(problem, wish[:, 0], claim.exponent)
    grid = Grid.at(problem, wish, tilt, claim.exponent)
    if change is not None and grid.feasible:
        grid.apply(change, k)
    D = grid.steps(claim.exponent)
    step = D[:, 1:] if k == 2 else D
    gains = gain_of(problem, step if tilt is None else tilt + step, step)
    tilt_gains = (0.0, 0.0) if tilt is None else gain_of(problem, tilt, tilt)
    return _Step(np.ascontiguousarray(step.T), grid.totals(k), (*gains, *tilt_gains))


def _two_class_step(problem: Problem, wish: Array, exponent: int) -> _Step:
    """Do what the grid does for two classes without a tilt; multipliers can only be lowered afterwards."""
    from .response_jit import HIGH_BITS, put_on_grid

    breakpoints = np.array([t for _, t in problem.loss.hinges])
    D, halves, sums = np.empty((1, problem.n)), np.zeros((2, 2), dtype=np.int64), np.zeros(2)
    floors = np.ascontiguousarray(problem.price_floors)
    tops = np.ascontiguousarray(problem.limit_floors)
    roundings = put_on_grid(wish, problem.signs, floors, tops, breakpoints, exponent, D[0], halves, sums)
    S = [(int(high) << HIGH_BITS) + int(low) for high, low in halves]
    totals = Totals([[0, S[0]], [S[1], 0]], [0, 0], [S[0] - S[1], S[1] - S[0]])
    error = gamma(roundings) * float(np.abs(breakpoints).max(initial=0.0)) * sums[1] * (1.0 + gamma(roundings))
    return _Step(D, totals, (float(sums[0]), error, 0.0, 0.0))


def _evidence(rows: Problem, form: Form, claims: list[Claim], scores: Scores, steps: list[_Step]) -> Iterator[Evidence]:
    """Return the evidence of some samples for every claim: two products of matrices for all of them."""
    assert isinstance(rows.space, LinearSpace)
    X, m = rows.space.X, form.n_functions
    above = 1.0 + gamma(max(X.shape) + 16)
    columns, lengths = (np.sqrt(np.einsum(sums, X, X)) * above for sums in ("ij,ij->j", "ij,ij->i"))
    D = np.vstack([step.D for step in steps])
    V, reach = D @ X, np.outer(np.sqrt(np.einsum("ij,ij->i", D, D)) * above, columns * above)
    for at, (claim, step) in enumerate(zip(claims, steps)):
        mine = slice(at * m, (at + 1) * m)
        original = rows.priced(claim.value.loss, claim.value.C)
        F = scores.at(claim.value.at.V)
        risk = float(original.costs @ original.loss.value(original.margins_of_scores(F), original.y))
        tilt = tilt_of(rows, claim.value, scores)
        if tilt is not None:
            risk += float(np.sum(tilt * F))
        limits, point = rows.priced(claim.query.loss, 1.0).dual_limits, claim.value.at.V
        size = np.sqrt(np.sum((point[:, :-1] / form.scale) ** 2, axis=1)).max() * float(limits @ lengths)
        size += np.abs(point[:, -1]).max() * float(limits.sum())
        error = 8.0 * claim.query.C * gamma(form.mean.size + 16) * size * above
        numbers = Compensated.of(np.array([*step.numbers, risk]))
        vector = Compensated.of(V[mine], reach[mine])
        yield Evidence(vector, numbers, step.totals.surplus, error, rows.n, step.totals.feasible)


def gain_of(problem: Problem, R: Array, D: Array) -> tuple[float, float]:
    """Return the gain of R = tilt + D and a bound on its error, the rounding of R included."""
    alpha = own_entries(problem, R)
    breakpoints = np.array([t for _, t in problem.loss.hinges])
    gain, error = gain_below(np.maximum(alpha, 0.0), problem.price_floors, breakpoints)
    steepest = float(np.abs(breakpoints).max(initial=0.0))
    rounded = float(np.abs(alpha).sum() + np.abs(D).sum()) * (1.0 + gamma(problem.n + 8))
    return gain, error + steepest * 8.0 * UNIT * rounded


def wanted_of(found: Evidence) -> dict[int, Table] | None:
    """Return what blocks of the reserve have to hold so that all columns of D sum to zero; None if they cannot.

    As few blocks as possible change.
    """
    kept = {index: totals for index, (totals, _) in (found.kept or {}).items()}
    feasible = found.feasible and all(totals.feasible for totals in kept.values())
    if not kept or not feasible:
        return None
    k = len(found.balance)
    total = zero_totals(k)
    for totals in kept.values():
        total = total.plus(totals)
    surplus = [a + b for a, b in zip(total.surplus, found.balance)]
    wanted = balanced_sums([row.copy() for row in total.held], total.room.copy(), surplus)
    if wanted is None:
        return None
    held = {index: [row.copy() for row in totals.held] for index, totals in kept.items()}
    for a in range(k):
        room = {index: totals.room[a] for index, totals in kept.items()}
        for j in range(k):
            left = total.held[a][j] - wanted[a][j]
            for index in sorted(kept, key=lambda index: -kept[index].held[a][j]) if left > 0 else ():
                part = min(left, held[index][a][j])
                held[index][a][j] -= part
                room[index] += part
                left -= part
        for j in range(k):
            left = wanted[a][j] - total.held[a][j]
            for index in sorted(kept, key=lambda index: -room[index]) if left > 0 else ():
                part = min(left, room[index])
                held[index][a][j] += part
                room[index] -= part
                left -= part
    return {index: table for index, table in held.items() if table != kept[index].held}


def all_of(found: Evidence, again: Evidence | None, wanted: dict[int, Table]) -> Evidence:
    """Add up the evidence: that of the reserve as it was, unless it has changed."""
    parts = [evidence for index, (_, evidence) in (found.kept or {}).items() if index not in wanted]
    parts += [] if again is None else [again]
    return reduce(Evidence.plus, parts, found._replace(kept=None))


class Bound(NamedTuple):
    """The bound, the recomputed samples' part of the objective, and how far rounding can be off there."""

    bound: float
    risk: float
    error: float


def bound_of(evidence: Evidence, penalty: Penalty, offset: float) -> Bound:
    """Turn the evidence of all blocks into a bound, rounded down.

    With an l1 part and no l2 part, sum_i D_i x_i has to obey |V| <= l1, so D is shrunk by theta; the gain is concave,
    so that of tilt + theta D is at least theta gain(tilt + D) + (1 - theta) gain(tilt).
    """
    if any(evidence.balance):
        raise ArithmeticError("The multipliers of the blocks do not balance.")
    V, radius = value_and_error(evidence.vector, evidence.longest + 16)
    numbers, slack = value_and_error(evidence.numbers, 4)
    gain, error, tilt_gain, tilt_error, risk = (numbers + np.array([-1, 1, -1, 1, 0]) * slack).tolist()
    theta, conjugate = 1.0, 0.0
    if penalty.l2 > 0:
        conjugate = penalty.conjugate(V, radius)
    else:
        theta = l1_shrinkage(V, radius, penalty.l1_array(V.shape))
    terms = [theta * gain, (1.0 - theta) * tilt_gain, -error, -tilt_error * (theta < 1), -conjugate, offset]
    safety = 8.0 * UNIT * (abs(gain) + abs(tilt_gain) + abs(error) + abs(tilt_error))
    return Bound(math.nextafter(math.fsum([*terms, -safety]), -math.inf), risk, evidence.score_error + float(slack[4]))


def value_and_error(sums: Compensated, steps: int) -> tuple[Array, Array]:
    """Return a compensated sum, rounded, and a bound on its error; each term made ``steps`` roundings of its own."""
    total = sums.high + sums.low
    own = gamma(steps) + (4.0 * gamma(sums.terms + 4)) ** 2
    return total, own * sums.size * (1.0 + gamma(sums.terms + 8)) + 4.0 * UNIT * np.abs(total)
