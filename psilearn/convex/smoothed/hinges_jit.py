"""Hinges smoothed over a width, sample by sample, and coordinate descent on a small l1 quadratic.

(t - u)_+ becomes max_{0 <= a <= 1} a (t - u) - width/2 (a - centre)^2, whose slope a = (t - u)/width + centre, clipped
to [0, 1], is a multiplier of the hinge itself; ``prices`` and ``centres`` are (hinges, samples).
"""

from __future__ import annotations

import numpy as np
from numba import njit

_SUMS = {"reassoc", "contract", "nsz"}


@njit(cache=True, nogil=True, fastmath=_SUMS)
def respond(margins, prices, centres, breakpoints, width, reach, alpha, curvature):
    """Fill multipliers and second derivatives of the smoothed risk; return the true risk and the gain sum t_k a_ik.

    Samples within ``reach`` widths of the smoothed part count for the second derivatives: a step may bring them there.
    """
    risk, gain, steepness = 0.0, 0.0, 1.0 / width
    alpha[:] = 0.0
    curvature[:] = 0.0
    for k in range(breakpoints.size):
        t, price, centre = breakpoints[k], prices[k], centres[k]
        used = 0.0
        for i in range(margins.size):
            z = t - margins[i]
            wish = z * steepness + centre[i]
            a = price[i] * min(max(wish, 0.0), 1.0)
            alpha[i] += a
            curvature[i] += price[i] * steepness if -reach < wish < 1.0 + reach else 0.0
            risk += price[i] * max(z, 0.0)
            used += a
        gain += used * t
    return risk, gain


@njit(cache=True, nogil=True, fastmath=_SUMS)
def slope_along(start, end, tau, prices, centres, breakpoints, width):
    """Return the slope in tau of the smoothed risk at the margins start + tau (end - start)."""
    slope, steepness = 0.0, 1.0 / width
    for k in range(breakpoints.size):
        t, price, centre = breakpoints[k], prices[k], centres[k]
        for i in range(start.size):
            du = end[i] - start[i]
            z = t - start[i] - tau * du
            a = min(max(z * steepness + centre[i], 0.0), 1.0)
            slope -= price[i] * a * du
    return slope


@njit(cache=True, nogil=True)
def may_come_near(margins, expected, further, sideways, slack, breakpoints, near):
    """Mark samples whose margins may come near a breakpoint on the way to, and a little beyond, what is expected."""
    for i in range(margins.size):
        step = further * (expected[i] - margins[i])
        aside = sideways * abs(step) + slack
        low, high = margins[i] + min(step, 0.0) - aside, margins[i] + max(step, 0.0) + aside
        near[i] = False
        for k in range(breakpoints.size):
            near[i] |= low <= breakpoints[k] <= high


@njit(cache=True, nogil=True)
def gain_of(alpha, prices, breakpoints):
    """Return the largest sum t_k a_ik with sum_k a_ik = alpha_i and a_ik <= price_ik: hinges fill in their order."""
    gain = 0.0
    for i in range(alpha.size):
        rest = alpha[i]
        for k in range(breakpoints.size):
            part = min(rest, prices[k, i])
            gain += part * breakpoints[k]
            rest -= part
    return gain


@njit(cache=True, nogil=True, fastmath=_SUMS)
def recentre(margins, breakpoints, width, centres):
    """Make the present slopes the centres."""
    for k in range(breakpoints.size):
        for i in range(margins.size):
            centres[k, i] = min(max((breakpoints[k] - margins[i]) / width + centres[k, i], 0.0), 1.0)


@njit(cache=True, nogil=True)
def minimise_quadratic(H, g, v, l1, tol, max_sweeps):
    """Return x that minimises g'(x - v) + (x - v)'H(x - v)/2 + sum_j l1_j |x_j|, by coordinate descent.

    A coordinate without curvature stays. Sweeps over all coordinates alternate with sweeps over those that are not
    zero, until no coordinate's slope is off by more than ``tol`` times its scale l1_j, or the largest of them.
    """
    x, r = v.copy(), g.copy()
    scale = max(l1.max(), 1e-300)
    everything = True
    for _ in range(max_sweeps):
        worst = 0.0
        for j in range(x.size):
            h = H[j, j]
            if h <= 0.0 or not (everything or x[j] != 0.0):
                continue
            wish = x[j] - r[j] / h
            new = max(abs(wish) - l1[j] / h, 0.0) * np.sign(wish)
            step = new - x[j]
            if step != 0.0:
                worst = max(worst, h * abs(step))
                x[j] = new
                for k in range(x.size):
                    r[k] += step * H[j, k]
        done = worst <= tol * scale
        if done and everything:
            break
        everything = done
    return x


