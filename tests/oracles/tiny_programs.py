"""Psi-learning with penalty |w|_1 on a few points by enumeration of vertices, in exact arithmetic where it matters.

The objective is piecewise linear in (w, b) and lower semicontinuous. Its pieces are divided by the hyperplanes u_i = t,
u_i = t_k and w_j = 0, which have a vertex as soon as one feature differs between two samples; it is bounded below on
each piece, so it is least at a vertex.
"""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np


def objective(X, signs, cost, loss, C, w, b):
    """|w|_1 + C sum cost l(u), all of them fractions."""
    total = sum(abs(x) for x in w)
    for row, sign, c in zip(X, signs, cost):
        u = sign * (sum(x * y for x, y in zip(row, w)) + b)
        paid = sum(Fraction(s) * max(Fraction(point) - u, 0) for s, point in loss.hinges)
        total += C * c * (Fraction(loss.cap) if u < Fraction(loss.t) else min(Fraction(loss.cap), paid))
    return total


def solved(rows, right):
    """The solution of a square system of fractions, None if it is singular."""
    size = len(rows)
    table = [[*row, r] for row, r in zip(rows, right)]
    for k in range(size):
        pivot = next((i for i in range(k, size) if table[i][k]), None)
        if pivot is None:
            return None
        table[k], table[pivot] = table[pivot], table[k]
        table[k] = [x / table[k][k] for x in table[k]]
        for i in range(size):
            if i != k and table[i][k]:
                factor = table[i][k]
                table[i] = [x - factor * y for x, y in zip(table[i], table[k])]
    return [row[-1] for row in table]


def optimum(X, signs, cost, loss, C):
    """The least objective over all (w, b), a fraction."""
    X = [[Fraction(float(x)) for x in row] for row in np.asarray(X)]
    cost, C, d = [Fraction(float(c)) for c in cost], Fraction(float(C)), len(X[0])
    planes = [([Fraction(int(j == f)) for j in range(d)] + [Fraction(0)], Fraction(0)) for f in range(d)]
    for row, sign in zip(X, signs):
        normal = [int(sign) * x for x in [*row, Fraction(1)]]
        planes += [(normal, Fraction(point)) for point in {loss.t, *(point for _, point in loss.hinges)}]
    planes = list({(tuple(normal), right) for normal, right in planes})
    points = {(0,) * (d + 1)}
    for chosen in itertools.combinations(planes, d + 1):
        point = solved([list(normal) for normal, _ in chosen], [right for _, right in chosen])
        if point is not None:
            points.add(tuple(point))
    return min(objective(X, signs, cost, loss, C, point[:-1], point[-1]) for point in points)
