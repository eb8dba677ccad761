"""The search tree over monomials of one sign: its arrays, its limits, and what it found."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ...core.clock import now
from . import incumbents_jit as incumbents
from . import search_jit as kernel
from .data import RELATIVE_TOLERANCE, Monomial

_DIVES = 32
_FIRST_CHUNK = 512
#: Work of the first nodes (rows times literals), after which a tree not yet exhausted gets the pairs' table; its size.
_FIRST_WORK = 1e8
_LARGEST_TABLE = 4096
_CHUNK_SECONDS = 0.05
_BLOCK = 2048
_NO_TABLES = (np.empty((0, 0)), np.empty((0, 0)))


class MonomialTree:
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
        """Nodes that were expanded."""
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
            start = now()
            budget = int(max(1, min(chunk, max_nodes - self.n_nodes)))
            pair_gain, pair_cost = self.tables or _NO_TABLES
            self.is_exhausted = kernel.advance(
                *data, self.conflict, pair_gain, pair_cost, self.costs, self.later, self.closes,
                n_proved, *limits, budget, self.rows, self.counts, self.cand, self.cand_bound, self.cursor,
                self.chosen, self.inside, self.allowed, *pool,
            )  # fmt: skip
            end = now()
            if end >= deadline or self.n_nodes >= max_nodes:
                break
            if end - start < _CHUNK_SECONDS:
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
