"""From multipliers in floating point to integer multipliers that satisfy every condition of a leaf exactly.

Every repair moves multipliers towards zero, which keeps them inside their limits, so it always succeeds.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.bounds.duality import l1_shrinkage
from .check import Features

Array = NDArray[np.float64]
Checked = Any  # a Problem of the checker, which has no annotations
#: Bits of a multiplier as large as the largest cost, and least bits of one as large as the smallest.
_BITS, _LEAST_BITS = 46, 30
#: Attempts at making multipliers feasible for an l1 penalty; each asks for more distance from the limit.
_ATTEMPTS = 40


def quantum_for(costs: Array) -> int:
    """Return q so that multiples of 2^-q resolve multipliers of the size of the costs."""
    positive = costs[costs > 0]
    wanted = max(_BITS - math.log2(positive.max()), _LEAST_BITS - math.log2(positive.min()))
    return int(min(max(0, math.ceil(wanted)), 1000))


def two_class_leaf(problem: Checked, alpha: Array, regions: list[Any]) -> list[int]:
    """Round multipliers, clip them to what the regions allow, and balance sum_i y_i alpha_i = 0."""
    room = problem.M - problem.U - problem.q
    leaf = []
    for value, region in zip(alpha, regions):
        a = round(math.ldexp(float(value), problem.q))
        a = max(a, 0) if region.least is not None else a
        leaf.append(min(a, region.most >> room) if region.most is not None else a)
    signs = [1 if y == 1 else -1 for y in problem.y]
    surplus = sum(s * a for s, a in zip(signs, leaf))
    side = 1 if surplus > 0 else -1
    rich = sorted((i for i, a in enumerate(leaf) if signs[i] * a * side > 0), key=lambda i: -abs(leaf[i]))
    _take(leaf, rich, abs(surplus))
    return leaf


def _take(values: list[int], places: list[int], amount: int) -> None:
    """Move values at some places towards zero by ``amount`` in all."""
    for i in places:
        part = min(amount, abs(values[i]))
        values[i] -= part if values[i] > 0 else -part
        amount -= part
        if amount == 0:
            return


def k_class_leaf(problem: Checked, A: Array, regions: list[Any]) -> list[list[int]]:
    """Round multipliers A_ij >= 0 of k classes, clip their sums, and balance the columns of R."""
    room = problem.M - problem.U - problem.q
    leaf = []
    for row, y, region in zip(A, problem.y, regions):
        a = [0 if j == y else max(0, round(math.ldexp(float(v), problem.q))) for j, v in enumerate(row)]
        if region.most is not None:
            excess = sum(a) - (region.most >> room)
            _take(a, sorted(range(problem.k), key=lambda j: -a[j]), max(0, excess))
        leaf.append(a)
    _balance_classes(problem, leaf)
    return leaf


def _balance_classes(problem: Checked, leaf: list[list[int]]) -> None:
    """A_ij is a flow from class y_i to class j; remove paths from classes with a surplus to classes with a deficit."""
    k = problem.k
    flow = [[sum(a[j] for a, y in zip(leaf, problem.y) if y == c) for j in range(k)] for c in range(k)]
    net = [sum(flow[c]) - sum(flow[a][c] for a in range(k)) for c in range(k)]
    removed = [[0] * k for _ in range(k)]
    while any(net):
        path = _path(flow, net)
        amount = min([net[path[0]], -net[path[-1]], *(flow[a][b] for a, b in itertools.pairwise(path))])
        for a, b in itertools.pairwise(path):
            flow[a][b] -= amount
            removed[a][b] += amount
        net[path[0]] -= amount
        net[path[-1]] += amount
    for c in range(k):
        for j in range(k):
            members = [i for i, y in enumerate(problem.y) if y == c]
            members = [i for _, i in sorted((-leaf[i][j], i) for i in members)]
            column = [leaf[i][j] for i in members]
            _take(column, list(range(len(column))), removed[c][j])
            for i, value in zip(members, column):
                leaf[i][j] = value


def _path(flow: list[list[int]], net: list[int]) -> list[int]:
    """Return classes along positive flow from one with a surplus to one with a deficit; flow conservation has one."""
    start = max(range(len(net)), key=lambda c: net[c])
    paths, seen = [[start]], {start}
    for path in paths:
        if net[path[-1]] < 0:
            return path
        for c, amount in enumerate(flow[path[-1]]):
            if amount > 0 and c not in seen:
                seen.add(c)
                paths.append([*path, c])
    raise ArithmeticError("no path from surplus to deficit")  # cannot be: flows decompose into paths and cycles


def best_leaf(problem: Checked, multipliers: Array, regions: list[Any]) -> tuple[Fraction, dict] | None:
    """Return (bound, record) of a leaf near ``multipliers``: alpha (n,) or A (n, k); None if no attempt is feasible."""
    make = two_class_leaf if problem.k == 2 else k_class_leaf
    factor = 1.0
    for attempt in range(_ATTEMPTS):
        leaf = make(problem, factor * multipliers, regions)
        shift = None if problem.k == 2 else _shift(problem, leaf)
        bound = problem.leaf_bound(leaf, regions, shift)
        if bound is not None:
            record = {"leaf": leaf} if shift is None else {"leaf": leaf, "shift": shift}
            return bound, record
        factor *= _shrinkage(problem, leaf) * (1.0 - 2.0 ** (min(attempt, 30) - 44))
    return None


def _sums(problem: Checked, leaf: list) -> list[list[int]]:
    """Return v_j = sum_i R_ij x_i in integers."""
    _, columns = problem.columns(leaf)
    return [[sum(r * x for r, x in zip(R, column)) for column in problem.space.columns] for R in columns]


def _limits(problem: Checked) -> Array:
    """Return the l1 weights in the units of the sums; inf for banned coefficients."""
    unit = problem.space.e + problem.q
    return np.array([[math.inf if p is None else math.ldexp(float(p), unit) for p in row] for row in problem.space.l1])


def _shrinkage(problem: Checked, leaf: list) -> float:
    sums = np.array(_sums(problem, leaf), dtype=np.float64)
    return l1_shrinkage(sums, np.zeros_like(sums), _limits(problem))


def _shift(problem: Checked, leaf: list) -> list[int] | None:
    """Return per feature the integer nu that makes the conjugate least; None where 0 is the best.

    It is the least nu with sum_j sign(v_j - nu) (|v_j - nu| - l1_j)_+ <= 0; where nothing need be paid, nothing is.
    """
    if not isinstance(problem.space, Features) or not any(p is None or p > 0 for row in problem.space.l1 for p in row):
        return None
    unit = problem.space.e + problem.q
    moves = []
    for v, prices in zip(zip(*_sums(problem, leaf)), zip(*problem.space.l1)):
        pairs = [(x, math.floor(p * 2**unit)) for x, p in zip(v, prices) if p is not None]
        low, high = min((x for x, _ in pairs), default=0), max((x for x, _ in pairs), default=0)
        while low < high:
            middle = (low + high) // 2
            if sum(max(x - middle - p, 0) - max(middle - x - p, 0) for x, p in pairs) > 0:
                low = middle + 1
            else:
                high = middle
        moves.append(low)
    return moves
