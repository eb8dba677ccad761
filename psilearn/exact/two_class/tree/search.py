"""Branch and bound over samples that are believed or left out: any truncated loss in normal form, l2 or l1 penalty.

    minimise  P(w) + sum_i cost_i l(y_i f(x_i)),     P(w) = 1/2 ||w||^2  or  ||w||_1

(Liu and Wu, Optimizing psi-learning via mixed integer programming, 2006, (3.6) and (3.14).) Nodes, envelopes and
bounds are those of :mod:`.tree_jit`; this file makes the root, tightens its margins, and runs the search in slices. The
bound is certified: it is the least value of a dual feasible point over all open and discarded nodes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ....core.result import InconsistentBoundError
from ....core.solving import Options
from ...search import Budget
from ..incumbent_jit import ROUNDING, Best
from ..model import make_workspace, margin_bounds
from ..node.ascent_jit import SOLVED
from ..node.node_jit import Model, NodeWorkspace, solve_node
from ..settings import Settings
from ..slots_jit import grown, push
from .branching_jit import REACH, make_history
from .parcels import CHUNK_SECONDS, ROUNDS, make_pool
from .record_jit import make_record, with_room
from .tightening_jit import tighten_all
from .tree_jit import COUNTERS, FALSE_PROOFS, NODES, advance

Array = NDArray[np.float64]


@dataclass(frozen=True)
class TreeConstants:
    """Constants of the tree search.

    Attributes
    ----------
    chunk_nodes : int
        Nodes of a chunk where the number of nodes ends it: fixed, so that the outcome can be repeated.
    root_rounds : int
        Rounds of tightening at the root, at most.
    least_gain : float
        Part of the distances between t and the lower ends of all margins that a round at the root must gain for
        another one.
    tighten_after : float
        Nodes per sample before the root is tightened to its fixpoint: easy problems are done before that.
    tighten_again : float
        Part of the incumbent value at the last tightening below which another one pays.
    """

    chunk_nodes: int = 64
    root_rounds: int = 30
    least_gain: float = 0.02
    tighten_after: float = 2.0
    tighten_again: float = 0.98


CONSTANTS = TreeConstants()


class TreeSearch:
    """The branch and bound; its memory is limited by the settings. Work is counted in nodes, trials included.

    ``bounds`` on the margins restrict the solutions that count; by default they follow from the incumbent's value.
    """

    is_stuck = is_outdated = False

    def __init__(
        self,
        model: Model,
        best: Best,
        scratch: NodeWorkspace,
        options: Options,
        bounds: tuple[Array, Array] | None = None,
    ) -> None:
        self.model, self.best, self.scratch, self.options, self.given_bounds = model, best, scratch, options, bounds
        n = model.y.size
        self.low, self.high = self._margin_bounds()
        self._open_root()
        self.node, self.trial, self.counters = (
            make_workspace(model),
            make_workspace(model),
            np.zeros(COUNTERS, np.int64),
        )
        self.history, self.floor = make_history(model.dist), np.full(1, math.inf)
        self.tightened_at, self.proved = math.inf, 0.0
        self.most_slots = max(4 * n, int(options.of(Settings).memory / (25 * n + 32)))
        self.chunk = 1

    def _margin_bounds(self) -> tuple[Array, Array]:
        """Return bounds on the margins of solutions that count: those given, or of all better than the incumbent."""
        if self.given_bounds is not None:
            low, high = self.given_bounds
            return low.copy(), high.copy()
        return margin_bounds(self.model, float(self.best.value[0]) * (1.0 + ROUNDING))

    def _open_root(self) -> None:
        """Begin the tree with nothing but its root."""
        pool = make_pool(64, self.model.y.size)
        slot = push.py_func(pool, 0.0)  # once, which is not worth a compilation
        pool.state[slot], pool.intercept[slot] = self.model.given, self.best.b[0]
        pool.low[slot], pool.high[slot] = self.low, self.high
        self.record = make_record()
        self.pool = pool  # complete: an interrupt must never find a tree without its root

    @property
    def bound(self) -> float:
        """Proved lower bound (scaled)."""
        open_bound = self.pool.bound[self.pool.heap[0]] if self.pool.sizes[0] else math.inf
        return float(max(self.proved, min(open_bound, self.floor[0], self.best.value[0])))

    @property
    def done(self) -> bool:
        """Whether nothing is left to search."""
        return bool(self.pool.sizes[0] == 0)

    @property
    def work(self) -> int:
        """Nodes so far, trials included."""
        return int(self.counters[NODES])

    @property
    def may_tighten(self) -> bool:
        """Whether the incumbent is so much better than at the last tightening that another one pays."""
        return bool(self.best.value[0] < CONSTANTS.tighten_again * self.tightened_at)

    def run(self, budget: Budget) -> None:
        """Search until done, or until the budget is spent."""
        n, clock, end = self.model.y.size, budget.clock, self.work + budget.work
        while not self.done and not budget.is_over and self.work < end:
            if self.pool.sizes[1] < n + 64 and self.pool.bound.size < self.most_slots:
                self.pool = grown(self.pool)
            if self.work >= CONSTANTS.tighten_after * n and self.may_tighten:
                self.tighten_root(budget)
            began = clock.seconds
            # Chunks fitted to the clock cost nothing when time ends the search; under a limit on nodes they would make
            # the outcome depend on how busy the computer is.
            chunk = self.chunk if math.isinf(end) else int(min(CONSTANTS.chunk_nodes, end - self.work))
            self.record = with_room(self.record, 2 * (chunk + 64))
            advance(
                self.model, self.node, self.pool, self.best, self.scratch, self.history, self.floor, self.counters,
                self.record, self.options.gap_tol, chunk, ROUNDS,
            )  # fmt: skip
            if self.counters[FALSE_PROOFS]:
                raise InconsistentBoundError("a node's bound exceeds an incumbent inside it")
            took = max(clock.seconds - began, 1e-6)
            self.chunk = int(min(max(1, self.chunk * min(4.0, CHUNK_SECONDS / took)), 100_000))

    def tighten_root(self, budget: Budget) -> None:
        """Tighten the margins at the root, 2-norm also by bounds of its relaxation, and hand them to all open nodes."""
        model, best = self.model, self.best
        is_first, self.tightened_at = math.isinf(self.tightened_at), float(best.value[0])
        upper = self.tightened_at * (1.0 + ROUNDING)
        low, high = self._margin_bounds()
        self.low, self.high = np.maximum(self.low, low), np.minimum(self.high, high)
        if model.norm == 2:
            self._tighten_lows(upper, budget)
        if is_first:  # better decisions from the root on are worth more than the few nodes so far
            self.proved = self.bound
            self._open_root()
        slots = self.pool.heap[: self.pool.sizes[0]]
        self.pool.low[slots] = np.maximum(self.pool.low[slots], self.low)
        self.pool.high[slots] = np.minimum(self.pool.high[slots], self.high)

    def _tighten_lows(self, upper: float, budget: Budget) -> None:
        """Tighten the lower ends at the root to their fixpoint."""
        model, node = self.model, self.node
        for _ in range(CONSTANTS.root_rounds):
            node.state[:], node.low[:], node.high[:], node.alpha[:] = model.given, self.low, self.high, 0.0
            bound, flag = solve_node(model, node, upper)
            if flag != SOLVED or bound >= upper or budget.is_over:
                break
            self._tighten_all(upper, bound)
            gain = float(np.sum(node.low - self.low))
            self.low = node.low.copy()
            if gain < CONSTANTS.least_gain * float(np.sum(np.maximum(model.t - self.low, 0.0))):
                break

    def _tighten_all(self, upper: float, bound: float) -> None:
        """Tighten every free sample of the node at hand once."""
        tighten_all(self.model, self.node, self.trial, self.history[REACH], upper, bound, 0, self.model.y.size)
