"""Check a proof file in floating point with error bounds, and exactly where these do not decide; needs numpy.

    python -m psilearn.proofs.fast FILE DATA.csv

The rules, and who may use them when, are those of :mod:`.check`; what is done here in another way is arithmetic. Values
of multipliers are sums that rounding moves by at most an a-priori bound (Higham, Accuracy and Stability of Numerical
Algorithms, 2002, section 3.1), which is taken off. The intervals at each of them are kept, so that some hundred are
valued at a time. One whose bound is not reached for certain is handed to the exact rule with its intervals. So nothing
is accepted that :mod:`.check` rejects, and nothing is rejected but by it.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Iterator
from fractions import Fraction
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import check

require = check.require
Array = NDArray[Any]
Record = dict[str, Any]
#: alpha, R (None for two classes), and the entries that they were read from.
Numbers = tuple[Array, Array | None, Any]

#: Unit of rounding; bounds below hold up to 2 ** 16 terms.
UNIT = 2.0**-53
#: Relative error of a term, some thirty operations at most.
TERM = 2.0**-48
#: Hinges of a loss, and exponents of units, for which these constants hold.
MOST_HINGES, LEAST_EXPONENT = 6, -900
#: What underflow may take from a sum.
TINY = 1e-290
#: A product that is not above this may have lost digits.
UNDERFLOW = 1e-250
#: Numbers in a table of intervals, and places of neighbours that are remembered.
BATCH, MOST_REMEMBERED = 1 << 15, 1 << 22
_LONG = re.compile(rb"[0-9]{300}")


def parse(line: bytes) -> Record:
    """Return the object in one line, as :func:`.check.parse` does, with the integers read by the library of JSON."""
    if _LONG.search(line):
        return check.parse(line)
    record = json.loads(line, object_pairs_hook=check._object, parse_constant=check._refuse)
    require(isinstance(record, dict), "a line is not an object")
    return record


class Records(check.Records):
    """Lines that are parsed faster."""

    parse = staticmethod(parse)


class Values:
    """Lower bounds on the values of multipliers, for many nodes at a time."""

    def __init__(self, search: check.Search) -> None:
        problem, space = search.problem, search.problem.space
        self.n, self.unit = problem.n, 2.0**search.unit
        self.own, self.sign = np.array(problem.code), np.array(problem.sign, dtype=float)
        self.t, size = float(search.t), 2.0**search.um
        self.cap = np.array([float(c * check.power(search.e)) for c in search.caps])
        slopes = [
            [float(cost * cs[code]) for cost, code in zip(problem.cost, problem.code)] for _, cs in problem.hinges
        ]
        self.hinges = [(p * size, np.array(s)) for p, s in zip(search.breakpoints, slopes) if p > search.jump]
        self.at_t = self._paid(self.t)
        self.at_point = [self._paid(p) for p, _ in self.hinges]
        self.peak = max([abs(self.t), *(abs(p) for p, _ in self.hinges)])
        self.size = self.cap + sum((2.0 * self.peak * s for _, s in self.hinges), np.zeros(self.n))
        self.l2 = float(problem.l2)
        self.is_linear = isinstance(space, check.Linear)
        if self.is_linear:
            self.X = np.array(problem.rows, dtype=float).reshape(self.n, -1)
            self.l1 = np.array([[math.inf if w is None else float(w) for w in row] for row in problem.l1])
        else:
            self.X = np.array([[math.ldexp(float(x), space.e) for x in row] for row in space.K])
            self.err = float(space.err) * (1.0 + 2.0 * UNIT)

    def _paid(self, u: Any) -> Array:
        """Return what samples pay at margins u >= t."""
        return np.minimum(self.cap, sum((s * np.maximum(p - u, 0.0) for p, s in self.hinges), 0.0))

    def least(
        self, A: Array, R: Array | None, low: Array, high: Array, side: Array, relief: Array | None, gained: Array
    ) -> Array:
        """Return lower bounds on the dual values; -inf if there are none."""
        alpha, size = A * self.unit, np.abs(A) * self.unit
        has_low, has_high = low > -np.inf, high < np.inf
        low, high = np.where(has_low, low, 0.0), np.where(has_high, high, 0.0)
        below, above = side < 0, side > 0
        spared = 0.0 if relief is None else relief
        least = np.where(side == 0, np.minimum(self.at_t, self.cap - spared) + alpha * self.t, np.inf)
        paid = np.where(above, self._paid(low), self.cap - spared) + alpha * low
        least = np.where(has_low, np.minimum(least, paid), least)
        paid = np.where(below, self.cap - spared, self._paid(high)) + alpha * high
        least = np.where(has_high, np.minimum(least, paid), least)
        for (p, _), at in zip(self.hinges, self.at_point):
            inside = ((low <= p) | ~has_low) & ((high >= p) | ~has_high)
            least = np.where(inside, np.minimum(least, at + alpha * p), least)
        largest = np.maximum(np.maximum(np.abs(low), np.abs(high)), self.peak)
        error = TERM * (self.size + size * largest + spared) + self.n * UNIT * np.abs(least)
        total = (least - error).sum(axis=1) - self.n * UNIT * error.sum(axis=1)
        total -= 4.0 * UNIT * (np.abs(total) + gained) + TINY
        value = total + gained - self._conjugate(R if R is not None else (A * self.sign)[:, None, :])
        value -= 2.0 * UNIT * np.abs(value)
        is_bad = ((alpha < 0.0) & ~has_high) | ((alpha > 0.0) & ~has_low)
        return np.where(is_bad.any(axis=1), -np.inf, value)

    def _conjugate(self, R: Array) -> Array:
        """Return upper bounds on P*."""
        R = R * self.unit
        V, size = R @ self.X, np.abs(R) @ np.abs(self.X)
        terms = V.shape[1] * max(V.shape[2], self.n)
        if not self.is_linear:
            rounding = (terms + self.n + 16) * UNIT * (size * np.abs(R)).sum(axis=(1, 2))
            squares = np.square(np.abs(R).sum(axis=2)).sum(axis=1) * self.err * (1.0 + (2 * terms + 16) * UNIT)
            return ((V * R).sum(axis=(1, 2)) + rounding + squares) * (0.5 / self.l2) * (1.0 + 8.0 * UNIT) + TINY
        excess = np.maximum(np.abs(V) + (self.n + 8) * UNIT * size + TINY - self.l1, 0.0)
        if self.l2 == 0.0:
            return np.where((excess > 0.0).any(axis=(1, 2)), np.inf, 0.0)
        return np.square(excess).sum(axis=(1, 2)) * (0.5 / self.l2) * (1.0 + (terms + 16) * UNIT) + TINY

    def distances(self, i: int) -> tuple[Array, Array]:
        """Return what grows with the distance from sample i, and bounds on its errors.

        Its product with what is left for the penalty bounds a difference of scores, for l2 > 0 the square of one, but
        for a factor (:meth:`.check.Linear.reach`).
        """
        if not self.is_linear:
            diagonal = np.diagonal(self.X)
            parts = diagonal + diagonal[i], 2.0 * self.X[i]
            return parts[0] - parts[1], 8.0 * UNIT * (np.abs(parts[0]) + np.abs(parts[1])) + 4.0 * self.err
        z = np.abs(self.X - self.X[i])
        D = np.square(z).sum(axis=1) if self.l2 > 0.0 else (z / self.l1[0]).max(axis=1, initial=0.0)
        return D, (z.shape[1] + 8) * UNIT * D + TINY


class Search(check.Search):
    """The checker's search; leaves, cuts and conflicts wait until there are enough of them to be valued together."""

    def __init__(self, problem: check.Problem, bound: Fraction, unit: int, margin: int) -> None:
        self.lows, self.highs = np.full(problem.n, -np.inf), np.full(problem.n, np.inf)
        self.sides, self.are_doubles = np.zeros(problem.n, np.int8), True
        super().__init__(problem, bound, unit, margin)
        self.values, self.waiting = Values(self), list[Any]()
        self.judge = check.Search(problem, bound, unit, margin)  # for what is decided exactly
        self.bound_above = math.nextafter(float(bound), math.inf)
        self.orders = dict[int, Any]()

    def _refresh(self, i: int) -> None:
        """Keep the ends of an interval as doubles, rounded outwards, and the side of t it lies on."""
        low, high = self.low[i], self.high[i]
        self.lows[i] = -np.inf if low is None else self._outward(low, -math.inf)
        self.highs[i] = np.inf if high is None else self._outward(high, math.inf)
        is_above, is_below = low is not None and low >= self.jump, high is not None and high <= self.jump
        self.sides[i] = 1 if is_above else -1 if is_below else 0

    def _outward(self, whole: int, end: float) -> float:
        """Return a margin as a double, rounded towards ``end`` if it is none."""
        near = float(whole)
        if near != whole:
            near, self.are_doubles = math.nextafter(near, end), False
        return math.ldexp(near, self.um)

    def _whole(self, u: float) -> int | None:
        """Return a margin that is a double as the integer it was."""
        return None if math.isinf(u) else int(math.ldexp(u, -self.um))

    def dual_value(self, record: Record) -> Fraction:
        """Return the exact value at the node at hand."""
        return self._judged(self.low, self.high, self.conflicts, record)

    def _judged(self, low: Any, high: Any, conflicts: Any, record: Record) -> Fraction:
        judge = self.judge
        for i, ends in enumerate(zip(low, high)):
            if (judge.low[i], judge.high[i]) != ends:
                judge.low[i], judge.high[i] = ends
                judge._refresh(i)
        judge.conflicts = conflicts
        return judge.dual_value(record)

    # multipliers

    def _numbers(self, entries: Any) -> Numbers:
        """Return (alpha, R, entries) of a list of multipliers as arrays, R None for two classes."""
        short = self._short_numbers(entries)
        if short is not None:
            return short
        alpha, R = np.zeros(self.problem.n), np.zeros((self.problem.m, self.problem.n))
        read = self._read(entries)
        for i, a in read[0].items():
            alpha[i] = float(a)
        for row, values in zip(R, read[1]):
            for i, a in values.items():
                row[i] = float(a)
        return alpha, None if self.problem.k == 2 else R, entries

    def _short_numbers(self, entries: Any) -> Numbers | None:
        """Return the same if all sums are exact in double precision and no rule of the checker is broken, else None."""
        width, n, k = 2 if self.problem.k == 2 else 3, self.problem.n, self.problem.k
        if not isinstance(entries, list) or not entries:
            return None
        if set(map(type, entries)) != {list} or set(map(len, entries)) != {width}:
            return None
        flat = list(chain.from_iterable(entries))
        if set(map(type, flat)) != {int} or max(flat) >= 1 << 53 or min(flat) <= -(1 << 53):
            return None
        table = np.array(flat, dtype=np.int64).reshape(-1, width)
        i, a = table[:, 0], table[:, -1].astype(float)
        if np.abs(a).sum() >= 2.0**53 or i.min() < 0 or i.max() >= n:
            return None
        if k == 2:
            alpha = np.bincount(i, a, n)
            return (alpha, None, table) if alpha @ self.values.sign == 0.0 else None
        j, own = table[:, 1], self.values.own[i]
        if a.min() < 0 or j.min() < 0 or j.max() >= k or (j == own).any():
            return None
        R = (np.bincount(own * n + i, a, k * n) - np.bincount(j * n + i, a, k * n)).reshape(k, n)
        return None if R.sum(axis=1).any() else (np.bincount(i, a, n), R, table)

    def _claim(self, numbers: Numbers, weights: Any = None, relief: Array | None = None, gained: float = 0.0) -> None:
        """Let a claim wait that multipliers reach the bound on the intervals at hand."""
        floats = self.lows.copy(), self.highs.copy(), self.sides.copy()
        whole = None if self.are_doubles else (tuple(self.low), tuple(self.high))
        conflicts = None if weights is None else tuple(self.conflicts)
        self.waiting.append((numbers, relief, gained, (floats, whole, conflicts, weights)))
        if len(self.waiting) * self.problem.n * self.problem.m >= BATCH:
            self._settle()

    def _settle(self) -> None:
        """Value the claims that wait, exactly those that are not certain."""
        waiting, self.waiting = self.waiting, []
        if not waiting:
            return
        numbers, relief, gained, rest = zip(*waiting)
        A = np.array([alpha for alpha, _, _ in numbers])
        R = None if numbers[0][1] is None else np.array([rows for _, rows, _ in numbers])
        low, high, side = (np.array(part) for part in zip(*(floats for floats, *_ in rest)))
        spared = None
        if any(part is not None for part in relief):
            zero = np.zeros(self.problem.n)
            spared = np.array([zero if part is None else part for part in relief])
        with np.errstate(all="ignore"):
            values = self.values.least(A, R, low, high, side, spared, np.array(gained))
        for place in np.flatnonzero(~(values >= self.bound_above)).tolist():
            self._decide(numbers[place], *rest[place])

    def _decide(self, numbers: Numbers, floats: Any, whole: Any, conflicts: Any, weights: Any) -> None:
        """Value a claim exactly."""
        entries = numbers[2] if isinstance(numbers[2], list) else numbers[2].tolist()
        record = {"multipliers": entries} if weights is None else {"multipliers": entries, "weights": weights}
        low, high = whole or ([self._whole(u) for u in ends.tolist()] for ends in floats[:2])
        value = self._judged(low, high, [] if conflicts is None else conflicts, record)
        require(value >= self.bound, "multipliers do not reach the bound")

    def _reaches(self, record: Record, key: str) -> None:
        """Claim that the multipliers of a record reach the bound here."""
        if record.get("shift") is not None:
            require(self.dual_value(record) >= self.bound, "multipliers do not reach the bound")
            return
        numbers = self._numbers(record[key])
        if "weights" not in record:
            self._claim(numbers)
            return
        total, spared = self._weights(record)
        relief = np.zeros(self.problem.n)
        for i, weight in spared.items():
            relief[i] = math.ldexp(float(weight), self.e)
        self._claim(numbers, record["weights"], relief, math.ldexp(float(total), self.e))

    # neighbours

    def _neighbours(self, i: int, gap: Fraction, same: bool, ball: Any = None) -> None:
        """Do what the checker does where floating point cannot tell."""
        if not self._are_near(i, gap, same):
            super()._neighbours(i, gap, same, ball)

    def _are_near(self, i: int, gap: Fraction, same: bool) -> bool:
        """Whether the exact rule certainly accepts, without a ball.

        Samples whose distances may be equal are a group: each must be as near as the farthest of them, with as much
        left for the penalty as before the first of them, so their order does not matter.
        """
        values, problem = self.values, self.problem
        is_l1 = values.is_linear and values.l2 == 0.0
        if is_l1 and (problem.m > 1 or not values.l1.all()):
            return False
        if not ((problem.k == 2 or same) and gap >= 0 and self.bound > 0):
            return False
        order, begins, farthest = self._order(i)
        taken = ((values.own[order] == values.own[i]) == same) & (self.sides[order] >= 0)
        caps = values.cap * (1.0 - 4.0 * self.problem.n * UNIT)  # sums of these are not above the true ones
        sums = np.cumsum(np.where(taken, caps[order], 0.0))
        spent = caps[self.sides < 0].sum() + np.append(0.0, sums[:-1])
        left = (self.bound_above - spent[begins]) * (1.0 + 8.0 * UNIT)
        reach = float(gap) * (1.0 - 4.0 * UNIT)
        if not is_l1:
            reach *= reach * values.l2 / (2.0 if problem.k == 2 else 4.0)
        if not reach > UNDERFLOW:
            return False
        is_near = ~taken | (left * farthest <= reach * (1.0 - 16.0 * UNIT))
        ends = (left <= 0.0) | (taken & (self.sides[order] > 0))
        if not ends.any():
            return bool(is_near.all() and caps[self.sides < 0].sum() + sums[-1] >= self.bound_above)
        last = begins[int(np.argmax(ends))]
        return bool(is_near[: int(np.searchsorted(begins, last, side="right"))].all())

    def _order(self, i: int) -> tuple[Array, Array, Array]:
        """Return the samples by distance from i, the places where their groups begin, and the groups' distances."""
        if i not in self.orders:
            if len(self.orders) * self.problem.n > MOST_REMEMBERED:
                self.orders.clear()
            D, error = self.values.distances(i)
            order = np.argsort(D, kind="stable")
            low = np.minimum.accumulate((D - error)[order][::-1])[::-1]
            high = np.maximum.accumulate((D + error)[order])
            is_first = np.append(True, low[1:] > high[:-1])
            begins = np.maximum.accumulate(np.where(is_first, np.arange(order.size), 0))
            ends = np.append(np.flatnonzero(is_first)[1:], order.size) - 1
            farthest = high[ends[np.cumsum(is_first) - 1]] * (1.0 + 8.0 * UNIT)
            self.orders[i] = order, begins, farthest
        return self.orders[i]

    # rules

    def follow(self, records: Iterator[Record]) -> None:
        """Apply records until the tree is complete, and value what waits."""
        super().follow(records)
        self._settle()

    def leaf(self, record: Record) -> None:
        """Close the node: its multipliers show F >= bound."""
        self._reaches(record, "leaf")
        self._close()

    def conflict(self, record: Record) -> None:
        """Add a conflict: as the checker does, but for when it is valued."""
        members, size = check.array(record["conflict"]), len(self.changes)
        for i in members:
            self._set(i, self._inside(i, "t")[1], self.high[i])
        self._reaches(record, "multipliers")
        self._undo(size)
        self.conflicts.append(members)
        self.held += len(members)
        require(self.held <= check.MAX_CHANGES, "the tree is too deep")

    def cuts(self, record: Record) -> None:
        """Shrink intervals: as the checker does, but for when the parts that are cut off are valued."""
        alpha = self._numbers(record["multipliers"])[0]
        is_bad = ((alpha > 0.0) & (self.lows == -np.inf)) | ((alpha < 0.0) & (self.highs == np.inf))
        require(not is_bad.any(), "a multiplier has no end")
        for cut in check.array(record["cuts"]):
            i, side, c, change = check.array(cut, 4)
            require(side in ("<", ">"), "a cut has no side")
            i, c = self._inside(i, c)
            below, above = (self.low[i], c), (c, self.high[i])
            self._read(change)
            both = record["multipliers"] + change
            self._set(i, *(below if side == "<" else above))
            self._claim(self._numbers(both))
            self.low[i], self.high[i] = above if side == "<" else below
            self._refresh(i)


def search(problem: check.Problem, bound: Fraction, unit: int, margin: int) -> check.Search:
    """Return the search for a problem: the exact one where floating point has no bounds, or nothing to gain."""
    fits = not problem.is_convex and len(problem.hinges) <= MOST_HINGES and problem.n < 1 << 16
    exact = check.Search(problem, bound, unit, margin)
    if not fits or min(exact.um, unit, exact.e, problem.space.e) < LEAST_EXPONENT:
        return exact
    try:
        return Search(problem, bound, unit, margin)
    except OverflowError:
        return exact


def verify(records: Any, rows: Any, labels: Any, weights: Any) -> Any:
    """Check all records of a proof; returns (claim, objective, bound) or raises Rejected."""
    return check.verify(records, rows, labels, weights, search)


def check_arrays(path: Any, rows: Any, labels: Any, weights: Any) -> Any:
    """Check a proof against data in memory; never raises for a bad file."""
    return check.verdict(path, lambda claim: (rows, labels, weights), verify, records=Records)


def check_file(path: Any, data: Any) -> Any:
    """Check a proof against a CSV file."""
    return check.check_file(path, data, verify, records=Records)


if __name__ == "__main__":
    sys.exit(check.main(sys.argv[1:], check_file))
