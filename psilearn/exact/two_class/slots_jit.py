"""Open nodes in slots of fixed size: a heap of slots, the node with the smallest bound first.

A pool is a NamedTuple of arrays: ``heap`` (slots in heap order), ``spare`` (slots that are free), ``sizes`` (how many
are in the heap, how many are free), ``bound`` per slot, and whatever else a search stores per slot.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from ...core._jit import inner

P = TypeVar("P", bound=tuple)


def empty_heap(slots: int) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Allocate heap, spare, sizes and bound of an empty pool."""
    return np.zeros(slots, np.int64), np.arange(slots)[::-1].copy(), np.array([0, slots]), np.zeros(slots)


def grown(pool: P) -> P:
    """Return a pool of twice the size with the same open nodes."""
    columns = pool._asdict()  # type: ignore[attr-defined]
    slots, (used, free) = columns["bound"].size, columns["sizes"]
    for name, array in columns.items():
        if name != "sizes":
            columns[name] = np.zeros((2 * slots, *array.shape[1:]), array.dtype)
            columns[name][:slots] = array
    columns["spare"][free : free + slots] = np.arange(slots, 2 * slots)[::-1]
    columns["sizes"] = np.array([used, free + slots])
    return type(pool)(**columns)


@inner
def push(pool, bound):
    """Open a node and return its slot; the caller fills it."""
    slot = pool.spare[pool.sizes[1] - 1]
    pool.sizes[1] -= 1
    pool.bound[slot] = bound
    heap, i = pool.heap, pool.sizes[0]
    pool.sizes[0] += 1
    while i > 0 and pool.bound[heap[(i - 1) // 2]] > bound:
        heap[i] = heap[(i - 1) // 2]
        i = (i - 1) // 2
    heap[i] = slot
    return slot


@inner
def pop(pool, is_scarce):
    """Close a node and return its slot, whose contents stay until the next push.

    It is the node with the smallest bound, or, when memory is scarce, the last leaf of the heap.
    """
    heap = pool.heap
    pool.sizes[0] -= 1
    size = pool.sizes[0]
    last = heap[size]
    taken = last if is_scarce else heap[0]
    pool.spare[pool.sizes[1]] = taken
    pool.sizes[1] += 1
    if is_scarce:
        return taken
    i = 0
    while 2 * i + 1 < size:
        c = 2 * i + 1
        if c + 1 < size and pool.bound[heap[c + 1]] < pool.bound[heap[c]]:
            c += 1
        if pool.bound[heap[c]] >= pool.bound[last]:
            break
        heap[i] = heap[c]
        i = c
    heap[i] = last
    return taken
