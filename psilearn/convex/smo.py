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
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from ..core.capabilities import ANY_CLASSES, ANY_CONVEX, TILT, Takes
from ..core.problem import Problem
from ..core.result import Certificate, Claim, Result, Status
from ..core.solving import NOTHING_PROVED, Answer, Clock, Options, SolverSettings, convex_result, uncertified
from ..core.spaces import KernelSpace
from . import smo_jit as kernels

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Constants:
    """Rounds of the decomposition, and when Newton steps help.

    Attributes
    ----------
    fewest : int
        Samples of a round at least.
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

    fewest: int = 64
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
        Samples per round at most; their block of the Gram matrix takes 32 MiB for 2048.
    """

    working_set: int = 2048


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
    dual = _Dual(problem, _starting_multipliers(problem, start))
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


class _Dual:
    """The dual problem in the k-class form, with multipliers R and scores G (k, n), and the current intercepts."""

    def __init__(self, problem: Problem, R: Array) -> None:
        assert isinstance(problem.space, KernelSpace)
        self.problem, self.space = problem, problem.space
        self.k = problem.n_classes
        self.l2 = problem.penalty.l2 * (2.0 if self.k == 2 else 1.0)
        self.t = np.array([t for _, t in problem.loss.hinges])
        self.prices = np.ascontiguousarray(problem.prices)
        self.y = np.ascontiguousarray(problem.y, dtype=np.int64)
        self.R = self._to_classes(R)
        self.tilt = np.zeros_like(self.R) if problem.tilt is None else self._to_classes(problem.tilt)
        self.b = np.zeros(self.k)
        self.best: tuple[float, Array, Array] = (math.inf, np.empty(0), np.empty(0))
        self.moves = self.rounds = 0
        self.work = 0.0  # of moves not yet matched by Newton steps
        self.is_convex = self.space.is_psd
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
        F = self.space.scores(W, np.zeros(W.shape[0]))
        self.G = 0.5 * self._to_classes(F) if self.k == 2 else self._to_classes(F)

    def balance(self) -> bool:
        """Make the class sums those of the tilt; False if the tilt is more than the losses can resist."""
        missing = (self.tilt - self.R).sum(axis=1)
        self.price()
        data = (self.y, self.prices, self.t, self.R, self.G, self.up, self.down)
        if kernels.rebalance(self.space.K, 1.0 / self.l2, *data, missing):
            return True
        R = self.problem.repaired_multipliers(self.multipliers)
        if R is not None:
            self.R = self._to_classes(R)
            self.refresh()
        return R is not None

    def price(self) -> None:
        """Set the one-sided slopes of the dual gain."""
        self.up, self.down = np.empty_like(self.R), np.empty_like(self.R)
        kernels.price_all(self.y, self.R, self.prices, self.t, self.up, self.down)

    def evaluate(self) -> tuple[float, float, float]:
        """Set slopes and intercepts; return the worst violation (mean weight of a cycle), objective and bound."""
        self.price()
        W, samples = np.empty((self.k, self.k)), np.empty((self.k, self.k), dtype=np.int64)
        kernels.arc_weights(self.up, self.down, self.G, W, samples)
        violation, self.b = _intercepts(W)
        objective, bound = self.values()
        if objective < self.best[0]:
            self.best = objective, self.coefficients(self.multipliers), self.intercept
        return violation, objective, bound

    def values(self) -> tuple[float, float]:
        """Objective and dual bound from the maintained scores."""
        problem, F = self.problem, self.G + self.b[:, None]
        half_norm = 0.5 * float(np.sum((self.R - self.tilt) * self.G))
        scores = (F[1] - F[0])[:, None] if self.k == 2 else F.T
        loss = float(problem.costs @ problem.loss.value(problem.margins_of_scores(scores), problem.y))
        linear = 0.0 if problem.tilt is None else float(np.sum(self.tilt * F))
        alpha = self.R[self.y, np.arange(problem.n)]
        gain = float(np.sum(problem.loss.dual_gain(alpha, problem.costs, problem.y)))
        return half_norm + loss + linear + problem.offset, gain - half_norm + problem.offset

    def working_set(self, violation: float, size: int) -> NDArray[np.intp]:
        """The samples that violate optimality, or would if scores moved by the worst violation; at most ``size``."""
        shifted = self.G + self.b[:, None]
        merit = (self.up - shifted).max(axis=0) - (self.down - shifted).min(axis=0)
        wanted = int(np.count_nonzero(merit > -violation))
        count = min(max(wanted, _C.fewest), size, merit.size)
        return np.sort(np.argpartition(merit, merit.size - count)[merit.size - count :])

    def round(self, chosen: NDArray[np.intp], goal: float, max_moves: int) -> int:
        """Move among the chosen samples and bring all scores up to date."""
        K = self.space.K
        R, G, up, down = (np.ascontiguousarray(array[:, chosen]) for array in (self.R, self.G, self.up, self.down))
        data = (self.y[chosen], self.prices[chosen], self.t)
        moves = kernels.descend(K, chosen, 1.0 / self.l2, *data, R, G, up, down, goal, max_moves)
        steps = (R - self.R[:, chosen]) / self.l2
        kernels.add_rows(K, chosen, steps, self.G)
        self.R[:, chosen] = R
        self.moves += moves
        self.rounds += 1
        return moves

    def newton_size(self) -> int:
        """Number of coordinates in which multipliers can move both ways without meeting a breakpoint or a bound."""
        return int(np.maximum(np.count_nonzero(self._free(), axis=0) - 1, 0).sum())

    def _free(self) -> NDArray[np.bool_]:
        self.price()
        return self.up == self.down

    def newton(self) -> bool:
        """Step to the minimum over the free coordinates, or to the first breakpoint or bound; True if one was met."""
        free = self._free()
        own = np.arange(self.k)[:, None] == self.y
        centre = np.where(free[self.y, np.arange(self.y.size)], self.y, free.argmax(axis=0))
        free[centre, np.arange(self.y.size)] = False
        classes, samples = np.nonzero(free)
        if samples.size == 0:
            return False
        rows = np.arange(samples.size)
        Z = np.zeros((samples.size, self.k))  # coordinate p moves sample p's weight along Z_p
        Z[rows, classes], Z[rows, centre[samples]] = 1.0, -1.0
        slope = np.einsum("pa,ap->p", Z, (self.G - self.up)[:, samples])
        H = self.space.K[np.ix_(samples, samples)] * (Z @ Z.T) / self.l2
        try:
            x = _constrained_minimiser(H, Z, slope)
        except LinAlgError:  # singular beyond what the ridge can mend: leave it to the moves
            return False
        fall, bend = -float(slope @ x), float(x @ H @ x)
        if not fall > 0.0:
            return False
        direction = np.array([np.bincount(samples, column * x, minlength=self.y.size) for column in Z.T])
        limit = self._room(direction, own)
        step = min(limit, fall / bend) if bend > 0.0 else limit
        moved = np.flatnonzero(np.any(direction != 0.0, axis=0))
        direction *= step
        self.R += direction
        kernels.add_rows(self.space.K, moved, np.ascontiguousarray(direction[:, moved]) / self.l2, self.G)
        return step == limit

    def _room(self, direction: Array, own: NDArray[np.bool_]) -> float:
        """How far the multipliers can move before one of them meets a breakpoint or a bound."""
        ends = np.vstack([np.zeros(self.y.size), np.cumsum(self.prices.T, axis=0)])
        alpha = self.R[own.T.nonzero()[::-1]]
        above = np.where(ends > alpha, ends, np.inf).min(axis=0)
        below = np.where(ends < alpha, ends, -np.inf).max(axis=0)
        high, low = np.where(own, above, 0.0), np.where(own, below, -np.inf)
        with np.errstate(divide="ignore", invalid="ignore"):
            room = np.where(direction > 0, (high - self.R) / direction, (low - self.R) / direction)
        return float(np.min(room[direction != 0.0], initial=np.inf))


