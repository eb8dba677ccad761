"""Global minimisation by outer approximation (Liu, Shen and Doss, Multicategory psi-learning and support vector
machine: computational tools, 2005, Algorithm 3), with the corrections that make its bound valid.

The objective is s = s_1 + s_2, s_1 = P + C sum_i weight_i g(u_i) convex, s_2 = -C sum_i weight_i (g(u_i) - cap)_+
concave (3.1). Tangents of s_1 at points theta^0, theta^1, .. give the lower envelope

    E(theta) = max_i s_1(theta^i) + <grad s_1(theta^i), theta - theta^i> + s_2(theta)  <=  s(theta),

whose minimum over a box is a concave minimisation over the polyhedron {(t, theta) : t >= all tangents}, attained at a
vertex (4.1). All vertices are kept and updated when a tangent is added; the best one gives the bound and the next
tangent. One class is eliminated first, so that the polyhedron is full-dimensional; the box is derived from the
incumbent (:meth:`.coordinates.Coordinates.box`) and shrinks with it; far vertices are cut off by the convex
relaxation R = P + envelopes of the losses on the margins that remain possible; incumbents are polished.

Certifies: ``lower_bound`` <= the global optimum, re-checked at the end from the list of vertices. Cost: the number of
vertices of a polyhedron in dimension p + 1 with p = (k - 1)(d + 1), so p is limited.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
from numpy.typing import NDArray

from ...core.capabilities import ANY_CLASSES, ANY_LINEAR, Takes
from ...core.problem import Problem
from ...core.result import Certificate, Claim, Result, Status, relative_gap
from ...core.solving import Clock, Options
from .best_first import Polish, Settings
from .coordinates import Coordinates

Array = NDArray[np.float64]

#: Largest number of coordinates (k - 1)(d + 1) the solver takes.
MAX_DIMENSION = 8
#: Cuts are relaxed by multiples of this fraction of the incumbent's value: far above rounding, far below gaps.
_RELAXATION = 1e-10
#: Tangents per iteration: vertices are cheap to update, polishing an incumbent is not.
_CUTS_PER_ITERATION = 6
#: Points whose convex relaxation exceeds the incumbent's value this many times are cut off without a tangent of s_1.
_FAR = 1.7
#: Seconds the re-check takes per vertex, facet and coordinate.
_CHECK_SECONDS = 5e-9
_MAX_VERTICES = 20_000_000


def _too_many_dimensions(problem: Problem) -> str | None:
    p = max(problem.n_classes - 1, 1) * (problem.space.dim + 1)
    if p <= MAX_DIMENSION:
        return None
    return (
        f"solver='outer' enumerates vertices in dimension (k - 1)(d + 1) = {p}, above its limit of {MAX_DIMENSION}; "
        "use solver='patterns' for a proof or solver='dca' for a local solution."
    )


TAKES = Takes(
    "outer",
    losses=frozenset({"truncated", "truncated elsewhere than 0"}),
    spaces=ANY_LINEAR,
    classes=ANY_CLASSES,
    penalties=frozenset({"l2", "l1", "l1 weights", "elastic net", "zero l1 weights"}),
    limit=_too_many_dimensions,
)


def solve(problem: Problem, options: Options, start: Result | None = None) -> Result:
    """Minimise globally to relative gap ``options.gap_tol`` (Algorithm 3 of the paper, corrected).

    Parameters
    ----------
    problem : Problem
        Linear, continuous truncated loss, small dimension (see :data:`TAKES`).
    options : Options
        See :class:`.best_first.Settings`.
    start : Result or None
        A first incumbent.

    Returns
    -------
    Result
        With a global bound; ``extra`` holds the numbers of cuts, vertices, and the last box.
    """
    TAKES.check(problem)
    return _Search(problem, options, start).run()


class _Search:
    """State of one run: incumbent, polyhedron and values of its vertices."""

    def __init__(self, problem: Problem, options: Options, start: Result | None) -> None:
        from .polyhedron import Polyhedron
        from .truncation import Truncation

        self.problem, self.options = problem, options
        self.clock = Clock(options.time_limit)
        self.at = Coordinates.of(problem)
        self.parts = Truncation(self.at)
        self.polish: Polish = options.of(Settings).polish or self._alternate
        self.upper, self.best = math.inf, np.zeros(self.at.p)
        _, b = problem.best_constant()
        self._offer(self.at.pack(np.zeros((problem.n_functions, problem.space.dim)), b))
        lowest, theta = self.parts.convex_minimum()
        self._offer(theta)
        if start is not None:
            self._offer(self.at.pack(start.coef, start.intercept))
        self.side = self.at.box(self.upper)[1]
        # The convex minimum is the best horizontal tangent of s_1; 0 <= s_1 always.
        self.cone = Polyhedron(-self.side, self.side, max(lowest, 0.0) - _RELAXATION * self.upper)
        self.value = np.full(self.cone.alive.size, math.inf)
        self._evaluate(np.arange(self.cone.top))
        self.bound = 0.0
        self.n_cuts, self.n_excluded = 0, 0
        self.low = self.at.margin_floor(self.upper)
        self._envelop()

    def run(self) -> Result:
        """Add tangents at the best vertex until bound and incumbent meet."""
        limit = math.inf if self.options.max_iter is None else self.options.max_iter
        status, n_iter = Status.STALLED, 0
        self._tangent(self.best)
        while True:
            vertex = int(np.argmin(self.value[: self.cone.top]))
            self._raise_bound(float(self.value[vertex]))
            self.clock.note(self.upper, self.bound)
            stop = self._verdict(n_iter, limit)
            if stop is not None:
                status = stop
                break
            n_iter += 1
            if not self._descend(vertex):
                break
        return self._result(status, n_iter)

    def _descend(self, vertex: int) -> bool:
        """Polish the best vertex and add tangents at the best vertices, one after the other."""
        theta = self.cone.points[vertex, 1:].copy()
        self._offer(theta)
        self._shrink()
        for _ in range(_CUTS_PER_ITERATION):
            vertex = int(np.argmin(self.value[: self.cone.top]))
            if self.value[vertex] >= self.upper:
                return True
            theta = self.cone.points[vertex, 1:].copy()
            if not self._exclude(theta) and not self._tangent(theta):
                return False
        return True

    def _exclude(self, theta: Array) -> bool:
        """Cut off a point that the convex relaxation R proves to be far worse than the incumbent.

        The cut is the tangent of R where the segment from a point with R <= level to theta leaves {R <= level}, a set
        that contains every better point.
        """
        if self._relaxed(theta)[0] <= _FAR * self.upper:
            return False
        level = self.upper * (1 + 1e-6)  # keeps a neighbourhood of the incumbent, whatever rounding does
        centre = np.zeros_like(theta)
        if self._relaxed(centre)[0] > level:
            centre = self.best
        inside, outside = 0.0, 1.0
        for _ in range(12):
            middle = 0.5 * (inside + outside)
            if self._relaxed(centre + middle * (theta - centre))[0] > level:
                outside = middle
            else:
                inside = middle
        touch = centre + outside * (theta - centre)
        value, slope = self._relaxed(touch)
        size = float(np.abs(slope) @ self.side)
        h0 = (value - float(slope @ touch) - level) / size
        fresh = self.cone.cut(np.append(0.0, -slope / size), h0, _RELAXATION)
        if fresh is None or fresh.size == 0:
            return False
        self._evaluate(fresh)
        self.n_excluded += 1
        if self.n_excluded % 20 == 0:
            self._envelop()
        return True

    def _relaxed(self, theta: Array) -> tuple[float, Array]:
        return self.parts.relaxed_tangent(theta, *self.envelopes)

    def _envelop(self) -> None:
        """Derive the convex envelopes of the losses from the least margins the polyhedron allows."""
        if self.cone.n_vertices < 100_000:
            self.parts.raise_margins(self.cone, self.low)
        self.envelopes = self.parts.envelopes(self.low)

    def _verdict(self, n_iter: int, limit: float) -> Status | None:
        if relative_gap(self.upper, self.bound) <= self.options.gap_tol:
            return Status.OPTIMAL
        checking = _CHECK_SECONDS * self.cone.n_vertices * self.cone.n_facets * self.cone.dim
        if self.clock.left <= checking:  # leave time for the re-check of the vertices
            return Status.TIME_LIMIT
        if n_iter >= limit or self.cone.n_vertices > _MAX_VERTICES:
            return Status.ITERATION_LIMIT
        return None

    def _offer(self, theta: Array) -> None:
        """Take a point, and what polishing makes of it, as incumbent if it is better."""
        W, b = self.at.unpack(theta)
        for coef, intercept in ((W, b), self.polish(self.problem, W, b)):
            value = self.problem.value(coef, intercept)
            if value < self.upper:
                self.upper, self.best = value, self.at.pack(coef, intercept)

    def _alternate(self, problem: Problem, W: Array, b: Array) -> tuple[Array, Array]:
        return self.at.unpack(self.parts.alternate(self.at.pack(W, b)))

    def _tangent(self, theta: Array) -> bool:
        """Add the tangent of s_1 at theta to the polyhedron."""
        value, slope = self.parts.convex_tangent(theta)
        return self._cut(np.append(1.0, -slope), value - float(slope @ theta))

    def _cut(self, h: Array, h0: float) -> bool:
        fresh = self.cone.cut(h, h0, _RELAXATION * self.upper)
        if fresh is None:
            return False
        self.n_cuts += 1
        self._evaluate(fresh)
        return True

    def _evaluate(self, fresh: NDArray[np.intp]) -> None:
        """Evaluate t + s_2 at new vertices and forget the dead."""
        size = self.cone.alive.size
        if self.value.size < size:
            self.value = np.append(self.value, np.full(size - self.value.size, math.inf))
        self.value[: self.cone.top][~self.cone.alive[: self.cone.top]] = math.inf
        self.parts.concave_values(self.cone.points, fresh, self.value)
        self.value[fresh] += self.cone.points[fresh, 0]

    def _shrink(self) -> None:
        """Cut the box down to the one the present incumbent proves, once it is clearly smaller."""
        side = self.at.box(self.upper)[1]
        smaller = np.flatnonzero((side < 0.9 * self.side) & (side > 0))
        for l, sign in itertools.product(smaller, (1.0, -1.0)):
            h = np.zeros(self.cone.dim)
            h[l + 1] = -sign
            fresh = self.cone.cut(h / side[l], -1.0, _RELAXATION)
            if fresh is None:
                return
            self._evaluate(fresh)
        if smaller.size:
            self.side[smaller] = side[smaller]
            self.low = np.maximum(self.low, self.at.margin_floor(self.upper))
            self._envelop()

    def _raise_bound(self, value: float) -> None:
        """Take the least value over the vertices as bound, less the rounding errors and the relaxation of the cuts.

        The polyhedron contains a global minimiser, so a value above the incumbent's would be a contradiction.
        """
        if value > self.upper + 1e-6 * abs(self.upper):
            raise ArithmeticError(f"The bound {value!r} passed the incumbent {self.upper!r}.")
        self.bound = max(self.bound, min(value, self.upper) - 1e-9 * self.upper)

    def _result(self, status: Status, n_iter: int) -> Result:
        broken, off, closed = self.cone.check(self.upper)
        proved = closed and max(broken, off) < 1e-9
        least = float(self.value[: self.cone.top].min()) - 1e-9 * self.upper
        bound = max(min(self.bound, least), 0.0) if proved else 0.0
        W, b = self.at.unpack(self.best)
        objective = self.problem.value(W, b)
        note = "vertices re-checked: feasible, on their facets, closed under edges"
        certificate = Certificate(Claim.GLOBAL, objective, bound, rechecked=proved, note=note if proved else "")
        if status is Status.OPTIMAL and not certificate.gap <= self.options.gap_tol:
            status = Status.STALLED
        extra = {"cuts": self.n_cuts, "vertices": self.cone.n_vertices, "box": self.side, "exclusions": self.n_excluded}
        history = tuple(self.clock.history)
        return Result(W, b, status, certificate, n_iter, history, None, extra)
