"""The record of one search: what it has done in its time, and so when it may be done."""

from __future__ import annotations

import math

import numpy as np

#: Part of a search's time whose end is compared with now. Bounds may rest for long: where C is large, they are nearly
#: multiples of it.
MEMORY = 0.125


class Progress:
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

    def expected_seconds(self, goal: float) -> float:
        """Seconds (or nodes) until the bound reaches the goal if it goes on to rise by the logarithm of time.

        A search without a bound may go on as long again.
        """
        if self.bounds[-1] <= 0.0:
            return self.spent[-1]
        now = self.spent[-1]
        then = max(MEMORY * now, min(self.spent[1], 0.5 * now))
        rise = self.bounds[-1] - float(np.interp(then, self.spent, self.bounds))
        gain = rise / math.log2(now / then)  # per doubling of the time
        doublings = max(goal - self.bounds[-1], 0.0) / max(gain, 1e-9 * goal)
        return now * (2.0 ** min(doublings, 1000.0) - 1.0)
