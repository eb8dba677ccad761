"""Search over the sets of violated samples, for losses that are zero from t on and cap below.

A state is a set R of samples left out; its point solves the lifted hard margin f(N \\ R) of :mod:`.lifted_jit`. Its
children leave out one more sample, in one of two ways that both reach every optimum (proofs in
:mod:`.search`): *proper* states are remembered, and dropped if their point strictly satisfies a
sample of R; *exclusive* children keep the samples that their earlier siblings leave out, and hold those that they leave
out below t. Bounds are those of :mod:`.packing_jit`, and the state with the smallest bound comes first.
"""

from __future__ import annotations

import numpy as np

from ....core._jit import inner, kernel
from ...envelope_jit import FEASIBLE
from ...sample_state_jit import FREE
from ..incumbent_jit import target_value
from ..node.active_set_jit import clear, copy
from ..slots_jit import pop
from .lifted_jit import ABSENT, copy_iterate, descend, entry, lift, proved_value, remove, reset
from .packing_jit import bring_in, extend, keep, pack_around, packing_bound, repack, update_prices
from .sets_jit import flip, is_new
from .states_jit import offer_point, open_state, take_state

#: Slack from which on a sample counts as strictly satisfied, and up to which as tight (data have unit size).
SATISFIED, NEAR = 1e-7, 1e-8
#: Counters of a search: states expanded, children solved, and how many counters there are.
STATES, CHILDREN, COUNTERS = 0, 1, 2
#: Part of the incumbent value by which one more sample left out comes first among equal bounds.
_TIE_BREAK = 1e-12
#: Rounds of packing and keeping per state, at most.
_ROUNDS = 3
#: What became of a child: solved, dropped because a sample left out is strictly satisfied, or not solved.
_SOLVED, _IMPROPER, _STALLED = 0, 1, 2


@inner
def _ignore_reversed(iterate):
    """Make the samples that must stay violated absent instead; the point is no longer up to date."""
    for i in range(iterate.sign.size):
        if iterate.sign[i] < 0.0:
            iterate.sign[i] = 1.0
            iterate.status[i] = ABSENT


@inner
def _improve_packing(price, lifted, iterate, second, packing, n_sets, paid, target, ceiling, anew):
    """Extend the packing and keep samples in turns; returns the number of sets."""
    update_prices(price, packing, n_sets)
    for round in range(_ROUNDS):
        if round > 0 and anew:
            n_sets = repack(price, lifted, iterate, second, packing, n_sets, ceiling)
        n_sets = extend(price, lifted, iterate, second, packing, n_sets, ceiling)
        if paid + packing_bound(packing, n_sets, -1, ceiling) >= target:
            break
        if keep(price, iterate, packing, n_sets, paid, target, ceiling) == 0:
            break
        update_prices(price, packing, n_sets)
    return n_sets


@inner
def _choose(price, iterate, packing, n_sets, workspace, paid, target, exclusive):
    """Write the samples to branch on: the tight ones, or a smaller set of the packing; returns how many."""
    n = price.size
    count, least = 0, np.inf
    for i in range(n):
        if iterate.status[i] != ABSENT and not packing.kept[i] and iterate.sign[i] > 0.0:
            least = min(least, price[i])
            if iterate.slack[i] <= NEAR:
                workspace.candidates[count] = i
                count += 1
    if not exclusive:
        return count
    fewest, which = count, -1
    for j in range(n_sets):
        if paid + least + packing.set_value[j] >= target:
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
                workspace.candidates[count] = i
                count += 1
    return count


@inner
def _leave_out(iterate, child, h):
    """Copy a point and make h absent."""
    copy_iterate(iterate, child)
    for k in range(child.size[0] - 1, -1, -1):
        if child.members[k] == h:
            remove(child, k, ABSENT)
    child.status[h] = ABSENT


