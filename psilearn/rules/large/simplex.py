"""A concave quadratic function on the simplex, by an active set method."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

Array = NDArray[np.float64]
#: Variables that may enter at once in the first steps, steps at most, and the part of the first gain that is enough.
_ENTERING, _STEPS, _ENOUGH = 30, 100, 0.02


def maximise(linear: Array, Q: Array, start: Array) -> Array:
    """Return x >= 0 of sum 1 with nearly the largest  linear'x - x'Qx / 2,  from a feasible start; Q is definite."""
    x, inside = start.copy(), start > 0
    gain = linear - Q @ x
    enough = _ENOUGH * float(gain.max() - gain @ x)
    for step in range(_STEPS):
        free = np.flatnonzero(inside)
        target, price = _on_face(linear, Q, free)
        shrinks = target < x[free]
        room = np.full(free.size, np.inf)
        room[shrinks] = x[free][shrinks] / (x[free] - target)[shrinks]
        length = min(1.0, float(room.min()))
        x[free] += length * (target - x[free])
        if length < 1.0:
            # small ones that would soon be zero leave together: they may enter again
            left = free[(room <= length) | (shrinks & (x[free] < 0.1 * x.max()) & (room < 0.1))]
            x[left] = 0.0
            x /= x.sum()
            inside[left] = False
            continue
        gain = linear - Q @ x - price
        gain[inside] = -np.inf
        best = np.argsort(-gain)[: max(1, _ENTERING - step)]
        best = best[gain[best] > enough]
        if not best.size:
            break
        inside[best] = True
    x = np.maximum(x, 0.0)
    return x / x.sum()


def _on_face(linear: Array, Q: Array, free: NDArray[np.intp]) -> tuple[Array, float]:
    """The maximiser with sum 1 over the free variables, whatever their signs, and the multiplier of the sum."""
    factor = cho_factor(Q[np.ix_(free, free)], lower=True, check_finite=False, overwrite_a=True)
    both = cho_solve(factor, np.column_stack([linear[free], np.ones(free.size)]), check_finite=False)
    price = (both[:, 0].sum() - 1.0) / both[:, 1].sum()
    return both[:, 0] - price * both[:, 1], float(price)
