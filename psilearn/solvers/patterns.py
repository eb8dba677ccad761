"""Global minimisation by branch and bound over truncation patterns, for any number of classes and any truncated loss.

A pattern z says who pays the cap: z_i = 1 pays it whatever the margin, z_i = 0 demands u_i >= t and pays g(u_i) with
u_i = min_j (f_{y_i} - f_j), so the problem is min over z of convex problems, jumps (psi with a < 2, the hard margin)
included. A node fixes some z_i; the loss of a free sample is replaced by its convex envelope on the margins that remain
possible. These come from the incumbent: a sample whose neighbours of its own class are believed cannot fall far below
them, and not all of them can be disbelieved for the price of the incumbent (the argument is in
:func:`psilearn.kernels.nodes.margin_floor`). Node problems are solved by an interior point method in (k - 1)(d + 1)
variables; their bounds are dual values over a box that contains a global minimiser, valid whether converged or not.

Certifies ``lower_bound`` <= the global optimum, attested by the search tree. Cost: one small convex programme per node,
O(n k p^2) per interior point step; the number of nodes grows with the number of samples worth disbelieving.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..coordinates import Coordinates
from ..problem import Problem
from ..result import Certificate, Claim, Result, Status
from .base import Clock, Options

Array = NDArray[np.float64]
Polish = Callable[[Problem, Array, Array], tuple[Array, Array]]

FREE, BELIEVED, CAPPED = 0, 1, 2
#: Node problems are solved to this fraction of the asked gap.
_NODE_TOLERANCE = 0.02


def refuses(problem: Problem) -> str | None:
    """Say in one sentence why the search over patterns cannot take this problem, None if it can."""
    if problem.loss.varies_by_class:
        return 'solver="patterns" takes one loss for all classes; use solver="dca".'
    if problem.is_kernel:
        return (
            'solver="patterns" works on coefficients, so it takes linear problems only; use solver="dca" for kernels.'
        )
    if problem.tilt is not None:
        return 'solver="patterns" takes problems without a tilt; use a convex solver for tilted ones.'
    if problem.loss.is_convex:
        return 'The loss is convex, so there is nothing for solver="patterns" to decide; use solver="auto".'
    if problem.penalty.l0 > 0 or not math.isfinite(problem.norm_bound(1.0)):
        return 'solver="patterns" needs a penalty without l0 that bounds every coefficient; use solver="mip".'
    if not np.all(np.isfinite(np.asarray(problem.penalty.l1))):
        return 'solver="patterns" takes finite l1 weights only; leave banned features out or use solver="mip".'
    return None


def solve(problem: Problem, options: Options, start: Result | None = None) -> Result:
    """Minimise globally to relative gap ``options.gap_tol``.

    Parameters
    ----------
    problem : Problem
        Linear, truncated loss, continuous or not, two or more classes.
    options : Options
        ``max_iter`` limits the nodes; ``extra["polish"]``: a function (problem, W, b) -> (W, b) that improves an
        incumbent, by default patterns and coefficients are minimised in turn.
    start : Result or None
        A first incumbent.

    Returns
    -------
    Result
        With a global bound; ``n_iter`` counts nodes, ``extra["open"]`` those left.
    """
    message = refuses(problem)
    if message is not None:
        raise ValueError(message)
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


class _Search:
    """State of one run: incumbent and open nodes."""

    def __init__(self, problem: Problem, options: Options, start: Result | None) -> None:
        from ..truncation import Truncation

        self.problem, self.options = problem, options
        self.clock = Clock(options.time_limit)
        self.at = Coordinates.of(problem)
        self.parts = Truncation(self.at)
        self.polish: Polish = options.extra.get("polish", self._alternate)
        self.closed = math.inf  # least bound of the nodes that were closed
        self.frontier = 0.0  # bound of the node being split: no open node has a lower one
        self.value, self.best = math.inf, np.zeros(self.at.p)
        _, b = problem.best_constant()
        self._offer(self.at.pack(np.zeros((problem.n_functions, problem.space.dim)), b))
        self._offer(self.parts.convex_minimum()[1])
        if start is not None:
            self._offer(self.at.pack(start.coef, start.intercept))
        self.data = self.parts.samples()
        self.numbers = itertools.count()
        self.n_nodes = 0
        self.heap: list[_Node] = []

    @property
    def cutoff(self) -> float:
        """Nodes with a bound of at least this are done."""
        return self.value - self.options.gap_tol * max(self.value, float(np.finfo(float).eps))

    def run(self) -> Result:
        """Split the node with the lowest bound until none is below the cutoff."""
        limit = math.inf if self.options.max_iter is None else self.options.max_iter
        status = Status.OPTIMAL
        lower, upper = self.at.box(self.value)
        state = np.full(self.problem.n, FREE, dtype=np.int8)
        self._open(lower, upper, state, np.zeros(self.at.p), np.full(1, -math.inf), 0.0)
        while self.heap and self.heap[0].bound < self.cutoff:
            if self.clock.is_over or self.n_nodes >= limit:
                status = Status.TIME_LIMIT if self.clock.is_over else Status.ITERATION_LIMIT
                break
            self._split(heapq.heappop(self.heap))
        return self._result(status)

    def _split(self, node: _Node) -> None:
        self.frontier = node.bound
        if self.n_nodes % 64 < 2:
            self.clock.note(self.value, min(node.bound, self.value))
        i = int(np.argmax(np.where(node.state == FREE, node.violation, -math.inf)))
        for fate in (BELIEVED, CAPPED):
            state = node.state.copy()
            state[i] = fate
            self._open(node.lower.copy(), node.upper.copy(), state, node.centre.copy(), node.dual.copy(), node.bound)

    def _open(
        self, lower: Array, upper: Array, state: NDArray[np.int8], centre: Array, dual: Array, inherited: float
    ) -> None:
        """Bound a node and keep it if it may hold something better than the incumbent."""
        from ..kernels import nodes

        self.n_nodes += 1
        theta, violation = np.zeros(self.at.p), np.zeros(self.problem.n)
        budget = self.value * (1 + 1e-9)
        tol = _NODE_TOLERANCE * self.options.gap_tol * self.value
        bound = nodes.bound_node(
            self.data, lower, upper, state, budget, self.cutoff, tol, centre, dual, theta, violation
        )
        bound = max(bound, inherited)
        if bound < self.cutoff:
            promising = self.problem.value(*self.at.unpack(theta)) < 1.02 * self.value
            if promising or self.n_nodes < 64 or self.n_nodes % 16 == 0:
                self._offer(theta)
        if bound < self.cutoff and np.any(state == FREE):
            heapq.heappush(self.heap, _Node(bound, next(self.numbers), lower, upper, state, violation, centre, dual))
        else:
            self.closed = min(self.closed, bound)

    def _offer(self, theta: Array) -> None:
        """Take a point, and what polishing makes of it, as incumbent if it is better."""
        W, b = self.at.unpack(theta)
        for coef, intercept in ((W, b), self.polish(self.problem, W, b)):
            value = self.problem.value(coef, intercept)
            if value < self.value:
                self.value, self.best = value, self.at.pack(coef, intercept)
        claimed = min(self.closed, self.frontier)
        if self.value < claimed - 1e-5 * abs(claimed):
            raise ArithmeticError(f"The bound {claimed!r} passed the incumbent {self.value!r}.")

    def _alternate(self, problem: Problem, W: Array, b: Array) -> tuple[Array, Array]:
        return self.at.unpack(self.parts.alternate(self.at.pack(W, b)))

    def _result(self, status: Status) -> Result:
        W, b = self.at.unpack(self.best)
        objective = self.problem.value(W, b)
        still_open = self.heap[0].bound if self.heap else math.inf
        bound = max(min(self.closed, still_open, objective), 0.0)
        self.clock.note(objective, bound)
        certificate = Certificate(Claim.GLOBAL, objective, bound, note="search over truncation patterns")
        if status is Status.OPTIMAL and certificate.gap > self.options.gap_tol * (1 + 1e-6):
            status = Status.STALLED
        extra = {"open": len(self.heap)}
        history = tuple(self.clock.history)
        return Result(W, b, objective, bound, status, certificate, self.n_nodes, history, None, extra)
