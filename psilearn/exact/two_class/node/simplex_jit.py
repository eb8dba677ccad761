"""Dual ascent by the simplex method for  min ||w||_1 + sum_i phi_i(u_i),  u_i = <a_i, w> + y_i b.

Everything is a term: n samples with rows (a_i, y_i), d coefficients with rows (e_j, 0) and gain 0 on [-1, 1] (the
absolute value), and the intercept with row (0, 1) and the single multiplier 0. The dual is

    max sum_k const_k + gain_k(alpha_k)   subject to   sum_k alpha_k row_k = 0,

a linear program with piecewise linear gains and d + 1 equations. d + 1 basic terms hold their margin at the slope
tau of the piece they are in and so define (w, b); the others rest on vertices. Every iterate is dual feasible. A
driven term moves the basic ones; one that reaches the end of its piece passes into the next piece while the dual
still rises (a long step), and leaves the basis otherwise.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ....core._jit import allocating_inner, inner
from ...inverse_jit import invert
from .active_set_jit import Terms, clear, copy
from .ascent_jit import BALANCED, CUT_OFF, SOLVED, STALLED
from .choice_jit import MARGIN_TOLERANCE
from .pieces_jit import dual_gain, slope_above, slope_below

#: Pivots after which the inverse of the basis is computed anew.
_REFRESH = 40
#: Slope of the last piece of a multiplier beyond its range: steeper than margins of unit data ever are.
_PENALTY = 1e7


class Tableau(NamedTuple):
    """Rows of all terms, basic terms with the pieces they hold, the inverse of the basic rows, and scratch."""

    rows: NDArray[np.float64]
    members: NDArray[np.int64]
    piece: NDArray[np.int64]
    place: NDArray[np.int64]
    inverse: NDArray[np.float64]
    basic: NDArray[np.float64]
    theta: NDArray[np.float64]
    step: NDArray[np.float64]
    margins: NDArray[np.float64]
    full: NDArray[np.float64]
    backup: NDArray[np.float64]


def make_tableau(a: NDArray[np.float64], y: NDArray[np.float64]) -> Tableau:
    """Allocate a tableau for samples a_i = y_i x_i with labels y."""
    n, d = a.shape
    m = d + 1
    rows = np.zeros((n + m, m))
    rows[:n, :d], rows[:n, d] = a, y
    rows[n:, :] = np.eye(m)
    whole, square = np.full(n + m, -1, np.int64), (np.zeros((m, m)), np.zeros((m, m)))
    members = np.zeros(m, np.int64), np.zeros(m, np.int64)
    vectors = np.zeros(m), np.zeros(m), np.zeros(n + m), np.zeros(n + m), np.zeros(n + m)
    return Tableau(rows, *members, whole, *square, *vectors)


def make_terms(n: int, d: int, n_hinges: int) -> Terms:
    """Allocate the pieces of n samples and fill those of the coefficients and the intercept."""
    m = n_hinges + 2
    terms = Terms(
        np.zeros((n + d + 1, m)), np.zeros((n + d + 1, m + 1)), np.zeros(n + d + 1, np.int64), np.zeros(n + d + 1)
    )
    terms.number[n:] = 1
    terms.vert[n : n + d, 0], terms.vert[n : n + d, 1] = -1.0, 1.0
    return terms


@inner
def _end_of_piece(k, p, step, terms):
    return terms.vert[k, p + 1] if step > 0 else terms.vert[k, p]


@inner
def _set_theta(terms, tab):
    m = tab.theta.size
    for c in range(m):
        tab.theta[c] = 0.0
    for r in range(m):
        tau = terms.tau[tab.members[r], tab.piece[r]]
        if tau != 0.0:
            for c in range(m):
                tab.theta[c] += tab.inverse[c, r] * tau


@inner
def _exchange(position, k, p, tab):
    """Put term k with piece p in the place of a basic term; False if its row is too close to the others' span."""
    m = tab.theta.size
    row = tab.step
    for r in range(m):
        row[r] = 0.0
        for c in range(m):
            row[r] += tab.rows[k, c] * tab.inverse[c, r]
    pivot = row[position]
    if abs(pivot) < 1e-10:
        return False
    for c in range(m):
        share = tab.inverse[c, position] / pivot
        for r in range(m):
            if r != position:
                tab.inverse[c, r] -= share * row[r]
        tab.inverse[c, position] = share
    tab.place[tab.members[position]] = -1
    tab.members[position], tab.piece[position], tab.place[k] = k, p, position
    return True


