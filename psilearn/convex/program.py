"""The whole problem written out as one linear or quadratic programme in HiGHS: the reference of the other machines.

    minimise  l2/2 ||W||^2 + sum l1_jl |w_jl| + sum_ih cost_i c_h xi_ih + sum_ij tilt_ij f_j(x_i)
    s.t.      xi_ih >= t_h - (f_{y_i} - f_j)(x_i)  for j != y_i,   xi >= 0,   sum_j W_j = 0, sum_j b_j = 0 if k > 2

Certifies the convex duality gap, recomputed from the rows' multipliers. Cost: an LP or QP with n (k - 1) rows per
hinge; for a few hundred samples.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from ..core.capabilities import ANY_CLASSES, ANY_CONVEX, ANY_LINEAR, CONVEX_PENALTIES, TILT, Takes
from ..core.problem import Problem
from ..core.result import Result, Status
from ..core.solving import Clock, Options, convex_result
from ..core.spaces import LinearSpace
from ..engines.highs import HighsSession

TAKES = Takes(
    "program",
    losses=ANY_CONVEX,
    spaces=ANY_LINEAR,
    classes=ANY_CLASSES,
    tilts=TILT,
    penalties=CONVEX_PENALTIES | {"no penalty"},
)


def solve(problem: Problem, options: Options, start: Result | None = None) -> Result:
    """Solve by one call of HiGHS; ``start`` is not used."""
    TAKES.check(problem)
    clock = Clock(options.time_limit)
    m, d = problem.n_functions, problem.space.dim
    session = HighsSession()
    l1 = problem.penalty.l1_array((m, d)).ravel()
    free = np.where(np.isinf(l1), 0.0, np.inf)
    price = np.where(np.isinf(l1), 0.0, l1)
    tilt = np.zeros((problem.n, m)) if problem.tilt is None else problem.tilt
    slope = problem.space.combine(tilt).ravel()
    plus = session.add_columns(price + slope, 0.0, free)
    minus = session.add_columns(price - slope, 0.0, free)
    b = session.add_columns(tilt.sum(axis=0), -np.inf, np.inf)
    design = _score_matrix(problem, m)
    blocks = []
    for price, (_, t) in zip(problem.prices.T, problem.loss.hinges):
        slack = session.add_columns(price, 0.0, np.inf)
        for which, (rows, margin) in enumerate(_margin_rows(problem)):
            G = margin @ design
            entries = sp.lil_matrix((G.shape[0], session.n_cols))
            entries[:, : design.shape[1]] = G
            entries[np.arange(rows.size), slack[rows]] = 1.0
            blocks.append((which, rows, margin, session.add_rows(entries.tocsr(), t, np.inf)))
    if m > 1:
        _sum_to_zero(session, m, d, b)
    if problem.penalty.l2 > 0:
        # 1/2 l2 (w+ - w-)^2
        eye = sp.identity(m * d)
        Q = sp.lil_matrix((session.n_cols, session.n_cols))
        Q[: 2 * m * d, : 2 * m * d] = problem.penalty.l2 * sp.bmat([[eye, -eye], [-eye, eye]])
        session.set_quadratic(Q.tocsc())
    answer = session.solve(clock.left)
    W = (answer.x[plus] - answer.x[minus]).reshape(m, d)
    R = np.zeros((problem.n, m))
    for _, _, margin, index in blocks:
        R += (margin.T @ answer.row_dual[index]).reshape(m, problem.n).T
    status = None if answer.is_optimal else Status.TIME_LIMIT
    return convex_result(problem, W, answer.x[b], R, options, clock, answer.iterations, status)


def _score_matrix(problem: Problem, m: int) -> sp.csr_matrix:
    """Matrix of the scores, class after class, in the variables (W+, W-, b)."""
    assert isinstance(problem.space, LinearSpace)
    X = sp.csr_matrix(problem.space.X, dtype=np.float64)
    blocks = sp.block_diag([X] * m)
    ones = sp.block_diag([np.ones((problem.n, 1))] * m)
    return sp.hstack([blocks, -blocks, ones]).tocsr()


def _margin_rows(problem: Problem) -> list[tuple[np.ndarray, sp.csr_matrix]]:
    """Pairs (samples, matrix that maps stacked scores to f_y - f_j) whose minimum is the margin."""
    n = problem.n
    if problem.n_classes == 2:
        return [(np.arange(n), sp.diags(problem.signs).tocsr())]
    out = []
    for j in range(problem.n_classes):
        rows = np.flatnonzero(problem.y != j)
        shape = (rows.size, n * problem.n_classes)
        at = np.arange(rows.size)
        own = sp.csr_matrix((np.ones(rows.size), (at, problem.y[rows] * n + rows)), shape)
        other = sp.csr_matrix((np.ones(rows.size), (at, j * n + rows)), shape)
        out.append((rows, own - other))
    return out


def _sum_to_zero(session: HighsSession, m: int, d: int, b: np.ndarray) -> None:
    total = sp.hstack([sp.identity(d)] * m)
    rows = sp.hstack([total, -total, sp.csr_matrix((d, session.n_cols - 2 * m * d))])
    session.add_rows(rows.tocsr(), 0.0, 0.0)
    ones = np.zeros((1, session.n_cols))
    ones[0, b] = 1.0
    session.add_rows(ones, 0.0, 0.0)
