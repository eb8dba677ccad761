"""A mixed-integer program with a convex diagonal quadratic objective in Gurobi (optional extra ``pip install
psilearn[gurobi]``; without a licence of your own it takes up to 2000 variables).

minimise  c'x + 1/2 sum_j q_j x_j^2   subject to   L <= A x <= U,   l <= x <= u,   some x integer
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .highs import Answer, ProgramError

Array = NDArray[np.float64]


def _engine() -> Any:
    try:
        import gurobipy
    except ImportError as error:
        raise ProgramError("Gurobi is not installed; install it with: pip install 'psilearn[gurobi]'.") from error
    return gurobipy


def solve_gurobi(
    cost: Array,
    quadratic: Array,
    rows: sp.csr_matrix,
    row_lower: Array,
    row_upper: Array,
    lower: Array,
    upper: Array,
    integer: NDArray[np.bool_],
    time_limit: float = math.inf,
    gap_tol: float = 0.0,
) -> Answer:
    """Solve on one thread, silently; duals are not available and come back empty."""
    engine = _engine()
    try:
        with engine.Env(params={"OutputFlag": 0}) as environment, engine.Model(env=environment) as model:
            model.Params.Threads = 1
            model.Params.MIPGap = gap_tol
            if math.isfinite(time_limit):
                model.Params.TimeLimit = max(time_limit, 0.0)
            x = model.addMVar(cost.size, lb=lower, ub=upper, vtype=np.where(integer, "I", "C"))
            model.setMObjective(sp.diags(0.5 * quadratic).tocsr(), cost, 0.0, xQ_L=x, xQ_R=x, xc=x)
            for limit, sense in ((row_lower, ">"), (row_upper, "<")):
                kept = np.isfinite(limit)
                model.addMConstr(rows[kept], x, sense, limit[kept])
            model.optimize()
            if model.SolCount == 0:
                raise ProgramError(f"Gurobi stopped with status {model.Status} and no solution.")
            solved = model.Status == engine.GRB.OPTIMAL
            nodes, none = int(model.NodeCount), np.zeros(0)
            return Answer(x.X, none, none, model.ObjVal, model.ObjBound, solved, str(model.Status), nodes)
    except engine.GurobiError as error:
        raise ProgramError(f"Gurobi: {error}") from error
