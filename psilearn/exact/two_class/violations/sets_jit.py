"""Sets of samples as bits, and a memory of the sets met so far: equal only if all bits are equal."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ....core._jit import inner, kernel


class Seen(NamedTuple):
    """Sets met so far: a hash table of indices (plus one) into keys and bit sets; ``used`` counts them."""

    table: NDArray[np.int64]
    keys: NDArray[np.uint64]
    bits: NDArray[np.uint64]
    used: NDArray[np.int64]


@inner
def has(bits, i):
    """Whether bit i is set."""
    return (bits[i >> 6] >> np.uint64(i & 63)) & np.uint64(1) != np.uint64(0)


@inner
def flip(bits, i):
    """Flip bit i."""
    bits[i >> 6] ^= np.uint64(1) << np.uint64(i & 63)


@inner
def is_new(seen, keys, bits):
    """Whether a set is met for the first time; it is remembered."""
    key = np.uint64(0)
    for i in range(keys.size):
        if has(bits, i):
            key ^= keys[i]
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
                return False
        at = (at + 1) & mask
    index = seen.used[0]
    seen.used[0] += 1
    seen.table[at] = index + 1
    seen.keys[index] = key
    for k in range(bits.size):
        seen.bits[index, k] = bits[k]
    return True


@kernel
def rehash(seen):
    """Fill an empty table with the sets that are stored."""
    mask = seen.table.size - 1
    for index in range(seen.used[0]):
        at = np.int64(seen.keys[index] & np.uint64(mask))
        while seen.table[at] != 0:
            at = (at + 1) & mask
        seen.table[at] = index + 1
