"""Global minimisation by branch and bound over truncation patterns, for any number of classes and any truncated loss.

A pattern z says who pays the cap: z_i = 1 pays it whatever the margin, z_i = 0 demands u_i >= t and pays g(u_i) with
u_i = min_j (f_{y_i} - f_j), so the problem is min over z of convex problems, jumps (psi with a < 2, the hard margin)
included. A node fixes some z_i; the loss of a free sample is replaced by its convex envelope on the margins that remain
possible. These come from the incumbent: a sample whose neighbours of its own class are believed cannot fall far below
them, and not all of them can be disbelieved for the price of the incumbent (the argument is in
:func:`.patterns_jit.margin_floor`). Node problems are solved by an interior point method in (k - 1)(d + 1)
variables; their bounds are dual values over a box that contains a global minimiser, valid whether converged or not.

Certifies ``lower_bound`` <= the global optimum, attested by the search tree. Cost: one small convex programme per node,
O(n k p^2) per interior point step; the number of nodes grows with the number of samples worth disbelieving.
"""

from __future__ import annotations

import heapq
import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...core.capabilities import ANY_CLASSES, ANY_LINEAR, Takes
from ...core.problem import Problem
from ...core.result import Result
from ...core.solving import Options
from .best_first import BestFirst
from .best_first import Settings as Settings

Array = NDArray[np.float64]

FREE, BELIEVED, CAPPED = 0, 1, 2
#: Node problems are solved to this fraction of the asked gap.
_NODE_TOLERANCE = 0.02


TAKES = Takes(
    "patterns",
    losses=frozenset({"truncated", "truncated elsewhere than 0", "jump", "no hinge"}),
    spaces=ANY_LINEAR,
    classes=ANY_CLASSES,
    penalties=frozenset({"l2", "l1", "l1 weights", "elastic net", "zero l1 weights"}),
)


def solve(problem: Problem, options: Options, start: Result | None = None) -> Result:
    """Minimise globally to relative gap ``options.gap_tol``.

    Parameters
    ----------
    problem : Problem
        Linear, truncated loss, continuous or not, two or more classes.
    options : Options
        ``max_iter`` limits the nodes; see also :class:`.best_first.Settings`.
    start : Result or None
        A first incumbent.

    Returns
    -------
    Result
        With a global bound; ``n_iter`` counts nodes, ``extra["open"]`` those left.
    """
    TAKES.check(problem)
    return _Search(problem, options, start).run()


class _Node(NamedTuple):
    bound: float
    number: int
    lower: Array
    upper: Array
    state: NDArray[np.int8]
    violation: Array
    centre: Array
    dual: Array


class _Search(BestFirst):
    """A best-first search whose parts are nodes: patterns decided for some samples, and a box."""

    note = "search over truncation patterns"

    def __init__(self, problem: Problem, options: Options, start: Result | None) -> None:
        super().__init__(problem, options, start)
        self.data = self.parts.samples()

    def _begin(self) -> None:
        lower, upper = self.at.box(self.value)
        state = np.full(self.problem.n, FREE, dtype=np.int8)
        self._open(lower, upper, state, np.zeros(self.at.p), np.full(1, -math.inf), 0.0)

    def _split(self, part: _Node) -> None:
        i = int(np.argmax(np.where(part.state == FREE, part.violation, -math.inf)))
        for fate in (BELIEVED, CAPPED):
            state = part.state.copy()
            state[i] = fate
            self._open(part.lower.copy(), part.upper.copy(), state, part.centre.copy(), part.dual.copy(), part.bound)

    def _open(
        self, lower: Array, upper: Array, state: NDArray[np.int8], centre: Array, dual: Array, inherited: float
    ) -> None:
        """Bound a node and keep it if it may hold something better than the incumbent."""
        from . import patterns_jit as nodes

        self.n_opened += 1
        theta, violation = np.zeros(self.at.p), np.zeros(self.problem.n)
        budget = self.value * (1 + 1e-9)
        tol = _NODE_TOLERANCE * self.options.gap_tol * self.value
        bound = nodes.bound_node(
            self.data, lower, upper, state, budget, self.cutoff, tol, centre, dual, theta, violation
        )
        bound = max(bound, inherited)
        if bound < self.cutoff:
            promising = self.problem.value(*self.at.unpack(theta)) < 1.02 * self.value
            if promising or self.n_opened < 64 or self.n_opened % 16 == 0:
                self._offer(theta)
        if bound < self.cutoff and np.any(state == FREE):
            heapq.heappush(self.heap, _Node(bound, next(self.numbers), lower, upper, state, violation, centre, dual))
        else:
            self.closed = min(self.closed, bound)
