"""Convex problems in kernel spaces, two or more classes, by decomposition and moves along cycles of the class graph.

    minimise  l2/2 sum_j ||f_j||_K^2 + sum_i cost_i g(u_i) + sum_ij tilt_ij f_j(x_i),     intercepts free

is solved in its dual over the multipliers R of :meth:`psilearn.core.problem.Problem.dual_bound`, with
f_j = sum_i (R_ij - tilt_ij) / l2 K(x_i, .) + b_j. For the hinge this is the quadratic program (3.7) of Liu and Shen,
Multicategory psi-learning (2006), in n(k - 1) variables; the intercepts, there from (3.8) or the LP (3.9),
are the potentials of the class graph. Each round picks the samples that violate optimality most, moves among them
(:mod:`.smo_jit`) and updates all scores at once; in the tail, Newton steps on the multipliers that are free
to move both ways take over from many small moves. Two classes are the case k = 2 with f_1 = -f_0 = f/2,
which doubles l2.

It certifies a relative duality gap computed from the maintained scores and recomputed at the end. A round costs
O(q n k) for q chosen samples; memory is the Gram matrix plus O(nk).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ...core.capabilities import ANY_CLASSES, ANY_CONVEX, TILT, Takes
from ...core.problem import Problem
from ...core.result import Certificate, Claim, Result, Status
from ...core.solving import NOTHING_PROVED, Answer, Clock, Options, SolverSettings, convex_result, uncertified
from .dual import Dual

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Constants:
    """Rounds of the decomposition, and when Newton steps help.

    Attributes
    ----------
    fewest : int
        Half of the samples move in a round at most, or this many.
    moves_per_sample : int
        Inner moves per sample of a round before the scores of all samples are brought up to date.
    inner_accuracy : float
        A round ends at this share of the violation it began with.
    rounds_alone : int
        Rounds before Newton steps begin: they help the tail of a solve.
    newton_steps : int
        Newton steps after a round at most.
    newton_price : float
        A factorisation of size m costs about as much as moves over m^3 / 50 entries.
    most_moves : int
        Moves at most by default, or 100 per sample if that is more.
    patience : int
        Rounds in which the gap has not shrunk by a hundredth, at most.
    """

    fewest: int = 2048
    moves_per_sample: int = 20
    inner_accuracy: float = 0.2
    rounds_alone: int = 8
    newton_steps: int = 5
    newton_price: float = 50.0
    most_moves: int = 2_000_000
    patience: int = 100


_C = Constants()


#: A kernel that is not positive semidefinite is taken, too, but nothing is claimed then.
TAKES = Takes(
    "smo",
    losses=ANY_CONVEX,
    spaces=frozenset({"kernel", "indefinite kernel"}),
    classes=ANY_CLASSES,
    tilts=TILT,
    penalties=frozenset({"l2"}),
)


@dataclass(frozen=True)
class Settings(SolverSettings):
    """Options of this solver only.

    Attributes
    ----------
    working_set : int
        Samples per round at most; their block of the Gram matrix takes 144 MiB in float32 for 6144.
    """

    working_set: int = 6144


def solve(problem: Problem, options: Options, start: Result | None = None) -> Result:
    """Solve to a relative duality gap of ``options.tol``.

    Parameters
    ----------
    problem : Problem
        Convex, in a kernel space, penalty l2; any hinges, costs and tilt.
    options : Options
        ``max_iter`` bounds the moves (default: two million, or 100 per sample); see also :class:`Settings`.
    start : Result or None
        An earlier result on the same samples (other C, other tilt): its multipliers are made feasible and improved.

    Returns
    -------
    Result
        With ``multipliers``; ``extra["rounds"]`` counts the decomposition rounds, ``n_iter`` the moves.
    """
    TAKES.check(problem)
    clock = Clock(options.time_limit)
    dual = Dual(problem, _starting_multipliers(problem, start))
    if not dual.balance():
        empty = np.zeros((problem.n_functions, problem.n))
        return convex_result(problem, empty, np.zeros(problem.n_functions), None, options, clock, 0)
    try:
        status = _run(dual, options, clock)
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
    return _finish(dual, options, clock, status)


def _starting_multipliers(problem: Problem, start: Result | None) -> Array:
    """Multipliers inside their boxes to start from; their class sums may still be wrong."""
    if start is None or start.multipliers is None:
        # At R = tilt every function is zero; the tilt of a linearised loss lies inside the boxes.
        R = np.zeros((problem.n, problem.n_functions)) if problem.tilt is None else problem.tilt
    else:
        R = _rescaled(problem, start.multipliers)
    return problem.clipped(R)


def _rescaled(problem: Problem, R: Array) -> Array:
    """After a change of C: multipliers stretched with their boxes, if that raises the dual value."""
    upper = problem.dual_limits
    alpha = R[:, 0] * problem.signs if problem.n_classes == 2 else R[np.arange(problem.n), problem.y]
    fill = float(np.max(alpha / upper, initial=0.0))
    if problem.tilt is not None or fill <= 0 or abs(fill - 1.0) < 1e-9:
        return R
    V = problem.space.combine(R) / problem.penalty.l2
    quadratic = 0.5 * problem.penalty.l2 * problem.space.inner(V, V)
    candidates = (1.0 / fill, min(1.0, 1.0 / fill))

    def dual_value(factor: float) -> float:
        return float(np.sum(problem.loss.dual_gain(factor * alpha, problem.costs, problem.y))) - factor**2 * quadratic

    return max(candidates, key=dual_value) * R


def _run(dual: Dual, options: Options, clock: Clock) -> Status | None:
    """Rounds until the gap is closed; None, or the status that says why not."""
    size = min(options.of(Settings).working_set, max(_C.fewest, dual.problem.n // 2))
    most = max(_C.most_moves, 100 * dual.problem.n) if options.max_iter is None else options.max_iter
    smallest, idle, fresh = math.inf, 0, False
    while True:
        violation, objective, bound = dual.evaluate()
        clock.note(objective, bound)
        gap, idle = dual.best[0] - bound, idle + 1
        if gap < 0.99 * smallest:
            smallest, idle = gap, 0
        done = objective - bound <= options.tol * abs(objective) if dual.is_convex else violation <= options.tol
        if done and (fresh or not options.certify):
            return None
        if clock.is_over:
            return Status.TIME_LIMIT
        if dual.moves >= most:
            return Status.ITERATION_LIMIT
        if idle > _C.patience:
            return Status.STALLED
        moves = 0 if done or violation <= 0.0 else _advance(dual, violation, size, most, clock)
        if moves == 0 and fresh:
            return Status.STALLED
        fresh = moves == 0
        if fresh:  # believe in the end, or in a stall, only on scores computed anew
            dual.refresh()


def _advance(dual: Dual, violation: float, size: int, most: int, clock: Clock) -> int:
    """One round, and Newton steps where they are cheaper than more rounds; return the number of moves."""
    chosen = dual.working_set(violation, size)
    moves = dual.round(chosen, _C.inner_accuracy * violation, _affordable(dual, chosen, most, clock))
    dual.work += moves * chosen.size * dual.k
    for _ in range(_C.newton_steps if dual.is_convex and dual.rounds >= _C.rounds_alone else 0):
        price = dual.newton_size() ** 3 / _C.newton_price
        if price > dual.work or not dual.newton():
            break
        dual.work = max(dual.work - price, 0.0)
    dual.settle()
    return moves


def _affordable(dual: Dual, chosen: NDArray[np.intp], most: int, clock: Clock) -> int:
    """Moves of the next round: enough to be worth an update of all scores, few enough for the limits."""
    moves = min(float(_C.moves_per_sample * chosen.size), most - dual.moves)
    if math.isfinite(clock.limit):
        pace = clock.seconds / dual.moves if dual.moves else 1e-3
        moves = min(moves, 0.5 * max(clock.left, 0.0) / pace)
    return max(1, int(moves))


def _finish(dual: Dual, options: Options, clock: Clock, status: Status | None) -> Result:
    """Certify what is left: the duality gap, or, without convexity, nothing."""
    R = dual.multipliers
    if status is None or math.isinf(dual.best[0]):
        W, b = dual.coefficients(R), dual.intercept
    else:  # the objective does not fall with every round
        _, W, b = dual.best
    if not options.certify:
        return uncertified(Answer(W, b, R, clock, dual.moves, status, {}))
    result = convex_result(dual.problem, W, b, R, options, clock, dual.moves, status, rounds=dual.rounds)
    if dual.is_convex:
        return _for_shifted_kernel(dual, result, options)
    certificate = Certificate(Claim.NONE, result.objective, note=NOTHING_PROVED)
    final = Status.CRITICAL if status is None else status
    return replace(result, status=final, certificate=certificate)


def _for_shifted_kernel(dual: Dual, result: Result, options: Options) -> Result:
    """Lower the bound to one for K + s I, which is proved positive semidefinite where K may miss it by rounding.

    The dual of that kernel has the same feasible multipliers, and its value is smaller by l2/2 s ||V||^2.
    """
    shift = dual.space.psd_shift
    if shift == 0.0 or result.multipliers is None:
        return result
    V = dual.coefficients(result.multipliers)
    bound = result.lower_bound - 0.5 * dual.problem.penalty.l2 * shift * float(np.sum(V * V)) * (1.0 + 1e-9)
    note = f"the bound holds for the kernel matrix plus {shift:.2g} on its diagonal, which is positive semidefinite"
    certificate = replace(result.certificate, bound=bound, note=note)
    status = result.status
    if status is Status.OPTIMAL and certificate.gap > options.tol:
        status = Status.STALLED
    return replace(result, status=status, certificate=certificate)
