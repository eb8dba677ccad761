"""Open states of the search over violated sets: how they wait, are opened and are taken up again."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ....core._jit import inner
from ..tree.tree_jit import FEASIBLE, offer, push
from .lifted_jit import ABSENT, INFEASIBLE, WATCHED, append, descend, entry, forget_members, lift, settle
from .sets_jit import flip, has


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
def open_state(states, bound, rank, paid, members, n_members, bits, packing, n_sets, hit):
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
def take_state(lifted, states, slot, spot, packing, desk, reverse):
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
