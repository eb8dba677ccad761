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

Few literals left. The child of l adds at most j more literals, all of smaller drop, so that T loses d_l at least and
gets rid of at most what l and the j best of those remove of the cost, each counted alone. The last literal's value is
computed outright, without a node of its own.

Pairs. With the gains of all pairs of literals at hand,

    G(l, k, m) <= G(l, k) + G(l, m) + G(k, m) - G(l) - G(k) - G(m) + G,

where the right side minus the left is the gain of the rows that fail all three. What may follow a pair is so decided
without reading rows.

Conflicts. ``conflict[l, k]`` forbids k below l: its negation and, where a shorter conjunction does the same and costs
no more, literals one of which implies the other on all rows.

Closing (any order, constant c). If all gain rows of the node satisfy an allowed literal, adding it costs nothing: it is
added. If they all satisfy a literal that is forbidden, then f(T) <= f(T with it), and that conjunction belongs to an
earlier or a pruned branch: the node is pruned.
"""

from __future__ import annotations

import numpy as np

from ...core._jit import allocating_inner, allocating_kernel, inner
from .incumbents_jit import DEPTH, IS_FRESH, N_ALLOWED, N_POOL, NODES, filter_rows, literal_gains, offer, rank_value

#: With at most so many literals left, what each of them removes of the cost is computed, too.
FEW = 3


@inner
def _weigh(column, value, rows, start, stop, answer, limit):
    """Weight of the listed rows whose entry in ``column`` is ``answer``; a part of it if above ``limit``."""
    total = 0.0
    while start < stop and total <= limit:
        end = min(start + 64, stop)
        for a in range(start, end):
            row = rows[a]
            total += value[row] * (column[row] == answer)
        start = end
    return total


@allocating_inner
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


@inner
def _sort_descending(key, item, n):
    """Sort the first n of both arrays by descending key (Shell's sort; the lists of a child are nearly sorted)."""
    gap = 1
    while n > 64 and 3 * gap + 1 < n:
        gap = 3 * gap + 1
    while gap > 0:
        for a in range(gap, n):
            k = key[a]
            i = item[a]
            b = a
            while b >= gap and key[b - gap] < k:
                key[b] = key[b - gap]
                item[b] = item[b - gap]
                b -= gap
            key[b] = k
            item[b] = i
        gap //= 3


@allocating_inner
def _branch(
    literals, columns, value, rows, n_gain, n_cost, gain, total, spent, later_cost, floor, left,
    allowed, n_allowed, cand, cand_bound,
):  # fmt: skip
    """Write the children whose bound beats ``floor``, smallest gain first; return their number.

    ``spent`` is the cost of the node's rows and ``left`` the number of literals that may still be added.
    """
    drop = np.empty(n_allowed)
    m = np.int64(0)
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
        place = m
        while place > 0 and literals[row, allowed[place - 1]]:
            place -= 1
        kept[place] += value[row]
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
    if 2 <= left <= FEW:
        removed = np.zeros(left - 1)
        for t in range(n - 1, -1, -1):
            mine = _weigh(columns[cand[t]], value, rows, n_gain, n_gain + n_cost, 0, np.inf)
            remains = spent - mine
            least = 0
            for q in range(left - 1):
                remains -= removed[q]
                least = q if removed[q] < removed[least] else least
            cand_bound[t] = min(cand_bound[t], gain[cand[t]] - max(0.0, remains) - later_cost)
            removed[least] = max(removed[least], mine)
    return n


@inner
def _third(pair_gain, first, second, candidates, n, conflict, need, allowed):
    """Write the literals that may follow two others without the gain falling to ``need``; return their number.

    The gain of three literals is, by inclusion and exclusion, at most what their pairs and singles sum up to.
    """
    base = pair_gain[first, second] - pair_gain[first, first] - pair_gain[second, second]
    # the gain of all rows: a literal's and its negation's
    N = pair_gain.shape[0] // 2
    base += pair_gain[0, 0] + pair_gain[N, N]
    m = 0
    for q in range(n):
        l = candidates[q]
        bound = base + pair_gain[first, l] + pair_gain[second, l] - pair_gain[l, l]
        if min(bound, pair_gain[second, l]) > need and not conflict[second, l]:
            allowed[m] = l
            m += 1
    return m


@inner
def _finish(
    columns, value, rows, n_gain, n_cost, gain, conjunction, size, allowed, n_allowed, order_cost, rank, threshold,
    tolerance, pool_value, pool_size, pool_literals, state,
):  # fmt: skip
    """Offer to the pool the conjunction completed by each of the allowed literals in its last place."""
    n_rows = n_gain + n_cost
    for q in range(n_allowed):
        worth = gain[allowed[q]] - order_cost
        if worth <= rank_value(pool_value, state[N_POOL], rank, threshold) + tolerance:
            continue
        state[NODES] += 1
        spare = worth - rank_value(pool_value, state[N_POOL], pool_value.size, threshold)
        cost = _weigh(columns[allowed[q]], value, rows, n_gain, n_rows, 1, spare)
        if cost < spare:
            conjunction[size - 1] = allowed[q]
            state[N_POOL] = offer(
                pool_value, pool_size, pool_literals, state[N_POOL], worth - cost, conjunction, size, threshold,
                tolerance,
            )  # fmt: skip


@allocating_kernel
def advance(
    literals, columns, value, conflict, pair_gain, pair_cost, order_cost, later_cost, closes, rank, threshold,
    tolerance, budget,
    rows, counts, cand, cand_bound, cursor, chosen, inside, allowed, pool_value, pool_size, pool_literals, state,
):  # fmt: skip
    """Continue the depth-first search for about ``budget`` nodes; return True when the tree is exhausted.

    What cannot be among the ``rank`` best is cut off; the pool may hold more than that, met on the way.
    ``columns`` is ``literals`` transposed; ``pair_gain, pair_cost`` are gains and costs of all pairs of literals, or
    empty. ``rows, counts, cand, cand_bound, cursor, inside`` hold one line per depth: the rows, (gains, costs), the
    children with their bounds, (number, next) and, when closing, the literals all gain rows satisfy.
    """
    n_literals = literals.shape[1]
    K = order_cost.size - 1
    gain = np.empty(n_literals)
    conjunction = np.empty(n_literals, np.int32)
    capacity = pool_value.size
    tabled = pair_gain.size > 0
    stop = state[NODES] + budget
    depth = state[DEPTH]
    n_allowed = state[N_ALLOWED]
    fresh = state[IS_FRESH] == 1
    while depth >= 0:
        floor = rank_value(pool_value, state[N_POOL], rank, threshold) + tolerance
        if fresh:
            fresh = False
            state[NODES] += 1
            cursor[depth, 0] = 0
            cursor[depth, 1] = 0
            total = 0.0
            spent = 0.0
            dominated = False
            known = tabled and 1 <= depth <= 2
            last = chosen[depth - 1] if depth > 0 else -1
            if known:
                total = pair_gain[chosen[0], last]
                spent = pair_cost[chosen[0], last]
                if depth == 1:
                    for l in range(n_literals):
                        gain[l] = pair_gain[last, l]
                    m = 0
                    for q in range(n_allowed):
                        if gain[allowed[q]] - later_cost[2] > floor:
                            allowed[m] = allowed[q]
                            m += 1
                    n_allowed = m
            if depth > 0 and (n_allowed > 0 or not known):
                counts[depth, 0], counts[depth, 1] = filter_rows(
                    columns[last], rows[depth - 1], counts[depth - 1, 0], counts[depth - 1, 1], rows[depth]
                )
            g, c = counts[depth]
            if not known:
                for a in range(g):
                    total += value[rows[depth, a]]
            if closes:
                literal_gains(literals, value, rows[depth], g, gain)
                c, n_allowed, dominated = _close(
                    literals, gain, total, rows[depth], g, c, inside[depth], allowed, n_allowed, tolerance
                )
                counts[depth, 1] = c
            elif 8 * n_allowed > n_literals:
                if not known or depth == 2:
                    literal_gains(literals, value, rows[depth], g, gain)
            elif not known or depth == 2:
                slack = total - later_cost[depth + 1] - floor
                for q in range(n_allowed):
                    gain[allowed[q]] = total - _weigh(columns[allowed[q]], value, rows[depth], 0, g, 0, slack)
            if not dominated:
                if not known:
                    for a in range(g, g + c):
                        spent += value[rows[depth, a]]
                f = total - spent - order_cost[depth]
                if f > rank_value(pool_value, state[N_POOL], capacity, threshold) + tolerance:
                    size = np.int64(0)
                    for l in range(n_literals if closes else depth):
                        if not closes or inside[depth, l]:
                            conjunction[size] = l if closes else chosen[l]
                            size += 1
                    state[N_POOL] = offer(
                        pool_value, pool_size, pool_literals, state[N_POOL], f, conjunction, size, threshold, tolerance
                    )
                    floor = rank_value(pool_value, state[N_POOL], rank, threshold) + tolerance
                improves = spent > 0 or rank > 1 or later_cost[depth + 1] < order_cost[depth]
                if depth == K - 1 and not closes and improves:
                    _finish(
                        columns, value, rows[depth], g, c, gain, chosen, K, allowed, n_allowed, order_cost[K], rank,
                        threshold, tolerance, pool_value, pool_size, pool_literals, state,
                    )  # fmt: skip
                    floor = rank_value(pool_value, state[N_POOL], rank, threshold) + tolerance
                elif depth < K and n_allowed > 0 and improves:
                    cursor[depth, 0] = _branch(
                        literals, columns, value, rows[depth], g, c, gain, total, spent, later_cost[depth + 1], floor,
                        n_literals if closes else K - depth, allowed, n_allowed, cand[depth], cand_bound[depth],
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
        chosen[depth] = l
        if tabled and depth == 1 and K > 2:
            n_allowed = _third(
                pair_gain, chosen[0], l, cand[depth, t + 1 :], n - t - 1, conflict, floor + later_cost[3], allowed
            )
        else:
            n_allowed = 0
            for q in range(t + 1, n):
                other = cand[depth, q]
                if not conflict[l, other]:
                    allowed[n_allowed] = other
                    n_allowed += 1
        depth += 1
        if closes:
            for k in range(n_literals):
                inside[depth, k] = inside[depth - 1, k]
            inside[depth, l] = 1
        fresh = True
    state[DEPTH] = depth
    state[N_ALLOWED] = n_allowed
    state[IS_FRESH] = 1 if fresh else 0
    return depth < 0
