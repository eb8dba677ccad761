"""Machines with an l1 part on linear spaces by an interior point, polished to exact zeros.

    minimise  l2/2 ||W||^2 + sum_jd l1_jd |w_jd| + sum_i cost_i g(u_i) + sum_ij tilt_ij f_j(x_i),   intercepts free,

the 1-norm support vector machine (Zhu, Rosset, Hastie and Tibshirani, 1-norm support vector machines, 2004) for any
convex loss of the normal form, two classes or k. For k > 2 the functions must sum to zero; with an l1 part that changes
the optimum, so it is imposed. Certifies the convex duality gap. An iteration costs n p^2 (times k^2): the machine for
small n p^2 and for tight tolerances.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...core.capabilities import ANY_CLASSES, ANY_CONVEX, ANY_LINEAR, CONVEX_PENALTIES, TILT, Takes
from ...core.problem import Problem
from ...core.result import Result, Status, relative_gap
from ...core.solving import Clock, Options, convex_result
from ...core.spaces import LinearSpace
from .crossover import to_vertex
from .margins import ClassMargins, cut_off, sum_to_zero_basis
from .method import Programme, solve_interior

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


@dataclass(frozen=True)
class _Scaled:
    """The problem on centred columns of unit variance: f(x) = sum_d v_d (x_d - mean_d) / sd_d + v_0."""

    problem: Problem
    margins: ClassMargins
    mean: Array
    sd: Array

    @classmethod
    def of(cls, problem: Problem) -> _Scaled:
        assert isinstance(problem.space, LinearSpace)
        X = problem.space.X
        X = np.asarray(X if isinstance(X, np.ndarray) else X.toarray(), dtype=np.float64)
        mean = X.mean(axis=0)
        sd = np.sqrt(np.mean((X - mean) ** 2, axis=0))
        sd[sd <= 1e-12 * np.abs(mean)] = 0.0
        sd = np.where(sd > 0, sd, np.maximum(np.abs(mean), 1.0))
        augmented = np.empty((X.shape[0], X.shape[1] + 1))
        augmented[:, :-1] = (X - mean) / sd
        augmented[:, -1] = 1.0
        return cls(problem, ClassMargins(augmented, problem.y, problem.n_classes), mean, sd)

    def programme(self) -> Programme:
        p, m = self.problem, self.margins.m
        shape = (m, self.sd.size)
        l1 = np.column_stack([p.penalty.l1_array(shape) / self.sd, np.zeros(m)])
        q = np.column_stack([np.broadcast_to(p.penalty.l2 / self.sd**2, shape), np.zeros(m)])
        c = np.zeros(l1.size) if p.tilt is None else (p.tilt.T @ self.margins.X).ravel()
        t = np.array([t for _, t in p.loss.hinges])[None, :, None]
        # A hinge that a class lacks gets a price of rounding size: the interior point needs one.
        prices = np.maximum(p.prices, 1e-14 * p.prices.max(initial=0.0))
        return Programme(self.margins, t, prices, q.ravel(), c, l1.ravel(), sum_to_zero_basis(np.isfinite(l1)))

    def coefficients(self, v: Array) -> tuple[Array, Array]:
        V = v.reshape(self.margins.m, -1)
        W = V[:, :-1] / self.sd
        return W, V[:, -1] - W @ self.mean


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
    run = _Run(problem, options, clock)
    n_iter = run.iterate()
    W, b, R = run.polished()
    return convex_result(problem, W, b, R, options, clock, n_iter, run.status)


class _Run:
    """Watches the interior point: keeps the last iterate, asks for the certificate, obeys the clock."""

    def __init__(self, problem: Problem, options: Options, clock: Clock) -> None:
        self.problem, self.options, self.clock = problem, options, clock
        self.scaled = _Scaled.of(problem)
        self.programme = self.scaled.programme()
        self.status: Status | None = None

    def iterate(self) -> int:
        try:
            return solve_interior(self.programme, np.zeros(self.programme.q.size), self.watch)
        except KeyboardInterrupt:
            self.status = Status.INTERRUPTED
            return 0

    def watch(self, v: Array, a: Array, relative: float) -> bool:
        self.v, self.a = v, a
        if self.clock.is_over:
            self.status = Status.TIME_LIMIT
        if self.status is None and relative > 0.5 * self.options.tol:
            return False
        return self.gap(v, a) <= 0.5 * self.options.tol or self.status is not None

    def gap(self, v: Array, a: Array) -> float:
        """Recompute the duality gap and write it into the history."""
        objective = self.problem.value(*self.scaled.coefficients(v))
        bound = self.problem.dual_bound(self.scaled.margins.scores(a))
        self.clock.note(objective, bound)
        return relative_gap(objective, bound)

    def polished(self) -> tuple[Array, Array, Array]:
        """Return coefficients with exact zeros, and multipliers: a vertex, else the small ones cut off, else as is."""
        gap = self.gap(self.v, self.a)
        for v, a in self.candidates():
            if self.gap(v, a) <= max(gap, self.options.tol):
                self.v, self.a = v, a
                break
        return *self.scaled.coefficients(self.v), self.scaled.margins.scores(self.a)

    def candidates(self) -> Iterator[tuple[Array, Array]]:
        if self.status is not None:
            return
        yield self.cut(self.v, np.inf), self.a
        if self.problem.penalty.l2 == 0:
            vertex = to_vertex(self.programme, self.v, self.clock.left)
            if vertex is not None:
                yield self.cut(vertex[0], _NOISE), vertex[1]
        for level in 10.0 ** np.arange(-1, -10, -1):
            yield self.cut(self.v, level), self.a

    def cut(self, v: Array, level: float) -> Array:
        """Return v without its small coefficients."""
        return cut_off(v, self.scaled.margins.m, self.programme.l1 > 0, level)
