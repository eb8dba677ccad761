"""LP-Boost with column generation: the soft-margin linear program over all base classifiers.

Goldberg and Eckstein, Tightened L0-Relaxation Penalties for Classification (2009), equation (3):

    max  rho - D sum_i m_i xi_i   subject to   y_i H_i lambda + xi_i >= rho,  sum lambda = 1,  xi, lambda >= 0,

with observation weights m_i of total M and D = 1 / (nu M). Solved is its dual,

    min  beta   subject to   sum_i w_i y_i h_iu <= beta for every u,   sum_i w_i = 1,   0 <= w_i <= D m_i,

whose basis has one row per classifier instead of one per observation; a new classifier is a new row.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..core.result import Status
from ..core.solving import Clock
from ..engines.highs import Answer, HighsSession
from .observations import Observations
from .pricing.oracles import Column, Offer, Oracle

#: Multipliers of the engine below this are rounding noise; smaller violations of margins are none.
NOISE = 1e-9


@dataclass(frozen=True)
class LPBoostResult:
    """Columns with their weights lambda, the recomputed soft margin, a proved upper bound on it, and the w of that.

    ``points`` are whole numbers in proportion to lambda, if the list was to have them; ``held_out_error`` is that of
    the search for nu and the order, if there was one.
    """

    columns: list[Column]
    weights: NDArray[np.float64]
    margin: float
    objective: float
    upper_bound: float
    status: Status
    n_iter: int
    n_nodes: int
    history: tuple
    nu: float
    evidence: NDArray[np.float64] | None = None
    max_order: int = 1
    points: NDArray[np.float64] | None = None
    held_out_error: float = np.nan

    @property
    def votes(self) -> NDArray[np.float64]:
        """What each rule counts: its points, or lambda if there are none."""
        return self.weights if self.points is None else self.points


def soft_margin(margins: NDArray, weight: NDArray, D: float) -> tuple[float, float]:
    """Return the best rho for given margins and the objective rho - D sum_i m_i (rho - margin_i)_+ of (3).

    The objective is concave in rho with slope 1 - D m(margins < rho), so rho is the first margin, from below, at which
    the weight of the margins not above it reaches 1 / D = nu M.
    """
    order = np.argsort(margins, kind="stable")
    reached = np.cumsum(weight[order]) * D >= 1.0 - 1e-12
    rho = float(margins[order][np.argmax(reached)])
    return rho, rho - D * float(weight @ np.maximum(rho - margins, 0.0))


def multipliers(margins: NDArray, weight: NDArray, D: float) -> NDArray[np.float64]:
    """Return w of sum 1 with 0 <= w <= D m that is as large as possible where margins are small.

    It is optimal in the dual if lambda is in the primal and no margin is equal to rho; else it is a bound all the same.
    """
    order = np.argsort(margins, kind="stable")
    w = np.zeros(margins.size)
    w[order] = np.diff(np.minimum(np.cumsum(D * weight[order]), 1.0), prepend=0.0)
    return w


class Master(Protocol):
    """The dual program over the classifiers so far, kept warm."""

    data: Observations
    columns: list[Column]
    D: float

    def add(self, columns: list[Column]) -> None:
        """Add a row for each classifier."""

    def solve(self, time_limit: float) -> tuple[NDArray, NDArray, float, bool]:
        """Return (w, lambda, beta, whether solved to optimality)."""

    def slack(self, lam: NDArray) -> tuple[NDArray, NDArray]:
        """Return the smallest margins, and multipliers of sum 1 of those that fall short of the best rho."""

    def grow(self, lam: NDArray) -> tuple[NDArray, int]:
        """Return the smallest margin of each observation under lambda, and how many violated margins were added."""


def price_of_slack(data: Observations, nu: float) -> float:
    """Return D = 1 / (nu M)."""
    if not 0 < nu <= 1:
        raise ValueError(f"nu must lie in (0, 1], got {nu!r}.")
    return 1.0 / (nu * data.total)


def answered(session: HighsSession, time_limit: float) -> Answer:
    """Solve, and once more from scratch if the engine lost its way from an old basis."""
    clock = Clock(time_limit)
    answer = session.solve(time_limit)
    if not answer.is_optimal and not clock.is_over:
        session.forget_basis()
        answer = session.solve(max(clock.left, 0.0))
    return answer


def weights_of(row_dual: NDArray) -> NDArray[np.float64]:
    """Return the weights lambda of classifiers from the multipliers of their rows."""
    return np.where(row_dual < -NOISE, -row_dual, 0.0)


class DualMaster:
    """The dual program of two classes; all margins are in it from the start.

    With ``unit_margins`` it is the program of :mod:`.penalised`: the largest sum of w with edges of at most 1.
    """

    def __init__(self, data: Observations, D: float, unit_margins: bool = False) -> None:
        m = data.y.size
        self.data, self.D = data, D
        self.session = HighsSession()
        self.session.add_columns(np.full(m, -1.0 if unit_margins else 0.0), 0.0, D * data.weight)
        self.session.add_columns([1.0], *((1.0, 1.0) if unit_margins else (-np.inf, np.inf)))
        self.session.add_rows(np.append(np.ones(m), 0.0), *((-np.inf, np.inf) if unit_margins else (1.0, 1.0)))
        self.columns: list[Column] = []

    def add(self, columns: list[Column]) -> None:
        """See :class:`Master`."""
        rows = [np.append(self.data.y * column.h, -1.0) for column in columns]
        self.session.add_rows(np.array(rows), -np.inf, 0.0)
        self.columns += columns

    def solve(self, time_limit: float) -> tuple[NDArray, NDArray, float, bool]:
        """See :class:`Master`."""
        answer = answered(self.session, time_limit)
        w = np.clip(answer.x[:-1], 0.0, None)
        return w, weights_of(answer.row_dual[1:]), float(answer.x[-1]), answer.is_optimal

    def set_price(self, D: float) -> None:
        """Change the largest multiplier of an observation of weight 1."""
        self.D = D
        self.session.change_column_bounds(np.arange(self.data.y.size), 0.0, D * self.data.weight)

    def slack(self, lam: NDArray) -> tuple[NDArray, NDArray]:
        """See :class:`Master`."""
        margins = self.grow(lam)[0]
        return margins, multipliers(margins, self.data.weight, self.D)

    def grow(self, lam: NDArray) -> tuple[NDArray, int]:
        """See :class:`Master`."""
        votes = sum(l * c.h for l, c in zip(lam, self.columns) if l > 0)
        return votes * self.data.y, 0


def solve(data: Observations, oracle: Oracle, nu: float = 0.5, **options: Any) -> LPBoostResult:
    """Solve (3) over all classifiers of the oracle; the options are those of :func:`generate`."""
    return generate(DualMaster(data, price_of_slack(data, nu)), oracle, nu, **options)


@dataclass
class Best:
    """The best vote and the best bound of a run, and the nodes of pricing."""

    weights: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    rho: float = 0.0
    objective: float = -np.inf
    upper: float = np.inf
    evidence: NDArray[np.float64] | None = None
    n_nodes: int = 0

    def take_vote(self, lam: NDArray, rho: float, objective: float) -> None:
        """Keep a vote if its soft margin is larger."""
        if objective > self.objective:
            self.weights, self.rho, self.objective = lam, rho, objective

    def take_offer(self, offer: Offer, w: NDArray) -> None:
        """Keep the bound that pricing proves for w if it is smaller."""
        self.n_nodes += offer.n_nodes
        if offer.bound < self.upper:
            self.upper, self.evidence = offer.bound, w


def generate(
    master: Master,
    oracle: Oracle,
    nu: float,
    *,
    tol: float = 1e-9,
    n_columns: int = 10,
    max_iter: int = 10_000,
    time_limit: float = np.inf,
    start: Sequence[Column] = (),
    start_weights: NDArray | None = None,
    gap: float = 0.0,
    proof: bool = True,
) -> LPBoostResult:
    """Generate columns until no classifier is missing from a master.

    The bound is the largest edge over *all* classifiers, as proved by the oracle for the best w met; it is inf with an
    oracle that proves nothing. ``tol`` is absolute, on edges (they lie in [-1, 1]). ``start`` are columns to begin
    with, those of a similar problem; with ``start_weights`` of sum 1 they are a first model with a bound of its own,
    for the case that there is not even time for one master. The solve ends when no classifier has an edge that is
    larger than those present by more than ``gap`` times the soft margin; without ``proof``, when none is found by quick
    search.
    """
    clock, constants, best = Clock(time_limit), oracle.constants(), Best()
    master.add(constants + [column for column in start if column.key not in {c.key for c in constants}])
    known = {column.key for column in master.columns}
    status, n_iter = Status.ITERATION_LIMIT, 0
    if start_weights is not None:
        place = {column.key: k for k, column in enumerate(master.columns)}
        used = [place[column.key] for column in start]
        weights = np.bincount(used, start_weights, len(master.columns)).astype(np.float64)
        margins, w = master.slack(weights)
        best.take_vote(weights, *soft_margin(margins, master.data.weight, master.D))
        best.take_offer(oracle.offer(w, None, best.objective, n_columns, max(clock.left, 0.0)), w)
        clock.note(best.objective, best.upper)
    while n_iter < max_iter and best.upper - best.objective > tol:
        n_iter += 1
        w, lam, beta, solved = master.solve(max(clock.left, 0.0))
        if not solved:
            status = Status.TIME_LIMIT if clock.is_over else Status.STALLED
            break
        lam = lam / lam.sum()
        margins, n_margins = master.grow(lam)
        best.take_vote(lam, *soft_margin(margins, master.data.weight, master.D))
        threshold = beta + max(tol, gap * best.objective)
        offer = oracle.offer(w, None, threshold, n_columns, max(clock.left, 0.0), False)
        if not offer.columns and not n_margins and proof and math.isinf(offer.bound):
            offer = oracle.offer(w, None, threshold, n_columns, max(clock.left, 0.0))
        best.take_offer(offer, w)
        clock.note(best.objective, best.upper)
        fresh = [column for column in offer.columns if column.key not in known]
        if clock.is_over or not (fresh or n_margins):
            proved = Status.OPTIMAL if best.upper < np.inf else Status.STALLED
            status = Status.TIME_LIMIT if clock.is_over else proved
            break
        if fresh:
            master.add(fresh)
            known |= {column.key for column in fresh}
    if best.upper - best.objective <= tol:
        status = Status.OPTIMAL
    weights = np.pad(best.weights, (0, len(master.columns) - best.weights.size))
    return LPBoostResult(
        master.columns, weights, best.rho, best.objective, best.upper, status, n_iter, best.n_nodes,
        tuple(clock.history), nu, best.evidence,
    )  # fmt: skip
