"""Dual ascent by an active set for  min 1/2 ||w||^2 + sum_i phi_i(u_i),  u_i = <a_i, w> + y_i b,  a_i = y_i x_i.

The dual is  max sum_i const_i + gain_i(alpha_i) - 1/2 ||sum_i alpha_i a_i||^2  subject to  sum_i y_i alpha_i = 0
(the intercept is free). Every iterate is dual feasible, so its value is a lower bound at any time. ``members`` are
the samples whose multiplier lies inside a piece of its gain and whose margin is held at that piece's slope tau; all
others rest on a vertex. One sample that violates its optimality condition is driven until it satisfies it; members
that reach the end of their piece leave. A Cholesky factor of the members' Gram matrix (with a constant feature added,
which the equality constraint makes harmless) gives the directions, at most d + 1 members at a time.
"""

from __future__ import annotations

import numpy as np

from ....core._jit import inner
from .active_set_jit import (
    DEPENDENT,
    append,
    clear,
    combine,
    copy,
    dot,
    first_block,
    move_members,
    remove,
    room,
    solve_chol,
)
from .choice_jit import MARGIN_TOLERANCE, margins, most_violated, most_violated_listed
from .pieces_jit import dual_gain, slope_above, slope_below

SOLVED, CUT_OFF, STALLED = 0, 1, 2
#: A margin this close to the slope of a piece is held there by a multiplier inside the piece.
_AT_SLOPE = 1e-6
#: Part of the size of all multipliers by which rounding may leave them unbalanced.
BALANCED = 1e-12
#: Pivots after which the dual value, and w with it, is computed anew at the latest.
_REFRESH = 16


@inner
def _anchor(i, s, a, y, alpha, w, b, terms, basis):
    """Make the best partner of i the only member and set b by it; False if none can move along with i."""
    n = alpha.size
    best, partner, piece = -np.inf, n, n
    for j in range(n):
        if j == i:
            continue
        up = s * y[i] * y[j] < 0.0
        k = slope_above(j, alpha[j], terms) if up else slope_below(j, alpha[j], terms)
        if k < 0 or k >= terms.number[j] or not terms.vert[j, k] <= alpha[j] <= terms.vert[j, k + 1]:
            continue
        intercept = y[j] * (terms.tau[j, k] - dot(a[j], w))
        score = -s * y[i] * intercept
        if score > best:
            best, partner, piece = score, j, k
    if partner == n:
        return False
    b[0] = y[partner] * (terms.tau[partner, piece] - dot(a[partner], w))
    return append(partner, piece, a, y, basis)


@inner
def _balanced(step, unit, balance, y, basis):
    """Solve for the members' steps, ``step`` and ``unit`` (their labels) being the right-hand sides, with sum_i y_i
    step_i = -balance; returns the step of the intercept that this takes."""
    m = basis.size[0]
    solve_chol(basis.chol, m, step)
    solve_chol(basis.chol, m, unit)
    top, bottom = balance, 0.0
    for r in range(m):
        top += y[basis.members[r]] * step[r]
        bottom += y[basis.members[r]] * unit[r]
    shift = top / bottom
    for r in range(m):
        step[r] -= shift * unit[r]
    return shift


