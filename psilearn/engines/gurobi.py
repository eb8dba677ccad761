"""Mixed-integer programs in Gurobi (optional extra ``pip install psilearn[gurobi]``; without a licence of your own it
takes up to 2000 variables)."""

from __future__ import annotations

import math

import numpy as np
import scipy.sparse as sp

from ..core.extras import optional
from .highs import Answer, ProgramError
from .mixed import MixedProgram


def solve_gurobi(program: MixedProgram, time_limit: float = math.inf, gap_tol: float = 0.0) -> Answer:
    """Solve on one thread, silently; duals are not available and come back empty."""
    engine = optional("gurobipy", "gurobi", "engine='gurobi'")
    try:
        with engine.Env(params={"OutputFlag": 0}) as environment, engine.Model(env=environment) as model:
            model.Params.Threads = 1
            model.Params.MIPGap = gap_tol
            if math.isfinite(time_limit):
                model.Params.TimeLimit = max(time_limit, 0.0)
            kind = np.where(program.integer, "I", "C")
            x = model.addMVar(program.cost.size, lb=program.lower, ub=program.upper, vtype=kind)
            square = sp.diags(0.5 * program.quadratic).tocsr()
            model.setMObjective(square, program.cost, 0.0, xQ_L=x, xQ_R=x, xc=x)
            for limit, sense in ((program.row_lower, ">"), (program.row_upper, "<")):
                kept = np.isfinite(limit)
                model.addMConstr(program.rows[kept], x, sense, limit[kept])
            model.optimize()
            if model.SolCount == 0:
                raise ProgramError(f"Gurobi stopped with status {model.Status} and no solution.")
            solved = model.Status == engine.GRB.OPTIMAL
            nodes, none = int(model.NodeCount), np.zeros(0)
            return Answer(x.X, none, none, model.ObjVal, model.ObjBound, solved, str(model.Status), nodes)
    except engine.GurobiError as error:
        raise ProgramError(f"Gurobi: {error}") from error
