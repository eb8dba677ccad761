"""Both exact searches on one incumbent, in slices of time: the one with the better bound gets most of it."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..kernels import tree
from ..losses import Loss
from ..result import Status
from .base import Clock, Options
from .branch import Outcome, TreeSearch, first_incumbent, make_model, polish
from .hitting import HittingSearch
from .reduction import Reduction

Array = NDArray[np.float64]

#: Seconds of branch and bound before the second search is tried, and the smallest slice thereafter.
FIRST_SLICE, SLICE = 1.0, 0.5


def search(
    reduction: Reduction,
    loss: Loss,
    options: Options,
    clock: Clock,
    points: Sequence[tuple[Array, float]] = (),
    given: NDArray[np.int8] | None = None,
) -> Outcome:
    """Search until the gap is closed, or time, nodes or the user's patience end.

    ``points`` are scaled (v, b) to start from; ``given`` states per group (FREE, IN: u >= t, TOP: no loss) restrict the
    solutions.
    """
    model = make_model(reduction, loss, given)
    best, scratch = first_incumbent(model, points)
    plan = _Plan(model, best, scratch, options)
    max_steps = math.inf if options.max_iter is None else options.max_iter
    slice_end, status = FIRST_SLICE, Status.OPTIMAL
    try:
        while not plan.run(clock, min(slice_end, clock.limit), max_steps):
            clock.note(reduction.unit * best.value[0], reduction.unit * min(plan.bound, best.value[0]))
            if clock.is_over or plan.steps >= max_steps:
                status = Status.TIME_LIMIT if clock.is_over else Status.ITERATION_LIMIT
                break
            slice_end = clock.seconds + max(SLICE, 0.25 * clock.seconds)
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
    alpha = polish(model, best, scratch)
    value = float(best.value[0])
    bound = min(plan.bound, value)
    return Outcome(best.w, float(best.b[0]), alpha, value, bound, status, plan.steps, plan.engine)


class _Plan:
    """Whose turn it is, and the best bound of all."""

    def __init__(self, model: tree.Model, best: tree.Best, scratch: tree.Work, options: Options) -> None:
        self.model, self.best, self.scratch, self.options = model, best, scratch, options
        self.tree = TreeSearch(model, best, scratch, options)
        self.hitting: HittingSearch | None = None
        self.narrow: TreeSearch | None = None
        self.narrowed_at, self.shift = 0.0, 0.0
        self.bound, self.turn, self.steps, self.engine = 0.0, 0, 0, "psilearn"

    def run(self, clock: Clock, until: float, max_steps: float) -> bool:
        """Give the next in turn its slice; whether the incumbent is proved."""
        turn = ("tree", "hitting", "narrow", "hitting", "narrow")[self.turn % 5]
        self.turn += 1
        if turn == "tree" or self.hitting is None:
            self.tree.run(clock, until, max_steps)
            self.hitting = self.hitting or HittingSearch(self.model, self.best, self.scratch, self.options)
            return self._settle(self.tree.bound, self.tree.is_done, "psilearn")
        if turn == "hitting":
            self.hitting.run(clock, until, max_steps)
            return self._settle(self.hitting.bound, self.hitting.is_done, "psilearn with HiGHS")
        if self.narrow is None or self.hitting.bound > self.narrowed_at:
            self.narrow = self._narrowed(self.hitting)
        self.narrow.run(clock, until, max_steps)
        found = self.narrow.best
        tree.offer(self.model, self.best, found.w, found.b[0], found.u)
        return self._settle(self.narrow.bound + self.shift, self.narrow.is_done, "psilearn with HiGHS")

    def _settle(self, bound: float, done: bool, engine: str) -> bool:
        if bound > self.bound:
            self.bound, self.engine = bound, engine
        self.steps = self.tree.steps + (self.narrow.steps if self.narrow else 0)
        return done

    def _narrowed(self, hitting: HittingSearch) -> TreeSearch:
        """A tree that knows that samples left out cost at least B in all (the other search's bound).

        Better solutions have a penalty below UB - B. If moreover all samples cost the same c and the incumbent leaves
        out no more than B, then c may be replaced by c' = UB - B, if that is less: with k = B / c, a solution that
        leaves out k has F - F' = B - k c', the constant by which UB is lowered, and one that leaves out more has
        F' >= (k + 1) c' >= UB'. So F' < UB' iff F < UB, and penalties are no longer drowned by the costs.
        """
        model, upper, least = self.model, float(self.best.value[0]), hitting.bound
        self.narrowed_at, factor = least, 1.0
        out = float(hitting.price[self.best.u < model.t - tree.FEASIBLE].sum())
        if hitting.integral and out <= least * (1.0 + 1e-9) and least > 0.0:
            factor = min(1.0, (upper - least) / hitting.unit)
        self.shift = (1.0 - factor) * least
        cheaper = model._replace(cost=model.cost * factor)
        value = np.array([tree.true_value(cheaper, self.best.w, self.best.u)])
        copies = self.best.w.copy(), self.best.b.copy(), self.best.u.copy(), np.full(1, np.inf)
        return TreeSearch(cheaper, tree.Best(value, *copies), self.scratch, self.options, upper - least)
