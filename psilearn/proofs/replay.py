"""The tree of a proof for truncated losses of two classes: found again, best bound first, from a known optimum.

The compiled search keeps no log. With its optimum at hand the tree is searched once more: cases are solved by the same
compiled node solver, and a case is closed by integer multipliers that the checker's own code evaluates.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.solving import Clock
from ..exact.sample_state_jit import FREE, IN, OUT
from ..exact.two_class.model import make_model, make_workspace, margin_bounds
from ..exact.two_class.node.node_jit import solve_node
from ..exact.two_class.reduction import reduce
from .check import Rejected, follows, narrowed, tighten
from .repair import best_leaf
from .statement import MARGIN_QUANTUM, Statement
from .table import ProofError
from .tightening import tightening

Array = NDArray[np.float64]

#: Samples whose two cases are solved before one of them divides a node.
_TRIED = 8
#: Times a case is tightened and solved again.
_ROUNDS = 4
#: Part of the bound by which the multipliers of a leaf should exceed it, so that rounding them does no harm.
_MARGIN = 1e-9
#: By how much limits of margins are widened, relative to their distance from t, until they follow exactly.
_WIDENINGS = (1e-10, 1e-8, 1e-6, 1e-4)


@dataclass(order=True)
class Node:
    """A case: what it knows of the samples, the solver's bound and multipliers, and what became of it.

    ``lines`` are the tightenings of the case, ``record`` its leaf.
    """

    bound: float
    number: int
    sides: dict[int, int] = field(compare=False)
    regions: list[Any] = field(compare=False)
    low: Array = field(compare=False)
    high: Array = field(compare=False)
    alpha: Array = field(compare=False)
    margins: Array = field(compare=False)
    paid: Array = field(compare=False)
    w: Array = field(compare=False)
    members: list[int] = field(compare=False)
    lines: list[dict] = field(default_factory=list, compare=False)
    record: dict | None = field(default=None, compare=False)
    split: int = field(default=-1, compare=False)
    cases: tuple[Node, Node] | None = field(default=None, compare=False)


class Replay:
    """The search for the tree of one statement."""

    def __init__(self, statement: Statement, target: float) -> None:
        self.exact: Any = statement.exact
        self.reduction = reduce(statement.problem)
        if self.reduction.n != self.exact.n:
            raise ProofError("Two samples of the kernel coincide but for rounding; merge them first.")
        self.signs = statement.problem.signs
        self.model = make_model(self.reduction, statement.problem.loss)
        self.work = make_workspace(self.model)
        self.target = target
        self.cutoff = target * (1.0 + _MARGIN) / self.reduction.unit
        self.lows, self.highs = self._limits()
        self.count = 0
        self.place = np.argsort(self.reduction.group)  # sample of each of the solver's rows

    def _limits(self) -> tuple[list[int | None], list[int | None]]:
        """Return limits of the margins on the grid, proved by the checker's rule; None where none follows."""
        low, high = margin_bounds(self.model, self.target / self.reduction.unit)
        bound, t = Fraction(self.target), self.model.t
        lows: list[int | None] = []
        highs: list[int | None] = []
        for i, g in enumerate(self.reduction.group):
            lows.append(self._limit(i, t - low[g], True, bound))
            highs.append(self._limit(i, t + high[g], False, bound))
        return lows, highs

    def _limit(self, i: int, gap: float, own: bool, bound: Fraction) -> int | None:
        exact = self.exact
        if not math.isfinite(gap):
            return None
        for extra in _WIDENINGS:
            reach = math.ceil(math.ldexp(gap * (1.0 + extra), MARGIN_QUANTUM)) << exact.grid
            end = exact.T - reach if own else reach - exact.T
            end = (end >> exact.grid) if own else -((-end) >> exact.grid)  # outward, onto the grid
            distance = exact.T - (end << exact.grid) if own else exact.T + (end << exact.grid)
            if follows(exact, i, distance, own, bound):
                return end
        return None

    def root(self) -> Node:
        """Solve the case that has not been divided."""
        exact, unit = self.exact, 2.0**-MARGIN_QUANTUM
        ends = [[None if v is None else v << exact.grid for v in pair] for pair in zip(self.lows, self.highs)]
        low = np.array([-math.inf if v is None else v * unit for v in self.lows])
        high = np.array([math.inf if v is None else v * unit for v in self.highs])
        regions = [exact.region(i, *pair, 0) for i, pair in enumerate(ends)]
        return self.solve({}, regions, low, high, None)

    def solve(self, sides: dict[int, int], regions: list[Any], low: Array, high: Array, start: Array | None) -> Node:
        """Solve one case with the compiled node solver."""
        work, group = self.work, self.reduction.group
        work.state[:] = FREE
        work.low[group], work.high[group] = low, high
        for i, side in sides.items():
            work.state[group[i]] = IN if side > 0 else OUT
        work.alpha[:] = 0.0 if start is None else start
        bound, _ = solve_node(self.model, work, self.cutoff)
        self.count += 1
        basis: Any = work.basis
        members = basis.members[: basis.size[0]].tolist() if self.model.norm == 2 else []
        return Node(
            bound * self.reduction.unit, self.count, sides, regions, low, high,
            work.alpha.copy(), work.u.copy(), _paid(work.terms, work.u), work.w.copy(), members,
        )  # fmt: skip

    def case(self, node: Node, i: int, side: int) -> Node:
        """Solve the case of a node in which sample i is believed (1) or given up (-1)."""
        regions = list(node.regions)
        regions[i] = narrowed(self.exact, i, regions[i], None, None, side)
        return self.solve(node.sides | {i: side}, regions, node.low, node.high, node.alpha)

    def close(self, node: Node) -> Fraction:
        """Give a case its leaf and return the bound that it proves exactly."""
        regions = node.regions
        for i, region in enumerate(regions):
            if region.is_empty:
                node.record = {"empty": i}
                return Fraction(self.target)
        alpha = self.reduction.multipliers(node.alpha)[:, 0] * self.signs
        found = best_leaf(self.exact, alpha, regions)
        if found is None:
            found = best_leaf(self.exact, 0.0 * alpha, regions)
        assert found is not None  # zero multipliers are always feasible
        node.record = found[1]
        return found[0]

    def divide(self, node: Node) -> bool:
        """Give a node its two cases; False if no sample is left whose envelope is below its loss."""
        best, most = None, -1.0
        for i in self._promising(node):
            cases = self.case(node, i, -1), self.case(node, i, 1)
            rises = [max(min(case.bound, self.target) - node.bound, 1e-9 * self.target) for case in cases]
            if rises[0] * rises[1] > most:
                best, most = (i, cases), rises[0] * rises[1]
            if max(case.bound for case in cases) >= self.target:
                best = (i, cases)
                break
        if best is None:
            return False
        node.split, node.cases = best
        return True

    def tightened(self, node: Node) -> Node:
        """Narrow the limits of a case by its own bound and solve it again, while that pays."""
        for _ in range(_ROUNDS):
            if node.bound >= self.target or not node.members:
                return node
            line = tightening(self, node)
            if line is None:
                return node
            regions, low, high = list(node.regions), node.low.copy(), node.high.copy()
            try:
                changes = tighten(self.exact, Fraction(self.target), line, regions)
            except Rejected:  # rounding: the limits are too tight by a little
                return node
            for (i, region), (_, _, least, most) in zip(changes, line["limits"]):
                regions[i] = region
                low[i] = low[i] if least is None else max(low[i], math.ldexp(least, -MARGIN_QUANTUM))
                high[i] = high[i] if most is None else min(high[i], math.ldexp(most, -MARGIN_QUANTUM))
            again = self.solve(node.sides, regions, low, high, node.alpha)
            again.lines = [*node.lines, line]
            gained, again.bound = again.bound - node.bound, max(again.bound, node.bound)
            node = again
            if gained < 0.05 * (self.target - node.bound):
                return node
        return node

    def _promising(self, node: Node) -> list[int]:
        """Return the samples to try: those with the largest product of guessed rises of the two cases."""
        model, u = self.model, node.margins
        inside = np.maximum(model.breakpoints - np.maximum(u, model.t)[:, None], 0.0) @ model.slopes
        out_rise = np.maximum(model.cost * model.cap - node.paid, 0.0)
        in_rise = np.maximum(model.cost * inside - node.paid, 0.0) + 0.5 * np.maximum(model.t - u, 0.0) ** 2
        loss = np.where(u >= model.t, np.minimum(inside, model.cap), model.cap)
        gap = model.cost * loss - node.paid
        score = np.where(gap > 1e-12 * self.target / self.reduction.unit, out_rise * in_rise, -1.0)
        score = score[self.reduction.group]
        score[list(node.sides)] = -1.0
        order = np.argsort(-score, kind="stable")[:_TRIED]
        return [int(i) for i in order if score[i] >= 0.0]


