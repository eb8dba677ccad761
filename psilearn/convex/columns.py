"""Feature column generation: an l1 problem with many coefficients through a few small ones.

Coefficients outside a working set are zero. The multipliers R of the solution on the set price the others: with
v_d = sum_i (R_i - tilt_i) x_id, coefficient d may stay zero if |v_d| <= l1_d (for k > 2 functions that sum to zero, if
some nu has |v_jd - nu| <= l1_jd for all j). The worst offenders join until nobody is left, or until the bound that R
proves for the whole problem meets the objective. The work of the inner solver depends on the set alone; pricing is
one combination of the samples a round.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..core.capabilities import ANY_CLASSES, ANY_CONVEX, ANY_LINEAR, L1_KINDS, TILT, Takes
from ..core.problem import Problem
from ..core.result import Result, Status
from ..core.solving import Clock, Options, Solve, convex_result
from ..core.spaces import LinearSpace

Array = NDArray[np.float64]

_ROUNDS = 100
_FIRST = 50  # features of the first working set
_GROWTH = 0.5  # a round adds at most so many times the present number, but at least _FIRST


TAKES = Takes(
    "columns",
    losses=ANY_CONVEX,
    spaces=ANY_LINEAR,
    classes=ANY_CLASSES,
    tilts=TILT,
    penalties=L1_KINDS | {"l2", "elastic net"},
    needs=frozenset({"l1"}),
)


def solve(problem: Problem, options: Options, start: Result | None = None, *, inner: Solve) -> Result:
    """Solve to a relative duality gap of ``options.tol`` with an inner solver.

    Parameters
    ----------
    problem : Problem
        Convex, on a linear space, every coefficient under an l1 penalty.
    options : Options
        ``tol`` and ``time_limit``; all options are handed to the inner solver.
    start : Result or None
        An earlier result; its non-zero features are the first working set.
    inner : Solve
        The solver for the small problems.
    """
    TAKES.check(problem)
    clock = Clock(options.time_limit)
    assert isinstance(problem.space, LinearSpace)
    X = problem.space.X if isinstance(problem.space.X, np.ndarray) else problem.space.X.tocsc()
    working = _first_set(problem, start)
    for n_iter in range(1, _ROUNDS + 1):
        small = _restricted(problem, X, working)
        found = inner(small, replace(options, tol=0.5 * options.tol, time_limit=clock.left), None)
        W = np.zeros((problem.n_functions, problem.space.dim))
        W[:, working] = found.coef
        early = found.status if found.status in (Status.TIME_LIMIT, Status.INTERRUPTED) else None
        result = convex_result(problem, W, found.intercept, found.multipliers, options, clock, n_iter, early)
        if result.status is Status.OPTIMAL or early is not None:
            break
        offenders = _offenders(problem, found.multipliers, working)
        if offenders.size == 0:
            break
        working = np.sort(np.concatenate([working, offenders]))
    return result


def _restricted(problem: Problem, X: NDArray | sp.csc_matrix, working: NDArray[np.intp]) -> Problem:
    """Return the problem on some of the features."""
    part = X[:, working]
    space = LinearSpace(np.ascontiguousarray(part) if isinstance(part, np.ndarray) else part.tocsr())
    l1 = problem.penalty.l1_array((problem.n_functions, problem.space.dim))[:, working]
    return replace(problem, space=space, penalty=replace(problem.penalty, l1=np.ascontiguousarray(l1)))


def _violation(problem: Problem, R: Array) -> Array:
    """Return by how much each feature's price exceeds what its l1 weights allow, relative to them."""
    V = problem.space.combine(R if problem.tilt is None else R - problem.tilt)
    l1 = problem.penalty.l1_array(V.shape)
    if V.shape[0] == 1:
        return np.abs(V[0]) / l1[0] - 1.0
    low, high = np.max(V - l1, axis=0), np.min(V + l1, axis=0)  # nu must lie between
    least = l1.min(axis=0)
    forbidden = np.isinf(least)  # no price is too high for a feature that no function may use
    return np.where(forbidden, -1.0, np.where(forbidden, 0.0, low - high) / np.where(forbidden, 1.0, least))


def _first_set(problem: Problem, start: Result | None) -> NDArray[np.intp]:
    """Return the features of the start, or those that the best constant misses most."""
    if start is not None and np.any(start.coef):
        return np.flatnonzero(np.any(start.coef != 0, axis=0))
    F = np.broadcast_to(problem.best_constant()[1], (problem.n, problem.n_functions))
    score = _violation(problem, problem.loss_multipliers(F))
    return np.sort(np.argsort(-score)[: min(_FIRST, score.size)])


def _offenders(problem: Problem, R: Array | None, working: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return the worst features outside the working set."""
    if R is None:
        return np.zeros(0, dtype=np.intp)
    score = _violation(problem, R)
    score[working] = -np.inf
    worst = np.argsort(-score)[: max(_FIRST, int(_GROWTH * working.size))]
    return worst[score[worst] > 0]
