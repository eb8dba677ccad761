"""Solving a problem, or a path of them: starts, inner solvers and finishers are handed from one solver to another.

Only this package knows all solvers; the solvers themselves do not know each other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.chunks.together import solve_together
from ..core.losses import JUMP_TOLERANCE
from ..core.problem import Problem
from ..core.result import ROUNDING, Certificate, Claim, Result, Status, agreed_bound, go_on_after
from ..core.solving import Clock, Options, reporting_as
from .bounded import bounded
from .choice import choose_convex, choose_convex_path, choose_exact, interior_work
from .registry import SOLVERS, Solver, load, refusal, surrogate, takes

Array = NDArray[np.float64]
#: Results to start from, for some problems.
Starts = Callable[[Sequence[Any]], Sequence[Result | None]]

#: What "auto" spends on proving the optimum of a loss that jumps: nodes times their size, about half a second, counted
#: so that a fit can be repeated exactly; the size of the smallest node of a k-class search, whose steps are made in
#: Python (measured from 40 samples of 3 features to 1,500 of 30: about 60 ns per unit); the largest sample it tries.
EXACT_WORK, SMALLEST_NODE, EXACT_SAMPLES = 8e6, 8e3, 2000
#: Relative accuracy of convex fits from which the d.c. algorithm descends when values of C are compared.
LOOSE = 1e-2
#: Seconds beyond the time limit that the preparation of an exact search may take, and what sorting the distances of two
#: samples costs, in multiplications.
GRACE, SORTING = 0.1, 400
#: Part of the time limit, and seconds, that may be spent beyond it on descending from the best point found.
POLISHING_SHARE, POLISHING_SECONDS = 0.05, 0.5
#: One problem in so many along a path on blocks is solved first, if a spline through them is expected to solve the
#: others: on so many rows, to such a tolerance, where their values of C differ by up to such a factor.
KNOTS, MANY_ROWS, COARSE, CLOSE = 4, 50_000, 5e-4, 3.0
#: How far, relative to the objective, rounding may lift a proved bound above an attained objective: the tolerance with
#: which margins count as on the jump of a loss.
BOUND_ROUNDING = JUMP_TOLERANCE


def solve(
    problem: Problem, solver: str = "auto", options: Options | None = None, start: Result | None = None
) -> Result:
    """Solve a problem.

    Parameters
    ----------
    problem : Problem
        What to minimise, for instance ``estimator.problem(X, y)``.
    solver : str, default="auto"
        A name in :data:`SOLVERS`; "auto" takes the best convex solver, or :func:`solve_nonconvex`.
    options : Options, optional
        Tolerances and limits.
    start : Result, optional
        A warm start: an earlier result on the same samples.

    Returns
    -------
    Result
        Coefficients, and a certificate of what is proved of them.

    Examples
    --------
    >>> import numpy as np
    >>> from psilearn import SVMClassifier, solve
    >>> problem = SVMClassifier().problem(np.array([[0.0], [1.0], [2.0], [3.0]]), [0, 0, 1, 1])
    >>> result = solve(problem)
    >>> result.certificate.verify(problem).ok
    True
    """
    options = options or Options()
    if solver == "auto":
        result = (solve_convex if problem.is_convex else solve_nonconvex)(problem, options, start)
    else:
        result = _solve_by(problem, solver, options, start)
    return _consistent(problem, bounded(problem, result) if options.certify else result)


def _solve_by(problem: Problem, solver: str, options: Options, start: Result | None) -> Result:
    """Solve with the named solver; no bound is added."""
    with reporting_as(solver):
        return _consistent(problem, _solve(problem, solver, options, start))


def _solve(problem: Problem, solver: str, options: Options, start: Result | None) -> Result:
    module, entry = load(solver), SOLVERS[solver]
    reason = refusal(solver, problem)
    if reason is not None:
        raise ValueError(reason)
    if "start" in entry.needs:
        return _solve_globally(solver, problem, options, start)
    return module.solve(problem, options, start, **_handed(entry, problem))


def _handed(entry: Solver, problem: Problem) -> dict[str, Any]:
    """Return what a solver is handed besides problem, options and start."""
    handed: dict[str, Any] = {}
    if "inner" in entry.needs:
        handed["inner"] = solve_convex
    if "finish" in entry.needs:
        handed["finish"] = load("l1").solve if interior_work(problem) <= entry.finish_work else None
        if takes("newton", problem):
            handed["finish"] = load("newton").solve
    return handed


def solve_path(
    problems: Sequence[Problem], solver: str, options: Options, starts: Starts | None = None
) -> list[Result]:
    """Solve problems on the same samples, neighbours alike and C rising: each helps the next.

    Data in blocks are read for all problems at once; ``starts`` makes results to begin with. Where ``options`` ask for
    no certificates, losses that are not convex are brought to local optima only.
    """
    first = problems[0]
    if first.space.kind == "chunked":
        results = _path_in_blocks(problems, solver, options, starts or (lambda some: [None] * len(some)))
        return results if first.is_convex else _improved_by_neighbours(problems, results, solver, options)
    shared = all(p.space is first.space and p.y is first.y and p.weights is first.weights for p in problems)
    if solver == "auto" and first.is_convex:
        solver = choose_convex_path(first)
    if solver == "smoothed" and shared and load(solver).takes_path(first):
        results = load(solver).solve_path(problems, options, **_handed(SOLVERS[solver], first))
        for result in results:
            go_on_after(result.status)
        return results
    if not options.certify and solver in ("auto", "dca") and not first.is_convex and first.loss.is_continuous:
        return _searched_path(problems, options)
    return (_convex_path if first.is_convex else _nonconvex_path)(problems, solver, options)


def _convex_path(problems: Sequence[Problem], solver: str, options: Options) -> list[Result]:
    """Solve each problem from its predecessor's solution."""
    results: list[Result] = []
    for at, problem in enumerate(problems):
        warm = _carried_over(results[-1], problems[at - 1], problem) if results else None
        results.append(solve(problem, solver, options, warm))
        go_on_after(results[-1].status)
    return results


