"""Per-sample convex terms of a search node, as concave piecewise linear gains of their multipliers.

A node replaces each sample's loss by a convex, piecewise linear phi_i(u) that never exceeds it where the node's
solutions can be. In the dual, phi_i is ``const_i + max_alpha gain_i(alpha) - alpha u`` with gain_i concave: slope
``tau[i, k]`` (falling in k) between the vertices ``vert[i, k]`` and ``vert[i, k + 1]``. Infinite vertices are hard
constraints on u.
"""

from __future__ import annotations

import numpy as np

from ....core._jit import inner
from ...envelope_jit import FEASIBLE, convex_value, tangent, top_margin
from ...sample_state_jit import FLOOR, FREE, GONE, IN, LINEAR, OUT, TILTED, TOP


@inner
def fill_piece(i, state, low, high, cost, breakpoints, slopes, t, cap, tau, vert, number, const):
    """Write the pieces of one sample.

    TOP pays nothing and obeys u >= the first breakpoint. IN pays cost * g(u) and obeys u >= t. OUT pays cost * cap and
    obeys u <= t. GONE pays cost * cap and obeys nothing; TILTED pays ``low`` * u in addition. FREE pays the convex
    envelope of the loss on [low, high].
    """
    if state == FREE and high < t and low < t:
        if high < t - FEASIBLE:
            state = np.int8(OUT)
        high = t
    const[i], vert[i, 0], number[i] = 0.0, 0.0, 0
    if state in (OUT, GONE, TILTED, LINEAR):
        const[i], tau[i, 0] = cost * cap, 0.0
        if state == OUT:
            number[i], tau[i, 0], vert[i, 0], vert[i, 1] = 1, t, -np.inf, 0.0
        elif state == TILTED:
            vert[i, 0] = -low
        elif state == LINEAR:
            vert[i, 0] = -1.0
    elif state == FLOOR:
        number[i], tau[i, 0], vert[i, 1] = 1, cost, np.inf
    elif state == TOP:
        number[i], tau[i, 0], vert[i, 1] = 1, top_margin(breakpoints, t), np.inf
    elif state == IN or low >= t:
        _fill_hinges(i, cost, breakpoints, slopes, t, tau, vert, number)
        if t > -np.inf:
            tau[i, number[i]], vert[i, number[i] + 1] = t, np.inf
            number[i] += 1
    elif low > -np.inf:  # the envelope: the tangent below the point where it touches g, and g beyond
        v, steepness = tangent(low, high, breakpoints, slopes, t, cap)
        used = 0.0
        if breakpoints.size > 0 and v == high and high < breakpoints[0]:
            const[i] = cost * convex_value(high, breakpoints, slopes)
        else:
            used = _fill_hinges(i, cost, breakpoints, slopes, v, tau, vert, number)
        if steepness > used:
            m = number[i]
            tau[i, m], vert[i, m + 1] = v, cost * steepness
            number[i] = m + 1


@inner
def _fill_hinges(i, cost, breakpoints, slopes, v, tau, vert, number):
    """Write the hinges of cost * g with breakpoints beyond v; returns the sum of their slopes."""
    m, total = 0, 0.0
    for k in range(breakpoints.size):
        if breakpoints[k] > v:
            tau[i, m] = breakpoints[k]
            vert[i, m + 1] = vert[i, m] + cost * slopes[k]
            total += slopes[k]
            m += 1
    number[i] = m
    return total


@inner
def piece_value(i, u, terms):
    """Evaluate phi_i(u) with finite pieces only (a hard constraint is taken as satisfied)."""
    total = terms.const[i]
    for k in range(terms.number[i]):
        length = terms.vert[i, k + 1] - terms.vert[i, k]
        if length < np.inf and u < terms.tau[i, k]:
            total += length * (terms.tau[i, k] - u)
    return total


@inner
def dual_gain(i, alpha, terms):
    """Evaluate gain_i(alpha), the integral of tau from 0 to alpha."""
    total = 0.0
    if alpha < 0.0:
        return terms.tau[i, 0] * alpha
    for k in range(terms.number[i]):
        if alpha <= terms.vert[i, k]:
            break
        total += terms.tau[i, k] * (min(alpha, terms.vert[i, k + 1]) - terms.vert[i, k])
    return total


@inner
def slope_above(i, alpha, terms):
    """Index of the piece that begins at or contains alpha on its right; their number if there is none."""
    k = 0
    while k < terms.number[i] and alpha >= terms.vert[i, k + 1]:
        k += 1
    return k


@inner
def slope_below(i, alpha, terms):
    """Index of the piece that ends at or contains alpha on its left; -1 if there is none."""
    k = terms.number[i] - 1
    while k >= 0 and alpha <= terms.vert[i, k]:
        k -= 1
    return k
