"""Exact pricing: the monomials of largest reward, with an honest bound when a limit stops the search."""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import incumbents_jit as incumbents
from . import search_jit as kernel
from .chains import Chains
from .pairwise import PairEnds, PairwiseSums

#: Values closer than this, relative to the total weight, count as equal.
RELATIVE_TOLERANCE = 1e-12
_DIVES = 32
_FIRST_CHUNK = 512
#: Work of the first nodes (rows times literals), after which a tree not yet exhausted gets the pairs' table; its size.
_FIRST_WORK = 1e8
_LARGEST_TABLE = 4096
_CHUNK_SECONDS = 0.05
_BLOCK = 2048
#: Products of rows and pairs of literals up to which all monomials of order 2 are valued outright, and the same in
#: steps of the histograms over chains: some seconds.
_ALL_PAIRS_WORK, _CHAINS_WORK = 1e9, 4e9
#: Conjunctions that the quick search lengthens.
_BEAM = 40
_NO_TABLES = (np.empty((0, 0)), np.empty((0, 0)))


class Monomial(NamedTuple):
    """A signed conjunction: ``literals`` l < N ask attribute l to be 1, l >= N ask attribute l - N to be 0."""

    literals: tuple[int, ...]
    sign: int

    @property
    def order(self) -> int:
        """Number of literals."""
        return len(self.literals)

    def covers(self, A: ArrayLike) -> NDArray[np.bool_]:
        """Whether each row of the 0/1 matrix A satisfies all literals."""
        A = np.asarray(A)
        covered = np.ones(A.shape[0], dtype=bool)
        for l in self.literals:
            covered &= A[:, l] == 1 if l < A.shape[1] else A[:, l - A.shape[1]] == 0
        return covered


@dataclass(frozen=True)
class Pairs:
    """Pair rewards v >= 0: a monomial earns v[p] if it covers ``positive[p]`` and not ``negative[p]``.

    A monomial of sign -1 earns them for the opposite (covers the negative, not the positive) if ``symmetric``, and
    nothing otherwise.
    """

    positive: NDArray[np.intp]
    negative: NDArray[np.intp]
    value: NDArray[np.float64]
    symmetric: bool = True


@dataclass(frozen=True)
class Priced:
    """The best monomials found, a bound on every monomial's value, nodes, and whether the search was completed.

    Every monomial has value <= ``bound``. With ``is_exact`` it is the best value found, or the threshold if nothing
    beats it.
    """

    monomials: tuple[Monomial, ...]
    values: NDArray[np.float64]
    bound: float
    n_nodes: int
    is_exact: bool


