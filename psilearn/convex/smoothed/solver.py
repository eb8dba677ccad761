"""Newton's method on smoothed hinges: two-class linear problems with many samples, dense or sparse, and their paths.

    minimise  P(v) + sum_ik price_ik h(t_k - u_i(v)),      h a hinge smoothed over a width in the margin

The smoothed risk is piecewise quadratic, and its slope is a multiplier of the risk itself, so every pass over the data
gives an objective and a dual bound. Their gap is what rounding costs, plus what is missing to stationarity. Where many
samples stand against each coefficient, rounding costs about (density of the margins at a breakpoint) * width^2 / 24,
and the width shrinks until that is within the tolerance; where they are few, the present multipliers become the centres
of the next rounding (the proximal point method in the dual: Rockafellar, Augmented Lagrangians and Applications of the
Proximal Point Algorithm in Convex Programming, 1976), and the cost falls without much less width.

A Newton step minimises the quadratic model plus the l1 norm by coordinate descent over a working set of features: those
that are not zero and those whose slope is near or above its l1 weight. On dense data the Hessian comes from the samples
near a breakpoint, or enough of them; on sparse data it is never formed. Margins are known along a line, so the search
on it does not touch the data. With many features the bound would wait for the slope of the last one to settle, so
multipliers are first made feasible by projections.

A step costs one pass over the data and (samples near a breakpoint) (working set)^2, or a few sweeps over the working
set's entries. A result carries all that is known at its point, for unit C: the next solve on these samples starts
there, without a pass over the data. Certifies the convex duality gap.

A path of dense problems is solved ahead of its certificates. Between its breakpoints it is nearly linear in 1/C, so the
next point is expected where the last two lead, and one or two steps correct it. They touch only the samples that may
come near a breakpoint on the way; if others did, the points are solved again on more of them. All objectives and bounds
are then computed together, from products of matrices, and a point whose gap is too large is solved once more by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ...core.capabilities import ANY_CONVEX, ANY_LINEAR, CONVEX_PENALTIES, TWO_CLASSES, Takes
from ...core.problem import Problem
from ...core.result import Result, Status
from ...core.solving import Answer, Clock, Options, Solve, convex_result, convex_results, uncertified
from ...core.spaces import LinearSpace
from ..risk import sampled_scaling
from .hinges_jit import may_come_near
from .iterate import Iterate

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Constants:
    """Limits of a solve, and how the points of a path share their work.

    Attributes
    ----------
    steps : int
        Newton steps at most, by default.
    settled : float
        Multipliers are projected once a step promises less than that share of the tolerance.
    ahead, many : float
        Points of a path that share a choice of samples: fewer if that choice holds more than this share of all.
    entries : int
        Numbers in an array of all scores that are certified together.
    fastest : float
        What a path is expected to move at most, in units of its last move.
    sample, samples_per_coefficient, sample_tol : float
        The start of a path is solved on one sample in so many, at least so many per coefficient, to this gap.
    further, sideways, widths : float
        A sample may matter if its margin could reach a breakpoint by a move of the scores ``further`` times the
        expected one, with ``sideways`` of it in any direction, and ``widths`` smoothing widths more.
    """

    steps: int = 200
    settled: float = 0.005
    ahead: tuple[int, ...] = (4, 2, 1)
    many: float = 0.35
    entries: int = 1 << 25
    fastest: float = 5.0
    sample: int = 8
    samples_per_coefficient: int = 50
    sample_tol: float = 3e-3
    further: float = 1.25
    sideways: float = 0.2
    widths: float = 1.2


_C = Constants()


TAKES = Takes(
    "smoothed",
    losses=ANY_CONVEX,
    spaces=ANY_LINEAR,
    classes=TWO_CLASSES,
    penalties=CONVEX_PENALTIES,
)


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
    TAKES.check(problem)
    clock = Clock(options.time_limit)
    old = start.extra.get("iterate") if start is not None else None
    iterate = old if old is not None and old.fits(problem) else Iterate.at(problem, start)
    before = iterate.passes
    status = _iterate(iterate, problem, options, clock)
    W, b = iterate.scaling.coefficients(iterate.best)
    R = (problem.C * iterate.best_alpha * problem.signs)[:, None]
    extra = {"iterate": iterate, "passes": iterate.passes - before}
    result = convex_result(problem, W, b, R, options, clock, len(clock.history), status, **extra)
    if finish is not None and result.status in (Status.STALLED, Status.ITERATION_LIMIT):
        return finish(problem, replace(options, time_limit=clock.left), result)
    return result


def _iterate(iterate: Iterate, problem: Problem, options: Options, clock: Clock) -> Status | None:
    """Step and sharpen until the gap is within the tolerance; return why it ended early, None if it did not."""
    iterate.aim(problem)
    try:
        for _ in range((options.max_iter or _C.steps) + 1):
            clock.note(iterate.objective * problem.C + problem.offset, iterate.bound * problem.C + problem.offset)
            iterate.tol = options.tol * abs(iterate.objective + problem.offset / problem.C)
            is_settled = iterate.promise <= min(_C.settled * iterate.tol, 0.5 * iterate.projected)
            if is_settled and iterate.rounding < iterate.tol:
                iterate.project()
            if iterate.objective - iterate.bound <= 0.9 * iterate.tol:
                return None
            if clock.is_over:
                return Status.TIME_LIMIT
            if not (iterate.sharpen(iterate.patience) or iterate.step() or iterate.sharpen(np.inf)):
                return None
    except KeyboardInterrupt:
        return Status.INTERRUPTED
    return Status.ITERATION_LIMIT


def takes_path(problem: Problem) -> bool:
    """Whether :func:`solve_path` takes problems like this one: dense, and enough samples to start from some."""
    if TAKES.refusal(problem) is not None or not isinstance(problem.space, LinearSpace) or problem.space.is_sparse:
        return False
    return problem.n >= 3 * _C.samples_per_coefficient * (problem.space.dim + 1)


def solve_path(problems: Sequence[Problem], options: Options, finish: Solve | None = None) -> list[Result]:
    """Solve problems on the same dense samples, each to a relative duality gap of ``options.tol``, in the order given.

    A few of them at a time are solved on the samples that may come near a breakpoint, the others being on a linear
    piece of the risk; all are certified together, and what fails is solved again by itself.

    Parameters
    ----------
    problems : sequence of Problem
        They may differ in C and penalty; neighbours should be alike.
    options : Options
        As for :func:`solve`, each problem.
    finish : Solve or None
        As for :func:`solve`.
    """
    iterate, trail = _sampled_start(problems[0], options)
    answers: list[Answer] = []
    caution = 1.0
    while len(answers) < len(problems):
        group, near = _next_group(iterate, trail, problems[len(answers) :], caution)
        part, points = iterate.restricted(problems[0], near), trail.points
        found = [_answer(iterate, part, near, trail, problem, options) for problem in group]
        if iterate.absorb(part, near):
            answers += found
            caution = max(0.5 * caution, 1.0)
        else:
            trail.points, caution = points, 2.0 * caution
    if not options.certify:
        return [uncertified(answer) for answer in answers]
    results: list[Result] = []
    many = max(1, _C.entries // problems[0].n)
    for first in range(0, len(problems), many):
        results += convex_results(problems[first : first + many], answers[first : first + many], options)
    return [
        solve(problem, options, result, finish) if result.status is Status.STALLED else result
        for problem, result in zip(problems, results)
    ]


class _Trail:
    """The last two points of a path, and where they lead: between its breakpoints a path is nearly linear in 1/C."""

    def __init__(self, constant: Array, threshold: float) -> None:
        self.points = [(1.0 / threshold, constant)]

    def add(self, v: Array, C: float) -> None:
        """Add a point, or replace the last one if it has the same C."""
        self.points = [*[point for point in self.points if point[0] != 1.0 / C][-1:], (1.0 / C, v)]

    def ahead(self, C: float) -> Array:
        """Return the point expected at C; no coefficient returns from zero or changes its sign."""
        if len(self.points) == 1:
            return self.points[0][1]
        (before, behind), (now, here) = self.points
        pace = (now - 1.0 / C) / (before - now)
        there = here + np.clip(pace, 0.0, _C.fastest) * (here - behind)
        there[:-1][there[:-1] * here[:-1] <= 0] = 0.0
        return there

    def haste(self, C: float) -> float:
        """Return how much further than expected the next points may be: at the start they are linear in log C."""
        if len(self.points) == 1:
            return 1.0
        before, now, then = self.points[0][0], self.points[1][0], 1.0 / C
        linear, log = (now - then) / (before - now), np.log(now / then) / np.log(before / now)
        return _C.further * max(1.0, float(np.sqrt(log / linear))) if linear > 0 and log > 0 else _C.further


def _next_group(
    iterate: Iterate, trail: _Trail, problems: Sequence[Problem], caution: float
) -> tuple[Sequence[Problem], NDArray[np.intp]]:
    """Return the next problems to solve together, and the samples that may come near a breakpoint meanwhile."""
    near = np.empty(iterate.signs.size, dtype=bool)
    for ahead in _C.ahead:
        group = problems[:ahead]
        expected, further = iterate.margins_at(trail.ahead(group[-1].C)), caution * trail.haste(group[-1].C)
        slack = caution * _C.widths * iterate.width
        may_come_near(iterate.margins, expected, further, _C.sideways, slack, iterate.breakpoints, near)
        if np.count_nonzero(near) <= _C.many * near.size:
            break
    return group, np.flatnonzero(near)


def _answer(
    iterate: Iterate, part: Iterate, near: NDArray[np.intp], trail: _Trail, problem: Problem, options: Options
) -> Answer:
    clock, before = Clock(options.time_limit), part.passes
    there = trail.ahead(problem.C)
    if not np.array_equal(there, part.v):
        part.move(there)
    status = _iterate(part, problem, options, clock)
    trail.add(part.v, problem.C)
    alpha = iterate.alpha * problem.signs
    alpha[near] = part.best_alpha * part.signs
    alpha *= problem.C
    W, b = iterate.scaling.coefficients(part.best)
    extra = {"passes": (part.passes - before) * near.size / problem.n}
    return Answer(W, b, alpha[:, None], clock, len(clock.history), status, extra)


def _sampled_start(problem: Problem, options: Options) -> tuple[Iterate, _Trail]:
    """Return an iterate at the solution on some of the samples, and the trail there from the best constant."""
    scaling = sampled_scaling(problem)
    size = max(problem.n // _C.sample, _C.samples_per_coefficient * scaling.scale.size)
    rows = np.unique(np.random.default_rng(options.random_state).integers(0, problem.n, size))
    few = problem.subset(rows)
    few = replace(few, C=problem.C * problem.weights.sum() / few.weights.sum())
    part = Iterate.at(few, None, scaling)
    part.aim(few)
    trail = _Trail(part.v, problem.C * part.threshold)
    _iterate(part, few, replace(options, tol=max(_C.sample_tol, options.tol)), Clock(options.time_limit))
    trail.add(part.v, problem.C)
    iterate = Iterate(problem, scaling)
    iterate.width = part.width
    iterate.move(part.v)
    return iterate, trail