@inner
def _solve_child(model, lifted, iterate, child, best, workspace, h, c, reverse):
    """Leave out h: write f and the members; returns what became of the child."""
    n, d = model.a.shape
    _leave_out(iterate, child, h)
    if reverse:
        child.slack[h] = 2.0 * entry(lifted, child, h, d + 1) * child.x[d + 1] - child.slack[h]
        child.sign[h] = -1.0
        bring_in(lifted, child, h)
    solved = descend(lifted, child, 50 * (d + 2))
    if reverse and not solved:
        _leave_out(iterate, child, h)
        _ignore_reversed(child)
        lift(lifted, child)
        solved = descend(lifted, child, 100 * (d + 2))
    if not solved:
        return _STALLED
    offer_point(model, lifted, child, best, workspace)
    workspace.value[c] = lifted.elastic_cost * child.x[d + 1]
    for f in range(d):
        workspace.value[c] += 0.5 * child.x[f] * child.x[f]
    workspace.n_members[c] = child.size[0]
    for k in range(child.size[0]):
        workspace.members[c, k] = child.members[k]
    for i in range(n):
        if child.status[i] == ABSENT and child.slack[i] > SATISFIED:
            return _IMPROPER
    return _SOLVED


@inner
def _solve_children(
    model, price, lifted, keys, seen, best, iterate, child, packing, workspace, counters, count, target, state,
    exclusive, reverse,
):  # fmt: skip
    """Write bounds and values of the first ``count`` candidates' children; the value of one not to be opened is inf."""
    bound, paid, n_sets, _ = state
    ceiling = best.value[0]
    for c in range(count):
        h = workspace.candidates[c]
        own_set = np.int64(packing.label[h]) - 1
        workspace.bound[c] = max(bound, paid + price[h] + packing_bound(packing, n_sets, own_set, ceiling))
        workspace.value[c] = np.inf
        if workspace.bound[c] >= target:
            packing.floor[0] = min(packing.floor[0], workspace.bound[c])
            continue
        if not exclusive:
            flip(workspace.bits, h)
            new = is_new(seen, keys, workspace.bits)
            flip(workspace.bits, h)
            if not new:
                continue
        counters[CHILDREN] += 1
        outcome = _solve_child(model, lifted, iterate, child, best, workspace, h, c, reverse)
        if outcome == _STALLED:
            packing.floor[0] = min(packing.floor[0], workspace.bound[c])
        if outcome == _STALLED or (outcome == _IMPROPER and not exclusive):
            workspace.value[c] = np.inf


@inner
def _open_children(price, states, packing, workspace, count, state, tie_break, exclusive):
    """Open the children that were solved, those whose absence lowers f most first."""
    _, paid, n_sets, depth = state
    for c in range(count):
        if exclusive and workspace.value[c] == np.inf:
            packing.kept[workspace.candidates[c]] = 1
            packing.label[workspace.candidates[c]] = 0
    while True:
        least, c = np.inf, -1
        for place in range(count):
            if workspace.value[place] < least:
                least, c = workspace.value[place], place
        if c < 0:
            break
        workspace.value[c] = np.inf
        h = workspace.candidates[c]
        own_set, rank = np.int64(packing.label[h]) - 1, tie_break * (depth + 1)
        flip(workspace.bits, h)
        open_state(
            states, workspace.bound[c], rank, paid + price[h], workspace.members[c], workspace.n_members[c],
            workspace.bits, packing, n_sets, own_set,
        )  # fmt: skip
        flip(workspace.bits, h)
        if exclusive:
            packing.kept[h] = 1
            packing.label[h] = 0


