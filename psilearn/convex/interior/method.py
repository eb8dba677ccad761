"""A primal-dual interior point for quadratic programmes with hinges.

    minimise  1/2 v'diag(q)v + c'v + sum_d l1_d |v_d| + sum_ik C_ik max(0, max_j (t_ikj - z_ij(v)))

over v in the range of a sparse basis, where the margins z(v) are linear in v. Two-class machines have one margin per
sample, k-class machines one per rival class, the master programme of a cutting-plane method one "sample" whose margins
are the cuts. Absolute values are hinges, too: l1 |v| = l1 v + 2 l1 (-v)_+.

Predictor and corrector after Mehrotra (On the implementation of a primal-dual interior point method, 1992); each
iteration factors one normal matrix of the size of the basis.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

Array = NDArray[np.float64]

_TO_BOUNDARY = 0.995
_MAX_ITER = 120


class Margins(Protocol):
    """The linear map v -> z (n, J) and what the interior point needs of it."""

    def apply(self, v: Array) -> Array:
        """Return the margins z of shape (n, J)."""

    def adjoint(self, a: Array) -> Array:
        """Return the transposed map of multipliers a (n, J)."""

    def rows(self, index: NDArray[np.intp]) -> Array:
        """Return the rows of the map of some samples, (len(index) * J, size of v)."""

    def normal(self, S: Array) -> Array:
        """Return sum_i Z_i' S_i Z_i for symmetric S (n, J, J), Z_i the rows of sample i."""


@dataclass(frozen=True)
class Programme:
    """The numbers of the programme; ``t`` broadcasts to (n, K, J), ``C`` has shape (n, K)."""

    margins: Margins
    t: Array
    C: Array
    q: Array
    c: Array
    l1: Array
    basis: sp.csr_matrix


@dataclass
class _Hinges:
    """One block of hinges with its primal (s, xi) and dual (alpha, beta) variables.

    s = z + xi - t >= 0 with multiplier alpha; xi >= 0 with multiplier beta; sum_j alpha + beta = C.
    """

    t: Array
    C: Array
    s: Array
    xi: Array
    alpha: Array
    beta: Array

    @classmethod
    def at(cls, t: Array, C: Array, z: Array) -> _Hinges:
        """Start well inside: slacks of order one, multipliers in the middle of their simplex."""
        excess = np.maximum((t - z[:, None, :]).max(axis=2, initial=0.0), 0.0)
        xi = excess + 1.0
        share = C / (z.shape[1] + 1.0)
        alpha = np.repeat(share[:, :, None], z.shape[1], axis=2)
        return cls(t, C, z[:, None, :] + xi[:, :, None] - t, xi, alpha, share.copy())

    def complementarity(self) -> float:
        return float(np.vdot(self.s, self.alpha) + np.vdot(self.xi, self.beta))

    @property
    def size(self) -> int:
        return self.s.size + self.xi.size

    def curvature(self) -> tuple[Array, Array]:
        """Return d = alpha / s and the sums D = sum_j d + beta / xi of the eliminated xi."""
        d = self.alpha / self.s
        return d, d.sum(axis=2) + self.beta / self.xi

    def schur(self) -> Array:
        """Return S (n, J, J) with d(sum_k alpha) = const - S dz once s, xi, beta are eliminated."""
        d, D = self.curvature()
        if d.shape[2] == 1:
            return (d[:, :, 0] * (1.0 - d[:, :, 0] / D)).sum(axis=1)[:, None, None]
        S = -np.einsum("ikj,ikl->ijl", d / D[:, :, None], d)
        index = np.arange(d.shape[2])
        S[:, index, index] += d.sum(axis=1)
        return S

    def prepare(self, z: Array, e_s: Array, e_xi: Array) -> None:
        """Eliminate for the complementarity targets e: d(alpha) = offset - d (dz - sum_j d dz / D)."""
        self._d, self._D = self.curvature()
        self._r_s = self.s - (z[:, None, :] + self.xi[:, :, None] - self.t)
        self._e_s, self._e_xi = e_s, e_xi
        q = e_s / self.s + self._d * self._r_s
        r_C = self.alpha.sum(axis=2) + self.beta - self.C
        self._kappa = (q.sum(axis=2) + e_xi / self.xi + r_C) / self._D
        self.offset = q - self._d * self._kappa[:, :, None]

    def direction(self, dz: Array) -> None:
        """Turn a step dz of the margins into steps of all variables."""
        self.dxi = self._kappa - (self._d * dz[:, None, :]).sum(axis=2) / self._D
        self.ds = dz[:, None, :] + self.dxi[:, :, None] - self._r_s
        self.dalpha = self._e_s / self.s - self._d * self.ds
        self.dbeta = (self._e_xi - self.beta * self.dxi) / self.xi

    def longest(self) -> tuple[float, float]:
        """Longest primal and dual steps that keep everything non-negative."""
        primal = min(_ratio(self.s, self.ds), _ratio(self.xi, self.dxi))
        return primal, min(_ratio(self.alpha, self.dalpha), _ratio(self.beta, self.dbeta))

    def after(self, primal: float, dual: float) -> float:
        """Complementarity after a step."""
        gap = np.vdot(self.s + primal * self.ds, self.alpha + dual * self.dalpha)
        return float(gap + np.vdot(self.xi + primal * self.dxi, self.beta + dual * self.dbeta))

    def move(self, primal: float, dual: float) -> None:
        self.s = self.s + primal * self.ds
        self.xi = self.xi + primal * self.dxi
        self.alpha = self.alpha + dual * self.dalpha
        self.beta = self.beta + dual * self.dbeta


