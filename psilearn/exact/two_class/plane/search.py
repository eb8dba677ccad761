"""Enumeration in the plane: the fastest exact search of two features.

There are n (n - 1) ways a line can divide the samples, see :mod:`.lines_jit`; all but a few are too expensive by
the samples on their wrong side alone, and each of the others is one convex problem. The hard margin asks for a strip
without samples, not for a line: its support sets are enumerated, see :mod:`.supports_jit`. Continuous losses truncated
elsewhere are bounded on boxes of coefficients, see :mod:`.boxes_jit`.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ....core.solving import Options
from ...envelope_jit import convex_value
from ...sample_state_jit import FREE
from ...search import Budget
from ..incumbent_jit import ROUNDING, Best
from ..model import make_workspace, margin_bounds
from ..node.node_jit import Model
from ..slots_jit import empty_heap, grown, push
from .boxes_jit import CASES, BoxPool, enumerate_boxes, make_record
from .lines_jit import DEGENERATE, DONE, MORE, enumerate_lines
from .supports_jit import enumerate_supports

#: Samples compared with lines between two readings of the clock: a few hundredths of a second.
_CHUNK = 1_000_000
#: Slots for boxes at the beginning.
_SLOTS = 1024
#: Boxes after which the search gives up: about a minute with 500 samples, which need some thousands.
_MOST_BOXES = 1 << 19
#: Part by which the first box is larger than it need be, because of rounding.
_LARGER = 1e-9


def plane_search(model: Model) -> type[LineSearch] | type[BoxSearch] | None:
    """Return the search that enumerates this model, None if none does."""
    if suits_lines(model):
        return LineSearch
    return BoxSearch if suits_boxes(model) else None


def suits_boxes(model: Model) -> bool:
    """Whether boxes suit: one or two features, no sample bound to a side, a loss that is truncated without a jump."""
    if model.a.shape[1] > 2 or np.any(model.given != FREE) or not math.isfinite(model.cap):
        return False
    at_t = convex_value.py_func(model.t, model.breakpoints, model.slopes)
    return bool(abs(model.cap - at_t) <= 1e-12 * model.cap)


def suits_lines(model: Model) -> bool:
    """Whether this search takes the problem: two features, no sample bound to a side, and a loss that it knows."""
    is_planar = model.a.shape[1] == 2 and bool(np.all(model.given == FREE))
    return is_planar and (model.t == 0.0 or is_hard_margin(model))


def is_hard_margin(model: Model) -> bool:
    """Whether the loss is 0 from a margin t > 0 on, with the 2-norm."""
    return model.norm == 2 and model.t > 0.0 and not np.any(model.breakpoints > model.t)


class LineSearch:
    """The enumeration. Work is counted in convex problems (hard margin: in pairs).

    It is stuck where samples on one line matter (hard margin: where samples nearly coincide).
    """

    is_outdated = False

    def __init__(self, model: Model, best: Best, options: Options) -> None:
        self.model, self.best, self.options = model, best, options
        self.node, self.place, self.floor = make_workspace(model), np.zeros(2, np.int64), np.full(1, math.inf)
        self.outcome = MORE
        self._enumerate = enumerate_supports if is_hard_margin(model) else enumerate_lines

    @property
    def done(self) -> bool:
        """Whether every division is dealt with."""
        return bool(self.outcome == DONE)

    @property
    def is_stuck(self) -> bool:
        """Whether samples on one line make this search useless."""
        return bool(self.outcome == DEGENERATE)

    @property
    def bound(self) -> float:
        """Proved lower bound (scaled), nothing before the end."""
        return float(min(self.floor[0], self.best.value[0])) if self.done else 0.0

    @property
    def work(self) -> int:
        """Convex problems, or pairs, so far."""
        return int(self.place[1])

    def run(self, budget: Budget) -> None:
        """Search until done or stuck, or until the budget is spent."""
        chunk, end = _CHUNK // self.model.y.size + 1, self.work + budget.work
        while self.outcome == MORE and not budget.is_over and self.work < end:
            n_pairs = int(min(chunk, end - self.work))  # one convex problem per pair at most
            self.outcome = self._enumerate(
                self.model, self.node, self.best, self.place, self.floor, n_pairs, self.options.gap_tol
            )


class BoxSearch:
    """The halving of boxes, smallest bound first. Work is counted in boxes."""

    is_outdated = False

    def __init__(self, model: Model, best: Best, options: Options) -> None:
        self.model, self.best, self.options = model, best, options
        self.node, self.record, self.floor = make_workspace(model), make_record(), np.full(1, math.inf)
        self.outcome, d = MORE, model.a.shape[1]
        upper = float(best.value[0]) * (1.0 + ROUNDING)
        self.floors, self.ceilings = margin_bounds(model, upper)
        self.scratch, self.cases = np.zeros((3, d + 1)), np.zeros(CASES, np.int64)
        ends = np.zeros((_SLOTS, d + 1)), np.zeros((_SLOTS, d + 1))
        self.pool = BoxPool(*empty_heap(_SLOTS), *ends, np.zeros(_SLOTS, np.int64))
        slot = push.py_func(self.pool, 0.0)
        self.pool.high[slot] = _widths(model, upper)
        self.pool.low[slot] = -self.pool.high[slot]
        self.pool.across[slot] = d

    @property
    def done(self) -> bool:
        """Whether every box is closed."""
        return bool(self.outcome == DONE)

    @property
    def is_stuck(self) -> bool:
        """Whether numbers end before a box is closed, or memory does."""
        return bool(self.outcome == DEGENERATE or self.work >= _MOST_BOXES)

    @property
    def bound(self) -> float:
        """Proved lower bound (scaled)."""
        least = self.pool.bound[self.pool.heap[0]] if self.pool.sizes[0] else math.inf
        return float(min(least, self.floor[0], self.best.value[0]))

    @property
    def work(self) -> int:
        """Boxes so far."""
        return int(self.record[2, 0])

    def run(self, budget: Budget) -> None:
        """Search until done or stuck, or until the budget is spent."""
        chunk, end = _CHUNK // (10 * self.model.y.size) + 1, self.work + budget.work
        while self.outcome == MORE and not self.is_stuck and not budget.is_over and self.work < end:
            while self.pool.sizes[1] < chunk + 4:
                self.pool = grown(self.pool)
            self.outcome = enumerate_boxes(
                self.model, self.node, self.best, self.pool, self.floor, self.record, self.floors, self.ceilings,
                self.scratch, self.cases, int(min(chunk, end - self.work)), self.options.gap_tol,
            )  # fmt: skip


def _widths(model: Model, upper: float) -> NDArray[np.float64]:
    """Return bounds on the absolute values of the coefficients and the intercept of all better solutions.

    Some sample of each class has a margin of at least t, see :func:`..model.margin_bounds`, which leaves no room for an
    intercept beyond that and what the coefficients add.
    """
    is_quadratic, a = model.norm == 2, np.abs(model.a)
    radius = math.sqrt(2.0 * upper) if is_quadratic else upper
    farthest = float((np.sqrt(np.sum(a * a, axis=1)) if is_quadratic else a.max(axis=1, initial=0.0)).max())
    widths = np.full(a.shape[1] + 1, radius)
    widths[-1] = abs(model.t) + radius * farthest
    return np.maximum(widths, 1.0) * (1.0 + _LARGER)  # data without extent leave none to the intercept
