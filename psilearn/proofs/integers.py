"""Dual multipliers on a grid of integers: feasible exactly, not up to rounding.

Floating-point multipliers come in, integers times 2^unit go out, with

    two classes   sum_i y_i a_i = 0,   0 <= a_i <= limit_i                       (the intercept is free)
    k classes     a_ij >= 0,  sum_j a_ij <= limit_i,  columns of R balanced  (R_{i y_i} = sum_j a_ij, R_ij = -a_ij)

Integers have no rounding errors, so weak duality holds as it stands.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

#: Bits of the largest multiplier of a convex proof, and of one of the many of a tree: enough for a bound whose last
#: digits do not matter, and short in the file.
FINE_BITS, COARSE_BITS = 70, 40


def unit_of(largest: float, bits: int) -> int:
    """Return the exponent e <= 0 for which a number of size ``largest`` has about ``bits`` bits in units of 2^e."""
    return min(0, math.frexp(largest)[1] - bits) if largest > 0 else 0


def scaled(value: float, unit: int) -> int:
    """Return the integer nearest to value / 2^unit (floor for the exact half)."""
    p, q = float(value).as_integer_ratio()
    return ((p << (1 - unit)) // q + 1) >> 1


def floor_units(value: Fraction, unit: int) -> int:
    """Return the largest integer not above value / 2^unit."""
    return (value.numerator << -unit) // value.denominator


def balance_two_class(a: list[int], signs: Sequence[int], limits: Sequence[int]) -> list[int]:
    """Clip to [0, limit] and take the surplus off the richer side, in proportion, the rest from the largest."""
    a = [min(max(x, 0), limit) for x, limit in zip(a, limits)]
    surplus = sum(s * x for s, x in zip(signs, a))
    side = 1 if surplus > 0 else -1
    rich = sorted((i for i, s in enumerate(signs) if s == side and a[i] > 0), key=lambda i: -a[i])
    surplus, total = abs(surplus), sum(a[i] for i in rich)
    for i in rich:
        if total:
            a[i] -= a[i] * surplus // total
    surplus = abs(sum(s * x for s, x in zip(signs, a)))
    for i in rich:
        cut = min(a[i], surplus)
        a[i], surplus = a[i] - cut, surplus - cut
    return a


def balance_k_class(A: list[list[int]], code: Sequence[int], limits: Sequence[int], k: int) -> list[list[int]]:
    """Clip, then move weight along paths of classes until every column balances.

    Raising a_ij (i in class c) moves one unit from column j to column c; lowering it moves one back. All multipliers
    zero is balanced, so lowering alone always suffices in the end; what cannot be moved otherwise is lowered.
    """
    for i, row in enumerate(A):
        row[:] = [0 if j == code[i] else max(x, 0) for j, x in enumerate(row)]
        total = sum(row)
        if total > limits[i]:
            row[:] = [x * limits[i] // total for x in row]
    while True:
        sums = _column_sums(A, code, k)
        rich = max(range(k), key=lambda j: sums[j])
        if sums[rich] == 0:
            return A
        path = _path(A, code, limits, sums, rich)
        steps = list(itertools.pairwise(path))
        amount = min([sums[rich], -sums[path[-1]], *(_capacity(A, code, limits, p, q) for p, q in steps)])
        for p, q in steps:
            _move(A, code, limits, p, q, amount)


def _column_sums(A: list[list[int]], code: Sequence[int], k: int) -> list[int]:
    sums = [0] * k
    for own, row in zip(code, A):
        sums[own] += sum(row)
        for j, x in enumerate(row):
            sums[j] -= x
    return sums


def _capacity(A: list[list[int]], code: Sequence[int], limits: Sequence[int], p: int, q: int) -> int:
    """How much can go from column p to column q: by lowering a_iq of class p, or by raising a_ip of class q."""
    lower = sum(row[q] for own, row in zip(code, A) if own == p)
    return lower + sum(limits[i] - sum(A[i]) for i, own in enumerate(code) if own == q)


def _path(A: list[list[int]], code: Sequence[int], limits: Sequence[int], sums: list[int], start: int) -> list[int]:
    """A shortest path of classes with capacity from a rich column to a poor one."""
    before, queue = {start: start}, [start]
    for p in queue:
        if sums[p] < 0:
            path = [p]
            while path[-1] != start:
                path.append(before[path[-1]])
            return path[::-1]
        for q in range(len(sums)):
            if q not in before and _capacity(A, code, limits, p, q) > 0:
                before[q] = p
                queue.append(q)
    raise ArithmeticError("no path between unbalanced columns")


def _move(A: list[list[int]], code: Sequence[int], limits: Sequence[int], p: int, q: int, amount: int) -> None:
    for i in sorted((i for i, own in enumerate(code) if own == p), key=lambda i: -A[i][q]):
        step = min(amount, A[i][q])
        A[i][q], amount = A[i][q] - step, amount - step
    for i, own in enumerate(code):
        if amount and own == q:
            step = min(amount, limits[i] - sum(A[i]))
            A[i][p], amount = A[i][p] + step, amount - step


def to_integers(values: NDArray[np.float64], unit: int) -> list[int]:
    """Round an array to integers in units of 2^unit."""
    return [scaled(x, unit) for x in values.tolist()]
