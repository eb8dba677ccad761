"""The d.c. algorithm for continuous losses (Liu, Shen and Doss 2005, Algorithms 1 and 2; Liu and Wu 2006).

Writes l = g - (g - cap)_+ and repeats: replace the convex part that is subtracted by its tangent at the present scores,
minimise the convex majorant warm. The objective never rises. With multipliers of the majorant's dual the end point is
certified d.c.-critical: its majorant can be lowered by no more than ``tol`` times the objective.

Cost: a few (typically 3 to 20) warm convex solves.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..core.capabilities import ANY_CLASSES, ANY_CONVEX, ANY_LINEAR, CONVEX_PENALTIES, TILT, Takes
from ..core.chunks.problem import ChunkedProblem
from ..core.problem import Problem
from ..core.result import Certificate, Claim, Result, Status, critical_residual
from ..core.solving import NOTHING_PROVED, Answer, Clock, Options, Solve, SolverSettings, uncertified
from ..core.spaces import KernelSpace

Array = NDArray[np.float64]

MAX_STEPS = 200
#: Relative gap to which the first majorant is minimised; later ones to a share of what the last step gained, and to
#: no less than a share of the tolerance.
LOOSE, INNER_SHARE, LEAST_SHARE = 1e-2, 0.3, 0.1
#: Longest multiple of a step that is tried.
FARTHEST = 4.0


#: A kernel that is not positive semidefinite is taken, too, but nothing is claimed then.
TAKES = Takes(
    "dca",
    losses=ANY_CONVEX | {"truncated", "truncated elsewhere than 0"},
    spaces=ANY_LINEAR | {"kernel", "indefinite kernel", "chunked"},
    classes=ANY_CLASSES,
    tilts=TILT,
    penalties=CONVEX_PENALTIES | {"no penalty", "scad"},
)


@dataclass(frozen=True)
class Settings(SolverSettings):
    """Options of this solver only.

    Attributes
    ----------
    n_starts : int
        Descents, the best of which is kept.
    """

    n_starts: int = 1


def solve(problem: Problem, options: Options, start: Result | None, inner: Solve) -> Result:
    """Descend from ``start`` (default: the convex solution) and from ``n_starts - 1`` seeded restarts.

    Parameters
    ----------
    problem, options, start
        As for every solver; see also :class:`Settings`.
    inner : callable
        The convex solver, handed in.
    """
    TAKES.check(problem)
    clock = Clock(options.time_limit)
    convex = replace(problem, loss=problem.loss.convex_part, penalty=problem.penalty.convex_part)
    first = start or inner(convex, replace(options, time_limit=clock.left), None)
    best = _descend(problem, first, options, clock, inner)
    rng = np.random.default_rng(options.random_state)
    for _ in range(options.of(Settings).n_starts - 1):
        if clock.is_over or best.status is Status.INTERRUPTED:
            break
        # The convex fit of a randomly reweighted sample: starts that differ where the data are ambiguous.
        reweighted = replace(convex, weights=convex.weights * rng.exponential(size=convex.n))
        found = _restarted(problem, reweighted, first, options, clock, inner)
        best = min(best, found or best, key=lambda r: r.objective)
        if found is None or found.status is Status.INTERRUPTED:
            best.status = Status.INTERRUPTED
    best.history = tuple(clock.history)
    return best


def _restarted(
    problem: Problem, convex: Problem, first: Result, options: Options, clock: Clock, inner: Solve
) -> Result | None:
    """Descend from the solution of another convex problem; None if the user interrupted before there was one."""
    try:
        start = inner(convex, replace(options, tol=max(options.tol, LOOSE), time_limit=clock.left), first)
        return None if start.status is Status.INTERRUPTED else _descend(problem, start, options, clock, inner)
    except KeyboardInterrupt:
        return None


class _Point:
    """Coefficients, their scores and objective, and the convex majorant that touches it there."""

    def __init__(self, problem: Problem, W: Array, b: Array) -> None:
        self.problem, self.W, self.b = problem, W, b
        self.F = problem.space.scores(W, b)
        self.objective = problem.value_of_scores(W, self.F)

    @cached_property
    def majorant(self) -> Problem:
        """The convex problem of the next step."""
        return self.problem.majorant(self.W, self.b, self.F)

    def residual(self, bound: float) -> float:
        """What the majorant can still be lowered by, relative to the objective."""
        return max(0.0, self.objective - bound) / max(abs(self.objective), np.finfo(float).tiny)

    def beyond(self, there: _Point) -> _Point:
        """Return the best point found on the ray from here through ``there``, which is the better one of both.

        A d.c. step shows a direction of descent, and the objective may fall far beyond the minimiser of the majorant
        (Aragon Artacho, Fleming and Vuong, Accelerating the DC algorithm for smooth functions, 2018).
        """
        dW, db, dF = there.W - self.W, there.b - self.b, there.F - self.F
        norm2 = self._norms(there)
        best, least, factor = 1.0, there.objective, 2.0
        while factor <= FARTHEST:
            W, F = self.W + factor * dW, self.F + factor * dF
            value = self.problem.value_of_scores(W, F, norm2(factor))
            if not value < least:
                break
            best, least, factor = factor, value, 2.0 * factor
        if best == 1.0:
            return there
        point = point_of(self.problem, self.W + best * dW, self.b + best * db)
        return point if point.objective < there.objective else there

    def _norms(self, there: _Point) -> Callable[[float], float]:
        """Return ||W + s (W' - W)||^2 as a function of s, for W here and W' there."""
        if not self.problem.penalty.l2:
            return lambda s: 0.0
        P, Q = self._represented(), there._represented()
        here, cross, far = (float(np.sum(W * V)) for W, V in ((self.W, P), (self.W, Q), (there.W, Q)))
        return lambda s: (1.0 - s) ** 2 * here + 2.0 * s * (1.0 - s) * cross + s**2 * far

    def _represented(self) -> Array:
        """Return V such that the inner product with W' is sum W'V: the coefficients, or K W' of kernels."""
        return (self.F - self.b).T if self.problem.is_kernel else self.W


class _PointInBlocks(_Point):
    """The same for data in blocks, whose scores nobody keeps."""

    def __init__(self, problem: Problem, W: Array, b: Array) -> None:
        self.problem, self.W, self.b = problem, W, b
        self.objective = problem.value(W, b)

    @cached_property
    def majorant(self) -> Problem:
        """The convex problem of the next step."""
        return self.problem.majorant(self.W, self.b)

    def beyond(self, there: _Point) -> _Point:
        """Return the best of a few points on the ray from here through ``there``, all evaluated in one pass."""
        assert isinstance(self.problem, ChunkedProblem)
        factors = [2.0**i for i in range(1, int(math.log2(FARTHEST)) + 1)]
        points = [(self.W + s * (there.W - self.W), self.b + s * (there.b - self.b)) for s in factors]
        values = self.problem.values(points)
        least = min(range(len(values)), key=lambda i: values[i])
        return point_of(self.problem, *points[least]) if values[least] < there.objective else there


def point_of(problem: Problem, W: Array, b: Array) -> _Point:
    """Return what the algorithm needs of a point."""
    return (_PointInBlocks if problem.space.kind == "chunked" else _Point)(problem, W, b)


def _descend(problem: Problem, start: Result, options: Options, clock: Clock, inner: Solve) -> Result:
    """Take d.c. steps from ``start`` until the majorant cannot be lowered any more.

    While steps gain much, the majorant is minimised roughly and nothing is certified; the end is, unless ``options``
    ask for no certificate: then the descent ends with a step that gains less than the tolerance.
    """
    here = point_of(problem, start.coef, start.intercept)
    clock.note(here.objective, -math.inf)
    tol, inner_gaps, warm, steps = max(options.tol, LOOSE), [start.gap], start, 0
    limit = options.max_iter or MAX_STEPS
    if start.status is Status.INTERRUPTED:
        return _result(here, start.status, math.inf, steps, start, inner_gaps)
    while True:
        steps += 1
        certify = options.certify and tol <= options.tol
        asked = replace(options, tol=tol, time_limit=clock.left, max_iter=None, certify=certify)
        warm = inner(here.majorant, asked, warm)
        inner_gaps.append(warm.gap)
        there = point_of(problem, warm.coef, warm.intercept)
        clock.note(min(here.objective, there.objective), -math.inf)
        gain, residual, same = here.objective - there.objective, here.residual(warm.lower_bound), False
        if not options.certify and gain <= options.tol * abs(here.objective) and warm.status is not Status.INTERRUPTED:
            best = there if gain > 0 else here
            return uncertified(Answer(best.W, best.b, warm.multipliers, clock, steps, Status.STALLED, {}))
        if residual < math.inf and gain >= 0 and not problem.penalty.scad:
            same = np.array_equal(_tilt(here), _tilt(there))
        if same:  # both points share one majorant, so the bound speaks of the new point, too
            here, residual = there, there.residual(warm.lower_bound)
        finished = residual <= options.tol
        if finished and warm.status is not Status.INTERRUPTED:
            return _result(here, Status.CRITICAL, residual, steps, warm, inner_gaps)
        if gain > 0:
            here = here.beyond(there) if here is not there else there
            warm = replace(warm, coef=here.W, intercept=here.b)
        if (stop := _reason_to_stop(warm, clock, steps, limit)) is not None:
            residual = critical_residual(problem, here.W, here.b, warm.multipliers)  # the point may have moved on
            return _result(here, stop, residual, steps, warm, inner_gaps)
        if gain <= 0 and tol <= LEAST_SHARE * options.tol:
            return _result(here, Status.STALLED, residual, steps, warm, inner_gaps)
        wanted = INNER_SHARE * gain / abs(here.objective) if gain > 0 else 0.1 * tol
        tol = min(max(wanted, LEAST_SHARE * options.tol), max(options.tol, LOOSE))


def _tilt(point: _Point) -> Array:
    assert point.majorant.tilt is not None
    return point.majorant.tilt


def _reason_to_stop(step: Result, clock: Clock, steps: int, limit: int) -> Status | None:
    if step.status is Status.INTERRUPTED:
        return Status.INTERRUPTED
    if step.status is Status.TIME_LIMIT or clock.is_over:
        return Status.TIME_LIMIT
    return Status.ITERATION_LIMIT if steps >= limit else None


def _result(point: _Point, status: Status, residual: float, steps: int, last: Result, gaps: list[float]) -> Result:
    """Certify the end point. ``extra["tilt"]`` net of the multipliers shows which samples the solution depends on."""
    note = f"no convex majorant at this point can be lowered by more than {residual:.2g} of the objective"
    R = last.multipliers
    certificate = Certificate(Claim.CRITICAL, point.objective, -math.inf, True, residual, R, note=note)
    if isinstance(point.majorant.space, KernelSpace) and not point.majorant.space.is_psd:
        certificate = Certificate(Claim.NONE, point.objective, note=NOTHING_PROVED)
    extra = {"inner_gaps": gaps, "tilt": _tilt(point)}
    return Result(point.W, point.b, status, certificate, steps, (), R, extra)