def _nonconvex_path(problems: Sequence[Problem], solver: str, options: Options) -> list[Result]:
    """Solve each problem on its own, then once more from a neighbour's solution wherever that one is better.

    A stationary point of one C need not lead anywhere at the next: f = 0 is optimal for a small C, and the d.c.
    algorithm never leaves it. So a neighbour is only a second start, and no fit is worse than one made alone.
    """
    results: list[Result] = []
    for problem in problems:
        results.append(solve(problem, solver, options, None))
        go_on_after(results[-1].status)
    return _improved_by_neighbours(problems, results, solver, options)


def _path_in_blocks(problems: Sequence[Any], solver: str, options: Options, starts: Starts) -> list[Result]:
    """Solve problems side by side, or some of them, and the others from a spline through those, where that is smooth.

    On 4e5 Gaussian rows of 50 features points of the spline have gaps of 3e-4 to 1.5e-3, on skewed ones up to 6e-3.
    """
    first, Cs = problems[0], np.log([problem.C for problem in problems])
    knots = sorted({*range(0, len(problems), KNOTS), len(problems) - 1})
    is_smooth = first.n >= MANY_ROWS and first.is_convex and not first.penalty.has_l1 and options.tol >= COARSE
    if not is_smooth or len(knots) < 4 or np.diff(Cs).min() <= 0 or np.diff(Cs[knots]).max() > np.log(CLOSE):
        return _side_by_side(problems, solver, options, starts(problems))
    some = [problems[at] for at in knots]
    results = dict(zip(knots, _side_by_side(some, solver, options, starts(some))))
    others = [at for at in range(len(problems)) if at not in results]
    between = _between(Cs[knots], [results[at] for at in knots], Cs[others])
    results.update(zip(others, _side_by_side([problems[at] for at in others], solver, options, between)))
    return [results[at] for at in range(len(problems))]


def _between(known: Array, found: Sequence[Result], wanted: Array) -> list[Result]:
    """Return the points of a path where log C is as wanted."""
    from scipy.interpolate import CubicSpline

    nothing = Certificate(Claim.NONE, math.nan)
    W, b = (CubicSpline(known, np.array(each))(wanted) for each in zip(*((f.coef, f.intercept) for f in found)))
    widths = np.exp(np.interp(wanted, known, np.log([f.extra["width"] for f in found])))
    return [
        Result(w, c, Status.STALLED, nothing, 0, extra={"width": width, "is close": True})
        for w, c, width in zip(W, b, widths)
    ]