class Attributes:
    """A 0/1 matrix with labels, prepared once for many pricing calls."""

    def __init__(self, A: ArrayLike, y: ArrayLike) -> None:
        A = np.asarray(A, dtype=np.uint8)
        self.y = np.where(np.asarray(y) > 0, 1, -1)
        self.n_attributes = A.shape[1]
        self.A = A
        # packed rows have the same order as the rows themselves
        _, self.representative, self.point = np.unique(
            np.packbits(A, axis=1), axis=0, return_index=True, return_inverse=True
        )
        self.point = self.point.ravel()
        self.n_points = self.representative.size
        self.chains = Chains(A[self.representative])
        self.sums = PairwiseSums(A[self.representative], self.chains)
        self._kept: tuple[Pairs | None, int, dict[int, NDArray | float]] = (None, -1, {1: 0.0, -1: 0.0})
        self._admitted: dict[bool, tuple[NDArray, NDArray]] = {}

    @cached_property
    def literals(self) -> NDArray[np.uint8]:
        """The attributes and their negations, (M, 2N)."""
        return np.ascontiguousarray(np.hstack([self.A, 1 - self.A]))

    @cached_property
    def opposite(self) -> NDArray[np.uint8]:
        """Which literals are each other's negations."""
        opposite = np.eye(2 * self.n_attributes, k=self.n_attributes, dtype=np.uint8)
        return opposite | opposite.T

    @cached_property
    def redundant(self) -> NDArray[np.uint8]:
        """Pairs of literals whose conjunction is one of them, or impossible by definition."""
        both = self.sums.over_points(np.ones(self.n_points), 2)
        count = np.diag(both)
        implied = (both == count) | (both == count[:, None])
        return np.ascontiguousarray(self.opposite | implied)

    def labelled(self, value: NDArray) -> Attributes:
        """The same observations with the signs of ``value`` for labels."""
        _ = self.redundant  # computed once for all of them
        other = copy.copy(self)
        other.y = np.where(value >= 0, 1, -1)
        return other

    def apart(self, pairs: Pairs) -> PairEnds:
        """The pairs of different points; a pair of equal points cancels its own reward."""
        first, second = self.point[pairs.positive], self.point[pairs.negative]
        apart = first != second
        return PairEnds(first[apart], second[apart], pairs.value[apart])

    def rewards(self, pairs: Pairs | None, order: int) -> dict[int, NDArray | float]:
        """What the pairs add to all values; kept until other pairs come, since programs price twice with the same."""
        if pairs is None:
            return {1: 0.0, -1: 0.0}
        if self._kept[0] is not pairs or self._kept[1] != order:
            self._kept = pairs, order, self.sums.rewards(self.apart(pairs), pairs.symmetric, order)
        return self._kept[2]

    def admitted(self, shortest: bool) -> tuple[NDArray, NDArray]:
        """Pairs of literals that may stand together, the shorter ones of equal conjunctions if ``shortest``."""
        if shortest not in self._admitted:
            conflict = self.redundant if shortest else self.opposite
            first, second = np.nonzero(np.triu(conflict == 0, 1))
            self._admitted[shortest] = first, second
        return self._admitted[shortest]

    def rows(self, sign: int, weight: NDArray, pairs: Pairs | None) -> tuple[NDArray, NDArray, int]:
        """Literal vectors, absolute values and number of gain rows of the reward (27) for one sign.

        With P the observations of class ``sign`` and N the others, P' and N' the covered ones,

            f = w(P') - w(N') + v(P', N - N') = sum_{P'} (w_i + v(i, N)) - w(N') - v(P', N'),

        so a pair is one more cost row, covered when both its ends are. Rows that are equal in all attributes are
        covered together or not at all, so their values are added: a pair of equal points cancels its own reward.
        """
        net = np.bincount(self.point, sign * self.y * weight, minlength=self.n_points)
        extra, cost = np.empty((0, self.literals.shape[1]), np.uint8), np.empty(0)
        if pairs is not None and (sign > 0 or pairs.symmetric) and pairs.value.size:
            ends = self.apart(pairs)
            net += np.bincount(ends.positive if sign > 0 else ends.negative, ends.value, minlength=self.n_points)
            first, second = (self.literals[self.representative[end]] for end in (ends.positive, ends.negative))
            extra, cost = first & second, ends.value
        tolerance = RELATIVE_TOLERANCE * max(float(np.abs(net).sum()), np.finfo(float).tiny)
        # largest first: sums that are stopped at a limit reach it sooner
        gains, costs = (np.argsort(-part, kind="stable")[: np.sum(part > tolerance)] for part in (net, -net))
        points = self.literals[self.representative[np.r_[gains, costs]]]
        literals = np.ascontiguousarray(np.vstack([points, extra[cost > tolerance]]))
        return literals, np.r_[np.abs(net[gains]), np.abs(net[costs]), cost[cost > tolerance]], gains.size


