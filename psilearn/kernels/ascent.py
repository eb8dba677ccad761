"""Dual ascent by an active set for  min 1/2 ||w||^2 + sum_i phi_i(u_i),  u_i = <a_i, w> + y_i b,  a_i = y_i x_i.

The dual is  max sum_i const_i + gain_i(alpha_i) - 1/2 ||sum_i alpha_i a_i||^2  subject to  sum_i y_i alpha_i = 0
(the intercept is free). Every iterate is dual feasible, so its value is a lower bound at any time. ``members`` are
the samples whose multiplier lies inside a piece of its gain and whose margin is held at that piece's slope tau; all
others rest on a vertex. One sample that violates its optimality condition is driven until it satisfies it; members
that reach the end of their piece leave. A Cholesky factor of the members' Gram matrix (with a constant feature added,
which the equality constraint makes harmless) gives the directions, at most d + 1 members at a time.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .pieces import dual_gain, inner, kernel, slope_above, slope_below

SOLVED, CUT_OFF, STALLED = 0, 1, 2
#: A margin this close to where it should be is there (data are scaled to unit size).
MARGIN_TOLERANCE = 1e-9
_DEPENDENT = 1e-11


class Terms(NamedTuple):
    """Pieces of all samples, see :mod:`.pieces`."""

    tau: NDArray[np.float64]
    vert: NDArray[np.float64]
    number: NDArray[np.int64]
    const: NDArray[np.float64]


class Basis(NamedTuple):
    """Members, the piece each holds, the Cholesky factor of their Gram matrix, and scratch vectors."""

    size: NDArray[np.int64]
    members: NDArray[np.int64]
    piece: NDArray[np.int64]
    place: NDArray[np.int64]
    chol: NDArray[np.float64]
    work: NDArray[np.float64]
    backup: NDArray[np.float64]


def make_basis(n: int, d: int) -> Basis:
    """Allocate an empty basis for n samples in d dimensions."""
    m = d + 3
    integers = np.zeros(1, np.int64), np.zeros(m, np.int64), np.zeros(m, np.int64), np.full(n, -1, np.int64)
    return Basis(*integers, np.zeros((m, m)), np.zeros((2, m)), np.zeros(n))


def make_terms(n: int, n_hinges: int) -> Terms:
    """Allocate the pieces of n samples."""
    m = n_hinges + 2
    return Terms(np.zeros((n, m)), np.zeros((n, m + 1)), np.zeros(n, np.int64), np.zeros(n))


@inner
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
def _margins(a, y, w, b, u):
    """Write the margins of all samples into u."""
    np.dot(a, w, u)
    for i in range(u.size):
        u[i] += y[i] * b[0]


@inner
def combine(alpha, a, w):
    """Write sum_i alpha_i a_i into w; most multipliers are zero."""
    clear(w)
    for i in range(alpha.size):
        if alpha[i] != 0.0:
            for k in range(w.size):
                w[k] += alpha[i] * a[i, k]


@inner
def _solve(chol, m, rhs):
    for r in range(m):
        s = rhs[r]
        for c in range(r):
            s -= chol[r, c] * rhs[c]
        rhs[r] = s / chol[r, r]
    for r in range(m - 1, -1, -1):
        s = rhs[r]
        for c in range(r + 1, m):
            s -= chol[c, r] * rhs[c]
        rhs[r] = s / chol[r, r]


@inner
def _append(i, k, a, y, basis):
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
    if rest <= _DEPENDENT * own:
        return False
    row[m] = np.sqrt(rest)
    basis.members[m], basis.piece[m], basis.place[i] = i, k, m
    basis.size[0] = m + 1
    return True


@inner
def _remove(position, basis):
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
def _room(j, k, alpha, step, terms):
    """How far alpha_j may move along the sign of ``step`` inside piece k."""
    return terms.vert[j, k + 1] - alpha[j] if step > 0 else alpha[j] - terms.vert[j, k]


@inner
def _first_block(step, alpha, terms, basis, limit):
    """Ratio test over the members: (largest step <= limit, position of the member that blocks or -1)."""
    theta, blocker = limit, -1
    for r in range(basis.size[0]):
        if abs(step[r]) > 1e-14:
            ratio = max(0.0, _room(basis.members[r], basis.piece[r], alpha, step[r], terms)) / abs(step[r])
            if ratio < theta:
                theta, blocker = ratio, r
    return theta, blocker


@inner
def _move_members(theta, step, a, alpha, w, terms, basis, blocker):
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


@inner
def _anchor(i, s, a, y, alpha, w, b, terms, basis):
    """Make the best partner of i the only member and set b by it; False if nobody can move along with i."""
    n = alpha.size
    best, partner, piece = -np.inf, n, n
    for j in range(n):
        if j == i:
            continue
        up = s * y[i] * y[j] < 0.0
        if up:
            k = slope_above(j, alpha[j], terms.tau, terms.vert, terms.number)
        else:
            k = slope_below(j, alpha[j], terms.tau, terms.vert, terms.number)
        if k < 0 or k >= terms.number[j]:
            continue
        intercept = y[j] * (terms.tau[j, k] - dot(a[j], w))
        score = -s * y[i] * intercept
        if score > best:
            best, partner, piece = score, j, k
    if partner == n:
        return False
    b[0] = y[partner] * (terms.tau[partner, piece] - dot(a[partner], w))
    return _append(partner, piece, a, y, basis)


@inner
def _drive(i, s, goal, tolerance, rise_wanted, a, y, alpha, w, b, terms, basis):
    """Move alpha_i along s, members following, until its margin condition holds or, if goal is finite, it is there.

    Returns SOLVED; CUT_OFF after a step of unbounded ascent, made long enough to lift the dual by ``rise_wanted``; or
    STALLED if rounding errors leave no direction. Where no other multiplier can balance i, b alone satisfies it.
    """
    step, unit = basis.work[0], basis.work[1]
    forced = np.isfinite(goal)
    for _ in range(50 * (w.size + 2)):
        if s > 0:
            k = slope_above(i, alpha[i], terms.tau, terms.vert, terms.number)
        else:
            k = slope_below(i, alpha[i], terms.tau, terms.vert, terms.number)
        inside = 0 <= k < terms.number[i]
        if not forced and not inside:
            return SOLVED
        alone = basis.size[0] == 0
        if alone and not _anchor(i, s, a, y, alpha, w, b, terms, basis):
            if forced:
                return STALLED
            b[0] = y[i] * (terms.tau[i, k] - dot(a[i], w))
            return SOLVED
        u = dot(a[i], w) + y[i] * b[0]
        missing = s * (terms.tau[i, k] - u) if inside else np.inf
        if not forced and missing <= tolerance:
            if alone:  # no partner gains by moving along with i, so i itself sets b
                _remove(basis.size[0] - 1, basis)
                b[0] = y[i] * (terms.tau[i, k] - dot(a[i], w))
                _append(i, k, a, y, basis)
            return SOLVED
        m = basis.size[0]
        for r in range(m):
            j = basis.members[r]
            step[r] = -s * (dot(a[i], a[j]) + y[i] * y[j])
            unit[r] = y[j]
        _solve(basis.chol, m, step)
        _solve(basis.chol, m, unit)
        top, bottom = s * y[i], 0.0
        for r in range(m):
            top += y[basis.members[r]] * step[r]
            bottom += y[basis.members[r]] * unit[r]
        shift = top / bottom
        rise = s * dot(a[i], a[i])
        for r in range(m):
            step[r] -= shift * unit[r]
            rise += step[r] * dot(a[i], a[basis.members[r]])
        rise = s * (rise + y[i] * shift)
        independent = rise > _DEPENDENT * (dot(a[i], a[i]) + 1.0) and m < w.size + 1
        own_end = terms.vert[i, k + 1] if s > 0 else terms.vert[i, k]
        end = goal if forced else own_end
        own = max(0.0, s * (end - alpha[i]))
        full = missing / rise if independent and not forced else np.inf
        theta, blocker = _first_block(step, alpha, terms, basis, min(own, full))
        unbounded = theta == np.inf
        if unbounded:
            slope, size = s * terms.tau[i, k], 1.0
            for r in range(m):
                slope += step[r] * terms.tau[basis.members[r], basis.piece[r]]
                size += abs(step[r])
            if slope <= 1e-7 * size:
                return STALLED
            theta = 2.0 * rise_wanted / slope
        _move_members(theta, step, a, alpha, w, terms, basis, blocker)
        reached = blocker < 0 and theta == own
        move = end - alpha[i] if reached else s * theta
        alpha[i] += move
        for f in range(w.size):
            w[f] += move * a[i, f]
        b[0] += theta * shift
        if unbounded:
            return CUT_OFF
        if blocker >= 0:
            _remove(blocker, basis)
        elif not reached:
            if not _append(i, k, a, y, basis):
                return STALLED
            return SOLVED
        elif forced:
            return SOLVED
    return STALLED


@inner
def _recentre(a, y, alpha, w, b, terms, basis):
    """Newton steps that bring every member's margin to its tau, members at the end of their piece leaving."""
    step, unit = basis.work[0], basis.work[1]
    for _ in range(4 * (w.size + 2)):
        m = basis.size[0]
        worst = 0.0
        for r in range(m):
            j = basis.members[r]
            step[r] = terms.tau[j, basis.piece[r]] - dot(a[j], w) - y[j] * b[0]
            unit[r] = y[j]
            worst = max(worst, abs(step[r]))
        if m == 0 or worst <= 0.1 * MARGIN_TOLERANCE:
            return
        _solve(basis.chol, m, step)
        _solve(basis.chol, m, unit)
        top, bottom = 0.0, 0.0
        for r in range(m):
            top += y[basis.members[r]] * step[r]
            bottom += y[basis.members[r]] * unit[r]
        shift = top / bottom
        for r in range(m):
            step[r] -= shift * unit[r]
        theta, blocker = _first_block(step, alpha, terms, basis, 1.0)
        _move_members(theta, step, a, alpha, w, terms, basis, blocker)
        b[0] += theta * shift
        if blocker >= 0:
            _remove(blocker, basis)


