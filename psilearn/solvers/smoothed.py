"""Newton's method on rounded hinges: two-class linear machines with an l1 part and many samples, dense or sparse.

    minimise  P(v) + sum_ik price_ik h(t_k - u_i(v)),      h a hinge rounded off over a width in the margin

The rounded risk is piecewise quadratic, and its slope is a multiplier of the risk itself, so every look at the data
gives an objective and a dual bound. Their gap is what rounding costs, plus what is missing to stationarity. Where many
samples stand against each coefficient, rounding costs about (density of the margins at a kink) * width^2 / 24, and the
width shrinks until that is within the tolerance; where they are few, the present multipliers become the centres of the
next rounding (the proximal point method in the dual: Rockafellar, Augmented Lagrangians and Applications of the
Proximal Point Algorithm in Convex Programming, 1976), and the cost falls without much less width.

A Newton step minimises the quadratic model plus the l1 norm by coordinate descent over a working set of features: those
that are not zero and those whose slope is near or above its l1 weight. On dense data the Hessian comes from the samples
near a kink, or enough of them; on sparse data it is never formed. Margins are known along a line, so the search on it
does not touch the data. With many features the bound would wait for the slope of the last one to settle, so multipliers
are first made feasible by projections.

A step costs one pass over the data and (samples near a kink) (working set)^2, or a few sweeps over the working set's
entries. A result carries all that is known at its point, for unit C: along a path the next solve starts there,
without a look. Certifies the convex duality gap.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..kernels.smoothed import (
    gain_of,
    minimise_columns,
    minimise_quadratic,
    project_columns,
    recentre,
    respond,
    slope_along,
)
from ..problem import Problem
from ..result import Result, Status
from ..risk import Coordinates, Rows
from ..spaces import LinearSpace
from .base import Clock, Options, Solve, convex_result

Array = NDArray[np.float64]

_STEPS = 200
_NARROW = 1e-4  # least width, in units of the margin
_SHARE = 0.4  # of the tolerance that rounding may cost
_NEAR = 0.9  # slopes above this share of their l1 weight put a coefficient into the working set
_FEW = 5000  # coefficients that may join at a time, at least
_ROWS_PER_COEFFICIENT, _ROWS = 50, 5000  # samples that are enough for a Hessian
_PROJECTIONS, _SETTLED = 30, 0.005  # projections start when a step promises that share of the tolerance
_NEARLY = 0.97  # slopes above this share of their l1 weight take part in them
_REACH = 0.02, 2.0  # how far beyond a kink, in widths, samples count as near in a model: less after full steps
_SHRINK = 0.2  # of the width at a time, at most
_MANY, _THIN = 5, 0.03  # samples near a kink per coefficient, and width, below which multipliers become centres instead
_RECENTRED_SHRINK = 0.5
_FAR, _SOME = 30.0, 0.1  # promise in units of the tolerance, and working set, at which only its slopes are evaluated
_DAMPING = 1e-9, 1.0  # curvature lent to every coordinate: less after full steps, more after short ones
#: First width, reach and damping, and what a step may promise, in units of what rounding costs, to sharpen. Sparse data
#: have as many samples on kinks as coefficients: their sets change much in a step, and have to settle.
_MANY_SAMPLES_PER_COEFFICIENT, _FEW_SAMPLES_PER_COEFFICIENT = (1.0, 0.02, 1e-9, 1.0), (0.2, 0.5, 1e-4, 0.05)
_ACCURACY, _SWEEPS, _COLUMN_SWEEPS = 1e-5, 200, 5  # of the quadratic models


def refuses(problem: Problem) -> str | None:
    """Say why this machine cannot take the problem, None if it can."""
    if problem.is_kernel or problem.n_classes > 2:
        return "solver='smoothed' takes linear functions and two classes only."
    if not problem.is_convex or problem.tilt is not None or not problem.loss.hinges:
        return "solver='smoothed' needs a convex loss with a hinge, a convex penalty and no linear term on the scores."
    if not problem.penalty.has_l1:
        return "solver='smoothed' needs an l1 penalty; use solver='newton' for l2."
    return None


def solve(problem: Problem, options: Options, start: Result | None = None, finish: Solve | None = None) -> Result:
    """Solve to a relative duality gap of ``options.tol``.

    Parameters
    ----------
    problem : Problem
        Two classes, convex, linear, with an l1 part.
    options : Options
        ``tol``, ``time_limit``, ``max_iter`` (steps).
    start : Result or None
        A result on the same samples, whatever its C and penalty: the place to start, and all that is known there if it
        came from here.
    finish : Solve or None
        A solver that takes over where rounding is not fine enough.
    """
    clock = Clock(options.time_limit)
    old = start.extra.get("run") if start is not None else None
    run = old if old is not None and old.fits(problem) else _Run(problem, start)
    run.aim(problem)
    status = None
    try:
        for _ in range((options.max_iter or _STEPS) + 1):
            clock.note(run.objective * problem.C + problem.offset, run.bound * problem.C + problem.offset)
            run.tol = options.tol * abs(run.objective + problem.offset / problem.C)
            if run.promise <= min(_SETTLED * run.tol, 0.5 * run.projected) and run.rounding < run.tol:
                run.project()
            if run.objective - run.bound <= 0.9 * run.tol:
                break
            if clock.is_over:
                status = Status.TIME_LIMIT
                break
            if not (run.sharpen(run.patience) or run.step() or run.sharpen(np.inf)):
                break
        else:
            status = Status.ITERATION_LIMIT
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
    W, b = run.coordinates.coefficients(run.best)
    R = (problem.C * run.best_alpha * problem.signs)[:, None]
    result = convex_result(problem, W, b, R, options, clock, len(clock.history), status, run=run)
    if finish is not None and result.status in (Status.STALLED, Status.ITERATION_LIMIT):
        return finish(problem, replace(options, time_limit=clock.left), result)
    return result


class _Look(NamedTuple):
    """What a pass over the data tells at a point, for unit C."""

    margins: Array
    alpha: Array
    curvature: Array
    slope: Array
    risk: float
    gain: float


class _Run:
    """A point v = (w sd, b + w'mean), and the rounded risk there for unit C, so that it outlives a change of C."""

    tol: float  # the gap to reach, for unit C

    def __init__(self, problem: Problem, start: Result | None) -> None:
        assert isinstance(problem.space, LinearSpace)
        self.key = (problem.space, problem.y, problem.weights, problem.loss)
        self.rows, self.signs = Rows(problem.space.X), problem.signs
        self.coordinates = Coordinates.of(problem)
        slopes = np.broadcast_arrays(problem.weights, *problem.loss.slopes(problem.y))[1:]
        self.prices = problem.weights * np.array(slopes)
        self.knots = np.array([t for _, t in problem.loss.hinges])
        self.columns = None if isinstance(problem.space.X, np.ndarray) else problem.space.X.tocsc()
        kind = _FEW_SAMPLES_PER_COEFFICIENT if self.columns is not None else _MANY_SAMPLES_PER_COEFFICIENT
        self.width, self.reach, self.damping, self.patience = kind
        self.centres = np.full(self.prices.shape, 0.5)
        W, b = np.zeros((1, problem.space.dim)), problem.best_constant()[1]
        if start is not None:
            W, b = start.coef, start.intercept
        self.v = self.coordinates.flat(W, b)
        self.take(self.look(self.margins_at(self.v)))

    def fits(self, problem: Problem) -> bool:
        """Whether this is the problem's risk."""
        space, y, weights, loss = self.key
        same = space is problem.space and loss == problem.loss
        return same and np.array_equal(y, problem.y) and np.array_equal(weights, problem.weights)

    def aim(self, problem: Problem) -> None:
        """Take the penalty of a problem, per unit of C."""
        sd = self.coordinates.sd
        self.l1 = np.append(problem.penalty.l1_array((1, sd.size))[0] / sd, 0.0) / problem.C
        self.q = np.append(problem.penalty.l2 / sd**2, 0.0) / problem.C
        self.objective, self.bound = np.inf, -np.inf
        self.promise, self.projected = np.inf, np.inf
        self.judge()

    def margins_at(self, v: Array) -> Array:
        """Return the margins of a point: one half of a pass over the data."""
        W, b = self.coordinates.coefficients(v)
        margins = np.empty(self.signs.size)
        self.rows.scores(W[0], margins)
        margins += b[0]
        margins *= self.signs
        return margins

    def look(self, margins: Array, wanted: NDArray[np.intp] | None = None) -> _Look:
        """Evaluate risk, multipliers and slopes, maybe only the wanted ones (others stay): the other half."""
        alpha, curvature = np.empty(margins.size), np.empty(margins.size)
        risk, gain = respond(margins, self.prices, self.centres, self.knots, self.width, self.reach, alpha, curvature)
        r = -alpha * self.signs
        if wanted is None:
            g = self.rows.adjoint(r)
            return _Look(margins, alpha, curvature, self._slope(g, r), risk, gain)
        g = np.zeros(self.coordinates.sd.size)
        g[wanted[:-1]] = self.rows.adjoint(r, wanted[:-1])
        slope = self.slope.copy()
        slope[wanted] = self._slope(g, r)[wanted]
        return _Look(margins, alpha, curvature, slope, risk, gain)

    def _slope(self, g: Array, r: Array) -> Array:
        return self.coordinates.gradient(g[None, :], r.sum(keepdims=True))

    def take(self, look: _Look) -> None:
        """Make what was seen at a point the present."""
        self.margins, self.alpha, self.curvature, self.slope, self.risk, self.gain = look
        self.rounding = self.risk - self.gain + float(self.alpha @ self.margins)

    def judge(self, knows_slopes: bool = True) -> None:
        """Keep the point if it is the best so far, and its multipliers if their bound is."""
        used = self.v != 0
        penalty = float(self.l1[used] @ np.abs(self.v[used])) + 0.5 * float(self.q @ self.v**2)
        if penalty + self.risk < self.objective:
            self.objective, self.best = penalty + self.risk, self.v
        bound = self.dual_value(self.slope, self.gain) if knows_slopes else -np.inf
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
        limits = self.l1[:-1] * self.coordinates.sd
        alpha = self.alpha.copy()
        project_columns(*Z, limits, self.signs, self.prices.sum(axis=0), self.curvature, alpha, _PROJECTIONS)
        r = -alpha * self.signs
        slope = self.coordinates.gradient(self.rows.adjoint(r)[None, :], r.sum(keepdims=True))
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
        every = max(1, rows.size // max(_ROWS, _ROWS_PER_COEFFICIENT * chosen.size))
        rows = rows[::every]
        Z = np.ones((rows.size, chosen.size))
        Z[:, :-1] = self.rows.X[np.ix_(rows, features)] - self.coordinates.mean[features]
        Z[:, :-1] /= self.coordinates.sd[features]
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
            scale = 1.0 / self.coordinates.sd[chosen[:-1]]
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
        self.take(self.look(margins, None if is_last else chosen))
        self.judge(is_last)
        return True

    def search(self, there: Array, margins: Array) -> float:
        """Return a step length in [0, 1] at which the rounded objective is nearly least on the line."""
        step = there - self.v
        used = np.flatnonzero(step)

        def slope(tau: float) -> float:
            at = self.v + tau * step
            kink = self.l1[used] * np.where(at != 0, np.sign(at), np.sign(step))[used]
            smooth = slope_along(self.margins, margins, tau, self.prices, self.centres, self.knots, self.width)
            return smooth + float(kink @ step[used]) + float((self.q * at) @ step)

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
