"""Margin floors, written once: how far below t a margin can be where the objective is below a known value.

Let a solution have objective below ``upper``. Its samples with u < t pay the cap, the price, so together they cost less
than ``upper``, and its penalty is at most what is left. Order samples of one class by their distance from x_i, and let
the (j + 1)-st be the first that is not at the cap, u >= t. The j before it pay, which leaves

    P(w) <= left_j = upper - (prices of the j nearest),

and the score of x_i differs from the score there by at most ||w|| distance_(j+1) <= radius(left_j) distance_(j+1). The
worst j counts. No bound on the intercept is needed.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

#: Part of ``upper`` and of the result by which rounding errors are allowed for.
_ROUNDING = 1e-9


def score_drop(
    distance: Array, cost: Array, cap: float, upper: float, radius: float, is_quadratic: bool
) -> Array:  # fmt: skip
    """Return max_j radius(left_j) distance_(j+1), an upper bound on a difference of scores; 0 without samples.

    Parameters
    ----------
    distance, cost : ndarray
        Distances of the samples of one class from one place or (in rows) from several, in the norm dual to that of w,
        and their costs. Not all of them may be at the cap: the caller has to know why.
    cap : float
        Loss of a sample at the cap.
    upper : float
        Objective of the solutions that count.
    radius : float
        Largest norm of w with P(w) <= ``upper``.
    is_quadratic : bool
        Whether P grows with the square of the norm, or with the norm itself.
    """
    if distance.shape[-1] == 0:
        return np.zeros(distance.shape[:-1])
    order = np.argsort(distance, axis=-1, kind="stable")
    spent = np.zeros_like(distance)
    spent[..., 1:] = np.cumsum(cost[order], axis=-1)[..., :-1] * cap
    left = 1.0 - spent / (upper * (1.0 + _ROUNDING) + 1e-300)
    share = np.sqrt(np.maximum(left, 0.0)) if is_quadratic else left
    reach = np.where(left >= 0.0, share * np.take_along_axis(distance, order, -1), 0.0)
    return reach.max(axis=-1) * radius * (1.0 + _ROUNDING)
