"""The nu and the order of LP-Boost with the smallest held-out error.

nu bounds the share of margin errors: far below twice the error rate of the best vote the largest soft margin is 0 and
the model constant or led by the wrong labels; from twice the share of the smaller classes upwards the largest soft
margin is that of the constant vote for the largest one. So nu is tried as a share of that limit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold

from ..core.solving import Clock
from . import joint, lpboost
from .observations import Observations
from .pricing.oracles import Column, Oracle, answers


@dataclass(frozen=True)
class Settings:
    """How nu and the order are searched for. The shares and tolerances were set on ionosphere, eeg eye state, adult,
    satimage, htru2, vehicle, vowel and segment (classes put together to two), clean and with 20% of the labels flipped.

    Attributes
    ----------
    shares : tuple of float
        Values of nu that are tried, as shares of the largest useful one, largest first: each starts from the rules of
        the one before.
    folds, repeats, few : int
        Folds of the cross-validation, and how often it is done with fewer than ``few`` observations.
    gap : float
        Relative gap of the soft margin at which a trial ends: the error no longer depends on what is missing.
    n_columns : int
        Classifiers that a round of a trial may add.
    worse, patience : float, int
        After so many values of nu in turn with an error larger by more than this share, smaller ones are given up.
    chance : float
        A longer order must save so many times the square root of the mistakes of the shorter ones.
    share : float
        Part of the time limit that the search may take.
    """

    shares: tuple[float, ...] = (0.95, 0.85, 0.75, 0.65, 0.55, 0.45, 0.35, 0.25, 0.15, 0.08)
    folds: int = 5
    repeats: int = 2
    few: int = 300
    gap: float = 0.1
    n_columns: int = 20
    worse: float = 0.1
    patience: int = 2
    chance: float = 0.5
    share: float = 0.7


@dataclass
class Program:
    """The observations of one program and how it is solved, for any nu and order.

    ``oracle_of`` makes the base learner for observations and an order; with ``k`` classes > 2 it is a
    :class:`.joint.ClassOracle`.
    """

    data: Observations
    oracle_of: Callable[[Observations, int], Oracle]
    k: int = 2

    def __post_init__(self) -> None:
        self._oracles: dict[int, Oracle] = {}

    def solve(self, order: int, nu: float, **options: object) -> lpboost.LPBoostResult:
        """Solve with :func:`.lpboost.solve` or :func:`.joint.solve`."""
        if order not in self._oracles:
            self._oracles[order] = self.oracle_of(self.data, order)
        oracle = self._oracles[order]
        if isinstance(oracle, joint.ClassOracle):
            return joint.solve(oracle, nu, **options)
        return lpboost.solve(self.data, oracle, nu, **options)

    def mistakes(self, columns: Sequence[Column], weights: NDArray, test: Observations) -> float:
        """Weight of the test observations that the vote gets wrong; ties go to the largest class of the program."""
        if self.k > 2:
            share = np.bincount(self.data.y, self.data.weight, minlength=self.k) / self.data.total
            given = (joint.scores(columns, weights, test.X, self.k) + 1e-12 * share).argmax(axis=1)
        else:
            score = np.zeros(test.y.size)
            for column, weight in zip(columns, weights):
                if weight > 0:
                    score += weight * answers(column, test.X)
            given = np.where(np.abs(score) < 1e-12, self.data.majority, np.sign(score))
        return float(test.weight @ (given != test.y))

    @property
    def largest_nu(self) -> float:
        """From here on the constant vote for the largest class has a positive soft margin: twice all others' share."""
        _, code = np.unique(self.data.y, return_inverse=True)
        return min(1.0, 2.0 * (1.0 - float(np.bincount(code, self.data.weight).max()) / self.data.total))

    def folds(self, settings: Settings, seed: int) -> Iterator[tuple[Program, Observations]]:
        """Programs over parts of the observations, with what is held out; none if a class is too small for that."""
        least = int(np.unique(self.data.y, return_counts=True)[1].min())
        folds = min(settings.folds, max(least, 2)) if self.k > 2 else min(settings.folds, least)
        if folds < 2:
            return
        for repeat in range(settings.repeats if self.data.y.size < settings.few else 1):
            splitter = StratifiedKFold(folds, shuffle=True, random_state=seed + repeat)
            for train, test in splitter.split(self.data.X, self.data.y):
                yield Program(self.data.subset(train), self.oracle_of, self.k), self.data.subset(test)


class Choice(NamedTuple):
    """An order, a nu, and the share of held-out weight that they get wrong; nan if nothing was held out."""

    order: int
    nu: float
    error: float = np.nan


def choose(
    program: Program,
    orders: Sequence[int],
    nus: Sequence[float] | None,
    seed: int,
    time_limit: float,
    settings: Settings | None = None,
) -> Choice:
    """Cross-validate orders and values of nu; of nearly equal ones the lower order and the larger nu: shorter models.

    Where nothing can be held out, or the time is over at once, the first order and nu = 1/2 are taken.
    """
    settings = settings or Settings()
    limit = program.largest_nu
    values = [share * limit for share in settings.shares] if nus is None else list(nus)
    clock = Clock(settings.share * time_limit)
    best = np.inf, orders[0], values[0] if nus is not None else 0.5
    parts = list(program.folds(settings, seed))
    tested = sum(test.total for _, test in parts)
    for order in orders if parts and len(orders) * len(values) > 1 else ():
        starts: list[list[Column]] = [[] for _ in parts]
        best_here, since = np.inf, 0
        for nu in values:
            mistakes = 0.0
            for k, (part, test) in enumerate(parts):
                result = part.solve(
                    order, nu, time_limit=max(0.0, clock.left), start=starts[k], gap=settings.gap,
                    n_columns=settings.n_columns, proof=False,
                )  # fmt: skip
                mistakes += part.mistakes(result.columns, result.weights, test)
                starts[k] = [c for c, weight in zip(result.columns, result.weights) if weight > 0]
            if clock.is_over and best[0] < np.inf:
                return Choice(best[1], best[2], best[0] / tested)
            # a longer order has to save more mistakes than chance may
            chance = 0.0 if order == orders[0] or order == best[1] else settings.chance * float(np.sqrt(best[0]))
            if mistakes < best[0] - chance:
                best = mistakes, order, nu
            best_here = min(best_here, mistakes)
            since = since + 1 if mistakes > (1.0 + settings.worse) * best_here else 0
            if since >= settings.patience:
                break
    return Choice(best[1], best[2], best[0] / tested if best[0] < np.inf else np.nan)
