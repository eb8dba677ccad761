"""Level-stabilised bundle method for convex losses with l2, l1 or elastic-net penalties on linear spaces.

    minimise  J(v) = P(v) + C R(v),   R(v) = sum_i weight_i g(u_i(v)),   intercepts free

A cut a'v + b <= R(v) is a subgradient of the risk; J_t^- = min_v P(v) + C max_r (a_r'v + b_r) bounds the optimum from
below and the best point seen, J_t^+, from above (Choi, Kim, Han and Kang, An algorithm for support vector machines with
a reject option using bundle method, 2009, (2.2), Lemma 1 and Figure 3). Both stand in the history.

The mode "paper" evaluates next the minimiser of the model, as Figure 3 does, with xi >= 0 so that the first master is
bounded, and returns the best point, not the last. The default takes the point nearest to the best one among those
whose model value is at most a level between the bounds (Lemarechal, Nemirovskii and Nesterov, New variants of bundle
methods, 1995) and then minimises J exactly on the line through it, where margins are known without the data. With
many samples it starts from a sample of them, and then puts those far from every breakpoint on their linear piece
(:class:`~psilearn.convex.risk.LocalRisk`), so that only two or three evaluations cost a pass over all data.

Cuts bound the risk alone. A result carries them, and the next solve on the same samples, whatever C and penalty, starts
from them. Certifies the convex duality gap by the multipliers of the cuts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.capabilities import ANY_CLASSES, ANY_CONVEX, ANY_LINEAR, CONVEX_PENALTIES, TILT, Takes
from ...core.problem import Problem
from ...core.result import Result, Status
from ...core.scaling import Scaling
from ...core.solving import Clock, Options, Solve, SolverSettings, convex_result
from ..interior.margins import cut_off
from ..risk import Evaluation, LocalRisk, Risk, TwoClassRisk, risk_of
from .constants import CONSTANTS
from .model import CuttingModel

Array = NDArray[np.float64]


TAKES = Takes(
    "bundle",
    losses=ANY_CONVEX,
    spaces=ANY_LINEAR,
    classes=ANY_CLASSES,
    tilts=TILT,
    penalties=CONVEX_PENALTIES,
)


@dataclass(frozen=True)
class Settings(SolverSettings):
    """Options of this solver only.

    Attributes
    ----------
    mode : "level" or "paper"
        The level-stabilised method, or the unstabilised one of the paper, which is never finished by another solver.
    """

    mode: str = "level"

    def __post_init__(self) -> None:
        if self.mode not in ("level", "paper"):
            raise ValueError(f"mode must be 'level' or 'paper', got {self.mode!r}.")


@dataclass
class Point:
    """A point, its objective per unit of C sum_i weight_i, and its scores."""

    v: Array
    objective: float
    scores: Array


class Cuts:
    """Cuts of the mean risk of one set of samples, with the codes that turn shares of cuts into multipliers."""

    def __init__(self, problem: Problem, scaling: Scaling | None = None) -> None:
        self.key = (problem.space, problem.y, problem.weights, problem.loss)
        self.total = float(problem.weights.sum())
        self.whole = risk_of(problem, scaling)
        self.sample: tuple[NDArray[np.intp], Cuts] | None = None  # some of the samples and the cuts of their risk
        self.A = np.zeros((0, problem.n_functions * (problem.space.dim + 1)))
        self.b = np.zeros(0)
        self.sources: list[Risk] = []
        self.codes: list[NDArray] = []
        self.passes = 0.0

    def fits(self, problem: Problem) -> bool:
        """Whether these are cuts of the problem's risk."""
        space, y, weights, loss = self.key
        same = space is problem.space and loss == problem.loss
        return same and np.array_equal(y, problem.y) and np.array_equal(weights, problem.weights)

    def evaluate(self, risk: Risk, v: Array) -> Evaluation:
        """Evaluate the risk at v and keep the cut."""
        before = risk.passes
        evaluation = risk.evaluate(v)
        self.passes += risk.passes - before
        g = evaluation.gradient / self.total
        self.A = np.vstack([self.A, g])
        self.b = np.append(self.b, evaluation.value / self.total - float(g @ v))
        self.sources.append(risk)
        self.codes.append(evaluation.code)
        return evaluation

    def keep(self, stay: NDArray[np.bool_]) -> None:
        """Forget all other cuts."""
        self.A, self.b = self.A[stay], self.b[stay]
        self.sources = [s for s, kept in zip(self.sources, stay) if kept]
        self.codes = [c for c, kept in zip(self.codes, stay) if kept]

    def multipliers(self, shares: Array) -> Array:
        """Return R (n, m) of a combination of the first cuts, for unit C."""
        shares = np.concatenate([shares, np.zeros(len(self.codes) - shares.size)])
        total: Array | float = 0.0
        for risk in {id(s): s for s in self.sources}.values():
            mine = np.array([s is risk for s in self.sources]) & (shares > 0)
            if mine.any():
                total = total + risk.mixed([c for c, used in zip(self.codes, mine) if used], shares[mine])
        return np.asarray(total)


