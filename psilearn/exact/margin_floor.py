"""Margin floors, written once: how far below t a margin can be where the objective is below a known value.

Let a solution have objective below ``upper``. Its samples with u < t pay the cap, the price, so together they cost less
than ``upper``, and its penalty is at most what is left. Order samples of one class by their distance from x_i, and let
the (j + 1)-st be the first that is not at the cap, u >= t. The j before it pay, which leaves

    P(w) <= left_j = upper - (prices of the j nearest),

and the score of x_i differs from the score there by at most ||w|| distance_(j+1) <= radius(left_j) distance_(j+1). The
worst j counts. No bound on the intercept is needed.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

#: Part of ``upper`` and of the result by which rounding errors are allowed for.
_ROUNDING = 1e-9


def score_drop(distance: Array, price: Array, upper: float, radius: Callable[[Array], Array]) -> float:
    """Return max_j radius(left_j) distance_(j+1), an upper bound on a difference of scores; 0 without samples.

    Parameters
    ----------
    distance, price : ndarray
        Distances of the samples of one class, in the norm dual to that of w, and what each pays at the cap. Not all of
        them may be at the cap: the caller has to know why.
    upper : float
        Objective of the solutions that count.
    radius : callable
        Largest norm of w with penalty at most the argument.
    """
    if distance.size == 0:
        return 0.0
    order = np.argsort(distance, kind="stable")
    left = upper * (1.0 + _ROUNDING) - np.append(0.0, np.cumsum(price[order])[:-1])
    reach = radius(np.maximum(left, 0.0)) * distance[order]
    return float(np.max(reach[left >= 0.0], initial=0.0)) * (1.0 + _ROUNDING)
