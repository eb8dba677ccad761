"""Search over the sets of violated samples, for losses that are zero from t on and cap below.

A state is a set R of samples left out. Its point solves the lifted hard margin f(N \\ R) of :mod:`.lifted`, and its
children leave out one more of the samples that are tight there. The states that matter are those whose point strictly
satisfies no sample of R; there are at most about (k + d + 2 over k) with |R| <= k, whatever n (Matousek, On geometric
optimization with few violated constraints, 1995). :mod:`psilearn.solvers.violations` proves that no optimum is missed.

Bounds come from packings: disjoint sets S_1, S_2, ... outside R. A solution with penalty p leaves out a member of each
set with conv(S_j) > p, so every solution that leaves out R costs at least

    cost(R) + min_p ( p + sum_{j : conv(S_j) > p}  smallest cost in S_j ).

Children inherit the packing but for the set they hit. Values conv(S_j) are those of dual feasible points.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .lifted import ABSENT, WATCHED, append, copy_spot, descend, forget_members, lift, measure, proved_value, remove
from .pieces import FREE, inner, kernel
from .tree import FEASIBLE, ROUNDING, offer, pop, push

#: Slack from which on a sample counts as strictly satisfied, and up to which as tight (data have unit size).
SATISFIED, NEAR = 1e-7, 1e-8
STATES, SOLVES, STALLS, EXPANDED = 0, 1, 2, 3


class Seen(NamedTuple):
    """Sets met so far: a hash table of indices (plus one) into keys and bit sets; ``count`` of them."""

    table: NDArray[np.int64]
    keys: NDArray[np.uint64]
    bits: NDArray[np.uint64]
    count: NDArray[np.int64]


class States(NamedTuple):
    """Open states: a heap of slots, and the slots' contents.

    ``bound`` orders the heap: the proved bound less a trifle for depth. ``label`` says which set of the packing a
    sample belongs to (from 1), ``worth`` and ``toll`` are the conv value and the smallest cost of each set.
    """

    heap: NDArray[np.int64]
    spare: NDArray[np.int64]
    sizes: NDArray[np.int64]
    bound: NDArray[np.float64]
    seen: NDArray[np.int64]
    paid: NDArray[np.float64]
    members: NDArray[np.int16]
    n_members: NDArray[np.int16]
    label: NDArray[np.uint8]
    worth: NDArray[np.float32]
    n_sets: NDArray[np.int64]


class Desk(NamedTuple):
    """Scratch memory: the state at hand, its packing, and what a child needs."""

    bits: NDArray[np.uint64]
    label: NDArray[np.uint8]
    worth: NDArray[np.float32]
    toll: NDArray[np.float64]
    w: NDArray[np.float64]
    u: NDArray[np.float64]


@inner
def _has(bits, i):
    return (bits[i >> 6] >> np.uint64(i & 63)) & np.uint64(1) != np.uint64(0)


@inner
def _flip(bits, i):
    bits[i >> 6] ^= np.uint64(1) << np.uint64(i & 63)


@inner
def remember(seen, key, bits):
    """Index of a set that is new and now remembered, -1 if it was known."""
    mask = seen.table.size - 1
    at = np.int64(key & np.uint64(mask))
    while seen.table[at] != 0:
        other = seen.table[at] - 1
        if seen.keys[other] == key:
            same = True
            for k in range(bits.size):
                if seen.bits[other, k] != bits[k]:
                    same = False
            if same:
                return -1
        at = (at + 1) & mask
    index = seen.count[0]
    seen.count[0] += 1
    seen.table[at] = index + 1
    seen.keys[index] = key
    for k in range(bits.size):
        seen.bits[index, k] = bits[k]
    return index


@kernel
def rehash(seen):
    """Fill an empty table with the sets that are stored."""
    mask = seen.table.size - 1
    for index in range(seen.count[0]):
        at = np.int64(seen.keys[index] & np.uint64(mask))
        while seen.table[at] != 0:
            at = (at + 1) & mask
        seen.table[at] = index + 1


@inner
def packing_bound(worth, toll, n_sets, without, ceiling):
    """Least p + sum of the tolls of the sets worth more than p; set ``without`` does not count."""
    total = 0.0
    for j in range(n_sets):
        if j != without:
            total += toll[j]
    for j in range(n_sets):
        if j != without and worth[j] < ceiling:
            value = np.float64(worth[j])
            for l in range(n_sets):
                if l != without and worth[l] > worth[j]:
                    value += toll[l]
            total = min(total, value)
    return total


@inner
def offer_point(model, lifted, spot, best, desk):
    """Offer (w, b) of a point as incumbent; returns its value."""
    d, n = model.a.shape[1], model.y.size
    s = spot.x[d + 1]
    value = 0.0
    for f in range(d):
        value += 0.5 * spot.x[f] * spot.x[f]
    for i in range(n):
        if spot.slack[i] - lifted.rows[i, d + 1] * s < -FEASIBLE:
            value += model.cost[i] * model.cap
    if value < best.value[0]:
        for f in range(d):
            desk.w[f] = spot.x[f]
        for i in range(n):
            desk.u[i] = spot.slack[i] - lifted.rows[i, d + 1] * s + lifted.right[i]
        offer(model, best, desk.w, spot.x[d], desk.u)
    return value


@inner
def load(lifted, spot, members, n_members):
    """Restore the optimal point of a state from its members (roles of the absent are set)."""
    forget_members(spot)
    for k in range(spot.x.size):
        spot.x[k] = 0.0
    for k in range(n_members):
        append(lifted, spot, members[k])
    measure(lifted, spot)
    return descend(lifted, spot, 100)


@inner
def _extend_packing(model, lifted, spot, second, desk, n_sets, ceiling):
    """Add disjoint sets from samples of no set while that raises the bound; returns their number."""
    n = model.y.size
    copy_spot(spot, second)
    for i in range(n):
        if desk.label[i] > 0 and second.role[i] == WATCHED:
            second.role[i] = ABSENT
    for k in range(second.size[0] - 1, -1, -1):
        if second.members[k] < n and desk.label[second.members[k]] > 0:
            remove(second, k, ABSENT)
    before = packing_bound(desk.worth, desk.toll, n_sets, -1, ceiling)
    while n_sets < desk.worth.size and before < ceiling:
        if not descend(lifted, second, 50 * second.x.size):
            break
        value = proved_value(lifted, second, desk.w) * (1.0 - 1e-6)
        toll = np.inf
        for k in range(second.size[0]):
            i = second.members[k]
            if i < n and model.given[i] == FREE:
                toll = min(toll, model.cost[i] * model.cap)
        desk.worth[n_sets], desk.toll[n_sets] = min(value, 2.0 * ceiling), toll
        after = packing_bound(desk.worth, desk.toll, n_sets + 1, -1, ceiling)
        if not after > before:
            break
        n_sets += 1
        before = after
        for k in range(second.size[0] - 1, -1, -1):
            i = second.members[k]
            if i < n:
                desk.label[i] = n_sets
                remove(second, k, ABSENT)
    return n_sets


@inner
def _tolls(model, desk, n_sets):
    for j in range(n_sets):
        desk.toll[j] = np.inf
    for i in range(model.y.size):
        j = desk.label[i]
        if j > 0 and model.given[i] == FREE:
            desk.toll[j - 1] = min(desk.toll[j - 1], model.cost[i] * model.cap)


@inner
def _open(states, bound, depth_bonus, index, paid, spot, desk, n_sets, dropped):
    """Push a state whose packing is the desk's without set ``dropped`` (-1: none)."""
    slot = push(states, bound - depth_bonus)
    states.seen[slot], states.paid[slot] = index, paid
    states.n_members[slot] = spot.size[0]
    for k in range(spot.size[0]):
        states.members[slot, k] = spot.members[k]
    label, last = states.label[slot], n_sets
    for j in range(n_sets):
        states.worth[slot, j] = desk.worth[j]
    for i in range(label.size):
        label[i] = desk.label[i]
    if dropped >= 0:
        last = n_sets - 1
        states.worth[slot, dropped] = desk.worth[last]
        for i in range(label.size):
            if label[i] == dropped + 1:
                label[i] = 0
            elif label[i] == n_sets:
                label[i] = dropped + 1
    states.n_sets[slot] = last


