"""Incumbents for all exact searches: support vector machines of many sub-samples, and local search from the best.

A support vector machine (SVM) is trained on a random part of the samples, or on the neighbourhoods of two samples, with
a random cost, and drops step by step the samples that it puts on the wrong side. Outliers draw the SVM of all samples
far away from the optimum; among many such parts some are free of them. From the best SVMs, and from the incumbent,
a local search (:mod:`.local_search_jit`) exchanges the samples that are given up. Nothing is certified here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..envelope_jit import FEASIBLE
from ..sample_state_jit import FREE, GONE, IN
from ..search import Budget
from .incumbent import empty_incumbent
from .incumbent_jit import Best, alternate_from, offer, true_value
from .local_search_jit import take_steps
from .model import fit_svm, make_workspace, solve_fixed
from .node.ascent_jit import SOLVED
from .node.node_jit import Model

Array = NDArray[np.float64]


@dataclass(frozen=True)
class LocalSearchConstants:
    """Constants of the local search, chosen on UCI data with flipped labels (``benchmarks/hard_margin.py``).

    Attributes
    ----------
    svm_share : float
        Part of the time that goes to support vector machines.
    remembered : int
        Best SVMs that are kept as starts.
    log_costs : (float, float)
        Range of the SVMs' costs as powers of ten (samples have unit size).
    drop_below : tuple of float
        How far below t an SVM drops a sample, drawn at random.
    dropping_rounds : int
        Times an SVM is trained again without the samples it dropped, at most.
    least_weight : float
        Cost of a dropped sample as part of the others': not 0, which would leave its margin without meaning.
    patience : int
        Steps without improvement after which a local search begins elsewhere.
    temperatures : tuple of float
        Mean rises of the objective that are accepted, in prices of one sample; none suits all problems.
    chunk_seconds : float
        Time between two readings of the clock.
    steps_per_svm : int
        Steps for every SVM where steps are counted.
    """

    svm_share: float = 0.25
    remembered: int = 8
    log_costs: tuple[float, float] = (0.5, 3.5)
    drop_below: tuple[float, ...] = (0.5, 1.0, 1.5)
    dropping_rounds: int = 6
    least_weight: float = 1e-6
    patience: int = 300
    temperatures: tuple[float, ...] = (0.1, 0.3, 0.6, 1.0)
    chunk_seconds: float = 0.03
    steps_per_svm: int = 100


CONSTANTS = LocalSearchConstants()


class LocalSearch:
    """Improves an incumbent in slices; what it has learned stays for the next slice."""

    def __init__(self, model: Model, best: Best, random_state: int = 0) -> None:
        self.model, self.best, self.rng = model, best, np.random.default_rng(random_state)
        n = model.y.size
        self.here, self.trial = make_workspace(model), make_workspace(model)
        self.tabu, self.steps, self.pressure = np.zeros(n, np.int64), np.zeros(1, np.int64), np.zeros(n)
        self.svms: list[tuple[float, Array]] = []  # values and margins
        self.lowest, self.stale, self.starts, self.chunk = math.inf, CONSTANTS.patience, 0, 8
        self.temperature = CONSTANTS.temperatures[0]
        self.svm_seconds, self.seconds = 0.0, 0.0

    def run(self, budget: Budget) -> None:
        """Improve the incumbent until the time is over or ``budget.work`` steps are taken.

        Where steps are counted, every hundred of them have an SVM, and the outcome can be repeated.
        """
        if math.isfinite(budget.work):
            left = int(budget.work)
            while left > 0 and not budget.is_over:
                self._train()
                self.chunk = min(CONSTANTS.steps_per_svm, left)
                self._take_steps()
                left -= self.chunk
        while math.isinf(budget.work) and not budget.is_over:
            self._run_chunk(budget)

    def _run_chunk(self, budget: Budget) -> None:
        """Train an SVM or take some steps, whichever has had too little of the time."""
        began = budget.clock.seconds
        if self.svm_seconds <= CONSTANTS.svm_share * self.seconds:
            self._train()
            took = budget.clock.seconds - began
            self.svm_seconds += took
        else:
            self._take_steps()
            took = budget.clock.seconds - began
            faster = min(2.0, CONSTANTS.chunk_seconds / max(took, 1e-6))
            self.chunk = int(min(max(1, self.chunk * faster), 1000))
        self.seconds += took

    def _train(self) -> None:
        """Train one SVM, improve it, and remember it if it is among the best."""
        model, rng = self.model, self.rng
        cost, dropped = 10.0 ** rng.uniform(*CONSTANTS.log_costs), model.t - rng.choice(CONSTANTS.drop_below)
        kept = self._part()
        for _ in range(CONSTANTS.dropping_rounds):
            v, b, u = fit_svm(model, np.where(kept, cost, CONSTANTS.least_weight * cost))
            now = u >= dropped
            if np.array_equal(now, kept) or not now.any():
                break
            kept = now
        found = empty_incumbent(model)
        offer(model, found, v, b, u)
        self.trial.alpha[:] = 0.0
        alternate_from(model, found, self.trial, u)
        value = float(found.value[0])
        if math.isfinite(value) and all(value != other for other, _ in self.svms):
            offer(model, self.best, found.w, found.b[0], found.u)
            self.svms = sorted([*self.svms, (value, found.u)], key=lambda svm: svm[0])[: CONSTANTS.remembered]

    def _part(self) -> NDArray[np.bool_]:
        """Draw a part of the samples: all, or any, or near one sample of each class."""
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

    def _take_steps(self) -> None:
        """Take some steps, from a new start if the last ones have led nowhere."""
        model, here = self.model, self.here
        if self.stale >= CONSTANTS.patience and not self._start():
            return
        draws = 1.0 - self.rng.random((self.chunk, 5))
        take_steps(
            model, here, self.trial, self.best, self.tabu, self.steps, self.pressure, draws, self.temperature
        )  # fmt: skip
        value = true_value(model, here.w, here.u)
        if value < self.lowest * (1.0 - 1e-9):
            self.lowest, self.stale = value, 0
        else:
            self.stale += self.chunk

    def _start(self) -> bool:
        """Go to the best SVM that was no start yet, or to the incumbent; False if that has no solution."""
        model, margins = self.model, self.best.u
        self.starts += 1
        self.temperature = float(self.rng.choice(CONSTANTS.temperatures))
        if self.svms and self.starts % 2 == 1:
            _, margins = self.svms.pop(0)
        state = np.where(margins < model.t - FEASIBLE, GONE, IN).astype(np.int8)
        state = np.where(model.given == FREE, state, model.given)
        ceiling = 2.0 * float(np.sum(model.cost)) * model.cap + 2.0 * float(self.best.value[0]) + 1.0
        _, flag = solve_fixed(model, self.here, state, ceiling)
        if flag != SOLVED:
            return False
        self.tabu[:], self.steps[:] = 0, 0
        self.lowest, self.stale = true_value(model, self.here.w, self.here.u), 0
        offer(model, self.best, self.here.w, self.here.b[0], self.here.u)
        return True
