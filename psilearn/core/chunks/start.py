"""How much hinges are smoothed at first, in a fit that starts from the solution on a few of its rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from .blocks import Block
from .problem import ChunkedProblem
from .sums import Smoothing, evaluate

Array = NDArray[np.float64]

#: Width at most, and part of the tolerance that smoothing may cost.
_WIDEST, _SHARE = 0.1, 0.3
#: The least width, in units of how far margins are from those of all rows: a Newton step finds them at about this
#: distance.
_DISTANCE = 0.5
#: Where that is more than this part of the greatest width, there are too few rows to tell.
_FEW = 0.5


def starting_widths(
    problems: Sequence[ChunkedProblem], found: Sequence[tuple[Array, Array]], few: Block, tol: float
) -> list[float]:
    """Return the widths at which smoothing costs less than the tolerance, or a Newton step would just reach.

    Parameters
    ----------
    problems : sequence of ChunkedProblem
        Convex; C is that of the few rows.
    found : sequence of (W, b)
        Their solutions on these.
    few : Block
        The rows.
    tol : float
        Relative gap that is wanted.
    """
    first = problems[0]
    points = [Smoothing(p.scaling.from_coefficients(*f), _WIDEST) for p, f in zip(problems, found)]
    queries = [p.query(at)._replace(loss=p.loss.convex_part, truncated=None) for p, at in zip(problems, points)]
    unknowns = first.n_functions * (first.space.dim + 1)
    least = _DISTANCE * np.sqrt(unknowns / max(few.X.shape[0], 1))
    if least > _FEW * _WIDEST:
        return [_WIDEST] * len(problems)
    widths = []
    for problem, (W, _), at, sums in zip(problems, found, points, evaluate(0, few, first.form, queries)):
        cost = sums.risk - sums.gain + float(np.sum(np.asarray(sums.net) * at.V))
        objective = problem.penalty.convex_part.value(W, float(np.sum(W * W))) + sums.risk
        factor = np.sqrt(_SHARE * tol * objective / cost) if cost > 0 else 1.0
        widths.append(float(min(_WIDEST, max(_WIDEST * factor, least))))
    return widths
