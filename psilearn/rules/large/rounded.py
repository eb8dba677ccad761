"""LP-Boost of very many observations: Newton's method on rounded margin errors, and classifiers generated as it goes.

In the soft margin  rho - D sum_i m_i (rho - u_i)_+  of a vote with margins u the positive part is replaced by

    phi(t) = (t + delta)^2 / (4 delta)  for |t| <= delta,   t_+ elsewhere.

For the best rho, w_i = D m_i phi'(rho - u_i) has the sum 1 and lies in [0, D m_i]: it is feasible in the dual of
program (3) of :mod:`..lpboost`, so every vote has a bound, the largest edge of any classifier under w. Only
observations with a margin within delta of rho have curvature, so the Hessian is a small matrix product; delta shrinks
with the gap.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...core.solving import Clock
from ..lpboost import soft_margin
from ..observations import Observations
from ..pricing.oracles import Column, Oracle
from . import simplex
from .votes_jit import combine, edges

Array = NDArray[np.float64]
#: What is added to the Hessian, in units of its mean diagonal; the shortest step that is tried; about how many
#: observations a Hessian is computed from at most.
_RIDGE, _SHORTEST, _SAMPLE = 1e-8, 1e-4, 10_000


@dataclass(frozen=True)
class Settings:
    """How the rounded program is solved.

    Attributes
    ----------
    first, shrink : float
        The first delta, and by what it is divided when the gap of the rounded program is below the rounding itself.
    gap, tol : float
        Relative and absolute gap at which it ends; what is left is for the simplex method.
    n_columns, spare, most_idle : int
        Classifiers that a round adds; how many without weight are kept, and from how many on the others are dropped.
    rounds : int
        Newton steps at most.
    """

    first: float = 0.1
    shrink: float = 2.5
    gap: float = 1e-4
    tol: float = 5e-10
    n_columns: int = 60
    spare: int = 100
    most_idle: int = 300
    rounds: int = 150


class Found(NamedTuple):
    """A vote over columns, the margins it has, and multipliers of its bound."""

    columns: list[Column]
    weights: Array
    margins: Array
    multipliers: Array


class _Pool:
    """Classifiers with their signed answers, a byte each."""

    def __init__(self, data: Observations) -> None:
        self.data = data
        self.columns: list[Column] = []
        self.known: set[Hashable] = set()
        self._answers = np.empty((data.y.size, 128), np.int8, order="F")

    @property
    def answers(self) -> NDArray[np.int8]:
        """y_i h_iu of all classifiers."""
        return self._answers[:, : len(self.columns)]

    def add(self, columns: list[Column]) -> None:
        """Add those that are new."""
        for column in columns:
            if column.key in self.known:
                continue
            if len(self.columns) == self._answers.shape[1]:
                larger = np.empty((self.data.y.size, 2 * len(self.columns)), np.int8, order="F")
                larger[:, : len(self.columns)] = self._answers
                self._answers = larger
            self._answers[:, len(self.columns)] = self.data.y * column.h
            self.columns.append(column)
            self.known.add(column.key)

    def prune(self, weights: Array, edge: Array, settings: Settings) -> Array:
        """Forget most classifiers without weight if there are many, those of smallest edge; return the weights left."""
        n_used = np.count_nonzero(weights)
        if weights.size <= 2 * n_used + settings.most_idle:
            return weights
        kept = np.sort(np.lexsort((-edge, weights == 0))[: n_used + settings.spare])
        self._answers[:, : kept.size] = self._answers[:, kept]
        self.columns = [self.columns[u] for u in kept]
        self.known = {column.key for column in self.columns}
        return weights[kept]


class _Point(NamedTuple):
    """Margins of a vote, and the best rho, w and value of the rounded soft margin."""

    margins: Array
    rho: float
    w: Array
    value: float


class _Rounding:
    """The rounded soft margin for a given delta."""

    def __init__(self, weight: Array, D: float, delta: float) -> None:
        self.cost, self.delta = D * weight, delta

    def at(self, margins: Array) -> _Point:
        """Find the best rho by Newton's method within a bracket: the sum of w grows with rho."""
        low, high = float(margins.min()) - self.delta, float(margins.max()) + self.delta
        rho, w = soft_margin(margins, self.cost, 1.0)[0], self.cost
        for _ in range(100):
            share = np.clip((rho - margins + self.delta) / (2.0 * self.delta), 0.0, 1.0)
            w = self.cost * share
            excess = float(w.sum()) - 1.0
            if abs(excess) <= 1e-13 or high - low <= 1e-16:
                break
            low, high = (low, rho) if excess > 0 else (rho, high)
            slope = float(self.cost[(share > 0) & (share < 1)].sum()) / (2.0 * self.delta)
            step = rho - excess / slope if slope > 0 else math.inf
            rho = step if low < step < high else (low + high) / 2.0
        lacking = rho - margins
        near = np.clip(lacking + self.delta, 0.0, None) ** 2 / (4.0 * self.delta)
        value = rho - float(self.cost @ np.where(lacking > self.delta, lacking, near))
        return _Point(margins, rho, w, value)

    def hessian(self, answers: NDArray[np.int8], point: _Point) -> Array:
        """Curvature along the weights of classifiers, rho following, from a part of very many observations."""
        near = np.flatnonzero(np.abs(point.margins - point.rho) < self.delta)
        every = 1 + near.size // _SAMPLE
        near = near[::every]
        scale = every * self.cost[near] / (2.0 * self.delta)
        block = answers[near].astype(np.float64)
        block -= scale @ block / max(float(scale.sum()), 1e-30)
        block *= np.sqrt(scale)[:, None]
        Q = block.T @ block
        return Q + (_RIDGE * float(np.trace(Q)) / len(Q) + 1e-12) * np.eye(len(Q))

    def step(self, answers: NDArray[np.int8], weights: Array, point: _Point) -> tuple[Array, _Point]:
        """Take a Newton step within the simplex, shortened until the value grows as it should; none if it does not.

        That ends the method: where fewer observations are within delta than rules are used, curvature says nothing.
        """
        Q, edge = self.hessian(answers, point), edges(answers, point.w, answers.shape[1])
        direction = simplex.maximise(edge + Q @ weights, Q, weights) - weights
        change, slope, length = combine(answers, direction), float(edge @ direction), 1.0
        while length > _SHORTEST:
            trial = self.at(point.margins + length * change)
            if trial.value >= point.value + 1e-4 * length * slope:
                weights = np.maximum(weights + length * direction, 0.0)
                return weights, trial
            length *= 0.4
        return weights, point


