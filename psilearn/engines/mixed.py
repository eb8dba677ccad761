"""A mixed-integer program with a convex diagonal quadratic objective, as SCIP and Gurobi take it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class MixedProgram:
    """minimise cost'x + 1/2 sum_j quadratic_j x_j^2 over row_lower <= rows x <= row_upper, lower <= x <= upper.

    ``integer`` says which x are integers.
    """

    cost: Array
    quadratic: Array
    rows: sp.csr_matrix
    row_lower: Array
    row_upper: Array
    lower: Array
    upper: Array
    integer: NDArray[np.bool_]
