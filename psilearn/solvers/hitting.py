"""Implicit hitting sets: a second exact search, strong where leaving samples out is what costs most.

A solution leaves some samples out (z_i = 1, pays cap cost_i) and solves a convex problem on the others, whose value
conv(K) grows with the kept set K. Let UB be the incumbent value and LB a bound on what the samples left out cost. Every
better solution has conv(K) < UB - LB, so a set S with conv(S) >= UB - LB is a conflict: one of its samples is left out,

    sum_{i in S} z_i >= 1.

The master problem min sum_i cap cost_i z_i over all known conflicts is solved by HiGHS and gives LB; keeping
everything it leaves in gives a better incumbent or new conflicts, made minimal by deletion. Conflicts stay valid,
because UB falls and LB rises. For the hard margin these are the combinatorial Benders cuts of Santana, Serrano,
Schiffer and Vidal (2022), with the penalty counted in. Conflicts are proved by dual feasible points; the master's
bound is attested by HiGHS.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ..kernels import tree
from ..kernels.pieces import FREE, GONE, IN
from ..programs.highs import Answer, HighsSession
from .base import Clock, Options
from .branch import make_work

Array = NDArray[np.float64]

#: Roundings of a fractional master solution that are searched for conflicts.
_LEVELS = (0.999, 0.5, 0.1)


class _Conflicts:
    """Finds conflicts of the convex problem."""

    def __init__(self, model: tree.Model, best: tree.Best, scratch: tree.Work) -> None:
        self.model, self.best, self.scratch = model, best, scratch
        self.work = make_work(model)

    def value(self, state: NDArray[np.int8], cutoff: float) -> float:
        """Dual bound on conv of the samples that are IN, at least the cutoff if it reaches it."""
        model, work = self.model, self.work
        work.state[:] = np.where(model.given == FREE, state, model.given)
        left_out = model.cap * float(model.cost[work.state == GONE].sum())
        value, _ = tree.solve_node(model, work, cutoff + left_out)
        return value - left_out

    def support(self) -> NDArray[np.intp]:
        """Samples that prove the last value."""
        return np.flatnonzero((self.work.alpha > 0.0) & (self.work.state == IN) & (self.model.given == FREE))

    def minimal(self, members: NDArray[np.intp], cutoff: float, clock: Clock) -> NDArray[np.intp]:
        """Delete members, those with small multipliers first, while the rest is still a conflict."""
        order = members[np.argsort(self.work.alpha[members], kind="stable")]
        current = list(order)
        for i in order:
            if i not in current:
                continue
            if clock.is_over:
                break
            state = np.full(self.model.y.size, GONE, np.int8)
            rest = [j for j in current if j != i]
            state[rest] = IN
            if rest and self.value(state, cutoff) >= cutoff:
                smaller = self.support()
                current = list(smaller) if smaller.size else rest
        return np.array(sorted(current), dtype=np.intp)

    def disjoint(self, out: NDArray[np.bool_], cutoff: float, clock: Clock) -> list[NDArray[np.intp]]:
        """Disjoint minimal conflicts among the samples not left out, until the rest is none."""
        found: list[NDArray[np.intp]] = []
        state = np.where(out, GONE, IN).astype(np.int8)
        while not clock.is_over:
            value = self.value(state, cutoff)
            work = self.work
            if value < cutoff:
                self.scratch.alpha[:] = work.alpha
                tree.local_search(self.model, self.best, self.scratch, work.u)
                break
            members = self.support()
            if members.size == 0:
                break
            conflict = self.minimal(members, cutoff, clock)
            found.append(conflict)
            state[conflict] = GONE
        return found


class HittingSearch:
    """The search by implicit hitting sets, to be run in slices of time."""

    def __init__(self, model: tree.Model, best: tree.Best, scratch: tree.Work, options: Options) -> None:
        self.model, self.best, self.options = model, best, options
        self.conflicts = _Conflicts(model, best, scratch)
        self.price = model.cap * model.cost
        self.unit = float(self.price.min())
        self.integral = bool(np.allclose(self.price, self.unit, rtol=1e-12))
        self.master = HighsSession(mip_rel_gap=0.0)
        self.master.add_columns(self.price / self.unit, 0.0, 1.0, integer=True)
        self.bound, self.steps, self.relaxed = 0.0, 0, True

    @property
    def target(self) -> float:
        """Bound at which the incumbent is proved."""
        value = float(self.best.value[0])
        out = self.best.u < self.model.t - tree.FEASIBLE
        rest = max(0.0, value - float(self.price[out].sum()))
        return value - self.options.gap_tol * min(value, rest) - tree.ROUNDING * value

    @property
    def is_done(self) -> bool:
        """Whether the bound has reached the incumbent."""
        return self.bound >= self.target

    def run(self, clock: Clock, until: float, max_steps: float) -> None:
        """Search until done, or until the clock shows ``until`` seconds, or ``max_steps`` rounds are spent."""
        inner = Clock(until)
        inner.start = clock.start
        while not self.is_done and not inner.is_over and self.steps < max_steps:
            self.steps += 1
            self.master.set(solve_relaxation=self.relaxed)
            answer = self.master.solve(max(0.5 * inner.left, 0.01))  # the engine checks its clock rarely
            self._raise_bound(answer)
            if answer.x.size and np.isfinite(answer.value) and not self.is_done:
                self._add_conflicts(answer.x, inner)

    def _raise_bound(self, answer: Answer) -> None:
        if self.relaxed and not answer.is_optimal:
            return
        value = answer.value if self.relaxed else answer.bound
        value = math.ceil(value - 1e-6) if self.integral else value * (1.0 - 1e-9)
        self.bound = max(self.bound, self.unit * max(value, 0.0))

    def _add_conflicts(self, z: Array, clock: Clock) -> None:
        """Add violated conflicts of a master solution; whether there are any decides how the master is solved next."""
        found = []
        for level in _LEVELS if self.relaxed else (0.5,):
            cutoff = float(self.best.value[0]) * (1.0 - tree.ROUNDING) - self.bound
            if cutoff > 0.0:
                found += self.conflicts.disjoint(z > level, cutoff, clock)
        violated = [conflict for conflict in found if z[conflict].sum() < 1.0 - 1e-6]
        if violated:
            rows = np.zeros((len(violated), z.size))
            for row, conflict in zip(rows, violated):
                row[conflict] = 1.0
            self.master.add_rows(rows, 1.0, math.inf)
        self.relaxed = bool(violated) and (self.relaxed or self.steps % 8 != 0)
