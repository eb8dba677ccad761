"""Global minimisation by branch and bound over cones of coefficients: few coefficients, any C, truncation at margin 0.

Where a loss is truncated at margin 0, as in psi-learning (Liu, Shen and Doss, Multicategory psi-learning and support
vector machine: computational tools, 2005, (3.1)), multiplying the coefficients moves no margin across the
truncation: all that is not convex lies in their *direction*. The space is covered by cones, one per orthant to begin
with. In a cone the truncation is relaxed by interpolation between its rays, which is exact where no margin changes its
sign (see :mod:`.cones_jit`); the cone with the lowest bound is split where the relaxation errs most, at a
place where a margin passes 0. So the steep solutions of a large C cost little more than the flat ones of a small C.

Certifies ``lower_bound`` <= the global optimum, attested by the search tree; every bound is the least value of a linear
function at the vertices of a cone, less the errors of rounding. Cost: one convex program in p = (k - 1)(d + 1)
variables per cone, and 2^p of them to begin with, so p is limited.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .best_first import BestFirst, declare
from .best_first import Settings as Settings
from .coordinates import BUDGET

Array = NDArray[np.float64]
TAKES = declare("cones", {"truncated"}, few_dimensions=True)


@dataclass(frozen=True)
class _Constants:
    """Fractions of the incumbent's value.

    Attributes
    ----------
    rounding : float
        Bounds are lowered by this: two cones share a ray up to rounding, and the penalty of a point between them is
        that of a point in one of them to about 1e-13. (The losses between them are accounted for row by row.)
    better : float
        The floors of the margins are computed anew when the incumbent has become this much better.
    """

    rounding: float = 1e-9
    better: float = 0.98


_C = _Constants()


class _Cone(NamedTuple):
    bound: float
    number: int
    vertices: Array
    split: Array | None  # None: not bounded yet


class ConeSearch(BestFirst):
    """A best-first search whose parts are cones: ``n_iter`` counts cones, ``extra["open"]`` those left."""

    takes = TAKES
    note = "search over cones of coefficients"

    def _first_parts(self) -> list[Any]:
        p = self.at.p
        self.floor_value = math.inf
        self.side = np.maximum(self.at.box(self.value)[1], 1e-12)
        orthants = itertools.product((1.0, -1.0), repeat=p)
        corners = (np.vstack([np.zeros(p), np.diag(self.side * signs)]) for signs in orthants)
        return [_Cone(0.0, next(self.numbers), vertices, None) for vertices in corners]

    def _split(self, part: _Cone) -> None:
        if part.split is None:
            return self._open(part.vertices.copy(), part.bound)
        j, k, share = int(part.split[0]), int(part.split[1]), part.split[2]
        new = share * part.vertices[j] + (1.0 - share) * part.vertices[k]
        for replaced in (j, k):
            vertices = part.vertices.copy()
            vertices[replaced] = new
            self._open(vertices, part.bound)
        return None

    def _open(self, V: Array, inherited: float) -> None:
        """Bound a cone and keep it if it may hold something better than the incumbent."""
        from .cones_jit import bound_cell

        self.n_steps += 1
        split = np.empty(3)
        if self.value < _C.better * self.floor_value:
            self.floor, self.floor_value = self.parts.margin_floors(self.value), self.value
        bound, theta, there = bound_cell(
            V, self.parts.samples, self.floor, self.side, self.value * BUDGET, self.cutoff, self.tolerance, split
        )
        bound = max(bound - _C.rounding * self.value, inherited)
        self._keep(_Cone(bound, next(self.numbers), V, split), can_split=split[0] >= 0)
        if theta is not None and (self.is_promising(there) or self.n_steps % 64 == 1):
            self.offer(theta)


solve = ConeSearch.solve