def price(
    data: Attributes,
    weight: ArrayLike,
    pairs: Pairs | None = None,
    *,
    max_order: int | None = None,
    order_cost: Sequence[float] | None = None,
    n_columns: int = 1,
    n_proved: int = 1,
    threshold: float = -math.inf,
    signs: Sequence[int] = (1, -1),
    max_nodes: int | None = None,
    time_limit: float = math.inf,
) -> Priced:
    """Maximise f(J, C) = max(f+, f-) - c(|J| + |C|), equation (27), over all monomials of order at most ``max_order``.

    Parameters
    ----------
    data : Attributes
        The 0/1 observations and their labels.
    weight : array-like of shape (M,)
        Non-negative w.
    pairs : Pairs, optional
        Pair rewards v.
    max_order : int, optional
        K; any order if None.
    order_cost : sequence of K + 1 floats, optional
        c(0), ..., c(K); zero if None.
    n_columns : int
        At most so many monomials, of different values within a sign, are returned.
    n_proved : int
        The first ``n_proved`` of them are proved to be the best; the others are good ones met on the way.
    threshold : float
        Only monomials of value above it are sought.
    signs : sequence of {1, -1}
        Which of f+ and f- are admitted.
    max_nodes, time_limit
        Limits; when they stop the search, ``bound`` covers what was not searched.
    """
    weight = np.asarray(weight, dtype=np.float64)
    if weight.size and weight.min() < 0:
        raise ValueError("Pricing needs non-negative weights.")
    order = data.n_attributes if max_order is None else min(max_order, data.n_attributes)
    costs = np.zeros(order + 1) if order_cost is None else np.asarray(order_cost, dtype=np.float64)[: order + 1]
    deadline = time.perf_counter() + time_limit
    bound, floor, nodes, exact = threshold, -math.inf, 0, True
    found: list[tuple[float, Monomial]] = []
    closes = order == data.n_attributes and n_proved == 1 and not np.ptp(costs)
    shortest = n_proved == 1 and not closes and bool((np.diff(costs) >= 0).all())
    tables: tuple[NDArray, NDArray] | None = None
    if order <= 2 and not closes and max_nodes is None:
        has_pairs = pairs is not None and pairs.value.size > 0
        if shortest and not has_pairs and data.chains.work(order) <= _CHAINS_WORK:
            return _best_of_chains(data, weight, costs, signs, threshold, n_columns)
        if _work(data, pairs, order) <= _ALL_PAIRS_WORK:
            return _value_all(data, weight, pairs, costs, signs, shortest, threshold, n_columns)
    for sign in signs:
        literals, value, n_gain = data.rows(sign, weight, pairs)
        conflict = data.redundant if shortest else data.opposite
        tree = _Tree(literals, value, n_gain, conflict, costs, closes and n_gain > 0, max(threshold, floor), n_columns)
        if tables is not None and pairs is None:
            tree.tables = tables[::-1]
        tree.search(n_proved, math.inf if max_nodes is None else max_nodes - nodes, deadline)
        nodes, tables = nodes + tree.n_nodes, tree.tables
        exact &= tree.is_exhausted
        bound = max(bound, tree.open_bound)
        found = sorted(found + tree.found(sign), key=lambda pair: (-pair[0], pair[1].order, pair[1]))[:n_columns]
        floor = found[n_proved - 1][0] if len(found) >= n_proved else -math.inf
    bound = max(bound, found[0][0]) if found else bound
    return Priced(tuple(m for _, m in found), np.array([f for f, _ in found]), bound, nodes, exact)


def _work(data: Attributes, pairs: Pairs | None, order: int) -> float:
    """Products of rows and conjunctions to be summed when all monomials are valued."""
    rows = data.n_points + (0 if pairs is None else 4 * pairs.value.size)
    return float(rows) * data.n_attributes ** max(order, 1)


def _value_all(
    data: Attributes,
    weight: NDArray,
    pairs: Pairs | None,
    costs: NDArray,
    signs: Sequence[int],
    shortest: bool,
    threshold: float,
    n_columns: int,
) -> Priced:
    """Value every monomial of order at most 2; of equal values within a sign the first, which is the shortest."""
    K = costs.size - 1
    net = np.bincount(data.point, data.y * weight, minlength=data.n_points).astype(np.float64)
    of_points = data.sums.over_points(net, max(K, 1)) if net.any() else 0.0
    rewards = data.rewards(pairs, max(K, 1))
    first, second = data.admitted(shortest) if K == 2 else (np.empty(0, np.intp),) * 2
    scale = float(np.abs(net).sum()) + (0.0 if pairs is None else float(pairs.value.sum()))
    tolerance = RELATIVE_TOLERANCE * max(scale, np.finfo(float).tiny)
    found: list[tuple[float, Monomial]] = []
    for sign in signs:
        table = np.zeros((2 * data.n_attributes,) * max(K, 1)) + sign * of_points + rewards[sign]
        single = table if K <= 1 else np.diag(table)
        # a literal and its negation do not cover a pair of points that differ in it: the empty conjunction does
        whole = sign * float(net.sum())
        values = [np.array([whole]), single, table[first, second] if K == 2 else single][: K + 1]
        worth = np.concatenate([value - costs[k] for k, value in enumerate(values)])
        better = np.flatnonzero(worth > threshold + tolerance)
        better = better[np.argsort(-worth[better], kind="stable")]
        apart = better[np.diff(worth[better], prepend=np.inf) < -tolerance][:n_columns]
        for k in apart.tolist():
            pair = k - 1 - single.size
            conjunction = () if k == 0 else (k - 1,) if pair < 0 else (int(first[pair]), int(second[pair]))
            found.append((float(worth[k]), Monomial(conjunction, sign)))
    found = sorted(found, key=lambda item: (-item[0], item[1].order, item[1]))[:n_columns]
    bound = max(threshold, found[0][0]) if found else threshold
    return Priced(tuple(m for _, m in found), np.array([f for f, _ in found]), bound, len(signs), True)


