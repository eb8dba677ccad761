"""All monomials of order at most 2, valued outright from sums over pairs of literals.

For a sign s the reward (27) of a conjunction T is

    f(T) = sum over points satisfying T of (s net_w + v gained there) - sum {v_p : both ends of p satisfy T} - c(|T|),

so the values of all conjunctions of two literals are the entries of one matrix, a sum of outer products over points
minus one over pairs. The second one and what the pairs gain do not depend on w: a program that prices twice with the
same pairs, once with w and once without, pays for it once.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from .chains import Chains

Array = NDArray[np.float64]


@dataclass(frozen=True)
class PairEnds:
    """Points at the positive and negative ends of pairs (different points), with their values v."""

    positive: NDArray[np.intp]
    negative: NDArray[np.intp]
    value: Array


class PairwiseSums:
    """Sums over points and pairs of points for conjunctions of up to ``order`` (1 or 2) literals.

    ``points`` holds the distinct rows (n_points, N); literal l < N is attribute l, l + N its negation. Sums are vectors
    over the 2N literals for order 1 and symmetric matrices (2N, 2N) for order 2.
    """

    def __init__(self, points: NDArray, chains: Chains) -> None:
        self.rows, self.chains = points, chains

    @cached_property
    def points(self) -> Array:
        """The rows as floats, for products."""
        return self.rows.astype(np.float64)

    def over_points(self, value: NDArray, order: int) -> Array:
        """Values of the points that satisfy each conjunction."""
        total = float(value.sum())
        if order == 1:
            single = value @ self.points
            return np.r_[single, total - single]
        both = self.chains.sums_of_pairs(value) if self.chains.pays else (self.points * value[:, None]).T @ self.points
        single = np.diag(both)
        mixed = single[:, None] - both
        return np.block([[both, mixed], [mixed.T, total - single - mixed]])

    def over_pairs(self, ends: PairEnds, order: int) -> Array:
        """Values of the pairs both of whose ends satisfy each conjunction."""
        first, second = self.points[ends.positive], self.points[ends.negative]
        literals = np.hstack([first * second, (1.0 - first) * (1.0 - second)])
        if order == 1:
            return ends.value @ literals
        return (literals * ends.value[:, None]).T @ literals

    def rewards(self, ends: PairEnds | None, symmetric: bool, order: int) -> dict[int, Array | float]:
        """What the pairs add to the values of each sign."""
        if ends is None or not ends.value.size:
            return {1: 0.0, -1: 0.0}
        lost = self.over_pairs(ends, order)
        m = len(self.rows)
        gained = [
            np.bincount(end, ends.value, minlength=m).astype(np.float64) for end in (ends.positive, ends.negative)
        ]
        out: dict[int, Array | float] = {1: self.over_points(gained[0], order) - lost, -1: 0.0}
        if symmetric:
            out[-1] = self.over_points(gained[1], order) - lost
        return out
