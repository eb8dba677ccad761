"""Convex nodes of a branch and bound over truncation patterns: margin floors, envelopes, bounds, tightening.

A node fixes some samples, state 1: u_i >= t and pays g(u_i), state 2: pays the cap, state 0: free, and restricts theta
to a box. Both bound the margins, and the loss of a free sample is replaced by its convex envelope on what is left.
"""

from typing import NamedTuple

import numpy as np

from ...core._jit import inner, kernel, roomy_inner, roomy_kernel
from ..envelope_jit import convex_value, tangent
from .hinge_qp_jit import assemble, make_scratch, minimise


class Samples(NamedTuple):
    """What does not change from node to node."""

    rows: np.ndarray  #: (n, rivals, p): u_i = min_r rows[i, r]'theta
    cost: np.ndarray  #: price of a unit of loss
    kinks: np.ndarray  #: hinges of g, largest kink first
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
def margin_range(rows, i, lower, upper):
    """Range of u_i = min_r rows[i, r]'theta over the box."""
    low = np.inf
    high = np.inf
    for r in range(rows.shape[1]):
        a, b = 0.0, 0.0
        for l in range(lower.size):
            x = rows[i, r, l]
            a += x * (lower[l] if x > 0.0 else upper[l])
            b += x * (upper[l] if x > 0.0 else lower[l])
        low = min(low, a)
        high = min(high, b)
    return low, high


@inner
def margin_floor(data, state, budget, spent, centre, room, i):
    """Least margin sample i can have *at the cap* where the objective is <= ``budget`` and the states hold.

    Sample i and all samples of state 2 (``spent``) pay the cap. Of the other samples of its class, nearest first, let
    i' be the first that is not at the cap: those before it pay, too, which leaves P <= budget - cap * (all their
    costs). For a rival r, u_ir = u_i'r + (w_y - w_r)'(x_i - x_i') >= t + (w_y - w_r)'(x_i - x_i'), and w is known to
    lie in two balls: ||w||^2 by P, and 1/2 q ||w - centre||^2 <= ``room``. A sample of state 1 ends the search. -inf if
    the whole class may be at the cap; a value >= t says that sample i cannot be at the cap.
    """
    spent += data.cost[i] * data.cap
    drop = -np.inf
    for m in range(data.order.shape[1]):
        j = data.order[i, m]
        if j < 0:
            break
        if j == i or state[j] == 2:
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
        if state[j] == 1:
            return data.t - drop
        spent += data.cost[j] * data.cap
    return -np.inf if spent <= budget else data.t - drop


@inner
def envelope(low, high, kinks, slopes, t, cap, price, out_kinks, out_coef, i):
    """Convex envelope, on low <= u <= high with low < t <= high, of g for u >= t and cap below.

    The steepest line from (low, cap) to a point (x, g(x)), x in {t, kinks, high}, then g: written as hinges with kinks
    ``out_kinks[i]`` and coefficients ``out_coef[i]`` (one more than g has) plus the returned constant, all times price.
    """
    K = kinks.size
    for m in range(K):
        out_kinks[i, m] = kinks[m]
        out_coef[i, m] = 0.0
    out_kinks[i, K] = t
    out_coef[i, K] = 0.0
    if low == -np.inf:  # only a constant lies below a bounded function on a half-line
        return price * convex_value(high, kinks, slopes)
    best_x, best_slope = tangent(low, high, kinks, slopes, t, cap)
    out_kinks[i, K] = best_x
    out_coef[i, K] = price * best_slope
    if best_x >= high:
        return price * convex_value(high, kinks, slopes)
    for m in range(K):
        if kinks[m] > best_x:
            out_coef[i, m] = price * slopes[m]
            out_coef[i, K] -= price * slopes[m]
    out_coef[i, K] = max(out_coef[i, K], 0.0)
    return 0.0