def _constrained_minimiser(H: Array, Z: Array, slope: Array) -> Array:
    """Return x that minimises x'Hx/2 + slope'x subject to Z'x = 0, with a ridge where H is singular."""
    ridge = 1e-13 * max(float(np.trace(H)), np.finfo(float).tiny)
    factor = cho_factor(H + ridge * np.eye(H.shape[0]), lower=True, check_finite=False)
    solved = cho_solve(factor, np.column_stack([Z, slope]), check_finite=False)
    prices = np.linalg.lstsq(Z.T @ solved[:, :-1], Z.T @ solved[:, -1], rcond=1e-12)[0]
    x = solved[:, :-1] @ prices - solved[:, -1]
    raw = float(np.linalg.norm(x))
    gram = np.linalg.pinv(Z.T @ Z, rcond=1e-12, hermitian=True)
    for _ in range(2):  # the second pass removes the rounding errors of the first
        x = x - Z @ (gram @ (Z.T @ x))
    return x if float(np.linalg.norm(x)) > 1e-9 * raw else np.zeros_like(x)  # all that is left may be rounding


def _intercepts(W: Array) -> tuple[float, Array]:
    """Return the largest mean weight mu of a cycle of the class graph and b with W_rs - mu <= b_r - b_s."""
    k = W.shape[0]
    pairs = (W + W.T)[~np.eye(k, dtype=bool)] / 2.0
    mu = float(pairs.max())
    cycle, b, parent = np.empty(k, dtype=np.int64), np.empty(k), np.empty(k, dtype=np.int64)
    reverse = np.empty(k)
    slack = 1e-14 * max(1.0, float(np.abs(W[W > -kernels.BIG / 2]).max()))
    while True:
        length, weight = kernels.steepest_cycle(W - mu, slack, cycle)
        if length == 0:
            break
        mu += weight / length
    # At a strict optimum step inside; where an arc is forbidden, mu is hugely negative and binds nothing.
    shift = mu + slack if mu > -slack else max(0.5 * mu, -1.0)
    kernels.potentials(W, shift, b, parent)
    kernels.potentials(np.ascontiguousarray(W.T), shift, reverse, parent)
    return mu, 0.5 * (b - reverse)