class Level:
    """The level method under one penalty and C; objectives are per unit of C sum_i weight_i."""

    def __init__(self, problem: Problem, cuts: Cuts, clock: Clock, mode: str) -> None:
        self.cuts, self.clock, self.mode = cuts, clock, mode
        self.unit = problem.C * cuts.total
        self.offset = problem.offset / self.unit
        self.model = _model(problem, cuts.whole.scaling, self.unit)
        if cuts.b.size:
            self.model.add(cuts.A, cuts.b)
        self.bound, self.shares = -np.inf, np.zeros(cuts.b.size)
        self.best: Point | None = None
        self.constant = np.zeros(self.model.l1.size)
        self.constant.reshape(self.model.m, -1)[:, -1] = problem.best_constant()[1]
        self.anchor: tuple[Array, Evaluation] | None = None
        self.anchor_objective = np.inf

    def evaluate(self, risk: Risk, v: Array) -> Point:
        """Evaluate at v, keep the cut, and the point if it is the best so far on all samples."""
        evaluation = self.cuts.evaluate(risk, v)
        self.model.add(self.cuts.A[-1], self.cuts.b[-1])
        point = Point(v, self.objective(v, evaluation.value), evaluation.scores)
        if risk is self.cuts.whole:
            if point.objective < self.anchor_objective:
                self.anchor, self.anchor_objective = (v, evaluation), point.objective
            self.propose(point)
        return point

    def propose(self, point: Point) -> None:
        """Make a point whose objective on all samples is known the incumbent if it is better."""
        if self.best is None or point.objective < self.best.objective:
            self.best = point

    def objective(self, v: Array, risk: float) -> float:
        """Offset plus penalty plus mean risk."""
        return self.offset + self.model.penalty(v) + risk / self.cuts.total

    def tighten(self, v: Array, scale: float) -> Array:
        """Minimise the model: the lower bound, its multipliers, and the place."""
        low, place, self.shares = self.model.minimum(v, scale)
        self.bound = self.offset + low
        upper = np.inf if self.best is None else self.best.objective
        self.clock.note(upper * self.unit, self.bound * self.unit)
        stay = np.ones(self.shares.size, bool)
        if self.mode == "level":
            stay = self.model.drop_idle(CONSTANTS.patience, CONSTANTS.patience)
        if not stay.all():
            self.cuts.keep(stay)
            self.shares = self.shares[stay]
        return place

    def run(self, risk: Risk, v: Array, tol: float, max_evaluations: int) -> Point:
        """Iterate on a risk until its gap is within tol."""
        best = self.evaluate(risk, v)
        for _ in range(max_evaluations):
            scale = abs(best.objective)
            place = self.tighten(best.v, scale)
            gap = best.objective - self.bound
            if gap <= max(tol * scale, CONSTANTS.finest) or self.clock.is_over:
                break
            if self.mode == "level":
                level = self.bound - self.offset + CONSTANTS.level * gap
                place = self.model.level_point(best.v, level, CONSTANTS.width * gap, scale)
            point = self.evaluate(risk, place)
            best = self.search(risk, best, point) if self.mode == "level" else min(best, point, key=_objective)
            if risk is self.cuts.whole:
                self.propose(best)
        return best

    def forget_idle(self) -> None:
        """Keep only the cuts that carry the bound, for the next solve on these samples."""
        stay = np.zeros(self.cuts.b.size, dtype=bool)
        stay[: self.shares.size] = self.shares > 0
        self.cuts.keep(stay)

    def search(self, risk: Risk, best: Point, point: Point) -> Point:
        """Minimise on the half line from the best point through another, by tangents, without touching the data."""
        step = point.v - best.v

        def at(tau: float) -> tuple[float, float, float]:
            value, slope = risk.along(best.scores, point.scores, tau)
            v = best.v + tau * step
            return tau, self.objective(v, value), slope / self.cuts.total + self.model.slope(v, step)

        tau, objective = _minimise_on_line(at, best.objective)
        if tau == 0.0:
            return best
        return Point(best.v + tau * step, objective, best.scores + tau * (point.scores - best.scores))

    def sparse(self, risk: Risk, best: Point, allowance: float) -> Array:
        """Return the best point with the most coefficients at zero that costs at most ``allowance``."""
        penalised = self.model.l1 > 0
        if not penalised.any():
            return best.v
        for v in (self.constant, *(cut_off(best.v, self.model.m, penalised, level) for level in CONSTANTS.zeros)):
            if self.objective(v, risk.evaluate(v).value) <= best.objective + allowance:
                return v
        return best.v