@roomy_inner
def relax(data, lower, upper, state, budget, centre, room):
    """Decide what box and budget decide (``state`` is updated) and relax the rest.

    Returns (node_kinks, node_coef, floor, constant, cheap): hinges per sample, hard lower limits of margins, the
    constant, and a bound on the losses alone from the ranges of the margins (inf: the node is empty).
    """
    n, K = data.cost.size, data.kinks.size
    node_kinks, node_coef = np.zeros((n, K + 1)), np.zeros((n, K + 1))
    floor = np.empty(n)
    for i in range(n):
        floor[i] = -np.inf
    constant = 0.0
    cheap = 0.0
    spent = 0.0
    for i in range(n):
        if state[i] == 2:
            spent += data.cost[i] * data.cap
    for i in range(n):
        if state[i] == 2:
            constant += data.cost[i] * data.cap
            cheap += data.cost[i] * data.cap
            continue
        low, high = margin_range(data.rows, i, lower, upper)
        rounding = 1e-9 * (1.0 + abs(low) + abs(high))
        low -= rounding
        high += rounding
        if state[i] == 0:
            low = max(low, margin_floor(data, state, budget, spent, centre, room, i) - rounding)
            if low >= data.t:
                state[i] = 1
        if high < data.t:
            if state[i] == 1:
                return node_kinks, node_coef, floor, constant, np.inf
            state[i] = 2
            constant += data.cost[i] * data.cap
            cheap += data.cost[i] * data.cap
            continue
        cheap += data.cost[i] * convex_value(high, data.kinks, data.slopes)
        if state[i] == 1:
            for m in range(K):
                node_kinks[i, m] = data.kinks[m]
                node_coef[i, m] = data.cost[i] * data.slopes[m]
            if data.has_jump:
                floor[i] = data.t
        else:
            constant += envelope(
                low, high, data.kinks, data.slopes, data.t, data.cap, data.cost[i], node_kinks, node_coef, i
            )
    return node_kinks, node_coef, floor, constant, cheap


@roomy_kernel
def envelopes(low, cost, kinks, slopes, t, cap):
    """Kinks and coefficients, each (n, K + 1), of the convex envelopes of cost_i times the loss on [low_i, inf)."""
    n, K = low.size, kinks.size
    node_kinks, node_coef = np.zeros((n, K + 1)), np.zeros((n, K + 1))
    for i in range(n):
        if low[i] < t:
            envelope(low[i], np.inf, kinks, slopes, t, cap, cost[i], node_kinks, node_coef, i)
        else:
            for m in range(K):
                node_kinks[i, m] = kinks[m]
                node_coef[i, m] = cost[i] * slopes[m]
    return node_kinks, node_coef


@kernel
def lowest_margins(points, alive, top, rows, low):
    """Raise ``low`` to the least margins over the live vertices (t, theta): exact over their convex hull."""
    n, n_rivals, p = rows.shape
    for i in range(n):
        least = np.inf
        for v in range(top):
            if alive[v]:
                for r in range(n_rivals):
                    f = 0.0
                    for l in range(p):
                        f += rows[i, r, l] * points[v, l + 1]
                    least = min(least, f)
        low[i] = max(low[i], least - 1e-9 * (1.0 + abs(least)))


@roomy_inner
def _box_rows(lower, upper, extra_rows, extra_cost):
    """The further hinges followed by the sides of the box as hard constraints."""
    p, extra = lower.size, extra_cost.size
    rows, tau, cost = np.zeros((extra + 2 * p, p)), np.zeros(extra + 2 * p), np.empty(extra + 2 * p)
    for e in range(extra):
        cost[e] = extra_cost[e]
        for l in range(p):
            rows[e, l] = extra_rows[e, l]
    for l in range(p):
        cost[extra + 2 * l] = np.inf
        cost[extra + 2 * l + 1] = np.inf
        rows[extra + 2 * l, l] = 1.0
        tau[extra + 2 * l] = lower[l]
        rows[extra + 2 * l + 1, l] = -1.0
        tau[extra + 2 * l + 1] = -upper[l]
    return rows, tau, cost


