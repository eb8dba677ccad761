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
from numpy.typing import NDArray

from ....core.result import InconsistentBoundError
from ....core.solving import Clock, Options
from ....engines.highs import ProgramError
from ...envelope_jit import FEASIBLE
from ...sample_state_jit import FREE, GONE, IN, SampleState
from ...search import Budget
from ..incumbent_jit import ROUNDING, Best
from ..node.node_jit import Model, NodeWorkspace
from .conflicts import Conflicts
from .constants import CONSTANTS
from .master import Fates, Master

Array = NDArray[np.float64]


class HittingSearch:
    """The search by implicit hitting sets. Work is counted in nodes of the master problem."""

    is_outdated = False

    def __init__(self, model: Model, best: Best, scratch: NodeWorkspace, options: Options) -> None:
        self.best, self.options, self.model = best, options, model
        self.is_stuck = False
        self.conflicts = Conflicts(model, best, scratch, options.random_state)
        self.price = model.cap * model.cost
        self.unit = float(self.price.min())
        self.cost = self.price / self.unit
        self.is_whole = bool(np.allclose(self.cost, 1.0, rtol=1e-12))
        self.master = Master(self.cost)
        fates = np.where(model.given == FREE, FREE, IN).astype(np.int8)
        self.open: list[tuple[float, int, Fates]] = [(0.0, 0, fates)]  # bound in prices, number, fates
        self.history = {fate: (np.zeros(self.price.size), np.zeros(self.price.size)) for fate in (IN, GONE)}
        self.bound, self.work = 0.0, 0
        self.goal, self.least = math.inf, math.inf  # the least solution where everything is decided

    @property
    def done(self) -> bool:
        """Whether the incumbent is proved to the tolerance asked for."""
        return self.bound >= self.goal

    def _set_goal(self) -> None:
        """Look for solutions below the incumbent value, less the tolerance and an allowance for rounding, from now on.

        Where leaving out is expensive, the tolerance is on what else the incumbent costs.
        """
        value = float(self.best.value[0])
        out = self.best.u < self.model.t - FEASIBLE
        rest = max(0.0, value - float(self.price[out].sum()))
        self.goal = min(self.goal, value - CONSTANTS.used_tolerance * self.options.gap_tol * rest - ROUNDING * value)

    @property
    def cutoff(self) -> float:
        """Penalty that no solution better than the goal has."""
        return self.goal - self.bound

    def run(self, budget: Budget) -> None:
        """Search until done, or until the budget is spent."""
        clock, end = Clock(budget.until), self.work + budget.work
        clock.start = budget.clock.start
        self._set_goal()
        while not self.done and not clock.is_over and self.work < end:
            self.work += 1
            value, _, fates = heapq.heappop(self.open)
            try:
                self._process(value, fates, clock)
            except ProgramError:  # HiGHS fails: what was proved before stands, and the other searches go on
                self._put(value, fates)
                self.is_stuck = True
                return
            top = self._in_full(self.open[0][0]) if self.open else math.inf
            self.bound = max(self.bound, min(top, self.least, self.goal))
            if self.best.value[0] < self.bound * (1.0 - 1e-9):
                raise InconsistentBoundError("an incumbent is below a bound that was proved before")

    def _process(self, value: float, fates: Fates, clock: Clock) -> None:
        """Bound a node and split it, unless it is closed."""
        value, z = self._solve(value, fates, clock)
        self._set_goal()
        if self._in_full(value) >= self.goal:
            return
        if z is None:
            self._put(value, fates)
        elif np.any(fates == FREE):
            self._branch(value, fates, z)
        else:
            self.least = min(self.least, self._in_full(value) + self._penalty(fates))

    def _in_full(self, value: float) -> float:
        """Bound that a value of the master proves."""
        if math.isinf(value):
            return value
        return self.unit * (
            math.ceil(value - CONSTANTS.integral) if self.is_whole else value * (1.0 - CONSTANTS.rounding)
        )

    def _penalty(self, fates: Fates) -> float:
        """Bound on the penalty of solutions that keep just these."""
        return self.conflicts.value(fates, 2.0 * float(self.best.value[0]))

    def _put(self, value: float, fates: Fates) -> None:
        heapq.heappush(self.open, (value, self.work + len(self.open), fates))

    def _solve(self, value: float, fates: Fates, clock: Clock) -> tuple[float, Array | None]:
        """Bound a node, adding conflicts; also its fractional solution, None if it can't be split for want of time."""
        is_root, rounds = self.work == 1, 0
        tries = CONSTANTS.first_tries if is_root else CONSTANTS.tries
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
                if is_root or rounds < CONSTANTS.rounds or value > before + CONSTANTS.rise:
                    continue
            elif is_root and self.conflicts.are_weighed and tries < CONSTANTS.most_tries:
                tries *= 2
                continue
            return value, z
        return value, None

    def _separate(self, z: Array, tries: int, clock: Clock) -> bool:
        """Add conflicts that z violates; whether there are any."""
        found = self.conflicts.violated(z, self.cutoff, tries, clock)
        if not found and np.all(np.minimum(z, 1.0 - z) < CONSTANTS.integral):
            found = self.conflicts.disjoint(z > 0.5, self.cutoff, clock)
        self.master.add(found)
        return bool(found)

    def _branch(self, value: float, fates: Fates, z: Array) -> None:
        """Split a node at the variable that promises the largest rise of both bounds (reliability branching)."""
        free = np.flatnonzero(fates == FREE)
        inside = np.minimum(z[free], 1.0 - z[free])
        if not np.any(inside > CONSTANTS.integral):  # an incumbent's samples that rounding keeps from being a conflict
            inside = self.conflicts.node.alpha[free] + np.finfo(float).tiny
        away = {IN: z, GONE: 1.0 - z}  # how far the variable moves
        rises = {fate: self._mean_gain(fate)[free] * away[fate][free] for fate in (IN, GONE)}
        score = np.maximum(rises[IN], 1e-6) * np.maximum(rises[GONE], 1e-6)
        order = np.argsort(np.where(inside > CONSTANTS.integral, -score, math.inf), kind="stable")
        chosen, bounds, most = int(free[order[0]]), (value, value), -1.0
        for k in order[: CONSTANTS.trial_variables]:
            if inside[k] <= CONSTANTS.integral:
                break
            j, tried = int(free[k]), (value, value)
            promise = rises[IN][k], rises[GONE][k]
            if min(counts[j] for _, counts in self.history.values()) < CONSTANTS.known_after:
                tried = self._try(value, fates, away, j)
                promise = tried[0] - value, tried[1] - value
            quality = max(promise[0], 1e-6) * max(promise[1], 1e-6)
            if quality > most:
                chosen, bounds, most = j, tried, quality
        for fate, bound in zip((IN, GONE), bounds):
            child = fates.copy()
            child[chosen] = fate
            self._put(max(value, bound), child)

    def _mean_gain(self, fate: SampleState) -> Array:
        """Mean rise of the bound per unit that a variable moved, by trials; the mean of all where there was none."""
        gains, counts = self.history[fate]
        seen = sum(float(c.sum()) for _, c in self.history.values())
        mean = sum(float(g.sum()) for g, _ in self.history.values()) / seen if seen else 1.0
        return np.where(counts > 0, gains / np.maximum(counts, 1), mean)

    def _try(self, value: float, fates: Fates, away: dict[SampleState, Array], j: int) -> tuple[float, float]:
        """Bounds of both children for one variable, by a few simplex iterations."""
        bounds, child = [], fates.copy()
        for fate, (gains, counts) in self.history.items():
            child[j] = fate
            bound = math.inf
            if not self.master.is_impossible(child):
                bound = self.master.solve(child, math.inf, CONSTANTS.trial_iterations)[0]
            bounds.append(max(bound, value))
            if math.isfinite(bound):
                gains[j] += (bounds[-1] - value) / max(away[fate][j], CONSTANTS.integral)
                counts[j] += 1
        return bounds[0], bounds[1]
