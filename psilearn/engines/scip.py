"""A mixed-integer program with a convex diagonal quadratic objective in SCIP (optional extra ``pip install
psilearn[scip]``).

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
        import pyscipopt
    except ImportError as error:
        raise ProgramError("SCIP is not installed; install it with: pip install 'psilearn[scip]'.") from error
    return pyscipopt


def solve_scip(
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
    start: Array | None = None,
) -> Answer:
    """Solve on one thread, silently; duals are not available and come back empty."""
    scip = _engine()
    model = scip.Model()
    model.hideOutput()
    model.setParam("parallel/maxnthreads", 1)
    model.setParam("limits/gap", gap_tol)
    if math.isfinite(time_limit):
        model.setParam("limits/time", max(time_limit, 0.0))
    names = [
        model.addVar(
            vtype="I" if integer[j] else "C", lb=_finite(lower[j]), ub=_finite(upper[j]), obj=float(cost[j])
        )
        for j in range(cost.size)
    ]  # fmt: skip
    if np.any(quadratic):
        square = model.addVar(vtype="C", lb=0.0, obj=1.0)
        terms = [0.5 * float(q) * names[j] * names[j] for j, q in enumerate(quadratic) if q]
        model.addCons(scip.quicksum(terms) <= square)
    for i in range(rows.shape[0]):
        part = slice(rows.indptr[i], rows.indptr[i + 1])
        left = scip.quicksum(float(v) * names[j] for j, v in zip(rows.indices[part], rows.data[part]))
        if np.isfinite(row_lower[i]):
            model.addCons(left >= float(row_lower[i]))
        if np.isfinite(row_upper[i]):
            model.addCons(left <= float(row_upper[i]))
    if start is not None:
        point = model.createSol()
        for name, value in zip(names, start):
            model.setSolVal(point, name, float(value))
        if np.any(quadratic):
            model.setSolVal(point, square, float(0.5 * quadratic @ start**2))
        model.addSol(point)
    model.optimize()
    if model.getNSols() == 0:
        raise ProgramError(f"SCIP stopped with status {model.getStatus()!r} and no solution.")
    x = np.array([model.getVal(name) for name in names])
    value, bound, status = model.getObjVal(), model.getDualbound(), str(model.getStatus())
    none = np.zeros(0)
    return Answer(x, none, none, value, bound, status in ("optimal", "gaplimit"), status, int(model.getNNodes()))


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
