"""Small dense convex programs made of hinges, by Mehrotra's primal-dual interior point method, with a rigorous bound.

    minimise  1/2 sum_l q_l theta_l^2 + lin'theta + sum_g c_g xi_g
    subject to  xi_g >= 0,   a_r'theta + xi_g >= tau_r   for the rows r of group g;   xi_g = 0 where c_g = inf

A group is one breakpoint of one sample's loss with a row per rival class, one absolute value, or (c_g = inf) one hard
constraint. Its rows are ``first[g] .. first[g + 1] - 1``.

Certifies a lower bound over a box, by weak duality, less all errors of rounding (:func:`dual_value`), converged or
not. Cost: O(rows * p^2) per step, some twenty steps.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...core._jit import allocating_inner, allocating_kernel, inner, kernel
from .newton_step_jit import aim, direction, factor, step_lengths

Array = NDArray[np.float64]
#: Steps; some twenty suffice, more than this says that rounding forbids the accuracy that is asked.
_MAX_STEPS = 60
#: Share of the way to the boundary that a step goes (Mehrotra's rule).
_TO_BOUNDARY = 0.995
#: Absolute violation of hard constraints, in units of the margins, up to which a point counts as feasible.
_FEASIBLE = 1e-8
#: Spacing of the floating-point numbers at 1.
_EPS = 2.0**-52


class Scratch(NamedTuple):
    """Memory of the method: vectors over the rows, over the groups and over theta, and two matrices."""

    by_row: NDArray[np.float64]
    by_group: NDArray[np.float64]
    vectors: NDArray[np.float64]
    pooled: NDArray[np.float64]
    H: NDArray[np.float64]


@allocating_inner
def make_scratch(n_rows, n_groups, p):
    """Allocate the memory for a program of this size."""
    by_row, by_group, vectors = np.empty((6, n_rows)), np.empty((4, n_groups)), np.empty((2, p))
    return Scratch(by_row, by_group, vectors, np.empty((n_groups, p)), np.empty((p, p)))


@inner
def combine(A, tau, alpha, v, size):
    """Add A'alpha to v and |A|'alpha to size; returns (alpha'tau, alpha'|tau|)."""
    gain, total = 0.0, 0.0
    for r in range(A.shape[0]):
        gain += alpha[r] * tau[r]
        total += abs(alpha[r] * tau[r])
        for l in range(v.size):
            v[l] += alpha[r] * A[r, l]
            size[l] += abs(alpha[r] * A[r, l])
    return gain, total


@inner
def rounding(n_terms):
    """Relative error of a sum of products, of its factors (each to a few units) and of the scaling of the features."""
    return (n_terms + 32.0) * _EPS


@inner
def dual_value(A, tau, alpha, lin, q, lower, upper, v, size):
    """Value of the Lagrangian dual at alpha >= 0 with sum_{r in g} alpha_r <= c_g, minimised over a box.

    D(alpha) = sum_r alpha_r tau_r + sum_l min_{lower_l <= theta_l <= upper_l} 1/2 q_l theta_l^2 - v_l theta_l,
    v = A'alpha - lin. Weak duality makes it a lower bound for every theta in the box, converged or not. It is concave
    in v with slope -theta, so an error of v_l costs at most that times the largest |theta_l| in question: the side of
    the box, or |v_l| / q_l. Errors of A and of the sums over the groups, relative to each term, are covered by the
    same allowance. ``v`` and ``size`` are scratch.
    """
    for l in range(lin.size):
        v[l] = -lin[l]
        size[l] = abs(lin[l])
    unit = rounding(A.shape[0] + q.size)
    gain, total = combine(A, tau, alpha, v, size)
    for l in range(q.size):
        reach = max(abs(lower[l]), abs(upper[l]))
        if q[l] > 0.0:
            reach = min(reach, (abs(v[l]) + unit * size[l]) / q[l])
        if size[l] > 0.0:
            total += size[l] * reach
        if v[l] == 0.0:
            continue
        theta = v[l] / q[l] if q[l] > 0.0 else v[l] * np.inf
        theta = min(max(theta, lower[l]), upper[l])
        part = (0.5 * q[l] * theta - v[l]) * theta
        gain += part
        total += abs(part)
    return gain - unit * total


@inner
def primal_value(A, tau, first, c, lin, q, theta):
    """Objective at theta with the best xi (hard constraints are not priced)."""
    total = 0.0
    for l in range(q.size):
        total += (0.5 * q[l] * theta[l] + lin[l]) * theta[l]
    for g in range(first.size - 1):
        if c[g] == np.inf:
            continue
        worst = 0.0
        for r in range(first[g], first[g + 1]):
            short = tau[r]
            for l in range(q.size):
                short -= A[r, l] * theta[l]
            worst = max(worst, short)
        total += c[g] * worst
    return total


@inner
def _start(A, tau, first, c, theta, alpha, s, xi, beta):
    """Begin near theta: slacks of the groups one above what is missing, multipliers half of what they may be."""
    hard_price = 1.0
    for g in range(c.size):
        if c[g] != np.inf:
            hard_price = max(hard_price, c[g])
    for g in range(c.size):
        is_hard = c[g] == np.inf
        price = hard_price if is_hard else c[g]
        worst = 0.0
        for r in range(first[g], first[g + 1]):
            s[r] = -tau[r]
            for l in range(theta.size):
                s[r] += A[r, l] * theta[l]
            worst = max(worst, -s[r])
        xi[g] = 0.0 if is_hard else worst + 1.0
        beta[g] = 1.0 if is_hard else 0.5 * price
        for r in range(first[g], first[g + 1]):
            s[r] = max(s[r], 1.0) if is_hard else s[r] + xi[g]
            alpha[r] = 0.5 * price / (first[g + 1] - first[g])


@inner
def _measure(A, tau, first, c, theta, alpha, s, xi, beta, gap):
    """Write how far the slacks of the rows are from their rows; returns (mu, complementary pairs, violation)."""
    mu, count, broken = 0.0, 0, 0.0
    for g in range(c.size):
        for r in range(first[g], first[g + 1]):
            mu += s[r] * alpha[r]
            count += 1
            room = xi[g] - tau[r]
            for l in range(theta.size):
                room += A[r, l] * theta[l]
            gap[r] = room - s[r]
            if c[g] == np.inf:
                broken = max(broken, -room)
        if c[g] != np.inf:
            mu += xi[g] * beta[g]
            count += 1
    return mu / max(count, 1), count, broken


@inner
def _residual(A, lin, q, theta, alpha, out):
    """Write the gradient of the Lagrangian in theta."""
    for l in range(q.size):
        out[l] = q[l] * theta[l] + lin[l]
    for r in range(A.shape[0]):
        for l in range(q.size):
            out[l] -= alpha[r] * A[r, l]


@inner
def _advance(first, c, theta, alpha, s, xi, beta, dtheta, dalpha, ds, dxi, primal, dual):
    """Take the step; multipliers that rounding makes too large are reduced, so that the bound stays valid."""
    for l in range(theta.size):
        theta[l] += primal * dtheta[l]
    for g in range(c.size):
        used = 0.0
        for r in range(first[g], first[g + 1]):
            alpha[r] += dual * dalpha[r]
            used += alpha[r]
            s[r] += primal * ds[r]
        if c[g] != np.inf:
            xi[g] += primal * dxi[g]
            beta[g] = c[g] - used
            if beta[g] <= 0.0:
                for r in range(first[g], first[g + 1]):
                    alpha[r] *= (1.0 - 1e-12) * c[g] / used
                beta[g] = 1e-12 * c[g]


@kernel
def minimise(A, tau, first, c, lin, q, lower, upper, theta, rtol, atol, cutoff, loose, best_alpha, scratch):
    """Minimise by Mehrotra's predictor-corrector method, starting near ``theta`` (overwritten).

    Stops when the gap between primal value and dual bound is at most ``rtol * |value| + atol`` and hard constraints
    hold, or when the bound exceeds ``cutoff``. What has a value below a finite cutoff will not be discarded, so
    the gap may then be ``loose`` times the distance between the two. Returns the bound, that of :func:`dual_value` at
    ``best_alpha``, which is written.
    """
    by_row, by_group, H, pooled = scratch.by_row, scratch.by_group, scratch.H, scratch.pooled
    alpha, s, dalpha, ds, target_r, gap = by_row[0], by_row[1], by_row[2], by_row[3], by_row[4], by_row[5]
    xi, beta, dxi, target_g = by_group[0], by_group[1], by_group[2], by_group[3]
    dtheta, residual = scratch.vectors[0], scratch.vectors[1]
    best = -np.inf
    best_alpha[:] = 0.0
    _start(A, tau, first, c, theta, alpha, s, xi, beta)
    for _ in range(_MAX_STEPS):
        bound = dual_value(A, tau, alpha, lin, q, lower, upper, dtheta, residual)
        if bound > best:
            best = bound
            for r in range(alpha.size):
                best_alpha[r] = alpha[r]
        value = primal_value(A, tau, first, c, lin, q, theta)
        mu, count, broken = _measure(A, tau, first, c, theta, alpha, s, xi, beta, gap)
        allowed = rtol * abs(value) + atol
        if loose > 0.0:
            allowed = max(allowed, loose * (cutoff - value))
        if best > cutoff or (value - best <= allowed and broken <= _FEASIBLE):
            break
        _residual(A, lin, q, theta, alpha, residual)
        target_r[:] = 0.0
        target_g[:] = 0.0
        factor(A, first, c, q, alpha, s, xi, beta, pooled, H)
        primal, dual = 0.0, 0.0
        for phase in range(2):  # predictor, corrector; one place of call each, which halves the time to compile
            direction(
                A, first, c, H, pooled, alpha, s, xi, beta, gap, residual, target_r, target_g, dtheta, dalpha, ds, dxi
            )
            primal, dual = step_lengths(first, c, alpha, s, xi, beta, dalpha, ds, dxi)
            if phase == 0:
                aim(first, c, alpha, s, xi, beta, dalpha, ds, dxi, primal, dual, mu, count, target_r, target_g)
        primal, dual = _TO_BOUNDARY * primal, _TO_BOUNDARY * dual
        _advance(first, c, theta, alpha, s, xi, beta, dtheta, dalpha, ds, dxi, primal, dual)
    return best


def solve_hinge_qp(
    A: Array, tau: Array, first: NDArray[np.intp], c: Array, lin: Array, q: Array, lower: Array, upper: Array,
    theta: Array, rtol: float, atol: float, cutoff: float, loose: float,
) -> tuple[float, Array]:  # fmt: skip
    """Allocate and call :func:`minimise`; returns (bound, alpha)."""
    alpha, scratch = np.empty(tau.size), make_scratch.py_func(tau.size, c.size, q.size)
    return minimise(A, tau, first, c, lin, q, lower, upper, theta, rtol, atol, cutoff, loose, alpha, scratch), alpha


@allocating_kernel
def assemble(rows, breakpoints, coef, floor, extra_rows, extra_tau, extra_cost):
    """Write a convex node as groups of rows: returns (A, tau, first, c).

    Sample i pays sum_m coef[i, m] (breakpoints[i, m] - u_i)_+ with u_i = min_r rows[i, r]'theta and must keep
    u_i >= floor[i] (-inf: no constraint). ``extra_cost[e] * (extra_tau[e] - extra_rows[e]'theta)_+`` are further
    hinges, or hard constraints where the cost is infinite.
    """
    n, n_rivals, p = rows.shape
    n_groups = extra_cost.size
    for i in range(n):
        for m in range(breakpoints.shape[1]):
            n_groups += coef[i, m] > 0.0
        n_groups += floor[i] > -np.inf
    n_rows = (n_groups - extra_cost.size) * n_rivals + extra_cost.size
    A, tau = np.empty((n_rows, p)), np.empty(n_rows)
    first, c = np.zeros(n_groups + 1, np.int64), np.empty(n_groups)
    g = 0
    for i in range(n):
        for m in range(breakpoints.shape[1] + 1):
            hard = m == breakpoints.shape[1]
            if (floor[i] == -np.inf) if hard else (coef[i, m] <= 0.0):
                continue
            c[g] = np.inf if hard else coef[i, m]
            first[g + 1] = first[g] + n_rivals
            for r in range(n_rivals):
                tau[first[g] + r] = floor[i] if hard else breakpoints[i, m]
                for l in range(p):
                    A[first[g] + r, l] = rows[i, r, l]
            g += 1
    for e in range(extra_cost.size):
        c[g] = extra_cost[e]
        first[g + 1] = first[g] + 1
        tau[first[g]] = extra_tau[e]
        for l in range(p):
            A[first[g], l] = extra_rows[e, l]
        g += 1
    return A, tau, first, c
