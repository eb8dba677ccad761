"""SLIPPER: boosting of greedily grown and pruned rules.

Cohen and Singer, A simple, fast, and effective rule learner (1999). Each round splits the observations at random, grows
a rule on two thirds of the weight, prunes it on the rest, and adds it, or the rule without conditions if that does
better, with confidence C = 1/2 ln((W+ + 1/2n) / (W- + 1/2n)), where W+ and W- are the weights of the positive and
negative observations it covers. Rules with conditions vote for the positive class, the smaller one. The number of
rounds is chosen by cross-validation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..core.result import Status
from .observations import Observations
from .pricing.data import Monomial
from .pricing.oracles import Column

_GROW_SHARE = 2 / 3


@dataclass(frozen=True)
class SlipperResult:
    """Rules with their confidences, and the bound prod_t Z_t on the training error."""

    columns: list[Column]
    weights: NDArray[np.float64]
    objective: float
    n_iter: int
    status: Status = Status.ITERATION_LIMIT
    history: tuple = ()


class _Booster:
    """Boosting on fixed observations; ``positive`` marks the class the rules vote for."""

    def __init__(self, data: Observations, positive: NDArray[np.bool_], rng: np.random.RandomState) -> None:
        self.positive, self.rng = positive, rng
        self.literals = np.hstack([data.X, 1 - data.X]).astype(bool)
        self.smoothing = 1.0 / (2.0 * data.total)
        self.distribution = data.weight / data.total
        self.rules: list[tuple[tuple[int, ...], float]] = []
        self.log_z = 0.0

    def _masses(self, covered: NDArray) -> tuple[float, float]:
        weight = self.distribution[covered]
        good = self.positive[covered]
        return float(weight[good].sum()), float(weight[~good].sum())

    def _confidence(self, covered: NDArray) -> float:
        plus, minus = self._masses(covered)
        return 0.5 * math.log((plus + self.smoothing) / (minus + self.smoothing))

    def _loss(self, covered: NDArray, confidence: float, among: NDArray | None = None) -> float:
        """Exponential loss of one rule on some of the observations."""
        among = np.ones(covered.size, dtype=bool) if among is None else among
        plus, minus = self._masses(covered & among)
        rest = float(self.distribution[among].sum()) - plus - minus
        return rest + plus * math.exp(-confidence) + minus * math.exp(confidence)

    def _grow(self, grow: NDArray) -> list[int]:
        """Add the literal with the largest sqrt(W+) - sqrt(W-) while it grows and negatives are covered."""
        signed = self.distribution * grow
        plus_weight, minus_weight = signed * self.positive, signed * ~self.positive
        covered, conjunction, best = grow.copy(), [], -math.inf
        while minus_weight[covered].sum() > 0:
            rows = self.literals[covered]
            plus, minus = plus_weight[covered] @ rows, minus_weight[covered] @ rows
            score = np.sqrt(plus) - np.sqrt(minus)
            literal = int(np.argmax(score))
            if score[literal] <= best + 1e-12:
                break
            best = float(score[literal])
            conjunction.append(literal)
            covered &= self.literals[:, literal]
        return conjunction

    def _prune(self, conjunction: list[int], grow: NDArray) -> list[int]:
        """The prefix with the smallest loss on the pruning observations, confidences taken from the growing ones."""
        covered = np.ones(grow.size, dtype=bool)
        best, kept = math.inf, 0
        for size, literal in enumerate(conjunction, start=1):
            covered = covered & self.literals[:, literal]
            loss = self._loss(covered, self._confidence(covered & grow), ~grow)
            if loss < best - 1e-12:
                best, kept = loss, size
        return conjunction[:kept]

    def step(self) -> None:
        """One round: append a rule with its confidence and reweight the observations."""
        order = self.rng.permutation(self.distribution.size)
        reached = np.cumsum(self.distribution[order])
        grow = np.zeros(order.size, dtype=bool)
        grow[order[: int(np.searchsorted(reached, _GROW_SHARE)) + 1]] = True
        conjunction = self._prune(self._grow(grow), grow)
        everything = np.ones(order.size, dtype=bool)
        covered = np.asarray(self.literals[:, conjunction].all(axis=1))
        confidence, default = self._confidence(covered), self._confidence(everything)
        loss, default_loss = self._loss(covered, confidence), self._loss(everything, default)
        if confidence <= 0 or default_loss <= loss:
            conjunction, covered, confidence, loss = [], everything, default, default_loss
        self.rules.append((tuple(sorted(conjunction)), confidence))
        self.log_z += math.log(loss)
        self.distribution = self.distribution * np.exp(np.where(self.positive, -confidence, confidence) * covered)
        self.distribution = self.distribution / self.distribution.sum()


def _staged_errors(data: Observations, minority: int, rounds: int, folds: int, rng: np.random.RandomState) -> NDArray:
    """Weight of the held-out mistakes after each round, summed over folds."""
    fold = np.arange(data.y.size) % folds
    rng.shuffle(fold)
    errors = np.zeros(rounds)
    for f in range(folds):
        train, test = np.flatnonzero(fold != f), np.flatnonzero(fold == f)
        inner = data.subset(train)
        if np.unique(inner.y).size < 2:
            continue
        booster = _Booster(inner, inner.y == minority, rng)
        literals = np.hstack([data.X[test], 1 - data.X[test]]).astype(bool)
        score = np.zeros(test.size)
        for t in range(rounds):
            booster.step()
            conjunction, confidence = booster.rules[-1]
            score += confidence * literals[:, list(conjunction)].all(axis=1)
            errors[t] += data.weight[test] @ ((score > 0) != (data.y[test] == minority))
    return errors


def fit(data: Observations, max_rounds: int, folds: int, rng: np.random.RandomState) -> SlipperResult:
    """Choose the number of rounds by ``folds``-fold cross-validation (``max_rounds`` if folds < 2) and boost."""
    minority = -data.majority
    folds = min(folds, data.y.size)
    rounds = max_rounds
    if folds >= 2:
        rounds = 1 + int(np.argmin(_staged_errors(data, minority, max_rounds, folds, rng)))
    booster = _Booster(data, data.y == minority, rng)
    for _ in range(rounds):
        booster.step()
    total: dict[tuple[int, ...], float] = {}
    for conjunction, confidence in booster.rules:
        total[conjunction] = total.get(conjunction, 0.0) + confidence
    columns, weights = [], []
    for conjunction, confidence in total.items():
        monomial = Monomial(conjunction, minority if confidence > 0 else -minority)
        columns.append(Column(monomial, monomial.sign * monomial.covers(data.X).astype(np.float64), 0.0))
        weights.append(abs(confidence))
    return SlipperResult(columns, np.array(weights), math.exp(booster.log_z), rounds)
