"""The plain mixed-integer program of a truncated k-class problem in SCIP: the comparison for our own searches.

    minimise   P(W) + sum_i cost_i (sum_m c_m xi_im + cap z_i)
    subject to xi_im + (t_m - low_i) z_i >= t_m - u_ij,   u_ij + (t - low_i) z_i >= t (a jump only),   xi >= 0, z binary

with u_ij = rows[i, j]'theta for every rival j, and low_i a lower bound of u_i.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from pyscipopt import Model, quicksum

Array = NDArray[np.float64]


class ScipAnswer(NamedTuple):
    """What SCIP found and what it attests."""

    theta: Array
    bound: float
    is_optimal: bool
    n_nodes: int


def solve_multiclass_mip(
    rows: Array,
    costs: Array,
    hinges: tuple[tuple[float, float], ...],
    t: float,
    cap: float,
    has_jump: bool,
    curvature: Array,
    box: tuple[Array, Array],
    low: Array,
    gap_tol: float = 1e-4,
    time_limit: float = math.inf,
) -> ScipAnswer:
    """Solve the program above for 1/2 sum_l curvature_l theta_l^2 as the penalty and theta in ``box``."""
    model = Model()
    model.hideOutput()
    model.setParam("parallel/maxnthreads", 1)
    model.setParam("limits/gap", gap_tol)
    if math.isfinite(time_limit):
        model.setParam("limits/time", time_limit)
        model.setParam("timing/clocktype", 1)  # CPU seconds
    n, n_rivals, p = rows.shape
    theta = [model.addVar(lb=float(a), ub=float(b)) for a, b in zip(*box)]
    penalty = model.addVar(lb=0.0)
    model.addCons(quicksum(0.5 * float(q) * v * v for q, v in zip(curvature, theta)) <= penalty)
    total = penalty
    for i in range(n):
        z = model.addVar(vtype="B")
        slack = [model.addVar(lb=0.0) for _ in hinges]
        for r in range(n_rivals):
            u = quicksum(float(rows[i, r, l]) * theta[l] for l in range(p))
            for xi, (_, breakpoint) in zip(slack, hinges):
                model.addCons(xi + float(breakpoint - low[i]) * z + u >= breakpoint)
            if has_jump:
                model.addCons(u + float(t - low[i]) * z >= t)
        price = quicksum(c * xi for xi, (c, _) in zip(slack, hinges)) + cap * z
        total = total + float(costs[i]) * price
    model.setObjective(total)
    model.optimize()
    found = model.getNSols() > 0
    point = np.array([model.getVal(v) for v in theta]) if found else np.zeros(p)
    return ScipAnswer(point, model.getDualbound(), model.getStatus() in ("optimal", "gaplimit"), model.getNTotalNodes())
