"""The linear relaxation of the covering problem of :mod:`.search`, solved by HiGHS, with bounds of our own.

For any multipliers p >= 0 of the conflicts S and prices c, every z that a node allows pays at least

    sum_S p_S + sum_i min over the allowed z_i of (c_i - sum_{S holds i} p_S) z_i,

so bounds are recomputed from the engine's multipliers, whatever they are, and its tolerances prove nothing.
"""

from __future__ import annotations

import math

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ....engines.highs import HighsSession
from ...sample_state_jit import FREE, GONE, IN
from .constants import CONSTANTS

Array = NDArray[np.float64]
Fates = NDArray[np.int8]

#: HiGHS takes this for no limit on simplex iterations.
_NO_LIMIT = 2**31 - 1


class Master:
    """The relaxation, with those of the known conflicts that matter; fates are FREE, IN (z = 0) or GONE (z = 1)."""

    def __init__(self, cost: Array) -> None:
        self.cost, self.session = cost, HighsSession()
        self.session.add_columns(cost, 0.0, 1.0)
        self.fates = np.full(cost.size, FREE, np.int8)
        self.known = sp.csr_matrix((0, cost.size))
        self.rows = np.zeros(0, np.intp)  # which of the known are rows of the program, in its order
        self.idle = np.zeros(0, np.intp)

    def add(self, conflicts: list[NDArray[np.intp]]) -> None:
        """Add conflicts as rows."""
        if not conflicts:
            return
        ends = np.cumsum([0, *(conflict.size for conflict in conflicts)])
        entries = np.ones(ends[-1]), np.concatenate(conflicts), ends
        first = self.known.shape[0]
        self.known = sp.vstack([self.known, sp.csr_matrix(entries, shape=(len(conflicts), self.cost.size))], "csr")
        self._take(np.arange(first, self.known.shape[0]))

    def _take(self, which: NDArray[np.intp]) -> None:
        if which.size:
            self.session.add_rows(self.known[which], 1.0, math.inf)
            self.rows = np.concatenate([self.rows, which])
            self.idle = np.concatenate([self.idle, np.zeros(which.size, np.intp)])

    def recall(self, z: Array) -> bool:
        """Take known conflicts that z violates back; whether there are any."""
        cover = self.known @ z
        cover[self.rows] = 1.0
        which = np.flatnonzero(cover < 1.0 - CONSTANTS.violated)
        self._take(which)
        return bool(which.size)

    def is_impossible(self, fates: Fates) -> bool:
        """Whether some conflict is kept altogether."""
        return bool(np.any(self.known @ (fates != IN).astype(np.float64) == 0.0))

    def solve(self, fates: Fates, seconds: float, iterations: int | None = None) -> tuple[float, Array | None]:
        """Proved lower bound, and the solution if it was reached in time and not only tried for."""
        changed = np.flatnonzero(fates != self.fates)
        if changed.size:
            now = fates[changed]
            self.session.change_column_bounds(changed, np.where(now == GONE, 1.0, 0.0), np.where(now == IN, 0.0, 1.0))
            self.fates[:] = fates
        self.session.set(simplex_iteration_limit=_NO_LIMIT if iterations is None else iterations)
        answer = self.session.solve(max(seconds, 0.01))
        bound = self.dual_bound(answer.row_dual)
        if not answer.is_optimal or iterations is not None:
            return bound, None
        self._age(answer.x)
        return bound, np.clip(answer.x, 0.0, 1.0)

    def dual_bound(self, dual: Array) -> float:
        """Bound from the multipliers of the rows, whatever they are."""
        spread = np.zeros(self.known.shape[0])
        if dual.size == self.rows.size:
            spread[self.rows] = np.maximum(dual, 0.0)
        reduced = self.cost - spread @ self.known
        least = np.where(self.fates == GONE, reduced, np.where(self.fates == IN, 0.0, np.minimum(reduced, 0.0)))
        return float(spread.sum() + least.sum())

    def _age(self, z: Array) -> None:
        """Drop rows that have been slack for long."""
        slack = (self.known @ z)[self.rows] > 1.0 + CONSTANTS.violated
        self.idle = np.where(slack, self.idle + 1, 0)
        idle = self.idle > CONSTANTS.idle
        if np.count_nonzero(idle) > CONSTANTS.few_rows:
            self.session.delete_rows(np.flatnonzero(idle))
            self.rows, self.idle = self.rows[~idle], self.idle[~idle]
