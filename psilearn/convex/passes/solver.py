"""The proximal point method in the dual for data in blocks: linear, l2, l1 or elastic net, any classes, any tilt.

    minimise  P(V) + sum_i cost_i g(u_i) + <tilt, F>

The loss of a sample is cost_i g(u_i) = max_R gain_i(R) - <R, F_i> over its multipliers R. A proximal term
delta_i/2 ||R - R0_i||^2 makes it smooth; where the smoothed objective is least, R is the next centre R0 and delta
shrinks (Rockafellar, Augmented Lagrangians and Applications of the Proximal Point Algorithm in Convex Programming,
1976).
Multipliers and centres are never stored: each is a function of a point, so a short chain of points is all there is.

One pass over the data gives the smoothed risk with two derivatives, and the gain of the multipliers; objective, dual
value and the next Newton step follow. With many samples the first centre is enough: smoothing alone costs about
(density of the margins at a breakpoint) width^2 / 2 of the objective. At the end one more makes the bound rigorous
(:mod:`psilearn.core.chunks.proof`). Cost: a pass takes O(n m p) and O(near (m p)^2), near being the samples that can
move.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg as sla
from numpy.typing import NDArray

from ...core.bounds.duality import l1_shrinkage
from ...core.capabilities import ANY_CLASSES, ANY_CONVEX, CONVEX_PENALTIES, TILT, Takes
from ...core.chunks.problem import ChunkedProblem, Implied
from ...core.chunks.sums import Smoothing, Sums
from ...core.problem import Problem
from ...core.result import Certificate, Claim, InconsistentBoundError, Result, Status
from ...core.solving import LOGGER, Answer, Clock, Options, uncertified
from ..smoothed.hinges_jit import minimise_quadratic
from .model_jit import minimise_pairs

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Numbers:
    """Numbers of the method; widths are in units of the margin, the rest has no unit.

    Attributes
    ----------
    first_width, warm_width, least_width : float
        Width of the bend of a hinge: cold, from a start, and where rounding errors begin to count.
    easy, hard : (int, float)
        After a centre that took up to so many steps the width shrinks by this factor.
    settled : float
        A centre is done when what is missing to the smoothed minimum is below this share of what smoothing costs.
    share : float
        Share of the tolerance at which the bound is made rigorous.
    most_centres : int
        Centres that are kept; each costs a product with the data in every pass.
    passes : int
        Passes after which the method gives up.
    least_damping, first_damping, most_damping : float
        Curvature lent to every coefficient, as a share of what all samples together could give: always, after a step
        that failed, and enough for a step to descend wherever features have few outliers.
    descent, trusted : float
        Share of what a step promises that it must bring, and the share above which damping falls.
    shorter : float
        Part of a step that is tried when the whole one fails,
    factors : tuple of float
        and factors of the damping that are tried with it, in one pass.
    rounding : float
        Relative size of a promise that is only rounding.
    hessian_rows, rows_per_coefficient : int
        Moving samples, at least, that tell the second derivatives well enough.
    most_coefficients : int
        Unknowns up to which the Hessian is formed: 200 MB.
    """

    first_width: float = 4.0
    warm_width: float = 0.1
    least_width: float = 1e-7
    easy: tuple[int, float] = (2, 0.1)
    hard: tuple[int, float] = (5, 0.2)
    settled: float = 0.3
    share: float = 0.7
    most_centres: int = 6
    passes: int = 300
    least_damping: float = 1e-13
    first_damping: float = 1e-6
    most_damping: float = 4.0
    descent: float = 1e-4
    trusted: float = 0.3
    shorter: float = 0.3
    factors: tuple[float, ...] = (10.0, 300.0, 1e4)
    rounding: float = 1e-14
    hessian_rows: int = 10_000
    rows_per_coefficient: int = 100
    most_coefficients: int = 5000


NUMBERS = Numbers()


def _too_wide(problem: Problem) -> str | None:
    unknowns = problem.n_functions * (problem.space.dim + 1)
    if unknowns <= NUMBERS.most_coefficients:
        return None
    return f"Data in blocks may have up to {NUMBERS.most_coefficients} coefficients; this problem has {unknowns}."


TAKES = Takes(
    "passes",
    losses=ANY_CONVEX,
    spaces=frozenset({"chunked"}),
    classes=ANY_CLASSES,
    tilts=TILT,
    penalties=CONVEX_PENALTIES - {"free coefficients"},
    limit=_too_wide,
)


def solve(problem: ChunkedProblem, options: Options, start: Result | None = None) -> Result:
    """Solve to a relative duality gap of ``options.tol``.

    Parameters
    ----------
    problem : ChunkedProblem
        What to minimise.
    options : Options
        ``tol``, ``time_limit``, ``max_iter`` (passes).
    start : Result or None
        A result on the same data, whatever its tilt and C: the coefficients and centres where the search begins.
    """
    TAKES.check(problem)  # type: ignore[arg-type]
    clock = Clock(options.time_limit)
    search = _Search(problem, start)
    status = search.run(options, clock)
    return search.result(options, clock, status)


@dataclass(frozen=True, eq=False)
class _Here:
    """A smoothed point, its sums, and what follows from them."""

    at: Smoothing
    sums: Sums
    penalty: float

    @property
    def objective(self) -> float:
        return self.penalty + self.sums.risk

    @property
    def smooth(self) -> float:
        """The smoothed objective."""
        total = self.penalty + self.sums.smooth
        return total if np.isfinite(total) else np.inf

    @property
    def smoothing(self) -> float:
        """The part of the duality gap that smoothing makes; the rest is what is missing to the smoothed minimum."""
        return max(self.sums.risk - self.sums.gain + float(np.sum(self.sums.net * self.at.V)), 0.0)


class _Search:
    """Centres, Newton steps to the smoothed minimum around each, and what has been proved."""

    def __init__(self, problem: ChunkedProblem, start: Result | None) -> None:
        self.problem = problem
        self.passes = self.effort = self.near = 0
        self.damping = NUMBERS.least_damping
        self.q, self.l1 = problem.scaling.penalty(problem.penalty, problem.n_functions)
        self.centres: tuple[Smoothing, ...] = ()
        V, width = np.zeros(self.q.shape), NUMBERS.first_width
        if start is not None:
            V = problem.scaling.from_coefficients(start.coef, start.intercept)
            width = start.extra.get("width", NUMBERS.warm_width)
            if isinstance(start.multipliers, Implied):
                self.centres = (*start.multipliers.centres, start.multipliers.at)[-NUMBERS.most_centres // 2 :]
        V[~np.isfinite(self.l1)] = 0.0
        self.start = Smoothing(V, width)
        self.is_close = start is not None and bool(start.extra.get("is close"))
        self.proved: tuple[float, Implied, float, Array] | None = None
        self.least_gap = np.inf  # and the multipliers that it is of
        self.evidence: Implied | None = None

    def ask(self, points: list[Smoothing]) -> list[_Here]:
        """Evaluate points around the present centre, in one pass."""
        self.passes += 1
        every = max(1, self.near // max(NUMBERS.hessian_rows, NUMBERS.rows_per_coefficient * self.q.size))
        queries = [self.problem.query(point, self.centres)._replace(every=every) for point in points]
        found = self.problem.sums(queries)
        self.near = found[0].near
        return [_Here(point, sums, self._penalty(point.V)) for point, sums in zip(points, found)]

    def _penalty(self, V: Array) -> float:
        used = V != 0
        return 0.5 * float(np.sum(self.q * V**2)) + float(np.sum(self.l1[used] * np.abs(V[used])))

    def run(self, options: Options, clock: Clock) -> Status | None:
        """Step until the bound is within the tolerance; return why it ended early, None if it did not."""
        offset, p = self.problem.offset, self.problem
        if self.is_close and options.certify:
            most = p.C * p.total_weight * p.loss.max_slope  # no multiplier is larger
            if self.certify(options, Implied(self.start, (), most), self.start.V):
                return None
        self.here = self.ask([self.start])[0]
        try:
            while self.passes < (options.max_iter or NUMBERS.passes):
                gap = self.here.objective - self.dual()
                if gap < self.least_gap:
                    self.least_gap, self.evidence = gap, self.implied()
                clock.note(self.here.objective + offset, -np.inf)
                size = abs(self.here.objective + offset)
                LOGGER.info(
                    "passes: %d passes over the data, objective %.6g, at most about %.1e above the optimum",
                    self.passes, self.here.objective + offset, gap / max(size, np.finfo(float).tiny),
                )  # fmt: skip
                allowed = options.tol * size
                if gap <= NUMBERS.share * allowed and (
                    not options.certify or self.certify(options, self.implied(), self.here.at.V)
                ):
                    return None
                if clock.is_over:
                    return Status.TIME_LIMIT
                step, promise = self.direction(self.damping)
                is_least = promise <= NUMBERS.rounding * abs(self.here.smooth)
                if is_least or gap - self.here.smoothing <= NUMBERS.settled * self.here.smoothing:
                    if is_least and self.here.at.width <= NUMBERS.least_width:
                        return Status.STALLED
                    self.recentre()
                elif not self.moved(step, promise):
                    return Status.STALLED
        except KeyboardInterrupt:
            return Status.INTERRUPTED
        return Status.ITERATION_LIMIT

    def recentre(self) -> None:
        """Make the present multipliers the centre; smooth less, the more so the easier the last centre was."""
        width = self.here.at.width
        for steps, factor in (NUMBERS.hard, NUMBERS.easy):
            if self.effort <= steps:
                width = factor * self.here.at.width
        self.effort = 0
        self.centres = (*self.centres, self.here.at)[-NUMBERS.most_centres :]
        reach = 2.0 * self.here.sums.peak if self.problem.anchor is None else np.inf
        self.here = self.ask([Smoothing(self.here.at.V, max(width, NUMBERS.least_width), reach)])[0]

    def moved(self, step: Array, promise: float) -> bool:
        """Take the step, or the best of more careful ones; return whether any of them helps."""
        self.effort += 1
        at, before = self.here.at, self.here.smooth
        there = self.ask([at._replace(V=at.V + step)])[0]
        if there.smooth <= before - NUMBERS.descent * promise:
            is_good = there.smooth <= before - NUMBERS.trusted * promise
            self.here = there
            self.damping = max((0.1 if is_good else 3.0) * self.damping, NUMBERS.least_damping)
            return True
        careful = [max(self.damping, NUMBERS.first_damping) * factor for factor in NUMBERS.factors]
        careful = [d for d in careful if d < NUMBERS.most_damping] + [NUMBERS.most_damping]
        steps = [NUMBERS.shorter * step, *(self.direction(d)[0] for d in careful)]
        found = self.ask([at._replace(V=at.V + each) for each in steps])
        best = min(range(len(found)), key=lambda i: found[i].smooth)
        if not found[best].smooth < before:
            return False
        self.here = found[best]
        self.damping = max(self.damping, NUMBERS.first_damping) if best == 0 else careful[best - 1]
        return True

    def dual(self) -> float:
        """Return about what the multipliers at the present point prove."""
        sums, p = self.here.sums, self.problem
        net = np.asarray(sums.net)
        theta, conjugate = 1.0, 0.0
        V = net[:, :-1] * p.form.scale
        imbalance = float(np.abs(net[:, -1]).sum())
        if p.penalty.l2 > 0:
            conjugate = p.penalty.conjugate(V)
        else:
            theta = l1_shrinkage(V, np.zeros_like(V), p.penalty.l1_array(V.shape))
        gain = theta * sums.gain + (1.0 - theta) * sums.tilt_gain
        return gain - conjugate - imbalance * (1.0 + float(np.abs(self.here.at.V[:, -1]).max()))

    def direction(self, damping: float) -> tuple[Array, float]:
        """Return the step to the minimum of the quadratic model, and what it promises."""
        V, m, p = self.here.at.V, self.problem.n_functions, self.problem
        H = np.array(self.here.sums.hessian).reshape(V.size, V.size)
        g = -np.asarray(self.here.sums.net)
        most = p.C * p.total_weight * p.loss.max_slope / self.here.at.width  # curvature if all samples could move
        H[np.diag_indices_from(H)] += self.q.ravel() + damping * most
        if m > 1:
            g = g - g.mean(axis=0)
            # A shift common to all functions changes nothing; it gets some curvature.
            common = H.reshape(*V.shape, *V.shape)
            for d in range(V.shape[1]):
                common[:, d, :, d] += most / m
        gradient = g + self.q * V
        if not p.penalty.has_l1:
            step = _solved(H, -gradient.ravel()).reshape(V.shape)
        else:
            step = self._l1_minimum(H, gradient) - V
        if m > 1:
            step -= step.mean(axis=0)
        X, flat = V + step, step.ravel()
        rise = self._l1(X) - self._l1(V)
        return step, -(float(gradient.ravel() @ flat) + 0.5 * float(flat @ H @ flat) + rise)

    def _l1(self, V: Array) -> float:
        used = V != 0
        return float(np.sum(self.l1[used] * np.abs(V[used])))

    def _l1_minimum(self, H: Array, gradient: Array) -> Array:
        V = self.here.at.V
        l1 = np.where(np.isfinite(self.l1), self.l1, 1e300).ravel()
        tol = 1e-9
        if V.shape[0] == 1:
            return minimise_quadratic(H, gradient.ravel(), V.ravel(), l1, tol, 2000).reshape(V.shape)
        x, r = V.ravel().copy(), gradient.ravel().copy()
        minimise_pairs(H, l1, V.shape[0], x, r, tol, 2000)
        return x.reshape(V.shape)

    def implied(self) -> Implied:
        """Return the multipliers at the present point."""
        return Implied(self.here.at, self.centres, self.here.sums.peak)

    def certify(self, options: Options, R: Implied, V: Array) -> bool:
        """Prove rigorously what multipliers say of a point, in a pass; is it within the tolerance?"""
        p = self.problem
        W, b = p.scaling.coefficients(V)
        self.passes += 1
        found = p.bound(R, W, b)
        if found is None:
            return False
        objective = p.penalty.value(W, float(np.sum(W * W))) + found.risk + p.offset
        bound = found.bound
        if bound > objective:
            if bound - objective > found.error + 1e-13 * abs(objective):
                raise InconsistentBoundError(f"bound {bound!r} above objective {objective!r}")
            bound = objective
        if self.proved is None or objective - bound < self.proved[2] - self.proved[0]:
            self.proved = bound, R, objective, V
        return objective - bound <= options.tol * max(abs(objective), np.finfo(float).eps)

    def result(self, options: Options, clock: Clock, status: Status | None) -> Result:
        """Certify what there is and hand it back."""
        p, extra = self.problem, {"passes": self.passes, "width": self.start.width}
        if not options.certify:
            W, b = p.scaling.coefficients(self.here.at.V)
            return uncertified(Answer(W, b, self.implied(), clock, self.passes, status, extra))  # type: ignore[arg-type]
        bound, evidence, objective = -np.inf, None, np.nan
        if self.proved is None and status is not Status.INTERRUPTED:
            self.certify(options, self.evidence or self.implied(), self.here.at.V)
        if self.proved is not None:
            bound, evidence, objective, V = self.proved
        else:
            V = self.here.at.V
        W, b = p.scaling.coefficients(V)
        if self.proved is None:
            objective = p.value(W, b)
        clock.note(objective, bound)
        certificate = Certificate(Claim.CONVEX, objective, bound, rechecked=True, evidence=evidence)  # type: ignore[arg-type]
        final = Status.OPTIMAL if certificate.gap <= options.tol else (status or Status.STALLED)
        return Result(W, b, final, certificate, self.passes, tuple(clock.history), evidence, extra)  # type: ignore[arg-type]


def _solved(H: Array, right: Array) -> Array:
    """Solve H x = right for a positive semidefinite H, scaled to a unit diagonal, with the least boost that works."""
    root = 1.0 / np.sqrt(np.diag(H))
    scaled = H * root * root[:, None]
    boost = 1e-15
    while True:
        try:
            factor = sla.cho_factor(scaled, lower=True, check_finite=False)
            return root * sla.cho_solve(factor, root * right, check_finite=False)
        except sla.LinAlgError:
            scaled[np.diag_indices_from(scaled)] += boost
            boost *= 10.0
