"""Packings of conflicts: lower bounds for the search over violated samples, :mod:`.search_jit`.

A state leaves out a set R, and some samples are known to be kept by every better solution that leaves out R. A packing
is disjoint sets S_1, S_2, ... of the other samples, with conv(S_j, the kept, R reversed) >= value_j by a dual feasible
point: a solution that leaves out R in earnest has margins below t there, which the exclusive search makes use of. A
solution with penalty p leaves out a member of each S_j with value_j > p, so one that leaves out R pays at least

    cost(R) + min_p ( p + sum_{j : value_j > p} price_j ),      price_j = smallest price in S_j.

Conversely, a sample whose loss would lift this to the incumbent value is kept, which in turn makes better sets.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ....core._jit import inner
from ..node.active_set_jit import clear, copy
from .lifted_jit import ABSENT, INACTIVE, append, copy_iterate, descend, entry, forget_members, proved_value, remove

#: Values of sets are stored in single precision, rounded down by this part.
_ROUNDED_DOWN = 1.0 - 1e-6
#: A rare sample is spent only on a set that lifts the bound by this part of its price.
_WORTHWHILE = 0.9


class Packing(NamedTuple):
    """Which set a sample belongs to (from 1; 0: none), which are kept, values and prices of the sets, scratch, floor.

    ``floor`` is the smallest bound of whatever was discarded so far.
    """

    label: NDArray[np.uint8]
    kept: NDArray[np.uint8]
    set_value: NDArray[np.float32]
    set_price: NDArray[np.float64]
    without: NDArray[np.float64]
    old_label: NDArray[np.uint8]
    old_value: NDArray[np.float32]
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
    """Least p + sum of the prices of the sets worth more than p, p below the ceiling, set ``left_out`` apart."""
    value, price = packing.set_value, packing.set_price
    least = 0.0
    for j in range(n_sets):
        if j != left_out:
            least += price[j]
    for j in range(n_sets):
        if j != left_out and value[j] < ceiling:
            total = np.float64(value[j])
            for k in range(n_sets):
                if k != left_out and value[k] > value[j]:
                    total += price[k]
            least = min(least, total)
    return least


@inner
def update_prices(price, packing, n_sets):
    """Take kept samples out of their sets and write the prices."""
    for j in range(n_sets):
        packing.set_price[j] = np.inf
    for i in range(price.size):
        if packing.kept[i]:
            packing.label[i] = 0
        elif packing.label[i] > 0:
            j = packing.label[i] - 1
            packing.set_price[j] = min(packing.set_price[j], price[i])


@inner
def _add_set(price, lifted, iterate, packing, n_sets, before, share, ceiling):
    """Make the members of an optimal point the next set if the bound ``before`` rises by a share of the set's price.

    Returns the new bound, ``before`` if it does not.
    """
    n = price.size
    least_price = np.inf
    for k in range(iterate.size[0]):
        i = iterate.members[k]
        if i < n and not packing.kept[i] and iterate.multiplier[k] > 0.0 and iterate.sign[i] > 0.0:
            least_price = min(least_price, price[i])
    value = proved_value(lifted, iterate, packing.w)
    packing.set_value[n_sets] = min(value, 2.0 * ceiling) * _ROUNDED_DOWN
    packing.set_price[n_sets] = least_price
    after = packing_bound(packing, n_sets + 1, -1, ceiling)
    if not after > before + share * min(least_price, ceiling):
        return before
    for k in range(iterate.size[0]):
        i = iterate.members[k]
        if i < n and not packing.kept[i] and iterate.multiplier[k] > 0.0 and iterate.sign[i] > 0.0:
            packing.label[i] = n_sets + 1
    return after


@inner
def _withdraw(iterate, packing):
    """Make every sample of a set absent."""
    n = packing.label.size
    for k in range(iterate.size[0] - 1, -1, -1):
        if iterate.members[k] < n and packing.label[iterate.members[k]] > 0:
            remove(iterate, k, ABSENT)
    for i in range(n):
        if packing.label[i] > 0:
            iterate.status[i] = ABSENT


@inner
def extend(price, lifted, iterate, second, packing, n_sets, ceiling):
    """Add sets from the samples of no set while that lifts the bound; returns the number of sets."""
    copy_iterate(iterate, second)
    before = packing_bound(packing, n_sets, -1, ceiling)
    while n_sets < packing.set_value.size and before < ceiling:
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
def keep(price, iterate, packing, n_sets, paid, target, ceiling):
    """Keep every sample that no better solution of this state leaves out; returns how many are new."""
    for j in range(n_sets + 1):
        packing.without[j] = packing_bound(packing, n_sets, j - 1, ceiling)
    new = 0
    for i in range(price.size):
        if iterate.status[i] != ABSENT and not packing.kept[i] and iterate.sign[i] > 0.0:
            bound = paid + price[i] + packing.without[packing.label[i]]
            if bound >= target:
                packing.floor[0] = min(packing.floor[0], bound)
                packing.kept[i] = 1
                new += 1
    return new


@inner
def bring_in(lifted, iterate, i):
    """Add the row of one more sample and make the point feasible for it by raising s."""
    last = iterate.x.size - 1
    iterate.status[i] = INACTIVE
    if iterate.slack[i] < 0.0:
        forget_members(iterate)
        rise = -iterate.slack[i] / entry(lifted, iterate, i, last)
        iterate.x[last] += rise
        for j in range(iterate.slack.size):
            iterate.slack[j] += rise * entry(lifted, iterate, j, last)
        iterate.slack[i] = 0.0
        append(lifted, iterate, i)


@inner
def pack_around(price, lifted, iterate, second, third, packing, u, low, offset, ceiling):
    """Pack sets that each hold one sample with u < ``low`` while the others are absent, then whatever else there is.

    With the incumbent's margins u these are its violated samples: each conflict needs one, so a packing should not
    waste them. ``iterate`` is an optimal point that leaves nothing out. Returns the number of sets.
    """
    n, n_sets, count = price.size, 0, 0
    copy_iterate(iterate, second)
    for i in range(n):
        packing.label[i] = 0
        if u[i] < low and not packing.kept[i]:
            packing.queue[count] = i
            packing.label[i] = 255  # absent for the moment
            count += 1
    _withdraw(second, packing)
    for c in range(count):
        packing.label[packing.queue[c]] = 0
    before = 0.0
    if descend(lifted, second, 50 * second.x.size):
        for c in range(count):
            i = packing.queue[(offset + c) % count]
            if n_sets == packing.set_value.size or before >= ceiling:
                break
            copy_iterate(second, third)
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
    return extend(price, lifted, iterate, second, packing, n_sets, ceiling)


@inner
def repack(price, lifted, iterate, second, packing, n_sets, ceiling):
    """Pack anew and keep the better packing; returns the number of sets."""
    old = packing_bound(packing, n_sets, -1, ceiling)
    copy(packing.label, packing.old_label)
    copy(packing.set_value, packing.old_value)
    clear(packing.label)
    number = extend(price, lifted, iterate, second, packing, 0, ceiling)
    if packing_bound(packing, number, -1, ceiling) > old:
        return number
    copy(packing.old_label, packing.label)
    copy(packing.old_value, packing.set_value)
    update_prices(price, packing, n_sets)
    return n_sets
