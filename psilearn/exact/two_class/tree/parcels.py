"""A part of the tree that is searched elsewhere: by a thread of this process or by a worker of a cluster.

A parcel holds open nodes, the incumbent, and what was learned about branching. What comes back is of the same kind:
the nodes that are still open, the least bound of those that were discarded, a better incumbent if there is one. Since
every open node is in exactly one place, the least of all these bounds is a bound on the optimum.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ....core.result import InconsistentBoundError
from ....core.solving import Clock
from ..incumbent_jit import Best
from ..model import make_workspace
from ..node.node_jit import Model, NodeWorkspace
from ..slots_jit import empty_heap, grown
from .branching_jit import REACH, SCORE
from .parcels_jit import move_nodes
from .record_jit import TreeRecord, make_record, with_room
from .tightening_jit import tighten_all
from .tree_jit import COUNTERS, FALSE_PROOFS, Pool, advance

#: Seconds between two readings of the clock, and times a node is solved, tightened and solved again at most.
CHUNK_SECONDS, ROUNDS = 0.05, 5


class Parcel(NamedTuple):
    """Open nodes numbered from 0, their numbers in the record of the whole tree, the incumbent and the history."""

    nodes: Pool
    origin: NDArray[np.int64]
    best: Best
    history: NDArray[np.float64]


class Explored(NamedTuple):
    """What came of a parcel: open nodes, their divisions, least discarded bound, counters, incumbent, history."""

    nodes: Pool
    record: TreeRecord
    floor: float
    counters: NDArray[np.int64]
    best: Best
    history: NDArray[np.float64]


def make_pool(slots: int, n: int) -> Pool:
    """Allocate an empty pool of open nodes."""
    arrays = np.zeros((slots, n), np.int8), np.zeros((slots, n)), np.zeros((slots, n)), np.zeros((slots, n))
    return Pool(*empty_heap(slots), np.zeros(slots), *arrays, np.zeros(slots, np.int64))


def copy_of(best: Best) -> Best:
    """Return a copy of an incumbent."""
    return Best(*(array.copy() for array in best))


def exchange(one: Best, other: Best) -> None:
    """Give both the better of two incumbents."""
    if one.value[0] == other.value[0]:
        return
    better, worse = (one, other) if one.value[0] < other.value[0] else (other, one)
    for new, old in zip(better, worse):
        old[:] = new


def pack(pool: Pool, most: int, best: Best, history: NDArray[np.float64], deepest: bool) -> Parcel:
    """Take up to ``most`` open nodes out of a pool."""
    n = pool.state.shape[1]
    nodes = make_pool(min(most, int(pool.sizes[0])), n)
    count = move_nodes(pool, nodes, most, deepest)
    slots = nodes.heap[:count]
    origin = nodes.number[slots].copy()
    nodes.number[slots] = np.where(origin >= 0, np.arange(count), -1)
    return Parcel(nodes, origin, copy_of(best), history.copy())


def explore(model: Model, parcel: Parcel, gap_tol: float, seconds: float, may_grow: bool) -> Explored:
    """Search the nodes of a parcel for some seconds; without leave to grow, depth first as soon as memory is scarce."""
    n, (nodes, origin, best, history) = model.y.size, parcel
    best, history, record = copy_of(best), history.copy(), make_record(origin.size + 1024)
    record.size[0] = origin.size
    work, scratch = make_workspace(model), make_workspace(model)
    while True:  # the parcel itself is left as it is
        nodes = grown(nodes)
        if nodes.sizes[1] >= n + 72:
            break
    floor, counters, chunk, clock = np.full(1, math.inf), np.zeros(COUNTERS, np.int64), 4, Clock(seconds)
    while nodes.sizes[0] and not clock.is_over:
        if may_grow and nodes.sizes[1] < n + 64:
            nodes = grown(nodes)
        record, began = with_room(record, 2 * (chunk + 64)), clock.seconds
        advance(
            model, work, nodes, best, scratch, history, floor, counters, record, gap_tol, chunk, ROUNDS
        )  # fmt: skip
        if counters[FALSE_PROOFS]:
            raise InconsistentBoundError("a node's bound exceeds an incumbent inside it")
        took = max(clock.seconds - began, 1e-6)
        chunk = int(min(max(1, chunk * min(4.0, CHUNK_SECONDS / took)), 100_000))
    small = make_pool(max(1, int(nodes.sizes[0])), n)
    move_nodes(nodes, small, small.bound.size, False)
    return Explored(small, record, float(floor[0]), counters, best, history)


class Tightened(NamedTuple):
    """Lower ends of the margins of some samples, their states, and the reaches that were learned."""

    low: NDArray[np.float64]
    state: NDArray[np.int8]
    reach: NDArray[np.float64]


def tighten_part(
    model: Model, node: NodeWorkspace, reach: NDArray[np.float64], upper: float, bound: float, first: int, last: int
) -> Tightened:
    """Tighten the samples from ``first`` to before ``last`` of a node that is solved; the node is left as it is."""
    work, trial, reach = make_workspace(model), make_workspace(model), reach.copy()
    for name in ("state", "low", "high", "alpha", "b"):
        getattr(work, name)[:] = getattr(node, name)
    tighten_all(model, work, trial, reach, upper, bound, first, last)
    return Tightened(work.low[first:last], work.state[first:last], reach[first:last])


def learn(history: NDArray[np.float64], before: NDArray[np.float64], after: NDArray[np.float64]) -> None:
    """Add to the history what a parcel has learned."""
    history[:SCORE] += after[:SCORE] - before[:SCORE]
    changed = after[REACH] != before[REACH]
    history[REACH, changed] = after[REACH, changed]


def join_record(
    record: TreeRecord, part: TreeRecord, origin: NDArray[np.int64]
) -> tuple[TreeRecord, NDArray[np.int64]]:
    """Write the divisions of a parcel into the record of the tree; returns it, and each node's number there.

    Nodes for which there is no room have the number -1, and so have those below them.
    """
    size, known = int(part.size[0]), origin.size
    record = with_room(record, size - known)
    base, fresh = int(record.size[0]), max(0, min(size - known, record.sample.size - int(record.size[0])) // 2 * 2)
    number = np.full(size + 1, -1, np.int64)  # the last is that of "no node"
    number[:known] = origin
    number[known : known + fresh] = base + np.arange(fresh)
    record.size[0] = base + fresh
    divided = np.flatnonzero(part.sample[:size] >= 0)
    first = number[part.child[divided]]
    divided, first = divided[first >= 0], first[first >= 0]
    here = number[divided]
    record.sample[here[here >= 0]], record.child[here[here >= 0]] = part.sample[divided][here >= 0], first[here >= 0]
    return record, number
