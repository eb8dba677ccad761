"""The skeleton of the three global searches for linear problems with any number of classes.

    minimise  P(W) + C sum_i weight_i l(u_i),     u_i = min_j (f_{y_i}(x_i) - f_j(x_i))

A search has an incumbent and a lower bound of what is left, and works where that bound is attained until the two meet.
This module has what is the same in all: the problems taken, the first incumbents and their polishing, the loop with
its limits and Ctrl-C, and the result. :class:`BestFirst` adds a heap of parts that cover the space of coefficients.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ...core.capabilities import ANY_CLASSES, ANY_LINEAR, Takes
from ...core.problem import Problem
from ...core.result import Certificate, Claim, Result, Status, relative_gap
from ...core.solving import Clock, Options, SolverSettings
from .coordinates import Coordinates

Array = NDArray[np.float64]
Polish = Callable[[Problem, Array, Array], tuple[Array, Array]]

#: Largest number of coordinates (k - 1)(d + 1) for searches whose cost is exponential in it: 2^8 orthants.
MAX_DIMENSION = 8
#: An incumbent below the bound by this fraction of it shows that the bound is false: far above rounding.
CONTRADICTION = 1e-5
#: Relaxed problems are solved to this fraction of the asked gap: what is lost in a part must not keep it open.
ACCURACY = 0.02
#: A relaxed minimiser that costs at most this, as a multiple of the incumbent's value, is polished.
PROMISING = 1.02


@dataclass(frozen=True)
class Settings(SolverSettings):
    """Options of the global solvers on coefficients.

    Attributes
    ----------
    polish : callable or None
        A function (problem, W, b) -> (W, b) that improves an incumbent; by default the patterns of truncation and the
        coefficients are minimised in turn.
    """

    polish: Polish | None = None


def declare(name: str, losses: Iterable[str], few_dimensions: bool = False) -> Takes:
    """Say what a search takes: linear functions, any classes, convex penalties that leave no coefficient free."""
    penalties = frozenset({"l2", "l1", "l1 weights", "elastic net", "zero l1 weights"})

    def limit(problem: Problem) -> str | None:
        p = max(problem.n_classes - 1, 1) * (problem.space.dim + 1)
        if not few_dimensions or p <= MAX_DIMENSION:
            return None
        return (
            f"solver={name!r} searches a space of dimension (k - 1)(d + 1) = {p}, above its limit of {MAX_DIMENSION}; "
            "use solver='patterns' for a proof or solver='dca' for a local solution."
        )

    return Takes(name, frozenset(losses), ANY_LINEAR, ANY_CLASSES, penalties, limit=limit)


class _Contradiction(ArithmeticError):
    """An incumbent is better than the bound allows."""


class Search:
    """State of one run: the incumbent ``point`` = (W, b), in coordinates ``best``, with its ``value``, and the bound.

    A search says how it begins (:meth:`_begin`), when it is done (:meth:`_is_done`), what it does to raise its bound
    (:meth:`_step`) and what it has proved (:attr:`bound`, :meth:`_proof`).

    """

    takes: ClassVar[Takes]
    note: ClassVar[str]  # what the certificate says of the search
    note_every: ClassVar[int] = 64  # steps between two lines of history

    def __init__(self, problem: Problem, options: Options, start: Result | None = None) -> None:
        from .truncation import Truncation

        self.takes.check(problem)
        self.problem, self.options, self.start = problem, options, start
        self.clock = Clock(options.time_limit)
        self.at = Coordinates.of(problem)
        self.parts = Truncation(self.at)
        self.polish: Polish = options.of(Settings).polish or self._alternate
        self.n_steps = 0
        self.value = math.inf
        self._take(np.zeros((problem.n_functions, problem.space.dim)), problem.best_constant()[1])
        self.convex_bound = 0.0  # of the objective without truncation

    @classmethod
    def solve(cls, problem: Problem, options: Options, start: Result | None = None) -> Result:
        """Minimise globally to relative gap ``options.gap_tol``.

        Parameters
        ----------
        problem : Problem
            The problem; refused with a ValueError if ``takes`` does not cover it.
        options : Options
            ``max_iter`` limits the steps; see also :class:`Settings`.
        start : Result or None
            A first incumbent.

        Returns
        -------
        Result
            With a global bound, also when a limit or Ctrl-C ended the search; ``n_iter`` counts steps.
        """
        return cls(problem, options, start).run()

    @property
    def bound(self) -> float:
        """Lower bound of the optimum, proved so far."""
        raise NotImplementedError(f"{type(self).__name__} must define bound")

    def _begin(self) -> None:
        raise NotImplementedError(f"{type(self).__name__} must define _begin()")

    def _is_done(self) -> bool:
        raise NotImplementedError(f"{type(self).__name__} must define _is_done()")

    def _step(self) -> bool:
        """Do some work where the bound is attained; False if rounding forbids to go on."""
        raise NotImplementedError(f"{type(self).__name__} must define _step()")

    def _proof(self, status: Status) -> tuple[float, bool]:
        """Return (the bound to state, whether it was recomputed from evidence)."""
        return self.bound, False

    def _facts(self) -> dict[str, Any]:
        """Return what the result says in ``extra``."""
        return {}

    @property
    def cutoff(self) -> float:
        """What has a bound of at least this needs no more work."""
        return self.value - self.options.gap_tol * max(self.value, float(np.finfo(float).eps))

    def run(self) -> Result:
        """Search until bound and incumbent meet, a limit is reached, or the user interrupts."""
        try:
            return self._result(self._search())
        except KeyboardInterrupt:
            return self._result(Status.INTERRUPTED)
        except _Contradiction:  # the incumbent stands; of the bounds only that losses are not negative
            return self._result(Status.STALLED, is_sound=False)

    def _search(self) -> Status:
        self.offer(self.best)
        self.convex_bound, theta = self.parts.convex_minimum()
        self.offer(theta)
        if self.start is not None:
            self.offer(self.at.pack(self.start.coef, self.start.intercept))
        self._begin()
        while not self._is_done():
            if self.n_steps % self.note_every < 2:
                self.clock.note(self.value, min(self.bound, self.value))
            stop = self._limit_reached()
            if stop is not None:
                return stop
            if not self._step():
                return Status.STALLED
        return Status.OPTIMAL

    def _limit_reached(self) -> Status | None:
        if self.clock.is_over:
            return Status.TIME_LIMIT
        is_over = self.options.max_iter is not None and self.n_steps >= self.options.max_iter
        return Status.ITERATION_LIMIT if is_over else None

    def offer(self, theta: Array) -> None:
        """Take a point, and what polishing makes of it, as incumbent if it is better."""
        W, b = self.at.unpack(theta)
        self._take(W, b)
        if not self.clock.is_over:
            self._take(*self.polish(self.problem, W, b))
        if self.value < self.bound - CONTRADICTION * abs(self.bound):
            raise _Contradiction(f"The bound {self.bound!r} passed the incumbent {self.value!r}.")

    def _take(self, W: Array, b: Array) -> None:
        value = self.problem.value(W, b)
        if value < self.value:
            self.value, self.point, self.best = value, (W, b), self.at.pack(W, b)

    def _alternate(self, problem: Problem, W: Array, b: Array) -> tuple[Array, Array]:
        return self.at.unpack(self.parts.alternate(self.at.pack(W, b), self.clock))

    def _result(self, status: Status, is_sound: bool = True) -> Result:
        (W, b), objective = self.point, self.value
        bound, rechecked = self._proof(status) if is_sound else (0.0, False)
        bound = max(min(bound, objective), 0.0)
        if status is Status.OPTIMAL and relative_gap(objective, bound) > self.options.gap_tol * (1 + 1e-6):
            status = Status.STALLED
        self.clock.note(objective, bound)
        certificate = Certificate(Claim.GLOBAL, objective, bound, rechecked=rechecked, note=self.note)
        history = tuple(self.clock.history)
        return Result(W, b, status, certificate, self.n_steps, history, None, self._facts())


class BestFirst(Search):
    """A search over parts of the space of coefficients; the part with the lowest bound is split next.

    A part is a tuple that begins with its bound and a number of its own. ``closed`` is the least bound of the parts
    that were given up. A part leaves the heap only after the parts that cover it are in, so that the bound holds at
    every moment.
    """

    def __init__(self, problem: Problem, options: Options, start: Result | None = None) -> None:
        super().__init__(problem, options, start)
        self.numbers = itertools.count()
        self.heap: list[Any] = []
        self.closed = 0.0  # nothing is covered yet

    def _first_parts(self) -> list[Any]:
        """Return parts that cover everything, with the bound 0."""
        raise NotImplementedError(f"{type(self).__name__} must define _first_parts()")

    def _split(self, part: Any) -> None:
        """Open parts that cover this one."""
        raise NotImplementedError(f"{type(self).__name__} must define _split()")

    @property
    def bound(self) -> float:
        """Least bound of the parts."""
        return min(self.closed, self.heap[0].bound) if self.heap else self.closed

    def _begin(self) -> None:
        self.heap = self._first_parts()
        self.closed = math.inf

    def _is_done(self) -> bool:
        return not self.heap or self.heap[0].bound >= self.cutoff

    def _step(self) -> bool:
        self._split(self.heap[0])
        heapq.heappop(self.heap)  # still the same: its parts have no lower bounds and higher numbers
        return True

    @property
    def tolerance(self) -> float:
        """To which relaxed problems are solved."""
        return ACCURACY * self.options.gap_tol * self.value

    def is_promising(self, value: float) -> bool:
        """Whether a relaxed minimiser that costs ``value`` is worth polishing."""
        return value < PROMISING * self.value

    def _keep(self, part: Any, can_split: bool) -> None:
        """Keep a part that may hold something better than the incumbent."""
        if part.bound < self.cutoff and can_split:
            heapq.heappush(self.heap, part)
        else:
            self.closed = min(self.closed, part.bound)

    def _facts(self) -> dict[str, Any]:
        return {"open": len(self.heap)}
