"""The dual of the tightened relaxation (18), kept warm while it grows by classifiers (rows) and cuts (columns).

With mu = lambda + s, s >= 0, the primal (18) of Goldberg and Eckstein (2009) over present classifiers and pairs A is

    min  sum_i m_i xi_i + sum_u c_u (lambda_u + s_u)
    s.t. y_i H_i lambda + (1 + rho) xi_i >= rho,   sum lambda = 1,
         xi_i + xi_i' + sum {lambda_u + s_u : u in S_p} >= 1  for p = (i, i') in A,     lambda, s, xi >= 0,

and its dual, which corrects (20) (there the multiplier of mu >= lambda lost its sign),

    max  rho sum_i w_i + sum_p v_p + alpha
    s.t. (1 + rho) w_i + sum {v_p : i in p} <= m_i,
         alpha + sum_i y_i h_iu w_i + sum {v_p : u in S_p} <= c_u,     sum {v_p : u in S_p} <= c_u,     w, v >= 0.

The dual is what is solved, over the parts that matter: classifiers (rows) and cuts (columns v) as they are generated,
observations' multipliers w (columns) as their margin constraints turn out violated, and the first dual constraint as a
row only where the bounds w_i <= m_i / (1 + rho) and v_p <= m_i do not imply it. What stays without effect is dropped.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ...core.clock import now
from ...engines.highs import HighsSession
from ..observations import Observations
from ..pricing.data import Pairs
from ..pricing.oracles import Column, separates
from .interior import Iterate

#: Multipliers of the engine below this are rounding noise.
_NOISE = 1e-9


@dataclass(frozen=True)
class Point:
    """Primal and dual solution of the master over the present columns and cuts.

    ``mu`` holds lambda_u for the voting columns and s_u for the marking ones.
    """

    mu: NDArray[np.float64]
    xi: NDArray[np.float64]
    w: NDArray[np.float64]
    v: NDArray[np.float64]
    alpha: float
    is_optimal: bool


class RelaxationMaster:
    """The dual program above for a margin rho."""

    def __init__(self, data: Observations, rho: float, symmetric: bool = True) -> None:
        self.data, self.rho, self.symmetric = data, rho, symmetric
        self.session = HighsSession()
        self.session.add_columns([-1.0], -np.inf)
        m = data.y.size
        self.columns: list[Column] = []
        self.votes: list[bool] = []
        self.positive = np.empty(0, np.intp)
        self.negative = np.empty(0, np.intp)
        # places in the program: rows of classifiers and observations, columns of w and v; -1 where absent
        self._classifier_row = np.empty(0, np.intp)
        self._observation_row = np.full(m, -1)
        self._w_column = np.full(m, -1)
        self._v_column = np.empty(0, np.intp)
        self._idle_classifiers = np.empty(0, np.intp)
        self._idle_pairs = np.empty(0, np.intp)
        self._idle_observations = np.zeros(m, np.intp)
        self._closed_once = np.zeros(m, dtype=bool)
        self._known_pairs: set[tuple[int, int]] = set()
        self._dropped_classifiers: set[tuple[Hashable, bool]] = set()
        self._dropped_pairs: set[tuple[int, int]] = set()
        #: Pivots times rows of all solves so far: what the simplex method has cost.
        self.work = 0

    @property
    def H(self) -> NDArray[np.float64]:
        """Answers of the present columns, (m, number of columns)."""
        return np.column_stack([column.h for column in self.columns])

    @property
    def costs(self) -> NDArray[np.float64]:
        """c_u of the present columns."""
        return np.array([column.cost for column in self.columns])

    def pairs(self) -> Pairs:
        """The present pairs with value 1."""
        return Pairs(self.positive, self.negative, np.ones(self.positive.size), self.symmetric)

    def add_columns(self, columns: list[Column], votes: bool) -> None:
        """Add a row for each classifier, for its lambda_u (it votes) or its s_u (it only marks pairs as separated)."""
        pairs, active = self.pairs(), np.flatnonzero(self._w_column >= 0)
        rows = np.zeros((len(columns), self.session.n_cols))
        for k, column in enumerate(columns):
            rows[k, self._v_column] = separates(column.h, self.data.y, pairs)
            if votes:
                rows[k, 0] = 1.0
                rows[k, self._w_column[active]] = (self.data.y * column.h)[active]
        index = self.session.add_rows(sp.csr_matrix(rows), -np.inf, [column.cost for column in columns])
        self._classifier_row = np.r_[self._classifier_row, index]
        self._idle_classifiers = np.r_[self._idle_classifiers, np.zeros(len(columns), np.intp)]
        self.votes += [votes] * len(columns)
        self.columns += columns

    def add_pairs(self, positive: NDArray, negative: NDArray) -> int:
        """Add the cuts that are new: a column each; return their number."""
        new = [k for k, pair in enumerate(zip(positive.tolist(), negative.tolist())) if pair not in self._known_pairs]
        if not new:
            return 0
        positive, negative, n = positive[new], negative[new], len(new)
        self._known_pairs |= set(zip(positive.tolist(), negative.tolist()))
        pairs = Pairs(positive, negative, np.ones(n), self.symmetric)
        entries = np.zeros((self.session.n_rows, n))
        entries[self._classifier_row] = [separates(column.h, self.data.y, pairs) for column in self.columns]
        has_row = np.zeros(n, dtype=bool)
        for end in (positive, negative):
            row = self._observation_row[end]
            entries[row[row >= 0], np.flatnonzero(row >= 0)] = 1.0
            has_row |= row >= 0
        weight = self.data.weight
        # a row implies the bound; twice as much is never reached, but saves the engine a phase of its own
        limit = np.where(has_row, 2.0, 1.0) * np.minimum(weight[positive], weight[negative])
        index = self.session.add_columns(np.full(n, -1.0), 0.0, limit, sp.csc_matrix(entries))
        self._v_column = np.r_[self._v_column, index]
        self._idle_pairs = np.r_[self._idle_pairs, np.zeros(n, np.intp)]
        self.positive, self.negative = np.r_[self.positive, positive], np.r_[self.negative, negative]
        return n

    def add_margins(self, observations: NDArray) -> int:
        """Add the multipliers w of observations whose margin constraints are violated; return their number."""
        fresh = observations[self._w_column[observations] < 0]
        if fresh.size:
            entries = np.zeros((self.session.n_rows, fresh.size))
            voting = np.flatnonzero(self.votes)
            answers = np.array([self.columns[k].h[fresh] for k in voting]).reshape(voting.size, fresh.size)
            entries[self._classifier_row[voting]] = self.data.y[fresh] * answers
            row = self._observation_row[fresh]
            entries[row[row >= 0], np.flatnonzero(row >= 0)] = 1.0 + self.rho
            upper = self.data.weight[fresh] / (1.0 + self.rho)
            cost = np.full(fresh.size, -self.rho)
            self._w_column[fresh] = self.session.add_columns(cost, 0.0, upper, sp.csc_matrix(entries))
        return fresh.size

    def adopt(self, columns: list[Column], end: Iterate) -> Point:
        """Take over the classifiers and pairs of an interior point, and the basis it is nearest to; return the point.

        A variable is the more likely to be basic, the larger it is in comparison with its complement.
        """
        order = np.r_[np.flatnonzero(end.votes), np.flatnonzero(~end.votes)]
        for votes in (True, False):
            self.add_columns([columns[k] for k in order if end.votes[k] == votes], votes)
        self.add_margins(np.arange(self.data.y.size))
        self.add_pairs(end.positive, end.negative)
        tight = np.flatnonzero(end.xi > end.r)
        self._open_observations(tight)
        column_size, row_size = np.full(self.session.n_cols, np.inf), np.empty(self.session.n_rows)
        column_size[self._w_column], column_size[self._v_column] = end.w / end.q_w, end.v / end.q_v
        row_size[self._classifier_row] = (end.t / end.mu)[order]
        row_size[self._observation_row[tight]] = (end.r / end.xi)[tight]
        is_basic = np.zeros(column_size.size + row_size.size, dtype=bool)
        is_basic[np.argsort(-np.r_[column_size, row_size], kind="stable")[: row_size.size]] = True
        self.session.set_basis(is_basic[: column_size.size], is_basic[column_size.size :])
        return Point(end.mu[order], end.xi, end.w, end.v, end.alpha, True)

    def drop_idle(self, patience: int) -> list[tuple[Column, bool]]:
        """Drop what was without effect in the last ``patience`` solves; return the dropped classifiers.

        What was dropped once and came back is kept for good, so that the method ends.
        """
        gone = [
            k for k in np.flatnonzero(self._idle_classifiers >= patience)
            if (self.columns[k].key, self.votes[k]) not in self._dropped_classifiers
        ]  # fmt: skip
        dropped = [(self.columns[k], self.votes[k]) for k in gone]
        self._dropped_classifiers |= {(column.key, votes) for column, votes in dropped}
        self._delete_classifiers(np.array(gone, np.intp))
        ends = list(zip(self.positive.tolist(), self.negative.tolist()))
        idle = [k for k in np.flatnonzero(self._idle_pairs >= patience) if ends[k] not in self._dropped_pairs]
        self._dropped_pairs |= {ends[k] for k in idle}
        self._known_pairs -= {ends[k] for k in idle}
        self._delete_pairs(np.array(idle, np.intp))
        self._close_observations(np.flatnonzero((self._idle_observations >= patience) & ~self._closed_once))
        return dropped

    def _close_observations(self, closed: NDArray) -> None:
        """Take back the rows of these observations; bounds on v replace them where no other row does."""
        rows = np.sort(self._observation_row[closed])
        self.session.delete_rows(rows)
        self._observation_row[closed] = -1
        self._closed_once[closed] = True
        self._classifier_row = _moved_up(self._classifier_row, rows)
        self._observation_row = _moved_up(self._observation_row, rows)
        bare = (self._observation_row[self.positive] < 0) & (self._observation_row[self.negative] < 0)
        weight = self.data.weight
        limit = np.minimum(weight[self.positive], weight[self.negative])[bare]
        self.session.change_column_bounds(self._v_column[bare], 0.0, limit)

    def _delete_classifiers(self, gone: NDArray) -> None:
        rows = np.sort(self._classifier_row[gone])
        self.session.delete_rows(rows)
        self._classifier_row = _moved_up(np.delete(self._classifier_row, gone), rows)
        self._observation_row = _moved_up(self._observation_row, rows)
        self._idle_classifiers = np.delete(self._idle_classifiers, gone)
        lost = set(gone.tolist())
        self.columns = [column for k, column in enumerate(self.columns) if k not in lost]
        self.votes = [votes for k, votes in enumerate(self.votes) if k not in lost]

    def _delete_pairs(self, gone: NDArray) -> None:
        columns = np.sort(self._v_column[gone])
        self.session.delete_columns(columns)
        self._v_column = _moved_up(np.delete(self._v_column, gone), columns)
        self._w_column = _moved_up(self._w_column, columns)
        self._idle_pairs = np.delete(self._idle_pairs, gone)
        self.positive, self.negative = np.delete(self.positive, gone), np.delete(self.negative, gone)

    def _open_observations(self, fresh: NDArray) -> None:
        """Write the first dual constraint of these observations as rows."""
        local = np.full(self.data.y.size, -1)
        local[fresh] = np.arange(fresh.size)
        row = np.r_[local[fresh], local[self.positive], local[self.negative]]
        column = np.r_[self._w_column[fresh], self._v_column, self._v_column]
        entry = np.r_[np.full(fresh.size, 1.0 + self.rho), np.ones(2 * self._v_column.size)]
        used = (row >= 0) & (column >= 0)
        entries = sp.csr_matrix((entry[used], (row[used], column[used])), shape=(fresh.size, self.session.n_cols))
        self._observation_row[fresh] = self.session.add_rows(entries, -np.inf, self.data.weight[fresh])
        freed = (local[self.positive] >= 0) | (local[self.negative] >= 0)
        weight = self.data.weight
        limit = 2.0 * np.minimum(weight[self.positive], weight[self.negative])[freed]
        self.session.change_column_bounds(self._v_column[freed], 0.0, limit)

    def _needed_observations(self, w: NDArray, v: NDArray) -> NDArray:
        """Observations without a row whose first dual constraint fails, or holds with equality by a bound on some v."""
        load, largest = (1.0 + self.rho) * w, np.zeros(w.size)
        for end in (self.positive, self.negative):
            np.add.at(load, end, v)
            np.maximum.at(largest, end, v)
        fails = (load > self.data.weight + _NOISE) | (largest > self.data.weight - _NOISE)
        return np.flatnonzero(fails & (self._observation_row < 0))

    def solve(self, time_limit: float = np.inf, primal: bool = False) -> Point:
        """Solve from the last basis, adding the observations' rows that turn out to be needed.

        ``primal`` asks for the primal simplex method, as long as no rows are added.
        """
        start = now()
        has_w = self._w_column >= 0
        while True:
            left = max(0.0, time_limit - (now() - start))
            answer = self.session.solve(left, primal)
            self.work += answer.iterations * self.session.n_rows
            w = np.where(has_w, np.clip(answer.x[self._w_column], 0.0, None), 0.0)
            v = np.clip(answer.x[self._v_column], 0.0, None)
            needed = self._needed_observations(w, v)
            if not answer.is_optimal or not needed.size:
                break
            self._open_observations(needed)
            primal = False
        dual = np.where(answer.row_dual < -_NOISE, -answer.row_dual, 0.0)
        at_bound = np.clip(-answer.reduced_cost[self._w_column], 0.0, None) / (1.0 + self.rho)
        xi = np.where(has_w, at_bound, 0.0)
        has_row = self._observation_row >= 0
        xi[has_row] += dual[self._observation_row[has_row]]
        mu = dual[self._classifier_row]
        self._idle_classifiers = np.where(mu > 0, 0, self._idle_classifiers + 1)
        self._idle_pairs = np.where(v > 0, 0, self._idle_pairs + 1)
        silent = has_row & (dual[self._observation_row] == 0)
        self._idle_observations = np.where(silent, self._idle_observations + 1, 0)
        return Point(mu, xi, w, v, float(answer.x[0]), answer.is_optimal)


def _moved_up(places: NDArray, deleted: NDArray) -> NDArray:
    """Places after the deletion of others (sorted); -1 stays."""
    return np.where(places >= 0, places - np.searchsorted(deleted, places), -1)
