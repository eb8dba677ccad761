"""Error against the number of rules: lists of every length, their held-out errors, and what no list can reach.

The bound on mistakes is a Lagrangian one. Let B(c) bound the integer problem (15) of Goldberg and Eckstein (2009) with
cost c for every rule, constants included: mistakes + c * rules >= B(c) for all lists whose votes have margin rho. Then
a list of m rules makes at least B(c) - c m mistakes, for every c.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..core.solving import Clock
from . import joint, short
from .l0 import boost as l0boost
from .pricing.oracles import MonomialOracle
from .tuning import Program
from .tuning import Settings as Tuning

#: Margins below this share of all points count as mistakes in the bound: votes that are all but tied.
LEAST_MARGIN = 1e-3
#: Costs of a rule, in mistakes, as shares of the observations: one relaxation is solved for each.
COSTS = (0.1, 0.05, 0.025, 0.012, 0.006)


def task_of(program: Program, order: int) -> short.Task:
    """The search for short lists of rules up to an order."""
    oracle = program.oracle_of(program.data, order)
    if isinstance(oracle, joint.ClassOracle):
        return short.SeveralClasses(program.data, oracle)
    return short.TwoClasses(program.data, oracle)


def lists(program: Program, order: int, max_rules: int, time_limit: float) -> list[short.Fitted]:
    """The list of each length from 1 to ``max_rules``; where a length has none of its own, that of the next shorter."""
    found: list[short.Fitted] = []
    for fitted in short.grow(task_of(program, order), max_rules, time_limit):
        while len(found) < len(fitted.columns):
            found.append(fitted if len(fitted.columns) == len(found) + 1 else found[-1])
        found[len(fitted.columns) - 1 :] = [fitted]
    return found + found[-1:] * (max_rules - len(found))


def held_out(
    program: Program, order: int, max_rules: int, seed: int, clock: Clock, settings: Tuning
) -> NDArray[np.float64]:
    """Share of the held-out weight that lists of each length get wrong: (folds, max_rules)."""
    shares = []
    for part, test in program.folds(settings, seed):
        grown = lists(part, order, max_rules, max(0.0, clock.left))
        shares.append([part.mistakes(fitted.columns, fitted.weights, test) / test.total for fitted in grown])
        if clock.is_over:
            break
    return np.array(shares).reshape(-1, max_rules)


@dataclass(frozen=True)
class Choice:
    """An order and a length, with the held-out error of each length (mean and standard error over folds)."""

    order: int
    length: int
    errors: NDArray[np.float64]
    standard_errors: NDArray[np.float64]

    @property
    def error(self) -> float:
        """Held-out error of the chosen length."""
        return float(self.errors[self.length - 1])


def choose(
    program: Program,
    orders: Sequence[int],
    max_rules: int,
    seed: int,
    time_limit: float,
    settings: Tuning | None = None,
) -> Choice:
    """The order and length of smallest held-out error; something shorter unless more is worth half a standard error."""
    settings, clock = settings or Tuning(), Clock((settings or Tuning()).share * time_limit)
    best: Choice | None = None
    for order in orders:
        shares = held_out(program, order, max_rules, seed, clock, settings)
        if not shares.size:
            break
        mean = shares.mean(axis=0)
        spread = shares.std(axis=0) / math.sqrt(len(shares))
        least = int(np.argmin(mean))
        length = 1 + int(np.argmax(mean <= mean[least] + settings.chance * spread[least]))
        found = Choice(order, length, mean, spread)
        if best is None or mean[least] < best.errors.min() - settings.chance * spread[least]:
            best = found
        if clock.is_over:
            break
    nothing = np.full(max_rules, np.nan)
    return best or Choice(orders[0], max_rules, nothing, nothing)


def bounds_on_mistakes(program: Program, order: int, max_rules: int, time_limit: float) -> NDArray[np.float64]:
    """For each length, a bound on the training weight that any list of so many rules gets wrong (two classes).

    A vote that is right with less than :data:`LEAST_MARGIN` of all points counts as wrong.
    """
    data, clock = program.data, Clock(time_limit)
    best = np.zeros(max_rules)
    for done, share in enumerate(COSTS):
        cost = max(1.0, round(share * data.total))
        oracle = MonomialOracle(data, order, [cost] * (order + 1))
        limit = max(0.0, clock.left) / (len(COSTS) - done)
        relaxed = l0boost.solve(data, oracle, LEAST_MARGIN, min_cost=cost, time_limit=limit)
        best = np.maximum(best, relaxed.lower_bound - cost * np.arange(1, max_rules + 1))
    return best
