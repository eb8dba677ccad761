"""Find a tree that proves a bound: which search does it."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from ...core.clock import now
from ..statement import Evidence, Statement
from .conflicts import ConflictSearch
from .node import Hints
from .scaled import Scaled, make_model
from .tree import MARGIN_UNIT, Replay

__all__ = ["MARGIN_UNIT", "Evidence", "Hints", "Scaled", "make_model", "search"]

#: Part of the time for the search by conflicts, where nothing is paid from t on.
CONFLICT_SHARE = 0.5


def search(statement: Statement, scaled: Scaled, goal: float, hints: Any, seconds: float) -> Evidence:
    """Prove ``goal``, or as much as there is time for.

    Where nothing is paid from t on (the hard margin), conflicts come first: believing too many samples is what costs.
    """
    began = now()
    replay = Replay(scaled, goal, hints, statement.exact.believed)
    if not np.any(scaled.model.breakpoints > scaled.model.t) and goal > 0.0:
        evidence = by_conflicts(statement, replay, CONFLICT_SHARE * seconds)
        if evidence is not None:
            return evidence
    bound = replay.run(seconds - (now() - began))
    return Evidence(bound, replay.unit, MARGIN_UNIT, replay.records())


def by_conflicts(statement: Statement, replay: Replay, seconds: float) -> Evidence | None:
    """Prove the goal of a replay by conflicts alone; None if that fails."""
    conflicts = ConflictSearch(replay, _prices(statement, replay.unit), sorted(statement.exact.believed))
    if not conflicts.run(seconds):
        return None
    return Evidence(replay.goal * replay.value, replay.unit, MARGIN_UNIT, conflicts.records())


def _prices(statement: Statement, unit: int) -> list[int]:
    """Return what the samples pay if they are given up, in units of multipliers, rounded down."""
    stated = statement.exact
    unit_value = Fraction(1, 1 << -unit)
    return [int(cost * stated.cap[code] / unit_value) for cost, code in zip(stated.cost, stated.code)]
