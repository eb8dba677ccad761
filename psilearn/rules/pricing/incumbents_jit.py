"""Incumbents of the search over Boolean monomials: greedy dives, and the pool of the best conjunctions met so far."""

from __future__ import annotations

import numpy as np

from ...core._jit import allocating_kernel, inner

#: Places of the integers in ``state``.
DEPTH, N_POOL, NODES, N_ALLOWED, IS_FRESH = range(5)


@inner
def literal_gains(literals, value, rows, n_gain, out):
    """Write into ``out`` (2N) the gain of the listed point rows that satisfy each literal; return their total gain."""
    N = literals.shape[1] // 2
    total = 0.0
    for l in range(2 * N):
        out[l] = 0.0
    for a in range(n_gain):
        row = rows[a]
        v = value[row]
        total += v
        for l in range(N):
            out[l] += v * literals[row, l]
    for l in range(N):
        out[N + l] = total - out[l]
    return total


@inner
def filter_rows(column, rows, n_gain, n_cost, out):
    """Copy the rows whose entry in ``column`` is 1; return the two new counts."""
    g = 0
    for a in range(n_gain):
        out[g] = rows[a]
        g += column[rows[a]]
    c = g
    for a in range(n_gain, n_gain + n_cost):
        out[c] = rows[a]
        c += column[rows[a]]
    return g, c - g


@inner
def rank_value(pool_value, n_pool, rank, threshold):
    """Return the value to beat for a place among the ``rank`` best."""
    return max(threshold, pool_value[rank - 1]) if n_pool >= rank else threshold


@inner
def offer(pool_value, pool_size, pool_literals, n_pool, value, conjunction, size, threshold, tolerance):
    """Insert a conjunction of ``size`` literals into the sorted pool unless it is too small or there already.

    Returns the new number of conjunctions in the pool.
    """
    capacity = pool_value.size
    if value <= rank_value(pool_value, n_pool, capacity, threshold) + tolerance:
        return n_pool
    for p in range(n_pool):
        if abs(pool_value[p] - value) <= tolerance:
            return n_pool
    p = min(n_pool, capacity - 1)
    while p > 0 and pool_value[p - 1] < value:
        pool_value[p] = pool_value[p - 1]
        pool_size[p] = pool_size[p - 1]
        for q in range(pool_size[p]):
            pool_literals[p, q] = pool_literals[p - 1, q]
        p -= 1
    pool_value[p] = value
    pool_size[p] = size
    for q in range(size):
        pool_literals[p, q] = conjunction[q]
    return min(n_pool + 1, capacity)


@allocating_kernel
def dive(
    literals, columns, value, n_gain, order_cost, width, threshold, tolerance,
    rows, pool_value, pool_size, pool_literals, state,
):  # fmt: skip
    """Offer to the pool the greedy conjunctions grown from each of the ``width`` best single literals (incumbents).

    ``rows`` is scratch of shape (>= 2, number of rows).
    """
    n_rows, n_literals = literals.shape
    N = n_literals // 2
    K = order_cost.size - 1
    net = np.empty(n_literals)
    singles = np.empty(n_literals)
    chosen = np.empty(K, np.int32)
    for start in range(min(width, n_literals) if K > 0 else 0):
        for a in range(n_rows):
            rows[0, a] = a
        g = n_gain
        c = n_rows - n_gain
        order = 0
        best = -np.inf
        while order < K:
            if start > 0 and order == 0:
                for l in range(n_literals):
                    net[l] = singles[l]
            else:
                literal_gains(literals, value, rows[0], g, net)
                for a in range(g, g + c):
                    row = rows[0, a]
                    for l in range(n_literals):
                        net[l] -= value[row] * literals[row, l]
            if start + order == 0:
                for l in range(n_literals):
                    singles[l] = net[l]
            for q in range(order):
                net[chosen[q] % N] = -np.inf
                net[chosen[q] % N + N] = -np.inf
            l = 0
            for k in range(n_literals):
                l = k if net[k] > net[l] else l
            if order > 0 and net[l] - order_cost[order + 1] <= best + tolerance:
                break
            best = net[l] - order_cost[order + 1]
            if order == 0:
                # the next dive starts from the next best
                singles[l] = -np.inf
            chosen[order] = l
            order += 1
            g, c = filter_rows(columns[l], rows[0], g, c, rows[1])
            for a in range(g + c):
                rows[0, a] = rows[1, a]
        state[N_POOL] = offer(
            pool_value, pool_size, pool_literals, state[N_POOL], best, chosen, order, threshold, tolerance
        )
