"""The inner loops of the search that writes a tree: values of multipliers on intervals, and cuts they prove.

A sample's term is the least of cost_i l(u) + alpha_i u over low_i <= u < high_i, exactly as the checker evaluates it:
the loss is linear or concave between the points low, t, the breakpoints above t, and high, so these are enough.
"""

from __future__ import annotations

import numpy as np

from ...core._jit import inner, kernel


@inner
def _loss(u, cost, breakpoints, slopes, t, cap, from_left):
    if u < t or (from_left and u == t):
        return cost * cap
    paid = 0.0
    for k in range(breakpoints.size):
        if breakpoints[k] > u:
            paid += slopes[k] * (breakpoints[k] - u)
    return cost * min(cap, paid)


@inner
def term(alpha, low, high, cost, breakpoints, slopes, t, cap):
    """Return the least cost l(u) + alpha u over [low, high), -inf if there is none."""
    if (alpha < 0.0 and high == np.inf) or (alpha > 0.0 and low == -np.inf):
        return -np.inf
    least = np.inf
    if low < t < high:
        least = _loss(t, cost, breakpoints, slopes, t, cap, False) + alpha * t
    for k in range(breakpoints.size):
        if breakpoints[k] > t and low < breakpoints[k] < high:
            least = min(least, _loss(breakpoints[k], cost, breakpoints, slopes, t, cap, False) + alpha * breakpoints[k])
    if low > -np.inf:
        least = min(least, _loss(low, cost, breakpoints, slopes, t, cap, False) + alpha * low)
    if high < np.inf:
        least = min(least, _loss(high, cost, breakpoints, slopes, t, cap, True) + alpha * high)
    return least


@kernel
def dual_value(a, quantum, low, high, rows, cost, breakpoints, slopes, t, cap, norm, slip, blur, terms, v):
    """Return the dual value of whole multipliers ``a``; leaves all terms and sum_i alpha_i a_i behind.

    ``slip`` and ``blur``, times the sum of all |alpha_i|, are what rounding may have done to the sum of the terms and
    to an entry of v; both are taken off the value.
    """
    total, size = 0.0, 0.0
    for f in range(v.size):
        v[f] = 0.0
    for i in range(a.size):
        alpha = a[i] * quantum
        terms[i] = term(alpha, low[i], high[i], cost[i], breakpoints, slopes, t, cap)
        total += terms[i]
        size += abs(alpha)
        if alpha != 0.0:
            for f in range(v.size):
                v[f] += alpha * rows[i, f]
    return total - conjugate(v, norm, size, slip, blur)


@inner
def conjugate(v, norm, size, slip, blur):
    """Return 1/2 ||v||^2, or 0 if no entry exceeds 1 (else inf), rounding errors of value and v on top."""
    total, error = size * slip, size * blur
    for f in range(v.size):
        if norm == 2:
            total += (0.5 * abs(v[f]) + error) * abs(v[f]) + error * error
        elif abs(v[f]) > 1.0 - error:
            return np.inf
    return total


@kernel
def whole(alpha, quantum, low, high, y, a):
    """Round multipliers to whole quanta within what infinite ends allow, and balance them; zeros if that fails.

    Large multipliers are rounded to 2, 4, 8, .. quanta, so that their sums stay exact in floating point.
    """
    total, step = 0.0, 1.0
    for i in range(alpha.size):
        total += abs(alpha[i])
    while total > 2.0**50 * step * quantum and step < 2.0**200:
        step *= 2.0
    off, best = 0.0, 0
    for i in range(alpha.size):
        x = np.rint(alpha[i] / (quantum * step)) * step
        if high[i] == np.inf:
            x = max(x, 0.0)
        if low[i] == -np.inf:
            x = min(x, 0.0)
        a[i] = x
        off += y[i] * x
        if abs(x) > abs(a[best]):
            best = i
    if off != 0.0:
        is_small = abs(off) < abs(a[best])
        a[best] -= y[best] * off
        if not is_small:
            for i in range(alpha.size):
                a[i] = 0.0


@inner
def _cost_of_shift(shift, r2, kappa):
    """Return max over 0 <= s <= kappa of s shift - s^2 r2 / 2."""
    if shift <= 0.0:
        return 0.0
    s = min(kappa, shift / r2) if r2 > 0.0 else kappa
    return s * shift - 0.5 * s * s * r2


@inner
def _reach(slack, r2, kappa):
    """Return the largest shift that costs at most ``slack``."""
    if kappa <= 0.0:
        return np.inf
    if 2.0 * slack <= kappa * kappa * r2:
        return np.sqrt(2.0 * slack * r2)
    return slack / kappa + 0.5 * kappa * r2


@inner
def _write_change(i, sign, shift, column, row, base, quantum, y, partner, shares, r2, room, norm, who, step):
    """Write the change of whole multipliers that moves s from or to sample i; returns its length (0: no change)."""
    kappa = room[row, column]
    if norm == 2:
        s = min(kappa, max(shift, 0.0) / r2[row, column]) if r2[row, column] > 0.0 else kappa
    else:
        s = kappa * (1.0 - 1e-9)
    s = sign * np.rint(min(s / quantum, 2.0**50))
    if s == 0.0:
        return 0
    who[0], step[0] = i, s
    if norm == 2:
        j = partner[column]
        if j == i:
            return 0
        who[1], step[1] = j, -s * y[i] * y[j]
        return 2
    size, off, largest = 1, y[i] * s, 0
    for q in range(partner.size):
        x = np.rint(s * shares[row, q])
        if partner[q] < base.size and x != 0.0:
            if abs(x) > 2.0**50 or partner[q] == i:
                return 0
            who[size], step[size] = partner[q], -x
            off -= y[partner[q]] * x
            if largest == 0 or abs(x) > abs(step[largest]):
                largest = size
            size += 1
    if off != 0.0:
        if largest == 0:
            return 0
        step[largest] -= y[who[largest]] * off
    return size


