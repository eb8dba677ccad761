"""The branch and bound by many hands: parcels of open nodes are searched elsewhere, and the tree is kept here.

The smallest bounds are handed out first. A parcel that comes back brings its open nodes, which join the others, its
incumbent, and the least bound of what it has discarded. The bound of the search is the least of the open nodes here, of
the parcels that are away (each as when it left), and of what was discarded: one certificate for all the work.
A worker that dies takes nothing along, for its parcel is made again from the same nodes.

What is found depends on who is faster, so only optimum and bound can be repeated, not the tree. With a limit on nodes
the search is the serial one.
"""

from __future__ import annotations

import itertools
import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from ....core.solving import Options
from ...search import Budget
from ..incumbent_jit import Best
from ..node.node_jit import Model, NodeWorkspace
from ..slots_jit import grown
from .branching_jit import REACH
from .crews import Crew
from .parcels import Explored, Parcel, copy_of, exchange, explore, join_record, learn, pack, tighten_part
from .parcels_jit import move_nodes
from .search import TreeSearch

#: Open nodes of a parcel at most, and the shortest time it is searched as a part of the usual one (while few are open).
LARGEST, LEAST_SHARE = 64, 0.25
#: Seconds between two looks at the clock while all hands are busy.
PATIENCE = 1.0
#: Seconds by which a parcel may be late; then its nodes are opened again here. Workers may all be gone.
GRACE = 2.0
#: Samples from which the tightening of the root is shared.
LEAST_SHARED = 100


class ParallelTree(TreeSearch):
    """The tree with a crew. It has an incumbent of its own, exchanged with the shared one before and after each run."""

    def __init__(self, model: Model, best: Best, scratch: NodeWorkspace, options: Options, crew: Crew) -> None:
        super().__init__(model, copy_of(best), scratch, options)
        self.shared, self.crew = best, crew
        self.away: dict[Any, tuple[float, Parcel]] = {}
        self._model: Any = None

    @property
    def bound(self) -> float:
        """Proved lower bound (scaled)."""
        return float(max(self.proved, min(super().bound, *(bound for bound, _ in self.away.values()), math.inf)))

    @property
    def done(self) -> bool:
        """Whether nothing is left to search, here or elsewhere."""
        return not self.away and bool(self.pool.sizes[0] == 0)

    def run(self, budget: Budget) -> None:
        """Search until done, or until the budget is spent; alone until the root is tightened."""
        exchange(self.best, self.shared)
        if math.isfinite(budget.work):
            super().run(budget)
        else:
            while not self.is_wide and not self.done and not budget.is_over:
                super().run(Budget(64, budget.clock, budget.until))
            self._share_out(budget, self.crew.width, threading.Event())
        exchange(self.best, self.shared)

    @property
    def is_wide(self) -> bool:
        """Whether there is work for more than one: many open nodes below a tightened root."""
        return math.isfinite(self.tightened_at) and bool(self.pool.sizes[0] > 2 * self.crew.width)

    @contextmanager
    def beside(self, budget: Budget) -> Iterator[None]:
        """Go on, with one hand less, while the caller does something else that ends by itself."""
        if not self.is_wide or self.crew.width < 2 or self.done:
            yield
            return
        exchange(self.best, self.shared)
        stop, errors = threading.Event(), []

        def drive() -> None:
            try:
                self._share_out(Budget(clock=budget.clock), self.crew.width - 1, stop)
            except Exception as error:
                errors.append(error)

        driver = threading.Thread(target=drive, name="psilearn-tree")
        driver.start()
        try:
            yield
        finally:
            stop.set()
            driver.join()
        if errors:
            raise errors[0]
        exchange(self.best, self.shared)

    def _tighten_all(self, upper: float, bound: float) -> None:
        """Tighten every free sample of the node at hand once, each hand some of them."""
        n, node, reach = self.model.y.size, self.node, self.history[REACH]
        if n < LEAST_SHARED or self.away:  # all hands are busy
            super()._tighten_all(upper, bound)
            return
        ends = np.linspace(0, n, self.crew.width + 1).astype(int).tolist()
        parts = [
            (self.crew.submit(tighten_part, self._shared_model(), node, reach, upper, bound, a, b), slice(a, b))
            for a, b in itertools.pairwise(ends)
        ]
        left = [future for future, _ in parts]
        while left:
            done = self.crew.finished(left, PATIENCE)
            left = [future for future in left if future not in done]
        for future, rows in parts:
            node.low[rows], node.state[rows], reach[rows] = self.crew.result(future)

    def _shared_model(self) -> Any:
        """Return the model, or what stands for it where the crew works."""
        if self._model is None:
            self._model = self.crew.share(self.model)
        return self._model

    def _share_out(self, budget: Budget, width: int, stop: threading.Event) -> None:
        """Hand out parcels until done, stopped, or over time; in the end all nodes are here again."""
        try:
            while not self.done and not budget.is_over and not stop.is_set():
                if self.may_tighten:
                    self.tighten_root(budget)
                while len(self.away) <= width and self.pool.sizes[0]:
                    self._hand_out(width, budget)
                for future in self.crew.finished(self.away, PATIENCE):
                    self._take_back(future)
            late = budget.clock.seconds + self.crew.seconds + GRACE
            while self.away and budget.clock.seconds < late:
                for future in self.crew.finished(self.away, PATIENCE):
                    self._take_back(future)
        finally:
            self._recall()

    def _hand_out(self, width: int, budget: Budget) -> None:
        open_nodes = int(self.pool.sizes[0])
        is_full = open_nodes > self.most_slots  # then depth first, whatever the bounds
        most = 1 if is_full else min(LARGEST, -(-open_nodes // (4 * width)))
        bound = float(self.pool.bound[self.pool.heap[0]])
        parcel = pack(self.pool, most, self.best, self.history, is_full)
        seconds = self.crew.seconds * (1.0 if open_nodes > LARGEST else LEAST_SHARE)
        seconds = min(seconds, max(budget.until - budget.clock.seconds, 0.01))
        future = self.crew.submit(explore, self._shared_model(), parcel, self.options.gap_tol, seconds, not is_full)
        self.away[future] = bound, parcel

    def _take_back(self, future: Any) -> None:
        found: Explored = self.crew.result(future)
        _, parcel = self.away[future]
        self.record, number = join_record(self.record, found.record, parcel.origin)
        slots = found.nodes.heap[: found.nodes.sizes[0]]
        found.nodes.number[slots] = number[found.nodes.number[slots]]
        self._put(found.nodes)
        self.floor[0] = min(self.floor[0], found.floor)
        self.counters += found.counters
        learn(self.history, parcel.history, found.history)
        exchange(self.best, found.best)
        del self.away[future]

    def _put(self, nodes: Any) -> None:
        """Open nodes here, with the margins that are known by now."""
        slots = nodes.heap[: nodes.sizes[0]]
        nodes.low[slots] = nodes.low[slots].clip(min=self.low)
        nodes.high[slots] = nodes.high[slots].clip(max=self.high)
        while self.pool.sizes[1] < nodes.sizes[0]:
            self.pool = grown(self.pool)
        move_nodes(nodes, self.pool, nodes.bound.size, False)

    def _recall(self) -> None:
        """Open the nodes of all parcels that are away again, as they were; what was found in them is forgotten."""
        for future in list(self.away):
            future.cancel()
            _, parcel = self.away.pop(future)
            parcel.nodes.number[parcel.nodes.heap[: parcel.origin.size]] = parcel.origin
            self._put(parcel.nodes)
