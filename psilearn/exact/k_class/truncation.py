"""What truncation means in :mod:`.coordinates`: the d.c. parts of the objective, and minimisation for a fixed pattern.

A pattern says which samples pay the cap. For a fixed pattern the problem is convex, and for fixed coefficients the best
pattern is read off the margins: minimising in turn never raises the objective, and majorises it more tightly than
the linearisation of the d.c. algorithm does.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ...core.losses import JUMP_TOLERANCE
from ...core.solving import Clock
from . import hinge_qp_jit as hinge_qp
from . import relaxation_jit as relaxation
from .coordinates import BUDGET, Coordinates
from .polyhedron import Polyhedron

Array = NDArray[np.float64]


class Truncation:
    """The d.c. parts of a truncated linear problem.

    Parameters
    ----------
    at : Coordinates
        The problem in its coordinates.
    """

    def __init__(self, at: Coordinates) -> None:
        self.at = at
        loss = at.problem.loss
        self.breakpoints = np.array([t for _, t in loss.hinges])
        self.slopes = np.array([c for c, _ in loss.hinges])
        self.has_jump = not loss.is_continuous
        self.rows = np.ascontiguousarray(at.rows)
        constant = at.problem.best_constant()[0]
        self.box, self.tiny = at.box(constant), 1e-14 * constant

    @cached_property
    def absolute_rows(self) -> tuple[Array, Array]:
        """Hinges that make up the l1 penalty: l1_jl |w_jl| = l1_jl (w_jl)_+ + l1_jl (-w_jl)_+."""
        at, problem = self.at, self.at.problem
        if not problem.penalty.has_l1:
            return np.empty((0, at.p)), np.empty(0)
        price = problem.penalty.l1_array((problem.n_functions, problem.space.dim))
        rows = np.zeros((*price.shape, at.E.shape[1], at.X.shape[1]))
        for l, scale in enumerate(at.scale):
            rows[:, l, :, l] = at.E / scale
        flat = rows.reshape(price.size, at.p)
        return np.vstack([flat, -flat]), np.tile(price.ravel(), 2)

    @cached_property
    def samples(self) -> relaxation.Samples:
        """What the compiled loops need to know of the problem."""
        at, problem, loss = self.at, self.at.problem, self.at.problem.loss
        order, distance = at.neighbours()
        return relaxation.Samples(
            self.rows, problem.costs, self.breakpoints, self.slopes, float(loss.t), float(loss.cap), self.has_jump,
            at.curvature, *self.absolute_rows, order, distance, float(at.radius), problem.penalty.l2 == 0,
        )  # fmt: skip

    @cached_property
    def _untruncated(self) -> tuple[Array, Array]:
        """Breakpoints and coefficients of C sum_i weight_i g(u_i)."""
        costs = self.at.problem.costs
        return np.tile(self.breakpoints, (costs.size, 1)), costs[:, None] * self.slopes

    def tangent(self, theta: Array, breakpoints: Array, coef: Array) -> tuple[float, Array]:
        """Return value and subgradient of P + sum_i sum_m coef_im (breakpoints_im - u_i)_+ at theta."""
        q = self.at.curvature
        scores = self.rows @ theta
        rival = scores.argmin(axis=1)
        short = breakpoints - scores[np.arange(len(rival)), rival][:, None]
        weight = np.where(short > 0, coef, 0.0)
        value = 0.5 * float(q @ theta**2) + float(np.sum(weight * short))
        slope = q * theta - weight.sum(axis=1) @ self.rows[np.arange(len(rival)), rival]
        rows, price = self.absolute_rows
        active = rows @ theta < 0
        value -= float(price[active] @ (rows[active] @ theta))
        return value, slope - price[active] @ rows[active]

    def convex_tangent(self, theta: Array) -> tuple[float, Array]:
        """Return s_1(theta) and a subgradient."""
        return self.tangent(theta, *self._untruncated)

    def concave_values(self, points: Array, index: NDArray[np.int64], out: Array) -> None:
        """Write s_2 = -sum_i cost_i (g(u_i) - cap)_+ at some vertices (t, theta)."""
        relaxation.concave_part(points, index, self.samples, out)

    def margin_floors(self, upper: float) -> Array:
        """Return numbers below which margins do not fall at any point with objective <= ``upper``."""
        return relaxation.margin_floors(self.samples, upper * BUDGET)

    def convex_minimum(self) -> tuple[float, Array]:
        """Minimise s_1 (a jump left out); returns (a lower bound of the minimum, the minimiser found)."""
        theta = np.zeros(self.at.p)
        return self._minimise(self._untruncated[1], np.full(self.at.problem.n, -np.inf), theta, 1e-9), theta

    def alternate(self, theta: Array, clock: Clock, max_iter: int = 50) -> Array:
        """Minimise over coefficients and patterns in turn, from the pattern of ``theta``, while it changes."""
        keep = self._kept(theta)
        for _ in range(max_iter):
            if clock.is_over:
                break
            theta = theta.copy()
            coef = np.where(keep[:, None], self._untruncated[1], 0.0)
            floor = np.where(keep & self.has_jump, self.at.problem.loss.t, -np.inf)
            self._minimise(coef, floor, theta, 1e-8)
            new = self._kept(theta)
            if np.array_equal(new, keep):
                break
            keep = new
        return theta

    def _kept(self, theta: Array) -> NDArray[np.bool_]:
        """Samples for which g is the better price; at a jump those on its good side."""
        loss, u = self.at.problem.loss, self.at.margins(theta)
        return u >= loss.t - JUMP_TOLERANCE if self.has_jump else loss.convex_value(u) < loss.cap

    def _minimise(self, coef: Array, floor: Array, theta: Array, tol: float) -> float:
        at = self.at
        rows, price = self.absolute_rows
        A, tau, first, c = hinge_qp.assemble(
            self.rows, self._untruncated[0], coef, floor, rows, np.zeros(price.size), price
        )
        bound, _ = hinge_qp.solve_hinge_qp(
            A, tau, first, c, np.zeros(at.p), at.curvature, *self.box, theta, tol, self.tiny, np.inf, 0.0
        )
        return float(bound)

    def envelopes(self, low: Array) -> tuple[Array, Array]:
        """Breakpoints and coefficients of the convex envelopes of the losses where margins are at least ``low``."""
        return relaxation.envelopes(low, self.samples)

    def raise_margins(self, cone: Polyhedron, low: Array) -> None:
        """Raise ``low`` to the least margins over a polyhedron."""
        relaxation.lowest_margins(cone.points, cone.alive, cone.top, self.samples, low)
