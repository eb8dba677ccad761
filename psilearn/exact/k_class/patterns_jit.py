"""Convex nodes of a branch and bound over truncation patterns: margin floors, envelopes, bounds, tightening.

A node fixes some samples, IN: u_i >= t and pays g(u_i), GONE: pays the cap; the others are FREE. It restricts theta to
a box. Both bound the margins, and the loss of a free sample is replaced by its convex envelope on what is left.
"""

import numpy as np

from ...core._jit import allocating_inner, allocating_kernel, inner
from ..sample_state_jit import FREE, GONE, IN
from .hinge_qp_jit import assemble, combine, make_scratch, minimise, rounding
from .relaxation_jit import convex_loss, envelope, floor_at_cap, margin

#: Relative to the terms of a margin, in units of margins: far above the rounding of p products, far below the loss.
_MARGIN_ROUNDING = 1e-11


@inner
def margin_range(rows, i, lower, upper):
    """Range of u_i = min_r rows[i, r]'theta over the box, rounded outwards."""
    low = np.inf
    high = np.inf
    largest = 0.0
    for r in range(rows.shape[1]):
        a, b, size = 0.0, 0.0, 0.0
        for l in range(lower.size):
            x = rows[i, r, l]
            a += x * (lower[l] if x > 0.0 else upper[l])
            b += x * (upper[l] if x > 0.0 else lower[l])
            size += abs(x) * max(abs(lower[l]), abs(upper[l]))
        low = min(low, a)
        high = min(high, b)
        largest = max(largest, size)
    error = _MARGIN_ROUNDING * (1.0 + largest)
    return low - error, high + error, error


@allocating_inner
def relax(data, lower, upper, state, budget, centre, room):
    """Decide what box and budget decide (``state`` is updated) and relax the rest.

    Returns (node_breakpoints, node_coef, floor, constant, cheap): hinges per sample, hard lower limits of margins, the
    constant, and a bound on the losses alone from the ranges of the margins (inf: the node is empty).
    """
    n, K = data.cost.size, data.breakpoints.size
    node_breakpoints, node_coef = np.zeros((n, K + 1)), np.zeros((n, K + 1))
    floor = np.empty(n)
    for i in range(n):
        floor[i] = -np.inf
    constant = 0.0
    cheap = 0.0
    spent = 0.0
    for i in range(n):
        if state[i] == GONE:
            spent += data.cost[i] * data.cap
    for i in range(n):
        if state[i] == GONE:
            constant += data.cost[i] * data.cap
            cheap += data.cost[i] * data.cap
            continue
        low, high, error = margin_range(data.rows, i, lower, upper)
        if state[i] == FREE:
            low = max(low, floor_at_cap(data, state, budget, spent, centre, room, i) - error)
            if low >= data.t:
                state[i] = IN
        if high < data.t:
            if state[i] == IN:
                return node_breakpoints, node_coef, floor, constant, np.inf
            state[i] = GONE
            constant += data.cost[i] * data.cap
            cheap += data.cost[i] * data.cap
            continue
        cheap += data.cost[i] * convex_loss(high, data)
        if state[i] == IN:
            for m in range(K):
                node_breakpoints[i, m] = data.breakpoints[m]
                node_coef[i, m] = data.cost[i] * data.slopes[m]
            if data.has_jump:
                floor[i] = data.t
        else:
            constant += envelope(low, high, data, i, node_breakpoints, node_coef)
    return node_breakpoints, node_coef, floor, constant, cheap


@allocating_inner
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


@allocating_inner
def _shrink(A, tau, alpha, q, lower, upper, constant, budget, centre):
    """Tighten the box by strong convexity; writes the centre of the ball and returns the dual value D.

    For theta in the node with value <= budget the Lagrangian at alpha gives
    sum_l 1/2 q_l (theta_l - v_l / q_l)^2 <= budget - D, v = A'alpha, D = constant + the dual value over the box of the
    unpenalised and over all of R of the penalised coordinates.
    """
    v, size = np.zeros(q.size), np.zeros(q.size)
    unit = rounding(A.shape[0] + q.size)
    gain, total = combine(A, tau, alpha, v, size)
    D, total = constant + gain, abs(constant) + total
    for l in range(q.size):
        if q[l] > 0.0:
            part, error = 0.5 * v[l] * v[l] / q[l], size[l] * (abs(v[l]) + unit * size[l]) / q[l]
        else:
            part, error = max(v[l] * lower[l], v[l] * upper[l]), size[l] * max(abs(lower[l]), abs(upper[l]))
        D -= part
        total += abs(part) + error
    D -= unit * total
    for l in range(q.size):
        centre[l] = 0.0
        if q[l] > 0.0:
            centre[l] = v[l] / q[l]
            radius = np.sqrt(2.0 * max(budget - D, 0.0) / q[l]) * (1.0 + unit) + unit * size[l] / q[l]
            lower[l] = max(lower[l], centre[l] - radius)
            upper[l] = min(upper[l], centre[l] + radius)
    return D


@allocating_kernel
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
        node_breakpoints, node_coef, floor, constant, cheap = relax(data, lower, upper, state, budget, centre, room)
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
        A, tau, first, c = assemble(data.rows, node_breakpoints, node_coef, floor, further, further_tau, further_cost)
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
        if state[i] != FREE:
            continue
        u = margin(data.rows, i, theta)
        # Branching lifts both children where both fates cost more than the envelope: the product of the two estimates.
        paid = 0.0
        for m in range(node_coef.shape[1]):
            paid += node_coef[i, m] * max(node_breakpoints[i, m] - u, 0.0)
        capped = max(data.cost[i] * data.cap - paid, 0.0)
        push = data.cap * max(data.t - u, 0.0) if data.has_jump else 0.0
        believed = max(data.cost[i] * (convex_loss(u, data) + push) - paid, 0.0)
        violation[i] = capped * believed
    return bound
