"""Short lists: the soft margin of LP-Boost with at most so many rules, and with whole numbers of points.

A list of m rules is grown one rule at a time: the multipliers of the program over the present rules ask the pricing
search for candidates, and the one that is best after all weights are computed anew is kept. Then rules are exchanged:
one leaves, the pricing search offers others, until no exchange helps. That is a local search; what it finds is bounded
from above by the program over all rules without a limit on their number.

Points: weights are replaced by whole numbers of at most P. Every way of rounding s lambda up or down is tried, for a
range of scales s, and the one with the smallest logistic loss of p / s is taken; a mistake or a tie weighs
as much as the loss of a score of 0 in addition.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import expit

from ..core.solving import Clock
from ..engines.highs import HighsSession
from . import joint, lpboost
from .observations import Observations
from .pricing.oracles import Column, Oracle

#: Weights not above this are rounding noise: the rule is not used. Newton's method ends at slopes below the second.
_NOISE, _SLOPE = 1e-9, 1e-8
_NEWTON_STEPS = 50


@dataclass(frozen=True)
class Settings:
    """How hard the search tries.

    Attributes
    ----------
    n_candidates : int
        Offers of the pricing search that are tried for each place in the list.
    n_scales, n_roundings : int
        Scales of the points that are tried, and ways of rounding at each (of so many rules with the largest fractions).
    improvement : float
        Least gain of the mean loss, or of the soft margin, that counts as one.
    ridge : float
        Curvature added to the mean loss: weights stay finite where a rule makes no mistake.
    """

    n_candidates: int = 12
    n_scales: int = 24
    n_roundings: int = 10
    improvement: float = 1e-6
    ridge: float = 1e-4


class Fitted(NamedTuple):
    """Columns with positive weights of sum 1, what was maximised, and the multipliers (observations, rivals) of it."""

    columns: list[Column]
    weights: NDArray[np.float64]
    objective: float
    w: NDArray[np.float64]


class Task(Protocol):
    """Margins of rules and offers of the pricing search, for two or more classes."""

    data: Observations

    def margins(self, columns: Sequence[Column]) -> NDArray[np.float64]:
        """Contribution of each column to each margin: (observations, rivals, columns)."""

    def offers(self, w: NDArray, n_columns: int) -> list[Column]:
        """Columns of largest edge."""

    def constants(self) -> list[Column]:
        """The constant rules."""


@dataclass
class TwoClasses:
    """The rules of :mod:`.lpboost`."""

    data: Observations
    oracle: Oracle

    def margins(self, columns: Sequence[Column]) -> NDArray[np.float64]:
        """See :class:`Task`."""
        answers = np.column_stack([column.h for column in columns])
        return np.asarray(self.data.y[:, None] * answers, dtype=np.float64)[:, None, :]

    def constants(self) -> list[Column]:
        """See :class:`Task`."""
        return self.oracle.constants()

    def offers(self, w: NDArray, n_columns: int) -> list[Column]:
        """See :class:`Task`."""
        return self.oracle.offer(w[:, 0], None, -np.inf, n_columns, np.inf, False).columns


@dataclass
class SeveralClasses:
    """The rules of :mod:`.joint`."""

    data: Observations
    oracle: joint.ClassOracle

    def _rivals(self) -> NDArray[np.intp]:
        return (self.data.y[:, None] + 1 + np.arange(self.oracle.k - 1)) % self.oracle.k

    def margins(self, columns: Sequence[Column]) -> NDArray[np.float64]:
        """See :class:`Task`; the rivals are the other classes."""
        target = np.array([joint.vote_of(column).target for column in columns])
        covers = np.column_stack([column.h for column in columns])
        own = (target == self.data.y[:, None]).astype(np.float64)
        return covers[:, None, :] * (own[:, None, :] - (target == self._rivals()[:, :, None]))

    def constants(self) -> list[Column]:
        """See :class:`Task`."""
        return self.oracle.constants()

    def offers(self, w: NDArray, n_columns: int) -> list[Column]:
        """See :class:`Task`."""
        of_classes = np.zeros((w.shape[0], self.oracle.k))
        np.put_along_axis(of_classes, self._rivals(), w, axis=1)
        return self.oracle.offer(of_classes, None, -np.inf, n_columns, np.inf, False).columns[:n_columns]


class Groups(NamedTuple):
    """Margins (groups, rivals, columns) of observations with equal answers of all columns, their weights and places."""

    A: NDArray[np.float64]
    weight: NDArray[np.float64]
    place: NDArray[np.intp]


def groups_of(task: Task, columns: Sequence[Column]) -> Groups:
    """Observations that no column tells apart count as one."""
    A = task.margins(columns)
    _, first, place = np.unique(A.reshape(len(A), -1), axis=0, return_index=True, return_inverse=True)
    place = place.ravel()
    return Groups(A[first], np.bincount(place, task.data.weight).astype(np.float64), place)


def fit(task: Task, columns: list[Column], ridge: float) -> Fitted:
    """Non-negative weights of smallest logistic loss of all margins, by Newton's method on those that are not at 0.

    The soft margin is not smooth: there are points where no single further rule helps but two would. This loss is.
    """
    groups = groups_of(task, columns)
    A, m = groups.A.reshape(-1, len(columns)), np.repeat(groups.weight / task.data.total, groups.A.shape[1])
    lam = np.zeros(len(columns))
    value = _logistic(A, m, lam, ridge)
    for _ in range(_NEWTON_STEPS):
        share = m * expit(-(A @ lam))
        slope = ridge * lam - share @ A
        free = (lam > 0) | (slope < 0)
        if np.abs(slope[free]).max(initial=0.0) < _SLOPE:
            break
        curved = (A[:, free] * (share * expit(A @ lam))[:, None]).T @ A[:, free]
        step = np.zeros_like(lam)
        step[free] = np.linalg.solve(curved + ridge * np.identity(int(free.sum())), slope[free])
        length = 1.0
        while length > _SLOPE:
            trial = np.maximum(lam - length * step, 0.0)
            reached = _logistic(A, m, trial, ridge)
            if reached < value:
                break
            length /= 2
        else:
            break
        lam, value = trial, reached
    used = np.flatnonzero(lam > _NOISE)
    used = used if used.size else np.array([0])
    lam = lam if lam[used].any() else np.ones_like(lam)
    share = expit(-(groups.A @ lam))[groups.place] * task.data.weight[:, None]
    return Fitted([columns[k] for k in used], lam[used], -value, share / share.sum())


def _logistic(A: NDArray, m: NDArray, lam: NDArray, ridge: float) -> float:
    return float(m @ np.logaddexp(0.0, -(A @ lam)) + 0.5 * ridge * lam @ lam)


def softest(task: Task, present: Fitted, nu: float) -> Fitted:
    """The columns of a list with the weights of largest soft margin."""
    groups = groups_of(task, present.columns)
    D, (n, r, c) = 1.0 / (nu * task.data.total), groups.A.shape
    session = HighsSession()
    session.add_columns(np.zeros(n * r), 0.0, np.repeat(D * groups.weight, r))
    session.add_columns([1.0], -np.inf)
    session.add_rows(np.append(np.ones(n * r), 0.0), 1.0, 1.0)
    place = session.add_rows(np.column_stack([groups.A.reshape(-1, c).T, np.full(c, -1.0)]), -np.inf, 0.0)
    if r > 1:
        together = sp.kron(sp.identity(n), np.ones((1, r)))
        session.add_rows(sp.hstack([together, sp.csr_matrix((n, 1))]), 0.0, D * groups.weight)
    lam = np.clip(-session.solve().row_dual[place], 0.0, None)
    used = np.flatnonzero(lam > _NOISE)
    weights = lam[used] / lam[used].sum()
    return Fitted(
        [present.columns[k] for k in used], weights, soft_margin_of(groups.A[:, :, used], weights, groups, D), present.w
    )


def suitable_nu(task: Task, present: Fitted) -> float:
    """A little more than twice the share of mistakes: with less, the largest soft margin of so few rules may be 0."""
    share = mistakes(task, present) / task.data.total
    return min(1.0, max(2.2 * share, 2.0 * float(task.data.weight.min()) / task.data.total))


def mistakes(task: Task, present: Fitted) -> float:
    """Weight of the observations that a list gets wrong; ties are wrong."""
    groups = groups_of(task, present.columns)
    return float(groups.weight[(groups.A @ present.weights).min(axis=1) <= _NOISE].sum())


def soft_margin_of(A: NDArray, weights: NDArray, groups: Groups, D: float) -> float:
    """Soft margin of weights of sum 1 over columns with margins A."""
    return lpboost.soft_margin((A @ weights).min(axis=1), groups.weight, D)[1]


def grow(task: Task, max_rules: int, time_limit: float = np.inf, settings: Settings | None = None) -> Iterator[Fitted]:
    """Yield the list of smallest logistic loss found for each number of rules up to ``max_rules``.

    Constants count as rules. The end comes early if no further rule helps; a length may be left out.
    """
    settings, clock = settings or Settings(), Clock(time_limit)
    constants = task.constants()
    present = max((fit(task, [column], settings.ridge) for column in constants), key=lambda found: found.objective)
    yield present
    while len(present.columns) < max_rules and not clock.is_over:
        longer = _extended(task, present, max_rules, constants, settings)
        if longer is None:
            return
        present = exchanged(task, longer, max_rules, clock, settings)
        yield present


def _extended(task: Task, present: Fitted, most: int, constants: list[Column], settings: Settings) -> Fitted | None:
    """The best list with one of the offered rules more, and with any constants, None if none is better."""
    known = {column.key for column in present.columns}
    free = [column for column in constants if column.key not in known]
    w = fit(task, [*present.columns, *free], settings.ridge).w
    offered = [column for column in task.offers(w, settings.n_candidates) if column.key not in known]
    fits = [
        fit(task, [*present.columns, column, *others], settings.ridge) for column in offered for others in (free, [])
    ]
    longer = [found for found in fits if len(found.columns) <= most]
    best = max(longer, key=lambda found: found.objective, default=None)
    if best is None or best.objective <= present.objective + settings.improvement:
        return None
    return best


def exchanged(task: Task, present: Fitted, most: int, clock: Clock, settings: Settings | None = None) -> Fitted:
    """Exchange one rule at a time for a better one until none is; the list does not become longer."""
    settings, constants, improved = settings or Settings(), task.constants(), True
    while improved and not clock.is_over:
        improved = False
        for k in np.argsort(present.weights, kind="stable").tolist():
            rest = present.columns[:k] + present.columns[k + 1 :]
            if not rest or clock.is_over:
                continue
            better = _extended(
                task, fit(task, rest, settings.ridge), min(most, len(present.columns)), constants, settings
            )
            if better is not None and better.objective > present.objective + settings.improvement:
                present, improved = better, True
                break
    return present


def rounded(task: Task, present: Fitted, points: int, settings: Settings | None = None) -> Fitted:
    """Whole numbers of points, at most ``points`` each, near the weights; the weights returned are these numbers."""
    settings = settings or Settings()
    groups = groups_of(task, present.columns)
    A, m = groups.A.reshape(-1, present.weights.size), np.repeat(groups.weight, groups.A.shape[1])
    size = float(minimize_scalar(lambda t: _logistic(A, m, np.exp(t) * present.weights, 0.0), bounds=(-3, 6)).x)
    real = np.exp(size) * present.weights
    best = np.inf, np.ones(real.size)
    for scale in np.unique(np.linspace(1.0, points, settings.n_scales)):
        unit = float(real.max()) / scale
        P = _roundings(real / unit, settings.n_roundings)
        P = P[(P.max(axis=1) > 0) & (P.max(axis=1) <= points)]
        margins = A @ P.T
        # ties, which the loss does not see, are mistakes
        wrong = (margins.reshape(*groups.A.shape[:2], -1).min(axis=1) < 0.5).T @ groups.weight
        loss = m @ np.logaddexp(0.0, -unit * margins) + math.log(2.0) * wrong
        if loss.size and loss.min() < best[0] * (1.0 - settings.improvement):
            best = float(loss.min()), P[np.argmin(loss)]
    used = np.flatnonzero(best[1] > 0)
    return Fitted([present.columns[k] for k in used], best[1][used], -best[0], present.w)


def _roundings(wanted: NDArray, most: int) -> NDArray[np.float64]:
    """All ways to round the ``most`` numbers farthest from whole ones up or down, the others to the nearest."""
    low = np.floor(wanted)
    far = np.argsort(np.abs(wanted - low - 0.5), kind="stable")[:most]
    ways = np.array(list(itertools.product((0.0, 1.0), repeat=far.size)))
    P = np.repeat(np.round(wanted)[None], len(ways), axis=0)
    P[:, far] = low[far] + ways
    return P
