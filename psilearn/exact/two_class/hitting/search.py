"""Implicit hitting sets: a second exact search, strong where leaving samples out is what costs most.

A solution leaves some samples out (z_i = 1, pays cap cost_i) and solves a convex problem on the others, whose value
conv(K) grows with the kept set K. Let UB be the incumbent value and LB a bound on what the samples left out cost. Every
better solution has conv(K) < UB - LB, so a set S with conv(S) >= UB - LB is a conflict: one of its samples is left out,

    sum_{i in S} z_i >= 1.

The master problem min sum_i cap cost_i z_i over all conflicts gives LB. It is solved by branch and cut: the best open
node, some z_i fixed at 0 (kept) or 1 (out), has its linear relaxation solved by HiGHS, gets the conflicts that its
solution violates, and is split. Conflicts stay valid everywhere, because UB falls and LB rises. An integral solution
that violates none is an incumbent. For the hard margin these are the combinatorial Benders cuts of Santana, Serrano,
Schiffer and Vidal (2022), with the penalty counted in. Conflicts are proved by dual feasible points, and so are the
bounds of nodes: for any multipliers p >= 0 of the conflicts and prices c,

    LB >= sum_S p_S + sum_i min over the allowed z_i of (c_i - sum_{S holds i} p_S) z_i.
"""

from __future__ import annotations

import heapq
import math

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ....core.solving import Clock, Options
from ....engines.highs import HighsSession
from ..node.envelope_jit import FREE, GONE, IN
from ..tree import tree_jit as tree
from ..tree.search import InconsistentBoundError
from .conflicts import VIOLATED, Conflicts

Array = NDArray[np.float64]
Fates = NDArray[np.int8]

KEPT, OUT, UNDECIDED = 0, 1, 2
#: Tries to find conflicts of a fractional solution: in the tree, at first at the root, and at most.
_TRIES, _FIRST_TRIES, _MOST_TRIES = 3, 6, 48
#: Rounds of conflicts in a node of the tree, and the least rise of its bound (in prices) that makes another one pay.
_ROUNDS, _RISE = 4, 0.01
#: Variables tried before branching, branchings on one that make it known, and simplex iterations of a try.
_TRIED, _KNOWN, _TRIAL = 8, 4, 50
#: Relaxations for which a row may be slack before it leaves the programme, and rows that do not make that worth while.
_IDLE, _FEW = 30, 300
_INTEGRAL, _ROUNDED, _NO_LIMIT = 1e-6, 1e-12, 2**31 - 1
#: Part of the tolerance that is used; the rest is for incumbents that are better by less than that.
_TOLERATED = 0.9