@inner
def dual_value(a, y, alpha, w, terms, basis):
    """Balance sum_i y_i alpha_i to rounding, recompute w from alpha, and return the dual value."""
    off = dot(y, alpha)
    best, room = -1, 0.0
    for r in range(basis.size[0]):
        j, k = basis.members[r], basis.piece[r]
        free = _room(j, k, alpha, -y[j] * off, terms)
        if free > room:
            best, room = j, free
    if best >= 0 and room > abs(off):
        alpha[best] -= y[best] * off
    combine(alpha, a, w)
    total = 0.0
    for i in range(alpha.size):
        total += terms.const[i]
        if alpha[i] != 0.0:
            total += dual_gain(i, alpha[i], terms.tau, terms.vert, terms.number)
    return total - 0.5 * dot(w, w)


@inner
def _load(a, y, alpha, w, b, terms, basis):
    """Rebuild w and the members from alpha: who lies inside a piece with its margin at (about) that piece's tau."""
    for r in range(basis.size[0]):
        basis.place[basis.members[r]] = -1
    basis.size[0] = 0
    combine(alpha, a, w)
    for i in range(alpha.size):
        k = slope_above(i, alpha[i], terms.tau, terms.vert, terms.number)
        if k < terms.number[i] and alpha[i] > terms.vert[i, k]:
            u = dot(a[i], w) + y[i] * b[0]
            if abs(u - terms.tau[i, k]) < 1e-6:
                _append(i, k, a, y, basis)
    _recentre(a, y, alpha, w, b, terms, basis)


