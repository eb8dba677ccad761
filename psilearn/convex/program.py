"""The whole problem written out as one linear or quadratic program in HiGHS: the reference of the other solvers.

    minimise  l2/2 ||W||^2 + sum l1_jl |w_jl| + sum_ih cost_i c_h xi_ih + sum_ij tilt_ij f_j(x_i)
    s.t.      xi_ih >= t_h - (f_{y_i} - f_j)(x_i)  for j != y_i,   xi >= 0,   sum_j W_j = 0, sum_j b_j = 0 if k > 2

Certifies the convex duality gap, recomputed from the rows' multipliers. Cost: an LP or QP with n (k - 1) rows per
hinge; for a few hundred samples.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from ..core.capabilities import ANY_CLASSES, ANY_CONVEX, ANY_LINEAR, CONVEX_PENALTIES, TILT, Takes
from ..core.problem import Problem
from ..core.result import Result, Status
from ..core.solving import Clock, Options, Solve, convex_result
from ..core.spaces import LinearSpace
from ..engines.highs import Answer, HighsSession, ProgramError


@dataclass(frozen=True)
class Limits:
    """Iterations of the engine: many more than the simplex method usually needs, so that only cycling meets them.

    Attributes
    ----------
    first, per_row : int
        Iterations in any case, and for each row of the program.
    """

    first: int = 10_000
    per_row: int = 100


_LIMITS = Limits()

TAKES = Takes(
    "program",
    losses=ANY_CONVEX,
    spaces=ANY_LINEAR,
    classes=ANY_CLASSES,
    tilts=TILT,
    penalties=CONVEX_PENALTIES | {"no penalty"},
)


def solve(problem: Problem, options: Options, start: Result | None = None, finish: Solve | None = None) -> Result:
    """Solve by one call of HiGHS; ``start`` is not used.

    The quadratic term stands on W alone, where it is definite: over positive and negative parts of W the engine's
    quadratic solver may cycle. Its iterations are limited. Where it gives up, ``finish`` takes over; without one that
    is a :class:`ProgramError`.
    """
    TAKES.check(problem)
    clock = Clock(options.time_limit)
    program = _Program(problem)
    limit = options.max_iter or _LIMITS.first + _LIMITS.per_row * program.session.n_rows
    program.session.set(simplex_iteration_limit=limit, qp_iteration_limit=limit)
    try:
        answer = program.session.solve(clock.left)
    except ProgramError as error:
        if finish is None:
            raise ProgramError(f"solver='program' did not solve this problem: {error} Try solver='auto'.") from error
        return finish(problem, replace(options, time_limit=clock.left, max_iter=None), None)
    status = None
    if not answer.is_optimal:
        status = Status.TIME_LIMIT if clock.is_over else Status.ITERATION_LIMIT
    W, b, R = program.point(answer)
    result = convex_result(problem, W, b, R, options, clock, answer.iterations, status)
    if finish is not None and result.status in (Status.STALLED, Status.ITERATION_LIMIT) and options.max_iter is None:
        return finish(problem, replace(options, time_limit=clock.left), result)
    return result


class _Program:
    """The program over W (free), b, the parts of W under an l1 penalty, and a slack per hinge."""

    def __init__(self, problem: Problem) -> None:
        self.problem, self.session = problem, HighsSession()
        m, d = self.shape = problem.n_functions, problem.space.dim
        tilt = np.zeros((problem.n, m)) if problem.tilt is None else problem.tilt
        l1 = problem.penalty.l1_array(self.shape).ravel()
        free = np.where(np.isinf(l1), 0.0, np.inf)
        self.W = self.session.add_columns(problem.space.combine(tilt).ravel(), -free, free)
        self.b = self.session.add_columns(tilt.sum(axis=0), -np.inf, np.inf)
        self._add_absolute_values(np.flatnonzero((l1 > 0) & np.isfinite(l1)), l1)
        if m > 1:
            sums = sp.block_diag([sp.hstack([sp.identity(d)] * m), np.ones((1, m))])
            self.session.add_rows(self._wide(sums), 0.0, 0.0)
        self.hinges: list[tuple[sp.csr_matrix, np.ndarray]] = []
        self._add_hinges()
        if problem.penalty.l2 > 0:
            square = np.zeros(self.session.n_cols)
            square[self.W] = problem.penalty.l2
            self.session.set_quadratic(sp.diags(square, format="csc"))

    def _wide(self, entries: sp.spmatrix) -> sp.csr_matrix:
        """Return rows in (W, b), with zeros for the other columns."""
        return sp.hstack([entries, sp.csr_matrix((entries.shape[0], self.session.n_cols - entries.shape[1]))]).tocsr()

    def _add_absolute_values(self, priced: np.ndarray, l1: np.ndarray) -> None:
        """Add parts p, n >= 0 with p - n = w and the price l1 (p + n)."""
        plus = self.session.add_columns(l1[priced])
        minus = self.session.add_columns(l1[priced])
        at, ones = np.arange(priced.size), np.ones(priced.size)
        cells = np.concatenate([at, at, at]), np.concatenate([priced, plus, minus])
        shape = (priced.size, self.session.n_cols)
        self.session.add_rows(sp.csr_matrix((np.concatenate([ones, -ones, ones]), cells), shape), 0.0, 0.0)

    def _add_hinges(self) -> None:
        """Add xi_ih >= t_h - (f_{y_i} - f_j)(x_i) for every hinge and rival."""
        design = _score_matrix(self.problem, self.shape[0])
        for price, (_, t) in zip(self.problem.prices.T, self.problem.loss.hinges):
            slack = self.session.add_columns(price)
            for rows, margin in _margin_rows(self.problem):
                cells = np.arange(rows.size), slack[rows]
                ones = sp.csr_matrix((np.ones(rows.size), cells), shape=(rows.size, self.session.n_cols))
                self.hinges.append((margin, self.session.add_rows(self._wide(margin @ design) + ones, t, np.inf)))

    def point(self, answer: Answer) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return W, b and the multipliers R of the scores."""
        m, n = self.shape[0], self.problem.n
        R = sum((margin.T @ answer.row_dual[index]).reshape(m, n).T for margin, index in self.hinges)
        return answer.x[self.W].reshape(self.shape), answer.x[self.b], np.asarray(R)


def _score_matrix(problem: Problem, m: int) -> sp.csr_matrix:
    """Matrix of the scores, class after class, in the variables (W, b)."""
    assert isinstance(problem.space, LinearSpace)
    X = sp.csr_matrix(problem.space.X, dtype=np.float64)
    blocks = sp.block_diag([X] * m)
    ones = sp.block_diag([np.ones((problem.n, 1))] * m)
    return sp.hstack([blocks, ones]).tocsr()


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
