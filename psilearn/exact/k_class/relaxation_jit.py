"""Margins, losses and their convex envelopes: what the compiled loops of the k-class searches share.

Sample i has the margin u_i = min_r rows[i, r]'theta over its rivals r and pays cost_i l(u_i), where l(u) = g(u) for
u >= t and the cap below; g(u) = sum_m slopes_m (breakpoints_m - u)_+ is convex.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...core._jit import allocating_kernel, inner, kernel
from ..envelope_jit import convex_value, tangent
from ..sample_state_jit import GONE, IN


class Samples(NamedTuple):
    """What does not change during a search."""

    rows: np.ndarray  #: (n, rivals, p): u_i = min_r rows[i, r]'theta
    cost: np.ndarray  #: price of a unit of loss
    breakpoints: np.ndarray  #: of g, the largest first
    slopes: np.ndarray
    t: float
    cap: float
    has_jump: bool
    q: np.ndarray  #: curvature of the penalty
    extra_rows: np.ndarray  #: further hinges extra_cost[e] * (-extra_rows[e]'theta)_+, an l1 penalty
    extra_cost: np.ndarray
    order: np.ndarray  #: (n, m): samples of the same class by distance, itself first, -1 at the end
    distance: np.ndarray  #: (n, m): their distances
    radius: float  #: ||w_y - w_j|| <= radius * P (pure l1) or radius * sqrt(P)
    is_l1: bool


@inner
def convex_loss(u, data):
    """g(u)."""
    return convex_value(u, data.breakpoints, data.slopes)


@inner
def product(row, theta):
    """row'theta."""
    total = 0.0
    for l in range(theta.size):
        total += row[l] * theta[l]
    return total


@inner
def margin(rows, i, theta):
    """u_i(theta)."""
    u = np.inf
    for r in range(rows.shape[1]):
        u = min(u, product(rows[i, r], theta))
    return u


@kernel
def objective(data, theta):
    """The objective at theta, for a loss without a jump."""
    total = 0.0
    for l in range(theta.size):
        total += 0.5 * data.q[l] * theta[l] * theta[l]
    for i in range(data.cost.size):
        total += data.cost[i] * min(convex_loss(margin(data.rows, i, theta), data), data.cap)
    for e in range(data.extra_cost.size):
        total += data.extra_cost[e] * max(-product(data.extra_rows[e], theta), 0.0)
    return total


@kernel
def concave_part(points, index, data, out):
    """Write s_2 = -sum_i cost_i (g(u_i) - cap)_+ at the listed vertices z = (t, theta)."""
    for m in range(index.size):
        total = 0.0
        for i in range(data.cost.size):
            g = convex_loss(margin(data.rows, i, points[index[m], 1:]), data)
            if g > data.cap:
                total -= data.cost[i] * (g - data.cap)
        out[index[m]] = total


@kernel
def lowest_margins(points, alive, top, data, low):
    """Raise ``low`` to the least margins over the live vertices (t, theta): exact over their convex hull."""
    for i in range(low.size):
        least = np.inf
        for v in range(top):
            if alive[v]:
                least = min(least, margin(data.rows, i, points[v, 1:]))
        low[i] = max(low[i], least - 1e-9 * (1.0 + abs(least)))


@inner
def floor_at_cap(data, state, budget, spent, centre, room, i):
    """Least margin sample i can have *at the cap* where the objective is <= ``budget`` and the states hold.

    Sample i and all that are GONE (``spent``) pay the cap. Of the other samples of its class, nearest first, let
    i' be the first that is not at the cap: those before it pay, too, which leaves P <= budget - cap * (all their
    costs). For a rival r, u_ir = u_i'r + (w_y - w_r)'(x_i - x_i') >= t + (w_y - w_r)'(x_i - x_i'), and w is known to
    lie in two balls: ||w||^2 by P, and 1/2 q ||w - centre||^2 <= ``room``. A sample that is IN ends the search. -inf if
    the whole class may be at the cap; a value >= t says that sample i cannot be at the cap.
    """
    spent += data.cost[i] * data.cap
    drop = -np.inf
    for m in range(data.order.shape[1]):
        j = data.order[i, m]
        if j < 0:
            break
        if j == i or state[j] == GONE:
            continue
        left = budget - spent
        if left < 0.0:
            return data.t - drop
        far = data.radius * (left if data.is_l1 else np.sqrt(left)) * data.distance[i, m]
        if room < np.inf:
            near = data.radius * np.sqrt(room) * data.distance[i, m]
            worst = -np.inf
            for r in range(data.rows.shape[1]):
                shift = 0.0
                for l in range(centre.size):
                    shift += (data.rows[i, r, l] - data.rows[j, r, l]) * centre[l]
                worst = max(worst, near - shift)
            far = min(far, worst)
        drop = max(drop, far)
        if state[j] == IN:
            return data.t - drop
        spent += data.cost[j] * data.cap
    return -np.inf if spent <= budget else data.t - drop


@allocating_kernel
def margin_floors(data, budget):
    """Return per sample a number below which its margin does not fall where the objective is <= ``budget``."""
    low, state = np.empty(data.cost.size), np.zeros(data.cost.size, np.int8)
    for i in range(low.size):
        low[i] = min(data.t, floor_at_cap(data, state, budget, 0.0, data.q, np.inf, i))
    return low


@inner
def envelope(low, high, data, i, out_breakpoints, out_coef):
    """Write cost_i times the convex envelope of the loss on low <= u <= high, where low < t <= high.

    It is the steepest line from (low, cap) to the graph of g, then g: hinges with breakpoints ``out_breakpoints[i]``
    and coefficients ``out_coef[i]`` (one more than g has) plus the returned constant.
    """
    K, price = data.breakpoints.size, data.cost[i]
    for m in range(K):
        out_breakpoints[i, m] = data.breakpoints[m]
        out_coef[i, m] = 0.0
    out_breakpoints[i, K] = data.t
    out_coef[i, K] = 0.0
    if low == -np.inf:  # only a constant lies below a bounded function on a half-line
        return price * convex_loss(high, data)
    x, slope = tangent(low, high, data.breakpoints, data.slopes, data.t, data.cap)
    out_breakpoints[i, K] = x
    out_coef[i, K] = price * slope
    if x >= high:
        return price * convex_loss(high, data)
    for m in range(K):
        if data.breakpoints[m] > x:
            out_coef[i, m] = price * data.slopes[m]
            out_coef[i, K] -= price * data.slopes[m]
    out_coef[i, K] = max(out_coef[i, K] - 1e-15 * price * slope, 0.0)  # less the rounding of the differences
    return 0.0


@allocating_kernel
def envelopes(low, data):
    """Breakpoints and coefficients of the convex envelopes of the losses where the margins are at least ``low``."""
    n, K = low.size, data.breakpoints.size
    breakpoints, coef = np.zeros((n, K + 1)), np.zeros((n, K + 1))
    for i in range(n):
        if low[i] < data.t:
            envelope(low[i], np.inf, data, i, breakpoints, coef)
        else:
            for m in range(K):
                breakpoints[i, m] = data.breakpoints[m]
                coef[i, m] = data.cost[i] * data.slopes[m]
    return breakpoints, coef
