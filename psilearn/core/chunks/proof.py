"""A lower bound from sums over blocks: multipliers are put on a grid of integers, balanced exactly, and summed safely.

The bound is the one of :meth:`psilearn.core.problem.Problem.dual_bound`, in two passes. The first adds up, in integers,
what the multipliers of each class are and how far they can move; from these totals follows by how much each class has
to change so that the intercepts' equation holds exactly (:mod:`psilearn.core.bounds.duality`). The second pass makes
the changes block by block, checks the balance of what it has made, and adds gain and sum_i D_i x_i with their rounding
errors. Two classes are treated as k = 2 here: R_i,other = -R_i,own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..bounds.duality import (
    balanced_sums,
    ceiling_on,
    fit_rows,
    floor_on,
    gain_below,
    l1_shrinkage,
    nearest_on,
    shares,
)
from ..bounds.rounding import UNIT, difference_below, gamma, integer_sum
from ..penalties import Penalty
from ..problem import Problem
from ..spaces import LinearSpace
from .blocks import Block
from .sums import Compensated, Form, Query, Scores, own_entries, respond, tilt_of

Array = NDArray[np.float64]
Integers = NDArray[np.int64]
Table = list[list[int]]

_BITS = 53
_SMALLEST_EXPONENT = -1000


def exponent_of(peak: float, n_classes: int, has_tilt: bool) -> int:
    """Return the exponent of a grid on which multipliers up to ``peak`` keep all their digits."""
    spare = 1 + (math.ceil(math.log2(n_classes)) if has_tilt else 0)
    return max(math.frexp(peak)[1] - (_BITS - spare), _SMALLEST_EXPONENT)


@dataclass
class Totals:
    """Integers that tell how the multipliers of class a against class j can change, and what the columns sum to.

    Attributes
    ----------
    held : table
        By how much they can be lowered.
    room : list
        By how much those of class a can be raised.
    surplus : list
        Sums of the columns of -D.
    feasible : bool
        Whether every sample's limits hold an integer.
    """

    held: Table
    room: list[int]
    surplus: list[int]
    feasible: bool = True

    def plus(self, other: Totals) -> Totals:
        """Add the totals of other samples."""
        return Totals(
            [[a + b for a, b in zip(mine, theirs)] for mine, theirs in zip(self.held, other.held)],
            [a + b for a, b in zip(self.room, other.room)],
            [a + b for a, b in zip(self.surplus, other.surplus)],
            self.feasible and other.feasible,
        )


def zero_totals(k: int) -> Totals:
    """Return the totals of no sample."""
    return Totals([[0] * k for _ in range(k)], [0] * k, [0] * k)


@dataclass
class Change:
    """By how much a block lowers and raises the multipliers of class a against class j, in units of the grid."""

    lower: Table
    higher: Table
    exponent: int = 0


@dataclass
class _Grid:
    """Multipliers of some samples as integers G = -D off the own class, with their limits."""

    G: Integers
    low: Integers
    cap: Integers
    y: NDArray[np.intp]
    feasible: bool = field(default=True)

    @classmethod
    def at(cls, problem: Problem, R: Array, tilt: Array | None, exponent: int) -> _Grid:
        k, y = problem.n_classes, problem.y
        own = y[:, None] == np.arange(k)
        A = np.where(own, 0.0, np.maximum(-_both_columns(R, k), 0.0))
        total, upper = A.sum(axis=1), problem.limit_floors
        A *= np.where(total > upper, upper / np.where(total > 0, total, 1.0), 1.0)[:, None]
        shift = np.zeros_like(A) if tilt is None else np.where(own, 0.0, _both_columns(tilt, k))
        top = upper if tilt is None else difference_below(upper, own_entries(problem, tilt))
        low, cap = ceiling_on(shift, exponent), floor_on(top, exponent)
        low[own] = 0
        if np.any(low.sum(axis=1) > cap) or np.any(np.abs(low) > 1 << _BITS):
            return cls(low, low, cap, y, False)
        G = np.maximum(nearest_on(A + shift, exponent), low)
        G[own] = 0
        fit_rows(G, low, cap)
        return cls(G, low, cap, y)

    def totals(self, k: int) -> Totals:
        """Return what is added up over all samples."""
        out = zero_totals(k)
        out.feasible = self.feasible
        if not self.feasible:
            return out
        for a in range(k):
            m = np.flatnonzero(self.y == a)
            out.held[a] = [integer_sum(self.G[m, j] - self.low[m, j]) for j in range(k)]
            row = self.G[m].sum(axis=1)
            out.room[a] = integer_sum(self.cap[m] - row)
            out.surplus[a] += integer_sum(row)
        for j in range(k):
            out.surplus[j] -= integer_sum(self.G[:, j])
        return out

    def apply(self, change: Change, k: int) -> None:
        """Change the multipliers as far as these samples can, and take that off the change."""
        for a in range(k):
            m = np.flatnonzero(self.y == a)
            for j in range(k):
                available = self.G[m, j] - self.low[m, j]
                part = min(change.lower[a][j], integer_sum(available))
                self.G[m, j] -= shares(available, part)
                change.lower[a][j] -= part
            for j in range(k):
                available = self.cap[m] - self.G[m].sum(axis=1)
                part = min(change.higher[a][j], integer_sum(available))
                self.G[m, j] += shares(available, part)
                change.higher[a][j] -= part

    def steps(self, exponent: int) -> Array:
        """Return D (n, k)."""
        D = -self.G
        D[np.arange(self.y.size), self.y] = self.G.sum(axis=1)
        return np.ldexp(D.astype(np.float64), exponent)


def _both_columns(R: Array, k: int) -> Array:
    return np.hstack([-R, R]) if k == 2 else R


def _carrying(problem: Problem, form: Form, query: Query) -> tuple[Problem, Array, Array | None]:
    """Return the samples with multipliers that are not zero, these, and their tilt; with a tilt, all samples.

    The others could only have their multipliers raised; nothing is lost by not doing so, and there are many of them.
    Both passes make this very product of matrices: another one, with more columns, might round otherwise.
    """
    scores = Scores.of(problem, form, [query])
    R, tilt = respond(problem, query, scores).R, tilt_of(problem, query, scores)
    if tilt is not None:
        return problem, R, tilt
    used = np.flatnonzero(R.any(axis=1))
    if used.size == 0:
        used = np.zeros(1, dtype=np.intp)  # so that nothing has the size zero
    assert isinstance(problem.space, LinearSpace)
    part = replace(
        problem, space=LinearSpace(problem.space.X[used]), y=problem.y[used], weights=problem.weights[used]
    )  # fmt: skip
    return part, R[used], None


def count_totals(index: int, block: Block, form: Form, query: Query, exponent: int) -> Totals:
    """Return a block's totals: the first pass."""
    k = form.classes.size
    out = zero_totals(k)
    for rows in form.samples(block, query.loss, query.C):
        out = out.plus(_Grid.at(*_carrying(rows, form, query), exponent).totals(k))
    return out


