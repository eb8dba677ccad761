"""First incumbents of the exact searches, and the last polish of the best one."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ...core.solving import Clock
from ..envelope_jit import FEASIBLE
from ..sample_state_jit import FREE, GONE, IN
from .incumbent_jit import LARGEST_VALUE, Best, alternate_from, offer
from .model import fit_svm, make_workspace, solve_fixed
from .node.ascent_jit import CUT_OFF, SOLVED
from .node.node_jit import Model, NodeWorkspace

Array = NDArray[np.float64]
Points = Sequence[tuple[Array, float]]

#: Costs of the support vector machines to start from, as multiples of the problem's.
_COST_FACTORS = (0.01, 0.1, 1.0, 10.0)


def empty_incumbent(model: Model) -> Best:
    """Return an incumbent of infinite value."""
    n, d = model.a.shape
    return Best(np.full(1, np.inf), np.zeros(d), np.zeros(1), np.zeros(n))


def first_incumbent(model: Model, points: Points) -> tuple[Best, NodeWorkspace]:
    """Best of the constants, the points handed in, support vector machines of several costs, each locally improved."""
    best, work = given_incumbent(model, points)
    improve_incumbent(model, best, work, points, Clock(math.inf))
    return best, work


def given_incumbent(model: Model, points: Points) -> tuple[Best, NodeWorkspace]:
    """Best of the constants and the points handed in: an incumbent at once.

    If none of them respects the given states, it is the solution of least penalty that does and gives up all others.
    """
    best, w = empty_incumbent(model), np.zeros(model.a.shape[1])
    for level in {0.0, *np.abs(model.breakpoints), abs(model.t)}:
        for sign in (1.0, -1.0):
            offer(model, best, w, sign * level, model.y * (sign * level))
    for v, b in points:
        offer(model, best, v, b, model.a @ v + model.y * b)
    work = make_workspace(model)
    if math.isinf(best.value[0]):
        state = np.where(model.given == FREE, GONE, model.given)
        _, flag = solve_fixed(model, work, state, LARGEST_VALUE)
        if flag == CUT_OFF or not offer(model, best, work.w, work.b[0], work.u):
            if np.all(model.given == FREE):
                raise ValueError("The features hold numbers too large for an exact search; scale them.")
            raise ValueError("No solution respects the samples that are bound to their side.")
    return best, work


def improve_incumbent(model: Model, best: Best, work: NodeWorkspace, points: Points, clock: Clock) -> None:
    """Search near the points handed in and near support vector machines of several costs, while there is time."""
    starts = [model.a @ v + model.y * b for v, b in points]
    for factor in _COST_FACTORS:
        if clock.is_over:
            return
        v, b, margins = fit_svm(model, factor * model.cost)
        offer(model, best, v, b, margins)
        starts.append(margins)
    for margins in starts:
        if clock.is_over:
            return
        work.alpha[:] = 0.0
        alternate_from(model, best, work, margins)


def polish(model: Model, best: Best, work: NodeWorkspace) -> Array:
    """Re-solve the convex part with the incumbent's regions fixed, keep the better point, return its multipliers."""
    loss = np.maximum(model.breakpoints - np.maximum(best.u, model.t)[:, None], 0.0) @ model.slopes
    state = np.where((best.u >= model.t - FEASIBLE) & (loss < model.cap), IN, GONE).astype(np.int8)
    state = np.where(model.given == FREE, state, model.given)
    value, flag = solve_fixed(model, work, state, 2.0 * best.value[0] + 1.0)
    if flag == SOLVED and value <= best.value[0] * (1.0 + 1e-9):
        before, best.value[0] = best.value[0], math.inf
        if offer(model, best, work.w, work.b[0], work.u):
            return work.alpha.copy()
        best.value[0] = before
    return np.zeros(model.y.size)
