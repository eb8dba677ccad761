"""The solvers by name, and the choice among them.

This is the one room that knows all solvers, so it hands starts, inner solvers and polishers from one to another; the
solvers themselves do not know each other.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .core.losses import JUMP_TOLERANCE
from .core.problem import Problem
from .core.relaxation import relaxation, rough_bound
from .core.result import ROUNDING, Certificate, Claim, Result, Status, agreed_bound
from .core.solving import Clock, Options, SolverSettings, reporting_as
from .core.spaces import LinearSpace

#: Multiplications per iteration up to which the interior point is the solver for l1 penalties: at 4e8 to 6e8 it took
#: 0.3 to 1 times the time of the bundle, on two- and four-class Gaussian samples.
INTERIOR_WORK = 1e9
#: And up to which it may finish what another solver began.
FINISHING_WORK = 1e10
#: Samples, and samples per feature of dense data, from which smoothed hinges suit Newton's method: 1.3 to 10 times
#: faster than the interior point at 2,000 samples and more, and no faster at three per feature.
MANY_SAMPLES, MANY_PER_FEATURE = 1000, 10
#: Features from which an l1 problem is solved through a working set of them.
MANY_FEATURES = 500
#: What "auto" spends on proving the optimum of a loss that jumps: nodes times their size, about half a second, counted
#: so that a fit can be repeated exactly; the size of the smallest node of a k-class search, whose steps are made in
#: Python (measured from 40 samples of 3 features to 1,500 of 30: about 60 ns per unit); the largest sample it tries.
EXACT_WORK, SMALLEST_NODE, EXACT_SAMPLES = 8e6, 8e3, 2000

#: Largest (k - 1)(d + 1) for which "auto" takes the search over cones, and the one over vertices.
CONES_DIMENSION, VERTICES_DIMENSION = 6, 4

#: Seconds beyond the time limit that the preparation of an exact search may take, and what sorting the distances of two
#: samples costs, in multiplications.
GRACE, SORTING = 0.1, 400
#: Part of the time limit, and seconds, that may be spent beyond it on descending from the best point found.
POLISHING_SHARE, POLISHING_SECONDS = 0.05, 0.5
#: Samples up to which a fit without a proof gets the bound of its convex relaxation: it costs about a tenth of the fit.
RELAXED_SAMPLES = 10_000
#: How far, relative to the objective, rounding may lift a proved bound above an attained objective: the tolerance with
#: which margins count as on the jump of a loss.
BOUND_ROUNDING = JUMP_TOLERANCE


@dataclass(frozen=True)
class Solver:
    """An entry of the registry.

    Attributes
    ----------
    module : str
        Its module beside this one, which holds ``TAKES``, ``solve`` and, if it has options of its own, ``Settings``.
        Modules load when first used: numba and HiGHS cost import time.
    line : str
        One line for the user.
    needs : tuple of str
        What it is handed: "inner" (a solver for convex problems), "finish" (one that takes over from its result) or
        "start" (the end point of a descent; for exact solvers).
    finish_work : float
        Multiplications per iteration of the finishing solver up to which it is handed.
    preparation : float
        Seconds before a search begins, per n^2 (min(n, dim) + SORTING): distances of all samples, sorted, and
        coordinates of kernels.
    """

    module: str
    line: str
    needs: tuple[str, ...] = ()
    finish_work: float = math.inf
    preparation: float = 0.0


SOLVERS: dict[str, Solver] = {
    "program": Solver("convex.program", "one LP or QP in HiGHS; the reference for small convex problems", ("finish",)),
    "newton": Solver("convex.newton", "dual proximal point by semismooth Newton; linear functions with penalty l2"),
    "l1": Solver(
        "convex.interior.solver",
        "interior point and crossover to a vertex; linear functions with an l1 part, exact zeros",
    ),
    "bundle": Solver(
        "convex.bundle.solver",
        "level-stabilised bundle method; linear functions with many samples or features",
        ("finish",),
    ),
    "smoothed": Solver(
        "convex.smoothed.solver",
        "Newton's method on smoothed hinges; two-class l1 problems with many samples, and their paths",
        ("finish",),
        FINISHING_WORK,
    ),
    "columns": Solver(
        "convex.columns",
        "feature column generation around the other solvers; l1 penalties on many features",
        ("inner",),
    ),
    "smo": Solver("convex.smo", "decomposition along cycles of the class graph; kernels"),
    "passes": Solver("convex.passes.solver", "proximal points in a few passes; data in blocks (dask, memory-mapped)"),
    "dca": Solver("convex.dca", "d.c. algorithm; a critical point of any continuous loss", ("inner",)),
    "mip": Solver(
        "exact.two_class.solver",
        "branch and bound; the proved global optimum of two-class problems",
        ("start",),
        preparation=1e-9,  # one core: 1 s for 1,600 samples of 20 features, 16 to 70 s for an rbf kernel and 3,000
    ),
    "patterns": Solver(
        "exact.k_class.patterns",
        "branch and bound over who pays the cap; the proved global optimum of k-class problems",
        ("start",),
    ),
    "outer": Solver(
        "exact.k_class.outer", "outer approximation by vertex enumeration; global optima in few dimensions", ("start",)
    ),
    "cones": Solver(
        "exact.k_class.cones",
        "branch and bound over cones of coefficients; global optima in few dimensions",
        ("start",),
    ),
}


def load(name: str) -> ModuleType:
    """Import a solver by name; an unknown name raises ValueError and lists the known ones."""
    if name not in SOLVERS:
        raise ValueError(f"solver must be 'auto' or one of {sorted(SOLVERS)}, got {name!r}.")
    return importlib.import_module(f".{SOLVERS[name].module}", __package__)


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
    if problem.is_convex:
        return solve_convex(problem, options, start) if solver == "auto" else _solve_by(problem, solver, options, start)
    if solver == "auto":
        return bounded(problem, solve_nonconvex(problem, options, start))
    return bounded(problem, _solve_by(problem, solver, options, start))


def _solve_by(problem: Problem, solver: str, options: Options, start: Result | None) -> Result:
    """Solve with the named solver; no bound is added."""
    with reporting_as(solver):
        return _consistent(problem, _solve(problem, solver, options, start))


def bounded(problem: Problem, result: Result) -> Result:
    """Give a fit that knows no lower bound the one of its convex relaxation, solved roughly; else 0.

    0 is a bound because penalty and loss are not negative, unless the kernel matrix is not positive semidefinite.
    """
    is_known = result.lower_bound > -math.inf or result.certificate.claim is Claim.RESTRICTED
    if is_known or problem.tilt is not None or not getattr(problem.space, "is_psd", True):
        return result
    bound, R = problem.offset, None
    is_tried = problem.n <= RELAXED_SAMPLES and result.status is not Status.INTERRUPTED
    found = relaxation(problem, result.objective) if is_tried else None
    if found is not None:
        relaxed, rows, value = found
        R = np.zeros((problem.n, problem.n_functions))
        proved, R[rows] = rough_bound(relaxed, _net_multipliers(problem, result, rows))
        bound = max(bound, min(proved, value))
    return _consistent(problem, result.with_bound(bound, "psilearn", None, R))


def _net_multipliers(problem: Problem, result: Result, rows: NDArray[np.intp]) -> NDArray[np.float64] | None:
    """Return multipliers of the scores of some samples, less the tilt of the majorant that they belong to."""
    R, tilt = result.multipliers, result.extra.get("tilt")
    if R is None or not problem.accepts(R):
        return None
    return (R if tilt is None else R - tilt)[rows]


def _solve(problem: Problem, solver: str, options: Options, start: Result | None) -> Result:
    module, entry = load(solver), SOLVERS[solver]
    reason = refusal(solver, problem)
    if reason is not None:
        raise ValueError(reason)
    if "start" in entry.needs:
        return _solve_globally(entry, problem, options, start)
    return module.solve(problem, options, start, **_handed(entry, problem))


def takes(name: str, problem: Problem) -> bool:
    """Whether the named solver takes a problem."""
    return load(name).TAKES.refusal(problem) is None


def refusal(name: str, problem: Problem) -> str | None:
    """Say why the named solver does not take a problem, and who does; None if it takes it."""
    reason = load(name).TAKES.refusal(problem)
    if reason is None:
        return None
    others = [f"'{other}'" for other in SOLVERS if takes(other, problem)]
    if others:
        return f"{reason} Solvers that take this problem: {', '.join(others)}."
    if takes("dca", _surrogate(problem)):
        return f"{reason} No solver takes this problem exactly; solver='auto' fits it without a proof."
    return f"{reason} No solver takes this problem."


def settings(name: str, **values: Any) -> SolverSettings:
    """Return the options of the named solver only, for ``Options.settings``; an unknown option raises ValueError."""
    kind = getattr(load(name), "Settings", None)
    known = [] if kind is None else [field.name for field in fields(kind)]
    unknown = [repr(key) for key in values if key not in known]
    if kind is None or unknown:
        raise ValueError(
            f"solver={name!r} has no option {', '.join(unknown)}; its options: {', '.join(known) or 'none'}."
        )
    return kind(**values)


def _handed(entry: Solver, problem: Problem) -> dict[str, Any]:
    """Return what a solver is handed besides problem, options and start."""
    handed: dict[str, Any] = {}
    if "inner" in entry.needs:
        handed["inner"] = solve_convex
    if "finish" in entry.needs:
        handed["finish"] = load("l1").solve if _work(problem) <= entry.finish_work else None
    return handed


def solve_path(problems: Sequence[Problem], solver: str, options: Options) -> list[Result]:
    """Solve problems on the same samples, neighbours alike and C rising: each helps the next."""
    first = problems[0]
    if first.space.kind == "chunked":
        return (_convex_path if first.is_convex else _nonconvex_path)(problems, solver, options)
    shared = all(p.space is first.space and p.y is first.y and p.weights is first.weights for p in problems)
    if solver == "auto" and first.is_convex:
        solver = choose_convex(first)
    if solver == "smoothed" and shared and load(solver).takes_path(first):
        return load(solver).solve_path(problems, options, **_handed(SOLVERS[solver], first))
    return (_convex_path if first.is_convex else _nonconvex_path)(problems, solver, options)


def _convex_path(problems: Sequence[Problem], solver: str, options: Options) -> list[Result]:
    """Solve each problem from its predecessor's solution."""
    results: list[Result] = []
    for at, problem in enumerate(problems):
        warm = _carried_over(results[-1], problems[at - 1], problem) if results else None
        results.append(solve(problem, solver, options, warm))
    return results


