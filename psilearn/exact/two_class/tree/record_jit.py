"""What the tree remembers of itself: which sample divided a node. Enough to search the same tree again for a proof.

Nodes are numbered from 0, the root. A divided node knows its sample and the number of its first child, in which the
sample is left out; the second, in which it is believed, has the next number. Where the record is full, nodes have the
number -1 and are forgotten. 8 bytes a node.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ....core._jit import inner

#: Most nodes that are remembered (32 MB).
MOST = 1 << 22


class TreeRecord(NamedTuple):
    """Sample that divides each node (-1: none does), number of its first child, and how many nodes are known."""

    sample: NDArray[np.int32]
    child: NDArray[np.int32]
    size: NDArray[np.int64]


def make_record(capacity: int = 1024) -> TreeRecord:
    """Allocate the record of a tree that is nothing but its root."""
    return TreeRecord(np.full(capacity, -1, np.int32), np.full(capacity, -1, np.int32), np.ones(1, np.int64))


def with_room(record: TreeRecord, nodes: int) -> TreeRecord:
    """Return the record with room for so many nodes more, within the limit."""
    capacity = min(int(record.size[0]) + nodes, MOST)
    if capacity <= record.sample.size:
        return record
    more = np.full(max(capacity, min(2 * record.sample.size, MOST)) - record.sample.size, -1, np.int32)
    return TreeRecord(np.concatenate([record.sample, more]), np.concatenate([record.child, more]), record.size)


def trimmed(record: TreeRecord) -> TreeRecord:
    """Return the record without its empty end."""
    size = int(record.size[0])
    return TreeRecord(record.sample[:size].copy(), record.child[:size].copy(), record.size.copy())


@inner
def note_division(record, node, sample):
    """Note that a sample divides a node; returns the number of its first child, -1 if there is no room."""
    first = record.size[0]
    if node < 0 or first + 2 > record.sample.size:
        return -1
    record.sample[node], record.child[node] = sample, first
    record.size[0] = first + 2
    return first
