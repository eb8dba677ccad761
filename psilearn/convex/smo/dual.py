"""The state of a decomposition: multipliers, scores kept up to date, moves within a working set, Newton steps."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from ...core.problem import Problem
from ...core.spaces import KernelSpace
from . import smo_jit as kernels

Array = NDArray[np.float64]

#: Samples of a round at least.
FEWEST = 64
#: Samples that take part at a time in making up class sums, where K is computed on demand.
BALANCING = 256


class Dual:
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
        self.pending = np.zeros_like(self.R)  # what Newton steps moved since the scores were brought up to date
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
        if self._rebalanced(missing):
            return True
        R = self.problem.repaired_multipliers(self.multipliers)
        if R is not None:
            self.R = self._to_classes(R)
            self.refresh()
        return R is not None

    def _rebalanced(self, missing: Array) -> bool:
        """Move multipliers along the best arcs until nothing is missing; False if there are none left."""
        if self.space.is_stored:
            data = (self.y, self.prices, self.t, self.R, self.G, self.up, self.down)
            return kernels.rebalance(self.space.K, 1.0 / self.l2, *data, missing)
        tiny = 1e-15 * float(np.abs(self.R).sum() + np.abs(self.tilt).sum())
        while (size := float(np.abs(missing).max())) > tiny:
            a, b = missing.argmax(), missing.argmin()
            merit = (self.up[a] - self.G[a]) - (self.down[b] - self.G[b])
            chosen = _largest(merit, BALANCING)
            data = (self.y[chosen], self.prices[chosen], self.t, *self._part(chosen))
            kernels.rebalance(self.space.block(chosen, chosen), 1.0 / self.l2, *data, missing)
            self._move(chosen, data[3])
            self.price()
            if not float(np.abs(missing).max()) < size:
                return False
        return True

    def _part(self, chosen: NDArray[np.intp]) -> tuple[Array, Array, Array, Array]:
        """Return copies of R, G, up and down of some samples."""
        R, G, up, down = (np.ascontiguousarray(array[:, chosen]) for array in (self.R, self.G, self.up, self.down))
        return R, G, up, down

    def _move(self, chosen: NDArray[np.intp], R: Array) -> None:
        """Set the multipliers of some samples and bring all scores up to date."""
        self._add(chosen, (R - self.R[:, chosen]) / self.l2)
        self.R[:, chosen] = R

    def _add(self, rows: NDArray[np.intp], steps: Array) -> None:
        if self.space.is_stored:
            kernels.add_rows(self.space.K, rows, steps, self.G)
        else:
            moved = steps.any(axis=0)
            self.G += self.space.combination(steps[:, moved], rows[moved])

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
        count = min(max(wanted, FEWEST), size, merit.size)
        return _largest(merit, count)

    def round(self, chosen: NDArray[np.intp], goal: float, max_moves: int) -> int:
        """Move among the chosen samples and bring all scores up to date."""
        K, members = self.space.K, chosen
        if not self.space.is_stored:
            K, members = self.space.K.rough(chosen), np.arange(chosen.size)
        data = (self.y[chosen], self.prices[chosen], self.t, *self._part(chosen))
        moves = kernels.descend(K, members, 1.0 / self.l2, *data, goal, max_moves)
        self._move(chosen, data[3])
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
        """Step to the minimum over the free coordinates, or to the first breakpoint or bound; True if one was met.

        The scores are those of before until :meth:`settle`.
        """
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
        slope = np.einsum("pa,ap->p", Z, self._scores_at(samples) - self.up[:, samples])
        H = self.space.block(samples, samples) * (Z @ Z.T) / self.l2
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
        self.R += step * direction
        self.pending += step * direction
        return step == limit

    def _scores_at(self, samples: NDArray[np.intp]) -> Array:
        """Scores of some samples, with what Newton steps have moved."""
        moved = np.flatnonzero(self.pending.any(axis=0))
        return self.G[:, samples] + self.pending[:, moved] @ self.space.block(moved, samples) / self.l2

    def settle(self) -> None:
        """Bring all scores up to date after Newton steps."""
        moved = np.flatnonzero(self.pending.any(axis=0))
        self._add(moved, self.pending[:, moved] / self.l2)
        self.pending[:] = 0.0

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


def _largest(merit: Array, count: int) -> NDArray[np.intp]:
    """Return the places of the largest values, in order of place."""
    rest = max(merit.size - count, 0)
    return np.sort(np.argpartition(merit, rest)[rest:]) if rest else np.arange(merit.size)


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
