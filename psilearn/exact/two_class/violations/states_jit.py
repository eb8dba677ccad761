"""Open states of the search over violated sets: how they wait, are opened and are taken up again."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ....core._jit import inner
from ...envelope_jit import FEASIBLE
from ..incumbent_jit import offer
from ..node.active_set_jit import clear, copy
from ..slots_jit import push
from .lifted_jit import ABSENT, INFEASIBLE, append, descend, entry, forget_members, lift, reset, settle
from .sets_jit import flip, has


class States(NamedTuple):
    """Open states: a heap of slots ordered by bound (less a little for depth), and the slots' contents.

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
    set_value: NDArray[np.float32]
    n_sets: NDArray[np.int64]


class StateWorkspace(NamedTuple):
    """Scratch memory: the set at hand, the samples to branch on with their values and members, a point."""

    bits: NDArray[np.uint64]
    candidates: NDArray[np.int64]
    value: NDArray[np.float64]
    bound: NDArray[np.float64]
    members: NDArray[np.int64]
    n_members: NDArray[np.int64]
    w: NDArray[np.float64]
    u: NDArray[np.float64]


@inner
def offer_point(model, lifted, iterate, best, workspace):
    """Offer (w, b) of a point as incumbent; returns its value."""
    n, d = model.a.shape
    s = iterate.x[d + 1]
    value = 0.0
    for f in range(d):
        value += 0.5 * iterate.x[f] * iterate.x[f]
    for i in range(n):
        if iterate.sign[i] * (iterate.slack[i] - entry(lifted, iterate, i, d + 1) * s) < -FEASIBLE:
            value += model.cost[i] * model.cap
    if value < best.value[0]:
        for f in range(d):
            workspace.w[f] = iterate.x[f]
        for i in range(n):
            workspace.u[i] = (
                iterate.sign[i] * (iterate.slack[i] - entry(lifted, iterate, i, d + 1) * s) + lifted.right[i]
            )
        offer(model, best, workspace.w, iterate.x[d], workspace.u)
    return value


@inner
def open_state(states, bound, rank, paid, members, n_members, bits, packing, n_sets, hit):
    """Push the state that leaves out ``bits``; its packing is the one at hand without set ``hit`` (-1: none)."""
    slot = push(states, bound - rank)
    states.paid[slot], states.n_members[slot] = paid, n_members
    for k in range(n_members):
        states.members[slot, k] = members[k]
    copy(bits, states.out[slot])
    clear(states.kept[slot])
    last = n_sets - 1 if hit >= 0 else n_sets
    for j in range(n_sets):
        states.set_value[slot, j] = packing.set_value[j]
    if hit >= 0:
        states.set_value[slot, hit] = packing.set_value[last]
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
def take_state(lifted, states, slot, iterate, packing, workspace, reverse):
    """Restore a state's point and packing; returns (whether the point is optimal, number of samples left out).

    The samples left out are reversed, or absent.
    """
    n = packing.label.size
    depth = 0
    reset(iterate)
    copy(states.out[slot], workspace.bits)
    copy(states.label[slot], packing.label)
    for i in range(n):
        packing.kept[i] = 1 if has(states.kept[slot], i) else 0
        if reverse and (packing.kept[i] or has(workspace.bits, i)):
            iterate.elasticity[i] = lifted.known_elasticity
        if has(workspace.bits, i):
            depth += 1
            if reverse:
                iterate.sign[i] = -1.0
            else:
                iterate.status[i] = ABSENT
    for j in range(states.n_sets[slot]):
        packing.set_value[j] = states.set_value[slot, j]
    forget_members(iterate)
    clear(iterate.x)
    for k in range(states.n_members[slot]):
        append(lifted, iterate, np.int64(states.members[slot, k]))
    settle(lifted, iterate)
    least = 0.0
    for i in range(n + 1):
        if iterate.status[i] != ABSENT:
            least = min(least, iterate.slack[i])
    if least < -INFEASIBLE:
        lift(lifted, iterate)
    return descend(lifted, iterate, 50 * iterate.x.size), depth
