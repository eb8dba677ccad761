"""The master programme of a bundle method by an interior point whose linear systems are as small as the bundle.

    minimise  1/2 v'diag(q)v + c'v + sum_d l1_d |v_d| + C max(0, max_r (A_r'v + b_r)) + mu/2 ||v - centre||^2

over v of shape (m, width), whose columns sum to zero if m > 1. Predictor and corrector after Mehrotra (1992); all but
the multipliers of the cuts is eliminated, so an iteration costs (number of cuts)^2 times the size of v.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dgetrf, dgetrs

Array = NDArray[np.float64]

_MAX_ITER = 60
_TO_BOUNDARY = 0.995


def _project(D: Array, m: int, x: Array) -> Array:
    """Apply the inverse of diag(D) to rows, restricted to columns that sum to zero if m > 1."""
    out = x / D
    if m > 1:
        weights = (1.0 / D).reshape(m, -1)
        blocks = out.reshape(*x.shape[:-1], m, -1)
        blocks -= blocks.sum(axis=-2, keepdims=True) / weights.sum(axis=0) * weights
    return out


def _longest(x: Array, dx: Array) -> float:
    """Longest step in [0, 1] that keeps x positive."""
    falls = dx < 0.0
    return float(min(1.0, np.min(-_TO_BOUNDARY * x[falls] / dx[falls], initial=1.0)))


def _factor(M: Array) -> tuple[Array, Array]:
    """LU factors with row interchanges; a vanishing pivot is kept off zero, never an exception."""
    lu, order, _ = dgetrf(M)
    pivots = np.einsum("ii->i", lu)
    pivots[np.abs(pivots) < 1e-280] = 1e-280
    return lu, order


def solve_master(
    A: Array, b: Array, C: float, q: Array, c: Array, l1: Array, m: int, mu: float, centre: Array, tol: float
) -> tuple[Array, Array, float]:
    """Return the minimiser v, the cuts' shares (multipliers, summing to at most C) and a bound below the optimum.

    ``tol`` is the absolute accuracy asked of the value.

    Rows beyond the cuts hold the other positive pairs: the pair (xi, beta) of the epigraph, and per penalised
    coefficient the pairs of l1 |v| = l1 v + 2 l1 (-v)_+.
    """
    J, D = A.shape
    v = centre.copy()
    curvature = q + mu
    kinked = np.flatnonzero(l1 > 0)
    P = kinked.size
    lam = l1[kinked]
    linear = c + l1
    Av = A @ v + b
    xi = max(0.0, Av.max()) + 1.0
    # x: primal slacks, y: their multipliers; blocks are cuts, xi, (v + slack) >= 0 and slack >= 0 per kink.
    x = np.empty(J + 1 + 2 * P)
    y = np.empty(J + 1 + 2 * P)
    x[:J] = xi - Av
    x[J] = xi
    y[: J + 1] = C / (J + 1.0)
    slack = np.maximum(-v[kinked], 0.0) + max(0.1, np.abs(v).max())
    x[J + 1 : J + 1 + P] = v[kinked] + slack
    x[J + 1 + P :] = slack
    y[J + 1 : J + 1 + P] = lam
    y[J + 1 + P :] = lam
    # The intercepts (last of each width) are free: they stay in the small system, k - 1 of them if m > 1.
    width = D // m
    last = np.arange(m) * width + width - 1
    F = max(1, m - 1)
    A_f = np.ascontiguousarray(A[:, last[:F]])
    Q_f = np.diag(curvature[last[:F]])
    if m > 1:
        A_f = A_f - A[:, last[F] : last[F] + 1]
        Q_f = Q_f + curvature[last[F]]
    system = np.empty((J + F, J + F))
    da = np.empty(J + F)
    held = np.where(q > 1e200, 1e300, 1.0)  # coefficients held at zero have no say in stationarity
    answer, shares, bound = v, y[:J].copy(), -np.inf
    common = np.any(curvature > 0)
    best = np.inf
    dx = np.zeros(x.size)
    dy = np.zeros(x.size)
    dv = np.zeros(D)
    for _ in range(_MAX_ITER):
        Av = A @ v + b
        s, alpha = x[:J], y[:J]
        s2, a2 = x[J + 1 : J + 1 + P], y[J + 1 : J + 1 + P]
        slack, b2 = x[J + 1 + P :], y[J + 1 + P :]
        gap = np.dot(x, y)
        move = v - centre
        value = 0.5 * np.dot(q, v * v) + np.dot(c, v) + np.dot(l1, np.abs(v)) + C * max(0.0, Av.max())
        value += 0.5 * mu * np.dot(move, move)
        gradient = q * v + mu * move + linear + alpha @ A
        gradient[kinked] -= a2
        residual = np.dot(np.abs(_project(held, m, gradient)), np.abs(v) + 1e-3)
        error = gap + residual
        if error < best:
            best, answer, shares, bound = error, v, y[:J].copy(), value - error
        # Stop when it is good enough, or when precision is exhausted (a NaN fails the last comparison).
        if error <= tol or gap < 1e-6 * residual or not error < 1e6 * best:
            break
        # Curvatures and the small system (I + S K) da = ...
        d = alpha / s
        total = d.sum() + y[J] / x[J]
        d2 = a2 / s2
        total2 = d2 + b2 / slack
        diagonal = curvature.copy()
        diagonal[kinked] += d2 * (1.0 - d2 / total2)
        flat = diagonal <= 0.0  # unpenalised coefficients: a ridge small beside the curvature of the cuts
        diagonal[flat] = 1e-6 * (d @ A[:, flat] ** 2) + 1e-12
        diagonal[last] = 1e300
        GA = _project(diagonal, m, A)
        K = GA @ A.T
        system[:J, :J] = np.eye(J) + (K.T * d).T - np.outer(d, d @ K) / total
        system[:J, J:] = np.outer(d, d @ A_f) / total - (A_f.T * d).T
        system[J:, :J] = A_f.T
        system[J:, J:] = Q_f
        np.einsum("ii->i", system)[J:] += 1e-12 + 1e-14 * (d @ A_f**2)
        factors = _factor(system)
        r_s = s - (x[J] - Av)
        r_C = alpha.sum() + y[J] - C
        r_s2 = s2 - (v[kinked] + slack)
        r_C2 = a2 + b2 - 2.0 * lam
        target = 0.0
        for phase in range(2):
            e = target - x * y
            if phase == 1:
                e -= dx * dy
            h = e[:J] / s + d * r_s
            kappa = (h.sum() + e[J] / x[J] + r_C) / total
            offset = h - d * kappa
            h2 = e[J + 1 : J + 1 + P] / s2 + d2 * r_s2
            kappa2 = (h2 + e[J + 1 + P :] / slack + r_C2) / total2
            rhs = -gradient
            rhs[kinked] += h2 - d2 * kappa2
            base = _project(diagonal, m, rhs)
            M = A @ base
            da[:J] = offset + d * M - d * (np.dot(d, M) / total)
            da[J:] = rhs[last[:F]]
            if m > 1:
                da[J:] -= rhs[last[F]]
            da, _ = dgetrs(*factors, da)
            dv = base - da[:J] @ GA
            dv[last[:F]] = da[J:]
            if m > 1:
                dv[last[F]] = -da[J:].sum()
            dz = -(A @ dv)
            dx[J] = kappa - np.dot(d, dz) / total
            dx[:J] = dz + dx[J] - r_s
            dw = dv[kinked]
            dx[J + 1 + P :] = kappa2 - d2 * dw / total2
            dx[J + 1 : J + 1 + P] = dw + dx[J + 1 + P :] - r_s2
            dy[:] = (e - y * dx) / x
            primal, dual = _longest(x, dx), _longest(y, dy)
            if common:
                primal = dual = min(primal, dual)
            if phase == 0:
                affine = np.dot(x + primal * dx, y + dual * dy)
                target = max((affine / gap) ** 3, 1e-8) * gap / x.size
        v = v + primal * dv
        x = x + primal * dx
        y = y + dual * dy
    return answer, shares, bound
