"""Implicit hitting sets: a second exact search, strong where leaving samples out is what costs most.

A solution leaves some samples out (z_i = 1, pays cap cost_i) and solves a convex problem on the others, whose value conv(K)
grows with the kept set K. Let UB be the incumbent value and LB a bound on what the samples left out cost. Every better
solution has conv(K) < UB - LB, so a set S with conv(S) >= UB - LB is a conflict: one of its samples is left out,

    sum_{i in S} z_i >= 1.

The master problem min sum_i cap cost_i z_i over all conflicts known is solved by HiGHS and gives LB; keeping everything it
leaves in gives a better incumbent or new conflicts, made minimal by deletion. Conflicts stay valid, because UB falls and LB
rises. For the hard margin these are the combinatorial Benders cuts of Santana, Serrano, Schiffer and Vidal (2022), with the
penalty counted in.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..kernels import tree
from ..kernels.pieces import FREE, GONE, IN
from ..losses import Loss
from ..programs.highs import HighsSession
from ..result import Status
from .base import Clock, Options
from .branch import Outcome, first_incumbent, make_model, make_work, polish
from .reduction import Reduction

Array = NDArray[np.float64]


class _Conflicts:
    """Finds conflicts of the convex problem."""

    def __init__(self, model: tree.Model, best: tree.Best) -> None:
        self.model, self.best = model, best
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

    def minimal(self, members: NDArray[np.intp], cutoff: float) -> NDArray[np.intp]:
        """Delete members while the rest is still a conflict."""
        order = members[np.argsort(self.work.alpha[members], kind="stable")]
        tried: set[int] = set()
        current = list(order)
        for i in order:
            if i not in current or i in tried:
                continue
            tried.add(int(i))
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
                tree.offer(self.model, self.best, work.w, work.b[0], work.u)
                break
            members = self.support()
            if members.size == 0:
                break
            conflict = self.minimal(members, cutoff)
            found.append(conflict)
            state[conflict] = GONE
        return found


def search(
    reduction: Reduction,
    loss: Loss,
    options: Options,
    clock: Clock,
    points: Sequence[tuple[Array, float]] = (),
    given: NDArray[np.int8] | None = None,
) -> Outcome:
    """Solve by implicit hitting sets; the same arguments and promises as :func:`.branch.search`."""
    model = make_model(reduction, loss, given)
    best, scratch = first_incumbent(model, points)
    n = model.y.size
    conflicts = _Conflicts(model, best)
    price = model.cap * model.cost
    least = float(price.min())
    integral = bool(np.allclose(price, least, rtol=1e-12))
    master = HighsSession(mip_rel_gap=0.0)
    master.add_columns(price / least, 0.0, 1.0, integer=True)
    lower, relaxed, rounds, status = 0.0, True, 0, Status.OPTIMAL
    try:
        while True:
            allowance = tree.ROUNDING * best.value[0]
            penalty = best.value[0] - price[_left_out(model, best)].sum()
            target = best.value[0] - options.gap_tol * min(best.value[0], max(penalty, 0.0)) - allowance
            if lower >= target:
                break
            if clock.is_over or (options.max_iter is not None and rounds >= options.max_iter):
                status = Status.TIME_LIMIT if clock.is_over else Status.ITERATION_LIMIT
                break
            rounds += 1
            master.set(solve_relaxation=relaxed)
            answer = master.solve(max(clock.left, 0.01))
            bound = answer.value if relaxed else answer.bound
            if answer.is_optimal or not relaxed:
                bound = math.ceil(bound - 1e-6) if integral else bound * (1.0 - 1e-9)
                lower = max(lower, least * max(bound, 0.0))
            clock.note(reduction.unit * best.value[0], reduction.unit * min(lower, best.value[0]))
            if not np.isfinite(answer.value) or answer.x.size < n:
                continue
            cutoff = best.value[0] - lower - allowance
            if cutoff <= 0.0:
                continue
            found = []
            for level in (0.999, 0.5, 0.1) if relaxed else (0.5,):
                found += conflicts.disjoint(answer.x > level, cutoff, clock)
            violated = [c for c in found if answer.x[c].sum() < 1.0 - 1e-6]
            if violated:
                rows = np.zeros((len(violated), n))
                for row, conflict in zip(rows, violated):
                    row[conflict] = 1.0
                master.add_rows(rows, 1.0, math.inf)
            relaxed = bool(violated) and (relaxed or rounds % 8 != 0)
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
    alpha = polish(model, best, scratch)
    value = float(best.value[0])
    return Outcome(best.w, float(best.b[0]), alpha, value, min(lower, value), status, rounds)


def _left_out(model: tree.Model, best: tree.Best) -> NDArray[np.bool_]:
    return best.u < model.t - tree.FEASIBLE