def _objective(point: Point) -> float:
    return point.objective


def _model(problem: Problem, scaling: Scaling, unit: float) -> CuttingModel:
    q, l1 = scaling.penalty(problem.penalty, problem.n_functions)
    c = np.zeros(q.size)
    if problem.tilt is not None:
        c = scaling.gradient(problem.space.combine(problem.tilt), problem.tilt.sum(axis=0)).ravel()
    return CuttingModel(q.ravel() / unit, c / unit, l1.ravel() / unit, 1.0, problem.n_functions)


def _minimise_on_line(at: Any, value: float) -> tuple[float, float]:
    """Minimise a convex function of tau >= 0; ``at`` returns (tau, value, slope), ``value`` is the one at 0."""
    seen = [(0.0, value)]
    high = at(1.0)
    low = at(0.0)
    seen.append(high[:2])
    for _ in range(2):
        if high[2] < 0:
            low, high = high, at(2.0 * high[0])
            seen.append(high[:2])
    for _ in range(4):
        if low[2] >= 0 or high[2] <= 0:
            break
        crossing = (low[1] - high[1] + high[2] * high[0] - low[2] * low[0]) / (high[2] - low[2])
        inset = 0.05 * (high[0] - low[0])
        middle = at(min(max(crossing, low[0] + inset), high[0] - inset))
        seen.append(middle[:2])
        low, high = (middle, high) if middle[2] < 0 else (low, middle)
    return min(seen, key=lambda s: s[1])


def solve(problem: Problem, options: Options, start: Result | None = None, finish: Solve | None = None) -> Result:
    """Solve to a relative duality gap of ``options.tol``.

    Parameters
    ----------
    problem : Problem
        Convex, on a linear space, with an l2 or l1 penalty.
    options : Options
        ``tol``, ``time_limit``, ``max_iter`` (evaluations), ``random_state`` (of the first sample of rows);
        see also :class:`Settings`.
    start : Result or None
        A result on the same samples: the place to start, and its cuts if it came from here.
    finish : Solve or None
        A solver that takes over, from the bundle's result, below a tolerance of 1e-5 and where the bundle does not
        converge (many coefficients, few samples).
    """
    TAKES.check(problem)
    clock = Clock(options.time_limit)
    mode = options.of(Settings).mode
    finish = finish if mode == "level" else None
    old = start.extra.get("cuts") if start is not None else None
    cuts = old if old is not None and old.fits(problem) else Cuts(problem)
    cuts.passes = 0.0
    level = Level(problem, cuts, clock, mode)
    goal = max(options.tol, CONSTANTS.tight) if finish is not None else options.tol
    # one is enough unless repairing the multipliers costs more than the gap had to spare
    for _ in range(CONSTANTS.rounds):
        status = _drive(problem, level, replace(options, tol=goal), start)
        result = _certified(problem, level, options, status)
        if result.status is not Status.STALLED or finish is not None:
            break
        goal, start = 0.3 * goal, result
    level.forget_idle()
    if finish is not None and result.status in (Status.STALLED, Status.ITERATION_LIMIT):
        return finish(problem, replace(options, time_limit=clock.left), result)
    return result


