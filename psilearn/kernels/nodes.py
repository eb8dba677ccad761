"""Convex nodes of a branch and bound over truncation patterns and boxes: envelopes, bounds, tightening, branching.

A node fixes some samples, state 1: u_i >= t and pays g(u_i), state 2: pays the cap, state 0: free, and restricts theta
to a box, which bounds every margin. The loss of a free sample is replaced by its convex envelope on that range.
"""

import numpy as np
from numba import njit

from .hinge_qp import assemble, solve_hinge_qp


@njit(cache=True, nogil=True)
def _g(u, kinks, slopes):
    total = 0.0
    for m in range(kinks.size):
        if u < kinks[m]:
            total += slopes[m] * (kinks[m] - u)
    return total


@njit(cache=True, nogil=True)
def margin_range(rows, i, lower, upper, is_intercept, reach):
    """Range of u_i = min_r rows[i, r]'theta over the box; |slope part of row r| <= reach[i, r] besides."""
    low = np.inf
    high = np.inf
    for r in range(rows.shape[1]):
        a, b, c, d = 0.0, 0.0, 0.0, 0.0
        for l in range(lower.size):
            x = rows[i, r, l]
            small, large = (x * lower[l], x * upper[l]) if x > 0.0 else (x * upper[l], x * lower[l])
            if is_intercept[l]:
                c += small
                d += large
            else:
                a += small
                b += large
        low = min(low, max(a, -reach[i, r]) + c)
        high = min(high, min(b, reach[i, r]) + d)
    return low, high


@njit(cache=True, nogil=True)
def envelope(low, high, kinks, slopes, t, cap, out_kinks, out_coef):
    """Convex envelope, on low <= u <= high with low < t <= high, of g for u >= t and cap below.

    The steepest line from (low, cap) to a point (x, g(x)), x in {t, kinks, high}, then g: written as hinges with kinks
    ``out_kinks`` and coefficients ``out_coef`` (one more than g has) plus the returned constant.
    """
    K = kinks.size
    out_kinks[:K] = kinks
    out_kinks[K] = t
    out_coef[:] = 0.0
    if low == -np.inf:  # only a constant lies below a bounded function on a half-line
        return _g(high, kinks, slopes)
    best_x, best_slope = t, -1.0
    for m in range(K + 2):
        x = t if m == K else (high if m == K + 1 else kinks[m])
        if x < t or x > high or x == np.inf:
            continue
        slope = (cap - _g(x, kinks, slopes)) / (x - low)
        if slope > best_slope:
            best_x, best_slope = x, slope
    out_kinks[K] = best_x
    out_coef[K] = best_slope
    if best_x >= high:
        return _g(high, kinks, slopes)
    for m in range(K):
        if kinks[m] > best_x:
            out_coef[m] = slopes[m]
            out_coef[K] -= slopes[m]
    out_coef[K] = max(out_coef[K], 0.0)
    return 0.0


@njit(cache=True, nogil=True)
def relax(rows, cost, kinks, slopes, t, cap, has_jump, is_intercept, reach, lower, upper, state):
    """Decide what the box decides (``state`` is updated) and relax the rest.

    Returns (node_kinks, node_coef, floor, constant, cheap): hinges per sample, hard lower limits of margins, the
    constant, and a bound on the losses alone from the ranges of the margins (inf: the node is empty).
    """
    n, K = rows.shape[0], kinks.size
    node_kinks, node_coef = np.zeros((n, K + 1)), np.zeros((n, K + 1))
    floor = np.full(n, -np.inf)
    constant = 0.0
    cheap = 0.0
    for i in range(n):
        if state[i] == 2:
            constant += cost[i] * cap
            cheap += cost[i] * cap
            continue
        low, high = margin_range(rows, i, lower, upper, is_intercept, reach)
        room = 1e-9 * (1.0 + abs(low) + abs(high))
        low -= room
        high += room
        if high < t:
            if state[i] == 1:
                cheap = np.inf
                break
            state[i] = 2
            constant += cost[i] * cap
            cheap += cost[i] * cap
            continue
        cheap += cost[i] * _g(high, kinks, slopes)
        if state[i] == 1 or low >= t:
            for m in range(K):
                node_kinks[i, m] = kinks[m]
                node_coef[i, m] = cost[i] * slopes[m] if low < kinks[m] else 0.0
            if has_jump and low < t:
                floor[i] = t
            continue
        constant += cost[i] * envelope(low, high, kinks, slopes, t, cap, node_kinks[i], node_coef[i])
        for m in range(K + 1):
            node_coef[i, m] *= cost[i]
    return node_kinks, node_coef, floor, constant, cheap


@njit(cache=True, nogil=True)
def envelopes(low, cost, kinks, slopes, t, cap):
    """Kinks and coefficients, each (n, K + 1), of the convex envelopes of cost_i times the loss on [low_i, inf)."""
    n, K = low.size, kinks.size
    node_kinks, node_coef = np.zeros((n, K + 1)), np.zeros((n, K + 1))
    for i in range(n):
        if low[i] < t:
            envelope(low[i], np.inf, kinks, slopes, t, cap, node_kinks[i], node_coef[i])
        else:
            node_kinks[i, :K] = kinks
            node_coef[i, :K] = slopes
        node_coef[i] *= cost[i]
    return node_kinks, node_coef


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
def _box_rows(lower, upper, extra_rows, extra_cost):
    """The further hinges followed by the sides of the box as hard constraints."""
    p, extra = lower.size, extra_cost.size
    rows, tau, cost = np.zeros((extra + 2 * p, p)), np.zeros(extra + 2 * p), np.full(extra + 2 * p, np.inf)
    rows[:extra] = extra_rows
    cost[:extra] = extra_cost
    for l in range(p):
        rows[extra + 2 * l, l] = 1.0
        tau[extra + 2 * l] = lower[l]
        rows[extra + 2 * l + 1, l] = -1.0
        tau[extra + 2 * l + 1] = -upper[l]
    return rows, tau, cost


