"""The d.c. algorithm for continuous losses (Liu, Shen and Doss 2005, Algorithms 1 and 2; Liu and Wu 2006).

Writes l = g - (g - cap)_+ and repeats: replace the convex part that is subtracted by its tangent at the present scores,
minimise the convex majorant warm. The objective never rises. With multipliers of the majorant's dual the end point is
certified d.c.-critical: its majorant can be lowered by no more than ``tol`` times the objective.

Cost: a few (typically 3 to 20) warm convex solves.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..core.capabilities import ANY_CLASSES, ANY_CONVEX, ANY_LINEAR, CONVEX_PENALTIES, TILT, Takes
from ..core.problem import Problem
from ..core.result import Certificate, Claim, Result, Status, critical_residual
from ..core.solving import NOTHING_PROVED, Clock, Options, Solve, SolverSettings
from ..core.spaces import KernelSpace

MAX_STEPS = 200
#: While steps are long the majorant is minimised only roughly.
LOOSE = 1e-2


#: A kernel that is not positive semidefinite is taken, too, but nothing is claimed then.
TAKES = Takes(
    "dca",
    losses=ANY_CONVEX | {"truncated", "truncated elsewhere than 0"},
    spaces=ANY_LINEAR | {"kernel", "indefinite kernel"},
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


@dataclass
class _Point:
    """Coefficients, their objective, and the convex majorant that touches it there."""

    W: NDArray[np.float64]
    b: NDArray[np.float64]
    objective: float
    majorant: Problem

    @classmethod
    def at(cls, problem: Problem, result: Result) -> _Point:
        objective = problem.value(result.coef, result.intercept)
        return cls(result.coef, result.intercept, objective, problem.majorant(result.coef, result.intercept))

    def residual(self, bound: float) -> float:
        """What the majorant can still be lowered by, relative to the objective."""
        return max(0.0, self.objective - bound) / max(abs(self.objective), np.finfo(float).tiny)


def _descend(problem: Problem, start: Result, options: Options, clock: Clock, inner: Solve) -> Result:
    """Take d.c. steps from ``start`` until the majorant cannot be lowered any more."""
    here = _Point.at(problem, start)
    clock.note(here.objective, -math.inf)
    tol, inner_gaps, warm, steps = max(options.tol, LOOSE), [start.gap], start, 0
    limit = options.max_iter or MAX_STEPS
    if start.status is Status.INTERRUPTED:
        return _result(here, start.status, math.inf, steps, start, inner_gaps)
    while True:
        steps += 1
        warm = inner(here.majorant, replace(options, tol=tol, time_limit=clock.left, max_iter=None), warm)
        inner_gaps.append(warm.gap)
        there = _Point.at(problem, warm)
        clock.note(min(here.objective, there.objective), -math.inf)
        same = not problem.penalty.scad and np.array_equal(_tilt(here), _tilt(there))
        gain = here.objective - there.objective
        residual = here.residual(warm.lower_bound)
        if gain >= 0 and same:  # both points share one majorant, so the bound speaks of the new point, too
            residual = there.residual(warm.lower_bound)
        finished = residual <= options.tol
        if gain > 0 and (same or not finished):
            here = there
        if finished and warm.status is not Status.INTERRUPTED:
            return _result(here, Status.CRITICAL, residual, steps, warm, inner_gaps)
        if (stop := _reason_to_stop(warm, clock, steps, limit)) is not None:
            residual = critical_residual(problem, here.W, here.b, warm.multipliers)  # the point may have moved on
            return _result(here, stop, residual, steps, warm, inner_gaps)
        # Inexact while the steps are long; exact once a step gains less than the inner error lets us see.
        if gain <= 2.0 * tol * abs(here.objective):
            if tol <= 0.1 * options.tol and gain <= 0:
                return _result(here, Status.STALLED, residual, steps, warm, inner_gaps)
            tol = max(0.1 * options.tol, 0.1 * tol)


def _tilt(point: _Point) -> NDArray[np.float64]:
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
