"""The sparse minimum disagreement hyperplane itself, by mixed-integer programming, for small instances.

Goldberg and Eckstein (2009), (15), over given classifiers with margin rho:

    min  sum_i m_i xi_i + sum_u c_u mu_u   subject to   y_i H_i lambda + (1 + rho) xi_i >= rho,
         sum lambda = 1,   lambda <= mu,   xi, mu binary,   and the valid pair cuts, which sharpen its relaxation.

Problem (9) differs in admitting lambda = 0, so its optimum is min(M, optimum of (15)) for rho small enough.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ...core.result import Status
from ...engines.highs import HighsSession
from ..observations import Observations
from ..pricing.data import Pairs
from ..pricing.oracles import Column, separates

#: Above so many pairs no cuts are written.
MAX_CUTS = 20_000
#: Margins this little below rho are no mistakes, and weights not above it are none: the engine's feasibility tolerance.
MARGIN_SLACK = 1e-7


@dataclass(frozen=True)
class IntegerModel:
    """An integral model: weights lambda (summing to 1), mistakes xi, its value, a lower bound on the optimum (15)."""

    columns: list[Column]
    weights: NDArray[np.float64]
    xi: NDArray[np.bool_]
    objective: float
    lower_bound: float
    status: Status

    @property
    def n_rules(self) -> int:
        """Number of classifiers used."""
        return int((self.weights > 0).sum())


def evaluate(data: Observations, columns: list[Column], weights: NDArray, rho: float) -> tuple[float, NDArray]:
    """Return the value in (15) of normalised weights (mistakes are margins below rho) and the mistakes."""
    used = [k for k, weight in enumerate(weights) if weight > 0]
    margins = data.y * sum(weights[k] * columns[k].h for k in used)
    mistakes = margins < rho - MARGIN_SLACK
    return float(data.weight @ mistakes) + sum(columns[k].cost for k in used), mistakes


def _program(data: Observations, columns: list[Column], rho: float) -> HighsSession:
    m, U = data.y.size, len(columns)
    H = np.column_stack([column.h for column in columns])
    session = HighsSession()
    session.add_columns(data.weight, 0.0, 1.0, integer=True)
    session.add_columns([column.cost for column in columns], 0.0, 1.0, integer=True)
    session.add_columns(np.zeros(U), 0.0, 1.0)
    eye = sp.identity(U)
    session.add_rows(sp.hstack([(1.0 + rho) * sp.identity(m), sp.csr_matrix((m, U)), data.y[:, None] * H]), rho, np.inf)
    session.add_rows(np.r_[np.zeros(m + U), np.ones(U)], 1.0, 1.0)
    session.add_rows(sp.hstack([sp.csr_matrix((U, m)), eye, -eye]), 0.0, np.inf)
    positive, negative = np.flatnonzero(data.y > 0), np.flatnonzero(data.y < 0)
    if 0 < positive.size * negative.size <= MAX_CUTS:
        i, j = (side.ravel() for side in np.meshgrid(positive, negative, indexing="ij"))
        pairs = Pairs(i, j, np.ones(i.size))
        reach = sp.csr_matrix(np.array([separates(column.h, data.y, pairs) for column in columns], dtype=float).T)
        place = np.arange(i.size)
        ends = sp.csr_matrix((np.ones(2 * i.size), (np.r_[place, place], np.r_[i, j])), shape=(i.size, m))
        session.add_rows(sp.hstack([ends, reach, sp.csr_matrix((i.size, U))]), 1.0, np.inf)
    return session


def solve(
    data: Observations,
    columns: list[Column],
    rho: float,
    *,
    max_rules: int | None = None,
    start: NDArray[np.float64] | None = None,
    gap_tol: float = 1e-6,
    time_limit: float = np.inf,
) -> IntegerModel:
    """Solve (15) over the given columns, with at most ``max_rules`` of them; ``start`` are weights of a known model.

    The value is recomputed from the weights; the bound is attested by HiGHS.
    """
    if not columns:
        raise ValueError("The exact problem needs at least one classifier.")
    session = _program(data, columns, rho)
    if max_rules is not None:
        m, U = data.y.size, len(columns)
        session.add_rows(np.r_[np.zeros(m), np.ones(U), np.zeros(U)], -np.inf, float(max_rules))
    session.set(mip_rel_gap=gap_tol, mip_feasibility_tolerance=1e-9)
    if start is not None:
        mistakes = evaluate(data, columns, start, rho)[1]
        session.set_start(np.concatenate([mistakes, start > 0, start]))
    answer = session.solve(time_limit)
    weights = np.clip(answer.x[-len(columns) :], 0.0, None)
    weights[weights <= MARGIN_SLACK] = 0.0
    weights = weights / weights.sum()
    objective, mistakes = evaluate(data, columns, weights, rho)
    status = Status.OPTIMAL if answer.is_optimal else Status.TIME_LIMIT
    return IntegerModel(columns, weights, mistakes, objective, min(answer.bound, objective), status)
