"""Dividing the time by what the fits cost, counted and not timed: the same seed and budget give the same table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...core.spaces.low_rank import automatic_rank

#: Numbers of rows that a plan may take, as shares of all.
_STEPS = 200
#: Features that a kernel on landmarks is as costly as; with fewer rows than it needs landmarks, their number.
LANDMARKS = 1200
#: No method is given fewer rows than this.
FEWEST_ROWS = 1000
#: A budget is planned with this share of it: machines differ.
PLANNED = 0.8


@dataclass(frozen=True)
class Cost:
    """Seconds of a fit, about: base + per_cell * rows^power * features.

    Attributes
    ----------
    per_cell, power, base : float
        As above, on one core of a server of 2022 and noisy data of 20 features, with two classes.
    kernel : bool
        Whether the fit sees one feature per row, or landmarks, instead of the table's features.
    fits : int
        Fits of two thirds of the rows that tuning takes; fits along a path count half.
    whole : int
        Rows up to which the last fit is never thinned; a time limit ends it instead.
    """

    per_cell: float = 0.0
    power: float = 1.0
    base: float = 0.0
    kernel: bool = False
    fits: int = 0
    whole: int = 2000

    def seconds(self, rows: int, features: int, classes: int) -> float:
        """Return the seconds of one fit."""
        if self.kernel:
            features = rows if automatic_rank(rows) is None else LANDMARKS
        return self.base + self.per_cell * rows**self.power * features * (1 if classes == 2 else classes)


@dataclass(frozen=True)
class Plan:
    """How many rows a method is tuned on and fitted on, and the seconds that this is thought to take."""

    tune_rows: int
    fit_rows: int
    seconds: float


def plan(costs: Sequence[Cost], rows: int, features: int, classes: int, budget: float) -> list[Plan]:
    """Divide a budget: a method that needs less than an equal share gets that, and the others share the rest."""
    need = [_whole(cost, rows, rows, features, classes) for cost in costs]
    granted = [0.0] * len(costs)
    left = PLANNED * budget
    for done, at in enumerate(np.argsort(need, kind="stable")):
        granted[at] = min(need[at], left / (len(costs) - done))
        left -= granted[at]
    return [_affordable(cost, rows, features, classes, s) for cost, s in zip(costs, granted)]


def _whole(cost: Cost, tune_rows: int, fit_rows: int, features: int, classes: int) -> float:
    tuning = cost.fits * cost.seconds(max(1, 2 * tune_rows // 3), features, classes)
    return tuning + cost.seconds(fit_rows, features, classes)


def _affordable(cost: Cost, rows: int, features: int, classes: int, seconds: float) -> Plan:
    """Thin the tuning first: the fit itself needs the rows most."""
    least = min(rows, FEWEST_ROWS)
    tune_rows = fit_rows = rows
    sizes = [rows, *np.unique(np.rint(np.geomspace(least, rows, _STEPS)).astype(int))[::-1].tolist()]
    for tune_rows in sizes:
        if _whole(cost, tune_rows, rows, features, classes) <= seconds:
            break
    else:
        for fit_rows in sizes:
            if fit_rows <= cost.whole or _whole(cost, least, fit_rows, features, classes) <= seconds:
                break
    return Plan(int(tune_rows), int(fit_rows), _whole(cost, tune_rows, fit_rows, features, classes))