def _nonconvex_path(problems: Sequence[Problem], solver: str, options: Options) -> list[Result]:
    """Solve each problem on its own, then once more from a neighbour's solution wherever that one is better.

    A stationary point of one C need not lead anywhere at the next: f = 0 is optimal for a small C, and the d.c.
    algorithm never leaves it. So a neighbour is only a second start, and no fit is worse than one made alone.
    """
    results = [solve(problem, solver, options, None) for problem in problems]
    forward = list(range(1, len(problems)))
    for at, neighbour in [(i, i - 1) for i in forward] + [(i - 1, i) for i in reversed(forward)]:
        problem, other = problems[at], results[neighbour]
        if problem.value(other.coef, other.intercept) < results[at].objective:
            again = solve(problem, solver, options, _carried_over(other, problems[neighbour], problem))
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
        known = other.certificate
        best = best.with_bound(known.bound, known.engine, known.proof, known.relaxed)
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


def _solve_globally(entry: Solver, problem: Problem, options: Options, start: Result | None) -> Result:
    """Run an exact solver from the d.c. end point; an optimum that is a constant function is returned as exactly that.

    Otherwise coefficients of rounding size would decide the predictions (f = 0 is optimal for small a and many flips).
    """
    clock = Clock(options.time_limit)
    if start is None:
        start = descend(problem, options)
    work = float(problem.n**2 * (min(problem.n, problem.space.dim) + SORTING))
    if entry.preparation * work > max(clock.left, 0.0) + GRACE:
        return _without_search(problem, start)
    module = importlib.import_module(f".{entry.module}", __package__)
    result = module.solve(problem, replace(options, time_limit=clock.left), start)
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


