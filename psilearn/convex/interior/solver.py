"""Problems with an l1 part on linear spaces by an interior point, polished to exact zeros.

    minimise  l2/2 ||W||^2 + sum_jd l1_jd |w_jd| + sum_i cost_i g(u_i) + sum_ij tilt_ij f_j(x_i),   intercepts free,

the 1-norm support vector machine (Zhu, Rosset, Hastie and Tibshirani, 1-norm support vector machines, 2004) for any
convex loss of the normal form, two classes or k. For k > 2 the functions must sum to zero; with an l1 part that changes
the optimum, so it is imposed. Certifies the convex duality gap. An iteration costs n p^2 (times k^2): the solver for
small n p^2 and for tight tolerances.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ...core.capabilities import ANY_CLASSES, ANY_CONVEX, ANY_LINEAR, CONVEX_PENALTIES, TILT, Takes
from ...core.problem import Problem
from ...core.result import Result, Status, relative_gap
from ...core.scaling import Scaling
from ...core.solving import Clock, Options, convex_result
from ...core.spaces import LinearSpace
from .crossover import to_vertex
from .margins import ClassMargins, cut_off
from .method import Iterate, Program, solve_interior

Array = NDArray[np.float64]

_NOISE = 1e-9  # what rounding leaves of a zero at a vertex, on data of unit scale


TAKES = Takes(
    "l1",
    losses=ANY_CONVEX,
    spaces=ANY_LINEAR,
    classes=ANY_CLASSES,
    tilts=TILT,
    penalties=CONVEX_PENALTIES | {"no penalty"},
)


def _stated(problem: Problem) -> tuple[Program, Scaling]:
    """Return the problem on centred columns of unit variance as a program."""
    assert isinstance(problem.space, LinearSpace)
    X, m = problem.space.X, problem.n_functions
    X = np.asarray(X if isinstance(X, np.ndarray) else X.toarray(), dtype=np.float64)
    scaling = Scaling.of(X)
    augmented = np.column_stack([scaling.apply(X), np.ones(X.shape[0])])
    q, l1 = scaling.penalty(problem.penalty, m)
    margins = ClassMargins(augmented, problem.y, problem.n_classes, np.isfinite(l1))
    l1 = np.where(np.diff(margins.basis.indptr) > 0, l1.ravel(), np.inf)
    c = np.zeros(l1.size) if problem.tilt is None else (problem.tilt.T @ augmented).ravel()
    t = np.array([t for _, t in problem.loss.hinges])[None, :, None]
    # A hinge that a class lacks gets a price of rounding size: the interior point needs one.
    prices = np.maximum(problem.prices, 1e-14 * problem.prices.max(initial=0.0))
    return Program(margins, t, prices, q.ravel(), c, l1), scaling


def solve(problem: Problem, options: Options, start: Result | None = None) -> Result:
    """Solve to a relative duality gap of ``options.tol``.

    Parameters
    ----------
    problem : Problem
        Convex, on a linear space.
    options : Options
        ``tol`` (down to about 1e-9) and ``time_limit``.
    start : Result or None
        An earlier result on the same samples; enough by itself if it already proves the gap.
    """
    TAKES.check(problem)
    clock = Clock(options.time_limit)
    if start is not None and start.multipliers is not None:
        again = convex_result(problem, start.coef, start.intercept, start.multipliers, options, clock, 0)
        if again.status is Status.OPTIMAL:
            return again
    run = _Workspace(problem, options, clock)
    n_iter = run.iterate()
    W, b, R = run.polished()
    return convex_result(problem, W, b, R, options, clock, n_iter, run.status)


class _Workspace:
    """Watches the interior point: keeps the last iterate, asks for the certificate, obeys the clock."""

    def __init__(self, problem: Problem, options: Options, clock: Clock) -> None:
        self.problem, self.options, self.clock = problem, options, clock
        self.program, self.scaling = _stated(problem)
        self.status: Status | None = None
        assert isinstance(self.program.margins, ClassMargins)
        self.margins = self.program.margins
        self.v = np.zeros(self.program.q.size)
        self.a = np.zeros_like(self.margins.apply(self.v))

    def iterate(self) -> int:
        try:
            return solve_interior(self.program, self.v, self.watch)
        except KeyboardInterrupt:
            self.status = Status.INTERRUPTED
            return 0

    def watch(self, it: Iterate) -> bool:
        self.v, self.a = it.v, it.a
        if self.clock.is_over:
            self.status = Status.TIME_LIMIT
        if self.status is None and it.gap > 0.5 * self.options.tol * abs(it.value):
            return False
        return self.gap(it.v, it.a) <= 0.5 * self.options.tol or self.status is not None

    def gap(self, v: Array, a: Array) -> float:
        """Recompute the duality gap and write it into the history."""
        objective = self.problem.value(*self.scaling.coefficients(v))
        bound = self.problem.dual_bound(self.margins.scores(a))
        self.clock.note(objective, bound)
        return relative_gap(objective, bound)

    def polished(self) -> tuple[Array, Array, Array]:
        """Return coefficients with exact zeros, and multipliers: a vertex, else the small ones cut off, else as is."""
        gap = self.gap(self.v, self.a)
        for v, a in self.candidates():
            if self.gap(v, a) <= max(gap, self.options.tol):
                self.v, self.a = v, a
                break
        return *self.scaling.coefficients(self.v), self.margins.scores(self.a)

    def candidates(self) -> Iterator[tuple[Array, Array]]:
        if self.status is not None:
            return
        yield self.cut(self.v, np.inf), self.a
        if self.problem.penalty.l2 == 0:
            vertex = to_vertex(self.program, self.v, self.clock.left)
            if vertex is not None:
                yield self.cut(vertex[0], _NOISE), vertex[1]
        for level in 10.0 ** np.arange(-1, -10, -1):
            yield self.cut(self.v, level), self.a

    def cut(self, v: Array, level: float) -> Array:
        """Return v without its small coefficients."""
        return cut_off(v, self.margins.m, self.program.l1 > 0, level)
