"""A lower bound for every fit that a solver found without one."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ..core.problem import Problem
from ..core.relaxation import relaxation, rough_bound
from ..core.result import Claim, Result, Status

#: Samples up to which a fit without a proof gets the bound of its convex relaxation: it costs about a tenth of the fit.
RELAXED_SAMPLES = 10_000


def bounded(problem: Problem, result: Result) -> Result:
    """Give a fit that knows no lower bound the one of its convex relaxation, solved roughly; else 0.

    0 is a bound because penalty and loss are not negative, unless the kernel matrix is not positive semidefinite.
    """
    is_known = problem.is_convex or result.lower_bound > -math.inf or result.certificate.claim is Claim.RESTRICTED
    if is_known or problem.tilt is not None or not getattr(problem.space, "is_psd", True):
        return result
    bound, R = problem.offset, None
    is_tried = problem.n <= RELAXED_SAMPLES and result.status is not Status.INTERRUPTED
    found = relaxation(problem, result.objective) if is_tried else None
    if found is not None:
        relaxed, rows, value = found
        R = np.zeros((problem.n, problem.n_functions))
        proved, R[rows] = rough_bound(relaxed, _net_multipliers(problem, result, rows))
        bound = max(bound, min(proved, value))
    return result.with_relaxation(bound, R)


def _net_multipliers(problem: Problem, result: Result, rows: NDArray[np.intp]) -> NDArray[np.float64] | None:
    """Return multipliers of the scores of some samples, less the tilt of the majorant that they belong to."""
    R, tilt = result.multipliers, result.extra.get("tilt")
    if R is None or not problem.accepts(R):
        return None
    return (R if tilt is None else R - tilt)[rows]
