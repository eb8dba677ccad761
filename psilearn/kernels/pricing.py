"""Branch and bound over Boolean monomials: the search behind exact pricing.

A *row* is a point (or a pair of points, which satisfies a literal when both points do), given by the 0/1 vector of the
2N literals it satisfies: literal l < N is attribute l, literal l + N its negation. The first ``n_gain`` rows carry
gains, the others costs, all positive. Sought are the conjunctions T of at most K literals with the largest

    f(T) = gain of the rows satisfying T - cost of the rows satisfying T - c(|T|).

A node is a conjunction R with a list of literals still allowed below it. Let G be the gain of its rows, G_l the gain of
those that satisfy literal l, d_l = G - G_l >= 0, and e_r = min {d_l : l allowed, row r fails l} for a cost row r.

Upper bound. Let T, inside the node's subtree, contain l. It loses D >= d_l of the gain (its rows satisfy l), and a cost
row it gets rid of fails some literal l' of T, so that e_r <= d_l' <= D. Hence

    f(T) <= max over D >= d_l of  G - D - sum {cost of r : e_r > D} - min over k > |R| of c(k),

a step function of D that changes at the d's of the allowed literals only. With D >= d_l ignored and e_r = 0 it is the
classical bound G. A literal whose bound does not beat the incumbent is forbidden in the whole subtree, as is, in the
t-th child, every literal of the children before it; both make the e_r of the descendants larger.

Conflicts. ``conflict[l, k]`` forbids k below l: its negation and, where a shorter conjunction does the same and costs
no more, literals one of which implies the other on all rows.

Closing (any order, constant c). If all gain rows of the node satisfy an allowed literal, adding it costs nothing: it is
added. If they all satisfy a literal that is forbidden, then f(T) <= f(T with it), and that conjunction belongs to an
earlier or a pruned branch: the node is pruned.
"""

from __future__ import annotations

import numpy as np
from numba import njit

#: Places of the integers in ``state``.
DEPTH, N_POOL, NODES, N_ALLOWED, IS_FRESH = range(5)


@njit(cache=True, nogil=True)
def literal_gains(literals, value, rows, n_gain, out):
    """Write into ``out`` (2N) the gain of the listed point rows that satisfy each literal; return their total gain."""
    N = literals.shape[1] // 2
    total = 0.0
    out[:] = 0.0
    for a in range(n_gain):
        row = rows[a]
        v = value[row]
        total += v
        for l in range(N):
            out[l] += v * literals[row, l]
    for l in range(N):
        out[N + l] = total - out[l]
    return total


@njit(cache=True, nogil=True)
def _few_gains(literals, value, rows, n_gain, allowed, n_allowed, out):
    """The same for a short list of literals only; the others' entries of ``out`` are left as they are."""
    total = 0.0
    for q in range(n_allowed):
        out[allowed[q]] = 0.0
    for a in range(n_gain):
        row = rows[a]
        v = value[row]
        total += v
        for q in range(n_allowed):
            if literals[row, allowed[q]]:
                out[allowed[q]] += v
    return total


@njit(cache=True, nogil=True)
def _filter(literals, rows, n_gain, n_cost, l, out):
    """Copy the rows that satisfy literal l; return the two new counts."""
    g = 0
    for a in range(n_gain):
        if literals[rows[a], l]:
            out[g] = rows[a]
            g += 1
    c = g
    for a in range(n_gain, n_gain + n_cost):
        if literals[rows[a], l]:
            out[c] = rows[a]
            c += 1
    return g, c - g


@njit(cache=True, nogil=True)
def _rank_value(pool_value, n_pool, rank, threshold):
    """Return the value to beat for a place among the ``rank`` best."""
    return max(threshold, pool_value[rank - 1]) if n_pool >= rank else threshold


@njit(cache=True, nogil=True)
def _offer(pool_value, pool_size, pool_literals, n_pool, value, conjunction, threshold, tolerance):
    """Insert a conjunction into the sorted pool unless it is too small or there already; return the new pool count."""
    capacity = pool_value.size
    if value <= _rank_value(pool_value, n_pool, capacity, threshold) + tolerance:
        return n_pool
    for p in range(n_pool):
        if abs(pool_value[p] - value) <= tolerance:
            return n_pool
    p = min(n_pool, capacity - 1)
    while p > 0 and pool_value[p - 1] < value:
        pool_value[p] = pool_value[p - 1]
        pool_size[p] = pool_size[p - 1]
        pool_literals[p] = pool_literals[p - 1]
        p -= 1
    pool_value[p] = value
    pool_size[p] = conjunction.size
    pool_literals[p, : conjunction.size] = conjunction
    return min(n_pool + 1, capacity)


