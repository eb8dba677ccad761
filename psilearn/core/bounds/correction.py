"""Equations that multipliers must meet exactly, met by a small correction that is proved to exist.

A coefficient without any penalty asks for sum_i D_i x_il = 0, which multipliers in float64 miss by rounding. With as
many moves of multipliers as there are equations and M the effect of the moves on the equations, the sizes s of the
moves solve M s = -r, r being what is left over. For an approximate inverse Y and C = I - Y M with row sums of |C| up to
eta < 1, M is regular, s = C s - Y r, and so

    |s| <= |Y| |r| + |C| 1 max|s|,      max|s| <= max(|Y| |r|) / (1 - eta)

(Rump, Verification methods, 2010, section 10; for bounds of linear programs Jansson 2004, Neumaier and Shcherbina
2004). If every move has room for |s|, the corrected multipliers exist and are feasible, and nobody needs to know them:
a bound only has to allow for |s|.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr

from .rounding import UNIT, gamma

Array = NDArray[np.float64]
Index = NDArray[np.intp]


_DUST = 2.0**-40  # of the largest multiplier: smaller ones are dropped before equations are solved


class Moves(NamedTuple):
    """Moves D_{i,gains} += s, D_{i,loses} -= s (two classes: only the first), possible both ways for |s| <= room."""

    sample: Index
    gains: Index
    loses: Index
    room: Array


class Equations(NamedTuple):
    """Equations V_{gains,l} = V_{loses,l} of features l, V_{gains,l} = 0 where loses is -1.

    Feature -1 stands for a constant 1: its equation keeps the balance of a column.
    """

    feature: Index
    gains: Index
    loses: Index


def two_class_moves(below: Array, above: Array) -> Moves:
    """Return the moves of multipliers that can fall by ``below`` and rise by ``above``."""
    room = np.minimum(below, above)
    sample = np.flatnonzero(room > 0)
    return Moves(sample, np.zeros_like(sample), np.full_like(sample, -1), room[sample])


def k_class_moves(A: Array, slack: Array, y: Index) -> Moves:
    """Return the exchanges within rows of R(A); the room is shared by the k - 1 moves that an entry takes part in."""
    n, k = A.shape
    holds = A.copy()
    holds[np.arange(n), y] = slack
    parts = []
    for a in range(k):
        for b in range(a + 1, k):
            room = np.minimum(holds[:, a], holds[:, b]) / (k - 1) * (1.0 - 4.0 * UNIT)
            sample = np.flatnonzero(room > 0)
            parts.append((sample, np.full_like(sample, a), np.full_like(sample, b), room[sample]))
    return Moves(*(np.concatenate(column) for column in zip(*parts)))


def equations_of(unpenalised: NDArray[np.bool_], moves: Moves, D: Array) -> Equations:
    """Return the equations of coefficients (m, p) without a penalty, and those that keep the columns balanced.

    A move takes from one column what it gives to another. So within a group of columns that moves connect the sum stays
    what it is, and where the rows of D sum to zero within every group, exactly, one equation of each group follows from
    the others.
    """
    m, p = unpenalised.shape
    if m == 1:
        feature = np.append(np.flatnonzero(unpenalised[0]), -1)
        return Equations(feature, np.zeros_like(feature), np.full_like(feature, -1))
    group = _groups(moves, m)
    if any(np.any(D[:, group == g].sum(axis=1) != 0.0) for g in range(m)):
        group[:] = 0
    follows = [not np.any(group[:j] == group[j]) for j in range(m)]
    rows: list[tuple[int, int, int]] = [(-1, j, -1) for j in range(m) if not follows[j]]
    for column in range(p):
        classes = np.flatnonzero(unpenalised[:, column])
        if classes.size == m:
            rows += [(column, j, -1) for j in range(m) if not follows[j]]
        else:
            rows += [(column, int(j), int(classes[0])) for j in classes[1:]]
    return Equations(*np.array(rows, dtype=np.intp).reshape(-1, 3).T)


def _groups(moves: Moves, m: int) -> Index:
    """Return for every column the number of the group of columns that moves connect it with."""
    group = np.arange(m)
    for a, b in set(zip(moves.gains.tolist(), moves.loses.tolist())):
        group[group == group[b]] = group[a]
    return group


def without_dust(D: Array, y: Index) -> Array:
    """Return D without exchanges of rounding size, which are room for nothing and connect columns by noise."""
    D = np.where(np.abs(D) < _DUST * np.abs(D).max(initial=0.0), 0.0, D)
    if D.shape[1] > 1:
        D[np.arange(y.size), y] -= D.sum(axis=1)
    return D


def effects(moves: Moves, equations: Equations, x: Array) -> Array:
    """Return the matrix of the effects of moves (columns) on equations (rows), exactly; ``x`` are their samples."""
    sign = np.zeros((equations.feature.size, moves.sample.size))
    for weight, classes in ((1.0, equations.gains), (-1.0, equations.loses)):
        used = (classes >= 0)[:, None]
        sign += weight * (used & (classes[:, None] == moves.gains))
        sign -= weight * (used & (classes[:, None] == moves.loses))
    values = np.where((equations.feature >= 0)[:, None], x[:, equations.feature].T, 1.0)
    return sign * values


def roomiest(moves: Moves, number: int) -> Moves:
    """Return the moves with most room, at most ``number``."""
    if moves.sample.size <= number:
        return moves
    best = np.sort(np.argpartition(-moves.room, number)[:number])
    return Moves(*(column[best] for column in moves))  # type: ignore[arg-type]


def chosen_moves(M: Array, room: Array) -> Index | None:
    """Return as many columns of M as it has rows, independent and with much room, by a pivoted factorisation."""
    if M.shape[1] < M.shape[0]:
        return None
    size = np.abs(M).max(axis=1, initial=0.0)
    if np.any(size == 0):
        return None
    return np.sort(qr(M / size[:, None] * room, mode="r", pivoting=True)[1][: M.shape[0]])


def approximate_inverse(M: Array) -> Array | None:
    """Return an inverse up to rounding, of rows scaled by powers of two, which is exact; None if M is singular."""
    scale = np.ldexp(1.0, -np.frexp(np.abs(M).max(axis=1, initial=0.0))[1])
    try:
        return np.linalg.inv(M * scale[:, None]) * scale
    except np.linalg.LinAlgError:
        return None


def proved_sizes(M: Array, Y: Array, residual: Array) -> Array | None:
    """Return upper bounds on |s|, M s = -r for some |r| <= residual; None if that is not proved."""
    n = M.shape[0]
    C = np.abs(np.eye(n) - Y @ M) * (1.0 + 4.0 * UNIT) + 2.0 * gamma(n + 4) * (np.abs(Y) @ np.abs(M))
    rows = C.sum(axis=1) * (1.0 + gamma(n + 4))
    eta = float(rows.max(initial=0.0))
    if not eta < 0.5:
        return None
    first = (np.abs(Y) @ residual) * (1.0 + gamma(n + 8))
    largest = float(first.max(initial=0.0)) / (1.0 - eta) * (1.0 + 8.0 * UNIT)
    return (first + rows * largest) * (1.0 + 8.0 * UNIT)


def residuals(equations: Equations, V: Array, radius: Array) -> tuple[Array, Array]:
    """Return what is left over in the equations and a bound on its error; the columns are balanced exactly."""
    feature, gains, loses = equations
    other = np.where(loses >= 0, V[loses, feature], 0.0)
    left = V[gains, feature] - other
    error = radius[gains, feature] + np.where(loses >= 0, radius[loses, feature], 0.0)
    error = (error + UNIT * (np.abs(left) + np.abs(other))) * (1.0 + 8.0 * UNIT)
    return np.where(feature >= 0, left, 0.0), np.where(feature >= 0, error, 0.0)


def moved_by(D: Array, moves: Moves, chosen: Index, sizes: Array) -> Array:
    """Return D after the chosen moves."""
    D = D.copy()
    np.add.at(D, (moves.sample[chosen], moves.gains[chosen]), sizes)
    two_sided = moves.loses[chosen] >= 0
    np.subtract.at(D, (moves.sample[chosen][two_sided], moves.loses[chosen][two_sided]), sizes[two_sided])
    return D