@inner
def _drive(i, s, goal, tolerance, rise_wanted, a, y, alpha, w, b, terms, basis):
    """Move alpha_i along s, members following, until its margin condition holds or, if goal is finite, it is there.

    Returns SOLVED; CUT_OFF after a step of unbounded ascent, made long enough to lift the dual by ``rise_wanted``; or
    STALLED if rounding errors leave no direction. Where no other multiplier can balance i, b alone satisfies it. With
    it, by how much the dual rose, up to rounding (a forced move apart).
    """
    step, unit, inner_products = basis.work[0], basis.work[1], basis.work[2]
    forced = np.isfinite(goal)
    gain = 0.0
    for _ in range(50 * (w.size + 2)):
        k = slope_above(i, alpha[i], terms) if s > 0 else slope_below(i, alpha[i], terms)
        inside = 0 <= k < terms.number[i]
        if not forced and not inside:
            return SOLVED, gain
        alone = basis.size[0] == 0
        if alone and not _anchor(i, s, a, y, alpha, w, b, terms, basis):
            if forced:
                return STALLED, gain
            b[0] = y[i] * (terms.tau[i, k] - dot(a[i], w))
            return SOLVED, gain
        u = dot(a[i], w) + y[i] * b[0]
        missing = s * (terms.tau[i, k] - u) if inside else np.inf
        if not forced and missing <= tolerance:
            if alone:  # no partner gains by moving along with i, so i itself sets b
                remove(basis.size[0] - 1, basis)
                b[0] = y[i] * (terms.tau[i, k] - dot(a[i], w))
                append(i, k, a, y, basis)
            return SOLVED, gain
        m = basis.size[0]
        for r in range(m):
            j = basis.members[r]
            inner_products[r] = dot(a[i], a[j])
            step[r] = -s * (inner_products[r] + y[i] * y[j])
            unit[r] = y[j]
        shift = _balanced(step, unit, s * y[i], y, basis)
        rise = s * dot(a[i], a[i])
        for r in range(m):
            rise += step[r] * inner_products[r]
        rise = s * (rise + y[i] * shift)
        independent = rise > DEPENDENT * (dot(a[i], a[i]) + 1.0) and m < w.size + 1
        own_end = terms.vert[i, k + 1] if s > 0 else terms.vert[i, k]
        end = goal if forced else own_end
        own = max(0.0, s * (end - alpha[i]))
        full = missing / rise if independent and not forced else np.inf
        theta, blocker = first_block(step, alpha, terms, basis, min(own, full))
        unbounded = theta == np.inf
        if unbounded:
            slope, size = s * terms.tau[i, k], 1.0
            for r in range(m):
                slope += step[r] * terms.tau[basis.members[r], basis.piece[r]]
                size += abs(step[r])
            if slope <= 1e-7 * size:
                return STALLED, gain
            theta = 2.0 * rise_wanted / slope
        move_members(theta, step, a, alpha, w, terms, basis, blocker)
        reached = blocker < 0 and theta == own
        move = end - alpha[i] if reached else s * theta
        alpha[i] += move
        for f in range(w.size):
            w[f] += move * a[i, f]
        b[0] += theta * shift
        if unbounded:
            return CUT_OFF, gain
        if not forced:
            gain += theta * (missing - 0.5 * theta * rise)
        if blocker >= 0:
            remove(blocker, basis)
        elif not reached:
            if not append(i, k, a, y, basis):
                return STALLED, gain
            return SOLVED, gain
        elif forced:
            return SOLVED, gain
    return STALLED, gain


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
        shift = _balanced(step, unit, 0.0, y, basis)
        theta, blocker = first_block(step, alpha, terms, basis, 1.0)
        move_members(theta, step, a, alpha, w, terms, basis, blocker)
        b[0] += theta * shift
        if blocker >= 0:
            remove(blocker, basis)


@inner
def dual_value(a, y, alpha, w, terms, basis):
    """Balance sum_i y_i alpha_i to rounding, recompute w from alpha, and return the dual value, -inf if infeasible."""
    off = dot(y, alpha)
    best, most = -1, 0.0
    for r in range(basis.size[0]):
        j, k = basis.members[r], basis.piece[r]
        free = room(j, k, alpha, -y[j] * off, terms)
        if free > most:
            best, most = j, free
    if best >= 0 and most > abs(off):
        alpha[best] -= y[best] * off
        off = 0.0
    combine(alpha, a, w)
    total, size = 0.0, 1.0
    for i in range(alpha.size):
        total += terms.const[i]
        if not terms.vert[i, 0] <= alpha[i] <= terms.vert[i, terms.number[i]]:
            return -np.inf
        if alpha[i] != 0.0:
            total += dual_gain(i, alpha[i], terms)
            size += abs(alpha[i])
    return total - 0.5 * dot(w, w) if abs(off) <= BALANCED * size else -np.inf


@inner
def _load(a, y, alpha, w, b, u, terms, basis, to_follow):
    """Rebuild w and the members from alpha: those inside a piece with its margin at (about) that piece's tau.

    All others belong on the vertex between the pieces above and below their margin. Where the terms have changed since
    alpha was found, they go there at once if ``to_follow``, which saves most pivots of a node (23 -> 8).
    """
    for r in range(basis.size[0]):
        basis.place[basis.members[r]] = -1
    basis.size[0] = 0
    combine(alpha, a, w)
    margins(a, y, w, b, u)
    moved = False
    for i in range(alpha.size):
        k, margin = 0, u[i]
        while k < terms.number[i] and terms.tau[i, k] > margin + _AT_SLOPE:
            k += 1
        least, most = terms.vert[i, k], terms.vert[i, k]
        if k < terms.number[i] and terms.tau[i, k] > margin - _AT_SLOPE:
            most = terms.vert[i, k + 1]
            if least < alpha[i] < most:
                append(i, k, a, y, basis)
        if least == np.inf:
            least = terms.vert[i, k - 1]
        if most == -np.inf:
            most = terms.vert[i, terms.number[i]]
        u[i] = min(max(alpha[i], least), most)
        moved = moved or u[i] != alpha[i]
    if moved and to_follow:
        _follow(a, y, alpha, w, b, u, terms, basis)
    _recentre(a, y, alpha, w, b, terms, basis)


