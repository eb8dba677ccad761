"""Which sample moves next in a dual ascent: the one that violates its optimality condition most.

Looking for it takes longer than a move. So those found to violate theirs are listed, and after a move only they are
checked again, until all are satisfied.
"""

from __future__ import annotations

import numpy as np

from ....core._jit import allocating_inner, inner
from .active_set_jit import LISTED, dot
from .pieces_jit import slope_above, slope_below

#: A margin this close to where it should be is there (data are scaled to unit size).
MARGIN_TOLERANCE = 1e-9


@allocating_inner
def margins(a, y, w, b, u):
    """Write the margins of all samples into u."""
    np.dot(a, w, u)
    for i in range(u.size):
        u[i] += y[i] * b[0]


@inner
def most_violated(a, y, alpha, w, b, u, terms, basis):
    """Margins of all samples, and (sample, direction, goal, drift, tolerance): which should move next, n if none.

    A multiplier outside its range comes first and must reach the goal, the end of the range; else goal is infinite.
    Samples that should move are listed, for the next pivots.
    """
    n = alpha.size
    basis.size[2] = 0
    margins(a, y, w, b, u)
    size = 0.0
    for i in range(n):
        size += abs(alpha[i])
    # Margins carry the rounding errors of sum_i alpha_i a_i.
    tolerance = MARGIN_TOLERANCE + 1e-14 * size
    worst, who, sign, goal, drift = tolerance, n, 1.0, np.inf, 0.0
    for i in range(n):
        low, high = terms.vert[i, 0], terms.vert[i, terms.number[i]]
        if alpha[i] > high:
            worst, who, sign, goal = np.inf, i, -1.0, high
            continue
        if alpha[i] < low:
            worst, who, sign, goal = np.inf, i, 1.0, low
            continue
        r = basis.place[i]
        if r >= 0:
            drift = max(drift, abs(u[i] - terms.tau[i, basis.piece[r]]))
            continue
        violation, direction = _violation(i, u[i], alpha, terms)
        if violation > tolerance and basis.size[2] < LISTED:
            basis.listed[basis.size[2]] = i
            basis.size[2] += 1
        if violation > worst:
            worst, who, sign = violation, i, direction
    if worst == np.inf:
        basis.size[2] = 0
    return who, sign, goal, drift if drift > max(tolerance, 1e-3 * worst) else 0.0, tolerance


@inner
def _violation(i, u, alpha, terms):
    """By how much the margin u of a sample that is no member misses its optimality condition, and where to move."""
    k = slope_above(i, alpha[i], terms)
    if k < terms.number[i] and terms.tau[i, k] > u:
        return terms.tau[i, k] - u, 1.0
    k = slope_below(i, alpha[i], terms)
    if k >= 0 and u > terms.tau[i, k]:
        return u - terms.tau[i, k], -1.0
    return 0.0, 1.0


@inner
def most_violated_listed(a, y, alpha, w, b, terms, basis, tolerance):
    """Sample and direction, as :func:`most_violated`, among the listed ones only; those that need not move leave."""
    worst, who, sign, kept = tolerance, alpha.size, 1.0, 0
    for r in range(basis.size[2]):
        i = basis.listed[r]
        if basis.place[i] >= 0:
            continue
        violation, direction = _violation(i, dot(a[i], w) + y[i] * b[0], alpha, terms)
        if violation > tolerance:
            basis.listed[kept] = i
            kept += 1
        if violation > worst:
            worst, who, sign = violation, i, direction
    basis.size[2] = kept
    return who, sign
