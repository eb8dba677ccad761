"""Convex machines in kernel spaces, two or more classes, by decomposition and moves along cycles of the class graph.

    minimise  l2/2 sum_j ||f_j||_K^2 + sum_i cost_i g(u_i) + sum_ij tilt_ij f_j(x_i),     intercepts free

is solved in its dual over the multipliers R of :meth:`psilearn.problem.Problem.dual_bound`, with
f_j = sum_i (R_ij - tilt_ij) / l2 K(x_i, .) + b_j (Liu and Shen, Multicategory psi-learning, 2006, equation (3.9) for the
hinge). Each round picks the samples that violate optimality most, moves among them (:mod:`psilearn.kernels.smo`) and
updates all scores at once. Two classes are the case k = 2 with f_1 = -f_0 = f/2, which doubles l2.

It certifies a relative duality gap computed from the maintained scores and recomputed at the end. A round costs
O(q n k) for q chosen samples; memory is the Gram matrix plus O(nk).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ..kernels import smo as kernels
from ..problem import Problem
from ..result import Certificate, Claim, Result, Status
from .base import Clock, Options, convex_result

Array = NDArray[np.float64]

WORKING_SET = 256
_MOVES_PER_SAMPLE = 20  # inner moves before the scores of all samples are brought up to date
_INNER_ACCURACY = 0.2  # of the violation at the start of a round
_PATIENCE = 25  # rounds without a gain of the dual value


def refuses(problem: Problem) -> str | None:
    """Say in one sentence why this solver cannot take the problem, None if it can."""
    if not problem.is_kernel:
        return "The smo solver works on a kernel's Gram matrix."
    if problem.penalty.l2 <= 0 or problem.penalty.has_l1 or problem.penalty.l0:
        return "Kernel machines take the penalty 'l2' only: coefficients of a kernel expansion have no l1 or l0 meaning."
    if not problem.loss.is_convex:
        return "The smo solver needs a convex loss."
    return None


def solve(problem: Problem, options: Options, start: Result | None = None) -> Result:
    """Solve to a relative duality gap of ``options.tol``.

    Parameters
    ----------
    problem : Problem
        Convex, in a kernel space, penalty l2; any hinges, costs and tilt.
    options : Options
        ``max_iter`` bounds the moves (default: none); ``extra["working_set"]`` the samples per round (default 256).
    start : Result or None
        An earlier result on the same samples (other C, other tilt): its multipliers are made feasible and improved.

    Returns
    -------
    Result
        With ``multipliers``; ``extra["rounds"]`` counts the decomposition rounds, ``n_iter`` the moves.
    """
    clock = Clock(options.time_limit)
    R = _starting_multipliers(problem, start)
    if R is None:
        empty = np.zeros((problem.n_functions, problem.n))
        return convex_result(problem, empty, np.zeros(problem.n_functions), None, options, clock, 0)
    dual = _Dual(problem, R)
    status = None
    try:
        status = _run(dual, options, clock)
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
    return _finish(dual, options, clock, status)


def _starting_multipliers(problem: Problem, start: Result | None) -> Array | None:
    if start is not None and start.multipliers is not None:
        return problem.repaired_multipliers(start.multipliers)
    tilt = problem.tilt
    # At R = tilt every function is zero; the tilt of a linearised loss is feasible as it stands.
    return problem.repaired_multipliers(np.zeros((problem.n, problem.n_functions)) if tilt is None else tilt)


class _Dual:
    """The dual problem in the k-class form, with multipliers R and scores G (k, n), and the current intercepts."""

    def __init__(self, problem: Problem, R: Array) -> None:
        self.problem = problem
        self.k = problem.n_classes
        self.l2 = problem.penalty.l2 * (2.0 if self.k == 2 else 1.0)
        self.c = np.array([c for c, _ in problem.loss.hinges])
        self.t = np.array([t for _, t in problem.loss.hinges])
        self.cost = np.ascontiguousarray(problem.costs, dtype=np.float64)
        self.y = np.ascontiguousarray(problem.y, dtype=np.int64)
        self.R = self._to_classes(R)
        self.tilt = np.zeros_like(self.R) if problem.tilt is None else self._to_classes(problem.tilt)
        self.b = np.zeros(self.k)
        self.moves = self.rounds = 0
        self.refresh()

    def _to_classes(self, R: Array) -> Array:
        return np.ascontiguousarray(np.vstack([-R.T, R.T]) if self.k == 2 else R.T, dtype=np.float64)

    @property
    def multipliers(self) -> Array:
        """R in the problem's own shape (n, m)."""
        return np.ascontiguousarray(self.R[1:].T if self.k == 2 else self.R.T)

    @property
    def intercept(self) -> Array:
        """The intercepts b in the problem's own shape (m,), summing to zero if there are several."""
        return np.array([self.b[1] - self.b[0]]) if self.k == 2 else self.b - self.b.mean()

    def coefficients(self, R: Array) -> Array:
        """Return v = (R - tilt) / l2, shape (m, n)."""
        tilt = self.problem.tilt
        return self.problem.space.combine(R if tilt is None else R - tilt) / self.problem.penalty.l2

    def refresh(self) -> None:
        """Compute the scores from the multipliers anew."""
        W = self.coefficients(self.multipliers)
        F = self.problem.space.scores(W, np.zeros(W.shape[0]))
        self.G = 0.5 * self._to_classes(F) if self.k == 2 else self._to_classes(F)

    def look(self) -> tuple[float, float, float]:
        """Set slopes and intercepts; return the worst violation (mean weight of a cycle), objective and bound."""
        self.up, self.down = np.empty_like(self.R), np.empty_like(self.R)
        kernels.price_all(self.y, self.R, self.cost, self.c, self.t, self.up, self.down)
        W, samples = np.empty((self.k, self.k)), np.empty((self.k, self.k), dtype=np.int64)
        kernels.arc_weights(self.up, self.down, self.G, W, samples)
        violation, self.b = _intercepts(W)
        return violation, *self.values()

    def values(self) -> tuple[float, float]:
        """Objective and dual bound from the maintained scores."""
        problem, F = self.problem, self.G + self.b[:, None]
        half_norm = 0.5 * float(np.sum((self.R - self.tilt) * self.G))
        scores = (F[1] - F[0])[:, None] if self.k == 2 else F.T
        loss = float(self.cost @ problem.loss.value(problem.margins_of_scores(scores)))
        linear = 0.0 if problem.tilt is None else float(np.sum(self.tilt * F))
        gain = float(np.sum(problem.loss.dual_gain(self.R[self.y, np.arange(problem.n)], self.cost)))
        return half_norm + loss + linear + problem.offset, gain - half_norm + problem.offset

    def working_set(self, size: int) -> NDArray[np.intp]:
        """The samples that violate optimality most under the current intercepts."""
        n = self.y.size
        if n <= size:
            return np.arange(n)
        best_up = (self.up - self.G - self.b[:, None]).max(axis=0)
        best_down = (self.down - self.G - self.b[:, None]).min(axis=0)
        return np.sort(np.argpartition(best_up - best_down, n - size)[n - size :])

    def round(self, chosen: NDArray[np.intp], goal: float, max_moves: int) -> int:
        """Move among the chosen samples and bring all scores up to date."""
        K = self.problem.space.K
        R, G = np.ascontiguousarray(self.R[:, chosen]), np.ascontiguousarray(self.G[:, chosen])
        block = K if chosen.size == K.shape[0] else K[np.ix_(chosen, chosen)]
        data = (self.y[chosen], self.cost[chosen], self.c, self.t)
        moves, _ = kernels.descend(block, 1.0 / self.l2, *data, R, G, goal, max_moves)
        steps = (R - self.R[:, chosen]) / self.l2
        kernels.add_rows(K, chosen, steps, self.G)
        self.R[:, chosen] = R
        self.moves += moves
        self.rounds += 1
        return moves


