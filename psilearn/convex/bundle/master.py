"""The master program of a bundle method, by an interior point whose linear systems are as small as the bundle.

    minimise  1/2 v'diag(q)v + c'v + sum_d l1_d |v_d| + C max(0, max_r (A_r'v + b_r)) + mu/2 ||v - centre||^2

over v of shape (m, width), whose columns sum to zero if m > 1: the program of :mod:`..interior.method` with one
"sample", whose margins are the cuts. All but the multipliers of the cuts and the free intercepts is eliminated, so an
iteration costs (number of cuts)^2 times the size of v.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dgetrf, dgetrs

from ..interior.method import Iterate, LinearSolve, Program, solve_interior

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Settings:
    """Numbers of the master program, all without unit.

    Attributes
    ----------
    max_iter : int
        Iterations after which the best iterate is returned; 10 to 20 are usual.
    share : float
        Complementarity, relative to the error of stationarity, at which that error is rounding and will not fall.
    diverged : float
        Growth of the error over the least seen that means rounding has taken over.
    ridge, least_ridge : float
        Curvature lent to coefficients without penalty, relative to that of the cuts, and at least.
    intercept_ridge : float
        The same for the intercepts, which stay in the system and need less.
    pivot : float
        Size below which a pivot counts as zero and is replaced.
    """

    max_iter: int = 60
    share: float = 1e-6
    diverged: float = 1e6
    ridge: float = 1e-6
    least_ridge: float = 1e-12
    intercept_ridge: float = 1e-14
    pivot: float = 1e-280


_SETTINGS = Settings()
#: Curvature that stands for infinity, and half of what does in q.
_HELD, _FORBIDDEN = 1e300, 1e200


def _project(D: Array, m: int, x: Array) -> Array:
    """Apply the inverse of diag(D) to rows, restricted to columns that sum to zero if m > 1."""
    out = x / D
    if m > 1:
        weights = (1.0 / D).reshape(m, -1)
        blocks = out.reshape(*x.shape[:-1], m, -1)
        blocks -= blocks.sum(axis=-2, keepdims=True) / weights.sum(axis=0) * weights
    return out


class _Cuts:
    """The margins z_r = -A_r'v; the hinge starts at t_r = b_r."""

    def __init__(self, A: Array, q: Array, m: int) -> None:
        self.A, self.m = A, m
        width = A.shape[1] // m
        # The intercepts (last of each width) are free: they stay in the small system, k - 1 of them if m > 1.
        self.last = np.arange(m) * width + width - 1
        free = self.free = self.last[: max(1, m - 1)]
        self.A_f, self.Q_f = A[:, free], np.diag(q[free])
        if m > 1:
            self.A_f = self.A_f - A[:, self.last[-1:]]
            self.Q_f = self.Q_f + q[self.last[-1]]

    def apply(self, v: Array) -> Array:
        """Return the margins (1, J)."""
        return -(self.A @ v)[None, :]

    def adjoint(self, a: Array) -> Array:
        """Return the transposed map of multipliers (1, J)."""
        return -(a[0] @ self.A)

    def factor(self, d: Array, D: Array, diagonal: Array) -> LinearSolve:
        """Factor the system of the multipliers of the cuts and the free intercepts."""
        d, total = d[0, 0], float(D[0, 0])
        A, J = self.A, d.size
        flat = diagonal <= 0.0
        diagonal[flat] = _SETTINGS.ridge * (d @ A[:, flat] ** 2) + _SETTINGS.least_ridge
        diagonal[self.last] = _HELD
        GA = _project(diagonal, self.m, A)
        S = np.outer(-d / total, d)
        S.flat[:: J + 1] += d
        system = np.empty((J + self.free.size, J + self.free.size))
        np.matmul(S, GA @ A.T, out=system[:J, :J])
        system.flat[: J * system.shape[0] : system.shape[0] + 1] += 1.0
        system[:J, J:] = -S @ self.A_f
        system[J:, :J] = self.A_f.T
        ridge = _SETTINGS.least_ridge + _SETTINGS.intercept_ridge * (d @ self.A_f**2)
        system[J:, J:] = self.Q_f + np.diag(ridge)
        lu, order, _ = dgetrf(system)
        pivots = np.einsum("ii->i", lu)
        pivots[np.abs(pivots) < _SETTINGS.pivot] = _SETTINGS.pivot

        def solve(rhs: Array, offset: Array) -> Array:
            base = _project(diagonal, self.m, rhs)
            right = rhs[self.free] - (rhs[self.last[-1]] if self.m > 1 else 0.0)
            both, _ = dgetrs(lu, order, np.concatenate([offset[0] + S @ (A @ base), right]))
            dv = base - both[:J] @ GA
            dv[self.free] = both[J:]
            if self.m > 1:
                dv[self.last[-1]] = -both[J:].sum()
            return dv

        return solve


class _Best:
    """Keeps the iterate with the least error, its multipliers, and the bound that they prove."""

    def __init__(self, program: Program, m: int, tol: float) -> None:
        self.m, self.tol = m, tol
        self.held = np.where(program.q > _FORBIDDEN, _HELD, 1.0)  # coefficients held at zero have no say
        self.error, self.bound, self.count = np.inf, -np.inf, 0

    def watch(self, it: Iterate) -> bool:
        """Take note of an iterate; True if it is good enough or the last worth having."""
        self.count += 1
        residual = float(np.abs(_project(self.held, self.m, it.gradient)) @ (np.abs(it.v) + 1e-3))
        error = it.gap + residual
        if error < self.error or self.count == 1:
            self.error, self.v, self.shares, self.bound = error, it.v, it.a[0].copy(), it.value - error
        exhausted = it.gap < _SETTINGS.share * residual or not error < _SETTINGS.diverged * self.error
        return error <= self.tol or exhausted or self.count > _SETTINGS.max_iter


def solve_master(
    A: Array, b: Array, C: float, q: Array, c: Array, l1: Array, m: int, mu: float, centre: Array, tol: float
) -> tuple[Array, Array, float]:
    """Return the minimiser v, the cuts' shares (multipliers, summing to at most C) and a bound below the optimum.

    ``tol`` is the absolute accuracy asked of the value.
    """
    program = Program(_Cuts(A, q + mu, m), b[None, None, :], np.full((1, 1), C), q + mu, c - mu * centre, l1)
    best = _Best(program, m, tol)
    # Near the end numbers overflow and vanish; that is noticed, and the best iterate kept.
    with np.errstate(all="ignore"):
        solve_interior(program, centre, best.watch)
    return best.v, best.shares, best.bound + 0.5 * mu * float(centre @ centre)
