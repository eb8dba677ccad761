"""Search over the sets of violated samples, for losses that are zero from t on and cap below.

A state is a set R of samples left out; its point solves the lifted hard margin f(N \\ R) of :mod:`.lifted_jit`. Its
children leave out one more sample, in one of two ways that both reach every optimum (proofs in
:mod:`.search`): *proper* states are remembered, and dropped if their point strictly satisfies a
sample of R; *exclusive* children keep the samples that their elder sisters leave out, and hold those that they leave
out below t. Bounds are those of :mod:`.packing_jit`, and the state with the smallest bound comes first.
"""

from __future__ import annotations

import numpy as np

from ....core._jit import inner, kernel
from ..node.envelope_jit import FREE
from ..tree.tree_jit import FEASIBLE, ROUNDING, pop
from .lifted_jit import ABSENT, WATCHED, copy_spot, descend, entry, lift, proved_value, remove
from .packing_jit import bring_in, extend, keep, pack_around, packing_bound, repack, set_tolls
from .sets_jit import flip, is_new
from .states_jit import offer_point, open_state, take_state

#: Slack from which on a sample counts as strictly satisfied, and up to which as tight (data have unit size).
SATISFIED, NEAR = 1e-7, 1e-8
STATES, CHILDREN, STALLS = 0, 1, 2
#: Part of the incumbent value by which one more sample left out comes first among equal bounds.
_TRIFLE = 1e-12
_ROUNDS = 3


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
        open_state(
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
        solved, depth = take_state(lifted, states, slot, spot, packing, desk, exclusive)
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
            open_state(states, better, rank, paid, spot.members, size, desk.bits, packing, n_sets, -1)
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
    open_state(states, 0.0, 0.0, 0.0, spot.members, spot.size[0], desk.bits, packing, 0, -1)
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
