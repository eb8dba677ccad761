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

Certifies: ``lower_bound`` <= the global optimum, re-checked at the end from the list of vertices, in floating
point: rounding of the vertices is not accounted for, so the bound is no proof in the last digits. Cost: the number of
vertices of a polyhedron in dimension p + 1 with p = (k - 1)(d + 1), so p is limited.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.problem import Problem
from ...core.result import Result, Status, relative_gap
from ...core.solving import Options
from .best_first import CONTRADICTION, Search, _Contradiction, declare
from .best_first import Settings as Settings

Array = NDArray[np.float64]
TAKES = declare("outer", {"truncated", "truncated elsewhere than 0"}, few_dimensions=True)


@dataclass(frozen=True)
class _Constants:
    """Constants of the method.

    Attributes
    ----------
    relaxation : float
        Cuts are relaxed by multiples of this fraction of the incumbent's value: far above rounding, far below gaps.
    resolution : float
        The unit of that relaxation is at least this fraction of the objective at 0: rounding errors of the tangents are
        near 1e-15 of it, and much larger than 1e-10 of the incumbent's value where that is tiny.
    rounding : float
        The bound is lowered by this fraction of the incumbent's value, for rounding and the relaxation of the cuts.
    accepted : float
        Largest relative distance between a vertex and its facets that the re-check accepts.
    cuts : int
        Tangents per iteration: vertices are cheap to update, polishing an incumbent is not.
    far : float
        Points whose convex relaxation exceeds the incumbent's value this many times are cut off without a tangent.
    level : float
        Better points have R below the incumbent's value; a factor that keeps a neighbourhood of the incumbent.
    exclusions : int
        Number of such cuts after which the envelopes are derived anew.
    envelop : int
        Number of vertices up to which that is worth while: it costs the vertices times the samples.
    smaller : float
        A side of the box is cut when it has shrunk by this factor.
    check_seconds : float
        Seconds the re-check takes per vertex, facet and coordinate.
    max_vertices : int
        Limit of the memory: about 200 bytes each.
    """

    relaxation: float = 1e-10
    resolution: float = 1e-5
    rounding: float = 1e-9
    accepted: float = 1e-9
    cuts: int = 6
    far: float = 1.7
    level: float = 1 + 1e-6
    exclusions: int = 20
    envelop: int = 100_000
    smaller: float = 0.9
    check_seconds: float = 5e-9
    max_vertices: int = 20_000_000


_C = _Constants()