@inner
def _load(alpha, terms, tab):
    """Basis of the unit rows, into which terms inside a piece are exchanged for those that rest on a vertex."""
    m = tab.theta.size
    n = alpha.size - m
    for k in range(alpha.size):
        tab.place[k] = -1
    for r in range(m):
        tab.members[r], tab.piece[r], tab.place[n + r] = n + r, 0, r
        for c in range(m):
            tab.inverse[r, c] = 1.0 if r == c else 0.0
    for k in range(n):
        p = slope_above(k, alpha[k], terms)
        if p < terms.number[k] and alpha[k] > terms.vert[k, p]:
            best, position = 1e-7, m
            for r in range(m):
                j = tab.members[r]
                inside = alpha[j] > terms.vert[j, tab.piece[r]] and alpha[j] < terms.vert[j, tab.piece[r] + 1]
                if not inside:
                    size = 0.0
                    for c in range(m):
                        size += tab.rows[k, c] * tab.inverse[c, r]
                    if abs(size) > best:
                        best, position = abs(size), r
            if position < m:
                _exchange(position, k, p, tab)
    _set_theta(terms, tab)


@inner
def _refresh(tab):
    m = tab.theta.size
    for r in range(m):
        for c in range(m):
            tab.basic[r, c] = tab.rows[tab.members[r], c]
    invert(tab.basic, tab.inverse)


@inner
def _balance(alpha, tab, n):
    """Recompute the multipliers of the coefficients and return the largest; infinity if no term can balance y."""
    m = tab.theta.size
    worst = 0.0
    for c in range(m):
        total, size = 0.0, 1.0
        for i in range(n):
            if alpha[i] != 0.0:
                total += alpha[i] * tab.rows[i, c]
                size += abs(alpha[i])
        if c < m - 1:
            alpha[n + c] = -total
            worst = max(worst, abs(total))
        else:
            if abs(total) > BALANCED * size:
                worst = np.inf
            for r in range(m):
                i = tab.members[r]
                if i < n and tab.place[i] == r:
                    worst = 0.0
                    alpha[i] -= tab.rows[i, c] * total
                    for f in range(m - 1):
                        alpha[n + f] += tab.rows[i, c] * total * tab.rows[i, f]
                        worst = max(worst, abs(alpha[n + f]))
                    break
    for c in range(n, n + m - 1):
        if abs(alpha[c]) > 1.0 - 1e-11:  # a rounding error must not move a coefficient off its vertex
            alpha[c] = 1.0 if alpha[c] > 0 else -1.0
    return worst


@inner
def lp_dual_value(alpha, terms, tab):
    """Balance the equations, shrink the multipliers until |sum_i alpha_i a_i| <= 1, and return the dual value."""
    n = alpha.size - tab.theta.size
    size = _balance(alpha, tab, n)
    shrink = (1.0 - 1e-15) / size if size > 1.0 else 1.0
    total = 0.0
    for i in range(n):
        if alpha[i] != 0.0:
            low, high = terms.vert[i, 0], terms.vert[i, terms.number[i]]
            part = min(max(shrink * alpha[i], low), high)
            if abs(part - shrink * alpha[i]) > 1e-9 * (1.0 + abs(part)):
                return -np.inf
            total += dual_gain(i, part, terms)
        total += terms.const[i]
    return total


@allocating_inner
def _set_margins(tab):
    """Write the margins of all terms."""
    np.dot(tab.rows, tab.theta, tab.margins)


@inner
def _most_violated(alpha, terms, tab):
    """Margins of all terms, and (term, direction): which moves next; the number of terms if none does."""
    count = alpha.size
    _set_margins(tab)
    worst, who, sign = MARGIN_TOLERANCE, count, 1.0
    for k in range(count - 1):
        if tab.place[k] >= 0:
            continue
        u = tab.margins[k]
        p = slope_above(k, alpha[k], terms)
        if p < terms.number[k] and terms.tau[k, p] - u > worst:
            worst, who, sign = terms.tau[k, p] - u, k, 1.0
        p = slope_below(k, alpha[k], terms)
        if p >= 0 and u - terms.tau[k, p] > worst:
            worst, who, sign = u - terms.tau[k, p], k, -1.0
    return who, sign


