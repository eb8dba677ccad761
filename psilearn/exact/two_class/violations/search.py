"""Search over the sets of violated samples: a third exact search, for losses that are zero from t on and cap below.

    minimise  1/2 ||w||^2 + sum_i price_i [u_i < t],      u_i = y_i (<x_i, w> + b)

For a set S of samples let conv(S) be the least penalty with margins >= t on S, and f(S) <= conv(S) the value of the
lifted problem of :mod:`.lifted_jit`, with M so large that f(S) = conv(S) wherever conv(S) is below the
incumbent value UB. (If s > 0 at the optimum, its multipliers have sum_i v_i alpha_i = M, and the dual value is at least
t/2 sum_i alpha_i >= t M / (2 max v) >= UB. If conv(S) < UB, the hard margin's multipliers sum to 2 conv(S) / t and obey
sum_i v_i alpha_i <= M, so s = 0 is optimal.) The point x(S) that attains f(S) is unique unless a class is missing, and
f grows with S. Let R* be the violated set of an optimum better than UB, N all samples.

*Exclusive search.* Let T be a set with conv(T) >= UB - cost(R), for instance the tight samples at x(N \\ R). Whoever
leaves out R and is better leaves out a member of T, h_1 or h_2 or ...; child j leaves out h_j and keeps h_1, ...,
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

import numpy as np
from numpy.typing import NDArray

from ....core.solving import Clock, Options
from ..settings import Settings
from ..tree import tree_jit as tree
from ..tree.search import InconsistentBoundError
from . import search_jit as kernel
from . import sets_jit as seen
from .lifted_jit import Lifted, make_spot
from .packing_jit import make_packing
from .states_jit import Desk, States

Array = NDArray[np.float64]

_CHUNK_SECONDS = 0.05
#: Sets of a packing at most (labels are bytes), and features up to which states are remembered rather than exclusive.
_MOST_SETS, _PROPER_UP_TO = 96, 2
#: How much harder the way out is for samples whose fate is known. They then carry most of a conflict, and few others
#: are in it: on bupa at C = 1e4 the bound after 9 s is 0.85 of the incumbent value, with 1 instead of 0.01 it is 0.77.
_HARD = 0.01
#: Packings tried at the root without success before the best is taken.
_PATIENCE = 40


def suits(model: tree.Model) -> bool:
    """Whether this search takes the problem: 2-norm, loss zero from t > 0 on, cap below."""
    flat = model.knots.size == 0 or float(model.knots.max()) <= model.t
    return model.norm == 2 and flat and model.t > 0.0 and bool(np.isfinite(model.cap)) and np.unique(model.y).size == 2


def make_lifted(model: tree.Model, v: Array, ceiling: float) -> Lifted:
    """State the lifted problem with ways out ``v`` > 0, exact for values below the ceiling."""
    n, d = model.a.shape
    rows = np.zeros((n + 1, d + 2))
    rows[:n, :d], rows[:n, d], rows[:n, d + 1] = model.a, model.y, v
    rows[n, d + 1] = 1.0
    right = np.append(np.full(n, model.t), 0.0)
    return Lifted(rows, np.ascontiguousarray(rows.T), right, float(2.1 * v.max() / model.t * ceiling), _HARD)


class ViolationSearch:
    """The search over violated sets, to be run in slices of time."""

    def __init__(self, model: tree.Model, best: tree.Best, options: Options) -> None:
        self.model, self.best, self.options = model, best, options
        n, d = model.a.shape
        self.n, self.width, self.words, self.sets = n, d + 2, (n + 63) // 64, min(_MOST_SETS, n)
        settings = options.of(Settings)
        self.exclusive = d > _PROPER_UP_TO if settings.exclusive is None else settings.exclusive
        self.price = model.cost * model.cap
        self.rng = np.random.default_rng(options.random_state)
        self.keys = self.rng.integers(0, 2**64, n, dtype=np.uint64)
        self.counters = np.zeros(3, np.int64)
        self.spots = [make_spot(n + 1, self.width) for _ in range(3)]
        self.packing = make_packing(n, d, self.sets)
        vectors = np.zeros(n, np.int64), np.zeros(n), np.zeros(n)
        members = np.zeros((n, self.width), np.int64), np.zeros(n, np.int64)
        self.desk = Desk(np.zeros(self.words, np.uint64), *vectors, *members, np.zeros(d), np.zeros(n))
        self.seen, self.states = self._make_seen(1 << 12), self._make_states(1 << 10)
        slot_bytes = n + 4 * self.sets + 4 * self.width + 16 * self.words + 64
        self.most_slots = max(4 * n, int(settings.memory / slot_bytes))
        self.chunk, self.highest, self.is_open, self.is_full = 64, 0.0, False, False
        self.ceiling = math.inf  # the incumbent value when the root was opened
        self.lifted = self._reference(np.zeros(n))

    def _make_seen(self, size: int) -> seen.Seen:
        bits = np.zeros((size, self.words), np.uint64)
        return seen.Seen(np.zeros(2 * size, np.int64), np.zeros(size, np.uint64), bits, np.zeros(1, np.int64))

    def _make_states(self, slots: int) -> States:
        heap = np.zeros(slots, np.int64), np.arange(slots)[::-1].copy(), np.array([0, slots])
        point = np.zeros((slots, self.width), np.int32), np.zeros(slots, np.int64)
        bits = np.zeros((slots, self.words), np.uint64), np.zeros((slots, self.words), np.uint64)
        label, worth = np.zeros((slots, self.n), np.uint8), np.zeros((slots, self.sets), np.float32)
        n_sets = np.zeros(slots, np.int64)
        return States(*heap, np.zeros(slots), np.zeros(slots), *point, *bits, label, worth, n_sets)

    @property
    def bound(self) -> float:
        """Proved lower bound (scaled)."""
        if not self.is_open:
            return 0.0
        top = self.states.bound[self.states.heap[0]] if self.states.sizes[0] else math.inf
        return float(min(top, self.packing.floor[0], self.best.value[0]))

    @property
    def is_empty(self) -> bool:
        """Whether nothing is left to search."""
        return self.is_open and bool(self.states.sizes[0] == 0)

    @property
    def is_done(self) -> bool:
        """Whether the incumbent is proved; an empty search that had to give up states is not."""
        return self.is_empty and self.bound >= (1.0 - self.options.gap_tol) * self.best.value[0]

    @property
    def is_stuck(self) -> bool:
        """Whether there is no way on, though nothing is proved: memory is full, or states had to be given up."""
        return self.is_full or (self.is_empty and not self.is_done)

    @property
    def steps(self) -> int:
        """States so far."""
        return int(self.counters[kernel.STATES])

    @property
    def is_outdated(self) -> bool:
        """Whether the incumbent is better than the one that the root's bounds were built around."""
        return bool(self.best.value[0] < self.ceiling * (1.0 - 1e-9))

    def begun_again(self) -> ViolationSearch:
        """Return a search with nothing open yet, whose draws go on where these ended."""
        search = ViolationSearch(self.model, self.best, self.options)
        search.rng = self.rng
        return search

    def _reference(self, margins: Array) -> Lifted:
        """Lifted problem whose ways out are the violations at a reference point, plus something generic."""
        t = self.model.t
        v = np.clip(t - margins, 0.0, 5.0 * t) + 0.1 * t * (1.0 + self.rng.random(self.n))
        return make_lifted(self.model, v / t, float(self.best.value[0]))

    def _far(self) -> Lifted:
        """Lifted problem with easy ways out for samples near the incumbent's margin: for packings around the others."""
        v = 1.0 / (0.2 + np.abs(1.0 - self.best.u / self.model.t) + 0.5 * self.rng.random(self.n))
        return make_lifted(self.model, v, float(self.best.value[0]))

    def _open(self, clock: Clock, until: float) -> None:
        """Open the root with the best of several packings."""
        model, best = self.model, self.best
        self.lifted = self._reference(best.u)
        self.ceiling = float(best.value[0])
        self.is_open = kernel.open_root(
            model, self.price, self.lifted, self.states, best, self.spots[0], self.packing, self.desk
        )
        self.is_full = not self.is_open
        end = clock.seconds + 0.1 * (until - clock.seconds)
        spot, second, third = self.spots
        patience = _PATIENCE
        while self.is_open and patience > 0 and clock.seconds < end and self.bound < best.value[0]:
            before = self.bound
            offset = int(self.rng.integers(self.n))
            kernel.pack_root(
                model, self.price, self._far(), self.states, best, spot, second, third, self.packing, offset
            )
            patience = _PATIENCE if self.bound > before else patience - 1

    def run(self, clock: Clock, until: float, max_steps: float) -> None:
        """Search until done, or until the clock shows ``until`` seconds, or ``max_steps`` states are spent."""
        if not self.is_open and not self.is_full:
            self._open(clock, until)
        while not self.is_empty and not self.is_full and clock.seconds < until and self.steps < max_steps:
            self._grow()
            spot, child, second = self.spots
            began = clock.seconds
            kernel.advance(
                self.model, self.price, self.lifted, self.keys, self.seen, self.states, self.best, spot, child,
                second, self.packing, self.desk, self.counters, self.options.gap_tol, self.chunk, self.exclusive,
            )  # fmt: skip
            if self.best.value[0] < self.highest * (1.0 - 1e-9):
                raise InconsistentBoundError("an incumbent is below a bound that was proved before")
            self.highest = max(self.highest, self.bound)
            took = max(clock.seconds - began, 1e-6)
            self.chunk = int(min(max(1, self.chunk * min(4.0, _CHUNK_SECONDS / took)), 1_000_000))

    def _grow(self) -> None:
        """Make room for more states, twice as many at a time; the search is over where memory ends."""
        n, slots, size = self.n, self.states.bound.size, self.seen.keys.size
        if self.states.sizes[1] < 3 * n + 8 and slots < self.most_slots:
            old, self.states = self.states, self._make_states(2 * slots)
            for name in ("heap", "bound", "paid", "members", "n_members", "out", "kept", "label", "worth", "n_sets"):
                getattr(self.states, name)[:slots] = getattr(old, name)
            free = int(old.sizes[1])
            self.states.spare[:free] = old.spare[:free]
            self.states.spare[free : free + slots] = np.arange(slots, 2 * slots)[::-1]
            self.states.sizes[:] = old.sizes[0], free + slots
        if self.seen.used[0] + 2 * n + 8 > size:
            known, self.seen = self.seen, self._make_seen(2 * size)
            self.seen.keys[:size], self.seen.bits[:size] = known.keys, known.bits
            self.seen.used[0] = known.used[0]
            seen.rehash(self.seen)
        self.is_full = bool(self.states.sizes[1] < n + 4)
