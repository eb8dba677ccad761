"""Packings of conflicts: lower bounds for the search over violated samples, :mod:`.search_jit`.

A state leaves out a set R, and some samples are known to be kept by every better solution that leaves out R. A packing
is disjoint sets S_1, S_2, ... of the other samples, with conv(S_j, the kept, R reversed) >= worth_j by a dual feasible
point: a solution that leaves out R in earnest has margins below t there, which the exclusive search makes use of. A
solution with penalty p leaves out a member of each S_j with worth_j > p, so whoever leaves out R pays at least

    cost(R) + min_p ( p + sum_{j : worth_j > p} toll_j ),       toll_j = smallest cost in S_j.

Conversely, a sample whose loss would lift this to the incumbent value is kept, which in turn makes better sets.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ....core._jit import inner
from .lifted_jit import ABSENT, WATCHED, append, copy_spot, descend, entry, forget_members, proved_value, remove

#: Worths are stored in single precision, rounded down by this part.
_SHAVE = 1.0 - 1e-6
#: A rare sample is spent only on a set that lifts the bound by this part of its toll.
_WORTHWHILE = 0.9


class Packing(NamedTuple):
    """Which set a sample belongs to (from 1; 0: none), who is kept, worths and tolls of the sets, scratch, the floor.

    ``floor`` is the smallest bound of whatever was discarded so far.
    """

    label: NDArray[np.uint8]
    kept: NDArray[np.uint8]
    worth: NDArray[np.float32]
    toll: NDArray[np.float64]
    without: NDArray[np.float64]
    old_label: NDArray[np.uint8]
    old_worth: NDArray[np.float32]
    queue: NDArray[np.int64]
    w: NDArray[np.float64]
    floor: NDArray[np.float64]


def make_packing(n: int, d: int, n_sets: int) -> Packing:
    """Allocate an empty packing."""
    single = np.zeros(n_sets, np.float32)
    rest = np.zeros(n, np.uint8), single.copy(), np.zeros(n, np.int64), np.zeros(d), np.full(1, np.inf)
    return Packing(np.zeros(n, np.uint8), np.zeros(n, np.uint8), single, np.zeros(n_sets), np.zeros(n_sets + 1), *rest)


@inner
def packing_bound(packing, n_sets, left_out, ceiling):
    """Least p + sum of the tolls of the sets worth more than p, p below the ceiling, set ``left_out`` apart."""
    worth, toll = packing.worth, packing.toll
    total = 0.0
    for j in range(n_sets):
        if j != left_out:
            total += toll[j]
    for j in range(n_sets):
        if j != left_out and worth[j] < ceiling:
            value = np.float64(worth[j])
            for k in range(n_sets):
                if k != left_out and worth[k] > worth[j]:
                    value += toll[k]
            total = min(total, value)
    return total


@inner
def set_tolls(price, packing, n_sets):
    """Take kept samples out of their sets and write the tolls."""
    for j in range(n_sets):
        packing.toll[j] = np.inf
    for i in range(price.size):
        if packing.kept[i]:
            packing.label[i] = 0
        elif packing.label[i] > 0:
            j = packing.label[i] - 1
            packing.toll[j] = min(packing.toll[j], price[i])


@inner
def _add_set(price, lifted, spot, packing, n_sets, before, share, ceiling):
    """Make the members of an optimal point the next set if the bound ``before`` rises by more than a share of its toll.

    Returns the new bound, ``before`` if it does not.
    """
    n = price.size
    toll = np.inf
    for k in range(spot.size[0]):
        i = spot.members[k]
        if i < n and not packing.kept[i] and spot.multiplier[k] > 0.0 and spot.sign[i] > 0.0:
            toll = min(toll, price[i])
    value = proved_value(lifted, spot, packing.w)
    packing.worth[n_sets] = min(value, 2.0 * ceiling) * _SHAVE
    packing.toll[n_sets] = toll
    after = packing_bound(packing, n_sets + 1, -1, ceiling)
    if not after > before + share * min(toll, ceiling):
        return before
    for k in range(spot.size[0]):
        i = spot.members[k]
        if i < n and not packing.kept[i] and spot.multiplier[k] > 0.0 and spot.sign[i] > 0.0:
            packing.label[i] = n_sets + 1
    return after


@inner
def _withdraw(spot, packing):
    """Make every sample of a set absent."""
    n = packing.label.size
    for k in range(spot.size[0] - 1, -1, -1):
        if spot.members[k] < n and packing.label[spot.members[k]] > 0:
            remove(spot, k, ABSENT)
    for i in range(n):
        if packing.label[i] > 0:
            spot.role[i] = ABSENT


@inner
def extend(price, lifted, spot, second, packing, n_sets, ceiling):
    """Add sets from the samples of no set while that lifts the bound; returns the number of sets."""
    copy_spot(spot, second)
    before = packing_bound(packing, n_sets, -1, ceiling)
    while n_sets < packing.worth.size and before < ceiling:
        _withdraw(second, packing)
        if not descend(lifted, second, 50 * second.x.size):
            break
        after = _add_set(price, lifted, second, packing, n_sets, before, 0.0, ceiling)
        if not after > before:
            break
        n_sets += 1
        before = after
    return n_sets


@inner
def keep(price, spot, packing, n_sets, paid, target, ceiling):
    """Keep every sample that no better solution of this state leaves out; returns how many are new."""
    for j in range(n_sets + 1):
        packing.without[j] = packing_bound(packing, n_sets, j - 1, ceiling)
    new = 0
    for i in range(price.size):
        if spot.role[i] != ABSENT and not packing.kept[i] and spot.sign[i] > 0.0:
            bound = paid + price[i] + packing.without[packing.label[i]]
            if bound >= target:
                packing.floor[0] = min(packing.floor[0], bound)
                packing.kept[i] = 1
                new += 1
    return new


@inner
def bring_in(lifted, spot, i):
    """Watch one more sample and make the point feasible for it by raising s."""
    last = spot.x.size - 1
    spot.role[i] = WATCHED
    if spot.slack[i] < 0.0:
        forget_members(spot)
        rise = -spot.slack[i] / entry(lifted, spot, i, last)
        spot.x[last] += rise
        for j in range(spot.slack.size):
            spot.slack[j] += rise * entry(lifted, spot, j, last)
        spot.slack[i] = 0.0
        append(lifted, spot, i)


@inner
def pack_around(price, lifted, spot, second, third, packing, u, low, offset, ceiling):
    """Pack sets that each hold one sample with u < ``low`` while the others stay away, then whatever else there is.

    With the incumbent's margins u these are its violated samples: each conflict needs one, so a packing should not
    waste them. ``spot`` is an optimal point that leaves nothing out. Returns the number of sets.
    """
    n, n_sets, count = price.size, 0, 0
    copy_spot(spot, second)
    for i in range(n):
        packing.label[i] = 0
        if u[i] < low and not packing.kept[i]:
            packing.queue[count] = i
            packing.label[i] = 255  # away for the moment
            count += 1
    _withdraw(second, packing)
    for c in range(count):
        packing.label[packing.queue[c]] = 0
    before = 0.0
    if descend(lifted, second, 50 * second.x.size):
        for c in range(count):
            i = packing.queue[(offset + c) % count]
            if n_sets == packing.worth.size or before >= ceiling:
                break
            copy_spot(second, third)
            bring_in(lifted, third, i)
            if not descend(lifted, third, 50 * third.x.size):
                continue
            after = _add_set(price, lifted, third, packing, n_sets, before, _WORTHWHILE, ceiling)
            if after > before:
                n_sets += 1
                before = after
                _withdraw(second, packing)
                if not descend(lifted, second, 50 * second.x.size):
                    break
    return extend(price, lifted, spot, second, packing, n_sets, ceiling)


@inner
def repack(price, lifted, spot, second, packing, n_sets, ceiling):
    """Pack anew and keep the better packing; returns the number of sets."""
    old = packing_bound(packing, n_sets, -1, ceiling)
    for i in range(price.size):
        packing.old_label[i] = packing.label[i]
        packing.label[i] = 0
    for j in range(n_sets):
        packing.old_worth[j] = packing.worth[j]
    number = extend(price, lifted, spot, second, packing, 0, ceiling)
    if packing_bound(packing, number, -1, ceiling) > old:
        return number
    for i in range(price.size):
        packing.label[i] = packing.old_label[i]
    for j in range(n_sets):
        packing.worth[j] = packing.old_worth[j]
    set_tolls(price, packing, n_sets)
    return n_sets
