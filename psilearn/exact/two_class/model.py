"""The model that all exact two-class searches share, its workspace, fixed regions as convex problems, margin bounds."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from ...core.losses import Loss
from ..margin_floor import score_drop
from ..sample_state_jit import FREE, IN
from .node import simplex_jit as lp_ascent
from .node.active_set_jit import Basis, Terms, make_basis, make_terms
from .node.node_jit import Model, NodeWorkspace, solve_node
from .reduction import Reduction

Array = NDArray[np.float64]
States = NDArray[np.int8]


def make_model(reduction: Reduction, loss: Loss, given: States | None = None) -> Model:
    """Hand the scaled problem to the kernels; ``given`` states (FREE, IN or TOP) restrict the solutions."""
    given = np.full(reduction.n, FREE, np.int8) if given is None else given
    return model_of(reduction.z, reduction.y, reduction.cost, reduction.norm, loss, given)


def model_of(z: Array, y: Array, cost: Array, norm: int, loss: Loss, given: States) -> Model:
    """Lay out scaled samples, their labels and costs as the kernels read them."""
    distance = cdist(z, z, "euclidean" if norm == 2 else "chebyshev")
    hinges = np.array(loss.hinges, dtype=np.float64).reshape(-1, 2)
    breakpoints, slopes = np.ascontiguousarray(hinges[:, 1]), np.ascontiguousarray(hinges[:, 0])
    rows = np.ascontiguousarray(z * y[:, None])
    return Model(rows, y, cost, distance, breakpoints, slopes, float(loss.t), float(loss.cap), norm, given)


def make_workspace(model: Model) -> NodeWorkspace:
    """Allocate memory for one node."""
    n, d = model.a.shape
    vectors = np.zeros(n), np.zeros(d), np.zeros(1), np.zeros(n)
    if model.norm == 2:
        terms: Terms = make_terms(n, model.breakpoints.size)
        basis: Basis | lp_ascent.Tableau = make_basis(n, d)
    else:
        terms = lp_ascent.make_terms(n, d, model.breakpoints.size)
        basis = lp_ascent.make_tableau(model.a, model.y)
    return NodeWorkspace(np.zeros(n, np.int8), np.full(n, -np.inf), np.full(n, np.inf), *vectors, terms, basis)


def solve_fixed(model: Model, work: NodeWorkspace, state: States, cutoff: float) -> tuple[float, int]:
    """Solve the convex problem with every region fixed; returns (bound, flag), the solution is left in ``work``."""
    work.state[:] = state
    work.alpha[:] = 0.0
    return solve_node(model, work, cutoff)


def fit_svm(model: Model, cost: Array) -> tuple[Array, float, Array]:
    """Scaled (v, b, margins) of the support vector machine with these costs and the same penalty."""
    n = model.y.size
    free = np.full(n, FREE, np.int8)
    svm = model._replace(breakpoints=np.ones(1), slopes=np.ones(1), t=-np.inf, cap=np.inf, given=free, cost=cost)
    work = make_workspace(svm)
    # f = 0 costs the sum of the costs, so this ceiling is never reached.
    solve_fixed(svm, work, np.full(n, IN, np.int8), 2.0 * float(cost.sum()) + 1.0)
    return work.w, float(work.b[0]), work.u


def margin_bounds(model: Model, upper: float) -> tuple[Array, Array]:
    """Bounds low <= u <= high on the margins of every solution better than ``upper``, the value of an incumbent.

    The argument of :mod:`..margin_floor` with ||w|| <= sqrt(2 P) (1-norm: P, and distances in the max-norm), within
    i's own class for low, and for high within the other class, where u_i <= -u_j + ||w|| ||x_i - x_j||. No better
    solution has a whole class at the cap: leaving it out costs at least as much as the best constant, an incumbent (or
    a given state forbids it).
    """
    n, is_quadratic = model.y.size, model.norm == 2
    radius = math.sqrt(2.0 * upper) if is_quadratic else upper
    low, high = np.full(n, -np.inf), np.full(n, np.inf)
    for label in (-1.0, 1.0):
        own = model.y == label
        drop = score_drop(model.dist[:, own], model.cost[own], model.cap, upper, radius, is_quadratic)
        low[own] = model.t - drop[own]
        if own.any():
            high[~own] = drop[~own] - model.t
    return low, high