@kernel
def advance(
    model, price, lifted, keys, seen, states, best, iterate, child, second, packing, workspace, counters, gap_tol,
    n_states, n_children, exclusive,
):  # fmt: skip
    """Expand at most ``n_states`` states, smallest bound first, with about ``n_children`` children in all."""
    n, d = model.a.shape
    end, last = counters[CHILDREN] + n_children, counters[STATES] + n_states
    while counters[CHILDREN] < end and counters[STATES] < last and states.sizes[0] > 0:
        if states.sizes[1] < n + 4 or seen.used[0] + n + 4 > seen.keys.size:
            return
        ceiling, target = best.value[0], target_value(model, best, gap_tol)
        tie_break = _TIE_BREAK * ceiling
        slot = pop(states, states.sizes[1] < 2 * n + 4)
        bound, paid = states.bound[slot], states.paid[slot]
        if bound >= target:
            packing.floor[0] = min(packing.floor[0], bound)
            continue
        counters[STATES] += 1
        solved, depth = take_state(lifted, states, slot, iterate, packing, workspace, exclusive)
        reverse = exclusive and solved and paid + proved_value(lifted, iterate, packing.w) >= target
        if exclusive and not reverse:  # between reversed samples the elastic variable is too cheap
            _ignore_reversed(iterate)
            lift(lifted, iterate)
            solved = descend(lifted, iterate, 100 * (d + 2))
            offer_point(model, lifted, iterate, best, workspace)
        if not solved:
            packing.floor[0] = min(packing.floor[0], bound)
            continue
        n_sets = states.n_sets[slot]
        n_sets = _improve_packing(price, lifted, iterate, second, packing, n_sets, paid, target, ceiling, exclusive)
        update_prices(price, packing, n_sets)
        better = max(bound, paid + packing_bound(packing, n_sets, -1, ceiling))
        if better >= target:
            packing.floor[0] = min(packing.floor[0], better)
            continue
        rank = tie_break * depth
        if better > bound + tie_break * n and states.sizes[0] > 0 and better - rank > states.bound[states.heap[0]]:
            size = iterate.size[0]
            open_state(states, better, rank, paid, iterate.members, size, workspace.bits, packing, n_sets, -1)
            continue
        # A solution that leaves out R but none of the tight samples pays at least this.
        packing.floor[0] = min(packing.floor[0], max(better, paid + proved_value(lifted, iterate, packing.w)))
        state = better, paid, n_sets, depth
        count = _choose(price, iterate, packing, n_sets, workspace, paid, target, exclusive)
        _solve_children(
            model, price, lifted, keys, seen, best, iterate, child, packing, workspace, counters, count, target, state,
            exclusive, reverse,
        )  # fmt: skip
        _open_children(price, states, packing, workspace, count, state, tie_break, exclusive)


@inner
def _solve_root(model, lifted, best, iterate, packing):
    """Solve the lifted problem that leaves nothing out, from the incumbent's (w, b); whether that worked."""
    n, d = model.a.shape
    reset(iterate)
    copy(best.w, iterate.x)
    iterate.x[d] = best.b[0]
    lift(lifted, iterate)
    for i in range(n):
        packing.kept[i] = model.given[i] != FREE
    return descend(lifted, iterate, 1000 * (d + 2))


@kernel
def open_root(model, lifted, states, best, iterate, packing, workspace):
    """Open the state that leaves nothing out; False if its point cannot be computed."""
    if not _solve_root(model, lifted, best, iterate, packing):
        return False
    offer_point(model, lifted, iterate, best, workspace)
    clear(packing.label)
    clear(workspace.bits)
    open_state(states, 0.0, 0.0, 0.0, iterate.members, iterate.size[0], workspace.bits, packing, 0, -1)
    return True


@kernel
def pack_root(model, price, lifted, states, best, iterate, second, third, packing, offset):
    """Pack around the samples that the incumbent leaves out; the root takes the packing if it is the best so far."""
    if not _solve_root(model, lifted, best, iterate, packing):
        return
    slot, low = states.heap[0], model.t - FEASIBLE
    n_sets = pack_around(price, lifted, iterate, second, third, packing, best.u, low, offset, best.value[0])
    bound = packing_bound(packing, n_sets, -1, best.value[0])
    if bound > states.bound[slot]:
        states.bound[slot], states.n_sets[slot] = bound, n_sets
        copy(packing.label, states.label[slot])
        copy(packing.set_value, states.set_value[slot])
