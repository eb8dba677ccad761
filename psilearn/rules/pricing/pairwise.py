"""All monomials of order at most 2, valued outright from sums over pairs of literals.

For a sign s the reward (27) of a conjunction T is

    f(T) = sum over points satisfying T of (s net_w + v gained there) - sum {v_p : both ends of p satisfy T} - c(|T|),

so the values of all conjunctions of two literals are the entries of one matrix, a sum of outer products over points
minus one over pairs. The second one and what the pairs gain do not depend on w: a program that prices twice with the
same pairs, once with w and once without, pays for it once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class PairEnds:
    """Points at the positive and negative ends of pairs (different points), with their values v."""

    positive: NDArray[np.intp]
    negative: NDArray[np.intp]
    value: Array


class PairwiseSums:
    """Sums over points and pairs for conjunctions of up to ``order`` (1 or 2) literals.

    ``points`` holds the distinct rows (n_points, N) as floats; literal l < N is attribute l, l + N its negation. Sums
    are vectors over the 2N literals for order 1 and symmetric matrices (2N, 2N) for order 2.
    """

    def __init__(self, points: Array, order: int) -> None:
        self.points, self.order = points, order

    def over_points(self, value: NDArray) -> Array:
        """Values of the points that satisfy each conjunction."""
        single, total = value @ self.points, float(value.sum())
        if self.order == 1:
            return np.r_[single, total - single]
        both = (self.points * value[:, None]).T @ self.points
        mixed = single[:, None] - both
        return np.block([[both, mixed], [mixed.T, total - single - mixed]])

    def over_pairs(self, ends: PairEnds) -> Array:
        """Values of the pairs both of whose ends satisfy each conjunction."""
        first, second = self.points[ends.positive], self.points[ends.negative]
        literals = np.hstack([first * second, (1.0 - first) * (1.0 - second)])
        if self.order == 1:
            return ends.value @ literals
        return (literals * ends.value[:, None]).T @ literals

    def rewards(self, ends: PairEnds | None, symmetric: bool) -> dict[int, Array | float]:
        """What the pairs add to the values of each sign."""
        if ends is None or not ends.value.size:
            return {1: 0.0, -1: 0.0}
        lost = self.over_pairs(ends)
        m = self.points.shape[0]
        gained = [
            np.bincount(end, ends.value, minlength=m).astype(np.float64) for end in (ends.positive, ends.negative)
        ]
        out: dict[int, Array | float] = {1: self.over_points(gained[0]) - lost, -1: 0.0}
        if symmetric:
            out[-1] = self.over_points(gained[1]) - lost
        return out
