"""Exact solver for truncated losses, two classes: a proved global optimum, or an incumbent with an honest bound.

    minimise  P(w) + C sum_i weight_i l(y_i f(x_i)),     P(w) = l2/2 ||w||^2  or  sum_j l1_j |w_j|

Liu and Wu, Optimizing psi-learning via mixed integer programming, 2006, (3.6), (3.14) and section 3.3; here for any
loss in normal form (psi with any a, truncated hinges, the hard margin). Our own branch and bound certifies a global
bound; the published formulation and a tight one can be handed to SCIP or HiGHS instead, which then attest the bound.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...core.capabilities import ANY_LINEAR, L1_KINDS, TWO_CLASSES, Takes
from ...core.losses import JUMP_TOLERANCE
from ...core.problem import Problem
from ...core.result import Certificate, Claim, Result, Status, relative_gap
from ...core.solving import Clock, Options
from ..sample_state_jit import FREE, IN, TOP
from . import formulations, portfolio
from .incumbent import first_incumbent, polish
from .incumbent_jit import alternate_from
from .model import fit_svm, make_model, margin_bounds
from .portfolio import Outcome
from .reduction import Reduction, reduce
from .settings import Settings

#: An SVM margin this far above the threshold counts as above it (section 3.3).
RESTRICTION_TOLERANCE = 1e-6
#: Part of a bound that an engine cannot attest, since it takes rows as satisfied within 1e-6.
ENGINE_TOLERANCE = 1e-5


TAKES = Takes(
    "mip",
    losses=frozenset({"truncated", "truncated elsewhere than 0", "jump", "no hinge"}),
    spaces=ANY_LINEAR | {"kernel"},
    classes=TWO_CLASSES,
    penalties=L1_KINDS | {"l2"},
)


def solve(problem: Problem, options: Options, start: Result | None = None) -> Result:
    """Minimise globally.

    Parameters
    ----------
    problem : Problem
        Two classes, a truncated loss, a pure l2 or a pure l1 penalty.
    options : Options
        ``max_iter`` limits nodes; options of this solver only are in :class:`Settings`.
    start : Result, optional
        An earlier fit on the same samples, taken as a first incumbent.

    Returns
    -------
    Result
        The incumbent, and a proved lower bound on the optimum.
    """
    TAKES.check(problem)
    settings = options.of(Settings)
    clock = Clock(options.time_limit)
    reduction = reduce(problem)
    points = list(settings.incumbents)
    if start is not None:
        points.append((start.coef, start.intercept))
    scaled = [reduction.point(np.asarray(W), np.asarray(b)) for W, b in points]
    given = None
    if settings.restrict == "svm":
        given, svm = _restriction(problem, reduction, settings)
        scaled.append(svm)
    if settings.engine == "psilearn":
        outcome = portfolio.search(reduction, problem.loss, options, clock, scaled, given)
    else:
        outcome = _by_engine(settings, problem, reduction, options, scaled, given)
    return make_result(problem, reduction, outcome, options, clock, given)


def _by_engine(
    settings: Settings,
    problem: Problem,
    reduction: Reduction,
    options: Options,
    points: list[tuple[NDArray[np.float64], float]],
    given: NDArray[np.int8] | None,
) -> Outcome:
    """Solve a formulation in SCIP or HiGHS, then refit the continuous part with the regions fixed."""
    model = make_model(reduction, problem.loss, given)
    best, scratch = first_incumbent(model, points)
    if settings.formulation == "paper":
        program = formulations.paper_program(reduction, problem.loss, forced=None if given is None else given == TOP)
    elif given is not None:
        raise ValueError("A restricted problem takes formulation='paper' or the engine 'psilearn'.")
    else:
        program = formulations.tight_program(reduction, problem.loss, margin_bounds(model, best.value[0])[0])
    answer = program.solve(settings.engine, options.time_limit, options.gap_tol)
    v, b = program.point(answer)
    margins = model.a @ v + model.y * b + JUMP_TOLERANCE  # an engine's point may lie that far below the jump
    scratch.alpha[:] = 0.0
    alternate_from(model, best, scratch, margins)
    alpha = polish(model, best, scratch)
    value = float(best.value[0])
    status = Status.OPTIMAL if answer.is_optimal else Status.TIME_LIMIT
    bound, status = portfolio.not_above(answer.bound + program.constant, value, status, ENGINE_TOLERANCE)
    bound -= ENGINE_TOLERANCE * abs(bound)
    return Outcome(best.w, float(best.b[0]), alpha, value, bound, status, answer.iterations, settings.engine)


def _restriction(
    problem: Problem, reduction: Reduction, settings: Settings
) -> tuple[NDArray[np.int8], tuple[NDArray[np.float64], float]]:
    """States that the support vector machine (SVM) imposes, and the SVM itself (it obeys them)."""
    model = make_model(reduction, problem.loss)
    if settings.svm is not None:
        W, b = settings.svm
        v, intercept = reduction.point(np.asarray(W), np.asarray(b))
        margins = model.a @ v + model.y * intercept
    else:
        v, intercept, margins = fit_svm(model, model.cost)
    threshold = settings.restrict_threshold + RESTRICTION_TOLERANCE
    given = np.where(margins > threshold, TOP, FREE).astype(np.int8)
    if settings.restrict_further is not None:
        given[(given == FREE) & (margins > settings.restrict_further) & (margins < 1.0)] = IN
    return given, (v, intercept)


def make_result(
    problem: Problem,
    reduction: Reduction,
    outcome: Outcome,
    options: Options,
    clock: Clock,
    given: NDArray[np.int8] | None = None,
) -> Result:
    """Go back to the original problem, recompute the objective, and state what is proved."""
    W, b = reduction.coefficients(outcome.v, outcome.b, outcome.alpha)
    objective = problem.value(W, b)
    bound, status = portfolio.not_above(reduction.unit * outcome.bound, objective, outcome.status)
    clock.note(objective, bound)
    if status is Status.OPTIMAL and relative_gap(objective, bound) > options.gap_tol:
        status = Status.STALLED
    note = "search tree of dual feasible bounds"
    if not outcome.engine.startswith("psilearn"):
        note = f"mixed-integer program; the bound is attested by {outcome.engine}, verify recomputes it"
    if not np.any(W):
        note += "; the optimum is a constant function"
    claim, extra = Claim.GLOBAL, {"nodes": float(outcome.nodes)}
    if given is not None and np.any(given != FREE):
        claim, extra["restricted_bound"] = Claim.RESTRICTED, bound
        note += f"; {int(np.count_nonzero(given))} of {reduction.n} samples bound to their side"
        bound = -np.inf
    certificate = Certificate(claim, objective, bound, engine=outcome.engine, note=note, record=outcome.record)
    R = reduction.multipliers(outcome.alpha)
    return Result(W, b, status, certificate, outcome.nodes, tuple(clock.history), R, extra)
