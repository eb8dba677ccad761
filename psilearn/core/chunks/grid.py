"""Multipliers of the samples of a block on a grid of integers: their limits, their sums, and how these are changed."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ..bounds.duality import ceiling_on, fit_rows, floor_on, nearest_on, shares
from ..bounds.rounding import difference_below, integer_sum
from ..problem import Problem
from .sums import own_entries

Array = NDArray[np.float64]
Integers = NDArray[np.int64]
Table = list[list[int]]

_BITS = 53
_SMALLEST_EXPONENT = -1000


def exponent_of(peak: float, n_classes: int, has_tilt: bool) -> int:
    """Return the exponent of a grid on which multipliers up to ``peak`` keep all their digits."""
    spare = 1 + (math.ceil(math.log2(n_classes)) if has_tilt else 0)
    return max(math.frexp(peak)[1] - (_BITS - spare), _SMALLEST_EXPONENT)


@dataclass
class Totals:
    """Integers that tell how the multipliers of class a against class j can change, and what the columns sum to.

    Attributes
    ----------
    held : table
        By how much they can be lowered.
    room : list
        By how much those of class a can be raised.
    surplus : list
        Sums of the columns of -D.
    feasible : bool
        Whether every sample's limits hold an integer.
    """

    held: Table
    room: list[int]
    surplus: list[int]
    feasible: bool = True

    def plus(self, other: Totals) -> Totals:
        """Add the totals of other samples."""
        return Totals(
            [[a + b for a, b in zip(mine, theirs)] for mine, theirs in zip(self.held, other.held)],
            [a + b for a, b in zip(self.room, other.room)],
            [a + b for a, b in zip(self.surplus, other.surplus)],
            self.feasible and other.feasible,
        )


def zero_totals(k: int) -> Totals:
    """Return the totals of no sample."""
    return Totals([[0] * k for _ in range(k)], [0] * k, [0] * k)


@dataclass
class Change:
    """By how much a block lowers and raises the multipliers of class a against class j, in units of the grid."""

    lower: Table
    higher: Table

    @classmethod
    def between(cls, held: Table, wanted: Table) -> Change:
        """Return what leads from sums that are held to those that are wanted."""
        pairs = [list(zip(mine, theirs)) for mine, theirs in zip(held, wanted)]
        lower, higher = ([[max(sign * (h - w), 0) for h, w in row] for row in pairs] for sign in (1, -1))
        return cls(lower, higher)

    @classmethod
    def none(cls, k: int) -> Change:
        """Return the change that changes nothing."""
        return cls([[0] * k for _ in range(k)], [[0] * k for _ in range(k)])


@dataclass
class Grid:
    """Multipliers of some samples as integers G = -D off the own class, with their limits."""

    G: Integers
    low: Integers
    cap: Integers
    y: NDArray[np.intp]
    feasible: bool = field(default=True)

    @classmethod
    def at(cls, problem: Problem, R: Array, tilt: Array | None, exponent: int) -> Grid:
        """Put multipliers on the grid of 2^exponent, within their limits."""
        k, y = problem.n_classes, problem.y
        own = y[:, None] == np.arange(k)
        A = np.where(own, 0.0, np.maximum(-_both_columns(R, k), 0.0))
        total, upper = A.sum(axis=1), problem.limit_floors
        A *= np.where(total > upper, upper / np.where(total > 0, total, 1.0), 1.0)[:, None]
        shift = np.zeros_like(A) if tilt is None else np.where(own, 0.0, _both_columns(tilt, k))
        top = upper if tilt is None else difference_below(upper, own_entries(problem, tilt))
        low, cap = ceiling_on(shift, exponent), floor_on(top, exponent)
        low[own] = 0
        if np.any(low.sum(axis=1) > cap) or np.any(np.abs(low) > 1 << _BITS):
            return cls(low, low, cap, y, False)
        G = np.maximum(nearest_on(A + shift, exponent), low)
        G[own] = 0
        fit_rows(G, low, cap)
        return cls(G, low, cap, y)

    def totals(self, k: int) -> Totals:
        """Return what is added up over all samples."""
        out = zero_totals(k)
        out.feasible = self.feasible
        if not self.feasible:
            return out
        for a in range(k):
            m = np.flatnonzero(self.y == a)
            out.held[a] = [integer_sum(self.G[m, j] - self.low[m, j]) for j in range(k)]
            row = self.G[m].sum(axis=1)
            out.room[a] = integer_sum(self.cap[m] - row)
            out.surplus[a] += integer_sum(row)
        for j in range(k):
            out.surplus[j] -= integer_sum(self.G[:, j])
        return out

    def apply(self, change: Change, k: int) -> None:
        """Change the multipliers as far as these samples can, and take that off the change."""
        for a in range(k):
            m = np.flatnonzero(self.y == a)
            for j in range(k):
                available = self.G[m, j] - self.low[m, j]
                part = min(change.lower[a][j], integer_sum(available))
                self.G[m, j] -= shares(available, part)
                change.lower[a][j] -= part
            for j in range(k):
                available = self.cap[m] - self.G[m].sum(axis=1)
                part = min(change.higher[a][j], integer_sum(available))
                self.G[m, j] += shares(available, part)
                change.higher[a][j] -= part

    def steps(self, exponent: int) -> Array:
        """Return D (n, k)."""
        D = -self.G
        D[np.arange(self.y.size), self.y] = self.G.sum(axis=1)
        return np.ldexp(D.astype(np.float64), exponent)


def _both_columns(R: Array, k: int) -> Array:
    return np.hstack([-R, R]) if k == 2 else R
