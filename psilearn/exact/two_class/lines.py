"""Enumeration of dichotomies in the plane: the fastest exact search where the loss is truncated at margin 0 and d = 2.

There are n (n - 1) ways a line can divide the samples, see :mod:`.lines_jit`; all but a few are too dear by
the samples on their wrong side alone, and each of the others is one convex problem.
"""

from __future__ import annotations

import math

import numpy as np

from ...core.solving import Clock, Options
from . import lines_jit as lines
from .node.envelope_jit import FREE
from .tree import tree_jit as tree
from .tree.search import make_work

#: Operations between two looks at the clock.
_CHUNK = 1_000_000


def suits_lines(model: tree.Model) -> bool:
    """Whether this search takes the problem: two features, truncation at margin 0, nobody bound to a side."""
    return model.a.shape[1] == 2 and model.t == 0.0 and bool(np.all(model.given == FREE))


class LineSearch:
    """The enumeration, to be run in slices of time."""

    def __init__(self, model: tree.Model, best: tree.Best, options: Options) -> None:
        self.model, self.best, self.options = model, best, options
        self.work, self.place, self.outcome = make_work(model), np.zeros(2, np.int64), lines.MORE

    @property
    def is_done(self) -> bool:
        """Whether every division is dealt with."""
        return bool(self.outcome == lines.DONE)

    @property
    def has_resigned(self) -> bool:
        """Whether samples on one line make this search useless."""
        return bool(self.outcome == lines.RESIGNED)

    @property
    def bound(self) -> float:
        """Proved lower bound (scaled), nothing before the end."""
        return float(min(self.best.floor[0], self.best.value[0])) if self.is_done else 0.0

    @property
    def steps(self) -> int:
        """Convex problems so far."""
        return int(self.place[1])

    def run(self, clock: Clock, until: float) -> None:
        """Search until done, or until the clock shows ``until`` seconds."""
        n = self.model.y.size
        while self.outcome == lines.MORE and clock.seconds < until:
            self.outcome = lines.enumerate_lines(
                self.model, self.work, self.best, self.place, _CHUNK // n + 1, self.options.gap_tol
            )
        if self.has_resigned:
            self.best.floor[0] = math.inf
