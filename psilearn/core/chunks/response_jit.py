"""Proximal points of the conjugates of hinge losses: one small problem per sample, in two classes or in many."""

from __future__ import annotations

import numpy as np

from .._jit import inner, kernel


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
#: Places in ``totals`` of :func:`respond_two_class`: sum of the gains, of <R, F>, of the bends, of the losses; and the
#: largest multiplier.
GAIN, LINEAR, BEND, RISK, PEAK = 0, 1, 2, 3, 4


@inner
def _respond_to_one_hinge(f, inverse_width, reach, C, signs, prices, t, R, moving, curvature, totals):
    """Do what :func:`respond_two_class` does for one hinge and no centre but 0, the usual case, in less time."""
    count = 0
    for start in range(0, f.size, _STRIDE):
        total, linear, bend, risk = 0.0, 0.0, 0.0, 0.0
        for i in range(start, min(start + _STRIDE, f.size)):
            u, price = signs[i] * f[i], C * prices[i]
            part = (t - u) * inverse_width * min(price, reach)
            a = min(max(part, 0.0), price)
            R[i] = signs[i] * a
            total += a
            linear += a * u
            bend += a * a / min(price, reach)
            risk += price * max(t - u, 0.0)
            totals[PEAK] = max(totals[PEAK], a)
            moving[count] = i
            curvature[count] = inverse_width * min(price, reach)
            count += 0.0 <= part <= price
        totals[GAIN] += t * total
        totals[LINEAR] += linear
        totals[BEND] += 0.5 * bend / inverse_width
        totals[RISK] += risk
    return count


@kernel
def respond_two_class(F, chain, inverse_widths, reaches, C, signs, prices, breakpoints, R, moving, curvature, totals):
    """Write R = argmax gain(R) - R f - delta/2 (R - R0)^2 of every sample, and what it adds up to; list where it moves.

    f is the score in the last of the rows ``chain`` of F; the centre R0 is the same at the row before, and so on from
    0. The multiplier of the margin u is alpha = sum_k clip(alpha0 + (t_k - u)/delta - filled_k, 0, C price_k). Returns
    how many samples can move; their curvature is 1/delta.
    """
    n, h = prices.shape
    if h == 1 and chain.size == 1:
        return _respond_to_one_hinge(
            F[chain[0]], inverse_widths[0], reaches[0], C, signs, prices[:, 0], breakpoints[0],
            R, moving, curvature, totals,
        )  # fmt: skip
    count, peak = 0, 0.0
    for start in range(0, n, _STRIDE):
        gain, linear, bend, risk = 0.0, 0.0, 0.0, 0.0
        for i in range(start, min(start + _STRIDE, n)):
            limit = 0.0
            for k in range(h):
                limit += prices[i, k]
            limit *= C
            a, before, worth, u, steepness, moves = 0.0, 0.0, 0.0, 0.0, 0.0, False
            for c in range(chain.size):
                before, a, worth, filled, moves = a, 0.0, 0.0, 0.0, False
                u = signs[i] * F[chain[c], i]
                steepness = min(limit, reaches[c]) * inverse_widths[c]
                for k in range(h):
                    price = C * prices[i, k]
                    part = before + (breakpoints[k] - u) * steepness - filled
                    inside = min(max(part, 0.0), price)
                    moves = moves or inside == part
                    a += inside
                    worth += breakpoints[k] * inside
                    filled += price
            R[i] = signs[i] * a
            if moves:
                moving[count] = i
                curvature[count] = steepness
                count += 1
            gain += worth
            linear += a * u
            if a != before:
                bend += 0.5 * (a - before) * (a - before) / steepness
            for k in range(h):
                risk += C * prices[i, k] * max(breakpoints[k] - u, 0.0)
            peak = max(peak, a)
        totals[GAIN] += gain
        totals[LINEAR] += linear
        totals[BEND] += bend
        totals[RISK] += risk
    totals[PEAK] = peak
    return count


#: Integers are added up as a high and a low half, so that no sum overflows.
HIGH_BITS = 30
_LOW = (1 << HIGH_BITS) - 1


@kernel
def put_on_grid(wish, signs, floors, tops, breakpoints, exponent, D, halves, sums):
    """Put two-class multipliers on the grid of 2^exponent, within their limits, and write them to D, signed.

    ``halves`` receives the exact sums over each class, in units of the grid, ``sums`` the gain and the sum of the
    sizes. Returns the number of roundings on the way of one term of these two.
    """
    n, h = floors.shape
    unit, inverse = 2.0**exponent, 2.0 ** (-exponent)
    for start in range(0, n, _STRIDE):
        gain, size = 0.0, 0.0
        for i in range(start, min(start + _STRIDE, n)):
            alpha = signs[i] * wish[i]
            if not alpha > 0.0:
                D[i] = 0.0
                continue
            whole = min(min(np.rint(alpha * inverse), np.floor(tops[i] * inverse)), 2.0**53)
            side = 1 if signs[i] > 0.0 else 0
            halves[side, 0] += np.int64(whole) >> HIGH_BITS
            halves[side, 1] += np.int64(whole) & _LOW
            alpha = whole * unit
            D[i] = signs[i] * alpha
            size += alpha
            for k in range(h):
                part = min(alpha, floors[i, k])
                alpha -= part
                gain += breakpoints[k] * part
        sums[0] += gain
        sums[1] += size
    return 2 * h + _STRIDE * h + n // _STRIDE + 16