def _certified(problem: Problem, level: Level, options: Options, status: Status | None) -> Result:
    """Recompute objective and bound of the incumbent."""
    cuts, best = level.cuts, level.best
    v = np.zeros(cuts.A.shape[1]) if best is None else best.v
    W, b = cuts.whole.scaling.coefficients(v)
    R = problem.C * cuts.multipliers(level.shares) if np.any(level.shares > 0) else None
    count = len(level.clock.history)
    return convex_result(problem, W, b, R, options, level.clock, count, status, passes=cuts.passes, cuts=cuts)


def _drive(problem: Problem, level: Level, options: Options, start: Result | None) -> Status | None:
    """Run the level method on all samples, or on local risks; return why it stopped early, None if it did not."""
    cuts = level.cuts
    limit = options.max_iter or CONSTANTS.evaluations
    try:
        v = np.zeros(cuts.A.shape[1])
        if start is not None:
            v = cuts.whole.scaling.from_coefficients(start.coef, start.intercept).ravel()
        if level.mode == "level" and isinstance(cuts.whole, TwoClassRisk) and problem.n >= CONSTANTS.local_from:
            v = _run_locally(problem, level, v, options)
        if level.best is None or level.best.objective - level.bound > options.tol * abs(level.best.objective):
            point = level.run(cuts.whole, v, 0.9 * options.tol, limit)
            if level.mode == "level":
                v = level.sparse(cuts.whole, point, 0.05 * options.tol * abs(point.objective))
                level.best = level.evaluate(cuts.whole, v)
    except KeyboardInterrupt:
        return Status.INTERRUPTED
    if level.clock.is_over:
        return Status.TIME_LIMIT
    return Status.ITERATION_LIMIT if len(level.clock.history) >= limit else None


def _sample_start(problem: Problem, level: Level, v: Array, seed: int) -> tuple[Array, float]:
    """Return a near-optimal point of some of the samples and its objective there; v if they would be too many."""
    cuts = level.cuts
    if cuts.sample is None:
        size = max(problem.n // CONSTANTS.sample, CONSTANTS.samples_per_coefficient * v.size)
        if size > problem.n // 3:
            return v, -np.inf
        rows = np.unique(np.random.default_rng(seed).integers(0, problem.n, size))
        cuts.sample = rows, Cuts(problem.subset(rows), cuts.whole.scaling)
    rows, few = cuts.sample
    ratio = cuts.total / few.total
    space, y, weights, _ = few.key
    tilt = None if problem.tilt is None else ratio * problem.tilt[rows]
    part = replace(problem, space=space, y=y, weights=weights, C=ratio * problem.C, tilt=tilt)
    small = Level(part, few, Clock(level.clock.left), "level")
    point = small.run(few.whole, v, CONSTANTS.sample_tol, CONSTANTS.evaluations)
    small.forget_idle()
    return point.v, point.objective


def _run_locally(problem: Problem, level: Level, v: Array, options: Options) -> Array:
    """Evaluate on all samples, minimise the local risk there, repeat until the bounds meet or that no longer helps.

    More samples count as near the further the sample misled, and when a step does not halve the gap.
    """
    cuts, tol = level.cuts, options.tol
    assert isinstance(cuts.whole, TwoClassRisk)
    v, expected = _sample_start(problem, level, v, options.random_state)
    evaluation = level.evaluate(cuts.whole, v)
    misled = max(evaluation.objective - expected, 0.0) / abs(evaluation.objective)
    share, gap = max(CONSTANTS.near, 2.0 * float(np.sqrt(misled))), np.inf
    while share <= CONSTANTS.too_many and not level.clock.is_over and level.anchor is not None:
        local = LocalRisk(cuts.whole, problem, *level.anchor, share)
        inner = level.run(local, level.anchor[0], 0.5 * tol, CONSTANTS.evaluations)
        v = level.sparse(local, inner, 0.1 * tol * abs(inner.objective))
        local.release()
        point = level.evaluate(cuts.whole, v)
        last, gap = gap, point.objective - level.bound
        if gap <= 0.95 * tol * abs(point.objective):
            level.best = point
            break
        share *= 2.0 if gap > 0.5 * last else 1.2
    return v