@inner
def _closes(i, lost_low, lost_high, size, who, step, base, quantum, low, high, terms, total, v, moved, rows, cost,
            breakpoints, slopes, t, cap, norm, weight, slip, blur):  # fmt: skip
    """Return the dual value of the part of the node that a cut takes away, with changed multipliers."""
    for f in range(v.size):
        moved[f] = v[f]
    own = base[i]
    for r in range(size):
        j = who[r]
        weight += abs(step[r]) * quantum
        for f in range(v.size):
            moved[f] += step[r] * quantum * rows[j, f]
        if j == i:
            own += step[r]
        else:
            alpha = (base[j] + step[r]) * quantum
            total += term(alpha, low[j], high[j], cost[j], breakpoints, slopes, t, cap) - terms[j]
    total += term(own * quantum, lost_low, lost_high, cost[i], breakpoints, slopes, t, cap) - terms[i]
    return total - conjugate(moved, norm, weight, slip, blur)


@kernel
def find_cuts(free, u, base, quantum, low, high, terms, v, partner, shares, r2, rise, fall, rows, y, cost, breakpoints,
              slopes, t, cap, norm, goal, slip, blur, grid, worth, moved, sample, side, margin, sizes, who,
              step):  # fmt: skip
    """Write the cuts that whole multipliers ``base`` prove for the free samples; returns their number.

    Moving the margin of i by ``shift`` costs at least max over 0 <= s <= kappa of s shift - s^2 r2 / 2, where s goes
    from i to a member of the basis (2-norm: r2 = ||x_i - x_j||^2) or to all of them (1-norm: r2 = 0), and kappa is the
    room of the members in their pieces. ``low`` and ``high`` shrink as cuts are made.
    """
    total, weight = 0.0, 0.0
    for i in range(base.size):
        total += terms[i]
        weight += abs(base[i]) * quantum
    slack = goal - (total - conjugate(v, norm, weight, slip, blur))
    top = t
    for k in range(breakpoints.size):
        top = max(top, breakpoints[k])
    count = 0
    for row in range(free.size):
        i = free[row]
        alpha, ui = base[i] * quantum, u[i]
        inside = term(alpha, t, high[i], cost[i], breakpoints, slopes, t, cap)
        out, into, down, up = -np.inf, -np.inf, np.inf, np.inf
        c_out, c_in, c_down, c_up = 0, 0, 0, 0
        for c in range(rise.shape[1]):
            square, kappa, kappa_up = r2[row, c], fall[row, c], rise[row, c]
            shift = max(0.0, ui - t, alpha * square)
            gain = _cost_of_shift(shift, square, kappa) + alpha * (ui - shift) + cost[i] * cap - terms[i]
            if alpha < kappa and gain > out:
                out, c_out = gain, c
            gain = _cost_of_shift(t - ui, square, kappa_up) + inside - terms[i]
            if gain > into:
                into, c_in = gain, c
            reach = _reach(slack, square, kappa)
            if reach < down:
                down, c_down = reach, c
            reach = _reach(slack, square, kappa_up)
            if reach < up:
                up, c_up = reach, c
        for kind in range(4):
            if kind == 0 and out > slack:
                below, c, at = True, c_out, t
                shift = max(0.0, ui - t, alpha * r2[row, c_out])
            elif kind == 1 and into > slack:
                below, c, at, shift = False, c_in, t, max(0.0, t - ui)
            elif kind == 2 and ui < top and down < np.inf:
                below, c, at = True, c_down, ui - down * (1.0 + 1e-7)
                if at < t and at < low[i] + worth * (t - low[i]):
                    continue
                at = t if at >= t else np.floor(at / grid) * grid
                shift = ui - at
            elif kind == 3 and ui < top and up < np.inf:
                below, c, at = False, c_up, ui + up * (1.0 + 1e-7)
                end = min(high[i], top)
                if at >= t and at > end - worth * (end - t):
                    continue
                at = t if at < t else np.ceil(at / grid) * grid
                shift = at - ui
            else:
                continue
            if not low[i] < at < high[i] or high[i] <= t or low[i] >= t:
                continue
            room_of = fall if below else rise
            sign = -1.0 if below else 1.0
            size = _write_change(
                i, sign, shift, c, row, base, quantum, y, partner, shares, r2, room_of, norm, who[count], step[count]
            )
            lost_low, lost_high = (low[i], at) if below else (at, high[i])
            value = _closes(
                i, lost_low, lost_high, size, who[count], step[count], base, quantum, low, high, terms, total, v, moved,
                rows, cost, breakpoints, slopes, t, cap, norm, weight, slip, blur,
            )  # fmt: skip
            if value < goal:
                continue
            sample[count], side[count], margin[count], sizes[count] = i, -1 if below else 1, at, size
            count += 1
            if below:
                low[i] = at
            else:
                high[i] = at
            changed = term(alpha, low[i], high[i], cost[i], breakpoints, slopes, t, cap)
            total += changed - terms[i]
            terms[i] = changed
            if count == sample.size:
                return count
    return count