@inner
def _most_violated(a, y, alpha, w, b, u, terms, basis):
    """Margins of all samples, and (sample, direction, goal, drift, tolerance): who should move next, n if nobody.

    A multiplier outside its range comes first and must reach the goal, the end of the range; else goal is infinite.
    """
    n = alpha.size
    _margins(a, y, w, b, u)
    size = 0.0
    for i in range(n):
        size += abs(alpha[i])
    # Margins carry the rounding errors of sum_i alpha_i a_i.
    tolerance = MARGIN_TOLERANCE + 1e-14 * size
    worst, who, sign, goal, drift = tolerance, n, 1.0, np.inf, 0.0
    for i in range(n):
        low, high = terms.vert[i, 0], terms.vert[i, terms.number[i]]
        if alpha[i] > high:
            worst, who, sign, goal = np.inf, i, -1.0, high
            continue
        if alpha[i] < low:
            worst, who, sign, goal = np.inf, i, 1.0, low
            continue
        r = basis.place[i]
        if r >= 0:
            drift = max(drift, abs(u[i] - terms.tau[i, basis.piece[r]]))
            continue
        k = slope_above(i, alpha[i], terms.tau, terms.vert, terms.number)
        if k < terms.number[i] and terms.tau[i, k] - u[i] > worst:
            worst, who, sign = terms.tau[i, k] - u[i], i, 1.0
        k = slope_below(i, alpha[i], terms.tau, terms.vert, terms.number)
        if k >= 0 and u[i] - terms.tau[i, k] > worst:
            worst, who, sign = u[i] - terms.tau[i, k], i, -1.0
    return who, sign, goal, drift if drift > max(tolerance, 1e-3 * worst) else 0.0, tolerance