def _run(dual: _Dual, options: Options, clock: Clock) -> Status | None:
    """Rounds until the gap is closed; None, or the status that says why not."""
    size = options.of(Settings).working_set
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


def _advance(dual: _Dual, violation: float, size: int, most: int, clock: Clock) -> int:
    """One round, and Newton steps where they are cheaper than more rounds; return the number of moves."""
    chosen = dual.working_set(violation, size)
    moves = dual.round(chosen, _C.inner_accuracy * violation, _affordable(dual, chosen, most, clock))
    dual.work += moves * chosen.size * dual.k
    for _ in range(_C.newton_steps if dual.is_convex and dual.rounds >= _C.rounds_alone else 0):
        price = dual.newton_size() ** 3 / _C.newton_price
        if price > dual.work or not dual.newton():
            break
        dual.work = max(dual.work - price, 0.0)
    return moves


def _affordable(dual: _Dual, chosen: NDArray[np.intp], most: int, clock: Clock) -> int:
    """Moves of the next round: enough to be worth an update of all scores, few enough for the limits."""
    moves = min(float(_C.moves_per_sample * chosen.size), most - dual.moves)
    if math.isfinite(clock.limit):
        pace = clock.seconds / dual.moves if dual.moves else 1e-3
        moves = min(moves, 0.5 * max(clock.left, 0.0) / pace)
    return max(1, int(moves))


def _finish(dual: _Dual, options: Options, clock: Clock, status: Status | None) -> Result:
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


def _for_shifted_kernel(dual: _Dual, result: Result, options: Options) -> Result:
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
