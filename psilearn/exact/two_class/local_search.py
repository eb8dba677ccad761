"""Incumbents for all exact searches: support vector machines of many sub-samples, and walks from the best of them.

A support vector machine is trained on a random part of the samples, or on the neighbourhoods of two samples, with a
random cost, and forgets step by step whom it puts on the wrong side. Outliers draw the machine of all samples far away
from the optimum; among many such parts some are free of them. From the best machines, and from the incumbent, walks
(:mod:`.local_search_jit`) exchange the samples that are given up.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ...core.solving import Clock
from . import local_search_jit as walks
from .node.ascent_jit import SOLVED
from .node.envelope_jit import FREE, GONE, IN
from .tree import tree_jit as tree
from .tree.search import make_work, solve_fixed, svm

Array = NDArray[np.float64]

#: Part of the time that goes to machines, and how many of the best are remembered for walks.
_MACHINES, _REMEMBERED = 0.25, 8
#: Costs of the machines as powers of ten (samples have unit size), and how far below t a machine forgets a sample.
_COSTS, _FORGETS = (0.5, 3.5), (0.5, 1.0, 1.5)
#: Steps without improvement after which a walk ends; mean rises that walks tolerate, in prices: none suits them all.
_PATIENCE, _HEATS = 300, (0.1, 0.3, 0.6, 1.0)
_CHUNK_SECONDS, _STEPS_A_MACHINE = 0.03, 100


class Walker:
    """Improves an incumbent in slices of time; what it has learned stays for the next slice."""

    def __init__(self, model: tree.Model, best: tree.Best, random_state: int = 0) -> None:
        self.model, self.best, self.rng = model, best, np.random.default_rng(random_state)
        n = model.y.size
        self.here, self.trial = make_work(model), make_work(model)
        self.rest, self.steps, self.pressure = np.zeros(n, np.int64), np.zeros(1, np.int64), np.zeros(n)
        self.machines: list[tuple[float, Array]] = []
        self.lowest, self.stale, self.walks, self.chunk, self.heat = math.inf, _PATIENCE, 0, 8, _HEATS[0]
        self.seconds = np.zeros(2)  # spent on machines and on walks

    def run(self, clock: Clock, until: float) -> None:
        """Improve the incumbent until the clock shows ``until`` seconds."""
        while clock.seconds < until:
            began = clock.seconds
            is_machine = self.seconds[0] <= _MACHINES * self.seconds.sum()
            if is_machine:
                self._train()
            else:
                self._walk()
            took = clock.seconds - began
            self.seconds[0 if is_machine else 1] += took
            if not is_machine:
                self.chunk = int(min(max(1, self.chunk * min(2.0, _CHUNK_SECONDS / max(took, 1e-6))), 1000))

    def take(self, steps: int, clock: Clock) -> None:
        """Improve the incumbent by so many steps, and a machine for every hundred: an outcome that can be repeated."""
        while steps > 0 and not clock.is_over:
            self._train()
            self.chunk = min(_STEPS_A_MACHINE, steps)
            self._walk()
            steps -= self.chunk

    def _train(self) -> None:
        """Train one machine, improve it, and remember it if it is among the best."""
        model, rng = self.model, self.rng
        cost, forget = 10.0 ** rng.uniform(*_COSTS), model.t - rng.choice(_FORGETS)
        kept = self._part()
        for _ in range(6):
            v, b, u = svm(model._replace(cost=np.where(kept, cost, 1e-6 * cost)))
            now = u >= forget
            if np.array_equal(now, kept) or not now.any():
                break
            kept = now
        found = tree.Best(np.full(1, np.inf), v.copy(), np.full(1, b), u.copy(), np.full(1, np.inf))
        tree.offer(model, found, v, b, u)
        self.trial.alpha[:] = 0.0
        tree.local_search(model, found, self.trial, u)
        value = float(found.value[0])
        if math.isfinite(value) and all(value != other for other, _ in self.machines):
            tree.offer(model, self.best, found.w, found.b[0], found.u)
            self.machines = sorted([*self.machines, (value, found.u)], key=lambda m: m[0])[:_REMEMBERED]

    def _part(self) -> NDArray[np.bool_]:
        """Draw a part of the samples: any, or near one sample of each class, or all."""
        model, rng = self.model, self.rng
        n, kind, share = model.y.size, rng.integers(3), rng.uniform(0.05, 0.6)
        if kind == 0:
            return np.ones(n, bool)
        kept = rng.random(n) < share
        for label in (-1.0, 1.0):
            own = np.flatnonzero(model.y == label)
            if own.size == 0:
                continue
            centre = rng.choice(own)
            kept[centre] = True
            if kind == 2:
                order = own[np.argsort(model.dist[centre, own], kind="stable")]
                kept[own] = False
                kept[order[: max(2, int(share * own.size))]] = True
        return kept

    def _walk(self) -> None:
        """Walk on, or begin anew where the last walk has led nowhere."""
        model = self.model
        if self.stale >= _PATIENCE and not self._begin():
            return
        draws = 1.0 - self.rng.random((self.chunk, 5))
        walks.walk(model, self.here, self.trial, self.best, self.rest, self.steps, self.pressure, draws, self.heat)
        value = tree.true_value(model, self.here.w, self.here.u)
        if value < self.lowest * (1.0 - 1e-9):
            self.lowest, self.stale = value, 0
        else:
            self.stale += self.chunk

    def _begin(self) -> bool:
        """Go to the best machine that no walk began from, or to the incumbent; False if that place is none."""
        model, margins = self.model, self.best.u
        self.walks += 1
        self.heat = float(self.rng.choice(_HEATS))
        if self.machines and self.walks % 2 == 1:
            _, margins = self.machines.pop(0)
        state = np.where(margins < model.t - tree.FEASIBLE, GONE, IN).astype(np.int8)
        state = np.where(model.given == FREE, state, model.given)
        ceiling = 2.0 * float(np.sum(model.cost)) * model.cap + 2.0 * float(self.best.value[0]) + 1.0
        _, flag = solve_fixed(model, self.here, state, ceiling)
        if flag != SOLVED:
            return False
        self.rest[:] = 0
        self.steps[:] = 0
        self.lowest, self.stale = tree.true_value(model, self.here.w, self.here.u), 0
        tree.offer(model, self.best, self.here.w, self.here.b[0], self.here.u)
        return True
