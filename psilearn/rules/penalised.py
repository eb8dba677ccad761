"""The models of LP-Boost in another order: unit margins, and a price C on what is missing to them.

    min  sum_u lambda_u + C sum_i m_i xi_i   subject to   y_i H_i lambda + xi_i >= 1,   xi, lambda >= 0,

with the dual  max sum_i w_i  subject to  sum_i w_i y_i h_iu <= 1 for every u,  0 <= w_i <= C m_i.

Divided by its sum, lambda is optimal in program (3) of :mod:`.lpboost` with nu = sum_i w_i / (C M): w / sum w is
feasible in the dual of (3), and both values are 1 / sum w. For most nu the program (3) has one stump or no margin, and
all models in between belong to a small interval of nu; along C they are spread evenly. A larger C leaves w feasible, so
that the path is cheap.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.solving import Clock
from .joint import ClassOracle, JointMaster
from .lpboost import DualMaster
from .observations import Observations
from .pricing.oracles import Column, Oracle


class Step(NamedTuple):
    """The model of one price: columns with positive weights of sum 1, the margin they ask for, and its nu."""

    columns: list[Column]
    weights: NDArray[np.float64]
    margin: float
    nu: float


class VotePath:
    """The program for growing C, kept warm; two classes, or several with a :class:`.joint.ClassOracle`.

    Parameters
    ----------
    data, oracle
        The observations and their base learner.
    gap : float
        Edges may exceed 1 by so much at the end of a step.
    n_columns : int
        Classifiers that a round may add.
    """

    def __init__(self, data: Observations, oracle: Oracle, gap: float, n_columns: int) -> None:
        self.data, self.oracle, self.gap, self.n_columns = data, oracle, gap, n_columns
        self.master: JointMaster | DualMaster = (
            JointMaster(data, oracle.k, 1.0, unit_margins=True)
            if isinstance(oracle, ClassOracle)
            else DualMaster(data, 1.0, unit_margins=True)
        )
        self.known: set = set()
        self._add(oracle.constants())

    def _add(self, columns: Sequence[Column]) -> bool:
        fresh = [column for column in columns if column.key not in self.known]
        if fresh:
            self.master.add(fresh)
            self.known |= {column.key for column in fresh}
        return bool(fresh)

    def step(self, strength: float, time_limit: float, is_proved: bool = False) -> Step | None:
        """Return the model for C = ``strength`` / M; None if the time is over, or if no classifier is used.

        With ``is_proved`` no classifier at all is missing, otherwise none that a quick search finds.
        """
        clock, C = Clock(time_limit), strength / self.data.total
        self.master.set_price(C)
        while True:
            w, lam, _, is_solved = self.master.solve(max(clock.left, 0.0))
            if not is_solved or clock.is_over:
                return None
            if not (self._grow(w, lam, clock) or (is_proved and self._grow(w, lam, clock, True))):
                break
        used = np.flatnonzero(lam > 0)
        if not used.size:
            return None
        total = float(lam.sum())
        nu = min(1.0, float(w.sum()) / strength)
        return Step([self.master.columns[k] for k in used], lam[used] / total, 1.0 / total, nu)

    def _grow(self, w: NDArray, lam: NDArray, clock: Clock, is_proved: bool = False) -> bool:
        """Add classifiers, and rivals whose margins are violated; False if nothing is missing."""
        _, n_margins = self.master.grow(lam)
        offer = self.oracle.offer(w, None, 1.0 + self.gap, self.n_columns, max(clock.left, 0.0), is_proved)
        return self._add(offer.columns) or n_margins > 0
