"""Search over the sets of violated samples (prototype)."""

from __future__ import annotations

import math
import time

import numpy as np

from ..kernels import dives, tree, violations as kernel
from ..kernels.lifted import Lifted, make_spot
from .base import Clock, Options
from .branch import svm

MAX_SETS = 96


def make_lifted(model, best, margins, rng):
    n, d = model.a.shape
    v = np.clip(model.t - margins, 0.0, 5.0 * model.t) + 0.1 * model.t * (1.0 + rng.random(n))
    rows = np.zeros((n + 1, d + 2))
    rows[:n, :d], rows[:n, d], rows[:n, d + 1] = model.a, model.y, v
    rows[n, d + 1] = 1.0
    right = np.full(n + 1, model.t)
    right[n] = 0.0
    price = 2.1 * v.max() / model.t * best.value[0]
    return Lifted(rows, np.ascontiguousarray(rows.T), right, float(price))


class ViolationSearch:
    def __init__(self, model, best, scratch, options):
        self.model, self.best, self.options = model, best, options
        n, d = model.a.shape
        self.n, self.width = n, d + 2
        rng = np.random.default_rng(options.random_state)
        self.keys = rng.integers(0, 2**64, n, dtype=np.uint64)
        self.words = (n + 63) // 64
        self.counters = np.zeros(4, np.int64)
        self.spots = [make_spot(n + 1, d + 2) for _ in range(3)]
        sets = self.sets = min(MAX_SETS, n)
        self.desk = kernel.Desk(
            np.zeros(self.words, np.uint64), np.zeros(n, np.uint8), np.zeros(sets, np.float32), np.zeros(sets), np.zeros(d), np.zeros(n)
        )
        self.seen = self._make_seen(1 << 12)
        self.states = self._make_states(1 << 10)
        self.chunk = 64
        self.rng = rng
        self.history = []
        self.dives(options.extra.get("dives", 1.0))
        self.lifted = make_lifted(model, best, best.u, rng)
        self._root()

    def starts(self):
        """Margins of support vector machines that forget, step by step, whom they misclassify."""
        model = self.model
        for level in 10.0 ** np.arange(-3.0, 2.0):
            for below in (-0.5, 0.0, 0.5):
                kept = np.ones(self.n, bool)
                for _ in range(6):
                    machine = model._replace(cost=np.where(kept, level, 1e-6 * level))
                    v, b, u = svm(machine)
                    now = u >= below
                    if np.array_equal(now, kept) or not now.any():
                        break
                    kept = now
                yield v.copy(), b, u.copy()

    def dives(self, seconds):
        model, best, rng = self.model, self.best, self.rng
        n, d = model.a.shape
        began = time.process_time()
        spot, child, other = self.spots
        def fresh():
            return tree.Best(np.full(1, np.inf), np.zeros(d), np.zeros(1), np.zeros(n), np.full(1, np.inf))
        def keep(found):
            if found.value[0] < best.value[0]:
                tree.offer(model, best, found.w, found.b[0], found.u)
                self.history.append((time.process_time() - began, self.rounds, best.value[0]))
        self.rounds = 0
        current = fresh()
        for v, b, u in self.starts():
            found = fresh()
            first = tree.Best(np.full(1, np.inf), v, np.full(1, b), u, np.full(1, np.inf))
            lifted = make_lifted(model, best, u, rng)
            dives.ruin(model, first, spot, np.append(rng.random(n), 0.0))
            dives.dive(model, lifted, found, spot, child, other, self.desk)
            keep(found)
            if found.value[0] < current.value[0]:
                current = found
            if time.process_time() - began > seconds:
                break
        print("starts", time.process_time() - began, end=" ")
        idle = 0
        while time.process_time() - began < seconds:
            if self.rounds % 10 == 0:
                lifted = make_lifted(model, best, current.u, rng)
            self.rounds += 1
            found = fresh()
            dives.ruin(model, current, spot, np.append(rng.random(n), 1 - 0.5*rng.random()))
            dives.dive(model, lifted, found, spot, child, other, self.desk)
            keep(found)
            if found.value[0] < current.value[0] + 0.5 * model.cost.min() * rng.exponential():
                current = found
            idle += 1

    def _make_seen(self, size):
        return kernel.Seen(
            np.zeros(2 * size, np.int64), np.zeros(size, np.uint64), np.zeros((size, self.words), np.uint64), np.zeros(1, np.int64)
        )

    def _make_states(self, slots):
        return kernel.States(
            np.zeros(slots, np.int64), np.arange(slots)[::-1].copy(), np.array([0, slots]), np.zeros(slots),
            np.zeros(slots, np.int64), np.zeros(slots), np.zeros((slots, self.width), np.int16), np.zeros(slots, np.int16),
            np.zeros((slots, self.n), np.uint8), np.zeros((slots, self.sets), np.float32), np.zeros(slots, np.int64),
        )

    def _root(self):
        model, best = self.model, self.best
        d = model.a.shape[1]
        spot = self.spots[0]
        kernel.root(model, self.lifted, self.seen, self.states, best, spot, self.desk)

    def _grow(self):
        n = self.n
        if self.states.sizes[1] < 2 * n + 8:
            old, slots = self.states, self.states.bound.size
            new = self._make_states(2 * slots)
            for name in ("heap", "bound", "seen", "paid", "members", "n_members", "label", "worth", "n_sets"):
                getattr(new, name)[:slots] = getattr(old, name)
            free = int(old.sizes[1])
            new.spare[:free] = old.spare[:free]
            new.spare[free : free + slots] = np.arange(slots, 2 * slots)[::-1]
            new.sizes[:] = old.sizes[0], free + slots
            self.states = new
        if self.seen.count[0] + 2 * n + 8 > self.seen.keys.size:
            old, size = self.seen, self.seen.keys.size
            new = self._make_seen(2 * size)
            new.keys[:size], new.bits[:size], new.count[0] = old.keys, old.bits, old.count[0]
            kernel.rehash(new)
            self.seen = new

    @property
    def bound(self):
        top = self.states.bound[self.states.heap[0]] if self.states.sizes[0] else math.inf
        return float(min(top, self.best.floor[0], self.best.value[0]))

    @property
    def is_done(self):
        return bool(self.states.sizes[0] == 0)

    @property
    def steps(self):
        return int(self.counters[0])

    def run(self, clock, until, max_steps):
        while not self.is_done and clock.seconds < until and self.steps < max_steps:
            self._grow()
            began = clock.seconds
            kernel.advance(
                self.model, self.lifted, self.keys, self.seen, self.states, self.best, *self.spots, self.desk,
                self.counters, self.options.gap_tol, self.chunk,
            )
            took = max(clock.seconds - began, 1e-6)
            self.chunk = int(min(max(16, self.chunk * min(4.0, 0.05 / took)), 1_000_000))
