"""The exact searches on one incumbent, in slices of time: they take turns, and the best bound counts."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from ...core.losses import Loss
from ...core.result import Status
from ...core.solving import Clock, Options
from .hitting.search import HittingSearch
from .lines import LineSearch, suits_lines
from .local_search import Walker
from .reduction import Reduction
from .settings import Settings
from .tree import tree_jit as tree
from .tree.search import (
    InconsistentBoundError,
    Outcome,
    TreeSearch,
    given_incumbent,
    improve_incumbent,
    make_model,
    polish,
)
from .violations.search import ViolationSearch, suits

Array = NDArray[np.float64]

#: Seconds of the first search before the second is tried, and the smallest slice thereafter.
FIRST_SLICE, SLICE = 1.0, 0.5
#: Part of a slice that goes to incumbents, also where the bound is far away, and the seconds for easy problems before.
_FOR_INCUMBENTS, _IF_FAR, _FAR, _EASY = 0.15, 0.3, 0.8, 0.1
#: What is left of that part if the second half of all the time for incumbents has brought nothing better.
_IN_VAIN = 0.2
#: Steps of the walker per node where nodes are limited, and at most.
_STEPS, _MOST_STEPS = 0.25, 4000
#: Part of a search's time whose end is compared with now. Bounds may rest for long: where C is large, they are nearly
#: multiples of it.
_MEMORY = 0.125
#: How far beyond the time left a promise is worth nothing, and part of the best bound that counts as near it.
_HOPELESS, _NEAR = 100.0, 0.9
#: Part of the time that every search gets, however little it promises.
_LEAST_SHARE = 0.08
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
    enough = options.of(Settings).enough
    max_steps = math.inf if options.max_iter is None else options.max_iter
    slice_end, status = (FIRST_SLICE if options.max_iter is None else math.inf), Status.OPTIMAL
    try:
        improve_incumbent(model, best, scratch, points, clock)
        plan = Plan(model, best, scratch, options)
        while True:
            is_proved = plan.run(clock, min(slice_end, clock.limit), max_steps)
            bound, steps, engine = plan.bound, plan.steps, plan.engine
            if is_proved:
                break
            clock.note(reduction.unit * best.value[0], reduction.unit * min(bound, best.value[0]))
            if enough(clock.history[-1].objective, clock.history[-1].bound):
                status = Status.INTERRUPTED
                break
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


class Record:
    """How one search has fared: seconds spent and its bound after each turn, seconds ``before`` it began anew."""

    def __init__(self, before: float = 0.0) -> None:
        self.before = before
        self.spent: list[float] = [0.0]
        self.bounds: list[float] = [0.0]

    @property
    def total(self) -> float:
        """All seconds spent."""
        return self.before + self.spent[-1]

    def note(self, seconds: float, bound: float) -> None:
        """Add a turn."""
        self.spent.append(self.spent[-1] + max(seconds, 1e-6))
        self.bounds.append(bound)

    def promise(self, goal: float) -> float:
        """Seconds until the bound reaches the goal if it goes on to rise by the logarithm of time, as bounds do.

        A search without a bound may not have had the time to begin, since kernels compile first: it may go on as long
        again.
        """
        if self.bounds[-1] <= 0.0:
            return self.spent[-1]
        now, then = self.spent[-1], max(_MEMORY * self.spent[-1], min(self.spent[1], 0.5 * self.spent[-1]))
        rise = self.bounds[-1] - float(np.interp(then, self.spent, self.bounds))
        gain = rise / math.log2(now / then)  # per doubling of the time
        doublings = max(goal - self.bounds[-1], 0.0) / max(gain, 1e-9 * goal)
        return now * (2.0 ** min(doublings, 1000.0) - 1.0)


class Plan:
    """Whose turn it is, and the best bound of all.

    In the plane all dichotomies are enumerated, where the loss allows that and no three samples on one line matter.
    Otherwise the search over violated sets (where it suits the loss), the tree and the hitting sets each have a turn,
    and from then on whoever promises to be done first; the others keep a small share of the time. The search over
    violated sets begins anew when a better incumbent is known than at its root, since its bounds are built around the
    incumbent, and it looks for incumbents and good bounds at the root longer when it begins again.
    """

    def __init__(self, model: tree.Model, best: tree.Best, scratch: tree.Work, options: Options) -> None:
        self.model, self.best, self.scratch, self.options = model, best, scratch, options
        self.tree = TreeSearch(model, best, scratch, options)
        self.walker = Walker(model, best, options.random_state)
        self.lines = LineSearch(model, best, options) if suits_lines(model) and options.max_iter is None else None
        self.hitting: HittingSearch | None = None
        self.violations: ViolationSearch | None = None
        self.turns: dict[Callable[[Clock, float], bool], Record]
        self.turns = {self._run_tree: Record(), self._run_hitting: Record()}
        if suits(model):
            self.turns = {self._run_violations: Record()} | self.turns
        self.bound, self.turn, self.steps, self.engine = 0.0, 0, 0, "psilearn"
        self.walked, self.improved = 0.0, 0.0  # seconds for incumbents, and how many when the last was found

    def run(self, clock: Clock, until: float, max_steps: float) -> bool:
        """Give the next in turn its slice; whether the incumbent is proved."""
        self.turn += 1
        if self.lines is not None and not self.lines.has_resigned:
            self.lines.run(clock, until)
            if not self.lines.has_resigned:
                return self._settle(self.lines, "psilearn")
        if math.isfinite(max_steps):
            if self.turn == 1:
                self.walker.take(min(int(_STEPS * max_steps), _MOST_STEPS), clock)
            self.tree.run(clock, until, max_steps)
            return self._settle(self.tree, "psilearn")
        search = self.next(clock.left)
        if self._is_neglected(search):  # a long turn would take more than its share
            until = min(until, clock.seconds + max(SLICE, _LEAST_SHARE * clock.seconds))
        return search(clock, until)

    def _is_neglected(self, search: Callable[[Clock, float], bool]) -> bool:
        """Whether a search has had less than its least share of the time."""
        return self.turns[search].total <= _LEAST_SHARE * sum(record.total for record in self.turns.values())

    def next(self, left: float = math.inf) -> Callable[[Clock, float], bool]:
        """Return the search that has had no turn or too little time, else the one with the best promise.

        If nobody promises anything for the seconds that are left, those with the best bounds share them.
        """
        search, able = self.violations, dict(self.turns)
        if search is not None and search.is_stuck and not search.is_outdated:
            del able[self._run_violations]
        for run in able:
            if self._is_neglected(run):
                return run
        goal = float(self.best.value[0])
        promise = {run: record.promise(goal) for run, record in able.items()}
        if min(promise.values()) < _HOPELESS * left:
            return min(promise, key=lambda run: promise[run])
        best = max(record.bounds[-1] for record in able.values())
        near = {run: record for run, record in able.items() if record.bounds[-1] >= _NEAR * best}
        return min(near, key=lambda run: near[run].total)

    @property
    def _share(self) -> float:
        """Part of a slice that goes to incumbents."""
        share = _IF_FAR if self.turn > 2 and self.bound < _FAR * self.best.value[0] else _FOR_INCUMBENTS
        return share * (_IN_VAIN if self.walked > max(2.0 * self.improved, _ROOT_SECONDS) else 1.0)

    def _run_tree(self, clock: Clock, until: float) -> bool:
        began, walked = clock.seconds, 0.0
        if self.tree.steps == 0:
            self.tree.run(clock, min(until, began + _EASY), math.inf)
        if not self.tree.is_done:
            walked = self._walk(clock, self._share * (until - clock.seconds))
            self.tree.run(clock, until, math.inf)
        self.turns[self._run_tree].note(min(clock.seconds, until) - began - walked, self.tree.bound)
        return self._settle(self.tree, "psilearn")

    def _run_hitting(self, clock: Clock, until: float) -> bool:
        self.hitting = self.hitting or HittingSearch(self.model, self.best, self.scratch, self.options)
        began = clock.seconds
        walked = self._walk(clock, self._share * (until - began)) if self.hitting.steps else 0.0
        self.hitting.run(clock, until, math.inf)
        self.turns[self._run_hitting].note(min(clock.seconds, until) - began - walked, self.hitting.bound)
        return self._settle(self.hitting, "psilearn with HiGHS")

    def _run_violations(self, clock: Clock, until: float) -> bool:
        began, walked, effort = clock.seconds, 0.0, self._share * (until - clock.seconds)
        search = self.violations
        if search is None:
            search = ViolationSearch(self.model, self.best, self.options)
            search.run(clock, min(until, clock.seconds + _EASY), math.inf)
        elif search.is_outdated:
            effort = max(effort, min(_ROOT_SECONDS, 0.05 * clock.limit))
            until += 1.5 * effort
        if not search.is_done:
            walked = self._walk(clock, effort)
            if search.is_outdated:
                search = search.begun_again()
                self.turns[self._run_violations] = Record(self.turns[self._run_violations].total)
            search.run(clock, min(until, clock.limit), math.inf)
        self.violations = search
        self.turns[self._run_violations].note(min(clock.seconds, until) - began - walked, search.bound)
        return self._settle(search, "psilearn")

    def _walk(self, clock: Clock, seconds: float) -> float:
        """Look for incumbents; the seconds that took."""
        began, before = clock.seconds, float(self.best.value[0])
        self.walker.run(clock, began + seconds)
        self.walked += clock.seconds - began
        if self.best.value[0] < before:
            self.improved = self.walked
        return clock.seconds - began

    def _settle(self, search: TreeSearch | HittingSearch | ViolationSearch | LineSearch, engine: str) -> bool:
        if search.bound > self.bound:
            self.bound, self.engine = search.bound, engine
        searches = self.tree, self.hitting, self.violations, self.lines
        self.steps = sum(other.steps for other in searches if other is not None)
        return search.is_done
