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

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from ..core.result import Status
from ..core.solving import Clock
from ..engines.highs import HighsSession
from .lpboost import LPBoostResult, soft_margin
from .observations import Observations
from .pricing.oracles import Column
from .pricing.search import Attributes, Monomial, price, price_greedily

#: Multipliers of the engine below this are rounding noise; smaller violations of margins are none.
_NOISE = 1e-9


class Vote(NamedTuple):
    """A conjunction of literals (as in :class:`.pricing.search.Monomial`) that votes for a class."""

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

    def offer(self, w: NDArray, threshold: float, n_columns: int, time_limit: float, proof: bool) -> tuple:
        """Return columns of edge above ``threshold``, an upper bound on all edges (inf without proof), and nodes."""
        columns: list[tuple[float, Column]] = []
        bound, nodes = threshold, 0
        for c, value in enumerate(self.edges(w).T):
            signed = self.attributes.labelled(value)
            if proof:
                found = price(
                    signed, np.abs(value), max_order=self.max_order, n_columns=n_columns, threshold=threshold,
                    signs=(1,), time_limit=time_limit / self.k,
                )  # fmt: skip
            else:
                found = price_greedily(
                    signed, np.abs(value), self.max_order, None, n_columns, threshold, signs=(1,)
                )  # fmt: skip
            bound, nodes = max(bound, found.bound), nodes + found.n_nodes
            votes = (self.column(Vote(monomial.literals, c)) for monomial in found.monomials)
            columns += zip(found.values.tolist(), votes)
        best = sorted(columns, key=lambda pair: -pair[0])[: max(n_columns, self.k)]
        return [column for _, column in best], bound, nodes


class JointMaster:
    """The dual program over the classifiers and rivals so far, kept warm; with ``unit_margins`` that of
    :mod:`.penalised`."""

    def __init__(self, data: Observations, k: int, D: float, unit_margins: bool = False) -> None:
        m = data.y.size
        self.data, self.k, self.D = data, k, D
        self.cost = -1.0 if unit_margins else 0.0
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
        place = self.session.add_columns(np.full(who.size, self.cost), 0.0, weight[who], entries)
        second = np.intersect1d(who[self.row_of[who] < 0], self.who)
        self.who, self.rival = np.r_[self.who, who], np.r_[self.rival, rival]
        self.place = np.r_[self.place, place]
        if second.size:
            rows = np.zeros((second.size, self.session.n_cols))
            mine = np.flatnonzero(np.isin(self.who, second))
            rows[np.searchsorted(second, self.who[mine]), self.place[mine]] = 1.0
            self.row_of[second] = self.session.add_rows(rows, -np.inf, weight[second])

    def add_violated(self, margins: NDArray, rho: float | None = None) -> int:
        """Add the worst rival of observations whose margin against it is smaller than against those present.

        Margins above ``rho`` need none; None is the best rho for the rivals present.
        """
        present = np.full(margins.shape[0], np.inf)
        np.minimum.at(present, self.who, margins[self.who, self.rival])
        rho = soft_margin(present, self.data.weight, self.D)[0] if rho is None else rho
        worst = margins.argmin(axis=1)
        lowest = margins[np.arange(worst.size), worst]
        violated = np.flatnonzero((lowest < present - _NOISE) & (lowest < rho - _NOISE))
        if violated.size:
            self.add_rivals(violated, worst[violated])
        return int(violated.size)

    def solve(self, time_limit: float) -> tuple[NDArray, NDArray, float, bool]:
        """Return (w as (m, k), lambda, beta, whether solved to optimality)."""
        clock = Clock(time_limit)
        answer = self.session.solve(time_limit)
        if not answer.is_optimal and not clock.is_over:  # the engine lost its way from an old basis
            self.session.forget_basis()
            answer = self.session.solve(max(clock.left, 0.0))
        w = np.zeros((self.data.y.size, self.k))
        w[self.who, self.rival] = np.clip(answer.x[self.place], 0.0, None)
        dual = answer.row_dual[self.classifier_row]
        return w, np.where(dual < -_NOISE, -dual, 0.0), float(answer.x[0]), answer.is_optimal


def solve(
    oracle: ClassOracle,
    nu: float = 0.5,
    *,
    tol: float = 1e-9,
    n_columns: int = 10,
    max_iter: int = 10_000,
    time_limit: float = np.inf,
    start: Sequence[Column] = (),
    gap: float = 0.0,
    proof: bool = True,
) -> LPBoostResult:
    """Solve the program over all rules of the oracle; parameters and result are those of :func:`.lpboost.solve`.

    ``evidence`` of the result is w as (m, k).
    """
    if not 0 < nu <= 1:
        raise ValueError(f"nu must lie in (0, 1], got {nu!r}.")
    data, k = oracle.data, oracle.k
    clock, D = Clock(time_limit), 1.0 / (nu * data.total)
    master = JointMaster(data, k, D)
    constants = oracle.constants()
    master.add(constants + [column for column in start if column.key not in {c.key for c in constants}])
    known = {column.key for column in master.columns}
    upper, nodes, status, n_iter = np.inf, 0, Status.ITERATION_LIMIT, 0
    weights, objective, rho, evidence = np.zeros(0), -np.inf, 0.0, None
    while n_iter < max_iter:
        n_iter += 1
        w, lam, beta, solved = master.solve(max(clock.left, 0.0))
        if not solved:
            status = Status.TIME_LIMIT if clock.is_over else Status.STALLED
            break
        lam = lam / lam.sum()
        margins = margins_of(scores_of(master.columns, lam, k), data.y)
        reached_rho, reached = soft_margin(margins.min(axis=1), data.weight, D)
        if reached > objective:
            weights, objective, rho = lam, reached, reached_rho
        n_rivals = master.add_violated(margins)
        threshold = beta + max(tol, gap * objective)
        columns, bound, n = oracle.offer(w, threshold, n_columns, max(clock.left, 0.0), oracle.max_order <= 2)
        if not columns and not n_rivals and proof and oracle.max_order > 2:
            columns, bound, n = oracle.offer(w, threshold, n_columns, max(clock.left, 0.0), True)
        nodes += n
        if bound < upper:
            upper, evidence = bound, w
        clock.note(objective, upper)
        fresh = [column for column in columns if column.key not in known]
        if clock.is_over or not (fresh or n_rivals):
            done = upper < np.inf and not clock.is_over
            status = Status.OPTIMAL if done else Status.TIME_LIMIT if clock.is_over else Status.STALLED
            break
        if fresh:
            master.add(fresh)
            known |= {column.key for column in fresh}
    weights = np.pad(weights, (0, len(master.columns) - weights.size))
    return LPBoostResult(
        master.columns, weights, rho, objective, upper, status, n_iter, nodes, tuple(clock.history), nu, evidence,
    )  # fmt: skip
