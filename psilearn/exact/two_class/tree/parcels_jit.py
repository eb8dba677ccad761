"""Open nodes on their way from one pool to another."""

from __future__ import annotations

from ....core._jit import kernel
from ..node.active_set_jit import copy
from ..slots_jit import pop, push


@kernel
def move_nodes(source, target, most, deepest):
    """Move up to ``most`` open nodes: those with the smallest bounds, or, if ``deepest``, the last leaves of the heap.

    Returns how many were moved; it stops where the target is full.
    """
    moved = 0
    while moved < most and source.sizes[0] > 0 and target.sizes[1] > 0:
        taken = pop(source, deepest)
        slot = push(target, source.bound[taken])
        target.number[slot] = source.number[taken]
        target.intercept[slot] = source.intercept[taken]
        copy(source.state[taken], target.state[slot])
        copy(source.alpha[taken], target.alpha[slot])
        copy(source.low[taken], target.low[slot])
        copy(source.high[taken], target.high[slot])
        moved += 1
    return moved
