"""A point of the rounded risk and all that is known there; Newton steps, and the samples that matter for the next ones.

    minimise  P(v) + sum_ik price_ik h(t_k - u_i(v)),      h a hinge rounded off over a width in the margin

Samples that stay away from every kink are on a linear piece of the risk, which one slope and one gain tell: a
:class:`Run` can be restricted to the others, and what it proves there holds for all.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...core.problem import Problem
from ...core.result import Result
from ...core.scaling import Scaling
from ...core.spaces import LinearSpace
from ..risk import Rows, sampled_scaling
from .hinges_jit import gain_of, minimise_columns, minimise_quadratic, project_columns, recentre, respond, slope_along

Array = NDArray[np.float64]

_NARROW = 1e-4  # least width, in units of the margin
_SHARE = 0.4  # of the tolerance that rounding may cost
_NEAR = 0.9  # slopes above this share of their l1 weight put a coefficient into the working set
_FEW = 5000  # coefficients that may join at a time, at least
_ROWS_PER_COEFFICIENT, _ROWS = 50, 5000  # samples that are enough for a Hessian
_PROJECTIONS = 30
_NEARLY = 0.97  # slopes above this share of their l1 weight take part in them
_REACH = 0.001, 2.0  # how far beyond a kink, in widths, samples count as near in a model: less after full steps
_SHRINK = 0.2  # of the width at a time, at most
_MANY, _THIN = 5, 0.03  # samples near a kink per coefficient, and width, below which multipliers become centres instead
_RECENTRED_SHRINK = 0.5
_FAR, _SOME = 30.0, 0.1  # promise in units of the tolerance, and working set, at which only its slopes are evaluated
_DAMPING = 1e-9, 1.0  # curvature lent to every coordinate: less after full steps, more after short ones
#: First width, reach and damping, and what a step may promise, in units of what rounding costs, to sharpen. Sparse data
#: have as many samples on kinks as coefficients: their sets change much in a step, and have to settle.
_MANY_SAMPLES_PER_COEFFICIENT, _FEW_SAMPLES_PER_COEFFICIENT = (1.0, 0.02, 1e-9, 1.0), (0.2, 0.5, 1e-4, 0.05)
_WORK = 20_000_000  # multiplications for a Hessian that is worth its price near the solution
_LEFT = 0.005  # share of the samples that may leave a linear piece they were thought to stay on
_ACCURACY, _SWEEPS, _COLUMN_SWEEPS = 1e-5, 200, 5  # of the quadratic models


class _Look(NamedTuple):
    """What a pass over the data tells at a point, for unit C."""

    margins: Array
    alpha: Array
    curvature: Array
    slope: Array
    risk: float
    gain: float


class Run:
    """A point v = (w sd, b + w'mean), and the rounded risk there for unit C, so that it outlives a change of C."""

    tol: float  # the gap to reach, for unit C

    def __init__(self, problem: Problem, scaling: Scaling) -> None:
        assert isinstance(problem.space, LinearSpace)
        self.key = (problem.space, problem.y, problem.weights, problem.loss)
        self.rows, self.signs = Rows(problem.space.X), problem.signs
        self.scaling = scaling
        self.prices = np.array([problem.weights * c for c in problem.loss.slopes(problem.y)])
        self.knots = np.array([t for _, t in problem.loss.hinges])
        self.columns = None if isinstance(self.rows.X, np.ndarray) else self.rows.X.tocsc()
        kind = _FEW_SAMPLES_PER_COEFFICIENT if self.columns is not None else _MANY_SAMPLES_PER_COEFFICIENT
        self.width, self.reach, self.damping, self.patience = kind
        self.centres = np.full(self.prices.shape, 0.5)
        self.far_slope, self.far_gain = np.zeros(scaling.scale.size + 1), 0.0
        self.passes, self.hessian_work = 0.0, 0

    @classmethod
    def at(cls, problem: Problem, start: Result | None, scaling: Scaling | None = None) -> Run:
        """Look at a start, or at the best constant."""
        run = cls(problem, scaling or sampled_scaling(problem))
        W, b = np.zeros((1, problem.space.dim)), problem.best_constant()[1]
        if start is not None:
            W, b = start.coef, start.intercept
        run.move(run.scaling.from_coefficients(W, b)[0])
        return run

    def move(self, v: Array) -> None:
        """Look at a point."""
        self.v = v
        self.take(self.look(self.margins_at(v)))

    def restricted(self, problem: Problem, rows: NDArray[np.intp]) -> Run:
        """Return the run on some of the samples; the others stay on the linear piece of the risk they are on."""
        part = Run(problem.subset(rows), self.scaling)
        part.width, part.reach, part.damping, part.patience = self.width, self.reach, self.damping, self.patience
        part.centres, part.v, part.hessian_work = self.centres[:, rows], self.v, _WORK
        part.reach = _REACH[0]
        part.take(part.look(self.margins[rows]))
        part.far_slope, part.far_gain = self.slope - part.slope, self.gain - part.gain
        part.slope = self.slope
        return part

    def absorb(self, part: Run, rows: NDArray[np.intp]) -> bool:
        """Go where the run on some of the samples went; False, and stay, if many others left their linear piece."""
        part.complete()
        self.width, self.reach, self.damping = part.width, part.reach, part.damping
        self.centres[:, rows] = part.centres
        look = self.respond(self.margins_at(part.v))
        change = self.alpha - look.alpha
        if np.count_nonzero(change) - np.count_nonzero(change[rows]) > _LEFT * change.size:
            self.take(self.look(self.margins))
            return False
        change[rows] = part.alpha - look.alpha[rows]
        others = np.flatnonzero(change)
        self.v = part.v
        r = change[others] * self.signs[others]
        slope = part.slope + self._slope(self.rows.X[others].T @ r, r)
        self.take(look._replace(slope=slope))
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
            self.take(self.look(self.margins))

    def margins_at(self, v: Array) -> Array:
        """Return the margins of a point: one half of a pass over the data."""
        W, b = self.scaling.coefficients(v)
        margins = np.empty(self.signs.size)
        self.passes += 0.5
        self.rows.scores(W[0], margins)
        margins += b[0]
        margins *= self.signs
        return margins

    def respond(self, margins: Array) -> _Look:
        """Evaluate risk and multipliers, not the slopes."""
        alpha, curvature = np.empty(margins.size), np.empty(margins.size)
        risk, gain = respond(margins, self.prices, self.centres, self.knots, self.width, self.reach, alpha, curvature)
        return _Look(margins, alpha, curvature, np.zeros(0), risk, gain)

    def look(self, margins: Array, wanted: NDArray[np.intp] | None = None) -> _Look:
        """Evaluate risk, multipliers and slopes, maybe only the wanted ones (others stay): the other half."""
        look = self.respond(margins)
        r = -look.alpha * self.signs
        self.passes += 0.5
        if wanted is None:
            return look._replace(slope=self._slope(self.rows.adjoint(r), r) + self.far_slope)
        g = np.zeros(self.scaling.scale.size)
        g[wanted[:-1]] = self.rows.adjoint(r, wanted[:-1])
        slope = self.slope.copy()
        slope[wanted] = (self._slope(g, r) + self.far_slope)[wanted]
        return look._replace(slope=slope)

    def _slope(self, g: Array, r: Array) -> Array:
        return self.scaling.gradient(g[None, :], r.sum(keepdims=True))[0]

    def take(self, look: _Look, knows_slopes: bool = True) -> None:
        """Make what was seen at a point the present."""
        self.knows_slopes = knows_slopes
        self.margins, self.alpha, self.curvature, self.slope, self.risk, self.gain = look
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
        unbalanced = abs(slope[-1]) * (1.0 + float(np.abs(self.knots).max()))
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
        chosen = np.flatnonzero(np.abs(self.slope[:-1]) > _NEARLY * self.l1[:-1])
        Z = (self.columns.data, self.columns.indices, self.columns.indptr, chosen)
        limits = self.l1[:-1] * self.scaling.scale
        alpha = self.alpha.copy()
        project_columns(*Z, limits, self.signs, self.prices.sum(axis=0), self.curvature, alpha, _PROJECTIONS)
        r = -alpha * self.signs
        slope = self._slope(self.rows.adjoint(r), r)
        bound = self.dual_value(slope, gain_of(alpha, self.prices, self.knots))
        if bound > self.bound:
            self.bound, self.best_alpha = bound, alpha

    def sharpen(self, patience: float) -> bool:
        """Round less if that costs too much and the last step promised at most ``patience`` times that; True if so."""
        allowed = _SHARE * self.tol
        if self.rounding <= allowed or self.promise > patience * self.rounding or self.width <= _NARROW:
            return False
        factor = max(np.sqrt(0.7 * allowed / self.rounding), _SHRINK)
        if np.count_nonzero(self.curvature) < _MANY * np.count_nonzero(self.v) or factor * self.width < _THIN:
            recentre(self.margins, self.knots, self.width, self.centres)
            factor = max(factor, _RECENTRED_SHRINK)
        self.width = max(factor * self.width, _NARROW)
        self.take(self.look(self.margins))
        self.judge()
        return True

    def working_set(self) -> NDArray[np.intp]:
        """Return the coefficients that may move, the intercept last."""
        excess = np.abs(self.slope[:-1]) - _NEAR * self.l1[:-1]
        inside = self.v[:-1] != 0
        wanted = np.flatnonzero((excess > 0) & ~inside)
        most = max(_FEW, 2 * int(inside.sum()))
        if wanted.size > most:
            wanted = wanted[np.argpartition(-excess[wanted] / self.l1[wanted], most)[:most]]
        return np.concatenate([np.sort(np.concatenate([np.flatnonzero(inside), wanted])), [self.v.size - 1]])

    def hessian(self, chosen: NDArray[np.intp], ridge: Array) -> Array:
        """Return the second derivatives of the rounded risk in some coordinates, and a ridge."""
        features = chosen[:-1]
        rows = np.flatnonzero(self.curvature)
        enough = max(_ROWS, _ROWS_PER_COEFFICIENT * chosen.size, self.hessian_work // chosen.size**2)
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
            there[chosen] = minimise_quadratic(self.hessian(chosen, ridge), *model, _ACCURACY, _SWEEPS)
        else:
            Z = (self.columns.data, self.columns.indices, self.columns.indptr, chosen[:-1])
            scale = 1.0 / self.scaling.scale[chosen[:-1]]
            there[chosen] = minimise_columns(*Z, scale, self.curvature, *model, ridge, _ACCURACY, _COLUMN_SWEEPS)
        margins = self.margins_at(there)
        tau = self.search(there, margins)
        self.damping = float(np.clip(self.damping * (0.3 if tau == 1.0 else 1.0 if tau > 0.3 else 10.0), *_DAMPING))
        self.reach = float(np.clip(self.reach * (0.8 if tau == 1.0 else 1.0 if tau > 0.6 else 1.5), *_REACH))
        if tau == 0.0:
            return self.damping < _DAMPING[1]
        if tau < 1.0:
            there, margins = self.v + tau * (there - self.v), self.margins + tau * (margins - self.margins)
        # A step that promised much is not the last; it tells what the next one needs, and not the bound.
        is_last = self.promise <= _FAR * self.tol or chosen.size > _SOME * self.v.size or self.columns is not None
        self.v = there
        self.take(self.look(margins, None if is_last else chosen), is_last)
        self.judge()
        return True

    def search(self, there: Array, margins: Array) -> float:
        """Return a step length in [0, 1] at which the rounded objective is nearly least on the line."""
        step = there - self.v
        used = np.flatnonzero(step)

        def slope(tau: float) -> float:
            at = self.v + tau * step
            kink = self.l1[used] * np.where(at != 0, np.sign(at), np.sign(step))[used]
            smooth = slope_along(self.margins, margins, tau, self.prices, self.centres, self.knots, self.width)
            return smooth + float(kink @ step[used]) + float((self.q * at + self.far_slope) @ step)

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