def price_greedily(
    data: Attributes,
    weight: NDArray,
    max_order: int,
    order_cost: Sequence[float] | None,
    n_columns: int,
    threshold: float,
    signs: Sequence[int] = (1, -1),
) -> Priced:
    """Find good monomials of any order quickly and without a proof (the bound is inf unless two literals are enough).

    The best conjunctions of two literals are lengthened, each by the literal that helps it most, as often as allowed.
    """
    order = min(max_order, data.n_attributes)
    costs = np.zeros(order + 1) if order_cost is None else np.asarray(order_cost, dtype=np.float64)[: order + 1]
    short = _best_of_chains(data, weight, costs[:3], signs, -math.inf, _BEAM)
    points = data.A[data.representative]
    net = np.bincount(data.point, data.y * weight, minlength=data.n_points).astype(np.float64)
    found = dict(zip(short.monomials, short.values.tolist()))
    for monomial in short.monomials if order > 2 else ():
        while monomial.order < order:
            value, which = data.chains.best(net * monomial.covers(points), None, monomial.sign)
            literal = int(which[np.argmax(value), 0])
            if literal in monomial.literals:
                break
            monomial = Monomial(tuple(sorted((*monomial.literals, literal))), monomial.sign)
            found[monomial] = float(value.max()) - costs[monomial.order]
    best = sorted(found.items(), key=lambda item: (-item[1], item[0].order, item[0]))[:n_columns]
    best = [item for item in best if item[1] > threshold]
    return Priced(tuple(m for m, _ in best), np.array([v for _, v in best]), math.inf, len(found), False)


def _best_of_chains(
    data: Attributes, weight: NDArray, costs: NDArray, signs: Sequence[int], threshold: float, n_columns: int
) -> Priced:
    """Value every monomial of order at most 2 without pair rewards; offer the best of different (pairs of) chains.

    Rules about different features serve a program better than the best cut point with its neighbours.
    """
    net = np.bincount(data.point, data.y * weight, minlength=data.n_points).astype(np.float64)
    tolerance = RELATIVE_TOLERANCE * max(float(np.abs(net).sum()), np.finfo(float).tiny)
    found: list[tuple[float, Monomial]] = []
    for sign in signs:
        worth, literals = [np.array([sign * float(net.sum()) - costs[0]])], [np.full((1, 2), -1, np.int32)]
        for order in range(1, costs.size):
            value, which = data.chains.best(net, data.redundant if order == 2 else None, sign)
            worth.append(value - costs[order])
            literals.append(which)
        values, conjunctions = np.concatenate(worth), np.vstack(literals)
        better = np.flatnonzero(values > threshold + tolerance)
        better = better[np.argsort(-values[better], kind="stable")]
        apart = better[np.diff(values[better], prepend=np.inf) < -tolerance][:n_columns]
        for k in apart.tolist():
            found.append((float(values[k]), Monomial(tuple(sorted(int(l) for l in conjunctions[k] if l >= 0)), sign)))
    found = sorted(found, key=lambda item: (-item[0], item[1].order, item[1]))[:n_columns]
    bound = max(threshold, found[0][0]) if found else threshold
    return Priced(tuple(m for _, m in found), np.array([f for f, _ in found]), bound, len(signs), True)


