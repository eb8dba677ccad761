"""Global minimisation by branch and bound over truncation patterns, for any number of classes and any truncated loss.

A pattern z says who pays the cap: z_i = 1 pays it whatever the margin, z_i = 0 demands u_i >= t and pays g(u_i) with
u_i = min_j (f_{y_i} - f_j), so the problem is min over z of convex problems, jumps (psi with a < 2, the hard margin)
included. A node fixes some z_i; the loss of a free sample is replaced by its convex envelope on the margins that remain
possible. These come from the incumbent: a sample whose neighbours of its own class are believed cannot fall far below
them, and not all of them can be disbelieved for the price of the incumbent (the argument is in
:func:`.relaxation_jit.floor_at_cap`). Node problems are solved by an interior point method in (k - 1)(d + 1)
variables; their bounds are dual values over a box that contains a global minimiser, valid whether converged or not.

Certifies ``lower_bound`` <= the global optimum, attested by the search tree. Cost: one small convex program per node,
O(n k p^2) per interior point step; the number of nodes grows with the number of samples worth disbelieving.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..sample_state_jit import FREE, GONE, IN
from .best_first import BestFirst, declare
from .best_first import Settings as Settings
from .coordinates import BUDGET

Array = NDArray[np.float64]
TAKES = declare("patterns", {"truncated", "truncated elsewhere than 0", "jump", "no hinge"})


@dataclass(frozen=True)
class _Constants:
    """Which minimisers of nodes are polished though they do not promise much.

    Attributes
    ----------
    early, seldom : int
        Of the first ``early`` nodes all minimisers are polished, later one in ``seldom`` whatever it costs.
    """

    early: int = 64
    seldom: int = 16


_C = _Constants()


class _Node(NamedTuple):
    bound: float
    number: int
    lower: Array
    upper: Array
    state: NDArray[np.int8]
    centre: Array
    dual: Array
    violation: Array | None  # None: not bounded yet

    def child(self, number: int, sample: int, fate: int) -> _Node:
        """Return a copy in which the fate of a sample is decided, to be tightened in place."""
        state = self.state.copy()
        state[sample] = fate
        return _Node(
            self.bound, number, self.lower.copy(), self.upper.copy(), state, self.centre.copy(), self.dual.copy(), None
        )


class PatternSearch(BestFirst):
    """A best-first search whose parts are nodes: patterns decided for some samples, and a box.

    ``n_iter`` counts nodes, ``extra["open"]`` those left.
    """

    takes = TAKES
    note = "search over truncation patterns"

    def _first_parts(self) -> list[Any]:
        state = np.full(self.problem.n, FREE, dtype=np.int8)
        box, centre, dual = self.at.box(self.value), np.zeros(self.at.p), np.full(1, -math.inf)
        return [_Node(0.0, next(self.numbers), *box, state, centre, dual, None)]

    def _split(self, part: _Node) -> None:
        if part.violation is None:
            return self._open(part.child(next(self.numbers), 0, FREE))
        sample = int(np.argmax(np.where(part.state == FREE, part.violation, -math.inf)))
        for fate in (IN, GONE):
            self._open(part.child(next(self.numbers), sample, fate))
        return None

    def _open(self, node: _Node) -> None:
        """Bound a node and keep it if it may hold something better than the incumbent."""
        from .patterns_jit import bound_node

        self.n_steps += 1
        theta, violation = np.zeros(self.at.p), np.zeros(self.problem.n)
        bound = bound_node(
            self.parts.samples, node.lower, node.upper, node.state, self.value * BUDGET, self.cutoff, self.tolerance,
            node.centre, node.dual, theta, violation,
        )  # fmt: skip
        node = node._replace(bound=max(bound, node.bound), violation=violation)
        if node.bound < self.cutoff:
            is_promising = self.is_promising(self.problem.value(*self.at.unpack(theta)))
            if is_promising or self.n_steps < _C.early or self.n_steps % _C.seldom == 0:
                self.offer(theta)
        self._keep(node, can_split=bool(np.any(node.state == FREE)))


solve = PatternSearch.solve
