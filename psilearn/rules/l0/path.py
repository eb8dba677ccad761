"""The tightened relaxation (18) by one interior point that meets its classifiers and cuts on the way.

The simplex method solves masters one after the other, each to a vertex whose multipliers jump; on a thousand
observations a master is dense and takes thousands of pivots. Here the central path of the *whole* relaxation is
followed once: the point stays strictly feasible for all classifiers (found by pricing) and all pairs (by
separation); those it comes near to join the program, those far from being tight leave it.

Nothing is proved here. The end of the path says which classifiers, pairs and observations matter and which constraints
are tight; that is a basis of the master, from which the simplex method ends, and pricing and separation prove.
"""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np
from numpy.typing import NDArray

from ...core.solving import Clock
from ..observations import Observations
from ..pricing.data import Pairs
from ..pricing.oracles import Column, Oracle, separates
from .cuts import PairCuts
from .interior import Array, Iterate, load_of

_TO_BOUNDARY, _TO_BOUNDARY_AT_END = 0.98, 0.995
_AT_END = 1e-5
#: A step ends at this share of the way to a constraint that was not in the program.
_TO_UNSEEN = 0.5
#: Slacks, relative to the cost of a classifier and to 1, below which classifiers and pairs join. Tuned on 2000 rows of
#: 200 attributes with a noisy additive label: 860 pairs at the end, and 1704 with the former 0.15 and 0.05.
_CLASSIFIERS_JOIN, _PAIRS_JOIN = 0.05, 0.02
#: Slacks above which they leave, and how small the mean product, relative to the least cost, must be then.
_CLASSIFIERS_LEAVE, _PAIRS_LEAVE = 0.3, 0.15
_CLASSIFIERS_LEAVING, _PAIRS_LEAVING = 1e-5, 1e-3
_PATIENCE = 3
#: Complementarity products of what enters, relative to the present mean; their total v, relative to the least cost.
_ENTERING, _ENTERING_V = 0.1, 0.2
_MOST_CLASSIFIERS, _MOST_PAIRS = 100, 100
_LEAST_SLACK = 0.01
_TRIALS = 3
#: Slacks this little below 0, relative to costs, are those of copies of present classifiers.
_TIE = 1e-9
#: Gap relative to the objective, and violation of an equation, at the end.
_GAP, _FEASIBLE = 1e-6, 1e-7
#: Steps without a smaller gap after which precision is exhausted.
_FUTILE = 30


