"""From the relaxation (18) to an integral model: an upper bound on the integer optimum (15) of Goldberg and Eckstein.

With the lower bound of the relaxation it brackets the optimum, as their (23) does.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..observations import Observations
from ..pricing.oracles import Column
from .exact import MARGIN_SLACK


def round_relaxation(
    data: Observations, columns: list[Column], weights: NDArray, rho: float
) -> tuple[NDArray[np.float64], float]:
    """Return the best integral model among prefixes of the classifiers, and its value in (15).

    The classifiers are taken in the order of their weights; for each prefix the weights are divided by their sum,
    margins below rho count as mistakes, and every classifier used costs c_u. Takes O(observations x classifiers).
    """
    order = np.argsort(-weights, kind="stable")[: int((weights > 0).sum())]
    votes = np.column_stack([weights[k] * columns[k].h for k in order])
    total = np.cumsum(weights[order])
    margins = data.y[:, None] * np.cumsum(votes, axis=1) / total
    mistakes = data.weight @ (margins < rho - MARGIN_SLACK)
    value = mistakes + np.cumsum([columns[k].cost for k in order])
    best = int(np.argmin(value))
    kept = np.zeros(len(columns))
    kept[order[: best + 1]] = weights[order[: best + 1]] / total[best]
    return kept, float(value[best])