@inner
def _drive(k, s, wanted, alpha, terms, tab):
    """Move alpha_k along s, basic terms following, until the dual stops rising; then exchange it for what blocks."""
    m = tab.theta.size
    for r in range(m):
        total = 0.0
        for c in range(m):
            total += tab.rows[k, c] * tab.inverse[c, r]
        tab.step[r] = -s * total
    p = slope_above(k, alpha[k], terms) if s > 0 else slope_below(k, alpha[k], terms)
    slope = s * (terms.tau[k, p] - tab.margins[k])
    for _ in range(20 * m + 100):
        end = _end_of_piece(k, p, s, terms)
        move, blocker = max(0.0, s * (end - alpha[k])), m
        for r in range(m):
            if abs(tab.step[r]) > 1e-11:
                j = tab.members[r]
                room = max(0.0, (_end_of_piece(j, tab.piece[r], tab.step[r], terms) - alpha[j]) / tab.step[r])
                if room < move or (room == move and blocker < m and abs(tab.step[r]) > abs(tab.step[blocker])):
                    move, blocker = room, r
        unbounded = move == np.inf
        if unbounded:
            if slope <= 1e-7:
                return STALLED
            move = 2.0 * wanted / slope
        alpha[k] = alpha[k] + s * move if blocker < m or unbounded else end
        for r in range(m):
            alpha[tab.members[r]] += move * tab.step[r]
        if unbounded:
            return CUT_OFF
        if blocker < m:
            j, q = tab.members[blocker], tab.piece[blocker]
            alpha[j] = _end_of_piece(j, q, tab.step[blocker], terms)
            after = q + 1 if tab.step[blocker] > 0 else q - 1
            if 0 <= after < terms.number[j]:
                less = abs(tab.step[blocker]) * abs(terms.tau[j, q] - terms.tau[j, after])
                if slope - less > MARGIN_TOLERANCE:
                    slope -= less
                    tab.piece[blocker] = after
                    continue
            return SOLVED if _exchange(blocker, k, p, tab) else STALLED
        after = p + 1 if s > 0 else p - 1
        if not 0 <= after < terms.number[k]:
            return SOLVED
        slope -= abs(terms.tau[k, p] - terms.tau[k, after])
        if slope <= MARGIN_TOLERANCE:
            return SOLVED
        p = after
    return STALLED


@inner
def _admit(alpha, terms, n):
    """Give multipliers beyond their range a last, steeply falling piece: the ascent drives them back."""
    for i in range(n):
        k = terms.number[i]
        if alpha[i] > terms.vert[i, k]:
            terms.tau[i, k], terms.vert[i, k + 1] = -_PENALTY, alpha[i]
            terms.number[i] = k + 1


@inner
def _dismiss(terms, n):
    for i in range(n):
        k = terms.number[i]
        if k > 0 and terms.tau[i, k - 1] == -_PENALTY:
            terms.number[i] = k - 1


@inner
def lp_ascend(alpha, w, b, u, terms, tab, cutoff, max_pivots):
    """Maximise the dual from the samples' multipliers ``alpha``. Returns (bound, flag); margins are left in ``u``.

    The counterpart of :func:`.ascent_jit.ascend` for the 1-norm, with the same promises.
    """
    n, m, full = u.size, tab.theta.size, tab.full
    copy(alpha, full)
    for i in range(n):
        if full[i] < terms.vert[i, 0]:  # once OUT, which no child undoes: not worth repairing
            clear(full)
            break
    _load(full, terms, tab)
    _balance(full, tab, n)
    full[n + m - 1] = 0.0
    _admit(full, terms, n)
    _load(full, terms, tab)
    flag, stalls, wanted = STALLED, 0, 2.0 * max(1.0, abs(cutoff))
    for pivot in range(1, max_pivots):
        if pivot % _REFRESH == 0:
            _refresh(tab)
        if pivot % 8 == 0 and lp_dual_value(full, terms, tab) >= cutoff:
            flag = CUT_OFF
            break
        _set_theta(terms, tab)
        who, sign = _most_violated(full, terms, tab)
        if who == full.size:
            flag = SOLVED
            break
        copy(full, tab.backup)
        outcome = _drive(who, sign, wanted, full, terms, tab)
        if outcome == CUT_OFF and lp_dual_value(full, terms, tab) >= cutoff:
            flag = CUT_OFF
            break
        if outcome != SOLVED:
            copy(tab.backup, full)
            _load(full, terms, tab)
            stalls += 1
        if stalls > 3:
            break
    _dismiss(terms, n)
    value = lp_dual_value(full, terms, tab)
    if value == -np.inf:
        clear(full)
        _load(full, terms, tab)
        value = lp_dual_value(full, terms, tab)
        flag = STALLED
    _set_theta(terms, tab)
    _set_margins(tab)
    for i in range(n):
        alpha[i] = full[i]
        u[i] = tab.margins[i]
    for c in range(m - 1):
        w[c] = tab.theta[c]
    b[0] = tab.theta[m - 1]
    return value, flag
