"""Proximal points of the k-class hinge losses' conjugates: one small simplex-like block per sample."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def respond_k_class(F, R0, y, prices, delta, knots, R, free):
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
        low = -d * base - knots[0]
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
            for h in range(knots.size):
                room = prices[i, h]
                part = base + (knots[h] + mu) / d - filled
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
