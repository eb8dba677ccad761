"""Nodes of the tree that a proof file holds, and the divisions that a search remembers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...exact.two_class.tree.record_jit import TreeRecord
from ..statement import Record

Array = NDArray[np.float64]

#: Places and values of the entries of an array that are not zero.
Sparse = tuple[NDArray[np.intp], Array]


def sparse(a: Array) -> Sparse:
    """Return places and values of the entries that are not zero."""
    places = np.flatnonzero(a)
    return places, a[places]


def entries(multipliers: Sparse) -> list[list[int]]:
    """Return multipliers as they stand in a file: pairs of a sample and a whole number."""
    return [[int(i), int(a)] for i, a in zip(*multipliers)]


class Hints:
    """The divisions that a search remembers, by the checker's samples. They prove nothing, but save trials."""

    def __init__(self, record: TreeRecord, sample: NDArray[np.intp]) -> None:
        self.sample = np.where(record.sample >= 0, sample[record.sample], -1)
        self.child = record.child

    def of(self, node: Node, t: float) -> int:
        """Return the sample that divided a node, -1 if none is known; nodes whose side is decided are passed over."""
        while node.number >= 0:
            i = int(self.sample[node.number])
            if i < 0:
                break
            if node.low[i] < t < node.high[i]:
                return i
            node.number = int(self.child[node.number]) + int(node.low[i] >= t)
        return -1


@dataclass(order=True)
class Node:
    """A node: its bound, intervals, warm start, the records that shrank it, and how it was closed or divided.

    ``rank`` is the order in which nodes are taken, ``number`` that of the search's own tree (-1: not in it).
    """

    rank: float
    bound: float
    order: int
    low: Array = field(compare=False)
    high: Array = field(compare=False)
    alpha: Array = field(compare=False)
    b: float = field(compare=False)
    leaf: Array = field(compare=False)
    records: list[Record] = field(default_factory=list, compare=False)
    cuts: list[tuple[Any, ...]] = field(default_factory=list, compare=False)
    kept: list[tuple[Any, ...]] = field(default_factory=list, compare=False)
    used: set[int] = field(default_factory=set, compare=False)
    number: int = field(default=-1, compare=False)
    closing: Sparse | None = field(default=None, compare=False)
    split: tuple[int, float] | None = field(default=None, compare=False)
    children: tuple[Any, ...] = field(default=(), compare=False)
