"""Sequential minimal optimisation along cycles of the class graph.

The dual multipliers R (k, n) of k classes live, sample by sample, on R_{y_i i} = alpha_i, R_ji <= 0 for j != y_i, columns
of R summing to zero, and every class's sum over the samples is fixed, because the intercepts are free. Sample i can
shift weight along an *arc* a <- b: R_ai rises, R_bi falls. The class sums stay put iff the arcs of all samples form
cycles of the graph whose nodes are the classes; pairs of samples (cycles of length two) alone can stall if k > 2.

    W_ab = max_i (up_ai - G_ai) - (down_bi - G_bi)

is the steepest descent along a <- b, with G = K (R - tilt) / l2 the scores without intercepts and up, down the one-sided
slopes of the dual gain. R is optimal iff no cycle has positive weight, iff intercepts b with W_ab <= b_a - b_b exist.
"""

import numpy as np
from numba import njit

BIG = 1e300  # the price of a forbidden arc; finite, so that differences stay numbers
_BLOCK = 64  # samples compared at a time; the loop over a block is a vector instruction
_RELATIVE_ZERO = 1e-13  # distance to a kink of the gain, relative to the box, that counts as on it


@njit(cache=True, nogil=True)
def price_sample(i, label, R, cost, c, t, up, down):
    """Set the one-sided slopes of sample i's gain: up (of raising R_ai) and down (of lowering R_ai)."""
    alpha = R[label, i]
    total = cost[i] * c.sum()
    tiny = _RELATIVE_ZERO * total
    for a in range(R.shape[0]):
        up[a, i] = 0.0 if R[a, i] < -tiny else -BIG
        down[a, i] = 0.0
    up[label, i], down[label, i] = -BIG, BIG
    end = 0.0
    for p in range(c.size):  # the hinges fill in the order of the margin's fall
        start, end = end, end + cost[i] * c[p]
        if alpha < end - tiny and up[label, i] == -BIG:
            up[label, i] = t[p]
        if alpha > start + tiny:
            down[label, i] = t[p]


@njit(cache=True, nogil=True)
def price_all(y, R, cost, c, t, up, down):
    """Set the slopes of every sample."""
    for i in range(y.size):
        price_sample(i, y[i], R, cost, c, t, up, down)


@njit(cache=True, nogil=True)
def _kinks(alpha, cost, c):
    """Next kinks of the gain below and above alpha."""
    tiny = _RELATIVE_ZERO * cost * c.sum()
    below, above, end = 0.0, 0.0, 0.0
    for p in range(c.size):
        start, end = end, end + cost * c[p]
        if alpha > start + tiny:
            below = start
        above = end
        if alpha < end - tiny:
            break
    return below, above


@njit(cache=True, nogil=True)
def _room(i, label, a, b, R, cost, c):
    """How far sample i can move along the arc a <- b before a kink or a bound."""
    below, above = _kinks(R[label, i], cost[i], c)
    if a == label:
        return above - R[a, i]
    return min(-R[a, i], R[b, i] - below) if b == label else -R[a, i]


@njit(cache=True, nogil=True, fastmath={"nnan", "nsz", "contract"})
def _best_arc(up, down, G, a, b):
    """Return W_ab and the sample that attains it."""
    n = G.shape[1]
    up_a, G_a, down_b, G_b = up[a], G[a], down[b], G[b]
    best, where = -np.inf, 0
    for start in range(0, n, _BLOCK):
        stop = min(start + _BLOCK, n)
        top = -np.inf
        for i in range(start, stop):
            top = max(top, (up_a[i] - G_a[i]) - (down_b[i] - G_b[i]))
        if top > best:
            best, where = top, start
    for i in range(where, min(where + _BLOCK, n)):
        if (up_a[i] - G_a[i]) - (down_b[i] - G_b[i]) == best:
            return best, i
    return best, where


@njit(cache=True, nogil=True, fastmath={"nnan", "nsz", "contract"})
def _best_partner(up, down, G, a, b, weight, row, diagonal, i, floor):
    """Return the sample p on a <- b whose pair with sample i, of arc weight ``weight``, promises the largest fall."""
    n = G.shape[1]
    up_a, G_a, down_b, G_b = up[a], G[a], down[b], G[b]
    own = diagonal[i]
    best, where = 0.0, -1
    gains = np.empty(_BLOCK)
    for start in range(0, n, _BLOCK):
        stop = min(start + _BLOCK, n)
        top = 0.0
        for p in range(start, stop):
            slope = max(weight + ((up_a[p] - G_a[p]) - (down_b[p] - G_b[p])), 0.0)
            gain = slope * slope / max(own + diagonal[p] - 2.0 * row[p], floor)
            gains[p - start] = gain
            top = max(top, gain)
        if top > best:
            best = top
            for p in range(start, stop):
                if gains[p - start] == top:
                    where = p
                    break
    return where


@njit(cache=True, nogil=True)
def potentials(W, mu, b, parent):
    """Find b with W_rs - mu <= b_r - b_s by Bellman-Ford; return -1, or a class on a cycle of mean weight above mu."""
    k = W.shape[0]
    b[:] = 0.0
    parent[:] = -1
    for _ in range(k + 1):
        changed = -1
        for r in range(k):
            for s in range(k):
                if r != s and b[s] + W[r, s] - mu > b[r] + 1e-15 * abs(b[r]):
                    b[r] = b[s] + W[r, s] - mu
                    parent[r] = s
                    changed = r
        if changed < 0:
            return -1
    for _ in range(k):  # walk back until surely on the cycle
        if parent[changed] < 0:
            return -1
        changed = parent[changed]
    return changed


