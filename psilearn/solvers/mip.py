"""Exact solver for truncated losses, two classes: a proved global optimum, or an incumbent with an honest bound.

    minimise  P(w) + C sum_i weight_i l(y_i f(x_i))

Liu and Wu, Optimizing psi-learning via mixed integer programming, 2006, (3.6), (3.14) and section 3.3; here for any
loss in normal form (psi with any a, truncated hinges, the hard margin). Certifies a global bound.
"""

from __future__ import annotations

import numpy as np

from ..problem import Problem
from ..result import Certificate, Claim, Result, Status, relative_gap
from . import branch
from .base import Clock, Options
from .reduction import reduce


def refuses(problem: Problem) -> str | None:
    """Say in one sentence why this problem cannot be solved here, None if it can."""
    if problem.n_classes > 2:
        return "solver 'mip' takes two classes only; use solver='outer' or 'dca' for more."
    if problem.loss.is_convex:
        return "solver 'mip' is for truncated losses; this loss is convex, use a convex solver."
    if problem.tilt is not None:
        return "solver 'mip' takes no linear term on the scores."
    if problem.penalty.l0 > 0:
        return "solver 'mip' does not count non-zero coefficients (l0 must be 0)."
    if problem.penalty.l2 > 0 and problem.penalty.has_l1:
        return "solver 'mip' takes an l2 or an l1 penalty, not both."
    if problem.penalty.l2 == 0 and problem.is_kernel:
        return "solver 'mip' takes kernels with an l2 penalty only."
    if problem.penalty.l2 == 0 and np.any(np.asarray(problem.penalty.l1) <= 0):
        return "solver 'mip' needs a penalty on every coefficient."
    return None


def solve(problem: Problem, options: Options, start: Result | None = None) -> Result:
    """Minimise globally. Extra options: ``incumbents``, a list of (W, b) to start from."""
    reason = refuses(problem)
    if reason:
        raise ValueError(reason)
    clock = Clock(options.time_limit)
    reduction = reduce(problem)
    points = list(options.extra.get("incumbents", ()))
    if start is not None:
        points.append((start.coef, start.intercept))
    scaled = [reduction.point(np.asarray(W), np.asarray(b)) for W, b in points]
    outcome = branch.search(reduction, problem.loss, options, clock, scaled)
    return _result(problem, reduction, outcome, options, clock)


def _result(problem, reduction, outcome, options, clock) -> Result:
    W, b = reduction.coefficients(outcome.v, outcome.b, outcome.alpha)
    objective = problem.value(W, b)
    bound = min(reduction.unit * outcome.bound, objective)
    clock.note(objective, bound)
    status = outcome.status
    if status is Status.OPTIMAL and relative_gap(objective, bound) > options.gap_tol:
        status = Status.STALLED
    note = "search tree of dual feasible bounds"
    if not np.any(W):
        note += "; the optimum is a constant function"
    certificate = Certificate(Claim.GLOBAL, objective, bound, note=note)
    R = reduction.multipliers(outcome.alpha)
    extra = {"nodes": outcome.nodes}
    return Result(W, b, objective, bound, status, certificate, outcome.nodes, tuple(clock.history), R, extra)
