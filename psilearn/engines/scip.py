"""Mixed-integer programs in SCIP (optional extra ``pip install psilearn[scip]``)."""

from __future__ import annotations

import math

import numpy as np

from ..core.extras import optional
from .highs import Answer, ProgramError
from .mixed import MixedProgram


def solve_scip(program: MixedProgram, time_limit: float = math.inf, gap_tol: float = 0.0) -> Answer:
    """Solve on one thread, silently; duals are not available and come back empty."""
    scip = optional("pyscipopt", "scip", "engine='scip'")
    model = scip.Model()
    model.hideOutput()
    model.setParam("parallel/maxnthreads", 1)
    model.setParam("limits/gap", gap_tol)
    if math.isfinite(time_limit):
        model.setParam("limits/time", max(time_limit, 0.0))
    columns = zip(program.integer, program.lower, program.upper, program.cost)
    variables = [
        model.addVar(vtype="I" if whole else "C", lb=_finite(low), ub=_finite(high), obj=float(cost))
        for whole, low, high, cost in columns
    ]
    if np.any(program.quadratic):
        square = model.addVar(vtype="C", lb=0.0, obj=1.0)
        terms = [0.5 * float(q) * x * x for x, q in zip(variables, program.quadratic) if q]
        model.addCons(scip.quicksum(terms) <= square)
    for i in range(program.rows.shape[0]):
        part = slice(program.rows.indptr[i], program.rows.indptr[i + 1])
        entries = zip(program.rows.indices[part], program.rows.data[part])
        left = scip.quicksum(float(v) * variables[j] for j, v in entries)
        if np.isfinite(program.row_lower[i]):
            model.addCons(left >= float(program.row_lower[i]))
        if np.isfinite(program.row_upper[i]):
            model.addCons(left <= float(program.row_upper[i]))
    model.optimize()
    if model.getNSols() == 0:
        raise ProgramError(f"SCIP stopped with status {model.getStatus()!r} and no solution.")
    x = np.array([model.getVal(variable) for variable in variables])
    value, bound, status = model.getObjVal(), model.getDualbound(), str(model.getStatus())
    none = np.zeros(0)
    return Answer(x, none, none, value, bound, status in ("optimal", "gaplimit"), status, int(model.getNNodes()))


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
