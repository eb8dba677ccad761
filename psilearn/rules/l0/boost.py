"""L0-RBoost: boosting with tightened relaxed L0 penalties, corrected.

Algorithm 1 of Goldberg and Eckstein, Tightened L0-Relaxation Penalties for Classification (2009), with three repairs.
The cuts (17) are the symmetric ones, valid also when classifiers abstain (``cuts="paper"`` gives the printed ones: a
heuristic, not a relaxation). Pricing keeps the sign of the multiplier of mu >= lambda: the reduced cost of u is
c_u - sum {v_p : u in S_p} - max(0, alpha + sum_i y_i h_iu w_i), so columns are priced twice, once to vote and once to
mark pairs only. And the bound (22), which asks how many classifiers an optimum may have, is replaced by a stronger one:
the multipliers are scaled until they are feasible for all classifiers.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...core.result import Status
from ...core.solving import Clock
from ..observations import Observations
from ..pricing.data import Pairs
from ..pricing.oracles import Column, Oracle
from .bounds import dual_value, integer_bound, scaled_bound
from .cuts import PairCuts
from .master import Point, RelaxationMaster
from .path import CentralPath
from .result import L0BoostResult, RelaxationCertificate
from .rounding import round_relaxation

CUTS = ("valid", "paper")


@dataclass(frozen=True)
class Settings:
    """How the relaxation grows, and when the simplex method gives way to the central path.

    Attributes
    ----------
    n_columns, max_cuts, max_margins : int
        How many columns a pricing call, and how many cuts and margin constraints a round may add.
    hamming_factor : float
        How near the pairs of new cuts must be; see :class:`PairCuts`.
    patience : int
        Solves after which what has had no effect is dropped from the master.
    path_work, path_work_per_node : float
        Pivots times rows after which masters are given up for the central path, and how much more it takes for each
        node of a round of pricing, because the path prices some hundred times.
    max_pairs : int
        Above so many pairs (2 million doubles) they are never all computed at once, and the path is not followed.
    """

    n_columns: int = 30
    max_cuts: int = 300
    max_margins: int = 500
    hamming_factor: float = 1.5
    patience: int = 6
    path_work: float = 3_000_000
    path_work_per_node: float = 1000
    max_pairs: int = 2_000_000


def solve(
    data: Observations,
    oracle: Oracle,
    rho: float,
    *,
    cuts: str = "valid",
    min_cost: float,
    integer_costs: bool = False,
    tol: float = 1e-6,
    max_iter: int = 10_000,
    time_limit: float = math.inf,
    settings: Settings | None = None,
) -> L0BoostResult:
    """Solve the relaxation (18) over all classifiers of the oracle and all pairs.

    Parameters
    ----------
    data, oracle
        Merged observations and the base learner; its columns carry their costs c_u.
    rho : float
        Required margin in (0, 1].
    cuts : {"valid", "paper"}
    min_cost : float
        min_u c_u, used by the bound; see :func:`scaled_bound`.
    integer_costs : bool
        Whether all c_u are integers; then the bound on the integer optimum is rounded up (23).
    tol : float
        Reduced costs above -tol and cut violations below tol count as none.
    """
    if cuts not in CUTS:
        raise ValueError(f"cuts must be one of {CUTS}, got {cuts!r}.")
    if not 0 < rho <= 1:
        raise ValueError(f"rho must lie in (0, 1], got {rho!r}.")
    work = Workspace(data, oracle, rho, cuts == "valid", min_cost, tol, Clock(time_limit), settings or Settings())
    status = work.iterate(max_iter)
    if status is not Status.OPTIMAL:
        work.price()
        work.separate()
    return work.result(status, integer_costs and bool((data.weight == np.round(data.weight)).all()))


class Workspace:
    """The state of one solve: the master, its last point, and what has been proved so far."""

    def __init__(
        self,
        data: Observations,
        oracle: Oracle,
        rho: float,
        symmetric: bool,
        min_cost: float,
        tol: float,
        clock: Clock,
        settings: Settings,
    ) -> None:
        self.data, self.oracle, self.rho, self.symmetric = data, oracle, rho, symmetric
        self.min_cost, self.tol, self.clock, self.settings = min_cost, tol, clock, settings
        self.separation = PairCuts(data, symmetric, settings.hamming_factor, settings.max_cuts)
        self.master = RelaxationMaster(data, rho, symmetric)
        self.known: dict[bool, set] = {True: set(), False: set()}
        self._add(oracle.constants(), votes=True)
        self.point: Point
        # what the point is about: the master may have grown or lost parts since
        self.columns: list[Column]
        self.votes: NDArray[np.bool_]
        self.ends: tuple[NDArray, NDArray]
        self.lacking: NDArray[np.float64]
        self.objective, self.lower_bound = math.inf, -math.inf
        self.evidence: tuple[NDArray, NDArray, float, NDArray, NDArray] | None = None
        self.reduced_cost, self.violation, self.n_nodes = -math.inf, math.inf, 0
        self.has_followed, self.n_rounds, self.n_iter = False, 0, 0
        self.prices = self.has_columns_only = False

    def iterate(self, max_iter: int) -> Status:
        """Solve masters and let them grow until nothing is missing or a limit is reached; return why it stopped."""
        while self.n_iter < max_iter:
            self.n_iter += 1
            self.drop_idle()
            if self.n_iter < max_iter and self.is_laborious():
                self.n_iter += self.follow_path(max_iter - self.n_iter)
            if not self.solve_master():
                return Status.TIME_LIMIT
            n_added = self.grow()
            self.clock.note(self.objective, self.lower_bound)
            if n_added == 0 and self.reduced_cost >= -2 * self.tol:
                return Status.OPTIMAL
            if self.clock.is_over:
                return Status.TIME_LIMIT
            if n_added == 0:
                return Status.STALLED
        return Status.ITERATION_LIMIT

    def _add(self, columns: list[Column], votes: bool) -> int:
        fresh = [column for column in columns if column.key not in self.known[votes]]
        if fresh:
            self.master.add_columns(fresh, votes)
            self.known[votes] |= {column.key for column in fresh}
        return len(fresh)

    def drop_idle(self) -> None:
        """Keep the master small."""
        for column, votes in self.master.drop_idle(self.settings.patience):
            self.known[votes].discard(column.key)

    def solve_master(self) -> bool:
        """Solve the master and recompute z from a feasible (lambda, s, xi); False if the time is over."""
        point = self.master.solve(max(self.clock.left, 0.0), self.has_columns_only)
        if not point.is_optimal:
            return False
        self._take(point)
        return True

    def _take(self, point: Point) -> None:
        """Make (lambda, s, xi) of the master's point feasible for all margins."""
        votes = np.array(self.master.votes)
        mu = point.mu.copy()
        mu[votes] /= mu[votes].sum()
        margins = self.data.y * (self.master.H[:, votes] @ mu[votes])
        xi = np.maximum(point.xi, (self.rho - margins) / (1.0 + self.rho))
        self.lacking = xi - point.xi
        self.point = Point(mu, xi, point.w, point.v, point.alpha, True)
        self.columns, self.votes = list(self.master.columns), votes
        self.ends = self.master.positive, self.master.negative
        self.objective = float(self.data.weight @ xi + self.master.costs @ mu)

    def is_laborious(self) -> bool:
        """Whether the simplex method takes so long that the central path is quicker; it needs exact pricing."""
        if self.has_followed or self.reduced_cost == -math.inf:
            return False
        limits = self.settings
        is_small = 0 < self.separation.n_pairs <= limits.max_pairs
        most = limits.path_work + limits.path_work_per_node * self.n_nodes / self.n_rounds
        return is_small and self.master.work > most

    def follow_path(self, max_iter: int) -> int:
        """Follow the central path and start a new master from its end; return the number of steps."""
        self.has_followed = True
        path = CentralPath(self.data, self.oracle, self.rho, self.separation, self.min_cost)
        path.follow(self.clock, max_iter)
        self.n_nodes += path.n_nodes
        self.master = RelaxationMaster(self.data, self.rho, self.symmetric)
        self._take(self.master.adopt(path.columns, path.point))
        self.known = {votes: {key for key, voting in path.known if voting == votes} for votes in (True, False)}
        self.price()
        self.separate()
        self.has_columns_only = False
        return path.n_iter

    def price(self) -> int:
        """Price twice, add what improves, and update the bound; return the number of new columns."""
        self.n_rounds += 1
        point, tol = self.point, self.tol
        used = point.v > 0
        pairs = Pairs(self.ends[0][used], self.ends[1][used], point.v[used], self.symmetric)
        left = max(self.clock.left, 0.0)
        vote = self.oracle.offer(point.w, pairs, -point.alpha + tol, self.settings.n_columns, left)
        mark = self.oracle.offer(np.zeros_like(point.w), pairs, tol, self.settings.n_columns, max(self.clock.left, 0.0))
        self.n_nodes += vote.n_nodes + mark.n_nodes
        r_vote, r_mark = min(0.0, -point.alpha - vote.bound), min(0.0, -mark.bound)
        self.reduced_cost = min(r_vote, r_mark)
        if self.symmetric and self.reduced_cost > -math.inf:
            value = dual_value(self.data, self.rho, point, self.ends)
            bound = scaled_bound(value, r_vote, r_mark, self.min_cost)
            if bound > self.lower_bound:
                self.lower_bound, self.evidence = bound, (point.w, point.v, point.alpha, *self.ends)
        return self._add(vote.columns, votes=True) + self._add(mark.columns, votes=False)

    def grow(self) -> int:
        """Add classifiers or, in turn, cuts and margins; return their number, 0 if both lack nothing.

        Classifiers are rows of the master and leave its basis dual feasible, cuts and margins are columns and leave it
        primal feasible: one at a time, the simplex method needs no first phase. With very many observations, whose
        columns make primal pivots expensive, all are added at once.
        """
        if self.separation.n_pairs > self.settings.max_pairs:
            return self.price() + self.separate() + self.add_margins()
        for _ in range(2):
            self.prices = not self.prices
            self.has_columns_only = not self.prices
            n_added = self.price() if self.prices else self.separate() + self.add_margins()
            if n_added:
                return n_added
        return 0

    def add_margins(self) -> int:
        """Add the most violated margin constraints; return their number."""
        most = np.argsort(-self.lacking, kind="stable")[: self.settings.max_margins]
        return self.master.add_margins(most[self.lacking[most] > self.tol])

    def separate(self) -> int:
        """Add violated cuts; return their number."""
        H = np.column_stack([column.h for column in self.columns])
        positive, negative, self.violation = self.separation.violated(H, self.point.mu, self.point.xi, self.tol)
        return self.master.add_pairs(positive, negative)

    def result(self, status: Status, is_integer: bool) -> L0BoostResult:
        """Gather lambda and mu by classifier."""
        weights: dict[Hashable, float] = {}
        mu: dict[Hashable, float] = {}
        column_of: dict[Hashable, Column] = {}
        for column, votes, value in zip(self.columns, self.votes, self.point.mu):
            column_of.setdefault(column.key, column)
            mu[column.key] = mu.get(column.key, 0.0) + value
            weights[column.key] = weights.get(column.key, 0.0) + (value if votes else 0.0)
        keys = [key for key in column_of if mu[key] > 0]
        whole = integer_bound(self.lower_bound, is_integer)
        columns, lam = [column_of[key] for key in keys], np.array([weights[key] for key in keys])
        certificate = RelaxationCertificate(
            self.objective, self.reduced_cost, self.violation, self.lower_bound, whole,
            round_relaxation(self.data, columns, lam, self.rho)[1],
        )  # fmt: skip
        return L0BoostResult(
            columns,
            lam,
            np.array([mu[key] for key in keys]),
            self.point.xi,
            certificate,
            status,
            self.n_iter,
            self.n_nodes,
            self.master.positive.size,
            tuple(self.clock.history),
            self.evidence,
            rho=self.rho,
        )