class HittingSearch:
    """The search by implicit hitting sets, to be run in slices of time."""

    def __init__(self, model: tree.Model, best: tree.Best, scratch: tree.Work, options: Options) -> None:
        self.best, self.options, self.model = best, options, model
        self.conflicts = Conflicts(model, best, scratch, options.random_state)
        self.price = model.cap * model.cost
        self.unit = float(self.price.min())
        self.cost = self.price / self.unit
        self.is_whole = bool(np.allclose(self.cost, 1.0, rtol=1e-12))
        self.master = Master(self.cost)
        fates = np.where(model.given == FREE, UNDECIDED, KEPT).astype(np.int8)
        self.open: list[tuple[float, int, Fates]] = [(0.0, 0, fates)]  # bound in prices, number, fates
        self.gains, self.counts = np.zeros((2, self.price.size)), np.zeros((2, self.price.size))
        self.bound, self.steps = 0.0, 0
        self.goal, self.least = math.inf, math.inf  # the least solution where everything is decided

    @property
    def is_done(self) -> bool:
        """Whether the incumbent is proved to the tolerance asked for."""
        return self.bound >= self.goal

    def _set_goal(self) -> None:
        """Look for solutions below the incumbent value, less the tolerance and an allowance for rounding, from now on.

        Where leaving out is dear, the tolerance is on what else the incumbent costs.
        """
        value = float(self.best.value[0])
        out = self.best.u < self.model.t - tree.FEASIBLE
        rest = max(0.0, value - float(self.price[out].sum()))
        self.goal = min(self.goal, value - _TOLERATED * self.options.gap_tol * rest - tree.ROUNDING * value)

    @property
    def cutoff(self) -> float:
        """Penalty that no solution better than the goal has."""
        return self.goal - self.bound

    def run(self, clock: Clock, until: float, max_steps: float) -> None:
        """Search until done, or until the clock shows ``until`` seconds, or ``max_steps`` nodes are spent."""
        inner = Clock(until)
        inner.start = clock.start
        self._set_goal()
        while not self.is_done and not inner.is_over and self.steps < max_steps:
            self.steps += 1
            value, _, fates = heapq.heappop(self.open)
            value, z = self._solve(value, fates, inner)
            self._set_goal()
            if self._in_full(value) < self.goal:
                if z is None:
                    self._put(value, fates)
                elif np.any(fates == UNDECIDED):
                    self._branch(value, fates, z)
                else:
                    self.least = min(self.least, self._in_full(value) + self._penalty(fates))
            top = self._in_full(self.open[0][0]) if self.open else math.inf
            self.bound = max(self.bound, min(top, self.least, self.goal))
            if self.best.value[0] < self.bound * (1.0 - 1e-9):
                raise InconsistentBoundError("an incumbent is below a bound that was proved before")

    def _in_full(self, value: float) -> float:
        """Bound that a value of the master proves."""
        if math.isinf(value):
            return value
        return self.unit * (math.ceil(value - _INTEGRAL) if self.is_whole else value * (1.0 - _ROUNDED))

    def _penalty(self, fates: Fates) -> float:
        """Bound on the penalty of those who keep just these."""
        state = np.where(fates == OUT, GONE, IN).astype(np.int8)
        return self.conflicts.value(state, 2.0 * float(self.best.value[0]))

    def _put(self, value: float, fates: Fates) -> None:
        heapq.heappush(self.open, (value, self.steps + len(self.open), fates))

    def _solve(self, value: float, fates: Fates, clock: Clock) -> tuple[float, Array | None]:
        """Bound a node, adding conflicts; also its fractional solution, None if it can't be split for want of time."""
        is_root, rounds = self.steps == 1, 0
        tries = _FIRST_TRIES if is_root else _TRIES
        while not clock.is_over:
            rounds += 1
            if self.master.is_impossible(fates):
                return math.inf, None
            before = value
            bound, z = self.master.solve(fates, clock.left)
            value = max(value, bound)
            if z is None or self._in_full(value) >= self.goal:
                return value, z
            if self.master.recall(z) or self._separate(z, tries, clock):
                if is_root or rounds < _ROUNDS or value > before + _RISE:
                    continue
            elif is_root and self.conflicts.are_weighed and tries < _MOST_TRIES:
                tries *= 2
                continue
            return value, z
        return value, None

    def _separate(self, z: Array, tries: int, clock: Clock) -> bool:
        """Add conflicts that z violates; whether there are any."""
        found = self.conflicts.violated(z, self.cutoff, tries, clock)
        if not found and np.all(np.minimum(z, 1.0 - z) < _INTEGRAL):
            found = self.conflicts.disjoint(z > 0.5, self.cutoff, clock)
        self.master.add(found)
        return bool(found)

    def _branch(self, value: float, fates: Fates, z: Array) -> None:
        """Split a node at the variable that promises the largest rise of both bounds."""
        free = np.flatnonzero(fates == UNDECIDED)
        inside = np.minimum(z[free], 1.0 - z[free])
        if not np.any(inside > _INTEGRAL):  # kept samples of an incumbent that rounding keeps from being a conflict
            inside = self.conflicts.work.alpha[free] + np.finfo(float).tiny
        seen = self.counts.sum()
        mean = self.gains.sum() / seen if seen else 1.0
        gain = np.where(self.counts > 0, self.gains / np.maximum(self.counts, 1), mean)[:, free]
        score = np.maximum(gain[KEPT] * z[free], 1e-6) * np.maximum(gain[OUT] * (1.0 - z[free]), 1e-6)
        order = np.argsort(np.where(inside > _INTEGRAL, -score, math.inf), kind="stable")[:_TRIED]
        best, most = (int(free[order[0]]), (value, value)), -1.0
        for k in order:
            j = int(free[k])
            if inside[k] <= _INTEGRAL:
                break
            rises = gain[KEPT][k] * z[j], gain[OUT][k] * (1.0 - z[j])
            bounds = value, value
            if self.counts[:, j].min() < _KNOWN:
                bounds = self._try(value, fates, z, j)
                rises = bounds[KEPT] - value, bounds[OUT] - value
            quality = max(rises[0], 1e-6) * max(rises[1], 1e-6)
            if quality > most:
                best, most = (j, bounds), quality
        j, bounds = best
        for fate in (KEPT, OUT):
            child = fates.copy()
            child[j] = fate
            self._put(max(value, bounds[fate]), child)

    def _try(self, value: float, fates: Fates, z: Array, j: int) -> tuple[float, float]:
        """Bounds of both children for one variable, by a few simplex iterations."""
        bounds = []
        for fate, way in ((KEPT, z[j]), (OUT, 1.0 - z[j])):
            fates[j] = fate
            bound = math.inf if self.master.is_impossible(fates) else self.master.solve(fates, math.inf, _TRIAL)[0]
            bounds.append(max(bound, value))
            if math.isfinite(bound):
                self.gains[fate, j] += (bounds[-1] - value) / max(way, _INTEGRAL)
                self.counts[fate, j] += 1
        fates[j] = UNDECIDED
        return bounds[KEPT], bounds[OUT]