@njit(cache=True, nogil=True)
def dive(
    literals, value, n_gain, order_cost, width, threshold, tolerance, rows, pool_value, pool_size, pool_literals, state
):
    """Offer to the pool the greedy conjunctions grown from each of the ``width`` best single literals (incumbents).

    ``rows`` is scratch of shape (>= 2, number of rows).
    """
    n_rows, n_literals = literals.shape
    K = order_cost.size - 1
    net = np.empty(n_literals)
    chosen = np.empty(K, np.int32)
    starts = np.empty(0, np.int64)
    for start in range(-1, min(width, n_literals) if K > 0 else -1):
        rows[0] = np.arange(n_rows)
        g = n_gain
        c = n_rows - n_gain
        order = 0
        best = -np.inf
        while order < K:
            net[:] = 0.0
            for a in range(g + c):
                row = rows[0, a]
                v = value[row] if a < g else -value[row]
                for l in range(n_literals):
                    net[l] += v * literals[row, l]
            if start < 0:
                starts = np.argsort(-net)
                break
            for q in range(order):
                net[chosen[q] % (n_literals // 2) :: n_literals // 2] = -np.inf
            l = int(starts[start] if order == 0 else np.argmax(net))
            if order > 0 and net[l] - order_cost[order + 1] <= best + tolerance:
                break
            best = net[l] - order_cost[order + 1]
            chosen[order] = l
            order += 1
            g, c = _filter(literals, rows[0], g, c, l, rows[1])
            rows[0] = rows[1]
        state[N_POOL] = _offer(
            pool_value, pool_size, pool_literals, state[N_POOL], best, chosen[:order], threshold, tolerance
        )


@njit(cache=True, nogil=True)
def _close(literals, gain, total, rows, n_gain, n_cost, inside, allowed, n_allowed, tolerance):
    """Add the literals that cost no gain; return (cost rows left, literals allowed, whether the node is dominated)."""
    is_allowed = np.zeros(gain.size, np.bool_)
    for q in range(n_allowed):
        is_allowed[allowed[q]] = True
    for l in range(gain.size):
        if gain[l] < total - tolerance or inside[l]:
            continue
        if not is_allowed[l]:
            return n_cost, 0, True
        inside[l] = 1
        left = n_gain
        for a in range(n_gain, n_gain + n_cost):
            if literals[rows[a], l]:
                rows[left] = rows[a]
                left += 1
        n_cost = left - n_gain
    left = 0
    for q in range(n_allowed):
        if not inside[allowed[q]]:
            allowed[left] = allowed[q]
            left += 1
    return n_cost, left, False


@njit(cache=True, nogil=True)
def _sort_descending(key, item, n):
    """Sort the first n of both arrays by descending key (the lists of a child are nearly sorted already)."""
    if n > 256:
        order = np.argsort(-key[:n])
        key[:n] = key[:n][order]
        item[:n] = item[:n][order]
        return
    for a in range(1, n):
        k = key[a]
        i = item[a]
        b = a
        while b > 0 and key[b - 1] < k:
            key[b] = key[b - 1]
            item[b] = item[b - 1]
            b -= 1
        key[b] = k
        item[b] = i


@njit(cache=True, nogil=True)
def _branch(
    literals, value, rows, n_gain, n_cost, gain, total, later_cost, floor, allowed, n_allowed, cand, cand_bound
):
    """Write the children whose bound beats ``floor``, smallest gain first; return their number."""
    drop = np.empty(n_allowed)
    m = 0
    for q in range(n_allowed):
        l = allowed[q]
        if gain[l] - later_cost > floor:
            allowed[m] = l
            drop[m] = total - gain[l]
            m += 1
    if m == 0:
        return 0
    _sort_descending(drop, allowed, m)
    kept = np.zeros(m + 1)
    for a in range(n_gain, n_gain + n_cost):
        row = rows[a]
        t = m
        while t > 0 and literals[row, allowed[t - 1]]:
            t -= 1
        kept[t] += value[row]
    never_removed = kept[0]
    bound = -np.inf
    n = 0
    for t in range(m):
        bound = max(bound, total - drop[t] - never_removed - later_cost)
        never_removed += kept[t + 1]
        if bound > floor:
            cand[n] = allowed[t]
            cand_bound[n] = bound
            n += 1
    return n


@njit(cache=True, nogil=True)
def advance(
    literals, value, conflict, order_cost, later_cost, closes, rank, threshold, tolerance, budget,
    rows, counts, cand, cand_bound, cursor, chosen, inside, allowed, pool_value, pool_size, pool_literals, state,
):  # fmt: skip
    """Continue the depth-first search for about ``budget`` nodes; return True when the tree is exhausted.

    What cannot be among the ``rank`` best is cut off; the pool may hold more than that, met on the way.
    ``rows, counts, cand, cand_bound, cursor, inside`` hold one line per depth: the rows, (gains, costs), the children
    with their bounds, (number, next) and, when closing, the literals all gain rows satisfy.
    """
    n_literals = literals.shape[1]
    K = order_cost.size - 1
    gain = np.empty(n_literals)
    capacity = pool_value.size
    stop = state[NODES] + budget
    depth = state[DEPTH]
    n_allowed = state[N_ALLOWED]
    fresh = state[IS_FRESH] == 1
    while depth >= 0:
        floor = _rank_value(pool_value, state[N_POOL], rank, threshold) + tolerance
        if fresh:
            fresh = False
            state[NODES] += 1
            g, c = counts[depth]
            cursor[depth] = 0
            total = 0.0
            dominated = False
            if depth < K:
                if closes or 8 * n_allowed > n_literals:
                    total = literal_gains(literals, value, rows[depth], g, gain)
                else:
                    total = _few_gains(literals, value, rows[depth], g, allowed, n_allowed, gain)
                if closes:
                    c, n_allowed, dominated = _close(
                        literals, gain, total, rows[depth], g, c, inside[depth], allowed, n_allowed, tolerance
                    )
                    counts[depth, 1] = c
            else:
                for a in range(g):
                    total += value[rows[depth, a]]
            if not dominated:
                f = total - order_cost[depth]
                for a in range(g, g + c):
                    f -= value[rows[depth, a]]
                if f > _rank_value(pool_value, state[N_POOL], capacity, threshold) + tolerance:
                    conjunction = np.flatnonzero(inside[depth]).astype(np.int32) if closes else chosen[:depth]
                    state[N_POOL] = _offer(
                        pool_value, pool_size, pool_literals, state[N_POOL], f, conjunction, threshold, tolerance
                    )
                    floor = _rank_value(pool_value, state[N_POOL], rank, threshold) + tolerance
                if depth < K and (c > 0 or rank > 1 or later_cost[depth + 1] < order_cost[depth]):
                    cursor[depth, 0] = _branch(
                        literals, value, rows[depth], g, c, gain, total, later_cost[depth + 1], floor,
                        allowed, n_allowed, cand[depth], cand_bound[depth],
                    )  # fmt: skip
        if state[NODES] >= stop:
            break
        n, t = cursor[depth]
        while t < n and cand_bound[depth, t] <= floor:
            t += 1
        if t >= n:
            cursor[depth, 1] = n
            depth -= 1
            continue
        cursor[depth, 1] = t + 1
        l = cand[depth, t]
        n_allowed = 0
        for q in range(t + 1, n):
            other = cand[depth, q]
            if not conflict[l, other]:
                allowed[n_allowed] = other
                n_allowed += 1
        chosen[depth] = l
        g, c = _filter(literals, rows[depth], counts[depth, 0], counts[depth, 1], l, rows[depth + 1])
        depth += 1
        counts[depth] = (g, c)
        if closes:
            inside[depth] = inside[depth - 1]
            inside[depth, l] = 1
        fresh = True
    state[DEPTH] = depth
    state[N_ALLOWED] = n_allowed
    state[IS_FRESH] = 1 if fresh else 0
    return depth < 0
