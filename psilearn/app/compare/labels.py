"""The label audit of the table that is compared, so that the comparison and the audit tell one story."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..audit import find_label_issues
from ..encoding import TableEncoder
from ..tables import Understanding

#: Seconds an audit takes for each row, up to as many rows; beyond, its fits see a part of the rows. Up to as many as the
#: last, twice that: the rows are divided several times.
SECONDS_PER_ROW, MOST_ROWS, FEW_ROWS = 0.0035, 4000, 1000
#: Part of the budget that the audit may take; what would take longer is left to ``psilearn audit``.
SHARE = 0.4


def audit_seconds(rows: int) -> float:
    """Return about how long an audit takes."""
    return SECONDS_PER_ROW * (min(rows, MOST_ROWS) + min(rows, FEW_ROWS))


def is_audited(rows: int, budget: float) -> bool:
    """Whether there is time for an audit of the labels within the budget of a comparison (seconds)."""
    return rows <= 20 * MOST_ROWS and audit_seconds(rows) <= SHARE * budget


def audited(
    data: Understanding, y: NDArray, flipped: NDArray[np.intp], seed: int, progress: Callable[[str, float], None]
) -> pd.DataFrame | None:
    """Return all rows, the most suspicious first, with ``row`` and ``id``.

    The labels ``y`` are those that methods saw, ``flipped`` the rows whose label was changed.
    """
    X = TableEncoder(numbers=data.numbers).fit_transform(data.frame)
    try:
        issues = find_label_issues(
            X, y, groups=data.groups, random_state=seed, progress=lambda _, done: progress("label audit", done)
        )
    except ValueError:  # a class too small to be held out: the methods are compared all the same
        return None
    issues.insert(0, "row", data.rows[issues["index"]])
    if data.ids is not None:
        issues.insert(1, "id", data.ids.iloc[issues["index"]].to_numpy())
    issues["flipped"] = np.isin(issues["index"], flipped)
    return issues
