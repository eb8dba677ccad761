"""Search over the sets of violated samples: a third exact search, for losses that are zero from t on and cap below.

    minimise  1/2 ||w||^2 + sum_i price_i [u_i < t],      u_i = y_i (<x_i, w> + b)

For a set S of samples let conv(S) be the least penalty with margins >= t on S, and f(S) <= conv(S) the value of the
lifted problem of :mod:`.lifted_jit`, with M so large that f(S) = conv(S) wherever conv(S) is below the
incumbent value UB. (If s > 0 at the optimum, its multipliers have sum_i v_i alpha_i = M, and the dual value is at least
t/2 sum_i alpha_i >= t M / (2 max v) >= UB. If conv(S) < UB, the hard margin's multipliers sum to 2 conv(S) / t and obey
sum_i v_i alpha_i <= M, so s = 0 is optimal.) The point x(S) that attains f(S) is unique unless a class is missing, and
f grows with S. Let R* be the violated set of an optimum better than UB, N all samples.

*Exclusive search.* Let T be a set with conv(T) >= UB - cost(R), for instance the tight samples at x(N \\ R). A better
solution that leaves out R leaves out a member of T, h_1 or h_2 or ...; child j leaves out h_j and keeps h_1, ...,
h_{j-1}. The children cover everything and do not overlap. (A set with conv(T) >= UB - cost(R) - the least price is as
good: R itself has been offered as incumbent, and every larger set pays one price more.) R* holds R, and margins are
below t on R*. So the rows of R stay, reversed: conv is the least penalty with margins >= t on a set and <= t on R, and
sets conflict the sooner the more is left out. (On bupa, n = 192 and d = 6, at C = 1e4 the bound after 15 s is 0.82 of
the incumbent value, without this 0.75.) Between opposite rows M may be too small for s = 0. If the dual value of the
tight samples does not reach UB - cost(R) for that reason, the state goes on with R absent.

*Proper search* (Matousek, On geometric optimization with few violated constraints, 1995). Call R proper if no member
of R is strictly satisfied at x(N \\ R). R* is proper: dropping a satisfied member would save its price. If R is proper
and not empty, some R' = R \\ {h} is proper and h is tight at x(N \\ R'). To see this, let the right-hand sides be
perturbed by infinitesimal generic numbers, so that no sample is tight by accident, and choose h in R such that the
value f((N \\ R) + h) is smallest. It exceeds f(N \\ R), since h is violated at the unique x(N \\ R). Suppose h' in R'
were satisfied at x' = x((N \\ R) + h). Then x' is feasible for (N \\ R) + h', so f((N \\ R) + h') is not larger, hence
equal; as x' attains it and h' is not tight there, f(N \\ R) is the same, a contradiction. And h belongs to every basis
of N \\ R', because leaving it out lowers f. So R* is reached from the empty set through proper states by leaving out
tight samples. Without the perturbation, violated becomes not strictly satisfied and the members of a basis become
tight samples, which is what the search tests, both with a tolerance on the safe side. States are remembered by their
sets, and the proper ones with k members are at most (k + d + 1 over k), whatever n. It visits fewer states than the
exclusive search in the plane and more in higher dimensions, where keeping samples makes better packings.

Both searches use the bounds of :mod:`.packing_jit`. What the search leaves behind has a bound of its own,
from dual feasible points; the smallest of these is the ``floor`` of everything it claims.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ....core.result import InconsistentBoundError
from ....core.solving import Options
from ...search import Budget
from ..incumbent_jit import Best
from ..node.node_jit import Model
from ..settings import Settings
from ..slots_jit import empty_heap, grown
from . import search_jit as kernel
from .lifted_jit import Lifted, make_iterate
from .packing_jit import make_packing
from .sets_jit import Seen, rehash
from .states_jit import States, StateWorkspace

Array = NDArray[np.float64]


@dataclass(frozen=True)
class ViolationConstants:
    """Constants of the search over violated sets.

    Attributes
    ----------
    chunk_seconds : float
        Time between two readings of the clock.
    most_sets : int
        Sets of a packing at most: labels are bytes, and bounds take time quadratic in the number of sets.
    proper_up_to : int
        Features up to which states are remembered rather than exclusive.
    known_elasticity : float
        Weight of the elastic variable for samples whose fate is known, relative to the others. With little of it they
        carry most of a conflict, and few others are in it. Tuned on bupa at C = 1e4: after 9 s the bound is 0.85 of the
        incumbent value, with 1 instead of 0.01 it is 0.77.
    patience : int
        Packings tried at the root without success before the best is taken.
    root_share : float
        Part of the time of the first run that packings at the root may take.
    """

    chunk_seconds: float = 0.05
    most_sets: int = 96
    proper_up_to: int = 2
    known_elasticity: float = 0.01
    patience: int = 40
    root_share: float = 0.1


CONSTANTS = ViolationConstants()


def suits_violations(model: Model) -> bool:
    """Whether this search takes the problem: 2-norm, loss zero from t > 0 on, cap below."""
    flat = model.breakpoints.size == 0 or float(model.breakpoints.max()) <= model.t
    return model.norm == 2 and flat and model.t > 0.0 and bool(np.isfinite(model.cap)) and np.unique(model.y).size == 2


def make_lifted(model: Model, v: Array, ceiling: float) -> Lifted:
    """State the lifted problem with weights ``v`` > 0 of the elastic variable, exact for values below the ceiling."""
    n, d = model.a.shape
    rows = np.zeros((n + 1, d + 2))
    rows[:n, :d], rows[:n, d], rows[:n, d + 1] = model.a, model.y, v
    rows[n, d + 1] = 1.0
    right, cost = np.append(np.full(n, model.t), 0.0), float(2.1 * v.max() / model.t * ceiling)
    return Lifted(rows, np.ascontiguousarray(rows.T), right, cost, CONSTANTS.known_elasticity)


def _make_seen(size: int, words: int) -> Seen:
    bits = np.zeros((size, words), np.uint64)
    return Seen(np.zeros(2 * size, np.int64), np.zeros(size, np.uint64), bits, np.zeros(1, np.int64))


def _make_states(slots: int, n: int, width: int, words: int, sets: int) -> States:
    point = np.zeros((slots, width), np.int32), np.zeros(slots, np.int64)
    bits = np.zeros((slots, words), np.uint64), np.zeros((slots, words), np.uint64)
    label, values = np.zeros((slots, n), np.uint8), np.zeros((slots, sets), np.float32)
    return States(*empty_heap(slots), np.zeros(slots), *point, *bits, label, values, np.zeros(slots, np.int64))


class ViolationSearch:
    """The search over violated sets. Work is counted in states."""

    def __init__(self, model: Model, best: Best, options: Options) -> None:
        self.model, self.best, self.options = model, best, options
        n, d = model.a.shape
        width, words, sets = d + 2, (n + 63) // 64, min(CONSTANTS.most_sets, n)
        settings = options.of(Settings)
        self.exclusive = d > CONSTANTS.proper_up_to if settings.exclusive is None else settings.exclusive
        self.n, self.price = n, model.cost * model.cap
        self.rng = np.random.default_rng(options.random_state)
        self.keys = self.rng.integers(0, 2**64, n, dtype=np.uint64)
        self.counters = np.zeros(kernel.COUNTERS, np.int64)
        self.iterates = [make_iterate(n + 1, width) for _ in range(3)]
        self.packing = make_packing(n, d, sets)
        vectors = np.zeros(n, np.int64), np.zeros(n), np.zeros(n)
        members = np.zeros((n, width), np.int64), np.zeros(n, np.int64)
        self.workspace = StateWorkspace(np.zeros(words, np.uint64), *vectors, *members, np.zeros(d), np.zeros(n))
        self.sizes = n, width, words, sets
        slot_bytes = n + 4 * sets + 4 * width + 16 * words + 64
        self.most_slots = max(4 * n, int(settings.memory / slot_bytes))
        self.highest, self.chunk = 0.0, 64
        self._begin()
        self.lifted = self._reference(np.zeros(n))

    def _begin(self) -> None:
        """Forget all states; the bounds that were proved stay."""
        n, width, words, sets = self.sizes
        self.seen, self.states = _make_seen(1 << 12, words), _make_states(1 << 10, n, width, words, sets)
        self.packing.floor[0], self.is_open, self.is_full = math.inf, False, False
        self.ceiling = -math.inf  # the incumbent value when the root was opened

    @property
    def bound(self) -> float:
        """Proved lower bound (scaled)."""
        if not self.is_open:
            return self.highest
        top = self.states.bound[self.states.heap[0]] if self.states.sizes[0] else math.inf
        return float(max(self.highest, min(top, self.packing.floor[0], self.best.value[0])))

    @property
    def is_empty(self) -> bool:
        """Whether nothing is left to search."""
        return self.is_open and bool(self.states.sizes[0] == 0)

    @property
    def done(self) -> bool:
        """Whether the incumbent is proved; an empty search that had to give up states is not."""
        return self.is_empty and self.bound >= (1.0 - self.options.gap_tol) * self.best.value[0]

    @property
    def is_stuck(self) -> bool:
        """Whether there is no way on, though nothing is proved: memory is full, or states had to be given up."""
        return self.is_full or (self.is_empty and not self.done)

    @property
    def work(self) -> int:
        """States so far."""
        return int(self.counters[kernel.STATES])

    @property
    def is_outdated(self) -> bool:
        """Whether the incumbent is better than the one that the root's bounds were built around."""
        return bool(self.best.value[0] < self.ceiling * (1.0 - 1e-9))

    def _reference(self, margins: Array) -> Lifted:
        """Lifted problem whose elastic weights are the violations at a reference point, plus something generic."""
        t = self.model.t
        v = np.clip(t - margins, 0.0, 5.0 * t) + 0.1 * t * (1.0 + self.rng.random(self.n))
        return make_lifted(self.model, v / t, float(self.best.value[0]))

    def _far(self) -> Lifted:
        """Lifted problem with large weights for samples near the incumbent's margin: for packings around the others."""
        v = 1.0 / (0.2 + np.abs(1.0 - self.best.u / self.model.t) + 0.5 * self.rng.random(self.n))
        return make_lifted(self.model, v, float(self.best.value[0]))

    def _open(self, budget: Budget) -> None:
        """Open the root with the best of several packings."""
        model, best = self.model, self.best
        self.lifted = self._reference(best.u)
        self.ceiling = float(best.value[0])
        self.is_open = kernel.open_root(
            model, self.lifted, self.states, best, self.iterates[0], self.packing, self.workspace
        )
        self.is_full = not self.is_open
        allowed = budget.for_seconds(CONSTANTS.root_share * (budget.until - budget.clock.seconds))
        patience = CONSTANTS.patience
        while self.is_open and patience > 0 and not allowed.is_over and self.bound < best.value[0]:
            before, offset = self.bound, int(self.rng.integers(self.n))
            kernel.pack_root(model, self.price, self._far(), self.states, best, *self.iterates, self.packing, offset)
            patience = CONSTANTS.patience if self.bound > before else patience - 1

    def run(self, budget: Budget) -> None:
        """Search until done, stuck, or until the budget is spent."""
        if self.is_outdated and not self.done:
            self._begin()
        if not self.is_open and not self.is_full:
            self._open(budget)
        clock, end = budget.clock, self.work + budget.work
        while not self.is_empty and not self.is_full and not budget.is_over and self.work < end:
            self._grow()
            began = clock.seconds
            kernel.advance(
                self.model, self.price, self.lifted, self.keys, self.seen, self.states, self.best, *self.iterates,
                self.packing, self.workspace, self.counters, self.options.gap_tol,
                int(min(end - self.work, 1_000_000)), self.chunk, self.exclusive,
            )  # fmt: skip
            if self.best.value[0] < self.highest * (1.0 - 1e-9):
                raise InconsistentBoundError("an incumbent is below a bound that was proved before")
            self.highest = max(self.highest, self.bound)
            took = max(clock.seconds - began, 1e-6)
            self.chunk = int(min(max(1, self.chunk * min(4.0, CONSTANTS.chunk_seconds / took)), 1_000_000))

    def _grow(self) -> None:
        """Make room for more states, twice as many at a time; the search is over where memory ends."""
        n, size = self.n, self.seen.keys.size
        if self.states.sizes[1] < 3 * n + 8 and self.states.bound.size < self.most_slots:
            self.states = grown(self.states)
        if self.seen.used[0] + 2 * n + 8 > size:
            known, self.seen = self.seen, _make_seen(2 * size, self.seen.bits.shape[1])
            self.seen.keys[:size], self.seen.bits[:size] = known.keys, known.bits
            self.seen.used[0] = known.used[0]
            rehash(self.seen)
        self.is_full = bool(self.states.sizes[1] < n + 4)
