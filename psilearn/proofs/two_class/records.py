"""The records of a proved tree, as they stand in the file: only the cuts that the proof rests on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ..statement import Record
from .node import Node, Sparse, entries, sparse

#: Cuts per record, which keeps lines short.
_CUTS = 64
#: How a file names a margin: a multiple of the unit of margins, or "t".
Named = Callable[[float], int | str]


def records(root: Node, named: Named) -> Iterator[Record]:
    """Yield the records of a tree in the order of the file: a node, its lower child, its upper child."""
    _prune(root)
    stack = [root]
    while stack:
        node = stack.pop()
        yield from node.records
        for base, cuts in node.kept:
            yield from _cut_records(base, cuts, named)
        if node.split is None:
            yield {"leaf": entries(_closing(node))}
            continue
        yield {"split": [node.split[0], named(node.split[1])]}
        stack.extend(node.children[::-1])


def _cut_records(base: Sparse, cuts: list[Any], named: Named) -> Iterator[Record]:
    lines = []
    for i, side, c, who, step in cuts:
        lines.append([i, "<" if side < 0 else ">", named(c), [[j, int(x)] for j, x in zip(who, step)]])
    for first in range(0, len(lines), _CUTS):
        yield {"multipliers": entries(base), "cuts": lines[first : first + _CUTS]}


def _closing(node: Node) -> Sparse:
    """Return the multipliers of a node that is not divided; open ones have them, too."""
    return sparse(node.leaf) if node.closing is None else node.closing


def _prune(root: Node) -> None:
    """Drop the cuts that nothing below them rests on.

    Raising the lower end of a sample changes the value of multipliers only if that sample's is not zero, so a cut
    is needed only if its sample has a multiplier, or is divided or cut, somewhere below.
    """
    order, stack = [], [root]
    while stack:
        node = stack.pop()
        order.append(node)
        stack.extend(node.children)
    for node in reversed(order):
        if node.split is None:
            node.used = set(_closing(node)[0].tolist())
        else:
            node.used = {node.split[0]}.union(*(child.used for child in node.children))
        for child in node.children:
            child.used = set()
        kept = [(base, lines) for base, *parts in reversed(node.cuts) if (lines := _needed(node.used, base, parts))]
        node.kept = kept[::-1]


def _needed(used: set[int], base: Sparse, parts: list[Any]) -> list[tuple[Any, ...]]:
    """Return the cuts of one change of multipliers that are used below; adds the samples they rest on to ``used``."""
    lines = []
    for i, side, c, size, who, step in reversed(list(zip(*parts))):
        if side > 0 or i in used:
            members = who[:size].tolist()
            lines.append((int(i), side, c, members, step[:size].tolist()))
            used.update((int(i), *members))
    if lines:
        used.update(base[0].tolist())
    return lines[::-1]
