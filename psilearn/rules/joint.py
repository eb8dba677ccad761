"""LP-Boost for k classes in one program: margins against the best rival class.

A rule (T, c) gives its weight lambda to class c where its condition T holds. With scores f_c = sum {lambda_u :
u = (T, c), x in T}, the program is that of two classes (:mod:`.lpboost`) with the margin min_r (f_y - f_r) over the
rivals r != y:

    max  rho - D sum_i m_i xi_i   subject to   f_{y_i}(x_i) - f_r(x_i) + xi_i >= rho for all i and r != y_i,
         sum lambda = 1,  xi, lambda >= 0,      D = 1 / (nu M).

Its dual has a multiplier w_ir for each observation and rival,

    min  beta   subject to   sum_i [x_i in T] v_i^c <= beta for all (T, c),   v_i^c = [c = y_i] sum_r w_ir - w_ic,
         sum w = 1,   sum_r w_ir <= D m_i,   w >= 0.

Classifiers (rows) come from pricing, once for each class c, and rivals (columns) as their margins turn out violated.
Multipliers of rivals that are absent are 0, so that every w bounds the optimum: by the largest edge of any rule.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from ..engines.highs import HighsSession
from .lpboost import (
    NOISE,
    LPBoostResult,
    answered,
    generate,
    multipliers,
    price_of_slack,
    soft_margin,
    weights_of,
)  # fmt: skip
from .observations import Observations
from .pricing.data import Attributes, Monomial, Pairs
from .pricing.oracles import Column, Offer
from .pricing.search import price, price_greedily


class Vote(NamedTuple):
    """A conjunction of literals (as in :class:`.pricing.data.Monomial`) that votes for a class."""

    literals: tuple[int, ...]
    target: int

    @property
    def order(self) -> int:
        """Number of literals."""
        return len(self.literals)

    def covers(self, A: NDArray) -> NDArray[np.bool_]:
        """Whether each row of the 0/1 matrix A satisfies all literals."""
        return Monomial(self.literals, 1).covers(A)


def vote_of(column: Column) -> Vote:
    """The vote that a column stands for."""
    return cast(Vote, column.key)


def scores(columns: Sequence[Column], weights: NDArray, X: NDArray, k: int) -> NDArray[np.float64]:
    """Sum of the votes for each class, (n, k)."""
    total = np.zeros((len(X), k))
    for column, weight in zip(columns, weights):
        if weight > 0:
            vote = vote_of(column)
            total[:, vote.target] += weight * vote.covers(X)
    return total


def scores_of(columns: Sequence[Column], weights: NDArray, k: int) -> NDArray[np.float64]:
    """The same on the observations the columns were made for."""
    total = np.zeros((columns[0].h.size, k))
    for column, weight in zip(columns, weights):
        if weight > 0:
            total[:, vote_of(column).target] += weight * column.h
    return total


def margins_of(score: NDArray, y: NDArray) -> NDArray[np.float64]:
    """Score of the own class less that of every other, (m, k); inf in the column of the own class."""
    rows = np.arange(y.size)
    margins = score[rows, y][:, None] - score
    margins[rows, y] = np.inf
    return margins


@dataclass
class ClassOracle:
    """All votes of monomials up to order ``max_order`` for one of ``k`` classes, priced exactly."""

    data: Observations
    k: int
    max_order: int = 1

    def __post_init__(self) -> None:
        self.attributes = Attributes(self.data.X, np.ones(self.data.y.size))

    def column(self, vote: Vote) -> Column:
        """The column of a vote."""
        return Column(vote, vote.covers(self.data.X).astype(np.float64), 0.0)

    def constants(self) -> list[Column]:
        """A vote for each class under no condition."""
        return [self.column(Vote((), c)) for c in range(self.k)]

    def edges(self, w: NDArray) -> NDArray[np.float64]:
        """v of all observations and classes, (m, k)."""
        v = -w
        v[np.arange(self.data.y.size), self.data.y] += w.sum(axis=1)
        return v

    def offer(
        self, weight: NDArray, pairs: Pairs | None, threshold: float, n_columns: int, time_limit: float = math.inf,
        proof: bool = True,
    ) -> Offer:  # fmt: skip
        """See :class:`.pricing.oracles.Oracle`; ``weight`` is w as (m, k), and each class is priced on its own."""
        found: list[tuple[float, Column]] = []
        bound, nodes = threshold, 0
        for c, value in enumerate(self.edges(weight).T):
            signed, sizes = self.attributes.labelled(value), np.abs(value)
            if proof or self.max_order <= 2:
                priced = price(
                    signed, sizes, pairs, max_order=self.max_order, n_columns=n_columns, threshold=threshold,
                    signs=(1,), time_limit=time_limit / self.k,
                )  # fmt: skip
            else:
                priced = price_greedily(signed, sizes, self.max_order, None, n_columns, threshold, signs=(1,))
            bound, nodes = max(bound, priced.bound), nodes + priced.n_nodes
            votes = (self.column(Vote(monomial.literals, c)) for monomial in priced.monomials)
            found += zip(priced.values.tolist(), votes)
        best = sorted(found, key=lambda pair: -pair[0])[: max(n_columns, self.k)]
        return Offer([column for _, column in best], np.array([value for value, _ in best]), bound, nodes)


class JointMaster:
    """The dual program over the classifiers and rivals so far, kept warm; ``unit_margins`` as for two classes."""

    def __init__(self, data: Observations, k: int, D: float, unit_margins: bool = False) -> None:
        m = data.y.size
        self.data, self.k, self.D, self.unit_margins = data, k, D, unit_margins
        self.session = HighsSession()
        self.session.add_columns([1.0], *((1.0, 1.0) if unit_margins else (-np.inf, np.inf)))
        self.session.add_rows([[0.0]], *((-np.inf, np.inf) if unit_margins else (1.0, 1.0)))
        self.columns: list[Column] = []
        self.classifier_row = np.empty(0, np.intp)
        self.row_of = np.full(m, -1)
        self.who, self.rival = np.empty(0, np.intp), np.empty(0, np.intp)
        self.place = np.empty(0, np.intp)
        common = np.argsort(-np.bincount(data.y, data.weight, minlength=k), kind="stable")[:2]
        self.add_rivals(np.arange(m), np.where(data.y == common[0], common[1], common[0]))

    def set_price(self, D: float) -> None:
        """Change the largest multiplier of an observation of weight 1."""
        self.D = D
        self.session.change_column_bounds(self.place, 0.0, D * self.data.weight[self.who])
        several = np.flatnonzero(self.row_of >= 0)
        self.session.change_row_bounds(self.row_of[several], -np.inf, D * self.data.weight[several])

    def _answers(self, columns: Sequence[Column], who: NDArray, rival: NDArray) -> NDArray:
        """Contributions of classifiers to the margins of observations against rivals."""
        targets = np.array([vote_of(column).target for column in columns])[:, None]
        covers = np.array([column.h[who] for column in columns])
        return covers * ((targets == self.data.y[who]).astype(np.float64) - (targets == rival))

    def add(self, columns: list[Column]) -> None:
        """Add a row for each classifier."""
        rows = np.zeros((len(columns), self.session.n_cols))
        rows[:, 0] = -1.0
        rows[:, self.place] = self._answers(columns, self.who, self.rival)
        self.classifier_row = np.r_[self.classifier_row, self.session.add_rows(rows, -np.inf, 0.0)]
        self.columns += columns

    def add_rivals(self, who: NDArray, rival: NDArray) -> None:
        """Add a multiplier for each margin of an observation against a rival, one at most of each observation."""
        entries = np.zeros((self.session.n_rows, who.size))
        entries[0] = 1.0
        if self.columns:
            entries[self.classifier_row] = self._answers(self.columns, who, rival)
        has_row = np.flatnonzero(self.row_of[who] >= 0)
        entries[self.row_of[who[has_row]], has_row] = 1.0
        weight = self.D * self.data.weight
        place = self.session.add_columns(
            np.full(who.size, -1.0 if self.unit_margins else 0.0), 0.0, weight[who], entries
        )
        second = np.intersect1d(who[self.row_of[who] < 0], self.who)
        self.who, self.rival = np.r_[self.who, who], np.r_[self.rival, rival]
        self.place = np.r_[self.place, place]
        if second.size:
            rows = np.zeros((second.size, self.session.n_cols))
            mine = np.flatnonzero(np.isin(self.who, second))
            rows[np.searchsorted(second, self.who[mine]), self.place[mine]] = 1.0
            self.row_of[second] = self.session.add_rows(rows, -np.inf, weight[second])

    def slack(self, lam: NDArray) -> tuple[NDArray, NDArray]:
        """See :class:`.lpboost.Master`; the multipliers are those of the worst rivals."""
        margins = margins_of(scores_of(self.columns, lam, self.k), self.data.y)
        lowest, worst = margins.min(axis=1), margins.argmin(axis=1)
        w = np.zeros_like(margins)
        w[np.arange(worst.size), worst] = multipliers(lowest, self.data.weight, self.D)
        return lowest, w

    def grow(self, lam: NDArray) -> tuple[NDArray, int]:
        """See :class:`.lpboost.Master`: add the worst rival where a margin is smaller than against those present."""
        margins = margins_of(scores_of(self.columns, lam, self.k), self.data.y)
        present = np.full(margins.shape[0], np.inf)
        np.minimum.at(present, self.who, margins[self.who, self.rival])
        rho = 1.0 if self.unit_margins else soft_margin(present, self.data.weight, self.D)[0]
        worst = margins.argmin(axis=1)
        lowest = margins[np.arange(worst.size), worst]
        violated = np.flatnonzero((lowest < present - NOISE) & (lowest < rho - NOISE))
        if violated.size:
            self.add_rivals(violated, worst[violated])
        return lowest, int(violated.size)

    def solve(self, time_limit: float) -> tuple[NDArray, NDArray, float, bool]:
        """Return (w as (m, k), lambda, beta, whether solved to optimality)."""
        answer = answered(self.session, time_limit)
        w = np.zeros((self.data.y.size, self.k))
        w[self.who, self.rival] = np.clip(answer.x[self.place], 0.0, None)
        return w, weights_of(answer.row_dual[self.classifier_row]), float(answer.x[0]), answer.is_optimal


def solve(oracle: ClassOracle, nu: float = 0.5, **options: Any) -> LPBoostResult:
    """Solve the program over all rules of the oracle; options and result are those of :func:`.lpboost.solve`.

    ``evidence`` of the result is w as (m, k).
    """
    return generate(JointMaster(oracle.data, oracle.k, price_of_slack(oracle.data, nu)), oracle, nu, **options)
