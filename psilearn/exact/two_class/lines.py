"""Enumeration of dichotomies in the plane: the fastest exact search where the loss is truncated at margin 0 and d = 2.

There are n (n - 1) ways a line can divide the samples, see :mod:`.lines_jit`; all but a few are too expensive by
the samples on their wrong side alone, and each of the others is one convex problem.
"""

from __future__ import annotations

import math

import numpy as np

from ...core.solving import Options
from ..sample_state_jit import FREE
from ..search import Budget
from .incumbent_jit import Best
from .lines_jit import DEGENERATE, DONE, MORE, enumerate_lines
from .model import make_workspace
from .node.node_jit import Model

#: Samples compared with lines between two readings of the clock: a few hundredths of a second.
_CHUNK = 1_000_000


def suits_lines(model: Model) -> bool:
    """Whether this search takes the problem: two features, truncation at margin 0, no sample bound to a side."""
    return model.a.shape[1] == 2 and model.t == 0.0 and bool(np.all(model.given == FREE))


class LineSearch:
    """The enumeration. Work is counted in convex problems; it is stuck where samples on one line matter."""

    is_outdated = False

    def __init__(self, model: Model, best: Best, options: Options) -> None:
        self.model, self.best, self.options = model, best, options
        self.node, self.place, self.floor = make_workspace(model), np.zeros(2, np.int64), np.full(1, math.inf)
        self.outcome = MORE

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
        """Convex problems so far."""
        return int(self.place[1])

    def run(self, budget: Budget) -> None:
        """Search until done or stuck, or until the budget is spent."""
        chunk, end = _CHUNK // self.model.y.size + 1, self.work + budget.work
        while self.outcome == MORE and not budget.is_over and self.work < end:
            n_pairs = int(min(chunk, end - self.work))  # one convex problem per pair at most
            self.outcome = enumerate_lines(
                self.model, self.node, self.best, self.place, self.floor, n_pairs, self.options.gap_tol
            )