@kernel
def advance(model, lifted, keys, seen, states, best, spot, child, second, desk, counters, gap_tol, n_solves):
    """Expand states, smallest bound first, for about ``n_solves`` children; fewer if states or memory end."""
    n, d = model.a.shape
    end = counters[SOLVES] + n_solves
    while counters[SOLVES] < end:
        if states.sizes[0] == 0 or states.sizes[1] < n + 4 or seen.count[0] + n + 4 > seen.keys.size:
            return
        penalty = 0.0
        for f in range(d):
            penalty += 0.5 * best.w[f] * best.w[f]
        target = best.value[0] - gap_tol * min(best.value[0], penalty) - ROUNDING * best.value[0]
        trifle = 1e-12 * best.value[0]
        slot = pop(states, False)
        bound = states.bound[slot]
        if bound >= target:
            best.floor[0] = min(best.floor[0], bound)
            continue
        counters[STATES] += 1
        paid, n_sets, index = states.paid[slot], states.n_sets[slot], states.seen[slot]
        key, depth = seen.keys[index], 0
        for k in range(desk.bits.size):
            desk.bits[k] = seen.bits[index, k]
        for i in range(n):
            desk.label[i] = states.label[slot, i]
            spot.role[i] = WATCHED
            if _has(desk.bits, i):
                spot.role[i] = ABSENT
                depth += 1
        spot.role[n] = WATCHED
        for j in range(n_sets):
            desk.worth[j] = states.worth[slot, j]
        _tolls(model, desk, n_sets)
        spot.size[0] = 0
        if not load(lifted, spot, states.members[slot], states.n_members[slot]):
            counters[STALLS] += 1
            best.floor[0] = min(best.floor[0], bound)
            continue
        n_sets = _extend_packing(model, lifted, spot, second, desk, n_sets, best.value[0])
        better = paid + packing_bound(desk.worth, desk.toll, n_sets, -1, best.value[0])
        if better > bound + 0.5 * trifle * n:
            if better >= target:
                best.floor[0] = min(best.floor[0], better)
                continue
            if states.sizes[0] > 0 and better - trifle * depth > states.bound[states.heap[0]] :
                _open(states, better, trifle * depth, index, paid, spot, desk, n_sets, -1)
                continue
            bound = better
        # Whoever leaves out R but none of the tight samples pays at least this.
        counters[EXPANDED] += 1
        best.floor[0] = min(best.floor[0], max(bound, paid + proved_value(lifted, spot, desk.w)))
        for h in range(n):
            if spot.role[h] == ABSENT or spot.slack[h] > NEAR or model.given[h] != FREE:
                continue
            hit = np.int64(desk.label[h]) - 1
            cost = paid + model.cost[h] * model.cap
            child_bound = max(bound, cost + packing_bound(desk.worth, desk.toll, n_sets, hit, best.value[0]))
            if child_bound >= target:
                best.floor[0] = min(best.floor[0], child_bound)
                continue
            _flip(desk.bits, h)
            new = remember(seen, key ^ keys[h], desk.bits)
            _flip(desk.bits, h)
            if new < 0:
                continue
            counters[SOLVES] += 1
            copy_spot(spot, child)
            position = -1
            for k in range(child.size[0]):
                if child.members[k] == h:
                    position = k
            if position >= 0:
                remove(child, position, ABSENT)
            child.role[h] = ABSENT
            if not descend(lifted, child, 50 * (d + 2)):
                counters[STALLS] += 1
                best.floor[0] = min(best.floor[0], child_bound)
                continue
            offer_point(model, lifted, child, best, desk)
            proper = True
            for i in range(n):
                if child.role[i] == ABSENT and child.slack[i] > SATISFIED:
                    proper = False
                    break
            if proper:
                _open(states, child_bound, trifle * (depth + 1), new, cost, child, desk, n_sets, hit)


@kernel
def root(model, lifted, seen, states, best, spot, desk):
    """Open the state that leaves nothing out, from the incumbent's point."""
    n, d = model.a.shape
    for f in range(d):
        spot.x[f] = best.w[f]
    spot.x[d] = best.b[0]
    for i in range(n + 1):
        spot.role[i] = WATCHED
    spot.size[0] = 0
    lift(lifted, spot)
    done = descend(lifted, spot, 1000 * (d + 2))
    if done:
        offer_point(model, lifted, spot, best, desk)
        index = remember(seen, np.uint64(0), desk.bits)
        _open(states, 0.0, 0.0, index, 0.0, spot, desk, 0, -1)
    return done