def _ratio(x: Array, dx: Array) -> float:
    falling = dx < 0
    return min(1.0, _TO_BOUNDARY * float(np.min(-x[falling] / dx[falling], initial=np.inf)))


class _Iterate:
    """The point, its two blocks of hinges, and the Newton system around it."""

    def __init__(self, programme: Programme, v: Array) -> None:
        P = self.P = programme
        self.v = v
        self.kinked = np.flatnonzero((P.l1 > 0) & np.isfinite(P.l1) & (np.diff(P.basis.indptr) > 0))
        self.c = P.c.copy()
        self.c[self.kinked] += P.l1[self.kinked]
        self.data = _Hinges.at(P.t, P.C, P.margins.apply(v))
        self.sign = _Hinges.at(np.zeros((1, 1, 1)), 2.0 * P.l1[self.kinked, None], v[self.kinked, None])
        self.blocks = (self.data, self.sign)
        self.common_step = bool(np.any(P.q > 0))

    def measure(self) -> float:
        """Refresh margins and gradient; return the complementarity relative to the objective."""
        P, v = self.P, self.v
        self.z = (P.margins.apply(v), v[self.kinked, None])
        self.a = self.data.alpha.sum(axis=1)
        self.gap = sum(block.complementarity() for block in self.blocks)
        value = 0.5 * float(P.q @ v**2) + float(P.c @ v) + float(P.l1[self.kinked] @ np.abs(v[self.kinked]))
        value += float(np.sum(P.C * np.maximum((P.t - self.z[0][:, None, :]).max(axis=2), 0.0)))
        self.gradient = P.q * v + self.c - P.margins.adjoint(self.a)
        self.gradient[self.kinked] -= self.sign.alpha[:, 0, 0]
        return self.gap / max(abs(value), 1e-300)

    def factor(self) -> bool:
        """Factor the normal matrix B'(diag + sum_i Z_i'S_i Z_i)B, with the least ridge that makes it definite."""
        P, B = self.P, self.P.basis
        N = P.margins.normal(self.data.schur())
        diagonal = P.q.copy()
        diagonal[self.kinked] += self.sign.schur()[:, 0, 0]
        N[np.diag_indices_from(N)] += diagonal
        N = B.T @ (B.T @ N).T
        self.unit = 1.0 / np.sqrt(np.maximum(N.diagonal(), 1e-300))
        self.matrix = N * self.unit[:, None] * self.unit
        for ridge in 10.0 ** np.arange(-15, -3):
            try:
                self.factors = cho_factor(self.matrix + ridge * np.eye(self.unit.size), check_finite=False)
                return True
            except np.linalg.LinAlgError:
                continue
        return False

    def solve(self, rhs: Array) -> Array:
        """Solve the scaled system; one step of refinement takes back what the ridge distorts."""
        rhs = self.unit * rhs
        x = cho_solve(self.factors, rhs, check_finite=False)
        x += cho_solve(self.factors, rhs - self.matrix @ x, check_finite=False)
        return self.unit * x

    def newton(self) -> tuple[Array, float, float]:
        """Solve for the targets the blocks were prepared with; return the step and its primal and dual lengths."""
        P = self.P
        rhs = P.margins.adjoint(self.data.offset.sum(axis=1)) - self.gradient
        rhs[self.kinked] += self.sign.offset[:, 0, 0]
        dv = P.basis @ self.solve(P.basis.T @ rhs)
        self.data.direction(P.margins.apply(dv))
        self.sign.direction(dv[self.kinked, None])
        primal, dual = np.array([block.longest() for block in self.blocks]).min(axis=0)
        if self.common_step:
            primal = dual = min(primal, dual)
        return dv, float(primal), float(dual)

    def advance(self) -> bool:
        """One predictor and corrector step; False, and no step, if the numbers no longer carry one."""
        if not self.factor():
            return False
        for block, z in zip(self.blocks, self.z):
            block.prepare(z, -block.s * block.alpha, -block.xi * block.beta)
        _, primal, dual = self.newton()
        affine = sum(block.after(primal, dual) for block in self.blocks)
        size = sum(block.size for block in self.blocks)
        target = max((affine / self.gap) ** 3, 1e-8) * self.gap / size
        for block, z in zip(self.blocks, self.z):
            e_s = target - block.s * block.alpha - block.ds * block.dalpha
            block.prepare(z, e_s, target - block.xi * block.beta - block.dxi * block.dbeta)
        dv, primal, dual = self.newton()
        self.v = self.v + primal * dv
        for block in self.blocks:
            block.move(primal, dual)
        return True


def solve_interior(programme: Programme, v: Array, watch: Callable[[Array, Array, float], bool]) -> int:
    """Iterate from v until ``watch`` says so or precision is exhausted; return the number of iterations.

    ``watch(v, a, relative)`` sees every iterate: a point, the multipliers a (n, J) of its margins summed over the
    hinges, and the complementarity relative to the objective. It keeps what it wants and returns True to stop.
    """
    iterate = _Iterate(programme, v)
    best = np.inf
    for iteration in range(_MAX_ITER):
        relative = iterate.measure()
        best = min(best, iterate.gap)
        if watch(iterate.v, iterate.a, relative) or relative < 1e-15 or iterate.gap > 1e6 * best:
            return iteration
        if not iterate.advance():
            return iteration
    return _MAX_ITER
