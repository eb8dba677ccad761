"""Sequential minimal optimisation along cycles of the class graph.

The dual multipliers R (k, n) of k classes obey, sample by sample, R_ai = alpha_i for the own class a = y_i, R_ai <= 0
for the others, sum_a R_ai = 0; and every class's sum over samples is fixed, because the intercepts are free. Sample i
can shift weight along an *arc* a <- b: R_ai rises, R_bi falls. The class sums stay put iff the arcs of all samples form
cycles of the graph whose nodes are the classes; pairs of samples (cycles of length two) alone can stall if k > 2.

    W_ab = max_i (up_ai - G_ai) - (down_bi - G_bi)

is the steepest descent along a <- b, with G = K (R - tilt) / l2 the scores without intercepts and up, down the
one-sided slopes of the dual gain. R is optimal iff no cycle has positive weight, that is, iff there are intercepts b
with W_ab <= b_a - b_b.
"""

import numpy as np
from numba import njit

BIG = 1e300  # the price of a forbidden arc; finite, so that differences stay numbers
_LANES = 32
_STAY = 4  # moves on a pair of classes before all arcs are compared again
_ROUNDING = 1e-15  # relative distance to a breakpoint of the gain that counts as on it


@njit(cache=True, nogil=True, error_model="numpy")
def price_sample(i, label, R, prices, t, up, down):
    """Set the one-sided slopes of sample i's gain: up (of raising R_ai) and down (of lowering R_ai)."""
    alpha = R[label, i]
    for a in range(R.shape[0]):
        up[a, i] = 0.0 if R[a, i] < 0.0 else -BIG
        down[a, i] = 0.0
    up[label, i], down[label, i] = -BIG, BIG
    end = 0.0
    for p in range(t.size):  # the hinges fill in the order of the margin's fall
        start, end = end, end + prices[i, p]
        if alpha < end * (1.0 - _ROUNDING) and up[label, i] == -BIG:
            up[label, i] = t[p]
        if alpha > start * (1.0 + _ROUNDING):
            down[label, i] = t[p]


@njit(cache=True, nogil=True, error_model="numpy")
def price_all(y, R, prices, t, up, down):
    """Set the slopes of every sample."""
    for i in range(y.size):
        price_sample(i, y[i], R, prices, t, up, down)


@njit(cache=True, nogil=True, error_model="numpy")
def _breakpoints(alpha, prices):
    """Next breakpoints of the gain below and above alpha."""
    below, above, end = 0.0, 0.0, 0.0
    for p in range(prices.size):
        start, end = end, end + prices[p]
        if alpha > start * (1.0 + _ROUNDING):
            below = start
        above = end
        if alpha < end * (1.0 - _ROUNDING):
            break
    return below, above


@njit(cache=True, nogil=True, error_model="numpy")
def _room(i, label, a, b, R, prices):
    """How far sample i can move along the arc a <- b before a breakpoint or a bound."""
    below, above = _breakpoints(R[label, i], prices[i])
    if a == label:
        return above - R[a, i]
    return min(-R[a, i], R[b, i] - below) if b == label else -R[a, i]


@njit(cache=True, nogil=True, error_model="numpy")
def _argmax(values):
    """Index of the largest value; lanes compared side by side become vector instructions, which np.argmax does not."""
    whole = values.size - values.size % _LANES
    lanes = np.full(_LANES, -np.inf)
    for start in range(0, whole, _LANES):
        block = values[start : start + _LANES]
        for j in range(_LANES):
            lanes[j] = block[j] if block[j] > lanes[j] else lanes[j]
    lane = 0
    for j in range(1, _LANES):
        if lanes[j] > lanes[lane]:
            lane = j
    best, where = lanes[lane], lane
    while where < whole and values[where] != best:
        where += _LANES
    for i in range(whole, values.size):
        if values[i] > best:
            best, where = values[i], i
    return where


@njit(cache=True, nogil=True, error_model="numpy")
def _best_arc(up, down, G, a, b, scratch):
    """Return W_ab and the sample that attains it."""
    up_a, G_a, down_b, G_b = up[a], G[a], down[b], G[b]
    for i in range(scratch.size):
        scratch[i] = (up_a[i] - G_a[i]) - (down_b[i] - G_b[i])
    i = _argmax(scratch)
    return scratch[i], i


@njit(cache=True, nogil=True, error_model="numpy")
def _best_partner(up, down, G, a, b, weight, row, diagonal, own, floor, scratch):
    """Return the sample on a <- b that promises the largest fall together with one of arc weight ``weight``.

    The fall of a pair is slope^2 / (2 curvature); ``row`` and ``own`` are the first sample's kernel values.
    """
    up_a, G_a, down_b, G_b = up[a], G[a], down[b], G[b]
    for p in range(scratch.size):
        slope = weight + ((up_a[p] - G_a[p]) - (down_b[p] - G_b[p]))
        slope = slope if slope > 0.0 else 0.0
        bend = own + diagonal[p] - 2.0 * row[p]
        scratch[p] = slope * slope / (bend if bend > floor else floor)
    return _argmax(scratch)


@njit(cache=True, nogil=True, error_model="numpy")
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
    for _ in range(k):  # go back until surely on the cycle
        if parent[changed] < 0:
            return -1
        changed = parent[changed]
    return changed


@njit(cache=True, nogil=True, error_model="numpy")
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


@njit(cache=True, nogil=True, error_model="numpy")
def arc_weights(up, down, G, W, samples):
    """Fill W and the samples that attain it, all arcs."""
    k = W.shape[0]
    scratch = np.empty(G.shape[1])
    for a in range(k):
        W[a, a] = 0.0
        for b in range(k):
            if a != b:
                W[a, b], samples[a, b] = _best_arc(up, down, G, a, b, scratch)


