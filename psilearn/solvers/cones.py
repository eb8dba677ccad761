"""Global minimisation by branch and bound over cones of coefficients: few coefficients, any C, truncation at margin 0.

Where a loss is truncated at margin 0, as in psi-learning, multiplying the coefficients moves no margin across the
truncation: all that is not convex lies in their *direction*. The space is covered by cones, one per orthant to begin
with. In a cone the truncation is relaxed by interpolation between its rays, which is exact where no margin changes its
sign (see :mod:`psilearn.kernels.cones`); the cone with the lowest bound is split where the relaxation errs most, at a
place where a margin passes 0. So the steep solutions of a large C cost little more than the flat ones of a small C.

Certifies ``lower_bound`` <= the global optimum, attested by the search tree; every bound is the least value of a linear
function at the vertices of a cone. Cost: one convex programme in p = (k - 1)(d + 1) variables per cone, and 2^p of
them to begin with, so p is limited.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..coordinates import Coordinates
from ..problem import Problem
from ..result import Certificate, Claim, Result, Status
from .base import Clock, Options

Array = NDArray[np.float64]
Polish = Callable[[Problem, Array, Array], tuple[Array, Array]]

#: Largest number of coordinates (k - 1)(d + 1) the solver takes.
MAX_DIMENSION = 8
#: Relaxed problems are solved to this fraction of the asked gap.
_CELL_TOLERANCE = 0.02
#: Bounds are lowered by this fraction of the incumbent's value: far above rounding, far below gaps.
_ROUNDING = 1e-9


def refuses(problem: Problem) -> str | None:
    """Say in one sentence why the search over cones cannot take this problem, None if it can."""
    if problem.loss.varies_by_class:
        return 'solver="cones" takes one loss for all classes; use solver="dca".'
    if problem.is_kernel:
        return 'solver="cones" works on coefficients and takes linear problems only; use solver="dca" for kernels.'
    if problem.tilt is not None:
        return 'solver="cones" takes problems without a tilt; use a convex solver for tilted ones.'
    if problem.loss.is_convex:
        return 'The loss is convex, so there is nothing for solver="cones" to do; use solver="auto".'
    if not problem.loss.is_continuous:
        return 'The loss jumps, and solver="cones" needs a continuous one; use solver="patterns" or "mip".'
    if problem.loss.t != 0.0:
        return 'solver="cones" needs a loss that is truncated at margin 0; use solver="outer" or "patterns".'
    if problem.penalty.l0 > 0 or not math.isfinite(problem.norm_bound(1.0)):
        return 'solver="cones" needs a penalty without l0 that bounds every coefficient; use solver="mip".'
    if not np.all(np.isfinite(np.asarray(problem.penalty.l1))):
        return 'solver="cones" takes finite l1 weights only; leave banned features out or use solver="mip".'
    p = max(problem.n_classes - 1, 1) * (problem.space.dim + 1)
    if p > MAX_DIMENSION:
        return (
            f'solver="cones" splits a space of dimension (k - 1)(d + 1) = {p}, above its limit of '
            f'{MAX_DIMENSION}; use solver="patterns" for a proof or solver="dca" for a local solution.'
        )
    return None


def solve(problem: Problem, options: Options, start: Result | None = None) -> Result:
    """Minimise globally to relative gap ``options.gap_tol``.

    Parameters
    ----------
    problem : Problem
        Linear, continuous truncated loss, small dimension (see :func:`refuses`).
    options : Options
        ``max_iter`` limits the cones; ``extra["polish"]``: a function (problem, W, b) -> (W, b) that improves an
        incumbent, by default patterns of truncation and coefficients are minimised in turn.
    start : Result or None
        A first incumbent.

    Returns
    -------
    Result
        With a global bound; ``n_iter`` counts cones, ``extra["open"]`` those left.
    """
    message = refuses(problem)
    if message is not None:
        raise ValueError(message)
    return _Search(problem, options, start).run()


class _Cone(NamedTuple):
    bound: float
    number: int
    vertices: Array
    split: Array


class _Search:
    """State of one run: incumbent and open cones."""

    def __init__(self, problem: Problem, options: Options, start: Result | None) -> None:
        from ..kernels.cones import bound_cell
        from ..truncation import Truncation

        self.problem, self.options = problem, options
        self.clock = Clock(options.time_limit)
        self.at = Coordinates.of(problem)
        self.parts = Truncation(self.at)
        loss = problem.loss
        self.bound_cell = bound_cell
        self.data = (self.parts.rows, problem.costs, self.parts.kinks, self.parts.slopes, float(loss.cap))
        self.polish: Polish = options.extra.get("polish", self._alternate)
        self.closed = math.inf  # least bound of the cones that were closed
        self.frontier = 0.0  # bound of the cone being split: no open one has a lower bound
        self.value, self.best = math.inf, np.zeros(self.at.p)
        self.floor_value = math.inf
        _, b = problem.best_constant()
        self._offer(self.at.pack(np.zeros((problem.n_functions, problem.space.dim)), b))
        self._offer(self.parts.convex_minimum()[1])
        if start is not None:
            self._offer(self.at.pack(start.coef, start.intercept))
        self.side = np.maximum(self.at.box(self.value)[1], 1e-12)
        self.numbers = itertools.count()
        self.n_cells = 0
        self.heap: list[_Cone] = []

    @property
    def cutoff(self) -> float:
        """Cones with a bound of at least this are done."""
        return self.value - self.options.gap_tol * max(self.value, float(np.finfo(float).eps))

    def run(self) -> Result:
        """Split the cone with the lowest bound until none is below the cutoff."""
        limit = math.inf if self.options.max_iter is None else self.options.max_iter
        status = Status.OPTIMAL
        for signs in itertools.product((1.0, -1.0), repeat=self.at.p):
            self._open(np.vstack([np.zeros(self.at.p), np.diag(self.side * signs)]), 0.0)
        while self.heap and self.heap[0].bound < self.cutoff:
            if self.clock.is_over or self.n_cells >= limit:
                status = Status.TIME_LIMIT if self.clock.is_over else Status.ITERATION_LIMIT
                break
            self._split(heapq.heappop(self.heap))
        return self._result(status)

    def _split(self, cell: _Cone) -> None:
        self.frontier = cell.bound
        if self.n_cells % 64 < 2:
            self.clock.note(self.value, min(cell.bound, self.value))
        j, k, share = int(cell.split[0]), int(cell.split[1]), cell.split[2]
        new = share * cell.vertices[j] + (1.0 - share) * cell.vertices[k]
        for replaced in (j, k):
            vertices = cell.vertices.copy()
            vertices[replaced] = new
            self._open(vertices, cell.bound)

    def _open(self, V: Array, inherited: float) -> None:
        """Bound a cone and keep it if it may hold something better than the incumbent."""
        self.n_cells += 1
        split = np.empty(3)
        if self.value < 0.98 * self.floor_value:
            self.floor, self.floor_value = self.at.margin_floor(self.value), self.value
        cutoff, tol = self.cutoff, _CELL_TOLERANCE * self.options.gap_tol * self.value
        bound, theta, there = self.bound_cell(
            V, self.data, self.floor, self.parts.absolute_rows, self.at.curvature, self.side,
            self.value * (1 + 1e-9), cutoff, tol, split,
        )  # fmt: skip
        bound = max(bound - _ROUNDING * self.value, inherited)
        if bound < cutoff and split[0] >= 0:
            heapq.heappush(self.heap, _Cone(bound, next(self.numbers), V, split))
        else:
            self.closed = min(self.closed, bound)
        if theta is not None and (there < 1.02 * self.value or self.n_cells % 64 == 1):
            self._offer(theta)

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
        certificate = Certificate(Claim.GLOBAL, objective, bound, note="search over cones of coefficients")
        if status is Status.OPTIMAL and certificate.gap > self.options.gap_tol * (1 + 1e-6):
            status = Status.STALLED
        extra = {"open": len(self.heap)}
        history = tuple(self.clock.history)
        return Result(W, b, objective, bound, status, certificate, self.n_cells, history, None, extra)