def _intercepts(W: Array) -> tuple[float, Array]:
    """Return the largest mean weight mu of a cycle of the class graph and b with W_rs - mu <= b_r - b_s."""
    k = W.shape[0]
    pairs = (W + W.T)[~np.eye(k, dtype=bool)] / 2.0
    mu = float(pairs.max())
    cycle, b, parent = np.empty(k, dtype=np.int64), np.empty(k), np.empty(k, dtype=np.int64)
    reverse = np.empty(k)
    while True:
        slack = 1e-14 * max(1.0, abs(mu))
        length, weight = kernels.steepest_cycle(W - mu, slack, cycle)
        if length == 0:
            break
        mu += weight / length
    kernels.potentials(W, mu + slack, b, parent)
    kernels.potentials(np.ascontiguousarray(W.T), mu + slack, reverse, parent)
    return mu, 0.5 * (b - reverse)


def _run(dual: _Dual, options: Options, clock: Clock) -> Status | None:
    """Rounds until the gap is closed; None, or the status that says why not."""
    size = int(options.extra.get("working_set", WORKING_SET))
    limit = math.inf if options.max_iter is None else options.max_iter
    best, idle = -math.inf, 0
    while True:
        violation, objective, bound = dual.look()
        clock.note(objective, bound)
        if objective - bound <= options.tol * abs(objective) and violation <= 1.0:
            return None
        if clock.is_over:
            return Status.TIME_LIMIT
        if dual.moves >= limit:
            return Status.ITERATION_LIMIT
        idle = 0 if bound > best + 1e-15 * abs(bound) else idle + 1
        best = max(best, bound)
        chosen = dual.working_set(size)
        moves = dual.round(chosen, _INNER_ACCURACY * max(violation, 0.0), _MOVES_PER_SAMPLE * chosen.size)
        if moves == 0 or idle > _PATIENCE:
            return Status.STALLED


def _finish(dual: _Dual, options: Options, clock: Clock, status: Status | None) -> Result:
    R = dual.problem.repaired_multipliers(dual.multipliers)
    assert R is not None  # moves keep the start's feasibility
    W = dual.coefficients(R)
    return convex_result(dual.problem, W, dual.intercept, R, options, clock, dual.moves, status, rounds=dual.rounds)