@njit(cache=True, nogil=True, error_model="numpy")
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


@njit(cache=True, nogil=True, error_model="numpy")
def rebalance(K, inverse_l2, y, prices, t, R, G, up, down, missing):
    """Move R (and G with it) until the class sums have changed by ``missing``, each time along the best arc.

    No step is longer than half a box, so that many samples share a large change. Returns False if no arc is left.
    """
    n = R.shape[1]
    scratch = np.empty(n)
    negligible = 1e-15 * (np.abs(R).sum() + np.abs(missing).sum())
    for _ in range(100 * n):
        a, b = np.argmax(missing), np.argmin(missing)
        amount = min(missing[a], -missing[b])
        if amount <= negligible:
            return True
        weight, i = _best_arc(up, down, G, a, b, scratch)
        if weight < -0.5 * BIG:
            return False
        step = min(amount, _room(i, y[i], a, b, R, prices), 0.5 * prices[i].sum())
        R[a, i] += step
        R[b, i] -= step
        missing[a] -= step
        missing[b] += step
        row, change = K[i], step * inverse_l2
        for q in range(n):
            G[a, q] += change * row[q]
            G[b, q] -= change * row[q]
        price_sample(i, y[i], R, prices, t, up, down)
    return False


@njit(cache=True, nogil=True, error_model="numpy")
def _row(K, members, i, block, known):
    """Kernel values of the i-th member with all members, gathered when first asked for."""
    if not known[i]:
        known[i] = True
        source, target = K[members[i]], block[i]
        for q in range(members.size):
            target[q] = source[members[q]]
    return block[i]


@njit(cache=True, nogil=True, error_model="numpy")
def _move(cycle, chosen, length, weight, kernel, inverse_l2, y, prices, t, R, G, up, down):
    """Move the chosen samples along a cycle to the minimum, or to the first breakpoint or bound."""
    K, members, block, known = kernel
    bend, limit = 0.0, np.inf
    for l in range(length):
        i, before = chosen[l], chosen[l - 1 if l > 0 else length - 1]
        row_i, row_p = _row(K, members, i, block, known), _row(K, members, before, block, known)
        bend += row_i[i] + row_p[before] - 2.0 * row_i[before]
        limit = min(limit, _room(i, y[i], cycle[l], cycle[(l + 1) % length], R, prices))
    bend *= inverse_l2
    step = max(min(weight / bend, limit) if bend > 0.0 else limit, 0.0)
    change = step * inverse_l2
    for l in range(length):
        i, before = chosen[l], chosen[l - 1 if l > 0 else length - 1]
        R[cycle[l], i] += step
        R[cycle[(l + 1) % length], i] -= step
        row_i, row_p, target = block[i], block[before], G[cycle[l]]
        for q in range(target.size):
            target[q] += change * (row_i[q] - row_p[q])
    for l in range(length):
        price_sample(chosen[l], y[chosen[l]], R, prices, t, up, down)


@njit(cache=True, nogil=True, error_model="numpy")
def descend(K, members, inverse_l2, y, prices, t, R, G, up, down, mu, max_iter):
    """Move R (and G with it) along cycles until every cycle's mean weight is at most mu, or max_iter moves are made.

    All arrays but K describe the ``members``, the samples that may move. A pair of classes is worked on for a few moves
    before the other arcs are looked at again. Returns the number of moves.
    """
    k, n = R.shape
    scratch, diagonal = np.empty(n), np.empty(n)
    for i in range(n):
        diagonal[i] = K[members[i], members[i]]
    floor = 1e-12 * max(np.abs(diagonal).max(), 1e-300)
    whole = n == K.shape[0]  # then the members are all samples, in order
    kernel = (K, members, K if whole else np.empty((n, n), K.dtype), np.full(n, whole))
    W, samples = np.empty((k, k)), np.empty((k, k), np.int64)
    cycle, chosen = np.empty(k, np.int64), np.empty(k, np.int64)
    arc_weights(up, down, G, W, samples)
    moves = 0
    while moves < max_iter:
        length, weight = steepest_cycle(W, mu, cycle)
        if length == 0:
            break
        for l in range(length):
            chosen[l] = samples[cycle[l], cycle[(l + 1) % length]]
        goal = weight if length > 2 else 0.5 * weight
        for _ in range(_STAY if k > 2 else 1):
            if length == 2:
                a, b = cycle[0], cycle[1]
                row = _row(K, members, chosen[0], kernel[2], kernel[3])
                own = diagonal[chosen[0]]
                p = _best_partner(up, down, G, b, a, W[a, b], row, diagonal, own, floor, scratch)
                chosen[1] = p
                weight = W[a, b] + ((up[b, p] - G[b, p]) - (down[a, p] - G[a, p]))
            _move(cycle, chosen, length, weight, kernel, inverse_l2, y, prices, t, R, G, up, down)
            moves += 1
            if length > 2:
                break
            for l in range(2):
                r, s = cycle[l], cycle[1 - l]
                W[r, s], samples[r, s] = _best_arc(up, down, G, r, s, scratch)
            chosen[0] = samples[a, b]
            if W[a, b] + W[b, a] < goal:
                break
        for r in range(k if k > 2 else 0):
            for s in range(k):
                touched = False
                for l in range(length):
                    touched = touched or cycle[l] == r or cycle[l] == s
                if touched and r != s:
                    W[r, s], samples[r, s] = _best_arc(up, down, G, r, s, scratch)
    return moves
