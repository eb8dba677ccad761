"""Global minimisation by branch and bound over cones of coefficients: few coefficients, any C, truncation at margin 0.

Where a loss is truncated at margin 0, as in psi-learning, multiplying the coefficients moves no margin across the
truncation: all that is not convex lies in their *direction*. The space is covered by cones, one per orthant to begin
with. In a cone the truncation is relaxed by interpolation between its rays, which is exact where no margin changes its
sign (see :mod:`.cones_jit`); the cone with the lowest bound is split where the relaxation errs most, at a
place where a margin passes 0. So the steep solutions of a large C cost little more than the flat ones of a small C.

Certifies ``lower_bound`` <= the global optimum, attested by the search tree; every bound is the least value of a linear
function at the vertices of a cone. Cost: one convex programme in p = (k - 1)(d + 1) variables per cone, and 2^p of
them to begin with, so p is limited.
"""

from __future__ import annotations

import heapq
import itertools
import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...core.capabilities import ANY_CLASSES, ANY_LINEAR, Takes
from ...core.problem import Problem
from ...core.result import Result
from ...core.solving import Options
from .best_first import BestFirst
from .best_first import Settings as Settings

Array = NDArray[np.float64]

#: Largest number of coordinates (k - 1)(d + 1) the solver takes.
MAX_DIMENSION = 8
#: Relaxed problems are solved to this fraction of the asked gap.
_CELL_TOLERANCE = 0.02
#: Bounds are lowered by this fraction of the incumbent's value: far above rounding, far below gaps.
_ROUNDING = 1e-9


def _too_many_dimensions(problem: Problem) -> str | None:
    p = max(problem.n_classes - 1, 1) * (problem.space.dim + 1)
    if p <= MAX_DIMENSION:
        return None
    return (
        f"solver='cones' splits a space of dimension (k - 1)(d + 1) = {p}, above its limit of {MAX_DIMENSION}; "
        "use solver='patterns' for a proof or solver='dca' for a local solution."
    )


TAKES = Takes(
    "cones",
    losses=frozenset({"truncated"}),
    spaces=ANY_LINEAR,
    classes=ANY_CLASSES,
    penalties=frozenset({"l2", "l1", "l1 weights", "elastic net", "zero l1 weights"}),
    limit=_too_many_dimensions,
)


def solve(problem: Problem, options: Options, start: Result | None = None) -> Result:
    """Minimise globally to relative gap ``options.gap_tol``.

    Parameters
    ----------
    problem : Problem
        Linear, continuous truncated loss, small dimension (see :data:`TAKES`).
    options : Options
        ``max_iter`` limits the cones; see also :class:`.best_first.Settings`.
    start : Result or None
        A first incumbent.

    Returns
    -------
    Result
        With a global bound; ``n_iter`` counts cones, ``extra["open"]`` those left.
    """
    TAKES.check(problem)
    return _Search(problem, options, start).run()


class _Cone(NamedTuple):
    bound: float
    number: int
    vertices: Array
    split: Array


class _Search(BestFirst):
    """A best-first search whose parts are cones."""

    note = "search over cones of coefficients"

    def __init__(self, problem: Problem, options: Options, start: Result | None) -> None:
        from .cones_jit import bound_cell

        super().__init__(problem, options, start)
        self.bound_cell = bound_cell
        cap = float(problem.loss.cap)
        self.data = (self.parts.rows, problem.costs, self.parts.kinks, self.parts.slopes, cap)
        self.floor_value = math.inf
        self.side = np.maximum(self.at.box(self.value)[1], 1e-12)

    def _begin(self) -> None:
        for signs in itertools.product((1.0, -1.0), repeat=self.at.p):
            self._open(np.vstack([np.zeros(self.at.p), np.diag(self.side * signs)]), 0.0)

    def _split(self, part: _Cone) -> None:
        j, k, share = int(part.split[0]), int(part.split[1]), part.split[2]
        new = share * part.vertices[j] + (1.0 - share) * part.vertices[k]
        for replaced in (j, k):
            vertices = part.vertices.copy()
            vertices[replaced] = new
            self._open(vertices, part.bound)

    def _open(self, V: Array, inherited: float) -> None:
        """Bound a cone and keep it if it may hold something better than the incumbent."""
        self.n_opened += 1
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
        if theta is not None and (there < 1.02 * self.value or self.n_opened % 64 == 1):
            self._offer(theta)
