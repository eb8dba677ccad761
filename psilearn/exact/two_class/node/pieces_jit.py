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
from ...sample_state_jit import FREE, GONE, IN, OUT, TILTED, TOP


@inner
def fill_piece(i, model, state, low, high, terms):
    """Write the pieces of one sample.

    TOP pays nothing and obeys u >= the first breakpoint. IN pays cost * g(u) and obeys u >= t. OUT pays cost * cap and
    obeys u <= t. GONE pays cost * cap and obeys nothing; TILTED pays ``low`` * u in addition. FREE pays the convex
    envelope of the loss on [low, high].
    """
    t, tau, vert, number = model.t, terms.tau, terms.vert, terms.number
    if state == FREE and high < t and low < t:
        if high < t - FEASIBLE:
            state = np.int8(OUT)
        high = t
    terms.const[i], vert[i, 0], number[i] = 0.0, 0.0, 0
    if state in (OUT, GONE, TILTED):
        terms.const[i], tau[i, 0] = model.cost[i] * model.cap, 0.0
        if state == OUT:
            number[i], tau[i, 0], vert[i, 0], vert[i, 1] = 1, t, -np.inf, 0.0
        elif state == TILTED:
            vert[i, 0] = -low
    elif state == TOP:
        number[i], tau[i, 0], vert[i, 1] = 1, top_margin(model.breakpoints, t), np.inf
    elif state == IN or low >= t:
        _fill_hinges(i, model, t, terms)
        if t > -np.inf:
            tau[i, number[i]], vert[i, number[i] + 1] = t, np.inf
            number[i] += 1
    elif low > -np.inf:
        _fill_envelope(i, model, low, high, terms)


@inner
def _fill_hinges(i, model, v, terms):
    """Write the hinges of cost * g with breakpoints beyond v; returns the sum of their slopes."""
    m, total = 0, 0.0
    for k in range(model.breakpoints.size):
        if model.breakpoints[k] > v:
            terms.tau[i, m] = model.breakpoints[k]
            terms.vert[i, m + 1] = terms.vert[i, m] + model.cost[i] * model.slopes[k]
            total += model.slopes[k]
            m += 1
    terms.number[i] = m
    return total


@inner
def _fill_envelope(i, model, low, high, terms):
    """Write the convex envelope of the loss on [low, high], low < t: g beyond the touching point, the tangent below."""
    v, steepness = tangent(low, high, model.breakpoints, model.slopes, model.t, model.cap)
    used = 0.0
    if model.breakpoints.size > 0 and v == high and high < model.breakpoints[0]:
        terms.const[i] = model.cost[i] * convex_value(high, model.breakpoints, model.slopes)
    else:
        used = _fill_hinges(i, model, v, terms)
    if steepness > used:
        m = terms.number[i]
        terms.tau[i, m], terms.vert[i, m + 1] = v, model.cost[i] * steepness
        terms.number[i] = m + 1


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
