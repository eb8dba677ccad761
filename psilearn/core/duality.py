"""Repair of dual multipliers: whatever comes in, what goes out is feasible, so weak duality gives a valid bound.

Arrays in, arrays out; :meth:`.problem.Problem.dual_bound` states the dual these functions serve.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

Array = NDArray[np.float64]


def repair_two_class(alpha: Array, signs: Array, upper: Array, target: float) -> Array | None:
    """Clip to 0 <= alpha <= upper and shift so that sum_i signs_i alpha_i = target; None if that cannot be.

    The side with the surplus is scaled down first; only what is still missing is added to the other side.
    """
    alpha = np.clip(alpha, 0.0, upper)
    rounding = 1e-15 * float(upper.sum())
    for _ in range(3):  # the second and third pass only remove rounding errors of the first
        surplus = float(signs @ alpha) - target
        if abs(surplus) <= rounding:
            return alpha
        side = 1.0 if surplus > 0 else -1.0
        total = 0.5 * (float(alpha.sum()) + side * (surplus + target))  # of the rich side, whose signs are ``side``
        surplus = abs(surplus)
        cut = min(surplus, total)
        if cut > 0:
            alpha *= np.where(signs == side, 1.0 - cut / total, 1.0)
        missing = surplus - cut
        if missing > 0:
            poor = signs != side
            room = upper[poor] - alpha[poor]
            available = float(room.sum())
            if missing > available + rounding:
                return None
            alpha[poor] += room * min(1.0, missing / max(available, missing))
    return alpha


def repair_k_class(A: Array, y: NDArray[np.intp], upper: Array, target: Array) -> Array | None:
    """Make A_ij >= 0 (j != y_i), sum_j A_ij <= upper_i, column sums of R(A) equal to ``target``; None if impossible.

    R_{i y_i} = sum_j A_ij and R_ij = -A_ij. Raising A_ij moves weight from column j to column y_i, so the columns are
    balanced by a cheapest flow in the graph of the classes, a linear programme in 2k(k-1) variables.
    """
    k = target.size
    rows = np.arange(A.shape[0])
    A = np.maximum(A, 0.0)
    A[rows, y] = 0.0
    total = A.sum(axis=1)
    A *= np.where(total > upper, upper / np.where(total > 0, total, 1.0), 1.0)[:, None]
    members = [np.flatnonzero(y == a) for a in range(k)]
    for _ in range(3):
        surplus = _column_sums(A, y, k) - target
        surplus -= surplus.mean()  # zero but for rounding, which the balancing programme would call infeasible
        size = float(np.abs(surplus).sum())
        if size <= 1e-14 * float(A.sum() + np.abs(target).sum()):  # the rounding of the sums themselves
            return A
        slack = np.maximum(upper - A.sum(axis=1), 0.0)
        flow = _balancing_flow(A, slack, members, surplus / size, size)
        if flow is None:
            # A class whose samples are all at their upper end leaves no freedom; what is left may be rounding.
            return A if size <= 1e-11 * float(upper.sum()) else None
        lower, lift = flow
        for a, rows_a in enumerate(members):
            held = A[rows_a].sum(axis=0)
            A[rows_a] *= 1.0 - np.minimum(lower[a] * size / np.where(held > 0, held, 1.0), 1.0)
            room = float(slack[rows_a].sum())
            if room > 0:
                A[rows_a] += np.outer(slack[rows_a] / room, lift[a] * size)
    return A


def _column_sums(A: Array, y: NDArray[np.intp], k: int) -> Array:
    return np.bincount(y, weights=A.sum(axis=1), minlength=k) - A.sum(axis=0)


def _balancing_flow(
    A: Array, slack: Array, members: list[NDArray[np.intp]], surplus: Array, size: float
) -> tuple[Array, Array] | None:
    """Cheapest (lower, lift), each (k, k), in units of ``size``, that removes the surplus of the columns."""
    k = surplus.size
    held = np.array([A[m].sum(axis=0) for m in members]) / size
    room = np.minimum(
        np.array([slack[m].sum() for m in members]) / size, 10.0 * k
    )  # larger is unusable, and ill scaled
    pairs = [(a, j) for a in range(k) for j in range(k) if a != j]
    effect = np.zeros((k, len(pairs)))  # of lifting A_ij, i in class a, on the column sums
    for p, (a, j) in enumerate(pairs):
        effect[a, p], effect[j, p] = 1.0, -1.0
    share = np.zeros((k, 2 * len(pairs)))
    for p, (a, _) in enumerate(pairs):
        share[a, len(pairs) + p] = 1.0
    bounds = [(0.0, min(held[a, j], 10.0)) for a, j in pairs] + [(0.0, 10.0)] * len(pairs)
    answer = linprog(
        np.ones(2 * len(pairs)),
        A_ub=share,
        b_ub=room,
        A_eq=np.hstack([-effect, effect]),
        b_eq=surplus.mean() - surplus,  # sums to zero, up to rounding
        bounds=bounds,
        method="highs",
    )
    if answer.status != 0:
        return None
    lower, lift = np.zeros((k, k)), np.zeros((k, k))
    for p, (a, j) in enumerate(pairs):
        lower[a, j], lift[a, j] = answer.x[p], answer.x[len(pairs) + p]
    return lower, lift


def l1_shrinkage(V: Array, l1: Array) -> float:
    """Largest theta in [0, 1] for which theta V is feasible for the conjugate of a pure l1 penalty.

    One row: |theta v_d| <= l1_d. Several rows that may share a shift nu (functions sum to zero):
    theta (v_jd - v_hd) <= l1_jd + l1_hd for all pairs j, h.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        if V.shape[0] == 1:
            ratio = np.where(V != 0, l1 / np.abs(V), np.inf)
            return float(min(1.0, ratio.min(initial=np.inf)))
        theta = 1.0
        for j in range(V.shape[0]):
            spread = V[j] - V
            ratio = np.where(spread > 0, (l1[j] + l1) / spread, np.inf)
            theta = min(theta, float(ratio.min(initial=np.inf)))
    return theta
