"""Conflicts: sets of samples that no better solution keeps together, for the search by hitting sets.

The convex problem on a set S of samples has a value conv(S), which grows with S; S is a conflict if conv(S) is at least
a cutoff. All are proved by dual feasible points.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ....core.solving import Clock
from ..node.envelope_jit import FREE, GONE, IN
from ..tree import tree_jit as tree
from ..tree.search import make_work
from ..violations.lifted_jit import make_spot
from ..violations.search import make_lifted, suits
from .separation_jit import light_conflicts

Array = NDArray[np.float64]
Members = NDArray[np.intp]

#: Roundings of a fractional solution that are searched for conflicts.
_LEVELS = (0.999, 0.5, 0.1)
#: Solutions of the lifted problem per try, what is added to all weights, and to those of samples already in a conflict.
_ROUNDS, _FLOOR, _USED = 3, 0.05, 0.3
#: A conflict is worth adding if it is violated by this much.
VIOLATED = 1e-4


class Conflicts:
    """Finds minimal conflicts of one model."""

    def __init__(self, model: tree.Model, best: tree.Best, scratch: tree.Work, random_state: int = 0) -> None:
        self.model, self.best, self.scratch = model, best, scratch
        self.work, self.rng = make_work(model), np.random.default_rng(random_state)
        self.are_weighed = suits(model)  # whether light conflicts can be asked for
        n, d = model.a.shape
        if self.are_weighed:
            self.lifted, self.spot = make_lifted(model, np.ones(n), 1.0), make_spot(n + 1, d + 2)
            self.found = np.zeros((_ROUNDS, d + 2), np.int64), np.zeros(_ROUNDS, np.int64)

    def value(self, state: NDArray[np.int8], cutoff: float) -> float:
        """Dual bound on conv of the samples that are IN, at least the cutoff if it reaches it."""
        model, work = self.model, self.work
        work.state[:] = np.where(model.given == FREE, state, model.given)
        left_out = model.cap * float(model.cost[work.state == GONE].sum())
        value, _ = tree.solve_node(model, work, cutoff + left_out)
        return value - left_out

    def support(self) -> Members:
        """Samples that prove the last value."""
        return np.flatnonzero((self.work.alpha > 0.0) & (self.work.state == IN) & (self.model.given == FREE))

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
            work = self.work
            if value < cutoff:
                self.scratch.alpha[:] = work.alpha
                tree.local_search(self.model, self.best, self.scratch, work.u)
                break
            members = self.support()
            if members.size == 0:
                break
            conflict = self.minimal(members[np.argsort(work.alpha[members], kind="stable")], cutoff, clock)
            found.append(conflict)
            state[conflict] = GONE
        return found

    def violated(self, z: Array, cutoff: float, tries: int, clock: Clock) -> list[Members]:
        """Conflicts S with sum_{i in S} z_i < 1, the more the more ``tries``."""
        if self.are_weighed:
            found = self._light(z, cutoff, tries, clock)
        else:
            found = [conflict for level in _LEVELS for conflict in self.disjoint(z > level, cutoff, clock)]
        return [conflict for conflict in found if z[conflict].sum() < 1.0 - VIOLATED]

    def _light(self, z: Array, cutoff: float, tries: int, clock: Clock) -> list[Members]:
        """Conflicts of small weight z, each made minimal by deleting the heaviest members first."""
        free = self.model.given == FREE
        (members, sizes), n = self.found, z.size
        lifted = self.lifted._replace(price=self.lifted.price * cutoff)
        used, alpha, w = np.zeros(n), np.zeros(n), np.zeros(self.model.a.shape[1])
        found: dict[tuple[int, ...], Members] = {}
        for _ in range(tries):
            if clock.is_over:
                break
            weight = np.where(free, np.clip(z, 0.0, 1.0) + used, 0.0) + _FLOOR * (1.0 + self.rng.random(n))
            light_conflicts(lifted, self.spot, weight, cutoff, alpha, w, members, sizes)
            for row, size in zip(members, sizes):
                conflict = row[:size][free[row[:size]]]
                if conflict.size == 0 or z[conflict].sum() >= 1.0 - VIOLATED:
                    continue
                conflict = self.minimal(conflict[np.argsort(-z[conflict], kind="stable")], cutoff, clock)
                found[tuple(conflict)] = conflict
                used[conflict] += _USED
        return list(found.values())
