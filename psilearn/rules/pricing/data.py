"""What pricing works on: a 0/1 matrix prepared for many calls, pair rewards, and monomials with their values."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .chains import Chains
from .pairwise import PairEnds, PairwiseSums

#: Values closer than this, relative to the total weight, count as equal.
RELATIVE_TOLERANCE = 1e-12


class Monomial(NamedTuple):
    """A signed conjunction: ``literals`` l < N ask attribute l to be 1, l >= N ask attribute l - N to be 0."""

    literals: tuple[int, ...]
    sign: int

    @property
    def order(self) -> int:
        """Number of literals."""
        return len(self.literals)

    def covers(self, A: ArrayLike) -> NDArray[np.bool_]:
        """Whether each row of the 0/1 matrix A satisfies all literals."""
        A = np.asarray(A)
        covered = np.ones(A.shape[0], dtype=bool)
        for l in self.literals:
            covered &= A[:, l] == 1 if l < A.shape[1] else A[:, l - A.shape[1]] == 0
        return covered


class CutPoint(NamedTuple):
    """One signed condition on codes (see :mod:`..large.cut_points`): that of a chain is above ``place``, or not."""

    chain: int
    place: int
    answer: bool
    sign: int

    @property
    def order(self) -> int:
        """Number of conditions."""
        return 1

    def covers(self, codes: ArrayLike) -> NDArray[np.bool_]:
        """Whether each row of codes satisfies the condition."""
        return (np.asarray(codes)[:, self.chain] > self.place) == self.answer


@dataclass(frozen=True)
class Pairs:
    """Pair rewards v >= 0: a monomial earns v[p] if it covers ``positive[p]`` and not ``negative[p]``.

    A monomial of sign -1 earns them for the opposite (covers the negative, not the positive) if ``symmetric``, and
    nothing otherwise.
    """

    positive: NDArray[np.intp]
    negative: NDArray[np.intp]
    value: NDArray[np.float64]
    symmetric: bool = True


@dataclass(frozen=True)
class Priced:
    """The best monomials found, a bound on every monomial's value, nodes, and whether the search was completed.

    Every monomial has value <= ``bound``. With ``is_exact`` it is the best value found, or the threshold if nothing
    beats it.
    """

    monomials: tuple[Monomial, ...]
    values: NDArray[np.float64]
    bound: float
    n_nodes: int
    is_exact: bool


class Attributes:
    """A 0/1 matrix with labels, prepared once for many pricing calls."""

    def __init__(self, A: ArrayLike, y: ArrayLike) -> None:
        A = np.asarray(A, dtype=np.uint8)
        self.y = np.where(np.asarray(y) > 0, 1, -1)
        self.n_attributes = A.shape[1]
        self.A = A
        # packed rows have the same order as the rows themselves
        _, self.representative, self.point = np.unique(
            np.packbits(A, axis=1), axis=0, return_index=True, return_inverse=True
        )
        self.point = self.point.ravel()
        self.n_points = self.representative.size
        self.chains = Chains(A[self.representative])
        self.sums = PairwiseSums(A[self.representative], self.chains)
        self._kept: tuple[Pairs | None, int, dict[int, NDArray | float]] = (None, -1, {1: 0.0, -1: 0.0})
        self._admitted: dict[bool, tuple[NDArray, NDArray]] = {}

    @cached_property
    def literals(self) -> NDArray[np.uint8]:
        """The attributes and their negations, (M, 2N)."""
        return np.ascontiguousarray(np.hstack([self.A, 1 - self.A]))

    @cached_property
    def opposite(self) -> NDArray[np.uint8]:
        """Which literals are each other's negations."""
        opposite = np.eye(2 * self.n_attributes, k=self.n_attributes, dtype=np.uint8)
        return opposite | opposite.T

    @cached_property
    def redundant(self) -> NDArray[np.uint8]:
        """Pairs of literals whose conjunction is one of them, or impossible by definition."""
        both = self.sums.over_points(np.ones(self.n_points), 2)
        count = np.diag(both)
        implied = (both == count) | (both == count[:, None])
        return np.ascontiguousarray(self.opposite | implied)

    def labelled(self, value: NDArray) -> Attributes:
        """The same observations with the signs of ``value`` for labels."""
        _ = self.redundant  # computed once for all of them
        other = copy.copy(self)
        other.y = np.where(value >= 0, 1, -1)
        return other

    def apart(self, pairs: Pairs) -> PairEnds:
        """The pairs of different points; a pair of equal points cancels its own reward."""
        first, second = self.point[pairs.positive], self.point[pairs.negative]
        apart = first != second
        return PairEnds(first[apart], second[apart], pairs.value[apart])

    def rewards(self, pairs: Pairs | None, order: int) -> dict[int, NDArray | float]:
        """What the pairs add to all values; kept until other pairs come, since programs price twice with the same."""
        if pairs is None:
            return {1: 0.0, -1: 0.0}
        if self._kept[0] is not pairs or self._kept[1] != order:
            self._kept = pairs, order, self.sums.rewards(self.apart(pairs), pairs.symmetric, order)
        return self._kept[2]

    def admitted(self, shortest: bool) -> tuple[NDArray, NDArray]:
        """Pairs of literals that may stand together, the shorter ones of equal conjunctions if ``shortest``."""
        if shortest not in self._admitted:
            conflict = self.redundant if shortest else self.opposite
            first, second = np.nonzero(np.triu(conflict == 0, 1))
            self._admitted[shortest] = first, second
        return self._admitted[shortest]

    def rows(self, sign: int, weight: NDArray, pairs: Pairs | None) -> tuple[NDArray, NDArray, int]:
        """Literal vectors, absolute values and number of gain rows of the reward (27) for one sign.

        With P the observations of class ``sign`` and N the others, P' and N' the covered ones,

            f = w(P') - w(N') + v(P', N - N') = sum_{P'} (w_i + v(i, N)) - w(N') - v(P', N'),

        so a pair is one more cost row, covered when both its ends are. Rows that are equal in all attributes are
        covered together or not at all, so their values are added: a pair of equal points cancels its own reward.
        """
        net = np.bincount(self.point, sign * self.y * weight, minlength=self.n_points)
        extra, cost = np.empty((0, self.literals.shape[1]), np.uint8), np.empty(0)
        if pairs is not None and (sign > 0 or pairs.symmetric) and pairs.value.size:
            ends = self.apart(pairs)
            net += np.bincount(ends.positive if sign > 0 else ends.negative, ends.value, minlength=self.n_points)
            first, second = (self.literals[self.representative[end]] for end in (ends.positive, ends.negative))
            extra, cost = first & second, ends.value
        tolerance = RELATIVE_TOLERANCE * max(float(np.abs(net).sum()), np.finfo(float).tiny)
        # largest first: sums that are stopped at a limit reach it sooner
        gains, costs = (np.argsort(-part, kind="stable")[: np.sum(part > tolerance)] for part in (net, -net))
        points = self.literals[self.representative[np.r_[gains, costs]]]
        literals = np.ascontiguousarray(np.vstack([points, extra[cost > tolerance]]))
        return literals, np.r_[np.abs(net[gains]), np.abs(net[costs]), cost[cost > tolerance]], gains.size