def _without_search(problem: Problem, start: Result) -> Result:
    """Return the point that a search would start from; its own certificate may speak of another problem."""
    note = "the time limit is too short for an exact search to begin"
    certificate = Certificate(Claim.NONE, problem.value(start.coef, start.intercept), note=note)
    return replace(start, status=Status.TIME_LIMIT, certificate=certificate, multipliers=None)


def solve_convex(problem: Problem, options: Options, start: Result | None = None) -> Result:
    """Solve a convex, possibly tilted problem with the solver that suits it best."""
    return solve(problem, choose_convex(problem), options, start)


def choose_convex(problem: Problem) -> str:
    """Return the name of the convex solver for a problem."""
    if problem.space.kind == "chunked":
        return "passes"
    if problem.is_kernel:
        return "smo"
    if problem.penalty.l2 > 0 and not problem.penalty.has_l1:
        return "newton"
    assert isinstance(problem.space, LinearSpace)
    is_tall = problem.space.is_sparse or problem.n >= MANY_PER_FEATURE * problem.space.dim
    if problem.n >= MANY_SAMPLES and is_tall and takes("smoothed", problem):
        return "smoothed"
    if problem.space.dim > MANY_FEATURES and np.all(np.asarray(problem.penalty.l1) > 0):
        return "columns"
    # An iteration of the interior point costs n p^2, one of the bundle two passes over the data.
    return "l1" if _work(problem) <= INTERIOR_WORK else "bundle"


