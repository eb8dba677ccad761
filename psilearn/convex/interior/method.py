"""A primal-dual interior point for quadratic programs with hinges.

    minimise  1/2 v'diag(q)v + c'v + sum_d l1_d |v_d| + sum_ik C_ik max(0, max_j (t_ikj - z_ij(v)))

where the margins z(v) are linear in v. Two-class problems have one margin per sample, k-class problems one per rival
class, the master program of a cutting-plane method one "sample" whose margins are the cuts. Absolute values are hinges,
too: l1 |v| = l1 v + 2 l1 (-v)_+.

Predictor and corrector are those of :mod:`.predictor_corrector`. Eliminating slacks and multipliers leaves
one linear system in v, which the caller solves in the way that suits its margins.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from .predictor_corrector import StepRules, predictor_corrector

Array = NDArray[np.float64]

#: (rhs, offset) -> dv with (diag + sum_i Z_i'S_i Z_i) dv = rhs + sum_i Z_i'offset_i, Z_i the map of sample i's margins.
LinearSolve = Callable[[Array, Array], Array]


@dataclass(frozen=True)
class Settings:
    """Numbers of the method, all without unit.

    Attributes
    ----------
    max_iter : int
        Iterations; 10 to 30 are usual.
    exhausted : float
        Complementarity relative to the objective at which rounding is all that is left.
    diverged : float
        Growth of the complementarity over the least seen that means rounding has taken over.
    """

    max_iter: int = 120
    exhausted: float = 1e-15
    diverged: float = 1e6


_SETTINGS = Settings()


class Margins(Protocol):
    """The linear map v -> z (n, J) and what the interior point needs of it."""

    def apply(self, v: Array) -> Array:
        """Return the margins z of shape (n, J)."""

    def adjoint(self, a: Array) -> Array:
        """Return the transposed map of multipliers a (n, J)."""

    def factor(self, d: Array, D: Array, diagonal: Array) -> LinearSolve | None:
        """Return the solver of the Newton equations, S as in :func:`schur`; None if rounding makes them indefinite."""


@dataclass(frozen=True)
class Program:
    """The numbers of the program; ``t`` broadcasts to (n, K, J), ``C`` has shape (n, K).

    An infinite l1 weight says that the coefficient is zero; the margins see to it.
    """

    margins: Margins
    t: Array
    C: Array
    q: Array
    c: Array
    l1: Array


def schur(d: Array, D: Array) -> Array:
    """Return S_i = sum_k diag(d_ik) - d_ik d_ik'/D_ik, (n, J, J): d(sum_k alpha) = const - S dz."""
    if d.shape[2] == 1:
        return (d[:, :, 0] * (1.0 - d[:, :, 0] / D)).sum(axis=1)[:, None, None]
    S = -np.einsum("ikj,ikl->ijl", d / D[:, :, None], d)
    index = np.arange(d.shape[2])
    S[:, index, index] += d.sum(axis=1)
    return S


class _Hinges:
    """One block of hinges; its primal (s, xi) and dual (alpha, beta) variables are views of two flat vectors x and y.

    s = z + xi - t >= 0 with multiplier alpha; xi >= 0 with multiplier beta; sum_j alpha + beta = C.
    """

    def __init__(self, t: Array, C: Array, z: Array, x: Array, y: Array) -> None:
        """Start well inside: slacks of order one, multipliers in the middle of their simplex."""
        self.t, self.C, self.shape = t, C, (*C.shape, z.shape[1])
        (self.s, self.xi), (self.alpha, self.beta) = self.parts(x), self.parts(y)
        self.xi[:] = np.maximum((t - z[:, None, :]).max(axis=2, initial=0.0), 0.0) + 1.0
        self.s[:] = z[:, None, :] + self.xi[:, :, None] - t
        self.beta[:] = C / (z.shape[1] + 1.0)
        self.alpha[:] = self.beta[:, :, None]

    def parts(self, flat: Array) -> tuple[Array, Array]:
        """Return the parts (n, K, J) of s or alpha and (n, K) of xi or beta as views."""
        rows = self.C.size * self.shape[2]
        return flat[:rows].reshape(self.shape), flat[rows:].reshape(self.C.shape)

    def linearise(self, z: Array) -> None:
        """Note curvatures d = alpha / s, their sums D with that of xi, and the residuals of the equations."""
        self.d = self.alpha / self.s
        self.D = _sum(self.d) + self.beta / self.xi
        self.r_s = self.s - (z[:, None, :] + self.xi[:, :, None] - self.t)
        self.r_C = _sum(self.alpha) + self.beta - self.C

    def eliminate(self, e: Array) -> Array:
        """Return the offset in d(alpha) = offset - d (dz - sum_j d dz / D), for changes e of the products."""
        e_s, e_xi = self.parts(e)
        wish = e_s / self.s + self.d * self.r_s
        self.kappa = (_sum(wish) + e_xi / self.xi + self.r_C) / self.D
        return wish - self.d * self.kappa[:, :, None]

    def direction(self, dz: Array, dx: Array) -> None:
        """Write the steps of s and xi that follow from a step dz of the margins."""
        ds, dxi = self.parts(dx)
        dxi[:] = self.kappa - _sum(self.d * dz[:, None, :]) / self.D
        ds[:] = dz[:, None, :] + dxi[:, :, None] - self.r_s