def solve(
    data: Observations,
    oracle: Oracle,
    D: float,
    time_limit: float,
    start: Sequence[Column] = (),
    start_weights: Array | None = None,
    settings: Settings | None = None,
) -> Found:
    """Return a vote whose soft margin is within about ``settings.gap`` of the largest one.

    The classifiers are rules, whose answers are -1, 0 or 1; ``start`` are rules to begin with, and their weights.
    """
    settings, clock = settings or Settings(), Clock(time_limit)
    pool, rounding = _Pool(data), _Rounding(data.weight, D, settings.first)
    pool.add([*start, *oracle.constants()])
    given = np.ones(len(start)) if start_weights is None else start_weights
    weights = np.pad(given, (0, len(pool.columns) - len(start))) if len(start) else np.ones(len(pool.columns))
    weights = weights / weights.sum()
    point = rounding.at(combine(pool.answers, weights))
    best, reached, upper, multipliers = (pool.columns, weights, point.margins), -math.inf, math.inf, point.w
    for _ in range(settings.rounds):
        objective = soft_margin(point.margins, data.weight, D)[1]
        if objective > reached:
            best, reached = (list(pool.columns), weights, point.margins), objective
        offer = oracle.offer(point.w, None, -1.0, settings.n_columns, clock.left, False)
        largest = max(offer.values[0], -1.0) if offer.columns else offer.bound
        if largest < upper:
            upper, multipliers = largest, point.w
        if upper - reached <= settings.gap * abs(reached) + settings.tol or clock.is_over:
            break
        edge = edges(pool.answers, point.w, len(pool.columns))
        if largest - float(edge @ weights) < objective - point.value:
            rounding = _Rounding(data.weight, D, rounding.delta / settings.shrink)
        weights = pool.prune(weights, edge, settings)
        pool.add([column for column, value in zip(offer.columns, offer.values) if value > edge.max()])
        weights = np.pad(weights, (0, len(pool.columns) - weights.size))
        before = rounding.at(point.margins)
        weights, point = rounding.step(pool.answers, weights, before)
        if point is before:
            break
    used = np.flatnonzero(best[1] > 0)
    return Found([best[0][u] for u in used], best[1][used] / best[1].sum(), best[2], multipliers)
