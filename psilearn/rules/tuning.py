"""The nu and the order of LP-Boost with the smallest held-out loss.

nu bounds the share of margin errors: far below twice the error rate of the best vote the largest soft margin is 0 and
the model constant or led by the wrong labels; above twice the error rate of the best single rule it is that rule alone.
All other models belong to an interval of nu that may be small. So they are found along the prices of
:mod:`.penalised`, and nu follows from the price. Held-out errors of a few hundred observations are too coarse to tell
neighbours apart; the logistic loss of the margins is not, and a few wrong labels change it little.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp
from sklearn.model_selection import StratifiedKFold

from ..core.solving import Clock
from . import joint, lpboost
from .large import near
from .large.cut_points import CutPointOracle
from .observations import Observations
from .penalised import Step, VotePath
from .pricing.oracles import Column, MonomialOracle, Oracle, answers

#: Observations of two classes above which programs over rules are rounded first.
MANY = 5000


@dataclass(frozen=True)
class Settings:
    """How nu and the order are searched for.

    Attributes
    ----------
    strengths : tuple of float
        Prices C M of a missing margin that are tried with two classes (with k, k / 2 times as large), smallest first:
        each starts from the rules of the one before.
    folds, repeats, few : int
        Folds of the cross-validation, and how often it is done with fewer than ``few`` observations.
    gap : float
        Relative gap at which a trial ends: the error no longer depends on what is missing.
    n_columns : int
        Classifiers that a round of a trial may add.
    widest : int
        Where the time is too short for all prices, every second to every ``widest`` one is tried.
    useless : float
        Part of the mistakes of a constant model from which on a search that was stopped has found nothing.
    scales : tuple of float
        Factors of the margins (in units of the one asked for) in the logistic loss; the best one counts.
    worse, patience : float, int
        After so many prices in turn with a loss larger by more than this share, larger ones are given up. Models of
        one cut point (no more rules than classes) do not count: their votes are all alike, and their loss is large for
        that alone.
    chance : float
        A longer order must save so many times the square root of the mistakes of the shorter ones.
    share : float
        Part of the time limit that the search may take.
    rows : int
        Of more observations than these, a random part is searched.
    """

    strengths: tuple[float, ...] = tuple(2.0 * 1.25**k for k in range(26))
    folds: int = 5
    repeats: int = 2
    few: int = 300
    gap: float = 0.05
    n_columns: int = 20
    widest: int = 4
    useless: float = 0.8
    scales: tuple[float, ...] = (0.5, 1.0, 2.0, 4.0)
    worse: float = 0.1
    patience: int = 3
    chance: float = 0.5
    share: float = 0.7
    rows: int = 5000


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

    def oracle(self, order: int) -> Oracle:
        """The base learner up to an order, made once."""
        if order not in self._oracles:
            self._oracles[order] = self.oracle_of(self.data, order)
        return self._oracles[order]

    def solve(self, order: int, nu: float, **options: Any) -> lpboost.LPBoostResult:
        """Solve with :func:`.lpboost.solve` or :func:`.joint.solve`."""
        oracle = self.oracle(order)
        if isinstance(oracle, joint.ClassOracle):
            return joint.solve(oracle, nu, **options)
        if self.is_rounded(order):
            return near.solve(self.data, oracle, nu, **options)
        return lpboost.solve(self.data, oracle, nu, **options)

    @property
    def error_of_constant(self) -> float:
        """Share of the weight that is not of the largest class."""
        _, place = np.unique(self.data.y, return_inverse=True)
        return 1.0 - float(np.bincount(place, self.data.weight).max()) / self.data.total

    def is_rounded(self, order: int) -> bool:
        """Whether it is solved by :mod:`.large.near`."""
        return self.data.y.size > MANY and isinstance(self.oracle(order), MonomialOracle | CutPointOracle)

    def path(self, order: int, gap: float, n_columns: int) -> VotePath:
        """The models for growing prices."""
        return VotePath(self.data, self.oracle(order), gap, n_columns)

    def prices(self, settings: Settings) -> list[float]:
        """The prices that are tried: as many classes as there are share the votes."""
        return [0.5 * self.k * strength for strength in settings.strengths]

    def scores(self, columns: Sequence[Column], weights: NDArray, test: Observations) -> NDArray[np.float64]:
        """Scores of the test observations: of the second class, (m,), or with more than two of all, (m, k)."""
        if self.k > 2:
            return joint.scores(columns, weights, test.X, self.k)
        score = np.zeros(test.y.size)
        for column, weight in zip(columns, weights):
            if weight > 0:
                score += weight * answers(column, test.X)
        return score

    def mistakes(self, columns: Sequence[Column], weights: NDArray, test: Observations) -> float:
        """Weight of the test observations that the vote gets wrong; ties go to the largest class of the program."""
        score = self.scores(columns, weights, test)
        if self.k > 2:
            share = np.bincount(self.data.y, self.data.weight, minlength=self.k) / self.data.total
            given = (score + 1e-12 * share).argmax(axis=1)
        else:
            given = np.where(np.abs(score) < 1e-12, self.data.majority, np.sign(score))
        return float(test.weight @ (given != test.y))

    def losses(self, step: Step | None, test: Observations, scales: Sequence[float]) -> NDArray[np.float64]:
        """Logistic loss of the test observations, their scores in units of the margin asked for, times each scale."""
        if step is None:
            return np.full(len(scales), np.log(self.k) * test.total)
        score = np.multiply.outer(scales, self.scores(step.columns, step.weights, test) / step.margin)
        if self.k == 2:
            return np.logaddexp(0.0, -test.y * score) @ test.weight
        return (logsumexp(score, axis=2) - score[:, np.arange(test.y.size), test.y]) @ test.weight

    def sample(self, most: int, seed: int) -> Program:
        """The program of ``most`` observations chosen at random and one of each class; itself if there are no more."""
        if self.data.y.size <= most:
            return self
        chosen = np.random.default_rng(seed).permutation(self.data.y.size)[:most]
        rows = np.union1d(chosen, np.unique(self.data.y, return_index=True)[1])
        return Program(self.data.subset(rows), self.oracle_of, self.k)

    def column(self, column: Column) -> Column:
        """The same classifier with its answers on these observations."""
        if self.k > 2:
            return column._replace(h=joint.vote_of(column).covers(self.data.X).astype(np.float64))
        return column._replace(h=answers(column, self.data.X))

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
    """An order with a nu or a price C M, and the share of held-out weight that they get wrong; nan if there is none."""

    order: int
    nu: float | None = None
    strength: float | None = None
    error: float = np.nan


class Trial(NamedTuple):
    """Held-out loss and mistakes of an order and a nu or price."""

    loss: float
    mistakes: float
    order: int
    value: float


Parts = list[tuple[Program, Observations]]


def choose(
    program: Program,
    orders: Sequence[int],
    nu: float | None,
    seed: int,
    time_limit: float,
    settings: Settings | None = None,
) -> Choice:
    """Cross-validate orders and, with ``nu=None``, prices by their logistic loss, while longer orders lower it.

    Where nothing can be held out, or the time is over before a model says much more than the largest class, the first
    order and nu = 1/2 are taken.
    """
    settings = settings or Settings()
    clock = Clock(settings.share * time_limit)
    parts = list(program.sample(settings.rows, seed).folds(settings, seed))
    tested = sum(test.total for _, test in parts)
    best: Trial | None = None
    for order in orders if parts else ():
        trials = _prices(parts, order, settings, clock) if nu is None else _given(parts, order, nu, settings, clock)
        found = min(trials, key=lambda trial: trial.loss, default=None)
        if found is None or (clock.is_over and best is not None):
            break
        is_better = best is None or found.loss < best.loss
        if best is None or _is_worth_it(found, best, settings):
            best = found
        if clock.is_over or not is_better:
            break
    is_early = nu is None and clock.is_over
    if best is None or (is_early and best.mistakes > settings.useless * tested * program.error_of_constant):
        return Choice(orders[0], 0.5 if nu is None else nu)
    given = {"strength": best.value} if nu is None else {"nu": nu}
    return Choice(best.order, error=best.mistakes / tested, **given)


def _is_worth_it(longer: Trial, shorter: Trial, settings: Settings) -> bool:
    """Whether a longer order saves more mistakes than chance may."""
    return longer.mistakes < shorter.mistakes - settings.chance * float(np.sqrt(shorter.mistakes))


def _prices(parts: Parts, order: int, settings: Settings, clock: Clock) -> Iterator[Trial]:
    """Trials of growing prices, until the loss has grown for a while or the time is over."""
    paths = [part.path(order, settings.gap, settings.n_columns) for part, _ in parts]
    prices, place = parts[0][0].prices(settings), 0
    least, since = np.inf, 0
    while place < len(prices):
        strength, began = prices[place], clock.seconds
        steps = [path.step(strength, max(0.0, clock.left)) for path in paths]
        if clock.is_over:
            return
        missing = (clock.seconds - began) * (len(prices) - place) / clock.left
        place += max(1, min(settings.widest, int(missing)))
        trial = _trial(parts, steps, order, strength, settings)
        yield trial
        if np.median([len(step.columns) if step else 0 for step in steps]) <= parts[0][0].k:
            continue
        least = min(least, trial.loss)
        since = since + 1 if trial.loss > (1.0 + settings.worse) * least else 0
        if since >= settings.patience:
            return


def _given(parts: Parts, order: int, nu: float, settings: Settings, clock: Clock) -> Iterator[Trial]:
    """The trial of one nu."""
    steps = []
    for part, _ in parts:
        found = part.solve(
            order, nu, time_limit=max(0.0, clock.left), gap=settings.gap, n_columns=settings.n_columns, proof=False
        )
        steps.append(Step(found.columns, found.weights, max(found.margin, 1e-3), nu))
    if not clock.is_over:
        yield _trial(parts, steps, order, nu, settings)


def _trial(parts: Parts, steps: Sequence[Step | None], order: int, value: float, settings: Settings) -> Trial:
    losses, mistakes = np.zeros(len(settings.scales)), 0.0
    for (part, test), step in zip(parts, steps):
        losses += part.losses(step, test, settings.scales)
        mistakes += part.mistakes(step.columns if step else [], step.weights if step else np.empty(0), test)
    return Trial(float(losses.min()), mistakes, order, value)


def model_of(
    program: Program, choice: Choice, seed: int, time_limit: float, settings: Settings | None = None
) -> Step | None:
    """The model of a chosen price, or of a nu, for all observations, or for a random part of very many.

    None if time is over, or if a given nu can be solved for at once.
    """
    settings, clock = settings or Settings(), Clock(time_limit)
    part = program.sample(settings.rows, seed)
    if choice.strength is None:
        return None if part is program or program.is_rounded(choice.order) else _of_nu(part, choice, clock, settings)
    path, step = part.path(choice.order, 1e-6, settings.n_columns), None
    for strength in program.prices(settings):
        step = path.step(strength, max(0.0, clock.left), strength == choice.strength)
        if strength == choice.strength or clock.is_over:
            break
    return None if clock.is_over else step


def _of_nu(part: Program, choice: Choice, clock: Clock, settings: Settings) -> Step | None:
    """The model of a given nu for a part of the observations."""
    assert choice.nu is not None
    found = part.solve(
        choice.order, choice.nu, time_limit=max(0.0, clock.left), gap=settings.gap, n_columns=settings.n_columns,
        proof=False,
    )  # fmt: skip
    used = np.flatnonzero(found.weights > 0)
    columns = [found.columns[k] for k in used]
    return Step(columns, found.weights[used], found.margin, choice.nu) if used.size else None


def solve(
    program: Program, choice: Choice, seed: int, time_limit: float, settings: Settings | None = None, **options: Any
) -> lpboost.LPBoostResult:
    """Solve LP-Boost for a choice, from the rules of :func:`model_of`; the options are those of the solver."""
    settings, clock = settings or Settings(), Clock(time_limit)
    model = model_of(program, choice, seed, settings.share * time_limit, settings)
    nu = choice.nu or (model.nu if model else 0.5)
    if model is not None:
        options |= {"start": [program.column(column) for column in model.columns], "start_weights": model.weights}
    return program.solve(choice.order, nu, time_limit=max(0.0, clock.left), **options)
