"""All support sets in the plane, for the hard margin (loss 0 from margin t > 0 on, the cap below), penalty 1/2 ||w||^2.

A solution with w != 0 keeps the samples with u >= t and has the least ||w|| that keeps them. So by the optimality
conditions w = sum_k alpha_k y_k x_k with sum_k alpha_k y_k = 0, alpha >= 0, and at most three samples, all with u = t,
are needed (Caratheodory). Hence either

* two samples of different classes, and w is parallel to their difference; or
* two samples i, j of one class on the line u = t of their side, and one k of the other class on the line of its side,
  which is parallel to x_j - x_i; the nearer k is, the larger is ||w|| = 2 t / distance.

All of them are enumerated: for each pair, and each side on which the pair can be, the samples of the other class are
taken in the order of their distance from the line, while those between are left out. (If only one class is kept, a
constant does as well.) A sample counts as left out only if it is so beyond rounding, so the least value is a lower
bound.
"""

from __future__ import annotations

import numpy as np

from ....core._jit import inner, kernel
from ..incumbent_jit import offer, target_value
from .lines_jit import DEGENERATE, DONE, MORE

#: Two samples nearer to each other than this (data have unit size) have no direction.
_DISTINCT = 1e-6
#: A sample this far on the wrong side of a line may be on it, and is not counted as left out.
_ON_LINE = 1e-10


@inner
def _coordinate(model, k, c):
    return model.y[k] * model.a[k, c]


@inner
def _offer(model, work, best, i, normal0, normal1, width):
    """Offer the solution with sample i at u = t, w along y_i times the normal, and the given distance of both lines."""
    slope = 2.0 * model.t / width
    work.w[0], work.w[1] = model.y[i] * slope * normal0, model.y[i] * slope * normal1
    place = normal0 * _coordinate(model, i, 0) + normal1 * _coordinate(model, i, 1)
    work.b[0] = model.y[i] * (model.t - slope * place)
    for k in range(model.y.size):
        work.u[k] = work.w[0] * model.a[k, 0] + work.w[1] * model.a[k, 1] + model.y[k] * work.b[0]
    offer(model, best, work.w, work.b[0], work.u)


@inner
def _two_supports(model, i, normal0, normal1, width, target):
    """Value with u = t at i and at the sample behind it by the width along the normal; a lower bound from target on."""
    total = 2.0 * model.t * model.t / (width * width)
    here = normal0 * _coordinate(model, i, 0) + normal1 * _coordinate(model, i, 1)
    for k in range(model.y.size):
        if total >= target:
            return total
        ahead = normal0 * _coordinate(model, k, 0) + normal1 * _coordinate(model, k, 1) - here
        missing = -ahead if model.y[k] == model.y[i] else ahead + width
        if missing > _ON_LINE:
            total += model.cost[k] * model.cap
    return total


@inner
def _third_support(model, work, i, j, normal0, normal1, ceiling, target):
    """Least value with u = t at i and j, w along the normal of their line, and the width; a lower bound from target on.

    What costs more than ``ceiling`` by its penalty alone is not a third support.
    """
    n, least_width = model.y.size, np.sqrt(2.0 * model.t * model.t / ceiling)
    here = normal0 * _coordinate(model, i, 0) + normal1 * _coordinate(model, i, 1)
    here = min(here, normal0 * _coordinate(model, j, 0) + normal1 * _coordinate(model, j, 1))
    paid, m, farthest = 0.0, 0, 0.0
    for k in range(n):
        behind = here - normal0 * _coordinate(model, k, 0) - normal1 * _coordinate(model, k, 1)
        if model.y[k] == model.y[i]:
            if behind > _ON_LINE:
                paid += model.cost[k] * model.cap
        elif behind <= least_width:
            paid += model.cost[k] * model.cap
        else:
            work.u[m], work.alpha[m] = behind, model.cost[k] * model.cap
            farthest = max(farthest, behind)
            m += 1
        if paid >= target:
            return min(paid, ceiling), 0.0
    least, best_width = ceiling, 0.0
    while m > 0:
        rest = paid + 2.0 * model.t * model.t / (farthest * farthest)
        if rest >= min(least, target):
            return min(least, rest), best_width
        nearest = 0
        for k in range(1, m):
            if work.u[k] < work.u[nearest]:
                nearest = k
        width = work.u[nearest]
        value = paid + 2.0 * model.t * model.t / (width * width)
        if value < least:
            least, best_width = value, width
        paid += work.alpha[nearest]
        m -= 1
        work.u[nearest], work.alpha[nearest] = work.u[m], work.alpha[m]
    return least, best_width


@kernel
def enumerate_supports(model, work, best, place, floor, n_pairs, gap_tol):
    """Deal with the support sets of the next ``n_pairs`` pairs, as :func:`.enumerate_lines` does with divisions."""
    n = model.y.size
    for _ in range(n_pairs):
        i, j = place[0] // n, place[0] % n
        if i == n:
            return DONE
        place[0] += 1
        if j <= i:
            continue
        along0 = _coordinate(model, i, 0) - _coordinate(model, j, 0)
        along1 = _coordinate(model, i, 1) - _coordinate(model, j, 1)
        width = np.hypot(along0, along1)
        target = target_value(model, best, gap_tol)
        is_same = model.y[i] == model.y[j]
        if width <= _DISTINCT:
            if is_same or 2.0 * model.t * model.t < best.value[0] * width * width:
                return DEGENERATE
            floor[0] = min(floor[0], best.value[0])
            continue
        place[1] += 1
        along0, along1 = along0 / width, along1 / width
        if not is_same:
            value = _two_supports(model, i, along0, along1, width, target)
            floor[0] = min(floor[0], value)
            if value < target:
                _offer(model, work, best, i, along0, along1, width)
            continue
        for side in range(-1, 2, 2):
            value, width = _third_support(model, work, i, j, -side * along1, side * along0, best.value[0], target)
            floor[0] = min(floor[0], value)
            if value < target:
                _offer(model, work, best, i, -side * along1, side * along0, width)
                target = target_value(model, best, gap_tol)
    return MORE