class CentralPath:
    """The path for a margin rho, from its start; ``point`` is where it is."""

    def __init__(self, data: Observations, oracle: Oracle, rho: float, separation: PairCuts, min_cost: float) -> None:
        self.data, self.oracle, self.separation, self.min_cost = data, oracle, separation, min_cost
        self.columns: list[Column] = []
        self.idle_pairs = np.empty(0, np.intp)
        self.known: set[tuple[Hashable, bool]] = set()
        self.n_nodes = self.n_iter = 0
        m = data.y.size
        # strictly feasible for all: pairs have xi + xi' > 1, and no classifier earns more than 3/4 of the least cost
        w = np.minimum(0.25 * min_cost / m, 0.25 * data.weight)
        xi = np.full(m, 1.1)
        self.point = Iterate(
            data.weight, rho, 0.5 * min_cost, w, (1.0 + rho) * xi - rho, xi, data.weight - (1.0 + rho) * w,
            answers=np.empty((0, m)),
        )  # fmt: skip
        constants = oracle.constants()
        self._add_classifiers(constants, np.ones(len(constants), dtype=bool))
        self.point.mu[:] = 1.0 / len(constants)
        self.point.q_w += self.point.mu @ self.point.answers
        self._add_pairs(*separation.nearest())

    def follow(self, clock: Clock, max_iter: int) -> None:
        """Step until the gap is closed, the time or the iterations are over, or precision is exhausted."""
        smallest, n_futile = np.inf, 0
        while self.n_iter < max_iter and not clock.is_over and n_futile < _FUTILE:
            self.n_iter += 1
            try:
                n_new = self._advance(clock)
            except np.linalg.LinAlgError:
                return
            gap = self.point.gap
            smallest, n_futile = min(gap, smallest), n_futile + 1 if gap >= smallest else 0
            lacking = max(float(np.abs(part).max(initial=0.0)) for part in self.point.residuals().values())
            if n_new == 0 and gap <= _GAP * self.point.objective and lacking <= _FEASIBLE:
                return

    @property
    def _progress(self) -> float:
        """Mean product of complementary variables, relative to the least cost."""
        return self.point.target / self.min_cost

    def _advance(self, clock: Clock) -> int:
        """One step; return how many classifiers and pairs entered."""
        point = self.point
        step = point.direction()
        at_end = point.gap <= _AT_END * point.objective
        primal, dual = point.longest(step, _TO_BOUNDARY_AT_END if at_end else _TO_BOUNDARY)
        dual, voting, marking = self._price(step, dual, clock)
        primal, positive, negative = self._separate(step, primal)
        point.move(step, primal, dual)
        votes = np.r_[np.ones(len(voting), dtype=bool), np.zeros(len(marking), dtype=bool)]
        self._add_classifiers(voting + marking, votes)
        self._add_pairs(positive, negative)
        if self._progress <= _PAIRS_LEAVING:
            self._drop_pairs()
        if self._progress <= _CLASSIFIERS_LEAVING:
            self._drop_classifiers()
        return len(voting) + len(marking) + positive.size

    def _price(self, step: dict[str, Array], length: float, clock: Clock) -> tuple[float, list[Column], list[Column]]:
        """Shorten the dual step until no classifier outside the program forbids it; collect those near it."""
        point, entering = self.point, {True: dict[Hashable, Column](), False: dict[Hashable, Column]()}
        near = _CLASSIFIERS_JOIN * self.min_cost
        for _ in range(_TRIALS):
            w, v = (np.maximum(getattr(point, name) + length * step[name], 0.0) for name in ("w", "v"))
            alpha = point.alpha + length * float(step["alpha"][0])
            pairs = Pairs(point.positive, point.negative, v, self.separation.symmetric)
            allowed = 1.0
            for votes, weight, level in ((True, w, -alpha), (False, np.zeros_like(w), 0.0)):
                offer = self.oracle.offer(weight, pairs, level - near, _MOST_CLASSIFIERS, max(clock.left, 0.0))
                self.n_nodes += offer.n_nodes
                unseen = [
                    (c, x - level) for c, x in zip(offer.columns, offer.values) if (c.key, votes) not in self.known
                ]
                entering[votes].update({column.key: column for column, _ in unseen})
                ahead = [(column, -excess) for column, excess in unseen if excess > _TIE * column.cost]
                if ahead:
                    now = self._slacks([column for column, _ in ahead], votes)
                    then = np.array([slack for _, slack in ahead])
                    allowed = min(allowed, float((now / (now - then))[now > 0].min(initial=1.0)))
            if allowed == 1.0:
                break
            length *= _TO_UNSEEN * allowed
        return length, list(entering[True].values()), list(entering[False].values())

    def _separate(self, step: dict[str, Array], length: float) -> tuple[float, NDArray[np.intp], NDArray[np.intp]]:
        """Shorten the primal step until no pair outside the program forbids it; collect those near it."""
        point = self.point
        H = (point.answers * self.data.y).T
        positive, negative = np.empty(0, np.intp), np.empty(0, np.intp)
        for _ in range(_TRIALS):
            mu, xi = (np.maximum(getattr(point, name) + length * step[name], 0.0) for name in ("mu", "xi"))
            taken = np.r_[point.positive, positive], np.r_[point.negative, negative]
            i, j, surplus = self.separation.near_tight(H, mu, xi, taken, _PAIRS_JOIN, _MOST_PAIRS)
            positive, negative = np.r_[positive, i], np.r_[negative, j]
            ahead = surplus <= 0
            now = point.surpluses(i[ahead], j[ahead], self._reach(point.answers, i[ahead], j[ahead]))
            allowed = float((now / (now - surplus[ahead]))[now > 0].min(initial=1.0))
            if allowed == 1.0:
                break
            length *= _TO_UNSEEN * allowed
        return length, positive, negative

    def _reach(self, answers: Array, positive: NDArray, negative: NDArray) -> Array:
        pairs = Pairs(positive, negative, np.ones(positive.size), self.separation.symmetric)
        H = answers * self.data.y
        return np.array([separates(h, self.data.y, pairs) for h in H], dtype=np.float64).reshape(len(H), positive.size)

    def _slacks(self, columns: list[Column], votes: bool | NDArray[np.bool_]) -> Array:
        answers = np.array([self.data.y * column.h for column in columns])
        reach = self._reach(answers, self.point.positive, self.point.negative)
        costs = np.array([column.cost for column in columns])
        return self.point.slacks(answers, reach, np.broadcast_to(votes, costs.shape), costs)

    def _add_classifiers(self, columns: list[Column], votes: NDArray[np.bool_]) -> None:
        """Add rows with small multipliers, which must not use up what the margins of the present point have left."""
        if not columns:
            return
        point = self.point
        answers = np.array([self.data.y * column.h for column in columns])
        reach = self._reach(answers, point.positive, point.negative)
        costs = np.array([column.cost for column in columns])
        t = np.maximum(point.slacks(answers, reach, votes, costs), min(_LEAST_SLACK, self._progress) * costs)
        mu = _ENTERING * point.target / t
        change = np.where(votes, mu, 0.0) @ answers
        hurt = change < 0
        largest = 0.2 * float((point.q_w[hurt] / -change[hurt]).min(initial=np.inf))
        scale = min(1.0, largest, 0.1 / max(float(mu[votes].sum()), 0.1))
        mu = np.where(votes, scale * mu, mu)
        point.q_w = point.q_w + scale * change
        point.q_v = point.q_v + mu @ reach
        point.votes, point.costs = np.r_[point.votes, votes], np.r_[point.costs, costs]
        point.mu, point.t = np.r_[point.mu, mu], np.r_[point.t, t]
        point.answers = np.vstack([point.answers, answers])
        point.reach = np.vstack([point.reach.reshape(len(self.columns), point.v.size), reach])
        self.columns += columns
        self.known |= {(column.key, bool(vote)) for column, vote in zip(columns, votes)}

    def _add_pairs(self, positive: NDArray, negative: NDArray) -> None:
        """Add cuts with small multipliers, which must not use up the slacks of the present point."""
        if not positive.size:
            return
        point = self.point
        reach = self._reach(point.answers, positive, negative)
        q_v = np.maximum(point.surpluses(positive, negative, reach), min(_LEAST_SLACK, self._progress))
        v = _ENTERING * point.target / q_v
        load = load_of(positive, negative, v, self.data.y.size)
        charge = reach @ v
        scale = min(
            1.0, _ENTERING_V * self.min_cost / float(v.sum()),
            0.2 * float((point.r[load > 0] / load[load > 0]).min()),
            0.2 * float((point.t[charge > 0] / charge[charge > 0]).min(initial=np.inf)),
        )  # fmt: skip
        point.r, point.t = point.r - scale * load, point.t - scale * charge
        point.v, point.q_v = np.r_[point.v, scale * v], np.r_[point.q_v, q_v]
        point.positive, point.negative = np.r_[point.positive, positive], np.r_[point.negative, negative]
        point.reach = np.hstack([point.reach.reshape(len(self.columns), self.idle_pairs.size), reach])
        self.idle_pairs = np.r_[self.idle_pairs, np.zeros(positive.size, np.intp)]

    def _drop_pairs(self) -> None:
        point = self.point
        self.idle_pairs = np.where(point.q_v > _PAIRS_LEAVE, self.idle_pairs + 1, 0)
        kept = self.idle_pairs < _PATIENCE
        gone = np.where(kept, 0.0, point.v)
        point.r, point.t = point.r + point.load(gone), point.t + point.reach @ gone
        for name in ("positive", "negative", "v", "q_v"):
            setattr(point, name, getattr(point, name)[kept])
        point.reach, self.idle_pairs = point.reach[:, kept], self.idle_pairs[kept]

    def _drop_classifiers(self) -> None:
        point = self.point
        kept = point.t <= _CLASSIFIERS_LEAVE * point.costs
        self.known -= {(self.columns[k].key, bool(point.votes[k])) for k in np.flatnonzero(~kept)}
        self.columns = [self.columns[k] for k in np.flatnonzero(kept)]
        for name in ("votes", "costs", "mu", "t", "answers", "reach"):
            setattr(point, name, getattr(point, name)[kept])
