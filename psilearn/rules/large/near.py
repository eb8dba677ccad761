"""The dual of LP-Boost over the observations whose margins are near rho; the others keep the multiplier they have.

With margins of a vote that is nearly optimal, w_i = D m_i where the margin is far below rho and w_i = 0 where it is far
above. Such w are feasible in the whole program, and an observation whose margin turns out to be on another side of rho
than its multiplier says gets a variable of its own. Multipliers are in units of D, which keeps them away from the
tolerances of the engine.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.solving import Clock
from ...engines.highs import HighsSession
from ..lpboost import NOISE, LPBoostResult, answered, generate, price_of_slack, soft_margin, weights_of
from ..observations import Observations
from ..pricing.oracles import Column, Oracle
from . import rounded

#: Observations that are free at first, and classifiers that a round may add.
_FREE, _COLUMNS = 2500, 50


class NearMaster:
    """See :class:`..lpboost.Master`; begins with what :mod:`.rounded` found."""

    def __init__(self, data: Observations, D: float, found: rounded.Found) -> None:
        self.data, self.D, self.found = data, D, found
        self.rho = soft_margin(found.margins, data.weight, D)[0]
        near = np.argsort(np.abs(found.margins - self.rho), kind="stable")[:_FREE]
        self.base = np.minimum(found.multipliers / D, data.weight)
        self.is_free = np.zeros(data.y.size, bool)
        self.who = np.empty(0, np.intp)
        self.columns: list[Column] = []
        self.session = HighsSession()
        # beta, and a constant 1 whose coefficients are the sums over observations with fixed multipliers
        self.session.add_columns([1.0, 0.0], [-np.inf, 1.0], [np.inf, 1.0])
        self.session.add_rows([[0.0, self.base.sum()]], self.base.sum(), self.base.sum())
        self._free(near)

    def _answers(self, columns: list[Column], who: NDArray) -> NDArray[np.float64]:
        return np.array([self.data.y[who] * column.h[who] for column in columns], dtype=np.float64)

    def _free(self, who: NDArray[np.intp]) -> None:
        """Give observations a variable: by how much their multiplier is changed."""
        entries = np.ones((self.session.n_rows, who.size))
        if self.columns:
            entries[1:] = self._answers(self.columns, who)
        self.session.add_columns(np.zeros(who.size), -self.base[who], self.data.weight[who] - self.base[who], entries)
        self.who = np.r_[self.who, who]
        self.is_free[who] = True

    def add(self, columns: list[Column]) -> None:
        """See :class:`..lpboost.Master`."""
        full = np.flatnonzero(self.base)
        fixed = [float(self.base[full] @ (self.data.y[full] * column.h[full])) for column in columns]
        rows = np.column_stack([np.full(len(columns), -1.0), fixed, self._answers(columns, self.who)])
        self.session.add_rows(rows, -np.inf, 0.0)
        self.columns += columns

    def solve(self, time_limit: float) -> tuple[NDArray, NDArray, float, bool]:
        """See :class:`..lpboost.Master`."""
        answer = answered(self.session, time_limit)
        self.rho = float(answer.row_dual[0])
        w = self.base.copy()
        w[self.who] += answer.x[2:]
        w = self.D * np.clip(w, 0.0, self.data.weight)
        return w, weights_of(answer.row_dual[1:]), self.D * float(answer.x[0]), answer.is_optimal

    def slack(self, lam: NDArray) -> tuple[NDArray, NDArray]:
        """See :class:`..lpboost.Master`; the multipliers are those of the start."""
        return self.found.margins, self.found.multipliers

    def grow(self, lam: NDArray) -> tuple[NDArray, int]:
        """See :class:`..lpboost.Master`: those are freed on the other side of rho than they should be."""
        votes = sum(l * c.h for l, c in zip(lam, self.columns) if l > 0)
        margins = votes * self.data.y
        is_too_large = (margins > self.rho + NOISE) & (self.base > 0)
        is_too_small = (margins < self.rho - NOISE) & (self.base < self.data.weight)
        crossed = np.flatnonzero((is_too_large | is_too_small) & ~self.is_free)
        if crossed.size:
            self._free(crossed)
        return margins, int(crossed.size)


def solve(
    data: Observations, oracle: Oracle, nu: float = 0.5, time_limit: float = math.inf, **options: Any
) -> LPBoostResult:
    """Solve program (3) as :func:`..lpboost.solve` does, for very many observations; the oracle is one of rules."""
    clock, D = Clock(time_limit), price_of_slack(data, nu)
    start = options.pop("start", ()), options.pop("start_weights", None)
    found = rounded.solve(data, oracle, D, time_limit, *start)
    options |= {"start": found.columns, "start_weights": found.weights, "n_columns": _COLUMNS}
    return generate(NearMaster(data, D, found), oracle, nu, time_limit=max(0.0, clock.left), **options)
