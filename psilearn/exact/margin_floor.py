"""Margin floors, written once: how far below t a margin can be where the objective is below a known value."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from .two_class.node.node_jit import Model

Array = NDArray[np.float64]


def margin_bounds(model: Model, upper: float, most: float = math.inf) -> tuple[Array, Array]:
    """Bounds low <= u <= high on the margins of every solution better than ``upper`` with penalty at most ``most``."""
    n = model.y.size
    most = min(most, upper)
    rho = math.sqrt(2.0 * most) if model.norm == 2 else most
    low, high = np.full(n, -np.inf), np.full(n, np.inf)
    for i in range(n):
        for own in (True, False):
            rivals = np.flatnonzero((model.y == model.y[i]) == own)
            if rivals.size == 0:
                continue
            rivals = rivals[np.argsort(model.dist[i, rivals], kind="stable")]
            spent = np.cumsum(model.cost[rivals]) * model.cap
            last = min(int(np.searchsorted(spent, upper * (1.0 + 1e-12))), rivals.size - 1)
            reach = rho * model.dist[i, rivals[last]]
            if own:
                low[i] = model.t - reach
            else:
                high[i] = reach - model.t
    return low, high
