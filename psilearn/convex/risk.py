"""The empirical risk sum_i weight_i g(u_i) as a cutting-plane method sees it: values, subgradients, multipliers.

The risk is written in centred and scaled coordinates v = (w_j sd, b_j + w_j'mean)_j, flat, intercepts last in each row;
``mean`` and ``sd`` come from a few rows, for any such numbers are a valid change of coordinates. It does not know C or
the penalty, so what it returns bounds the risk along a whole path of either.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..core.problem import Problem
from ..core.scaling import Scaling
from ..core.spaces import LinearSpace
from .risk_jit import add_rows, add_rows_few, hinge_codes, mix_codes, risk_along, score_rows, score_rows_few

Array = NDArray[np.float64]
_ROWS_FOR_SCALE = 4096
_SHORT = 32  # entries of a row up to which BLAS is faster
_BLOCK, _LONG_BLOCK = 1 << 18, 1 << 21  # entries that stay in the near and in the far cache
_FEW = 0.1  # share of the coefficients up to which only theirs are read


def sampled_scaling(problem: Problem) -> Scaling:
    """Return coordinates estimated from some of the samples, enough to be well scaled."""
    assert isinstance(problem.space, LinearSpace)
    return Scaling.of(problem.space.X, _ROWS_FOR_SCALE)


class Evaluation(NamedTuple):
    """What one pass over the data tells at a point: value, subgradient, scores or margins, and code of every sample."""

    value: float
    gradient: Array
    scores: Array
    code: NDArray


class Risk(Protocol):
    """What the bundle needs of the data; ``passes`` counts evaluations in units of a pass over all samples."""

    scaling: Scaling

    @property
    def passes(self) -> float:
        """Evaluations so far."""

    def evaluate(self, v: Array) -> Evaluation:
        """One pass over the data."""

    def along(self, start: Array, end: Array, tau: float) -> tuple[float, float]:
        """Return value and slope at the scores start + tau (end - start), without touching the data."""

    def mixed(self, codes: list[NDArray], shares: Array) -> Array:
        """Return the multipliers R (n, m) of a combination of evaluations, for unit C."""


class Rows:
    """The two operations that a method for two classes needs of the data, on dense or CSR rows.

    Short dense rows are the business of BLAS. Of long ones the part that few coefficients need is read alone.
    """

    def __init__(self, X: NDArray | sp.csr_matrix) -> None:
        self.X = X
        self.is_plain = not isinstance(X, np.ndarray) or (X.dtype == np.float64 and X.shape[1] <= _SHORT)

    def scores(self, w: Array, out: Array) -> None:
        """Write X w."""
        if not isinstance(self.X, np.ndarray):
            out[:] = self.X @ w
        elif self.is_plain:
            np.dot(self.X, w, out=out)
        elif (used := np.flatnonzero(w)).size <= _FEW * w.size:
            score_rows_few(self.X, used, w[used], out)
        else:
            score_rows(self.X, w, out)

    def adjoint(self, r: Array, features: NDArray[np.intp] | None = None) -> Array:
        """Return X'r, or only some of its entries."""
        if features is not None:
            out = np.zeros(features.size)
            add_rows_few(self.X, features, r, out)
            return out
        out = np.zeros(self.X.shape[1])
        if self.is_plain:
            out += self.X.T @ r
        else:
            add_rows(self.X, r, out)
        return out

    def blocks(self) -> Iterator[tuple[slice, Rows]]:
        """Return the rows in parts that stay in the cache between the two operations."""
        n, p = self.X.shape
        if not isinstance(self.X, np.ndarray):  # rows of CSR would be copied
            yield slice(0, n), self
            return
        step = max(1, (_LONG_BLOCK if self.is_plain else _BLOCK) // p)
        for first in range(0, n, step):
            rows = slice(first, min(first + step, n))
            yield rows, Rows(self.X[rows])


class TwoClassRisk:
    """Two classes, on dense or CSR data; ``scores`` are the margins.

    A code is the number of hinges in force, plus (number of hinges + 1) for the second class.
    """

    def __init__(self, problem: Problem, scaling: Scaling) -> None:
        assert isinstance(problem.space, LinearSpace)
        self.rows = Rows(problem.space.X)
        self.signs, self.weights = problem.signs, problem.weights
        self.scaling = scaling
        self.breakpoints, c = _hinge_table(problem)
        self.prices = np.ascontiguousarray(self.weights * c.T[:, problem.y])
        self.slopes, offsets = _cumulated(c).ravel(), _cumulated(c * self.breakpoints).ravel()
        self.tables = (self.breakpoints, self.slopes, offsets)
        self.passes = 0.0

    def evaluate(self, v: Array) -> Evaluation:
        """Scores, then their adjoint."""
        W, b = self.scaling.coefficients(v)
        n = self.signs.size
        margins, code, r = np.empty(n), np.empty(n, dtype=np.uint8), np.empty(n)
        value, g = 0.0, np.zeros(W.shape[1])
        for i, rows in self.rows.blocks():
            rows.scores(W[0], margins[i])
            value += hinge_codes(b[0], self.signs[i], self.weights[i], *self.tables, margins[i], code[i], r[i])
            g += rows.adjoint(r[i])
        self.passes += 1.0
        return Evaluation(value, self.scaling.gradient(g[None, :], r.sum(keepdims=True)).ravel(), margins, code)

    def along(self, start: Array, end: Array, tau: float) -> tuple[float, float]:
        """Risk and slope on the segment of margins."""
        return risk_along(start, end, tau, self.prices, self.breakpoints)

    def mixed(self, codes: list[NDArray], shares: Array) -> Array:
        """Multipliers R (n, 1)."""
        alpha = mix_codes(np.array(codes), shares, self.weights, self.slopes)
        return (alpha * self.signs)[:, None]


class LocalRisk:
    """Two classes, the samples near a breakpoint as they are, the others on the linear piece they are on at a point.

    A linear piece never exceeds the loss, so this is a lower bound on the risk, exact near the point: every cut of it
    is a cut of the whole risk, at the price of a pass over the near samples.
    """

    def __init__(self, whole: TwoClassRisk, problem: Problem, v: Array, evaluation: Evaluation, share: float) -> None:
        self.whole, self.scaling = whole, whole.scaling
        distance = np.full(evaluation.scores.size, np.inf)
        for t in whole.breakpoints:
            np.minimum(distance, np.abs(evaluation.scores - t), out=distance)
        some = distance[:: max(1, distance.size // 20000)]
        self.near = np.flatnonzero(distance <= np.quantile(some, share))
        self.code = evaluation.code
        self.risk = TwoClassRisk(problem.subset(self.near), whole.scaling)
        here = self.risk.evaluate(v)
        self.gradient = evaluation.gradient - here.gradient
        self.constant = evaluation.value - here.value - float(self.gradient @ v)
        self.cost = self.near.size / evaluation.scores.size

    @property
    def passes(self) -> float:
        """Evaluations at the near samples, in units of a pass over all."""
        return self.risk.passes * self.cost

    def release(self) -> None:
        """Give back the copy of the near samples; multipliers of cuts need only their codes."""
        self.risk.rows = Rows(self.risk.rows.X[:0])

    def evaluate(self, v: Array) -> Evaluation:
        """One pass over the near samples; the last score carries the linear part."""
        here = self.risk.evaluate(v)
        linear = self.constant + float(self.gradient @ v)
        return Evaluation(here.value + linear, here.gradient + self.gradient, np.append(here.scores, linear), here.code)

    def along(self, start: Array, end: Array, tau: float) -> tuple[float, float]:
        """Risk and slope on the segment of margins."""
        value, slope = self.risk.along(start[:-1], end[:-1], tau)
        rise = float(end[-1] - start[-1])
        return value + float(start[-1]) + tau * rise, slope + rise

    def mixed(self, codes: list[NDArray], shares: Array) -> Array:
        """Multipliers R (n, 1) on all samples."""
        R = self.whole.mixed([self.code], np.array([shares.sum()]))
        R[self.near] = self.risk.mixed(codes, shares)
        return R


class ManyClassRisk:
    """k classes by the two operations of any space; a code is (number of hinges in force) * k + rival."""

    def __init__(self, problem: Problem, scaling: Scaling) -> None:
        self.problem, self.scaling = problem, scaling
        self.t, c = _hinge_table(problem)
        self.slopes = _cumulated(c)
        self.passes = 0.0

    def evaluate(self, v: Array) -> Evaluation:
        """Scores, then their adjoint."""
        p = self.problem
        F = p.space.scores(*self.scaling.coefficients(v))
        u, rival = p.margins_of_scores(F), p.rivals(F)
        hinges = np.sum(u[:, None] < self.t, axis=1)
        code = (hinges * p.n_classes + rival).astype(np.uint16)
        R = -p.spread(p.weights * self.slopes[p.y, hinges], rival)
        self.passes += 1.0
        value = float(p.weights @ p.loss.convex_value(u, p.y))
        return Evaluation(value, self.scaling.gradient(p.space.combine(R), R.sum(axis=0)).ravel(), F, code)

    def along(self, start: Array, end: Array, tau: float) -> tuple[float, float]:
        """Risk and slope on the segment of scores."""
        p = self.problem
        F = start + tau * (end - start)
        u, rival = p.margins_of_scores(F), p.rivals(F)
        slope = p.spread(p.weights * p.loss.convex_slope(u, p.y), rival)
        return float(p.weights @ p.loss.convex_value(u, p.y)), -float(np.sum(slope * (end - start)))

    def mixed(self, codes: list[NDArray], shares: Array) -> Array:
        """Multipliers R (n, k)."""
        p = self.problem
        R = np.zeros((p.n, p.n_classes))
        for code, share in zip(codes, shares):
            if share > 0:
                hinges, rival = np.divmod(code, p.n_classes)
                R += p.spread(share * p.weights * self.slopes[p.y, hinges], rival.astype(np.intp))
        return R


def _hinge_table(problem: Problem) -> tuple[Array, Array]:
    """Return the breakpoints and the slopes (classes, hinges)."""
    k, hinges = problem.n_classes, problem.loss.hinges
    slopes = [np.broadcast_to(c, k) for c in problem.loss.slopes(np.arange(k))]
    return np.array([t for _, t in hinges]), np.array(slopes).reshape(len(hinges), k).T


def _cumulated(c: Array) -> Array:
    """Return sums over the first 0, 1, ... hinges, per class."""
    return np.hstack([np.zeros((c.shape[0], 1)), np.cumsum(c, axis=1)])


def risk_of(problem: Problem, scaling: Scaling | None = None) -> Risk:
    """Return the risk of a problem on a linear space."""
    scaling = scaling or sampled_scaling(problem)
    return (TwoClassRisk if problem.n_classes == 2 else ManyClassRisk)(problem, scaling)
