"""The exact searches on one incumbent, in slices of time: they take turns, and the best bound counts."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..kernels import tree
from ..losses import Loss
from ..result import Status
from .base import Clock, Options
from .branch import (
    InconsistentBoundError,
    Outcome,
    TreeSearch,
    given_incumbent,
    improve_incumbent,
    make_model,
    polish,
)
from .hitting import HittingSearch
from .lines import LineSearch, suits_lines
from .reduction import Reduction
from .violations import ViolationSearch, suits
from .walking import Walker

Array = NDArray[np.float64]

#: Seconds of the first search before the second is tried, and the smallest slice thereafter.
FIRST_SLICE, SLICE = 1.0, 0.5
#: Part of a slice that goes to incumbents, also where the bound is far away, and the seconds for easy problems before.
_FOR_INCUMBENTS, _IF_FAR, _FAR, _EASY = 0.15, 0.3, 0.8, 0.1
#: How many times longer the turns of the search over violated sets are, after the first.
_LION = 3.0
#: Seconds for incumbents when the search over violated sets begins again, where the time limit allows.
_ROOT_SECONDS = 3.0


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
    solutions. With a node limit the tree searches alone and without slices of time, so the outcome can be repeated.
    """
    model = make_model(reduction, loss, given)
    best, scratch = given_incumbent(model, points)
    bound, steps, engine = 0.0, 0, "psilearn"
    max_steps = math.inf if options.max_iter is None else options.max_iter
    slice_end, status = (FIRST_SLICE if options.max_iter is None else math.inf), Status.OPTIMAL
    try:
        improve_incumbent(model, best, scratch, points, clock)
        plan = _Plan(model, best, scratch, options)
        while True:
            is_proved = plan.run(clock, min(slice_end, clock.limit), max_steps)
            bound, steps, engine = plan.bound, plan.steps, plan.engine
            if is_proved:
                break
            clock.note(reduction.unit * best.value[0], reduction.unit * min(bound, best.value[0]))
            if clock.is_over or steps >= max_steps:
                status = Status.TIME_LIMIT if clock.is_over else Status.ITERATION_LIMIT
                break
            slice_end = clock.seconds + max(SLICE, 0.25 * clock.seconds)
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
    except InconsistentBoundError:  # the incumbent stands, bounds are withdrawn but for losses >= 0
        status, bound = Status.STALLED, 0.0
    alpha = polish(model, best, scratch)
    value = float(best.value[0])
    return Outcome(best.w, float(best.b[0]), alpha, value, min(bound, value), status, steps, engine)


class _Plan:
    """Whose turn it is, and the best bound of all.

    In the plane all dichotomies are enumerated, where the loss allows that and no three samples on one line matter.
    The tree and the hitting sets take turns. Where the search over violated sets suits the loss, it has every other
    turn, the first included. It begins anew when a better incumbent is known than at its root, since its bounds are
    built around the incumbent, and it looks for incumbents and good bounds at the root longer when it begins again.
    """

    def __init__(self, model: tree.Model, best: tree.Best, scratch: tree.Work, options: Options) -> None:
        self.model, self.best, self.scratch, self.options = model, best, scratch, options
        self.tree = TreeSearch(model, best, scratch, options)
        self.walker = Walker(model, best, options.random_state)
        self.lines = LineSearch(model, best, options) if suits_lines(model) and options.max_iter is None else None
        self.hitting: HittingSearch | None = None
        self.violations: ViolationSearch | None = None
        self.has_violations = suits(model)
        self.bound, self.turn, self.steps, self.engine = 0.0, 0, 0, "psilearn"

    def run(self, clock: Clock, until: float, max_steps: float) -> bool:
        """Give the next in turn its slice; whether the incumbent is proved."""
        self.turn += 1
        if self.lines is not None and not self.lines.has_resigned:
            self.lines.run(clock, until)
            if not self.lines.has_resigned:
                return self._settle(self.lines, "psilearn")
        if math.isfinite(max_steps):
            self.tree.run(clock, until, max_steps)
            return self._settle(self.tree, "psilearn")
        turn = self.turn
        if self.has_violations:
            if turn % 2 == 1:
                return self._run_violations(clock, until)
            turn //= 2
        if turn % 2 == 1:
            if turn == 1:
                self.tree.run(clock, min(until, clock.seconds + _EASY), max_steps)
            if not self.tree.is_done:
                self.walker.run(clock, clock.seconds + self._share * (until - clock.seconds))
                self.tree.run(clock, until, max_steps)
            return self._settle(self.tree, "psilearn")
        self.hitting = self.hitting or HittingSearch(self.model, self.best, self.scratch, self.options)
        self.hitting.run(clock, until, max_steps)
        return self._settle(self.hitting, "psilearn with HiGHS")

    @property
    def _share(self) -> float:
        """Part of a slice that goes to incumbents."""
        return _IF_FAR if self.turn > 2 and self.bound < _FAR * self.best.value[0] else _FOR_INCUMBENTS

    def _run_violations(self, clock: Clock, until: float) -> bool:
        if self.turn > 1:
            until = clock.seconds + _LION * (until - clock.seconds)
        effort = self._share * (until - clock.seconds)
        search = self.violations
        if search is None:
            search = ViolationSearch(self.model, self.best, self.options)
            search.run(clock, min(until, clock.seconds + _EASY), math.inf)
        elif search.is_outdated:
            effort = max(effort, min(_ROOT_SECONDS, 0.05 * clock.limit))
            until += 1.5 * effort
        if not search.is_done:
            self.walker.run(clock, clock.seconds + effort)
            search = search.begun_again() if search.is_outdated else search
            search.run(clock, min(until, clock.limit), math.inf)
        self.violations = search
        return self._settle(search, "psilearn")

    def _settle(self, search: TreeSearch | HittingSearch | ViolationSearch | LineSearch, engine: str) -> bool:
        if search.bound > self.bound:
            self.bound, self.engine = search.bound, engine
        self.steps = sum(other.steps for other in (self.tree, self.violations, self.lines) if other is not None)
        return search.is_done