def _searched_path(problems: Sequence[Problem], options: Options) -> list[Result]:
    """Descend once per problem, from the largest C down, from its convex fit or its neighbour, whichever is better.

    Downwards no fit is handed f = 0, which is stationary only where C is small. A third of the time of fits made alone,
    and objectives as good on average, but one or the other is worse by a few hundredths: for comparing values of C.
    """
    options = replace(options, time_limit=options.time_limit / 2)
    convex = [replace(p, loss=p.loss.convex_part, penalty=p.penalty.convex_part) for p in problems]
    results = solve_path(convex, "auto", replace(options, tol=max(options.tol, LOOSE)))
    for at in reversed(range(len(problems))):
        problem, start = problems[at], results[at]
        if at + 1 < len(problems):
            other = results[at + 1]
            if problem.value(other.coef, other.intercept) < problem.value(start.coef, start.intercept):
                start = _carried_over(other, problems[at + 1], problem)
        results[at] = _solve_by(problem, "dca", options, start)
        go_on_after(results[at].status)
    return results


def _side_by_side(
    problems: Sequence[Any], solver: str, options: Options, starts: Sequence[Result | None]
) -> list[Result]:
    """Solve problems on the same blocks, each on its own, with one pass over the data for all at a time."""

    def fit(problem: Any, start: Result | None) -> Callable[[Any], Result]:
        def run(workers: Any) -> Result:
            mine = replace(problem, workers=workers)
            if start is not None and not mine.is_convex:
                convex = replace(mine, loss=mine.loss.convex_part, penalty=mine.penalty.convex_part)
                return solve(mine, solver, options, solve_convex(convex, options, start))
            return solve(mine, solver, options, start)

        return run

    return solve_together(problems[0].workers, [fit(p, start) for p, start in zip(problems, starts)])


def _improved_by_neighbours(
    problems: Sequence[Problem], results: list[Result], solver: str, options: Options
) -> list[Result]:
    """Solve once more from a neighbour's solution wherever that is better."""
    forward = list(range(1, len(problems)))
    for at, neighbour in [(i, i - 1) for i in forward] + [(i - 1, i) for i in reversed(forward)]:
        problem, other = problems[at], results[neighbour]
        if problem.value(other.coef, other.intercept) < results[at].objective:
            again = solve(problem, solver, options, _carried_over(other, problems[neighbour], problem))
            go_on_after(again.status)
            results[at] = _better(problem, results[at], again)
    return results


def _carried_over(result: Result, old: Problem, new: Problem) -> Result:
    """Return a result as a start for another C: scaled multipliers stay feasible, their boxes are proportional to C."""
    if result.multipliers is None:
        return result
    if old.space.kind == "chunked":
        return replace(result, multipliers=None)
    return replace(result, multipliers=result.multipliers * (new.C / old.C))


def _better(problem: Problem, a: Result, b: Result) -> Result:
    """Return the result of the smaller objective; global bounds hold for both, so the larger one is kept."""
    best, other = (b, a) if b.objective < a.objective else (a, b)
    if other.lower_bound > best.lower_bound:
        best = best.with_bound_of(other.certificate)
    return _consistent(problem, best)


def _consistent(problem: Problem, result: Result) -> Result:
    """Return the result unless its bound lies above its objective by more than rounding, which is an error.

    Tilted problems are steps of an algorithm, whose objectives may cancel; nothing is claimed of them.
    """
    if problem.tilt is not None or result.lower_bound <= result.objective:
        return result
    allowance = BOUND_ROUNDING * abs(result.objective) + ROUNDING * problem.zero_value
    bound = agreed_bound(result.objective, result.lower_bound, allowance)
    return replace(result, certificate=replace(result.certificate, bound=bound))


def _solve_globally(solver: str, problem: Problem, options: Options, start: Result | None) -> Result:
    """Run an exact solver from the d.c. end point; an optimum that is a constant function is returned as exactly that.

    Otherwise coefficients of rounding size would decide the predictions (f = 0 is optimal for small a and many flips).
    """
    clock = Clock(options.time_limit)
    if start is None:
        start = descend(problem, options)
        if start.status is Status.INTERRUPTED:
            return _without_search(problem, start, Status.INTERRUPTED, "interrupted before the exact search began")
    work = float(problem.n**2 * (min(problem.n, problem.space.dim) + SORTING))
    if SOLVERS[solver].preparation * work > max(clock.left, 0.0) + GRACE:
        note = "the time limit is too short for an exact search to begin"
        return _without_search(problem, start, Status.TIME_LIMIT, note)
    result = load(solver).solve(problem, replace(options, time_limit=clock.left), start)
    value, b = problem.best_constant()
    # Scores that differ by less than the tolerance of the jump gain that tolerance only, which costs much at a large C.
    is_flat = np.ptp(problem.space.scores(result.coef, result.intercept), axis=0).max() <= JUMP_TOLERANCE
    tolerance = JUMP_TOLERANCE if is_flat else 1e-9
    is_restricted = result.certificate.claim is Claim.RESTRICTED
    if is_restricted or value > result.objective + tolerance * abs(result.objective):
        return result
    note = "the optimum is a constant function" if result.status is Status.OPTIMAL else "the best found is constant"
    certificate = replace(result.certificate, objective=value, note=note)
    return replace(result, coef=np.zeros_like(result.coef), intercept=b, certificate=certificate)


