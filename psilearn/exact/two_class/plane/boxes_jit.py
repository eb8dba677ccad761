"""All coefficients of one or two features, in boxes: for continuous losses, wherever they are truncated, l2 and l1.

A box holds all (w, b) with low <= (w, b) <= high. In it every margin is confined to an interval, so

    P(w) + sum_i cost_i l(u_i)  >=  min of P over the box + sum_i cost_i l(largest u_i),

because losses do not rise. The smaller the box, the more samples are on one side of t everywhere in it: these are IN or
GONE, the others pay the envelope on their interval, and the convex problem that is left is a much better bound. If few
are left over, all their cases are tried, each of them IN or GONE, which closes the box: a case with nobody left over is
a convex problem whose solution is offered. Other boxes whose bound reaches the target are closed, too, and the rest are
halved across the coefficient that matters most, smallest bound first.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ....core._jit import inner, kernel
from ...envelope_jit import loss_value
from ...sample_state_jit import FREE, GONE, IN
from ..incumbent_jit import offer, target_value
from ..node.active_set_jit import clear
from ..node.ascent_jit import SOLVED
from ..node.pointers_jit import by_pointer
from ..slots_jit import pop, push
from .lines_jit import DEGENERATE, DONE, MORE

#: Part of the size of a margin's terms by which rounding errors are allowed for.
_ROUNDING = 1e-14
#: Part of the root's width below which a box cannot be halved: numbers end there.
_NARROWEST = 1e-13
#: Classes of boxes by the number of samples left over, tries of the convex problem in a class before its record counts,
#: the part of tries that must close a box for another one, and how often one is made all the same.
_CLASSES, _TRIALS, _WORTH, _ANYHOW = 32, 8, 0.15, 64
#: Samples left over whose cases are all tried.
CASES = 6


class BoxPool(NamedTuple):
    """Open boxes: a heap of slots ordered by bound, and their ends and where they are halved; slot 0 is the root."""

    heap: NDArray[np.int64]
    spare: NDArray[np.int64]
    sizes: NDArray[np.int64]
    bound: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    across: NDArray[np.int64]


def make_record() -> NDArray[np.int64]:
    """Allocate what a search learns: tries and successes of the convex problem by class of boxes; boxes so far."""
    return np.zeros((3, _CLASSES + 1), np.int64)


@inner
def _least_penalty(model, low, high):
    total = 0.0
    for k in range(low.size - 1):
        least = max(0.0, low[k], -high[k])
        total += 0.5 * least * least if model.norm == 2 else least
    return total


@inner
def _confine(model, low, high, floors, ceilings, work, spread, target):
    """Confine all margins of a box; returns (bound, samples left over). ``spread`` says what each coefficient does."""
    d = low.size - 1
    bound, left_over = _least_penalty(model, low, high), 0
    clear(spread)
    for i in range(model.y.size):
        y = model.y[i]
        least, most = min(y * low[d], y * high[d]), max(y * low[d], y * high[d])
        size = max(abs(least), abs(most))
        for k in range(d):
            a = model.a[i, k]
            p, q = a * low[k], a * high[k]
            least, most = least + min(p, q), most + max(p, q)
            size += max(abs(p), abs(q))
        least = max(least - _ROUNDING * size, floors[i])
        most = min(most + _ROUNDING * size, ceilings[i])
        if most < least:
            return np.inf, 0
        paid = model.cost[i] * loss_value(most, model.breakpoints, model.slopes, model.t, model.cap, 0.0)
        bound += paid
        if bound >= target:
            return bound, 0
        work.low[i], work.high[i] = least, most
        if least >= model.t:
            work.state[i] = IN
        elif most < model.t:
            work.state[i] = GONE
        else:
            work.state[i] = FREE
            left_over += 1
        more = model.cost[i] * loss_value(least, model.breakpoints, model.slopes, model.t, model.cap, 0.0) - paid
        if more > 0.0:
            share = more / (most - least)
            for k in range(d):
                spread[k] += share * abs(model.a[i, k]) * (high[k] - low[k])
            spread[d] += share * (high[d] - low[d])
    return bound, left_over


@inner
def _pays(record, group):
    """Whether the convex problem of a box is worth its time, by how often it has closed such boxes."""
    tries, closed = record[0, group], record[1, group]
    return group == 0 or tries < _TRIALS or closed > _WORTH * tries or record[2, 0] % _ANYHOW == 0


@inner
def _least_of_cases(solve, model, work, best, cases, count, gap_tol):
    """Least value of the box at hand over all cases of the listed samples; whether each is solved or too expensive."""
    least, depth, is_exact = np.inf, 0, True
    work.state[cases[0]] = IN
    while depth >= 0:
        target = target_value(model, best, gap_tol)
        value, flag = solve(model, work, target)
        if value < target and depth + 1 < count:
            depth += 1
            work.state[cases[depth]] = IN
            continue
        if flag == SOLVED:
            offer(model, best, work.w, work.b[0], work.u)
        is_exact = is_exact and (flag == SOLVED or value >= target)
        least = min(least, value)
        while depth >= 0 and work.state[cases[depth]] == GONE:
            work.state[cases[depth]] = FREE
            depth -= 1
        if depth >= 0:
            work.state[cases[depth]] = GONE
    return least, is_exact


@inner
def _open_box(
    solve, model, work, best, pool, floor, record, floors, ceilings, cases, parent, low, high, spread, gap_tol
):
    """Bound a box, and open it unless it is closed at once."""
    n = model.y.size
    target = target_value(model, best, gap_tol)
    bound, left_over = _confine(model, low, high, floors, ceilings, work, spread, target)
    record[2, 0] += 1
    bound = max(bound, parent)
    group, is_exact = left_over * _CLASSES // n, False
    if bound < target and _pays(record, group):
        record[0, group] += 1
        clear(work.alpha)
        value, flag = solve(model, work, target)
        bound = max(bound, value)
        if flag == SOLVED:
            offer(model, best, work.w, work.b[0], work.u)
        record[1, group] += bound >= target
        is_exact = left_over == 0 and flag == SOLVED
        if bound < target and 0 < left_over <= cases.size:
            count = 0
            for i in range(n):
                if work.state[i] == FREE:
                    cases[count] = i
                    count += 1
            least, is_exact = _least_of_cases(solve, model, work, best, cases, count, gap_tol)
            bound = max(bound, least)
    if bound >= target or is_exact:
        floor[0] = min(floor[0], bound)
        return
    slot = push(pool, bound)
    widest = 0
    for k in range(low.size):
        pool.low[slot, k], pool.high[slot, k] = low[k], high[k]
        if spread[k] > spread[widest]:
            widest = k
    pool.across[slot] = widest


@by_pointer
@kernel
def enumerate_boxes(solve, model, work, best, pool, floor, record, floors, ceilings, scratch, cases, n_boxes, gap_tol):
    """Halve boxes, about ``n_boxes`` of them. Returns DONE, MORE, or DEGENERATE: numbers end before a box is closed.

    ``floor`` holds the least bound of what was closed, ``floors`` and ``ceilings`` bounds on the margins of all better
    solutions, ``scratch`` three rows of d + 1 numbers, ``cases`` room for as many samples.
    """
    low, high, spread = scratch[0], scratch[1], scratch[2]
    end = record[2, 0] + n_boxes
    while record[2, 0] < end:
        if pool.sizes[0] == 0:
            return DONE
        if pool.sizes[1] < 4:
            return MORE
        slot = pop(pool, False)
        bound, across = pool.bound[slot], pool.across[slot]
        if bound >= target_value(model, best, gap_tol):
            floor[0] = min(floor[0], bound)
            continue
        for k in range(low.size):
            low[k], high[k] = pool.low[slot, k], pool.high[slot, k]
        first, last = low[across], high[across]
        if last - first <= _NARROWEST * (abs(first) + abs(last) + 1.0):
            push(pool, bound)
            return DEGENERATE
        middle = 0.5 * (first + last)
        high[across] = middle
        _open_box(
            solve, model, work, best, pool, floor, record, floors, ceilings, cases, bound, low, high, spread, gap_tol
        )
        low[across], high[across] = middle, last
        _open_box(
            solve, model, work, best, pool, floor, record, floors, ceilings, cases, bound, low, high, spread, gap_tol
        )
    return MORE