@inner
def _follow(a, y, alpha, w, b, goal, terms, basis):
    """Move all multipliers to their goals, members following so that their margins stay; one that is blocked leaves.

    Stops where no member is left.
    """
    step, unit, push = basis.work[0], basis.work[1], basis.work[2]
    clear(push)
    balance = 0.0
    for i in range(alpha.size):
        move = goal[i] - alpha[i]
        if move != 0.0:
            balance += y[i] * move
            for f in range(w.size):
                push[f] += move * a[i, f]
    left = 1.0
    while left > 0.0 and basis.size[0] > 0:
        m = basis.size[0]
        for r in range(m):
            j = basis.members[r]
            total = y[j] * balance
            for f in range(w.size):
                total += a[j, f] * push[f]
            step[r] = -total
            unit[r] = y[j]
        shift = _balanced(step, unit, balance, y, basis)
        theta, blocker = first_block(step, alpha, terms, basis, left)
        move_members(theta, step, a, alpha, w, terms, basis, blocker)
        for f in range(w.size):
            w[f] += theta * push[f]
        b[0] += theta * shift
        for i in range(alpha.size):
            if basis.place[i] < 0 and goal[i] != alpha[i]:
                alpha[i] = goal[i] if theta == left else alpha[i] + theta / left * (goal[i] - alpha[i])
        left = 0.0 if theta == left else left - theta
        if blocker >= 0:
            goal[basis.members[blocker]] = alpha[basis.members[blocker]]
            remove(blocker, basis)


@inner
def reset(alpha, y, terms):
    """Begin anew: multipliers at 0, or at the end of their range nearest to it, balanced by one without a limit.

    Where there is none they are all 0, and those beyond their range are to be driven back.
    """
    off = 0.0
    for i in range(alpha.size):
        alpha[i] = min(max(0.0, terms.vert[i, 0]), terms.vert[i, terms.number[i]])
        off += y[i] * alpha[i]
    if off == 0.0:
        return
    for i in range(alpha.size):
        if terms.vert[i, terms.number[i]] == np.inf and y[i] * off < 0.0:
            alpha[i] -= y[i] * off
            return
    clear(alpha)


@inner
def ascend(a, y, alpha, w, b, u, terms, basis, cutoff, max_pivots):
    """Maximise the dual from the multipliers ``alpha``. Returns (bound, flag); margins are left in ``u``.

    Stops with CUT_OFF as soon as the dual value reaches ``cutoff`` (finite); the value returned always belongs to the
    dual feasible ``alpha`` left behind, also where the node's constraints contradict each other and the dual is
    unbounded. Multipliers outside their range, which a change of the terms may leave, are first driven back into it; if
    rounding errors forbid that, the ascent starts again from zero.
    """
    n = alpha.size
    restarts, stalls, tolerance = 0, 0, MARGIN_TOLERANCE
    value = -np.inf
    loaded, basis.size[1], basis.size[2] = basis.size[1] == 1, 0, 0
    for pivot in range(max_pivots):
        if not loaded:
            _load(a, y, alpha, w, b, u, terms, basis, True)
            loaded, basis.size[2] = True, 0
        who, sign, goal, drift = n, 1.0, np.inf, 0.0
        if basis.size[2] > 0:
            who, sign = most_violated_listed(a, y, alpha, w, b, terms, basis, tolerance)
        if who == n:
            who, sign, goal, drift, tolerance = most_violated(a, y, alpha, w, b, u, terms, basis)
        if drift > 0.0:
            _recentre(a, y, alpha, w, b, terms, basis)
            if drift > 1e-6:
                continue
        if who == n:
            value = dual_value(a, y, alpha, w, terms, basis)
            if value > -np.inf:
                return value, SOLVED
            restarts += 1
            if restarts > 1:
                break
            reset(alpha, y, terms)
            loaded = False
            continue
        # Between, the value is known but for rounding errors; it counts only if it is computed anew.
        if goal == np.inf and (value == -np.inf or value >= cutoff or pivot % _REFRESH == 0):
            value = dual_value(a, y, alpha, w, terms, basis)
            if value >= cutoff:
                margins(a, y, w, b, u)
                return value, CUT_OFF
        if np.isfinite(goal) and basis.place[who] >= 0:
            remove(basis.place[who], basis)
        wanted = 2.0 * max(1.0, abs(cutoff)) + max(0.0, -value if value > -np.inf else 0.0)
        copy(alpha, basis.backup)
        flag, gain = _drive(who, sign, goal, tolerance, wanted, a, y, alpha, w, b, terms, basis)
        value = value + gain if goal == np.inf else -np.inf
        if flag == CUT_OFF:
            value = dual_value(a, y, alpha, w, terms, basis)
            if value >= cutoff:
                margins(a, y, w, b, u)
                return value, CUT_OFF
            copy(basis.backup, alpha)
            loaded, value = False, -np.inf
        if flag == SOLVED:
            stalls = 0
        elif np.isfinite(goal):
            restarts += 1
            reset(alpha, y, terms)
            loaded = False
        else:
            stalls += 1
            basis.size[2] = 0
        if stalls > 1 or restarts > 1:
            break
    _load(a, y, alpha, w, b, u, terms, basis, False)
    value = dual_value(a, y, alpha, w, terms, basis)
    if value == -np.inf:
        reset(alpha, y, terms)
        _load(a, y, alpha, w, b, u, terms, basis, False)
        value = dual_value(a, y, alpha, w, terms, basis)
    margins(a, y, w, b, u)
    return value, STALLED