@njit(cache=True, nogil=True)
def _shrink(A, tau, alpha, q, lower, upper, slackness):
    """Tighten the box by strong convexity.

    For theta in the node with value <= U the Lagrangian at alpha gives
    sum_l 1/2 q_l (theta_l - v_l / q_l)^2 <= U - D, v = A'alpha, D the dual value over the box of the unpenalised and
    over all of R of the penalised coordinates; ``slackness`` is U minus the constant of the node.
    """
    p = q.size
    v = np.zeros(p)
    D = 0.0
    for r in range(A.shape[0]):
        D += alpha[r] * tau[r]
        for l in range(p):
            v[l] += alpha[r] * A[r, l]
    for l in range(p):
        if q[l] > 0.0:
            D -= 0.5 * v[l] * v[l] / q[l]
        else:
            D -= v[l] * (upper[l] if v[l] > 0.0 else lower[l])
    room = max(slackness - D, 0.0) + 1e-9 * (abs(slackness) + abs(D))
    for l in range(p):
        if q[l] > 0.0:
            radius = np.sqrt(2.0 * room / q[l])
            lower[l] = max(lower[l], v[l] / q[l] - radius)
            upper[l] = min(upper[l], v[l] / q[l] + radius)


@njit(cache=True, nogil=True)
def bound_node(
    rows, cost, kinks, slopes, t, cap, has_jump, is_intercept, reach, q, extra_rows, extra_cost,
    lower, upper, state, known, cutoff, tol, passes, theta, violation,
):  # fmt: skip
    """Bound a node from below; tightens ``lower``, ``upper`` and ``state`` in place.

    ``known`` is the incumbent's value (tightening keeps every point at most that good), ``cutoff`` the bound at which
    the node can be discarded. ``theta`` receives the relaxed minimiser, ``violation`` each sample's loss above its
    envelope there. Returns the bound (inf: empty node).
    """
    n, p = rows.shape[0], q.size
    bound = -np.inf
    for _ in range(passes):
        node_kinks, node_coef, floor, constant, cheap = relax(
            rows, cost, kinks, slopes, t, cap, has_jump, is_intercept, reach, lower, upper, state
        )
        for l in range(p):
            if lower[l] > upper[l]:
                return np.inf
            nearest = min(max(0.0, lower[l]), upper[l])
            cheap += 0.5 * q[l] * nearest * nearest
            theta[l] = 0.5 * (lower[l] + upper[l])
        bound = max(bound, cheap)
        if bound >= cutoff:
            return bound
        further, further_tau, further_cost = _box_rows(lower, upper, extra_rows, extra_cost)
        A, tau, first, c = assemble(rows, node_kinks, node_coef, floor, further, further_tau, further_cost)
        value, alpha = solve_hinge_qp(A, tau, first, c, np.zeros(p), q, lower, upper, theta, tol, cutoff - constant, 50)
        bound = max(bound, value + constant)
        if bound >= cutoff:
            return bound
        before = 0.0
        for l in range(p):
            before += np.log(upper[l] - lower[l] + 1e-300)
        _shrink(A, tau, alpha, q, lower, upper, known - constant)
        after = 0.0
        for l in range(p):
            after += np.log(max(upper[l] - lower[l], 0.0) + 1e-300)
        if after > before - 0.5:
            break
    for i in range(n):
        violation[i] = 0.0
        if state[i] != 0:
            continue
        u = np.inf
        for r in range(rows.shape[1]):
            f = 0.0
            for l in range(p):
                f += rows[i, r, l] * theta[l]
            u = min(u, f)
        loss = min(_g(u, kinks, slopes), cap) if u >= t else cap
        low, high = margin_range(rows, i, lower, upper, is_intercept, reach)
        if low >= t or high < t:
            continue
        paid = envelope(low, high, kinks, slopes, t, cap, node_kinks[i], node_coef[i])
        for m in range(kinks.size + 1):
            paid += node_coef[i, m] * max(node_kinks[i, m] - u, 0.0)
        violation[i] = cost[i] * max(loss - paid, 0.0)
    return bound


@njit(cache=True, nogil=True)
def widest_coordinate(rows, lower, upper, violation):
    """Coordinate whose width is most to blame for the violated envelopes."""
    n, n_rivals, p = rows.shape
    blame = np.zeros(p)
    part = np.empty(p)
    for i in range(n):
        if violation[i] <= 0.0:
            continue
        for r in range(n_rivals):
            total = 0.0
            for l in range(p):
                part[l] = abs(rows[i, r, l]) * (upper[l] - lower[l])
                total += part[l]
            for l in range(p):
                blame[l] += violation[i] * part[l] / total
    return np.argmax(blame)
