"""Proximal points of the conjugates of hinge losses: one small problem per sample, in two classes or in many."""

from __future__ import annotations

import numpy as np

from .._jit import kernel


@kernel
def respond_k_class(F, R0, y, prices, delta, breakpoints, R, free):
    """Write argmax_R gain(R_y) - R.f - delta/2 ||R - R0||^2 over each sample's block, and its free coordinates.

    The block is {R_y = s = sum_j a_j, R_j = -a_j <= 0, s <= sum_k price_k}. With the multiplier mu of s = sum_j a_j,

        a_j(mu) = (a0_j + (f_j - mu)/delta)_+ ,   s(mu) = sum_k clip(s0 + (t_k - f_y + mu)/delta - lo_k, 0, price_k),

    and sum_j a_j(mu) - s(mu) is decreasing and piecewise linear: a bracketed Newton search is exact and finite.
    ``free`` marks the set T on which R may move: the Jacobian of -R in f is (I_T - 1_T 1_T'/|T|)/delta.
    """
    n, k = F.shape
    for i in range(n):
        yi, d = y[i], delta[i]
        base = R0[i, yi] - F[i, yi] / d
        high = -np.inf
        for j in range(k):
            R[i, j] = 0.0
            free[i, j] = False
            if j != yi:
                high = max(high, F[i, j] - d * R0[i, j])
        low = -d * base - breakpoints[0]
        if high <= low:
            continue
        mu = low
        for _ in range(100):
            total, slope = 0.0, 0.0
            for j in range(k):
                if j != yi:
                    a = (F[i, j] - mu) / d - R0[i, j]
                    if a > 0.0:
                        total += a
                        slope += 1.0
            rest, filled, inside = 0.0, 0.0, False
            for h in range(breakpoints.size):
                room = prices[i, h]
                part = base + (breakpoints[h] + mu) / d - filled
                if 0.0 < part < room:
                    inside = True
                rest += min(max(part, 0.0), room)
                filled += room
            error = total - rest
            if inside:
                slope += 1.0
            if error > 0.0:
                low = mu
            else:
                high = mu
            if abs(error) <= 1e-15 * (total + rest) or high - low <= 1e-16 * (abs(high) + abs(low)):
                break
            mu = mu + error * d / slope if slope > 0.0 else high
            if not low < mu < high:
                mu = 0.5 * (low + high)
        s = 0.0
        for j in range(k):
            if j != yi:
                a = (F[i, j] - mu) / d - R0[i, j]
                if a > 0.0:
                    s += a
                    R[i, j] = -a
                    free[i, j] = True
        R[i, yi] = s
        free[i, yi] = inside
        if not inside and s > 0.0:  # s lies at a breakpoint; rounding of F/delta must not move it away
            for j in range(k):
                R[i, j] *= rest / s


#: Rows that are added up at a time: sums of such sums lose fewer digits.
_STRIDE = 128
#: Places in ``totals`` of :func:`respond_two_class`: sum of the gains, of <R, F>, of the bends, of the losses.
GAIN, LINEAR, BEND, RISK = 0, 1, 2, 3


@kernel
def respond_two_class(F, columns, widths, reaches, signs, prices, breakpoints, R, free, delta, totals):
    """Write R = argmax gain(R) - R f - delta/2 (R - R0)^2 of every sample, where it can move, and what it adds up to.

    f is the score in the last of ``columns``; the centre R0 is the same at the column before, and so on from 0. The
    multiplier of the margin u is alpha = sum_k clip(alpha0 + (t_k - u)/delta - filled_k, 0, price_k).
    """
    n, h = prices.shape
    for start in range(0, n, _STRIDE):
        gain, linear, bend, risk = 0.0, 0.0, 0.0, 0.0
        for i in range(start, min(start + _STRIDE, n)):
            limit = 0.0
            for k in range(h):
                limit += prices[i, k]
            a, before, worth, u, d, moves = 0.0, 0.0, 0.0, 0.0, 0.0, False
            for c in range(columns.size):
                before, a, worth, filled, moves = a, 0.0, 0.0, 0.0, False
                u = signs[i] * F[i, columns[c]]
                d = widths[c] / min(limit, reaches[c])
                for k in range(h):
                    part = before + (breakpoints[k] - u) / d - filled
                    inside = min(max(part, 0.0), prices[i, k])
                    moves = moves or inside == part
                    a += inside
                    worth += breakpoints[k] * inside
                    filled += prices[i, k]
            R[i], free[i], delta[i] = signs[i] * a, moves, d
            gain += worth
            linear += a * u
            bend += 0.5 * d * (a - before) * (a - before)
            for k in range(h):
                risk += prices[i, k] * max(breakpoints[k] - u, 0.0)
        totals[GAIN] += gain
        totals[LINEAR] += linear
        totals[BEND] += bend
        totals[RISK] += risk
