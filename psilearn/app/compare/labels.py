"""The label audit of the table that is compared, so that the comparison and the audit tell one story."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..audit import find_label_issues
from ..encoding import TableEncoder
from ..tables import Understanding

#: Seconds an audit of two classes takes: for itself, and for each row, up to as many; beyond, its fits see a part of
#: them. Few rows take twice that: they are divided several times. Measured on tables of 120 to 2,000 rows.
SECONDS, SECONDS_PER_ROW, MOST_ROWS, FEW_ROWS = 2.0, 0.0035, 4000, 1000
#: Part of the budget that the audit may take; what would take longer is left to ``psilearn audit``.
SHARE = 0.4


def audit_seconds(rows: int, classes: int) -> float:
    """Return about how long an audit takes."""
    return (SECONDS + SECONDS_PER_ROW * (min(rows, MOST_ROWS) + min(rows, FEW_ROWS))) * (classes / 2) ** 0.5


def is_audited(rows: int, classes: int, budget: float) -> bool:
    """Whether there is time for an audit of the labels within the budget of a comparison (seconds)."""
    return rows <= 20 * MOST_ROWS and audit_seconds(rows, classes) <= SHARE * budget


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
