"""Multipliers between groups of samples: the best ones make the bound by groups largest.

Group g adds <lambda_g, (w, b)> to its share of the problem. With sum_g lambda_g = 0 these terms cancel where all groups
have the same (w, b), so the sum of the groups' optima V_g(lambda_g) is still a lower bound, for any such multipliers
(Lagrangian decomposition; Guignard and Kim, Lagrangean decomposition, 1987). It is concave in them. Every point
z = (w, b) that costs group g ``cost`` without its term is a cut, V_g(lambda_g) <= cost + <lambda_g, z>. A proximal
bundle method (Lemaréchal, Nemirovskii and Nesterov, New variants of bundle methods, 1995) maximises

    sum_g min_k (cost_gk + <lambda_g, z_gk>)  -  1/(2 step) ||lambda - centre||^2     over  sum_g lambda_g = 0,

whose dual chooses a mean z_g of each group's points such that the means are cheap and differ little:

    lambda_g = centre_g + step (z_g - mean of all z).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

#: Cuts of a group that are kept, and steps of the accelerated gradient method for their weights.
_CUTS, _STEPS = 30, 300
#: Part of the predicted rise from which the step grows, its growth, and its shrinking where the value falls.
_GOOD, _GROWTH, _SHRINKING = 0.5, 1.5, 0.7
#: Squared distance of points that are the same, and the part of the gap that the next multipliers must promise.
_NO_SPREAD, _LEAST_RISE = 1e-12, 1e-4
#: Multipliers are whole multiples of 2^-_BITS of the largest, so that sums of them are exact.
_BITS = 40


def balanced(multipliers: Array) -> Array:
    """Round multipliers (groups, coordinates) so that their sum is exactly 0 in every coordinate."""
    if not multipliers.any():
        return np.zeros_like(multipliers)
    unit = 2.0 ** (math.frexp(float(np.abs(multipliers).max()))[1] - _BITS)
    rounded = np.round(multipliers / unit) * unit
    rounded[-1] = -rounded[:-1].sum(axis=0)
    return rounded


class Bundle:
    """The cuts, the best multipliers so far (``centre``), and how far the next ones may be.

    Parameters
    ----------
    centre : ndarray, shape (groups, coordinates)
        Multipliers to begin with, balanced.
    goal : float
        A value that the bound never exceeds.
    """

    def __init__(self, centre: Array, goal: float) -> None:
        self.now = self.centre = centre
        self.goal, self.value, self.predicted, self.step = goal, -math.inf, math.inf, 0.0
        self.points: list[list[Array]] = [[] for _ in centre]
        self.costs: list[list[float]] = [[] for _ in centre]

    def add(self, group: int, point: Array, cost: float) -> None:
        """Add a cut; the oldest is dropped where there are too many."""
        points, costs = self.points[group], self.costs[group]
        points.append(point)
        costs.append(cost)
        del points[:-_CUTS], costs[:-_CUTS]

    def next(self, value: float) -> Array | None:
        """Return the next multipliers, None if the cuts promise nothing better.

        ``value`` is what the present multipliers prove; their cuts are the last ones.
        """
        if self.step == 0.0:
            points = np.array([points[-1] for points in self.points])
            spread = float(np.sum((points - points.mean(axis=0)) ** 2))
            self.step = max(self.goal - value, 0.0) / max(spread, _NO_SPREAD)
        elif value <= self.value:
            self.step *= _SHRINKING
        elif value - self.value > _GOOD * (self.predicted - self.value):
            self.step *= _GROWTH
        if value > self.value:
            self.value, self.centre = value, self.now
        self.now = balanced(self._proximal_point())
        lines = zip(self.points, self.costs, self.now)
        self.predicted = math.fsum(min(np.asarray(points) @ row + costs) for points, costs, row in lines)
        return self.now if self.predicted > self.value + _LEAST_RISE * abs(self.goal - self.value) else None

    def _proximal_point(self) -> Array:
        """Solve the dual of the problem above by an accelerated gradient method on the weights of the cuts."""
        points = [np.asarray(points) for points in self.points]
        costs = [np.asarray(cost) + z @ row for cost, z, row in zip(self.costs, points, self.centre)]
        spread = max(float(np.linalg.norm(z - z.mean(axis=0), 2)) for z in points)
        rate = 1.0 / (self.step * max(spread * spread, _NO_SPREAD))
        weights = [np.full(cost.size, 1.0 / cost.size) for cost in costs]
        ahead, momentum = weights, 1.0
        for _ in range(_STEPS):
            apart = self.step * self._differences(points, ahead)
            moved = [_on_simplex(p - rate * (c + z @ row)) for p, c, z, row in zip(ahead, costs, points, apart)]
            following = 0.5 * (1.0 + math.sqrt(1.0 + 4.0 * momentum * momentum))
            share = (momentum - 1.0) / following
            ahead = [new + share * (new - old) for new, old in zip(moved, weights)]
            weights, momentum = moved, following
        return self.centre + self.step * self._differences(points, weights)

    @staticmethod
    def _differences(points: list[Array], weights: list[Array]) -> Array:
        means = np.array([p @ z for p, z in zip(weights, points)])
        return means - means.mean(axis=0)


def _on_simplex(v: Array) -> Array:
    """Project onto the vectors that are not negative and sum to 1."""
    falling = np.sort(v - v.max())[::-1]
    excess = (np.cumsum(falling) - 1.0) / np.arange(1, v.size + 1)
    return np.maximum(v - v.max() - excess[np.flatnonzero(falling > excess)[-1]], 0.0)
