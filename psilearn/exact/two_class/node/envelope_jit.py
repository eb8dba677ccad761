"""Per-sample convex terms of a search node, as concave piecewise linear gains of their multipliers.

A node replaces each sample's loss by a convex, piecewise linear phi_i(u) that never exceeds it where the node's
solutions can be. In the dual, phi_i is ``const_i + max_alpha gain_i(alpha) - alpha u`` with gain_i concave: slope
``tau[i, k]`` (falling in k) between the vertices ``vert[i, k]`` and ``vert[i, k + 1]``. Infinite vertices are hard
constraints on u.
"""

from __future__ import annotations

import numpy as np

from ....core._jit import inner

FREE, IN, OUT, GONE, TOP, LEAN = 0, 1, 2, 3, 4, 5
#: A margin this little below t satisfies u >= t. Whatever leaves a sample OUT must exceed it: the loss jumps at t, so a
#: rounding error there would charge the cap to samples that every optimum holds exactly at t.
FEASIBLE = 1e-7


@inner
def convex_value(u, knots, slopes):
    """Evaluate g(u) = sum_k c_k (t_k - u)_+."""
    total = 0.0
    for k in range(knots.size):
        if knots[k] > u:
            total += slopes[k] * (knots[k] - u)
    return total


@inner
def loss_value(u, knots, slopes, t, cap, slack):
    """Evaluate the loss; a margin less than ``slack`` below t counts as t."""
    if u < t - slack:
        return cap
    return min(cap, convex_value(max(u, t), knots, slopes))


@inner
def top_margin(knots, t):
    """Margin from which on nothing is paid."""
    return max(knots[0], t) if knots.size > 0 else t


@inner
def fill_piece(i, state, low, high, cost, knots, slopes, t, cap, tau, vert, count, const):
    """Write the pieces of one sample.

    TOP pays nothing and obeys u >= the first knot. IN pays cost * g(u) and obeys u >= t. OUT pays cost * cap and
    obeys u <= t. GONE pays cost * cap and obeys nothing; LEAN pays ``low`` * u in addition. FREE pays the convex
    envelope of the loss on [low, high]: the line from (low, cap) that touches the graph of g as far down as possible,
    at v in {t, the knots above t, high}, and g to the right of v.
    """
    if state == FREE and low >= t:
        state = IN
    if state == FREE and high < t:
        state, high = (OUT, high) if high < t - FEASIBLE else (FREE, t)
    if state in (GONE, LEAN):
        count[i], vert[i, 0], const[i] = 0, -low if state == LEAN else 0.0, cost * cap
        tau[i, 0] = 0.0
        return
    if state == OUT:
        count[i], tau[i, 0], const[i] = 1, t, cost * cap
        vert[i, 0], vert[i, 1] = -np.inf, 0.0
        return
    vert[i, 0] = 0.0
    const[i] = 0.0
    m = 0
    if state == TOP:
        count[i], tau[i, 0], vert[i, 1] = 1, top_margin(knots, t), np.inf
        return
    if state == IN:
        for k in range(knots.size):
            if knots[k] > t:
                tau[i, m] = knots[k]
                vert[i, m + 1] = vert[i, m] + cost * slopes[k]
                m += 1
        if t > -np.inf:
            tau[i, m] = t
            vert[i, m + 1] = np.inf
            m += 1
        count[i] = m
        return
    if low == -np.inf:
        count[i] = 0
        return
    sigma = -1.0
    v = t
    if t > low:
        sigma = (cap - convex_value(t, knots, slopes)) / (t - low)
    for k in range(knots.size):
        if t < knots[k] <= high:
            s = (cap - convex_value(knots[k], knots, slopes)) / (knots[k] - low)
            if s >= sigma:
                sigma, v = s, knots[k]
    if knots.size > 0 and high < knots[0]:
        s = (cap - convex_value(high, knots, slopes)) / (high - low)
        if s >= sigma:
            sigma, v = s, high
            const[i] = cost * convex_value(high, knots, slopes)
    used = 0.0
    if not (v == high and const[i] > 0.0):
        for k in range(knots.size):
            if knots[k] > v:
                tau[i, m] = knots[k]
                vert[i, m + 1] = vert[i, m] + cost * slopes[k]
                used += slopes[k]
                m += 1
    if sigma > used:
        tau[i, m] = v
        vert[i, m + 1] = cost * sigma
        m += 1
    count[i] = m


@inner
def piece_value(i, u, tau, vert, count, const):
    """Evaluate phi_i(u) with finite pieces only (a hard constraint is taken as satisfied)."""
    total = const[i]
    for k in range(count[i]):
        length = vert[i, k + 1] - vert[i, k]
        if length < np.inf and u < tau[i, k]:
            total += length * (tau[i, k] - u)
    return total


@inner
def dual_gain(i, alpha, tau, vert, count):
    """Evaluate gain_i(alpha), the integral of tau from 0 to alpha."""
    total = 0.0
    if alpha < 0.0:
        return tau[i, 0] * alpha
    for k in range(count[i]):
        if alpha <= vert[i, k]:
            break
        total += tau[i, k] * (min(alpha, vert[i, k + 1]) - vert[i, k])
    return total


@inner
def slope_above(i, alpha, tau, vert, count):
    """Index of the piece that begins at or contains alpha on its right; count_i if there is none."""
    k = 0
    while k < count[i] and alpha >= vert[i, k + 1]:
        k += 1
    return k


@inner
def slope_below(i, alpha, tau, vert, count):
    """Index of the piece that ends at or contains alpha on its left; -1 if there is none."""
    k = count[i] - 1
    while k >= 0 and alpha <= vert[i, k]:
        k -= 1
    return k
