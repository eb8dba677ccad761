"""A point of the smoothed risk and all that is known there; Newton steps, and the samples that matter for the next.

    minimise  P(v) + sum_ik price_ik h(t_k - u_i(v)),      h a hinge smoothed over a width in the margin

Samples that stay away from every breakpoint are on a linear piece of the risk, which one slope and one gain tell: a
:class:`Iterate` can be restricted to the others, and what it proves there holds for all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.linalg as sla
from numpy.typing import NDArray

from ...core.problem import Problem
from ...core.result import Result
from ...core.scaling import Scaling
from ...core.spaces import LinearSpace
from ..risk import Rows, sampled_scaling
from .hinges_jit import gain_of, minimise_columns, minimise_quadratic, project_columns, recentre, respond, slope_along

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Settings:
    """Numbers of the method; widths are in units of the margin, shares have no unit.

    Attributes
    ----------
    least_width : float
        Width at which smoothing ends: below, rounding errors of the margins count.
    smoothing_share : float
        Share of the tolerance that smoothing may cost; the rest is for what is missing to stationarity.
    most_shrink, recentred_shrink : float
        Least factors of the width in one go, and after the centres moved: a large change would lose the Newton region.
    samples_per_coefficient, thin : float
        Samples near a breakpoint per non-zero coefficient, and width, below which centres move as the width shrinks.
    joins : float
        Share of its l1 weight from which a slope puts a coefficient into the working set.
    most_joining : int
        Coefficients that may join at a time, at least.
    hessian_rows, hessian_rows_per_coefficient : int
        Samples that tell the second derivatives well enough.
    hessian_work : int
        Multiplications for a Hessian of more samples that is worth its price near the solution.
    projections, projected : int and float
        Sweeps that make multipliers feasible, and share of its l1 weight from which a slope takes part.
    reach : tuple of float
        Limits, in widths, of how far beyond a breakpoint samples count for the Hessian: less after full steps.
    damping : tuple of float
        Limits of the curvature lent to every coefficient: less after full steps, more after short ones.
    far, partial : float
        A step that promises more than ``far`` tolerances evaluates only the slopes of its working set, if that is at
        most a share ``partial`` of the coefficients.
    leavers : float
        Share of the samples that may leave a linear piece they were expected to stay on.
    accuracy, sweeps, column_sweeps : float and int
        Of coordinate descent on the quadratic models: slopes relative to l1, and sweeps on dense and on sparse data.
    dense, sparse : tuple of float
        First width, reach and damping, and what a step may promise, in units of what smoothing costs, when the width
        shrinks. Sparse data have as many samples on breakpoints as coefficients: their sets have to settle first.
    """

    least_width: float = 1e-4
    smoothing_share: float = 0.4
    most_shrink: float = 0.2
    recentred_shrink: float = 0.5
    samples_per_coefficient: float = 5
    thin: float = 0.03
    joins: float = 0.9
    most_joining: int = 5000
    hessian_rows: int = 5000
    hessian_rows_per_coefficient: int = 50
    hessian_work: int = 20_000_000
    projections: int = 30
    projected: float = 0.97
    reach: tuple[float, float] = (0.001, 2.0)
    damping: tuple[float, float] = (1e-9, 1.0)
    far: float = 30.0
    partial: float = 0.1
    leavers: float = 0.005
    accuracy: float = 1e-5
    sweeps: int = 200
    column_sweeps: int = 5
    dense: tuple[float, float, float, float] = (1.0, 0.02, 1e-9, 1.0)
    sparse: tuple[float, float, float, float] = (0.2, 0.5, 1e-4, 0.05)


_USE = Settings()


class _Evaluation(NamedTuple):
    """What a pass over the data tells at a point, for unit C."""

    margins: Array
    alpha: Array
    curvature: Array
    slope: Array
    risk: float
    gain: float


class Iterate:
    """A point v = (w sd, b + w'mean), and the smoothed risk there for unit C, so that it outlives a change of C."""

    tol: float  # the gap to reach, for unit C

    def __init__(self, problem: Problem, scaling: Scaling) -> None:
        assert isinstance(problem.space, LinearSpace)
        self.key = (problem.space, problem.y, problem.weights, problem.loss)
        self.rows, self.signs = Rows(problem.space.X), problem.signs
        self.scaling = scaling
        self.prices = np.array([problem.weights * c for c in problem.loss.slopes(problem.y)])
        self.breakpoints = np.array([t for _, t in problem.loss.hinges])
        self.columns = None if isinstance(self.rows.X, np.ndarray) else self.rows.X.tocsc()
        kind = _USE.sparse if self.columns is not None else _USE.dense
        self.width, self.reach, self.damping, self.patience = kind
        self.centres = np.full(self.prices.shape, 0.5)
        self.far_slope, self.far_gain = np.zeros(scaling.scale.size + 1), 0.0
        self.passes, self.hessian_work = 0.0, 0

    @classmethod
    def at(cls, problem: Problem, start: Result | None, scaling: Scaling | None = None) -> Iterate:
        """Evaluate at a start, or at the best constant."""
        iterate = cls(problem, scaling or sampled_scaling(problem))
        W, b = np.zeros((1, problem.space.dim)), problem.best_constant()[1]
        if start is not None:
            W, b = start.coef, start.intercept
        iterate.move(iterate.scaling.from_coefficients(W, b)[0])
        return iterate

    def move(self, v: Array) -> None:
        """Evaluate at a point."""
        self.v = v
        self.take(self.evaluate(self.margins_at(v)))

    def restricted(self, problem: Problem, rows: NDArray[np.intp]) -> Iterate:
        """Return the iterate on some of the samples; the others stay on the linear piece of the risk they are on."""
        part = Iterate(problem.subset(rows), self.scaling)
        part.width, part.reach, part.damping, part.patience = self.width, self.reach, self.damping, self.patience
        part.centres, part.v, part.hessian_work = self.centres[:, rows], self.v, _USE.hessian_work
        part.reach = _USE.reach[0]
        part.take(part.evaluate(self.margins[rows]))
        part.far_slope, part.far_gain = self.slope - part.slope, self.gain - part.gain
        part.slope = self.slope
        return part

    def absorb(self, part: Iterate, rows: NDArray[np.intp]) -> bool:
        """Go where the iterate on some of the samples went; False, and stay, if many others left their linear piece."""
        part.complete()
        self.width, self.reach, self.damping = part.width, part.reach, part.damping
        self.centres[:, rows] = part.centres
        evaluation = self.respond(self.margins_at(part.v))
        change = self.alpha - evaluation.alpha
        if np.count_nonzero(change) - np.count_nonzero(change[rows]) > _USE.leavers * change.size:
            self.take(self.evaluate(self.margins))
            return False
        change[rows] = part.alpha - evaluation.alpha[rows]
        others = np.flatnonzero(change)
        self.v = part.v
        r = change[others] * self.signs[others]
        slope = part.slope + self._slope(self.rows.X[others].T @ r, r)
        self.take(evaluation._replace(slope=slope))
        self.passes += part.passes * rows.size / self.signs.size + 0.5 * others.size / self.signs.size
        return True

    def fits(self, problem: Problem) -> bool:
        """Whether this is the problem's risk."""
        space, y, weights, loss = self.key
        same = space is problem.space and loss == problem.loss
        return same and np.array_equal(y, problem.y) and np.array_equal(weights, problem.weights)

    def aim(self, problem: Problem) -> None:
        """Take the penalty of a problem, per unit of C."""
        q, l1 = self.scaling.penalty(problem.penalty, 1)
        self.q, self.l1 = q[0] / problem.C, l1[0] / problem.C
        self.objective, self.bound = np.inf, -np.inf
        self.promise, self.projected = np.inf, np.inf
        self.complete()
        self.judge()

    @property
    def threshold(self) -> float:
        """Multiple of C from which coefficients would leave zero, if they are all zero and as far as rounding tells."""
        priced = np.flatnonzero(self.l1 > 0)
        return 1.0 / max(float(np.max(np.abs(self.slope[priced]) / self.l1[priced], initial=0.0)), 1e-3)

    def complete(self) -> None:
        """Evaluate all slopes if only some are known."""
        if not self.knows_slopes:
            self.take(self.evaluate(self.margins))

    def margins_at(self, v: Array) -> Array:
        """Return the margins of a point: one half of a pass over the data."""
        W, b = self.scaling.coefficients(v)
        margins = np.empty(self.signs.size)
        self.passes += 0.5
        self.rows.scores(W[0], margins)
        margins += b[0]
        margins *= self.signs
        return margins

    def respond(self, margins: Array) -> _Evaluation:
        """Evaluate risk and multipliers, not the slopes."""
        alpha, curvature = np.empty(margins.size), np.empty(margins.size)
        hinges = (self.prices, self.centres, self.breakpoints, self.width)
        risk, gain = respond(margins, *hinges, self.reach, alpha, curvature)
        return _Evaluation(margins, alpha, curvature, np.zeros(0), risk, gain)

    def evaluate(self, margins: Array, wanted: NDArray[np.intp] | None = None) -> _Evaluation:
        """Evaluate risk, multipliers and slopes, maybe only the wanted ones (others stay): the other half."""
        evaluation = self.respond(margins)
        r = -evaluation.alpha * self.signs
        self.passes += 0.5
        if wanted is None:
            return evaluation._replace(slope=self._slope(self.rows.adjoint(r), r) + self.far_slope)
        g = np.zeros(self.scaling.scale.size)
        g[wanted[:-1]] = self.rows.adjoint(r, wanted[:-1])
        slope = self.slope.copy()
        slope[wanted] = (self._slope(g, r) + self.far_slope)[wanted]
        return evaluation._replace(slope=slope)

    def _slope(self, g: Array, r: Array) -> Array:
        return self.scaling.gradient(g[None, :], r.sum(keepdims=True))[0]

    def take(self, evaluation: _Evaluation, knows_slopes: bool = True) -> None:
        """Make what was seen at a point the present."""
        self.knows_slopes = knows_slopes
        self.margins, self.alpha, self.curvature, self.slope, self.risk, self.gain = evaluation
        self.rounding = self.risk - self.gain + float(self.alpha @ self.margins)

    def judge(self) -> None:
        """Keep the point if it is the best so far, and its multipliers if their bound is."""
        used = self.v != 0
        penalty = float(self.l1[used] @ np.abs(self.v[used])) + 0.5 * float(self.q @ self.v**2)
        objective = penalty + self.risk + self.far_gain + float(self.far_slope @ self.v)
        if objective < self.objective:
            self.objective, self.best = objective, self.v
        bound = self.dual_value(self.slope, self.gain + self.far_gain) if self.knows_slopes else -np.inf
        if bound > self.bound:
            self.bound, self.best_alpha = bound, self.alpha

    def dual_value(self, slope: Array, gain: float) -> float:
        """Estimate the bound of multipliers; what unbalances them is charged as a repair would."""
        slopes, l1 = np.abs(slope[:-1]), self.l1[:-1]
        unbalanced = abs(slope[-1]) * (1.0 + float(np.abs(self.breakpoints).max()))
        if np.any(self.q > 0):
            excess = np.maximum(slopes - l1, 0.0)
            return gain - unbalanced - 0.5 * float(np.sum(excess**2 / self.q[:-1]))
        excess = slopes > l1
        return gain * float(np.min(l1[excess] / slopes[excess], initial=1.0)) - unbalanced

    def project(self) -> None:
        """Make the multipliers feasible by projections: cheaper than to wait for the last of many coefficients."""
        self.projected = self.promise
        if self.columns is None:
            return
        chosen = np.flatnonzero(np.abs(self.slope[:-1]) > _USE.projected * self.l1[:-1])
        Z = (self.columns.data, self.columns.indices, self.columns.indptr, chosen)
        limits = self.l1[:-1] * self.scaling.scale
        alpha = self.alpha.copy()
        project_columns(*Z, limits, self.signs, self.prices.sum(axis=0), self.curvature, alpha, _USE.projections)
        r = -alpha * self.signs
        slope = self._slope(self.rows.adjoint(r), r)
        bound = self.dual_value(slope, gain_of(alpha, self.prices, self.breakpoints))
        if bound > self.bound:
            self.bound, self.best_alpha = bound, alpha

    def sharpen(self, patience: float) -> bool:
        """Round less if that costs too much and the last step promised at most ``patience`` times that; True if so."""
        allowed = _USE.smoothing_share * self.tol
        if self.rounding <= allowed or self.promise > patience * self.rounding or self.width <= _USE.least_width:
            return False
        factor = max(np.sqrt(0.7 * allowed / self.rounding), _USE.most_shrink)
        if (
            np.count_nonzero(self.curvature) < _USE.samples_per_coefficient * np.count_nonzero(self.v)
            or factor * self.width < _USE.thin
        ):
            recentre(self.margins, self.breakpoints, self.width, self.centres)
            factor = max(factor, _USE.recentred_shrink)
        self.width = max(factor * self.width, _USE.least_width)
        self.take(self.evaluate(self.margins))
        self.judge()
        return True

    def working_set(self) -> NDArray[np.intp]:
        """Return the coefficients that may move, the intercept last."""
        excess = np.abs(self.slope[:-1]) - _USE.joins * self.l1[:-1]
        inside = self.v[:-1] != 0
        wanted = np.flatnonzero((excess > 0) & ~inside)
        most = max(_USE.most_joining, 2 * int(inside.sum()))
        if wanted.size > most:
            wanted = wanted[np.argpartition(-excess[wanted] / self.l1[wanted], most)[:most]]
        return np.concatenate([np.sort(np.concatenate([np.flatnonzero(inside), wanted])), [self.v.size - 1]])

    def hessian(self, chosen: NDArray[np.intp], ridge: Array) -> Array:
        """Return the second derivatives of the smoothed risk in some coordinates, and a ridge."""
        features = chosen[:-1]
        rows = np.flatnonzero(self.curvature)
        enough = max(
            _USE.hessian_rows, _USE.hessian_rows_per_coefficient * chosen.size, self.hessian_work // chosen.size**2
        )
        every = max(1, rows.size // enough)
        rows = rows[::every]
        Z = np.ones((rows.size, chosen.size))
        X = self.rows.X
        few = 4 * features.size < X.shape[1]
        Z[:, :-1] = X[np.ix_(rows, features)] if few else X.take(rows, axis=0).take(features, axis=1)
        Z[:, :-1] -= self.scaling.mean[features]
        Z[:, :-1] /= self.scaling.scale[features]
        Z *= np.sqrt(every * self.curvature[rows])[:, None]
        H = Z.T @ Z
        H[np.diag_indices_from(H)] += ridge
        return H

    def step(self) -> bool:
        """Take a Newton step with a search along its line; False if it leads nowhere."""
        chosen = self.working_set()
        g = self.slope[chosen] + self.q[chosen] * self.v[chosen]
        model = (g, self.v[chosen], self.l1[chosen])
        there = self.v.copy()
        ridge = self.q[chosen] + self.damping * self.prices.sum() / self.width
        if self.columns is None:
            H = self.hessian(chosen, ridge)
            factor, fails = sla.lapack.dpotrf(H) if not model[2].any() else (H, 1)
            if not fails:
                there[chosen] -= sla.cho_solve((factor, False), g)
            else:
                there[chosen] = minimise_quadratic(H, *model, _USE.accuracy, _USE.sweeps)
        else:
            Z = (self.columns.data, self.columns.indices, self.columns.indptr, chosen[:-1])
            scale = 1.0 / self.scaling.scale[chosen[:-1]]
            there[chosen] = minimise_columns(
                *Z, scale, self.curvature, *model, ridge, _USE.accuracy, _USE.column_sweeps
            )
        margins = self.margins_at(there)
        tau = self.search(there, margins)
        self.damping = float(np.clip(self.damping * (0.3 if tau == 1.0 else 1.0 if tau > 0.3 else 10.0), *_USE.damping))
        self.reach = float(np.clip(self.reach * (0.8 if tau == 1.0 else 1.0 if tau > 0.6 else 1.5), *_USE.reach))
        if tau == 0.0:
            return self.damping < _USE.damping[1]
        if tau < 1.0:
            there, margins = self.v + tau * (there - self.v), self.margins + tau * (margins - self.margins)
        # A step that promised much is not the last; it tells what the next one needs, and not the bound.
        is_last = (
            self.promise <= _USE.far * self.tol or chosen.size > _USE.partial * self.v.size or self.columns is not None
        )
        self.v = there
        self.take(self.evaluate(margins, None if is_last else chosen), is_last)
        self.judge()
        return True

    def search(self, there: Array, margins: Array) -> float:
        """Return a step length in [0, 1] at which the smoothed objective is nearly least on the line."""
        step = there - self.v
        used = np.flatnonzero(step)

        def slope(tau: float) -> float:
            at = self.v + tau * step
            l1_slope = self.l1[used] * np.where(at != 0, np.sign(at), np.sign(step))[used]
            smooth = slope_along(self.margins, margins, tau, self.prices, self.centres, self.breakpoints, self.width)
            return smooth + float(l1_slope @ step[used]) + float((self.q * at + self.far_slope) @ step)

        first = slope(0.0)
        self.promise = -first
        if not first < 0.0:
            return 0.0
        low, high, tau = 0.0, 1.0, 1.0
        while (f := slope(tau)) > -0.1 * first or (f < 0.2 * first and tau < 1.0):
            low, high = (tau, high) if f < 0 else (low, tau)
            tau = 0.5 * (low + high)
            if high - low < 1e-6:
                return low
        return tau