@roomy_inner
def _shrink(A, tau, alpha, q, lower, upper, constant, budget, centre):
    """Tighten the box by strong convexity; writes the centre of the ball and returns the dual value D.

    For theta in the node with value <= budget the Lagrangian at alpha gives
    sum_l 1/2 q_l (theta_l - v_l / q_l)^2 <= budget - D, v = A'alpha, D = constant + the dual value over the box of the
    unpenalised and over all of R of the penalised coordinates.
    """
    D, size = constant, abs(constant)
    v = np.zeros(q.size)
    for r in range(A.shape[0]):
        D += alpha[r] * tau[r]
        size += abs(alpha[r] * tau[r])
        for l in range(q.size):
            v[l] += alpha[r] * A[r, l]
    for l in range(q.size):
        part = 0.5 * v[l] * v[l] / q[l] if q[l] > 0.0 else v[l] * (upper[l] if v[l] > 0.0 else lower[l])
        D -= part
        size += abs(part)
    D -= 1e-12 * size
    for l in range(q.size):
        centre[l] = 0.0
        if q[l] > 0.0:
            centre[l] = v[l] / q[l]
            radius = np.sqrt(2.0 * max(budget - D, 0.0) / q[l])
            lower[l] = max(lower[l], centre[l] - radius)
            upper[l] = min(upper[l], centre[l] + radius)
    return D


@roomy_kernel
def bound_node(data, lower, upper, state, budget, cutoff, tol, centre, dual, theta, violation):
    """Bound a node from below; tightens ``lower``, ``upper``, ``state`` and the ball (``centre``, ``dual``) in place.

    ``budget`` is the incumbent's value (tightening keeps every point at most that good), ``cutoff`` the bound at which
    the node can be discarded, ``tol`` the absolute accuracy of its solution. 1/2 q ||w - centre||^2 <= budget - dual[0]
    is known to hold on entry (dual[0] = -inf: nothing is known). ``theta`` receives the relaxed minimiser,
    ``violation`` each free sample's promise for branching. Returns the bound (inf: empty node).
    """
    p = data.q.size
    bound = -np.inf
    trial = np.empty(p)
    for _ in range(3):
        room = max(budget - dual[0], 0.0)
        node_kinks, node_coef, floor, constant, cheap = relax(data, lower, upper, state, budget, centre, room)
        for l in range(p):
            if lower[l] > upper[l]:
                return np.inf
            nearest = min(max(0.0, lower[l]), upper[l])
            cheap += 0.5 * data.q[l] * nearest * nearest
            theta[l] = 0.5 * (lower[l] + upper[l])
        bound = max(bound, cheap)
        if bound >= cutoff:
            return bound
        further, further_tau, further_cost = _box_rows(lower, upper, data.extra_rows, data.extra_cost)
        A, tau, first, c = assemble(data.rows, node_kinks, node_coef, floor, further, further_tau, further_cost)
        alpha, scratch = np.empty(tau.size), make_scratch(tau.size, c.size, p)
        value = minimise(
            A, tau, first, c, np.zeros(p), data.q, lower, upper, theta, 0.0, tol, cutoff - constant, 0.0, alpha, scratch
        )
        bound = max(bound, value + constant)
        if bound >= cutoff:
            return bound
        found = _shrink(A, tau, alpha, data.q, lower, upper, constant, budget, trial)
        if not data.is_l1 and found > dual[0]:
            dual[0] = found
            for l in range(p):
                centre[l] = trial[l]
        if budget - dual[0] > 0.8 * room:
            break
    for i in range(state.size):
        violation[i] = 0.0
        if state[i] != 0:
            continue
        u = np.inf
        for r in range(data.rows.shape[1]):
            f = 0.0
            for l in range(p):
                f += data.rows[i, r, l] * theta[l]
            u = min(u, f)
        # Branching lifts both children where both fates cost more than the envelope: the product of the two estimates.
        paid = 0.0
        for m in range(node_coef.shape[1]):
            paid += node_coef[i, m] * max(node_kinks[i, m] - u, 0.0)
        capped = max(data.cost[i] * data.cap - paid, 0.0)
        push = data.cap * max(data.t - u, 0.0) if data.has_jump else 0.0
        believed = max(data.cost[i] * (convex_value(u, data.kinks, data.slopes) + push) - paid, 0.0)
        violation[i] = capped * believed
    return bound
