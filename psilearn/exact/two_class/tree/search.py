"""Our own branch and bound: two classes, a truncated loss in normal form, l2 (also in an RKHS) or l1 penalty.

    minimise  P(w) + C sum_i weight_i l(y_i f(x_i)),     P(w) = l2/2 ||w||^2  or  sum_j l1_j |w_j|

(Liu and Wu, Optimizing psi-learning via mixed integer programming, 2006, (3.6) and (3.14).) Nodes, envelopes and
bounds are those of :mod:`.tree_jit`; this file makes the root, feeds the search and reads the outcome.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from ....core.losses import Loss
from ....core.result import Status
from ....core.solving import Clock, Options
from ..node import simplex_jit as lp_ascent
from ..node.active_set_jit import Basis, Terms, make_basis, make_terms
from ..node.ascent_jit import CUT_OFF, SOLVED
from ..node.envelope_jit import FREE, GONE, IN
from ..reduction import Reduction
from ..settings import Settings
from . import branching_jit as branching
from . import tree_jit as tree

Array = NDArray[np.float64]

_CHUNK_SECONDS = 0.05
_CHUNK_NODES = 64
_ROUNDS = 5
#: Nodes per sample before the margins are tightened at the root, and the improvement of the incumbent that makes it pay
#: to do so again.
_SQUEEZE_AFTER, _SQUEEZE_AGAIN = 4, 0.98


@dataclass
class Outcome:
    """Incumbent (scaled), proved bound (scaled), multipliers of the convex rest, and why the search ended."""

    v: Array
    b: float
    alpha: Array
    value: float
    bound: float
    status: Status
    nodes: int
    engine: str = "psilearn"


def make_model(reduction: Reduction, loss: Loss, given: NDArray[np.int8] | None = None) -> tree.Model:
    """Hand the scaled problem to the kernels; ``given`` states (FREE, IN or TOP) restrict the solutions."""
    given = np.full(reduction.n, FREE, np.int8) if given is None else given
    z, y = reduction.z, reduction.y
    distance = cdist(z, z, "euclidean" if reduction.norm == 2 else "chebyshev")
    hinges = np.array(loss.hinges, dtype=np.float64).reshape(-1, 2)
    knots, slopes = np.ascontiguousarray(hinges[:, 1]), np.ascontiguousarray(hinges[:, 0])
    rows = np.ascontiguousarray(z * y[:, None])
    return tree.Model(
        rows, y, reduction.cost, distance, knots, slopes, float(loss.t), float(loss.cap), reduction.norm, given
    )


def make_work(model: tree.Model) -> tree.Work:
    """Allocate scratch memory for one node."""
    n, d = model.a.shape
    vectors = np.zeros(n), np.zeros(d), np.zeros(1), np.zeros(n)
    if model.norm == 2:
        terms: Terms = make_terms(n, model.knots.size)
        basis: Basis | lp_ascent.Tableau = make_basis(n, d)
    else:
        terms = lp_ascent.make_terms(n, d, model.knots.size)
        basis = lp_ascent.make_tableau(model.a, model.y)
    return tree.Work(np.zeros(n, np.int8), np.full(n, -np.inf), np.full(n, np.inf), *vectors, terms, basis)


def solve_fixed(model: tree.Model, work: tree.Work, state: NDArray[np.int8], cutoff: float) -> tuple[float, int]:
    """Solve the convex problem with every region fixed; the solution is left in ``work``."""
    work.state[:] = state
    work.alpha[:] = 0.0
    return tree.solve_node(model, work, cutoff)


def svm(model: tree.Model, factor: float = 1.0) -> tuple[Array, float, Array]:
    """Scaled (v, b, margins) of the support vector machine with ``factor`` times the costs and the same penalty."""
    n = model.y.size
    free = np.full(n, FREE, np.int8)
    machine = model._replace(knots=np.ones(1), slopes=np.ones(1), t=-np.inf, cap=np.inf)
    machine = machine._replace(given=free, cost=model.cost * factor)
    work = make_work(machine)
    # f = 0 costs the sum of the costs, so this ceiling is never reached.
    solve_fixed(machine, work, np.full(n, IN, np.int8), 2.0 * float(machine.cost.sum()) + 1.0)
    return work.w, float(work.b[0]), work.u


def margin_bounds(model: tree.Model, upper: float, most: float = math.inf) -> tuple[Array, Array]:
    """Bounds low <= u <= high on the margins of every solution better than ``upper`` with penalty at most ``most``.

    Such a solution has ||w|| <= rho = sqrt(2 upper) (1-norm: rho = upper, and distances in the max-norm), and the
    samples with u < t cost less than ``upper`` together. So if the samples of i's own class up to distance r from it
    (i itself included) would cost cap * (their costs) >= ``upper``, one of them has u_j >= t, and u_i >= u_j - |<w,
    x_i - x_j>| >= t - rho r. Likewise, with the nearest samples of the other class, one of those has u_j >= t, hence
    u_i <= -u_j + rho r <= rho r - t. No bound on the intercept is needed: the whole class always suffices, because
    leaving it out costs at least as much as the best constant, an incumbent.
    """
    n = model.y.size
    most = min(most, upper)
    rho = math.sqrt(2.0 * most) if model.norm == 2 else most
    low, high = np.full(n, -np.inf), np.full(n, np.inf)
    for i in range(n):
        for own in (True, False):
            rivals = np.flatnonzero((model.y == model.y[i]) == own)
            if rivals.size == 0:
                continue
            rivals = rivals[np.argsort(model.dist[i, rivals], kind="stable")]
            spent = np.cumsum(model.cost[rivals]) * model.cap
            last = min(int(np.searchsorted(spent, upper * (1.0 + 1e-12))), rivals.size - 1)
            reach = rho * model.dist[i, rivals[last]]
            if own:
                low[i] = model.t - reach
            else:
                high[i] = reach - model.t
    return low, high


def first_incumbent(model: tree.Model, points: Sequence[tuple[Array, float]]) -> tuple[tree.Best, tree.Work]:
    """Best of the constants, the points handed in, support vector machines of several costs, each locally improved."""
    best, work = given_incumbent(model, points)
    improve_incumbent(model, best, work, points, Clock(math.inf))
    return best, work


def given_incumbent(model: tree.Model, points: Sequence[tuple[Array, float]]) -> tuple[tree.Best, tree.Work]:
    """Best of the constants and the points handed in: an incumbent at once.

    If none of them respects the given states, it is the solution of least penalty that does and gives up all others.
    """
    n, d = model.a.shape
    best = tree.Best(np.full(1, np.inf), np.zeros(d), np.zeros(1), np.zeros(n), np.full(1, np.inf))
    for level in {0.0, *np.abs(model.knots), abs(model.t)}:
        for sign in (1.0, -1.0):
            tree.offer(model, best, np.zeros(d), sign * level, model.y * (sign * level))
    for v, b in points:
        tree.offer(model, best, v, b, model.a @ v + model.y * b)
    work = make_work(model)
    if math.isinf(best.value[0]):
        _, flag = solve_fixed(model, work, np.where(model.given == FREE, GONE, model.given), tree.UNBEARABLE)
        if flag == CUT_OFF or not tree.offer(model, best, work.w, work.b[0], work.u):
            raise ValueError("No solution respects the samples that are bound to their side.")
    return best, work


def improve_incumbent(
    model: tree.Model, best: tree.Best, work: tree.Work, points: Sequence[tuple[Array, float]], clock: Clock
) -> None:
    """Search near the points handed in and near support vector machines of several costs, while there is time."""
    starts = [model.a @ v + model.y * b for v, b in points]
    for factor in (0.01, 0.1, 1.0, 10.0):
        if clock.is_over:
            return
        v, b, margins = svm(model, factor)
        tree.offer(model, best, v, b, margins)
        starts.append(margins)
    for margins in starts:
        if clock.is_over:
            return
        work.alpha[:] = 0.0
        tree.local_search(model, best, work, margins)


def make_pool(slots: int, n: int) -> tree.Pool:
    """Allocate an empty pool of open nodes."""
    spare = np.arange(slots)[::-1].copy()
    sizes = np.array([0, slots])
    arrays = np.zeros((slots, n), np.int8), np.zeros((slots, n)), np.zeros((slots, n)), np.zeros((slots, n))
    return tree.Pool(np.zeros(slots, np.int64), spare, sizes, np.zeros(slots), np.zeros(slots), *arrays)


def grown(pool: tree.Pool) -> tree.Pool:
    """Return a pool of twice the size with the same open nodes."""
    slots, n = pool.state.shape
    bigger = make_pool(2 * slots, n)
    for name in ("heap", "bound", "intercept", "state", "alpha", "low", "high"):
        getattr(bigger, name)[:slots] = getattr(pool, name)
    free = int(pool.sizes[1])
    bigger.spare[:free] = pool.spare[:free]
    bigger.spare[free : free + slots] = np.arange(slots, 2 * slots)[::-1]
    bigger.sizes[:] = pool.sizes[0], free + slots
    return bigger


class InconsistentBoundError(ArithmeticError):
    """A node's bound exceeds an incumbent that lies inside it, so no bound of this search can be trusted."""