class _Tree:
    """The search tree for one sign, kept in arrays so that it can be continued."""

    def __init__(
        self,
        literals: NDArray,
        value: NDArray,
        n_gain: int,
        conflict: NDArray,
        costs: NDArray,
        closes: bool,
        threshold: float,
        n_columns: int,
    ) -> None:
        n_rows, n_literals = literals.shape
        K = costs.size - 1
        # a closed node loses a gain row with every literal
        depth = min(K, n_gain if closes else K) + 2
        self.literals, self.value, self.conflict = literals, value, conflict
        self.columns = np.ascontiguousarray(literals.T)
        self.tables: tuple[NDArray, NDArray] | None = None
        self.costs, self.closes = costs, closes
        self.later = np.append(np.minimum.accumulate(costs[::-1])[::-1], np.inf)
        # when closing, a conjunction without gain rows is worth at most -c and never the best
        self.threshold = max(threshold, -float(costs[0])) if closes else threshold
        self.tolerance = RELATIVE_TOLERANCE * max(float(value.sum()), np.finfo(float).tiny)
        self.rows = np.empty((depth, n_rows), np.int32)
        self.rows[0] = np.arange(n_rows)
        self.counts = np.zeros((depth, 2), np.int64)
        self.counts[0] = n_gain, n_rows - n_gain
        self.cand = np.empty((depth, n_literals), np.int32)
        self.cand_bound = np.empty((depth, n_literals))
        self.cursor = np.zeros((depth, 2), np.int64)
        self.chosen = np.empty(depth, np.int32)
        self.inside = np.zeros((depth if closes else 1, n_literals), np.uint8)
        self.allowed = np.arange(n_literals, dtype=np.int32)
        self.state = np.zeros(5, np.int64)
        self.state[incumbents.N_ALLOWED] = n_literals
        self.state[incumbents.IS_FRESH] = 1
        self.is_exhausted = False
        self.n_gain = n_gain
        self.pool_value = np.full(n_columns, -np.inf)
        self.pool_size = np.zeros(n_columns, np.int64)
        self.pool_literals = np.zeros((n_columns, n_literals), np.int32)

    @property
    def n_nodes(self) -> int:
        return int(self.state[incumbents.NODES])

    @property
    def open_bound(self) -> float:
        """Largest bound of a child not yet visited."""
        if self.is_exhausted:
            return -math.inf
        depth = int(self.state[incumbents.DEPTH])
        return max(
            (float(self.cand_bound[d, t:n].max()) for d in range(depth + 1) for n, t in [self.cursor[d]] if t < n),
            default=-math.inf,
        )

    def search(self, n_proved: int, max_nodes: float, deadline: float) -> None:
        """Dive for incumbents, then search until the tree is exhausted or a limit is reached."""
        pool = (self.pool_value, self.pool_size, self.pool_literals, self.state)
        limits = (self.threshold, self.tolerance)
        data = (self.literals, self.columns, self.value)
        incumbents.dive(*data, self.n_gain, self.costs, _DIVES, *limits, self.rows, *pool)
        self.rows[0] = np.arange(self.value.size)
        chunk = int(max(1, min(_FIRST_CHUNK, _FIRST_WORK / max(1, self.literals.size))))
        while not self.is_exhausted:
            start = time.perf_counter()
            budget = int(max(1, min(chunk, max_nodes - self.n_nodes)))
            pair_gain, pair_cost = self.tables or _NO_TABLES
            self.is_exhausted = kernel.advance(
                *data, self.conflict, pair_gain, pair_cost, self.costs, self.later, self.closes,
                n_proved, *limits, budget, self.rows, self.counts, self.cand, self.cand_bound, self.cursor,
                self.chosen, self.inside, self.allowed, *pool,
            )  # fmt: skip
            now = time.perf_counter()
            if now >= deadline or self.n_nodes >= max_nodes:
                break
            if now - start < _CHUNK_SECONDS:
                chunk *= 2
            if (
                self.tables is None
                and self.costs.size > 2
                and not self.closes
                and self.conflict.size <= _LARGEST_TABLE**2
            ):
                self.tables = self._pair_sums(slice(self.n_gain)), self._pair_sums(slice(self.n_gain, None))

    def _pair_sums(self, part: slice) -> NDArray:
        """Summed values of these rows for all pairs of literals."""
        literals, value = self.literals[part], self.value[part]
        N = literals.shape[1] // 2
        # a point satisfies one literal of each attribute, a pair of points may satisfy none
        has_pairs = int(np.count_nonzero(literals)) < value.size * N
        width = 2 * N if has_pairs else N
        sums = np.zeros((width, width))
        for start in range(0, value.size, _BLOCK):
            block = literals[start : start + _BLOCK, :width].astype(np.float64)
            sums += (block * value[start : start + _BLOCK, None]).T @ block
        if has_pairs:
            return sums
        apart = np.diag(sums)[:, None] - sums
        return np.block([[sums, apart], [apart.T, value.sum() - np.diag(sums) - apart]])

    def found(self, sign: int) -> list[tuple[float, Monomial]]:
        """Values and monomials of the pool."""
        out = []
        for p in range(self.state[incumbents.N_POOL]):
            conjunction = self.pool_literals[p, : self.pool_size[p]]
            conjunction = _shortened(self.literals, conjunction) if self.closes else conjunction
            out.append((float(self.pool_value[p]), Monomial(tuple(sorted(int(l) for l in conjunction)), sign)))
        return out


def _shortened(literals: NDArray, conjunction: NDArray) -> NDArray:
    """Greedily pick few of the conjunction's literals that cover the same rows."""
    fails = literals[:, conjunction] == 0
    todo = fails.any(axis=1)
    picked = []
    while todo.any():
        best = int(np.argmax(fails[todo].sum(axis=0)))
        picked.append(conjunction[best])
        todo &= ~fails[:, best]
    return np.array(picked, dtype=np.int32)