def _without_search(problem: Problem, start: Result, status: Status, note: str) -> Result:
    """Return the point that a search would start from; its own certificate may speak of another problem."""
    certificate = Certificate(Claim.NONE, problem.value(start.coef, start.intercept), note=note)
    return replace(start, status=status, certificate=certificate, multipliers=None)


def solve_convex(problem: Problem, options: Options, start: Result | None = None) -> Result:
    """Solve a convex, possibly tilted problem with the solver that suits it best."""
    return solve(problem, choose_convex(problem), options, start)


def descend(problem: Problem, options: Options, start: Result | None = None) -> Result:
    """Return the d.c. algorithm's end point; for a loss that jumps, that of its continuous surrogate, re-evaluated."""
    nearby = surrogate(problem)
    result = _solve_by(nearby, "dca", options, start)
    if nearby.loss is problem.loss:
        return result
    objective = problem.value(result.coef, result.intercept)
    certificate = Certificate(Claim.NONE, objective, note="d.c. end point of a continuous surrogate; no bound is known")
    status = result.status if result.status is Status.INTERRUPTED else Status.HEURISTIC
    return replace(result, certificate=certificate, status=status, multipliers=None)


def _node_work(problem: Problem) -> float:
    """Return the size of a node of the exact search: its time in about the same unit for two and for k classes."""
    dim = min(problem.space.dim, problem.n)
    if problem.n_classes == 2:
        return problem.n * (dim + 10.0)
    return problem.n * ((problem.n_classes - 1) * (dim + 1.0)) ** 2 + SMALLEST_NODE


def _unproved(found: Result, reason: str) -> Result:
    """Return a heuristic solution whose certificate says why no proof was tried."""
    note = f"{found.certificate.note}: {reason}"
    return replace(found, certificate=replace(found.certificate, note=note))


def solve_nonconvex(problem: Problem, options: Options, start: Result | None = None) -> Result:
    """Descend, then prove or improve the end point as far as the budget goes, if an exact solver takes the problem.

    The budget is ``time_limit``. Without one a continuous loss is left at its certified critical point, at the speed of
    a support vector machine; a loss that jumps has no other solver, so EXACT_WORK is spent on it. The better point is
    returned, with the bound that was proved; its status is what stopped the proof.
    """
    clock = Clock(options.time_limit)
    found = descend(problem, options, start)
    is_unlimited = math.isinf(options.time_limit)
    if (problem.loss.is_continuous and is_unlimited) or found.status is Status.INTERRUPTED:
        return found
    exact_solver = choose_exact(problem)
    reason = load(exact_solver).TAKES.refusal(problem)
    if problem.n > EXACT_SAMPLES:
        reason = f"solver='auto' tries a proof for up to {EXACT_SAMPLES} samples only; use solver={exact_solver!r}."
    if reason is not None:
        return found if problem.loss.is_continuous else _unproved(found, reason)
    nodes = options.max_iter
    if is_unlimited and nodes is None:
        nodes = max(10, int(EXACT_WORK / _node_work(problem)))
    exact = _solve_by(problem, exact_solver, replace(options, time_limit=clock.left, max_iter=nodes), found)
    if exact.status is Status.OPTIMAL or not problem.loss.is_continuous:
        return exact
    if exact.objective < found.objective:  # an unproved improvement is brought to a critical point, too
        polishing = max(clock.left, 0.0) + POLISHING_SHARE * options.time_limit + POLISHING_SECONDS
        found = descend(problem, replace(options, time_limit=polishing), exact)
    found = found.with_bound_of(exact.certificate)
    return _consistent(problem, replace(found, status=exact.status, history=[*found.history, *exact.history]))