def _paid(terms: Any, u: Array) -> Array:
    """Return what every sample pays in the relaxation of a case."""
    n = u.size  # the 1-norm has terms of its own after those of the samples
    tau, vert, number = terms.tau[:n], terms.vert[:n], terms.number[:n]
    total = terms.const[:n].copy()
    for k in range(tau.shape[1]):
        length = vert[:, k + 1] - vert[:, k]
        active = (k < number) & (length < np.inf) & (u < tau[:, k])
        total[active] += length[active] * (tau[active, k] - u[active])
    return total


def tree_evidence(statement: Statement, target: float, clock: Clock) -> tuple[Fraction, list[dict]]:
    """Return the proved bound, at most ``target``, and the lines of the tree.

    When the clock stops the search, the smallest bound of an open case is what is proved: limits of margins and leaves
    that hold for a bound hold for every smaller one.
    """
    replay = Replay(statement, target)
    proved = Fraction(target)
    root = replay.tightened(replay.root())
    heap = [root]
    while heap:
        node = heapq.heappop(heap)
        if node.bound >= target or clock.is_over:
            reached = replay.close(node)
            if reached >= proved or clock.is_over:
                proved = min(proved, reached)
                continue
        if not replay.divide(node):
            proved = min(proved, replay.close(node))
            continue
        node.record = None
        assert node.cases is not None
        below, above = (replay.tightened(case) for case in node.cases)
        node.cases = below, above
        heapq.heappush(heap, below)
        heapq.heappush(heap, above)
    limits = [{"low": replay.lows}, {"high": replay.highs}]
    return proved, [*limits, *_preorder(root)]


def _preorder(root: Node) -> Iterator[dict]:
    stack = [root]
    while stack:
        node = stack.pop()
        yield from node.lines
        if node.cases is None:
            assert node.record is not None
            yield node.record
        else:
            yield {"split": node.split}
            stack += [node.cases[1], node.cases[0]]
