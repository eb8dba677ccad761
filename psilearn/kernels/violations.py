"""Search over the sets of violated samples, for losses that are zero from t on and cap below.

A state is a set R of samples left out; its point solves the lifted hard margin f(N \\ R) of :mod:`.lifted`. Its
children leave out one more sample, in one of two ways that both reach every optimum (proofs in
:mod:`psilearn.solvers.violations`): *proper* states are remembered, and dropped if their point strictly satisfies a
sample of R; *exclusive* children keep the samples that their elder sisters leave out, and hold those that they leave
out below t. Bounds are those of :mod:`.packing`, and the state with the smallest bound comes first.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .compiling import inner, kernel
from .lifted import (
    ABSENT,
    INFEASIBLE,
    WATCHED,
    append,
    copy_spot,
    descend,
    entry,
    forget_members,
    lift,
    proved_value,
    remove,
    settle,
)
from .packing import bring_in, extend, keep, pack_around, packing_bound, repack, set_tolls
from .pieces import FREE
from .seen import flip, has, is_new
from .tree import FEASIBLE, ROUNDING, offer, pop, push

#: Slack from which on a sample counts as strictly satisfied, and up to which as tight (data have unit size).
SATISFIED, NEAR = 1e-7, 1e-8
STATES, CHILDREN, STALLS = 0, 1, 2
#: Part of the incumbent value by which one more sample left out comes first among equal bounds.
_TRIFLE = 1e-12
_ROUNDS = 3


class States(NamedTuple):
    """Open states: a heap of slots ordered by bound (less a trifle for depth), and the slots' contents.

    ``paid`` is the cost of the samples left out, ``members`` the tight rows of the point, the rest is the packing.
    """

    heap: NDArray[np.int64]
    spare: NDArray[np.int64]
    sizes: NDArray[np.int64]
    bound: NDArray[np.float64]
    paid: NDArray[np.float64]
    members: NDArray[np.int32]
    n_members: NDArray[np.int64]
    out: NDArray[np.uint64]
    kept: NDArray[np.uint64]
    label: NDArray[np.uint8]
    worth: NDArray[np.float32]
    n_sets: NDArray[np.int64]


class Desk(NamedTuple):
    """Scratch memory: the set at hand, the samples to branch on with their values and members, a point."""

    bits: NDArray[np.uint64]
    who: NDArray[np.int64]
    value: NDArray[np.float64]
    bound: NDArray[np.float64]
    members: NDArray[np.int64]
    n_members: NDArray[np.int64]
    w: NDArray[np.float64]
    u: NDArray[np.float64]


@inner
def offer_point(model, lifted, spot, best, desk):
    """Offer (w, b) of a point as incumbent; returns its value."""
    n, d = model.a.shape
    s = spot.x[d + 1]
    value = 0.0
    for f in range(d):
        value += 0.5 * spot.x[f] * spot.x[f]
    for i in range(n):
        if spot.sign[i] * (spot.slack[i] - entry(lifted, spot, i, d + 1) * s) < -FEASIBLE:
            value += model.cost[i] * model.cap
    if value < best.value[0]:
        for f in range(d):
            desk.w[f] = spot.x[f]
        for i in range(n):
            desk.u[i] = spot.sign[i] * (spot.slack[i] - entry(lifted, spot, i, d + 1) * s) + lifted.right[i]
        offer(model, best, desk.w, spot.x[d], desk.u)
    return value


@inner
def _open(states, bound, rank, paid, members, n_members, bits, packing, n_sets, hit):
    """Push the state that leaves out ``bits``; its packing is the one at hand without set ``hit`` (-1: none)."""
    slot = push(states, bound - rank)
    states.paid[slot], states.n_members[slot] = paid, n_members
    for k in range(n_members):
        states.members[slot, k] = members[k]
    for k in range(bits.size):
        states.out[slot, k] = bits[k]
        states.kept[slot, k] = 0
    last = n_sets - 1 if hit >= 0 else n_sets
    for j in range(n_sets):
        states.worth[slot, j] = packing.worth[j]
    if hit >= 0:
        states.worth[slot, hit] = packing.worth[last]
    for i in range(packing.label.size):
        label = packing.label[i]
        if hit >= 0 and label == hit + 1:
            label = 0
        elif hit >= 0 and label == n_sets:
            label = hit + 1
        states.label[slot, i] = label
        if packing.kept[i]:
            flip(states.kept[slot], i)
    states.n_sets[slot] = last


@inner
def _take(lifted, states, slot, spot, packing, desk, reverse):
    """Restore a state's point and packing; returns (whether the point is optimal, number of samples left out).

    The samples left out are reversed, or absent.
    """
    n = packing.label.size
    depth = 0
    for k in range(desk.bits.size):
        desk.bits[k] = states.out[slot, k]
    for i in range(n):
        packing.label[i] = states.label[slot, i]
        packing.kept[i] = 1 if has(states.kept[slot], i) else 0
        spot.role[i] = WATCHED
        spot.sign[i] = 1.0
        spot.ease[i] = lifted.hard if reverse and (packing.kept[i] or has(desk.bits, i)) else 1.0
        if has(desk.bits, i):
            depth += 1
            if reverse:
                spot.sign[i] = -1.0
            else:
                spot.role[i] = ABSENT
    for j in range(states.n_sets[slot]):
        packing.worth[j] = states.worth[slot, j]
    spot.role[n] = WATCHED
    spot.size[0] = 0
    forget_members(spot)
    for k in range(spot.x.size):
        spot.x[k] = 0.0
    for k in range(states.n_members[slot]):
        append(lifted, spot, np.int64(states.members[slot, k]))
    settle(lifted, spot)
    least = 0.0
    for i in range(n + 1):
        if spot.role[i] != ABSENT:
            least = min(least, spot.slack[i])
    if least < -INFEASIBLE:
        lift(lifted, spot)
    return descend(lifted, spot, 50 * spot.x.size), depth


@inner
def _ignore_reversed(spot):
    """Make the samples that must stay violated absent instead; the point is no longer up to date."""
    for i in range(spot.sign.size):
        if spot.sign[i] < 0.0:
            spot.sign[i] = 1.0
            spot.role[i] = ABSENT


@inner
def _improve_packing(price, lifted, spot, second, packing, n_sets, paid, target, ceiling, anew):
    """Extend the packing and keep samples in turns; returns the number of sets."""
    set_tolls(price, packing, n_sets)
    for round in range(_ROUNDS):
        if round > 0 and anew:
            n_sets = repack(price, lifted, spot, second, packing, n_sets, ceiling)
        n_sets = extend(price, lifted, spot, second, packing, n_sets, ceiling)
        if paid + packing_bound(packing, n_sets, -1, ceiling) >= target:
            break
        if keep(price, spot, packing, n_sets, paid, target, ceiling) == 0:
            break
        set_tolls(price, packing, n_sets)
    return n_sets


@inner
def _choose(price, spot, packing, n_sets, desk, paid, target, exclusive):
    """Write the samples to branch on: the tight ones, or a smaller set of the packing; returns how many."""
    n = price.size
    count, least = 0, np.inf
    for i in range(n):
        if spot.role[i] != ABSENT and not packing.kept[i] and spot.sign[i] > 0.0:
            least = min(least, price[i])
            if spot.slack[i] <= NEAR:
                desk.who[count] = i
                count += 1
    if not exclusive:
        return count
    fewest, which = count, -1
    for j in range(n_sets):
        if paid + least + packing.worth[j] >= target:
            free = 0
            for i in range(n):
                if packing.label[i] == j + 1:
                    free += 1
            if free < fewest:
                fewest, which = free, j
    if which >= 0:
        count = 0
        for i in range(n):
            if packing.label[i] == which + 1:
                desk.who[count] = i
                count += 1
    return count


@inner
def _leave_out(spot, child, h):
    """Copy a point and make h absent."""
    copy_spot(spot, child)
    for k in range(child.size[0] - 1, -1, -1):
        if child.members[k] == h:
            remove(child, k, ABSENT)
    child.role[h] = ABSENT


@inner
def _solve_child(model, lifted, spot, child, best, desk, h, c, reverse):
    """Leave out h: write f and the members; returns 0, 1 if a sample left out is strictly satisfied, 2 if stalled."""
    n, d = model.a.shape
    _leave_out(spot, child, h)
    if reverse:
        child.slack[h] = 2.0 * entry(lifted, child, h, d + 1) * child.x[d + 1] - child.slack[h]
        child.sign[h] = -1.0
        bring_in(lifted, child, h)
    solved = descend(lifted, child, 50 * (d + 2))
    if reverse and not solved:
        _leave_out(spot, child, h)
        _ignore_reversed(child)
        lift(lifted, child)
        solved = descend(lifted, child, 100 * (d + 2))
    if not solved:
        return 2
    offer_point(model, lifted, child, best, desk)
    desk.value[c] = lifted.price * child.x[d + 1]
    for f in range(d):
        desk.value[c] += 0.5 * child.x[f] * child.x[f]
    desk.n_members[c] = child.size[0]
    for k in range(child.size[0]):
        desk.members[c, k] = child.members[k]
    for i in range(n):
        if child.role[i] == ABSENT and child.slack[i] > SATISFIED:
            return 1
    return 0


@inner
def _expand(
    model, price, lifted, keys, seen, states, best, spot, child, packing, desk, counters, goal, state, exclusive,
    reverse,
):  # fmt: skip
    """Open the children of the state at hand, those whose absence lowers f most first."""
    target, trifle = goal
    bound, paid, n_sets, depth = state
    ceiling = best.value[0]
    count = _choose(price, spot, packing, n_sets, desk, paid, target, exclusive)
    for c in range(count):
        h = desk.who[c]
        cost = paid + price[h]
        desk.bound[c] = max(bound, cost + packing_bound(packing, n_sets, np.int64(packing.label[h]) - 1, ceiling))
        desk.value[c] = np.inf
        if desk.bound[c] >= target:
            packing.floor[0] = min(packing.floor[0], desk.bound[c])
            continue
        if not exclusive:
            flip(desk.bits, h)
            new = is_new(seen, keys, desk.bits)
            flip(desk.bits, h)
            if not new:
                continue
        counters[CHILDREN] += 1
        flag = _solve_child(model, lifted, spot, child, best, desk, h, c, reverse)
        if flag == 2:
            counters[STALLS] += 1
            packing.floor[0] = min(packing.floor[0], desk.bound[c])
            desk.value[c] = np.inf
        elif flag == 1 and not exclusive:
            desk.value[c] = np.inf
    for c in range(count):
        if exclusive and desk.value[c] == np.inf:
            packing.kept[desk.who[c]] = 1
            packing.label[desk.who[c]] = 0
    while True:
        least, c = np.inf, -1
        for place in range(count):
            if desk.value[place] < least:
                least, c = desk.value[place], place
        if c < 0:
            break
        desk.value[c] = np.inf
        h = desk.who[c]
        flip(desk.bits, h)
        _open(
            states, desk.bound[c], trifle * (depth + 1), paid + price[h], desk.members[c], desk.n_members[c],
            desk.bits, packing, n_sets, np.int64(packing.label[h]) - 1,
        )  # fmt: skip
        flip(desk.bits, h)
        if exclusive:
            packing.kept[h] = 1
            packing.label[h] = 0


@kernel
def advance(
    model, price, lifted, keys, seen, states, best, spot, child, second, packing, desk, counters, gap_tol, n_children,
    exclusive,
):  # fmt: skip
    """Expand states, smallest bound first, for about ``n_children`` children; fewer if states or memory end."""
    n, d = model.a.shape
    end = counters[CHILDREN] + n_children
    while counters[CHILDREN] < end and states.sizes[0] > 0:
        if states.sizes[1] < n + 4 or seen.used[0] + n + 4 > seen.keys.size:
            return
        penalty = 0.0
        for f in range(d):
            penalty += 0.5 * best.w[f] * best.w[f]
        ceiling = best.value[0]
        target = ceiling - gap_tol * min(ceiling, penalty) - ROUNDING * ceiling
        trifle = _TRIFLE * ceiling
        slot = pop(states, states.sizes[1] < 2 * n + 4)
        bound, paid = states.bound[slot], states.paid[slot]
        if bound >= target:
            packing.floor[0] = min(packing.floor[0], bound)
            continue
        counters[STATES] += 1
        solved, depth = _take(lifted, states, slot, spot, packing, desk, exclusive)
        reverse = exclusive and solved and paid + proved_value(lifted, spot, packing.w) >= target
        if exclusive and not reverse:  # the way out is too cheap between reversed samples
            _ignore_reversed(spot)
            lift(lifted, spot)
            solved = descend(lifted, spot, 100 * (d + 2))
            offer_point(model, lifted, spot, best, desk)
        if not solved:
            counters[STALLS] += 1
            packing.floor[0] = min(packing.floor[0], bound)
            continue
        n_sets = states.n_sets[slot]
        n_sets = _improve_packing(price, lifted, spot, second, packing, n_sets, paid, target, ceiling, exclusive)
        set_tolls(price, packing, n_sets)
        better = max(bound, paid + packing_bound(packing, n_sets, -1, ceiling))
        if better >= target:
            packing.floor[0] = min(packing.floor[0], better)
            continue
        rank = trifle * depth
        if better > bound + trifle * n and states.sizes[0] > 0 and better - rank > states.bound[states.heap[0]]:
            size = spot.size[0]
            _open(states, better, rank, paid, spot.members, size, desk.bits, packing, n_sets, -1)
            continue
        # Whoever leaves out R but none of the tight samples pays at least this.
        packing.floor[0] = min(packing.floor[0], max(better, paid + proved_value(lifted, spot, packing.w)))
        _expand(
            model, price, lifted, keys, seen, states, best, spot, child, packing, desk, counters, (target, trifle),
            (better, paid, n_sets, depth), exclusive, reverse,
        )  # fmt: skip


@kernel
def open_root(model, price, lifted, states, best, spot, packing, desk):
    """Open the state that leaves nothing out; False if its point cannot be computed."""
    n, d = model.a.shape
    _start(model, best, spot)
    lift(lifted, spot)
    if not descend(lifted, spot, 1000 * (d + 2)):
        return False
    offer_point(model, lifted, spot, best, desk)
    for i in range(n):
        packing.kept[i] = model.given[i] != FREE
        packing.label[i] = 0
    _open(states, 0.0, 0.0, 0.0, spot.members, spot.size[0], desk.bits, packing, 0, -1)
    return True


@inner
def _start(model, best, spot):
    """Go to the incumbent's (w, b), everybody watched."""
    n, d = model.a.shape
    for f in range(d):
        spot.x[f] = best.w[f]
    spot.x[d] = best.b[0]
    for i in range(n + 1):
        spot.role[i] = WATCHED
        spot.sign[i] = 1.0
        spot.ease[i] = 1.0
    spot.size[0] = 0


@kernel
def pack_root(model, price, lifted, states, best, spot, second, third, packing, offset):
    """Pack around the samples that the incumbent leaves out; the root takes the packing if it is the best so far."""
    n, d = model.a.shape
    slot = states.heap[0]
    _start(model, best, spot)
    lift(lifted, spot)
    if not descend(lifted, spot, 1000 * (d + 2)):
        return
    for i in range(n):
        packing.kept[i] = model.given[i] != FREE
    low = model.t - FEASIBLE
    n_sets = pack_around(price, lifted, spot, second, third, packing, best.u, low, offset, best.value[0])
    bound = packing_bound(packing, n_sets, -1, best.value[0])
    if bound > states.bound[slot]:
        states.bound[slot], states.n_sets[slot] = bound, n_sets
        for i in range(n):
            states.label[slot, i] = packing.label[i]
        for j in range(n_sets):
            states.worth[slot, j] = packing.worth[j]