@kernel
def ascend(a, y, alpha, w, b, u, terms, basis, cutoff, max_pivots):
    """Maximise the dual from the multipliers ``alpha``. Returns (bound, flag); margins are left in ``u``.

    Stops with CUT_OFF as soon as the dual value reaches ``cutoff`` (finite); the value returned always belongs to the
    dual feasible ``alpha`` left behind, also where the node's constraints contradict each other and the dual is
    unbounded. Multipliers outside their range, which a change of the terms may leave, are first driven back into it; if
    rounding errors forbid that, the ascent starts again from zero.
    """
    n = alpha.size
    restarts, stalls, checked = 0, 0, 0
    value = -np.inf
    loaded = False
    for pivot in range(max_pivots):
        if not loaded:
            _load(a, y, alpha, w, b, terms, basis)
            loaded = True
        who, sign, goal, drift, tolerance = _most_violated(a, y, alpha, w, b, u, terms, basis)
        if drift > 0.0:
            _recentre(a, y, alpha, w, b, terms, basis)
            if drift > 1e-6:
                continue
        if who == n:
            return dual_value(a, y, alpha, w, terms, basis), SOLVED
        if goal == np.inf and pivot >= checked + 8:
            checked = pivot
            value = dual_value(a, y, alpha, w, terms, basis)
            if value >= cutoff:
                return value, CUT_OFF
        if np.isfinite(goal) and basis.place[who] >= 0:
            _remove(basis.place[who], basis)
        wanted = 2.0 * max(1.0, abs(cutoff)) + max(0.0, -value if value > -np.inf else 0.0)
        copy(alpha, basis.backup)
        flag = _drive(who, sign, goal, tolerance, wanted, a, y, alpha, w, b, terms, basis)
        if flag == CUT_OFF:
            value = dual_value(a, y, alpha, w, terms, basis)
            if value >= cutoff:
                return value, CUT_OFF
            copy(basis.backup, alpha)
            loaded = False
        if flag == SOLVED:
            stalls = 0
        elif np.isfinite(goal):
            restarts += 1
            clear(alpha)
            loaded = False
        else:
            stalls += 1
        if stalls > 1 or restarts > 1:
            break
    for i in range(n):
        if alpha[i] > terms.vert[i, terms.number[i]] or alpha[i] < terms.vert[i, 0]:
            clear(alpha)
            break
    _load(a, y, alpha, w, b, terms, basis)
    value = dual_value(a, y, alpha, w, terms, basis)
    _margins(a, y, w, b, u)
    return value, STALLED
