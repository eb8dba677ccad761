"""What every exact search promises, so that a portfolio can run any of them in turns on one incumbent."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Protocol

from ..core.solving import Clock


@dataclass(frozen=True)
class Budget:
    """How long one run of a search may last.

    Attributes
    ----------
    work : float
        Units of the search's own work (see :attr:`Search.work`) that this run may spend.
    clock : Clock
        Measures the seconds.
    until : float
        The run ends when the clock shows this many seconds.
    """

    work: float = math.inf
    clock: Clock = field(default_factory=Clock)
    until: float = math.inf

    @property
    def is_over(self) -> bool:
        """Whether the time is over."""
        return self.clock.seconds >= self.until

    def for_seconds(self, seconds: float) -> Budget:
        """Return a budget that ends after ``seconds``, or when this one does."""
        return Budget(self.work, self.clock, min(self.until, self.clock.seconds + seconds))


class Search(Protocol):
    """An exact search for the minimum of one model; it shares the incumbent with the other searches.

    The contract, checked for all classes in the tests:

    * ``bound`` never falls, and never exceeds the optimum by more than rounding errors.
    * ``done`` means that the bound proves the incumbent to the tolerance asked for; a search that is done does nothing.
    * ``work`` counts what the search does (nodes, states, convex problems); it never falls.
    * ``run(budget)`` goes on where the last run ended. It stops when it is done or stuck, when the time is over, or
      when it has spent ``budget.work``, which it may exceed to end the dive it is in.
    """

    @property
    def bound(self) -> float:
        """Proved lower bound on the optimum, in the units of the model."""

    @property
    def done(self) -> bool:
        """Whether the incumbent is proved to the tolerance asked for."""

    @property
    def work(self) -> int:
        """Units of work so far."""

    @property
    def is_stuck(self) -> bool:
        """Whether there is no way on, though nothing is proved."""

    @property
    def is_outdated(self) -> bool:
        """Whether the next run begins anew, because a better incumbent is known than the search was built around."""

    def run(self, budget: Budget) -> None:
        """Search until done, or until the budget is spent."""
