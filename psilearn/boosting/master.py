"""The dual of the tightened relaxation (18), kept warm while it grows by classifiers (rows) and cuts (columns).

With mu = lambda + s, s >= 0, the primal (18) of Goldberg and Eckstein (2009) over present classifiers and pairs A is

    min  sum_i m_i xi_i + sum_u c_u (lambda_u + s_u)
    s.t. y_i H_i lambda + (1 + rho) xi_i >= rho,   sum lambda = 1,
         xi_i + xi_i' + sum {lambda_u + s_u : u in S_p} >= 1  for p = (i, i') in A,     lambda, s, xi >= 0,

and its dual, which corrects (20) (there the multiplier of mu >= lambda lost its sign),

    max  rho sum_i w_i + sum_p v_p + alpha
    s.t. (1 + rho) w_i + sum {v_p : i in p} <= m_i,
         alpha + sum_i y_i h_iu w_i + sum {v_p : u in S_p} <= c_u,     sum {v_p : u in S_p} <= c_u,     w, v >= 0.

The dual is what is solved: its rows are the classifiers and those observations that appear in a cut (for the others the
first constraint is a bound on w_i), far fewer than the observations and cuts that are the rows of the primal.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..programs.highs import HighsSession
from .observations import Observations
from .oracles import Column, separates
from .pricing import Pairs

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
    """The dual programme above for a margin rho."""

    def __init__(self, data: Observations, rho: float, symmetric: bool = True) -> None:
        self.data, self.rho, self.symmetric = data, rho, symmetric
        self.session = HighsSession()
        m = data.y.size
        self.session.add_columns(np.full(m, -rho), 0.0, data.weight / (1.0 + rho))
        self.session.add_columns([-1.0], -np.inf)
        self.columns: list[Column] = []
        self.votes: list[bool] = []
        self.positive = np.empty(0, np.intp)
        self.negative = np.empty(0, np.intp)
        self._column_row: list[int] = []
        self._observation_row = np.full(m, -1)
        self._known_pairs: set[tuple[int, int]] = set()

    @property
    def H(self) -> NDArray[np.float64]:
        """Answers of the present columns, (m, number of columns)."""
        return np.column_stack([column.h for column in self.columns])

    @property
    def costs(self) -> NDArray[np.float64]:
        """c_u of the present columns."""
        return np.array([column.cost for column in self.columns])

    def pairs(self, v: NDArray | None = None) -> Pairs:
        """The present pairs with values v (those of value zero left out), or all of them with value 1."""
        if v is None:
            return Pairs(self.positive, self.negative, np.ones(self.positive.size), self.symmetric)
        used = v > 0
        return Pairs(self.positive[used], self.negative[used], v[used], self.symmetric)

    def add_columns(self, columns: list[Column], votes: bool) -> None:
        """Add a row for each classifier, for its lambda_u (it votes) or its s_u (it only marks pairs as separated)."""
        pairs = self.pairs()
        rows = []
        for column in columns:
            reach = separates(column.h, self.data.y, pairs).astype(np.float64)
            vote = np.append(self.data.y * column.h, 1.0) if votes else np.zeros(self.data.y.size + 1)
            rows.append(sp.csr_matrix(np.concatenate([vote, reach])))
        index = self.session.add_rows(sp.vstack(rows), -np.inf, [column.cost for column in columns])
        self._column_row += index.tolist()
        self.votes += [votes] * len(columns)
        self.columns += columns

    def add_pairs(self, positive: NDArray, negative: NDArray) -> int:
        """Add the cuts that are new: a column each; return their number."""
        new = [k for k, pair in enumerate(zip(positive.tolist(), negative.tolist())) if pair not in self._known_pairs]
        if not new:
            return 0
        positive, negative = positive[new], negative[new]
        self._known_pairs |= set(zip(positive.tolist(), negative.tolist()))
        self._open_observations(np.union1d(positive, negative))
        pairs = Pairs(positive, negative, np.ones(len(new)), self.symmetric)
        reach = sp.csr_matrix(
            np.array([separates(column.h, self.data.y, pairs) for column in self.columns], dtype=float)
        )
        n = len(new)
        place, count = np.arange(n), self.session.n_rows
        end_rows = self._observation_row[np.r_[positive, negative]]
        ends = sp.csr_matrix((np.ones(2 * n), (end_rows, np.r_[place, place])), shape=(count, n))
        lift = sp.csr_matrix(
            (np.ones(len(self.columns)), (self._column_row, np.arange(len(self.columns)))),
            shape=(count, len(self.columns)),
        )
        self.session.add_columns(np.full(n, -1.0), 0.0, np.inf, ends + lift @ reach)
        self.positive, self.negative = np.r_[self.positive, positive], np.r_[self.negative, negative]
        return n

    def _open_observations(self, touched: NDArray) -> None:
        """Write the first dual constraint as a row for observations that have none yet."""
        fresh = touched[self._observation_row[touched] < 0]
        if fresh.size:
            entries = sp.csr_matrix(
                (np.full(fresh.size, 1.0 + self.rho), (np.arange(fresh.size), fresh)),
                shape=(fresh.size, self.session.n_cols),
            )
            self._observation_row[fresh] = self.session.add_rows(entries, -np.inf, self.data.weight[fresh])

    def solve(self, time_limit: float = np.inf) -> Point:
        """Solve from the last basis."""
        answer = self.session.solve(time_limit)
        m = self.data.y.size
        dual = np.where(answer.row_dual < -_NOISE, -answer.row_dual, 0.0)
        xi = np.clip(-answer.reduced_cost[:m], 0.0, None) / (1.0 + self.rho)
        has_row = self._observation_row >= 0
        xi[has_row] += dual[self._observation_row[has_row]]
        return Point(
            dual[self._column_row], xi, np.clip(answer.x[:m], 0.0, None),
            np.clip(answer.x[m + 1 :], 0.0, None), float(answer.x[m]), answer.is_optimal,
        )  # fmt: skip