class TreeSearch:
    """The branch and bound, to be run in slices of time.

    ``most`` is a bound on the penalty of better solutions, if one is known. See ``memory`` of
    :class:`.search_settings.Settings`.
    """

    def __init__(
        self, model: tree.Model, best: tree.Best, scratch: tree.Work, options: Options, most: float = math.inf
    ) -> None:
        self.model, self.best, self.scratch, self.options = model, best, scratch, options
        n = model.y.size
        self.most = most
        self.low, self.high = margin_bounds(model, best.value[0], most)
        self._plant()
        self.work, self.trial, self.counters = make_work(model), make_work(model), np.zeros(3, np.int64)
        self.history = branching.make_history(n)
        self.squeezed, self.proved = math.inf, 0.0
        self.most_slots = max(4 * n, int(options.of(Settings).memory / (25 * n + 32)))
        self.chunk = 1

    def _plant(self) -> None:
        """Begin the tree with nothing but its root."""
        pool = make_pool(64, self.model.y.size)
        slot = tree.push.py_func(pool, 0.0)  # once, which is not worth a compilation
        pool.state[slot], pool.intercept[slot] = self.model.given, self.best.b[0]
        pool.low[slot], pool.high[slot] = self.low, self.high
        self.pool = pool  # complete: an interrupt must never find a tree without its root

    @property
    def bound(self) -> float:
        """Proved lower bound (scaled)."""
        open_bound = self.pool.bound[self.pool.heap[0]] if self.pool.sizes[0] else math.inf
        return float(max(self.proved, min(open_bound, self.best.floor[0], self.best.value[0])))

    @property
    def is_done(self) -> bool:
        """Whether nothing is left to search."""
        return bool(self.pool.sizes[0] == 0)

    @property
    def steps(self) -> int:
        """Nodes so far, trials included."""
        return int(self.counters[0])

    def run(self, clock: Clock, until: float, max_steps: float) -> None:
        """Search until done, or until the clock shows ``until`` seconds, or ``max_steps`` nodes are spent."""
        n = self.model.y.size
        while not self.is_done and clock.seconds < until and self.steps < max_steps:
            if self.pool.sizes[1] < n + 64 and self.pool.state.shape[0] < self.most_slots:
                self.pool = grown(self.pool)
            if self.steps >= _SQUEEZE_AFTER * n and self.best.value[0] < _SQUEEZE_AGAIN * self.squeezed:
                self._squeeze(clock, until)
            began = clock.seconds
            # Chunks fitted to the clock cost nothing when time ends the search; under a node limit they would make
            # the outcome depend on the machine's mood.
            chunk = self.chunk if math.isinf(max_steps) else int(min(_CHUNK_NODES, max_steps - self.steps))
            tree.advance(
                self.model, self.work, self.pool, self.best, self.scratch, self.history, self.counters,
                self.options.gap_tol, chunk, _ROUNDS,
            )  # fmt: skip
            if self.counters[1]:
                raise InconsistentBoundError("a node's bound exceeds an incumbent inside it")
            took = max(clock.seconds - began, 1e-6)
            self.chunk = int(min(max(1, self.chunk * min(4.0, _CHUNK_SECONDS / took)), 100_000))

    def _squeeze(self, clock: Clock, until: float) -> None:
        """Tighten the margins at the root, 2-norm also by bounds of its relaxation, and hand them to all open nodes."""
        model, best = self.model, self.best
        is_first, self.squeezed = math.isinf(self.squeezed), float(best.value[0])
        low, high = margin_bounds(model, self.squeezed * (1.0 + tree.ROUNDING), self.most)
        self.low, self.high = np.maximum(self.low, low), np.minimum(self.high, high)
        if model.norm == 2:
            self._squeeze_lows(clock, until)
        if is_first:  # better decisions from the root on are worth more than the few nodes so far
            self.proved = self.bound
            self._plant()
        slots = self.pool.heap[: self.pool.sizes[0]]
        self.pool.low[slots] = np.maximum(self.pool.low[slots], self.low)
        self.pool.high[slots] = np.minimum(self.pool.high[slots], self.high)

    def _squeeze_lows(self, clock: Clock, until: float) -> None:
        model, work = self.model, self.work
        upper = self.squeezed * (1.0 + tree.ROUNDING)
        price = np.zeros(model.y.size)
        for _ in range(_ROUNDS):
            work.state[:], work.low[:], work.high[:], work.alpha[:] = model.given, self.low, self.high, 0.0
            bound, flag = tree.solve_node(model, work, upper)
            if flag != SOLVED or bound >= upper or clock.seconds >= until:
                break
            if not price.any():
                price = np.sqrt(2.0 * (upper - bound)) / np.maximum(np.median(model.dist, axis=1), 1e-9)
            before = float(np.sum(self.low))
            branching.squeeze(model, work, self.trial, price, upper, bound)
            self.low = work.low.copy()
            if float(np.sum(self.low)) < 0.9 * before:
                break


def polish(model: tree.Model, best: tree.Best, work: tree.Work) -> Array:
    """Re-solve the convex part with the incumbent's regions fixed, keep the better point, return its multipliers."""
    n = model.y.size
    loss = np.maximum(model.knots - np.maximum(best.u, model.t)[:, None], 0.0) @ model.slopes
    state = np.where((best.u >= model.t - tree.FEASIBLE) & (loss < model.cap), IN, GONE).astype(np.int8)
    state = np.where(model.given == FREE, state, model.given)
    ceiling = 2.0 * best.value[0] + 1.0
    value, flag = solve_fixed(model, work, state, ceiling)
    if flag == SOLVED and value <= best.value[0] * (1.0 + 1e-9):
        before, best.value[0] = best.value[0], math.inf
        if tree.offer(model, best, work.w, work.b[0], work.u):
            return work.alpha.copy()
        best.value[0] = before
    return np.zeros(n)