def changes_of(blocks: list[Totals], exponent: int) -> list[Change] | None:
    """Return what every block has to change so that all columns of D sum to zero; None if that is impossible."""
    if not blocks or not all(block.feasible for block in blocks):
        return None
    k = len(blocks[0].room)
    total = zero_totals(k)
    for block in blocks:
        total = total.plus(block)
    wanted = balanced_sums([row.copy() for row in total.held], total.room, total.surplus)
    if wanted is None:
        return None
    changes = [Change([[0] * k for _ in range(k)], [[0] * k for _ in range(k)], exponent) for _ in blocks]
    for a in range(k):
        for j in range(k):
            step = wanted[a][j] - total.held[a][j]
            if step < 0:
                for change, part in zip(changes, _parts(-step, [block.held[a][j] for block in blocks])):
                    change.lower[a][j] = part
        room = [block.room[a] + sum(change.lower[a]) for block, change in zip(blocks, changes)]
        for j in range(k):
            step = wanted[a][j] - total.held[a][j]
            if step > 0:
                parts = _parts(step, room)
                room = [r - part for r, part in zip(room, parts)]
                for change, part in zip(changes, parts):
                    change.higher[a][j] = part
    return changes


def _parts(amount: int, available: list[int]) -> list[int]:
    """Return integers up to ``available`` that add up to ``amount``: in proportion, then from the first."""
    total = sum(available)
    parts = [amount * a // total for a in available]
    rest = amount - sum(parts)
    for i, a in enumerate(available):
        more = min(rest, a - parts[i])
        parts[i] += more
        rest -= more
    return parts


class Evidence(NamedTuple):
    """What the second pass adds up.

    Attributes
    ----------
    vector : Compensated (m, p)
        sum_i D_i (x_i - mean); its ``size`` bounds the absolute values of the terms.
    numbers : Compensated (6,)
        Gain of R, its error, gain of the tilt, its error, sum of |R| and |D|, and the objective's loss and tilt part.
    balance : list of int
        Sums of the columns of D, which must be 0.
    score_error : float
        Bound on what rounding of scores does to the objective.
    longest : int
        Rows that were added up at a time.
    """

    vector: Compensated
    numbers: Compensated
    balance: list[int]
    score_error: float
    longest: int

    def plus(self, other: Evidence) -> Evidence:
        """Add the evidence of other samples."""
        return Evidence(
            self.vector.plus(other.vector),
            self.numbers.plus(other.numbers),
            [a + b for a, b in zip(self.balance, other.balance)],
            self.score_error + other.score_error,
            max(self.longest, other.longest),
        )


def join_evidence(left: Evidence, right: Evidence) -> Evidence:
    """Add two pieces of evidence."""
    return left.plus(right)


def collect(index: int, block: Block, form: Form, query: Query, value: Query, changes: list[Change]) -> Evidence:
    """Return a block's evidence: the second pass. ``value`` is the query of the objective."""
    k, p, m = form.classes.size, form.mean.size, form.n_functions
    change = changes[index]
    zero = Compensated.of(np.zeros((m, p))), Compensated.of(np.zeros(6))
    total = Evidence(*zero, [0] * k, 0.0, 0)
    for rows in form.samples(block, query.loss, query.C):
        total = total.plus(_evidence(rows, form, query, value, change))
    if any(map(any, change.lower)) or any(map(any, change.higher)):
        raise ArithmeticError("A block could not make the changes that its first pass promised.")
    return total


def _evidence(problem: Problem, form: Form, query: Query, value: Query, change: Change) -> Evidence:
    k, exponent = problem.n_classes, change.exponent
    risk, score_error = _objective(problem, form, value, Scores.of(problem, form, [value]))
    problem, wish, tilt = _carrying(problem, form, query)
    grid = _Grid.at(problem, wish, tilt, exponent)
    grid.apply(change, k)
    D = grid.steps(exponent)
    balance = [integer_sum(np.ldexp(D[:, j], -exponent)) for j in range(k)]
    step = D[:, 1:] if k == 2 else D
    R = step if tilt is None else tilt + step
    gain, error = gain_of(problem, R, step)
    tilt_gain, tilt_error = (0.0, 0.0) if tilt is None else gain_of(problem, tilt, tilt)
    assert isinstance(problem.space, LinearSpace)
    X = problem.space.X
    sums = Compensated.of(step.T @ X, (np.abs(step).T @ np.abs(X)) * (1.0 + gamma(problem.n + 8)))
    numbers = Compensated.of(np.array([gain, error, tilt_gain, tilt_error, 0.0, risk]))
    return Evidence(sums, numbers, balance, score_error, problem.n)


def gain_of(problem: Problem, R: Array, D: Array) -> tuple[float, float]:
    """Return the gain of R = tilt + D and a bound on its error, the rounding of R included."""
    alpha = own_entries(problem, R)
    breakpoints = np.array([t for _, t in problem.loss.hinges])
    gain, error = gain_below(np.maximum(alpha, 0.0), problem.price_floors, breakpoints)
    steepest = float(np.abs(breakpoints).max(initial=0.0))
    rounded = float(np.abs(alpha).sum() + np.abs(D).sum()) * (1.0 + gamma(problem.n + 8))
    return gain, error + steepest * 8.0 * UNIT * rounded


def _objective(problem: Problem, form: Form, value: Query, scores: Scores) -> tuple[float, float]:
    """Return the samples' part of the objective, and what rounding of their scores can do to it."""
    assert isinstance(problem.space, LinearSpace)
    F = scores.at(value.at.V)
    original = problem if value.loss is problem.loss else Problem(
        problem.space, problem.y, problem.n_classes, value.loss, problem.penalty, value.C, problem.weights
    )  # fmt: skip
    risk = float(original.costs @ original.loss.value(original.margins_of_scores(F), original.y))
    tilt = tilt_of(original, value, scores)
    if tilt is not None:
        risk += float(np.sum(tilt * F))
    size = np.abs(problem.space.X) @ (np.abs(value.at.V[:, :-1]) / form.scale).T + np.abs(value.at.V[:, -1])
    error = 4.0 * gamma(form.mean.size + 16) * float(problem.dual_limits @ size.max(axis=1)) * 2.0
    return risk, error


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
        raise ArithmeticError("The multipliers of the blocks do not balance: two passes over the data disagree.")
    V, radius = value_and_error(evidence.vector, evidence.longest + 16)
    numbers, slack = value_and_error(evidence.numbers, 4)
    gain, error, tilt_gain, tilt_error, _, risk = (numbers + np.array([-1, 1, -1, 1, 0, 0]) * slack).tolist()
    theta, conjugate = 1.0, 0.0
    if penalty.l2 > 0:
        conjugate = penalty.conjugate(V, radius)
    else:
        theta = l1_shrinkage(V, radius, penalty.l1_array(V.shape))
    terms = [theta * gain, (1.0 - theta) * tilt_gain, -error, -tilt_error * (theta < 1), -conjugate, offset]
    safety = 8.0 * UNIT * (abs(gain) + abs(tilt_gain) + abs(error) + abs(tilt_error))
    return Bound(math.nextafter(math.fsum([*terms, -safety]), -math.inf), risk, evidence.score_error + float(slack[5]))


def value_and_error(sums: Compensated, steps: int) -> tuple[Array, Array]:
    """Return a compensated sum, rounded, and a bound on its error; each term made ``steps`` roundings of its own."""
    total = sums.high + sums.low
    own = gamma(steps) + (4.0 * gamma(sums.terms + 4)) ** 2
    return total, own * sums.size * (1.0 + gamma(sums.terms + 8)) + 4.0 * UNIT * np.abs(total)