def _work(problem: Problem) -> float:
    """Return the multiplications of an iteration of the interior point."""
    return float(problem.n * (problem.n_functions * (problem.space.dim + 1)) ** 2)


def choose_exact(problem: Problem) -> str:
    """Return the name of the exact solver for a truncated problem: by measurement the fastest to a proof.

    Up to their limit cones are the safe choice: patterns are faster only where few samples are worth disbelieving.
    Vertices beat patterns in the fewest dimensions only (docs/outer.md has the figures). The search for two classes
    does not take elastic nets; the others do.
    """
    if problem.n_classes == 2 and ("elastic net" not in problem.penalty.parts or problem.is_kernel):
        return "mip"
    dimension = (problem.n_classes - 1) * (problem.space.dim + 1)
    for name, most in (("cones", CONES_DIMENSION), ("outer", VERTICES_DIMENSION)):
        if dimension <= most and takes(name, problem):
            return name
    return "patterns"


def descend(problem: Problem, options: Options, start: Result | None = None) -> Result:
    """Return the d.c. algorithm's end point; for a loss that jumps, that of its continuous surrogate, re-evaluated."""
    surrogate = _surrogate(problem)
    result = _solve_by(surrogate, "dca", options, start)
    if surrogate.loss is problem.loss:
        return result
    objective = problem.value(result.coef, result.intercept)
    certificate = Certificate(Claim.NONE, objective, note="d.c. end point of a continuous surrogate; no bound is known")
    return replace(result, certificate=certificate, status=Status.HEURISTIC, multipliers=None)


def _surrogate(problem: Problem) -> Problem:
    """Return the problem with a continuous loss of the same cap."""
    return replace(problem, loss=problem.loss.continuous_surrogate)


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
    if problem.loss.is_continuous and is_unlimited:
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
    found = found.with_bound(exact.lower_bound, exact.certificate.engine, exact.certificate.proof)
    return _consistent(problem, replace(found, status=exact.status, history=[*found.history, *exact.history]))


__all__ = [
    "SOLVERS", "choose_convex", "choose_exact", "descend", "load", "refusal", "settings", "solve", "solve_convex",
    "solve_nonconvex", "solve_path", "takes",
]  # fmt: skip
