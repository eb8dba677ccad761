"""The active set of a dual ascent: samples held at a slope of their gain, and the Cholesky factor of their Gram."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ....core._jit import inner, reordering_inner

#: Part of its squared length by which a row must leave the members' span to be independent of them.
DEPENDENT = 1e-11
#: Samples that are checked again before all are, at most.
LISTED = 32


class Terms(NamedTuple):
    """Pieces of all samples, see :mod:`.envelope_jit`."""

    tau: NDArray[np.float64]
    vert: NDArray[np.float64]
    number: NDArray[np.int64]
    const: NDArray[np.float64]


class Basis(NamedTuple):
    """Members, the piece each holds, the Cholesky factor of their Gram matrix, and scratch vectors.

    ``size`` is the number of members, 1 if they belong to the multipliers from which the next ascent begins, and the
    number of ``listed`` samples: those that violated their condition when all were last checked.
    """

    size: NDArray[np.int64]
    members: NDArray[np.int64]
    piece: NDArray[np.int64]
    place: NDArray[np.int64]
    chol: NDArray[np.float64]
    work: NDArray[np.float64]
    backup: NDArray[np.float64]
    listed: NDArray[np.int64]


def make_basis(n: int, d: int) -> Basis:
    """Allocate an empty basis for n samples in d dimensions."""
    m = d + 3
    integers = np.zeros(3, np.int64), np.zeros(m, np.int64), np.zeros(m, np.int64), np.full(n, -1, np.int64)
    return Basis(*integers, np.zeros((m, m)), np.zeros((3, m)), np.zeros(n), np.zeros(LISTED, np.int64))


def make_terms(n: int, n_hinges: int) -> Terms:
    """Allocate the pieces of n samples."""
    m = n_hinges + 2
    return Terms(np.zeros((n, m)), np.zeros((n, m + 1)), np.zeros(n, np.int64), np.zeros(n))


@reordering_inner
def dot(p, q):
    """Inner product of two short vectors."""
    total = 0.0
    for k in range(p.size):
        total += p[k] * q[k]
    return total


@inner
def copy(source, target):
    """Copy a vector; a loop compiles ten times faster than an assignment of slices."""
    for k in range(source.size):
        target[k] = source[k]


@inner
def clear(vector):
    """Set a vector to zero."""
    for k in range(vector.size):
        vector[k] = 0.0


@inner
def combine(alpha, a, w):
    """Write sum_i alpha_i a_i into w; most multipliers are zero."""
    clear(w)
    for i in range(alpha.size):
        if alpha[i] != 0.0:
            for k in range(w.size):
                w[k] += alpha[i] * a[i, k]


@reordering_inner
def solve_chol(chol, m, rhs):
    """Solve chol chol' x = rhs in place."""
    for r in range(m):
        s = rhs[r]
        for c in range(r):
            s -= chol[r, c] * rhs[c]
        rhs[r] = s / chol[r, r]
    for r in range(m - 1, -1, -1):
        x = rhs[r] / chol[r, r]
        rhs[r] = x
        for c in range(r):
            rhs[c] -= chol[r, c] * x


@reordering_inner
def append(i, k, a, y, basis):
    """Add sample i with piece k; False if it depends linearly on the members."""
    m = basis.size[0]
    if m >= basis.members.size - 1:
        return False
    row = basis.chol[m]
    own = dot(a[i], a[i]) + 1.0
    rest = own
    for r in range(m):
        j = basis.members[r]
        s = dot(a[i], a[j]) + y[i] * y[j]
        for c in range(r):
            s -= basis.chol[r, c] * row[c]
        row[r] = s / basis.chol[r, r]
        rest -= row[r] * row[r]
    if rest <= DEPENDENT * own:
        return False
    row[m] = np.sqrt(rest)
    basis.members[m], basis.piece[m], basis.place[i] = i, k, m
    basis.size[0] = m + 1
    return True


@inner
def remove(position, basis):
    """Take a member out and restore the triangle by plane rotations."""
    m = basis.size[0] - 1
    chol = basis.chol
    basis.place[basis.members[position]] = -1
    for r in range(position, m):
        basis.members[r], basis.piece[r] = basis.members[r + 1], basis.piece[r + 1]
        basis.place[basis.members[r]] = r
        for c in range(r + 2):
            chol[r, c] = chol[r + 1, c]
    for r in range(position, m):
        x, z = chol[r, r], chol[r, r + 1]
        h = np.hypot(x, z)
        cs, sn = x / h, z / h
        for q in range(r, m):
            p1, p2 = chol[q, r], chol[q, r + 1]
            chol[q, r], chol[q, r + 1] = cs * p1 + sn * p2, cs * p2 - sn * p1
    basis.size[0] = m


@inner
def copy_basis(source, target):
    """Copy the members with their factor, for an ascent from the same multipliers that need not rebuild it."""
    for r in range(target.size[0]):
        target.place[target.members[r]] = -1
    for r in range(source.size[0]):
        target.members[r], target.piece[r] = source.members[r], source.piece[r]
        target.place[source.members[r]] = r
        for c in range(r + 1):
            target.chol[r, c] = source.chol[r, c]
    target.size[0] = source.size[0]


@inner
def room(j, k, alpha, step, terms):
    """How far alpha_j may move along the sign of ``step`` inside piece k."""
    return terms.vert[j, k + 1] - alpha[j] if step > 0 else alpha[j] - terms.vert[j, k]


@inner
def first_block(step, alpha, terms, basis, limit):
    """Ratio test over the members: (largest step <= limit, position of the member that blocks or -1)."""
    theta, blocker = limit, -1
    for r in range(basis.size[0]):
        if abs(step[r]) > 1e-14:
            ratio = max(0.0, room(basis.members[r], basis.piece[r], alpha, step[r], terms)) / abs(step[r])
            if ratio < theta:
                theta, blocker = ratio, r
    return theta, blocker


@inner
def move_members(theta, step, a, alpha, w, terms, basis, blocker):
    """Move the members' multipliers by theta times the step, and w with them; the blocker ends on its vertex."""
    for r in range(basis.size[0]):
        j, k = basis.members[r], basis.piece[r]
        move = theta * step[r]
        if r == blocker:
            end = terms.vert[j, k + 1] if step[r] > 0 else terms.vert[j, k]
            move = end - alpha[j]
            alpha[j] = end
        else:
            alpha[j] = min(max(alpha[j] + move, terms.vert[j, k]), terms.vert[j, k + 1])
        for f in range(w.size):
            w[f] += move * a[j, f]