@njit(cache=True, nogil=True)
def minimise_columns(data, indices, indptr, chosen, scale, curvature, g, v, l1, ridge, tol, max_sweeps):
    """Do what :func:`minimise_quadratic` does for H = Z'diag(curvature)Z + diag(ridge) without forming it.

    Z are the chosen columns of a CSC matrix, each times its ``scale``, and a last column of ones. A step costs the
    non-zeros of its column in rows that have curvature; these are collected first: reading them is most of the work.
    """
    m = chosen.size
    x, moved, h = v.copy(), np.zeros(curvature.size), ridge.copy()
    most = 0
    for j in range(m):
        most += indptr[chosen[j] + 1] - indptr[chosen[j]]
    values, rows, begin, n = np.empty(most), np.empty(most, indices.dtype), np.zeros(m + 1, np.int64), 0
    for j in range(m):
        for e in range(indptr[chosen[j]], indptr[chosen[j] + 1]):
            if curvature[indices[e]] > 0.0:
                values[n], rows[n] = data[e] * scale[j], indices[e]
                h[j] += curvature[indices[e]] * values[n] ** 2
                n += 1
        begin[j + 1] = n
    h[m] += curvature.sum()
    top = max(l1.max(), 1e-300)
    everything = True
    for _ in range(max_sweeps):
        worst = 0.0
        for j in range(m):
            if h[j] <= 0.0 or not (everything or x[j] != 0.0):
                continue
            r = g[j] + ridge[j] * (x[j] - v[j])
            for e in range(begin[j], begin[j + 1]):
                r += values[e] * curvature[rows[e]] * moved[rows[e]]
            wish = x[j] - r / h[j]
            new = max(abs(wish) - l1[j] / h[j], 0.0) * np.sign(wish)
            step = new - x[j]
            if step != 0.0:
                worst = max(worst, h[j] * abs(step))
                x[j] = new
                for e in range(begin[j], begin[j + 1]):
                    moved[rows[e]] += step * values[e]
        if h[m] > 0.0:
            step = -(g[m] + np.dot(curvature, moved) + ridge[m] * (x[m] - v[m])) / h[m]
            worst = max(worst, h[m] * abs(step))
            x[m] += step
            moved += step
        done = worst <= tol * top
        if done and everything:
            break
        everything = done
    return x


@njit(cache=True, nogil=True)
def project_columns(data, indices, indptr, chosen, limits, signs, upper, curvature, alpha, max_sweeps):
    """Move multipliers, in place, towards |sum_i signs_i alpha_i x_ij| <= limits_j for the chosen j, and balance.

    Projections in turn, each by the samples near a breakpoint (the gain of the others would pay for it) or, if none is,
    by all; within 0 <= alpha <= upper.
    """
    near = curvature > 0.0
    room = near.sum()
    for _ in range(max_sweeps):
        worst = 0.0
        for j in chosen:
            price, square, all_square = 0.0, 0.0, 0.0
            for e in range(indptr[j], indptr[j + 1]):
                i = indices[e]
                price += data[e] * signs[i] * alpha[i]
                all_square += data[e] ** 2
                square += data[e] ** 2 if near[i] else 0.0
            excess = abs(price) - limits[j]
            if excess <= 0.0:
                continue
            worst = max(worst, excess)
            step = np.sign(price) * excess / (square if square > 0.0 else all_square)
            for e in range(indptr[j], indptr[j + 1]):
                i = indices[e]
                if near[i] or square == 0.0:
                    alpha[i] = min(max(alpha[i] - step * data[e] * signs[i], 0.0), upper[i])
        shift = np.dot(signs, alpha) / max(room, 1)
        for i in range(alpha.size):
            if near[i]:
                alpha[i] = min(max(alpha[i] - shift * signs[i], 0.0), upper[i])
        if worst < 1e-6:
            break