def _sum(a: Array) -> Array:
    """Sum over the margins of a hinge."""
    return a[:, :, 0] if a.shape[2] == 1 else a.sum(axis=2)


class Iterate:
    """The point v, slacks x and multipliers y of its two blocks of hinges, and the Newton system around it.

    Attributes
    ----------
    v : ndarray
        The point.
    a : ndarray of shape (n, J)
        Multipliers of the margins, summed over the hinges.
    gap : float
        Complementarity x'y.
    value : float
        Objective at v.
    gradient : ndarray
        Gradient of the Lagrangian in v.
    """

    def __init__(self, program: Program, v: Array) -> None:
        P = self.P = program
        self.v = v
        self.signed = np.flatnonzero((P.l1 > 0) & np.isfinite(P.l1))
        self.l1 = P.l1[self.signed]
        self.c = P.c.copy()
        self.c[self.signed] += self.l1
        z = P.margins.apply(v)
        first = P.C.size * (z.shape[1] + 1)  # variables of the data; those of the absolute values follow
        self.x, self.y = np.empty((2, first + 2 * self.signed.size))
        self.of_data, self.of_sign = slice(0, first), slice(first, None)
        self.data = _Hinges(P.t, P.C, z, self.x[:first], self.y[:first])
        self.sign = _Hinges(
            np.zeros((1, 1, 1)), 2.0 * self.l1[:, None], v[self.signed, None], self.x[first:], self.y[first:]
        )
        self.rules = StepRules(together=bool(np.any(P.q > 0)))

    def measure(self) -> None:
        """Evaluate margins, objective and gradient."""
        P, v = self.P, self.v
        self.z = P.margins.apply(v)
        self.a = self.data.alpha.sum(axis=1)
        self.gap = float(self.x @ self.y)
        risk = float(np.sum(P.C * np.maximum((P.t - self.z[:, None, :]).max(axis=2), 0.0)))
        self.value = 0.5 * float(P.q @ v**2) + float(P.c @ v) + float(self.l1 @ np.abs(v[self.signed])) + risk
        self.gradient = P.q * v + self.c - P.margins.adjoint(self.a)
        self.gradient[self.signed] -= self.sign.alpha[:, 0, 0]

    def newton(self, e: Array) -> tuple[Array, Array]:
        """Solve for the step of v that changes the products by e; return those of x and y."""
        rhs = -self.gradient
        rhs[self.signed] += self.sign.eliminate(e[self.of_sign])[:, 0, 0]
        dv = self.dv = self.solve(rhs, self.data.eliminate(e[self.of_data]).sum(axis=1))
        dx = np.empty_like(self.x)
        self.data.direction(self.P.margins.apply(dv), dx[self.of_data])
        self.sign.direction(dv[self.signed, None], dx[self.of_sign])
        return dx, (e - self.y * dx) / self.x

    def advance(self) -> bool:
        """Take one step; False, and none, if the numbers no longer carry one."""
        self.data.linearise(self.z)
        self.sign.linearise(self.v[self.signed, None])
        diagonal = self.P.q.copy()
        diagonal[self.signed] += schur(self.sign.d, self.sign.D)[:, 0, 0]
        solve = self.P.margins.factor(self.data.d, self.data.D, diagonal)
        if solve is None:
            return False
        self.solve = solve
        step = predictor_corrector(self.x, self.y, self.newton, self.rules)
        self.v = self.v + step.primal * self.dv
        self.x += step.primal * step.dx
        self.y += step.dual * step.dy
        return True


def solve_interior(program: Program, v: Array, watch: Callable[[Iterate], bool]) -> int:
    """Iterate from v until ``watch`` says so or precision is exhausted; return the number of iterations.

    ``watch`` sees every iterate, keeps what it wants of it, and returns True to stop.
    """
    iterate = Iterate(program, v)
    least = np.inf
    for iteration in range(_SETTINGS.max_iter):
        iterate.measure()
        least = min(least, iterate.gap)
        done = watch(iterate) or iterate.gap <= _SETTINGS.exhausted * abs(iterate.value)
        # A gap that is not a number fails the comparison.
        if done or not iterate.gap <= _SETTINGS.diverged * least or not iterate.advance():
            return iteration
    return _SETTINGS.max_iter