class Master:
    """The linear relaxation of the covering problem, with those of the known conflicts that matter."""

    def __init__(self, cost: Array) -> None:
        self.cost, self.session = cost, HighsSession()
        self.session.add_columns(cost, 0.0, 1.0)
        self.fates = np.full(cost.size, UNDECIDED, np.int8)
        self.known = sp.csr_matrix((0, cost.size))
        self.rows = np.zeros(0, np.intp)  # which of the known are rows of the programme, in its order
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
        which = np.flatnonzero(cover < 1.0 - VIOLATED)
        self._take(which)
        return bool(which.size)

    def is_impossible(self, fates: Fates) -> bool:
        """Whether some conflict is kept altogether."""
        return bool(np.any(self.known @ (fates != KEPT).astype(np.float64) == 0.0))

    def solve(self, fates: Fates, seconds: float, iterations: int | None = None) -> tuple[float, Array | None]:
        """Proved lower bound, and the solution if it was reached in time and not only tried for."""
        changed = np.flatnonzero(fates != self.fates)
        if changed.size:
            now = fates[changed]
            self.session.change_column_bounds(changed, np.where(now == OUT, 1.0, 0.0), np.where(now == KEPT, 0.0, 1.0))
            self.fates[:] = fates
        self.session.set(simplex_iteration_limit=_NO_LIMIT if iterations is None else iterations)
        answer = self.session.solve(max(seconds, 0.01))
        bound = self._dual_bound(answer.row_dual)
        if not answer.is_optimal or iterations is not None:
            return bound, None
        self._age(answer.x)
        return bound, np.clip(answer.x, 0.0, 1.0)

    def _dual_bound(self, dual: Array) -> float:
        """Bound from the multipliers of the rows, whatever they are."""
        spread = np.zeros(self.known.shape[0])
        if dual.size == self.rows.size:
            spread[self.rows] = np.maximum(dual, 0.0)
        reduced = self.cost - spread @ self.known
        least = np.where(self.fates == OUT, reduced, np.where(self.fates == KEPT, 0.0, np.minimum(reduced, 0.0)))
        return float(spread.sum() + least.sum())

    def _age(self, z: Array) -> None:
        """Drop rows that have been slack for long."""
        slack = (self.known @ z)[self.rows] > 1.0 + VIOLATED
        self.idle = np.where(slack, self.idle + 1, 0)
        gone = self.idle > _IDLE
        if np.count_nonzero(gone) > _FEW:
            self.session.delete_rows(np.flatnonzero(gone))
            self.rows, self.idle = self.rows[~gone], self.idle[~gone]
