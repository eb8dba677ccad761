"""The sparse minimum disagreement hyperplane with a limit on the number of rules, and with whole points.

Candidates are the rules of the relaxation (18) of Goldberg and Eckstein (2009) and those of lists grown by local
search; over them the integer program (15) is solved with at most m rules, from the best list known. The bound is about
all rules: that of the relaxation, also with a cost theta added to every rule, since for every theta >= 0

    optimum with at most m rules  >=  bound of the relaxation with costs c_u + theta  -  theta m.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from ...core.solving import Clock
from .. import short
from ..observations import Observations
from ..pricing.data import Monomial
from ..pricing.oracles import Column, MonomialOracle
from . import boost, exact
from .result import L0BoostResult

#: Candidates of the integer program, its seconds at most, and the costs theta, in shares of the observations.
MOST_CANDIDATES, MOST_SECONDS, THETAS = 60, 20.0, (0.01, 0.03, 0.1)


@dataclass(frozen=True)
class Limited:
    """A list of few rules with its value in (15), the bound, and the relaxation that proves it."""

    columns: list[Column]
    weights: NDArray[np.float64]
    objective: float
    lower_bound: float
    theta: float
    relaxed: L0BoostResult


def solve(
    data: Observations,
    costs: Sequence[float],
    rho: float,
    relaxed: L0BoostResult,
    max_rules: int,
    time_limit: float,
) -> Limited:
    """Return the best list found and the best bound; ``relaxed`` is the solved relaxation."""
    clock, oracle = Clock(time_limit), MonomialOracle(data, len(costs) - 1, list(costs))
    bound, theta, proof = relaxed.lower_bound, 0.0, relaxed
    pool = {column.key: column for column in oracle.constants()}
    for extra in (share * data.total for share in THETAS):
        raised = [cost + extra for cost in costs]
        costlier = MonomialOracle(data, len(costs) - 1, raised)
        other = boost.solve(data, costlier, rho, min_cost=min(raised), time_limit=max(0.0, clock.left) / 4)
        if other.lower_bound - extra * max_rules > bound:
            bound, theta, proof = other.lower_bound - extra * max_rules, extra, other
        pool |= {column.key: oracle.column(cast(Monomial, column.key)) for column in other.columns}
    best_lists = list(short.grow(short.TwoClasses(data, oracle), max_rules, max(0.0, clock.left) / 2))
    order = np.argsort(-relaxed.weights, kind="stable")[:MOST_CANDIDATES]
    pool |= {column.key: column for found in best_lists for column in found.columns}
    pool |= {relaxed.columns[k].key: relaxed.columns[k] for k in order}
    columns = list(pool.values())
    place = {key: k for k, key in enumerate(pool)}
    start, value = np.zeros(len(columns)), np.inf
    for found in best_lists:
        trial = np.zeros(len(columns))
        trial[[place[column.key] for column in found.columns]] = found.weights / found.weights.sum()
        if (reached := exact.evaluate(data, columns, trial, rho)[0]) < value:
            start, value = trial, reached
    seconds = min(MOST_SECONDS, max(0.1, clock.left))
    model = exact.solve(data, columns, rho, max_rules=max_rules, start=start, time_limit=seconds)
    weights = model.weights if model.objective <= value else start
    used = np.flatnonzero(weights > 0)
    objective = exact.evaluate(data, columns, weights, rho)[0]
    return Limited([columns[k] for k in used], weights[used], objective, min(bound, objective), theta, proof)
