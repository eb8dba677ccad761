"""Enumeration in the plane: the fastest exact search of two features, truncation at margin 0 or the hard margin.

There are n (n - 1) ways a line can divide the samples, see :mod:`.lines_jit`; all but a few are too expensive by
the samples on their wrong side alone, and each of the others is one convex problem. The hard margin asks for a strip
without samples, not for a line: its support sets are enumerated, see :mod:`.supports_jit`.
"""

from __future__ import annotations

import math

import numpy as np

from ....core.solving import Options
from ...sample_state_jit import FREE
from ...search import Budget
from ..incumbent_jit import Best
from ..model import make_workspace
from ..node.node_jit import Model
from .lines_jit import DEGENERATE, DONE, MORE, enumerate_lines
from .supports_jit import enumerate_supports

#: Samples compared with lines between two readings of the clock: a few hundredths of a second.
_CHUNK = 1_000_000


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
