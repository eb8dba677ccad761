"""The incumbent that all exact searches share, and alternating minimisation from any margins."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...core._jit import inner, kernel
from ..envelope_jit import FEASIBLE, convex_value, loss_value, top_margin
from ..sample_state_jit import FLOOR, FREE, GONE, IN, LINEAR, TOP
from .node.active_set_jit import copy
from .node.ascent_jit import CUT_OFF
from .node.node_jit import Model, NodeWorkspace, penalty
from .node.pointers_jit import by_pointer

#: Part of the incumbent value that rounding errors of a bound never reach.
ROUNDING = 1e-10
#: Value beyond which nothing is a solution.
LARGEST_VALUE = 1e15
#: Convex problems of one alternating minimisation at most; it nearly always ends by itself after two or three.
_ALTERNATIONS = 10


class Best(NamedTuple):
    """The incumbent: value, w, b, and its margins."""

    value: NDArray[np.float64]
    w: NDArray[np.float64]
    b: NDArray[np.float64]
    u: NDArray[np.float64]


@kernel
def true_value(model, w, u):
    """Evaluate the objective at (w, margins)."""
    total = penalty(model, w)
    for i in range(u.size):
        if model.given[i] == FLOOR:
            continue
        if model.given[i] == LINEAR:
            total += u[i] + model.cost[i] * model.cap
            continue
        total += model.cost[i] * loss_value(u[i], model.breakpoints, model.slopes, model.t, model.cap, FEASIBLE)
    return total


@kernel
def offer(model, best, w, b, u):
    """Make (w, b) the incumbent if it is better and respects the given states; returns whether it did."""
    value = true_value(model, w, u)
    if not value < best.value[0]:
        return False
    for i in range(u.size):
        if model.given[i] == IN and u[i] < model.t - FEASIBLE:
            return False
        if model.given[i] == FLOOR and u[i] < model.cost[i] - FEASIBLE:
            return False
        if model.given[i] == TOP and u[i] < top_margin(model.breakpoints, model.t) - FEASIBLE:
            return False
    best.value[0] = value
    best.b[0] = b
    copy(w, best.w)
    copy(u, best.u)
    return True


@inner
def target_value(model, best, gap_tol):
    """Objective below which a solution is better than the incumbent by more than the tolerance.

    Where leaving samples out costs most of the incumbent value, the tolerance is a part of its penalty.
    """
    value = best.value[0]
    return value - gap_tol * min(value, penalty(model, best.w)) - ROUNDING * value


@inner
def alternate(solve, model, work, best, u):
    """Fix the regions that the margins suggest, solve the convex rest, and repeat while that improves."""
    previous = np.inf
    for _ in range(_ALTERNATIONS):
        for i in range(u.size):
            is_capped = u[i] < model.t - FEASIBLE or convex_value(u[i], model.breakpoints, model.slopes) > model.cap
            work.state[i] = model.given[i]
            if model.given[i] == FREE:
                work.state[i] = GONE if is_capped else IN
        value, flag = solve(model, work, min(best.value[0], LARGEST_VALUE))
        if flag == CUT_OFF or value >= previous:
            return
        previous = value
        offer(model, best, work.w, work.b[0], work.u)
        u = work.u


@by_pointer
@kernel
def _alternate_from(solve, model, work, best, u):
    alternate(solve, model, work, best, u)


def alternate_from(model: Model, best: Best, work: NodeWorkspace, u: NDArray[np.float64]) -> None:
    """Improve the incumbent by alternating minimisation from margins ``u``; multipliers in ``work`` are its start."""
    _alternate_from(model, work, best, np.ascontiguousarray(u, dtype=np.float64))
