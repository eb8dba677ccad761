"""Conflicts: sets of samples that no better solution keeps together, for the search by hitting sets.

The convex problem on a set S of samples has a value conv(S), which grows with S; S is a conflict if conv(S) is at least
a cutoff. All are proved by dual feasible points.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ....core.solving import Clock
from ...sample_state_jit import FREE, GONE, IN
from ..incumbent_jit import Best, alternate_from
from ..model import make_workspace
from ..node.node_jit import Model, NodeWorkspace, solve_node
from ..violations.lifted_jit import make_iterate
from ..violations.search import make_lifted, suits_violations
from .constants import CONSTANTS
from .separation_jit import light_conflicts

Array = NDArray[np.float64]
Members = NDArray[np.intp]


class Conflicts:
    """Finds minimal conflicts of one model."""

    def __init__(self, model: Model, best: Best, scratch: NodeWorkspace, random_state: int = 0) -> None:
        self.model, self.best, self.scratch = model, best, scratch
        self.node, self.rng = make_workspace(model), np.random.default_rng(random_state)
        self.are_weighed = suits_violations(model)  # whether light conflicts can be asked for
        n, d = model.a.shape
        if self.are_weighed:
            self.lifted, self.iterate = make_lifted(model, np.ones(n), 1.0), make_iterate(n + 1, d + 2)
            self.found = (
                np.zeros((CONSTANTS.lifted_rounds, d + 2), np.int64),
                np.zeros(CONSTANTS.lifted_rounds, np.int64),
            )

    def value(self, state: NDArray[np.int8], cutoff: float) -> float:
        """Dual bound on conv of the samples that are IN (the others are GONE), not raised beyond the cutoff."""
        model, node = self.model, self.node
        node.state[:] = np.where(model.given == FREE, state, model.given)
        left_out = model.cap * float(model.cost[node.state == GONE].sum())
        value, _ = solve_node(model, node, cutoff + left_out)
        return value - left_out

    def support(self) -> Members:
        """Samples that prove the last value."""
        return np.flatnonzero((self.node.alpha > 0.0) & (self.node.state == IN) & (self.model.given == FREE))

    def minimal(self, members: Members, cutoff: float, clock: Clock) -> Members:
        """Delete members, the first ones first, while the rest is still a conflict."""
        current = set(members.tolist())
        for i in members.tolist():
            if i not in current or len(current) == 1:
                continue
            if clock.is_over:
                break
            state = np.full(self.model.y.size, GONE, np.int8)
            state[list(current - {i})] = IN
            if self.value(state, cutoff) >= cutoff:
                smaller = self.support()
                current = set(smaller.tolist()) if smaller.size else current - {i}
        return np.array(sorted(current), dtype=np.intp)

    def disjoint(self, out: NDArray[np.bool_], cutoff: float, clock: Clock) -> list[Members]:
        """Disjoint minimal conflicts among the samples not left out, until the rest is none; it may be an incumbent."""
        found: list[Members] = []
        state = np.where(out, GONE, IN).astype(np.int8)
        while not clock.is_over:
            value = self.value(state, cutoff)
            node = self.node
            if value < cutoff:
                self.scratch.alpha[:] = node.alpha
                alternate_from(self.model, self.best, self.scratch, node.u)
                break
            members = self.support()
            if members.size == 0:
                break
            conflict = self.minimal(members[np.argsort(node.alpha[members], kind="stable")], cutoff, clock)
            found.append(conflict)
            state[conflict] = GONE
        return found

    def violated(self, z: Array, cutoff: float, tries: int, clock: Clock) -> list[Members]:
        """Conflicts S with sum_{i in S} z_i < 1, the more the more ``tries``."""
        if self.are_weighed:
            found = self._light(z, cutoff, tries, clock)
        else:
            found = [conflict for level in CONSTANTS.levels for conflict in self.disjoint(z > level, cutoff, clock)]
        return [conflict for conflict in found if z[conflict].sum() < 1.0 - CONSTANTS.violated]

    def _light(self, z: Array, cutoff: float, tries: int, clock: Clock) -> list[Members]:
        """Conflicts of small weight z, each made minimal by deleting the heaviest members first."""
        free = self.model.given == FREE
        (members, sizes), n = self.found, z.size
        lifted = self.lifted._replace(elastic_cost=self.lifted.elastic_cost * cutoff)
        used, alpha, w = np.zeros(n), np.zeros(n), np.zeros(self.model.a.shape[1])
        found: dict[tuple[int, ...], Members] = {}
        for _ in range(tries):
            if clock.is_over:
                break
            weight = np.where(free, np.clip(z, 0.0, 1.0) + used, 0.0) + CONSTANTS.base_weight * (
                1.0 + self.rng.random(n)
            )
            light_conflicts(lifted, self.iterate, weight, cutoff, alpha, w, members, sizes)
            for row, size in zip(members, sizes):
                conflict = row[:size][free[row[:size]]]
                if conflict.size == 0 or z[conflict].sum() >= 1.0 - CONSTANTS.violated:
                    continue
                conflict = self.minimal(conflict[np.argsort(-z[conflict], kind="stable")], cutoff, clock)
                found[tuple(conflict)] = conflict
                used[conflict] += CONSTANTS.used_weight
        return list(found.values())
