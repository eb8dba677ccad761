"""What the best-first searches over parts of the coefficient space share: incumbents, the loop, the result."""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.problem import Problem
from ...core.result import Certificate, Claim, Result, Status
from ...core.solving import Clock, Options, SolverSettings
from .coordinates import Coordinates

Array = NDArray[np.float64]
Polish = Callable[[Problem, Array, Array], tuple[Array, Array]]


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


class BestFirst:
    """State of one run: incumbent and open parts; a part is a tuple that begins with its bound.

    A search says how it opens its first parts (:meth:`_begin`) and how it splits one (:meth:`_split`).
    """

    note: str  # what the certificate calls the search

    def __init__(self, problem: Problem, options: Options, start: Result | None) -> None:
        from .truncation import Truncation

        self.problem, self.options = problem, options
        self.clock = Clock(options.time_limit)
        self.at = Coordinates.of(problem)
        self.parts = Truncation(self.at)
        self.polish: Polish = options.of(Settings).polish or self._alternate
        self.closed = math.inf  # least bound of the parts that were closed
        self.frontier = 0.0  # bound of the part being split: no open one has a lower bound
        self.value, self.best = math.inf, np.zeros(self.at.p)
        _, b = problem.best_constant()
        self._offer(self.at.pack(np.zeros((problem.n_functions, problem.space.dim)), b))
        self._offer(self.parts.convex_minimum()[1])
        if start is not None:
            self._offer(self.at.pack(start.coef, start.intercept))
        self.numbers = itertools.count()
        self.n_opened = 0
        self.heap: list[Any] = []

    def _begin(self) -> None:
        """Open parts that cover everything."""
        raise NotImplementedError(f"{type(self).__name__} must define _begin()")

    def _split(self, part: Any) -> None:
        """Open parts that cover this one."""
        raise NotImplementedError(f"{type(self).__name__} must define _split()")

    @property
    def cutoff(self) -> float:
        """Parts with a bound of at least this are done."""
        return self.value - self.options.gap_tol * max(self.value, float(np.finfo(float).eps))

    def run(self) -> Result:
        """Split the part with the lowest bound until none is below the cutoff."""
        limit = math.inf if self.options.max_iter is None else self.options.max_iter
        status = Status.OPTIMAL
        self._begin()
        while self.heap and self.heap[0].bound < self.cutoff:
            if self.clock.is_over or self.n_opened >= limit:
                status = Status.TIME_LIMIT if self.clock.is_over else Status.ITERATION_LIMIT
                break
            part = heapq.heappop(self.heap)
            self.frontier = part.bound
            if self.n_opened % 64 < 2:
                self.clock.note(self.value, min(part.bound, self.value))
            self._split(part)
        return self._result(status)

    def _offer(self, theta: Array) -> None:
        """Take a point, and what polishing makes of it, as incumbent if it is better."""
        W, b = self.at.unpack(theta)
        for coef, intercept in ((W, b), self.polish(self.problem, W, b)):
            value = self.problem.value(coef, intercept)
            if value < self.value:
                self.value, self.best = value, self.at.pack(coef, intercept)
        claimed = min(self.closed, self.frontier)
        if self.value < claimed - 1e-5 * abs(claimed):
            raise ArithmeticError(f"The bound {claimed!r} passed the incumbent {self.value!r}.")

    def _alternate(self, problem: Problem, W: Array, b: Array) -> tuple[Array, Array]:
        return self.at.unpack(self.parts.alternate(self.at.pack(W, b)))

    def _result(self, status: Status) -> Result:
        W, b = self.at.unpack(self.best)
        objective = self.problem.value(W, b)
        still_open = self.heap[0].bound if self.heap else math.inf
        bound = max(min(self.closed, still_open, objective), 0.0)
        self.clock.note(objective, bound)
        certificate = Certificate(Claim.GLOBAL, objective, bound, note=self.note)
        if status is Status.OPTIMAL and certificate.gap > self.options.gap_tol * (1 + 1e-6):
            status = Status.STALLED
        extra = {"open": len(self.heap)}
        history = tuple(self.clock.history)
        return Result(W, b, status, certificate, self.n_opened, history, None, extra)