@njit(cache=True, nogil=True)
def steepest_cycle(W, mu, cycle):
    """Write a cycle of mean weight above mu into ``cycle``; return its length (0: none) and its weight."""
    k = W.shape[0]
    length, weight, merit = 0, 0.0, 0.0
    for r in range(k):
        for s in range(r + 1, k):
            pair = W[r, s] + W[s, r]
            if pair > 2.0 * mu and pair > 0.0 and 0.5 * pair * pair > merit:
                length, weight, merit = 2, pair, 0.5 * pair * pair
                cycle[0], cycle[1] = r, s
            for u in range(r + 1, k):
                if u != s:
                    triple = W[r, s] + W[s, u] + W[u, r]
                    if triple > 3.0 * mu and triple > 0.0 and triple * triple / 3.0 > merit:
                        length, weight, merit = 3, triple, triple * triple / 3.0
                        cycle[0], cycle[1], cycle[2] = r, s, u
    if length > 0 or k < 4:
        return length, weight
    b, parent = np.empty(k), np.empty(k, np.int64)
    first = potentials(W, mu, b, parent)
    if first < 0:
        return 0, 0.0
    node = first
    while True:
        cycle[length] = node
        weight += W[node, parent[node]]
        node = parent[node]
        length += 1
        if node == first:
            return length, weight


@njit(cache=True, nogil=True)
def arc_weights(up, down, G, W, samples):
    """Fill W and the samples that attain it, all arcs."""
    k = W.shape[0]
    for a in range(k):
        W[a, a] = 0.0
        for b in range(k):
            if a != b:
                W[a, b], samples[a, b] = _best_arc(up, down, G, a, b)


@njit(cache=True, nogil=True)
def add_rows(K, rows, steps, G):
    """Add steps_a' K[rows] to every row a of G, in float64 whatever K is stored in."""
    for a in range(G.shape[0]):
        target = G[a]
        for r in range(rows.size):
            step = steps[a, r]
            if step != 0.0:
                row = K[rows[r]]
                for q in range(target.size):
                    target[q] += step * row[q]


@njit(cache=True, nogil=True)
def _curvature(K, diagonal, chosen, length):
    """Second derivative along a cycle: in each class one sample rises and the one before falls."""
    total = 0.0
    for l in range(length):
        i, p = chosen[l], chosen[l - 1 if l > 0 else length - 1]
        total += diagonal[i] + diagonal[p] - 2.0 * K[i, p]
    return total


@njit(cache=True, nogil=True, fastmath={"contract"})
def descend(K, inverse_l2, y, cost, c, t, R, G, mu, max_iter):
    """Move R (and G with it) along cycles until every cycle's mean weight is at most mu, or max_iter moves are made.

    Returns the number of moves and whether the goal was reached.
    """
    k, n = R.shape
    up, down = np.empty((k, n)), np.empty((k, n))
    price_all(y, R, cost, c, t, up, down)
    diagonal = np.empty(n)
    for i in range(n):
        diagonal[i] = K[i, i]
    floor = 1e-12 * max(np.abs(diagonal).max(), 1e-300)
    W, samples = np.empty((k, k)), np.empty((k, k), np.int64)
    cycle, chosen = np.empty(k, np.int64), np.empty(k, np.int64)
    arc_weights(up, down, G, W, samples)
    for move in range(max_iter):
        length, weight = steepest_cycle(W, mu, cycle)
        if length == 0:
            return move, True
        for l in range(length):
            chosen[l] = samples[cycle[l], cycle[(l + 1) % length]]
        if length == 2:
            a, b = cycle[0], cycle[1]
            if W[b, a] > W[a, b]:
                a, b = b, a
            cycle[0], cycle[1] = a, b
            i = samples[a, b]
            p = _best_partner(up, down, G, b, a, W[a, b], K[i], diagonal, i, floor)
            chosen[0], chosen[1] = i, p if p >= 0 else samples[b, a]
            p = chosen[1]
            weight = W[a, b] + (up[b, p] - G[b, p]) - (down[a, p] - G[a, p])
        bend = _curvature(K, diagonal, chosen, length) * inverse_l2
        step = weight / bend if bend > floor * inverse_l2 else np.inf
        limit, tight = np.inf, 0
        for l in range(length):
            room = _room(chosen[l], y[chosen[l]], cycle[l], cycle[(l + 1) % length], R, cost, c)
            if room < limit:
                limit, tight = room, l
        step = max(min(step, limit), 0.0)
        for l in range(length):
            a, b, i = cycle[l], cycle[(l + 1) % length], chosen[l]
            before = chosen[l - 1 if l > 0 else length - 1]
            if step > 0.0:
                R[a, i] += step
                R[b, i] -= step
            row_i, row_p, target = K[i], K[before], G[a]
            change = step * inverse_l2
            for q in range(n):
                target[q] += change * (row_i[q] - row_p[q])
        for l in range(length):
            price_sample(chosen[l], y[chosen[l]], R, cost, c, t, up, down)
        for a in range(k):
            for b in range(k):
                if a != b:
                    touched = False
                    for l in range(length):
                        touched = touched or cycle[l] == a or cycle[l] == b
                    if touched:
                        W[a, b], samples[a, b] = _best_arc(up, down, G, a, b)
    return max_iter, False