class OuterSearch(Search):
    """A search whose bound is the least value over the vertices of a polyhedron.

    ``extra`` holds the numbers of cuts, of exclusions and of vertices, and the last box.
    """

    takes = TAKES
    note = "vertices of an outer approximation, in floating point: rounding is not accounted for"
    note_every = 1

    def __init__(self, problem: Problem, options: Options, start: Result | None = None) -> None:
        super().__init__(problem, options, start)
        self.raised = 0.0  # the bound before the re-check
        self.n_cuts, self.n_excluded = 0, 0
        self._enclose(floor=0.0)

    @property
    def bound(self) -> float:
        """Least value over the vertices, less the rounding errors and the relaxation of the cuts."""
        return self.raised

    def _enclose(self, floor: float) -> None:
        """Begin with the box that the incumbent proves; ``floor`` <= s_1."""
        from .polyhedron import Polyhedron

        self.side = self.at.box(self.value)[1]
        self.cone = Polyhedron(-self.side, self.side, floor - _C.relaxation * self.value)
        self.values = np.full(self.cone.alive.size, math.inf)

    def _begin(self) -> None:
        # The convex minimum is the best horizontal tangent of s_1; 0 <= s_1 always.
        self._enclose(max(self.convex_bound, 0.0))
        self._evaluate(np.arange(self.cone.top))
        self.low = self.parts.margin_floors(self.value)
        self._envelop()
        self._tangent(self.best)

    def _is_done(self) -> bool:
        """Take the least value over the vertices as bound and compare it with the incumbent.

        The polyhedron contains a global minimiser, so a value above the incumbent's would be a contradiction.
        """
        least = float(self.values[: self.cone.top].min())
        if least > self.value + CONTRADICTION * abs(self.value):
            raise _Contradiction(f"The bound {least!r} passed the incumbent {self.value!r}.")
        self.raised = max(self.raised, min(least, self.value) - _C.rounding * self.value)
        return relative_gap(self.value, self.raised) <= self.options.gap_tol

    def _limit_reached(self) -> Status | None:
        checking = _C.check_seconds * self.cone.n_vertices * self.cone.n_facets * self.cone.dim
        if self.clock.left <= checking:  # leave time for the re-check of the vertices
            return Status.TIME_LIMIT
        return Status.ITERATION_LIMIT if self.cone.n_vertices > _C.max_vertices else super()._limit_reached()

    def _step(self) -> bool:
        """Polish the best vertex and add tangents at the best vertices, one after the other."""
        self.n_steps += 1
        self.offer(self._best_vertex()[1])
        self._shrink()
        for _ in range(_C.cuts):
            value, theta = self._best_vertex()
            if value >= self.value or self.clock.is_over:
                return True
            if not self._exclude(theta) and not self._tangent(theta):
                return False
        return True

    def _best_vertex(self) -> tuple[float, Array]:
        vertex = int(np.argmin(self.values[: self.cone.top]))
        return float(self.values[vertex]), self.cone.points[vertex, 1:].copy()

    def _tangent(self, theta: Array) -> bool:
        """Add the tangent of s_1 at theta to the polyhedron."""
        value, slope = self.parts.convex_tangent(theta)
        unit = max(self.value, _C.resolution * self.problem.zero_value)
        is_cut = self._cut(np.append(1.0, -slope), value - float(slope @ theta), unit) is not None
        self.n_cuts += is_cut
        return is_cut

    def _exclude(self, theta: Array) -> bool:
        """Cut off a point that the convex relaxation R proves to be far worse than the incumbent.

        The cut is the tangent of R where the segment from a point with R <= level to theta leaves {R <= level}, a set
        that contains every better point.
        """
        if self._relaxed(theta)[0] <= _C.far * self.value:
            return False
        level = self.value * _C.level
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
        if not self._cut(np.append(0.0, -slope / size), (value - float(slope @ touch) - level) / size, 1.0):
            return False
        self.n_excluded += 1
        if self.n_excluded % _C.exclusions == 0:
            self._envelop()
        return True

    def _relaxed(self, theta: Array) -> tuple[float, Array]:
        return self.parts.tangent(theta, *self.envelopes)

    def _envelop(self) -> None:
        """Derive the convex envelopes of the losses from the least margins the polyhedron allows."""
        if self.cone.n_vertices < _C.envelop:
            self.parts.raise_margins(self.cone, self.low)
        self.envelopes = self.parts.envelopes(self.low)

    def _shrink(self) -> None:
        """Cut the box down to the one the present incumbent proves, once it is clearly smaller."""
        side = self.at.box(self.value)[1]
        smaller = np.flatnonzero((side < _C.smaller * self.side) & (side > 0))
        for l, sign in itertools.product(smaller, (1.0, -1.0)):
            h = np.zeros(self.cone.dim)
            h[l + 1] = -sign
            if self._cut(h / side[l], -1.0, 1.0) is None:
                return
        if smaller.size:
            self.side[smaller] = side[smaller]
            self.low = np.maximum(self.low, self.parts.margin_floors(self.value))
            self._envelop()

    def _cut(self, h: Array, h0: float, unit: float) -> int | None:
        """Add h'z >= h_0, relaxed in this unit; returns the number of new vertices, None if rounding forbids it."""
        fresh = self.cone.cut(h, h0, _C.relaxation * unit)
        if fresh is None:
            return None
        self._evaluate(fresh)
        return int(fresh.size)

    def _evaluate(self, fresh: NDArray[np.intp]) -> None:
        """Evaluate t + s_2 at new vertices and forget the dead."""
        size = self.cone.alive.size
        if self.values.size < size:
            self.values = np.append(self.values, np.full(size - self.values.size, math.inf))
        self.values[: self.cone.top][~self.cone.alive[: self.cone.top]] = math.inf
        self.parts.concave_values(self.cone.points, fresh, self.values)
        self.values[fresh] += self.cone.points[fresh, 0]

    def _proof(self, status: Status) -> tuple[float, bool]:
        """Re-check the vertices: feasible, on their facets, closed under edges; without that nothing is proved."""
        if status is Status.INTERRUPTED:  # perhaps between a cut and the values of its vertices
            self._evaluate(np.flatnonzero(self.cone.alive[: self.cone.top]))
        broken, off, is_closed = self.cone.check(self.value)
        if not is_closed or max(broken, off) >= _C.accepted:
            return 0.0, False
        return float(self.values[: self.cone.top].min()) - _C.rounding * self.value, True

    def _facts(self) -> dict[str, Any]:
        cuts = {"cuts": self.n_cuts, "exclusions": self.n_excluded}
        return {**cuts, "vertices": self.cone.n_vertices, "box": self.side}


solve = OuterSearch.solve
