"""The hard margin with one elastic variable: a primal active set in d + 2 variables, warm from any feasible point.

    f(S) = min  1/2 ||w||^2 + M s     s.t.   <a_i, w> + y_i b + v_i s >= t  (i in S),   s >= 0,     a_i = y_i x_i

with fixed weights v_i > 0 of the elastic variable s, so that every set S is feasible. For M >= sum_i v_i alpha_i of the
hard margin's multipliers the optimum has s = 0 and f(S) is the hard margin's value conv(S); in any case f(S) is at most
conv(S). A sample may be reversed (sign -1): its row is then -<a_i, w> - y_i b + v_i s >= -t. The weight in a row is v_i
times the sample's ``elasticity``.

Rows (a_i, y_i, v_i), and the row of s >= 0, are tight or not. The tight ones, ``members``, are kept in an orthogonal
factorisation G' = Q R, whose last columns span the directions that keep them tight. The Hessian is the identity but for
b and s, so its inverse on these directions is a correction of rank two. A step goes to the optimum over the members or
to the first row in the way, which becomes a member; at the optimum a member with a negative multiplier leaves.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ....core._jit import inner
from ..node.active_set_jit import clear, copy, dot


class RowStatus(IntEnum):
    """Status of a row in the active set: what a sample's constraint does, not what is decided about the sample."""

    INACTIVE = 0  #: it may become tight
    ACTIVE = 1  #: it is a member: held tight
    ABSENT = 2  #: it is no constraint


INACTIVE, ACTIVE, ABSENT = RowStatus
#: A point that misses a row by more than this is no solution (data have unit size).
INFEASIBLE = 1e-8
#: Curvature, and part of a step's length, up to which a direction counts as flat.
_FLAT = 1e-10
#: Part of its length by which a row must leave the members' span to be independent of them.
_INDEPENDENT = 1e-12


class Lifted(NamedTuple):
    """Rows of all samples and of s >= 0 (last), by row and column, right-hand sides, M, elasticity of known fates."""

    rows: NDArray[np.float64]
    columns: NDArray[np.float64]
    right: NDArray[np.float64]
    elastic_cost: float
    known_elasticity: float


class Iterate(NamedTuple):
    """A point x = (w, b, s) with its slacks, statuses, members, their factors, scratch vectors, signs, elasticity."""

    x: NDArray[np.float64]
    slack: NDArray[np.float64]
    status: NDArray[np.int8]
    size: NDArray[np.int64]
    members: NDArray[np.int64]
    q: NDArray[np.float64]
    r: NDArray[np.float64]
    multiplier: NDArray[np.float64]
    step: NDArray[np.float64]
    move: NDArray[np.float64]
    spare: NDArray[np.float64]
    sign: NDArray[np.float64]
    elasticity: NDArray[np.float64]


def make_iterate(n_rows: int, width: int) -> Iterate:
    """Allocate a point for ``n_rows`` rows in ``width`` variables."""
    square = np.zeros((width, width)), np.zeros((width, width))
    vectors = np.zeros(width), np.zeros(width), np.zeros(n_rows), np.zeros(width)
    integers, signs = (np.zeros(1, np.int64), np.zeros(width, np.int64)), (np.ones(n_rows), np.ones(n_rows))
    return Iterate(np.zeros(width), np.zeros(n_rows), np.zeros(n_rows, np.int8), *integers, *square, *vectors, *signs)


@inner
def copy_iterate(source, target):
    """Copy everything but scratch vectors."""
    copy(source.slack, target.slack)
    copy(source.status, target.status)
    copy(source.sign, target.sign)
    copy(source.elasticity, target.elasticity)
    copy(source.x, target.x)
    copy(source.members, target.members)
    target.size[0] = source.size[0]
    for k in range(source.x.size):
        copy(source.q[k], target.q[k])
        copy(source.r[k], target.r[k])


@inner
def reset(iterate):
    """No member, every row inactive with its own sign and weight."""
    for i in range(iterate.slack.size):
        iterate.status[i] = INACTIVE
        iterate.sign[i] = 1.0
        iterate.elasticity[i] = 1.0
    iterate.size[0] = 0


@inner
def forget_members(iterate):
    """No member, all directions free; members become inactive."""
    width = iterate.x.size
    for c in range(iterate.size[0]):
        if iterate.status[iterate.members[c]] == ACTIVE:
            iterate.status[iterate.members[c]] = INACTIVE
    iterate.size[0] = 0
    for k in range(width):
        for l in range(width):
            iterate.q[k, l] = 1.0 if k == l else 0.0


@inner
def entry(lifted, iterate, i, f):
    """Entry f of row i with the sample's sign and elasticity."""
    return (iterate.elasticity[i] if f == iterate.x.size - 1 else iterate.sign[i]) * lifted.rows[i, f]


@inner
def append(lifted, iterate, i):
    """Make row i a member; False if it depends on the members."""
    width, m, q, c = iterate.x.size, iterate.size[0], iterate.q, iterate.spare
    if m == width:
        return False
    norm, rest = 0.0, 0.0
    clear(c)
    for f in range(width):
        g = entry(lifted, iterate, i, f)
        norm += g * g
        for k in range(width):
            c[k] += g * q[f, k]
    for k in range(m, width):
        rest += c[k] * c[k]
    if rest <= _INDEPENDENT * _INDEPENDENT * norm:
        return False
    for k in range(width - 1, m, -1):
        h = np.hypot(c[k - 1], c[k])
        if h > 0.0:
            cs, sn = c[k - 1] / h, c[k] / h
            c[k - 1] = h
            for f in range(width):
                p1, p2 = q[f, k - 1], q[f, k]
                q[f, k - 1], q[f, k] = cs * p1 + sn * p2, cs * p2 - sn * p1
    for k in range(m + 1):
        iterate.r[k, m] = c[k]
    iterate.members[m] = i
    iterate.status[i] = ACTIVE
    iterate.size[0] = m + 1
    return True


@inner
def remove(iterate, position, status):
    """Take a member out, give it another status, and restore the triangle."""
    width, m, q, r = iterate.x.size, iterate.size[0] - 1, iterate.q, iterate.r
    iterate.status[iterate.members[position]] = status
    for c in range(position, m):
        iterate.members[c] = iterate.members[c + 1]
        for k in range(c + 2):
            r[k, c] = r[k, c + 1]
    for k in range(position, m):
        h = np.hypot(r[k, k], r[k + 1, k])
        cs, sn = r[k, k] / h, r[k + 1, k] / h
        for c in range(k, m):
            p1, p2 = r[k, c], r[k + 1, c]
            r[k, c], r[k + 1, c] = cs * p1 + sn * p2, cs * p2 - sn * p1
        for f in range(width):
            p1, p2 = q[f, k], q[f, k + 1]
            q[f, k], q[f, k + 1] = cs * p1 + sn * p2, cs * p2 - sn * p1
    iterate.size[0] = m


@inner
def _multiply(lifted, iterate, vector, out):
    """Products of all rows with a vector."""
    n, last = out.size, vector.size - 1
    clear(out)
    for k in range(last):
        p = vector[k]
        if p != 0.0:
            column = lifted.columns[k]
            for i in range(n):
                out[i] += p * column[i]
    p = vector[last]
    column = lifted.columns[last]
    for i in range(n):
        out[i] = iterate.sign[i] * out[i] + p * iterate.elasticity[i] * column[i]


@inner
def measure(lifted, iterate):
    """Bring the members back to their right-hand sides and compute all slacks anew."""
    width, m, c = iterate.x.size, iterate.size[0], iterate.spare
    for k in range(m):
        i = iterate.members[k]
        off = iterate.sign[i] * lifted.right[i]
        for f in range(width):
            off -= entry(lifted, iterate, i, f) * iterate.x[f]
        for l in range(k):
            off -= iterate.r[l, k] * c[l]
        c[k] = off / iterate.r[k, k]
    for f in range(width):
        for k in range(m):
            iterate.x[f] += iterate.q[f, k] * c[k]
    _multiply(lifted, iterate, iterate.x, iterate.slack)
    for i in range(iterate.slack.size):
        iterate.slack[i] -= iterate.sign[i] * lifted.right[i]


@inner
def _direction(lifted, iterate):
    """Write the step to the optimum over the members; returns (its size, whether it may be longer than one)."""
    width, m, q, p = iterate.x.size, iterate.size[0], iterate.q, iterate.step
    d = width - 2
    bb, bs, ss, b_side, s_side = 0.0, 0.0, 0.0, 0.0, 0.0
    for k in range(m, width):
        down = lifted.elastic_cost * q[d + 1, k]
        for f in range(d):
            down += q[f, k] * iterate.x[f]
        iterate.spare[k] = down
        zb, zs = q[d, k], q[d + 1, k]
        bb += zb * zb
        bs += zb * zs
        ss += zs * zs
        b_side += zb * down
        s_side += zs * down
    # The matrix I - U'U of the rank two correction, by its eigenvectors; zero means a direction without curvature.
    mid, half = 0.5 * (bb + ss), 0.5 * (bb - ss)
    spread = np.hypot(half, bs)
    eb, es = bs, spread - half
    norm = np.hypot(eb, es)
    if norm <= 1e-15:
        eb, es, norm = (1.0, 0.0, 1.0) if half > 0.0 else (0.0, 1.0, 1.0)
    eb, es = eb / norm, es / norm
    long_curve, short_curve = 1.0 - mid - spread, 1.0 - mid + spread
    straight = long_curve <= _FLAT and abs(es) > 1e-8
    clear(p)
    if straight:
        for k in range(m, width):
            z = eb * q[d, k] + es * q[d + 1, k]
            for f in range(width):
                p[f] -= (1.0 if es > 0.0 else -1.0) * z * q[f, k]
    else:
        along, across = eb * b_side + es * s_side, eb * s_side - es * b_side
        along = along / long_curve if long_curve > _FLAT else 0.0
        across = across / short_curve if short_curve > _FLAT else 0.0
        cb, cs = along * eb - across * es, along * es + across * eb
        for k in range(m, width):
            z = iterate.spare[k] + cb * q[d, k] + cs * q[d + 1, k]
            for f in range(width):
                p[f] -= z * q[f, k]
    return np.sqrt(dot(p, p)), straight


@inner
def _worst_member(lifted, iterate):
    """Write the multipliers of the members; position of the most negative one, -1 if none is."""
    width, m, mu = iterate.x.size, iterate.size[0], iterate.multiplier
    d = width - 2
    most = 0.0
    for k in range(m - 1, -1, -1):
        total = lifted.elastic_cost * iterate.q[d + 1, k]
        for f in range(d):
            total += iterate.q[f, k] * iterate.x[f]
        for c in range(k + 1, m):
            total -= iterate.r[k, c] * mu[c]
        mu[k] = total / iterate.r[k, k]
        most = max(most, abs(mu[k]))
    worst, who = -1e-10 * most, -1
    for k in range(m):
        if mu[k] < worst:
            worst, who = mu[k], k
    return who


@inner
def settle(lifted, iterate):
    """Go to the optimum over the members, whatever is in the way: where an optimal point's members are known."""
    measure(lifted, iterate)
    _direction(lifted, iterate)
    for f in range(iterate.x.size):
        iterate.x[f] += iterate.step[f]
    measure(lifted, iterate)


@inner
def descend(lifted, iterate, limit):
    """Go from a feasible point to the optimum; False if ``limit`` pivots or the precision do not suffice.

    Members are a subset of the tight rows; slacks are up to date.
    """
    width, n = iterate.x.size, iterate.slack.size
    slack, move, status = iterate.slack, iterate.move, iterate.status
    for _ in range(limit):
        size, straight = _direction(lifted, iterate)
        scale = 1.0
        for f in range(width):
            scale = max(scale, abs(iterate.x[f]))
        theta, blocker, pull = (np.inf if straight else 1.0), -1, 0.0
        if size > 1e-13 * scale:
            _multiply(lifted, iterate, iterate.step, move)
            for i in range(n):
                if move[i] < -_FLAT * size and status[i] == INACTIVE:
                    ratio = max(slack[i], 0.0) / -move[i]
                    if ratio < theta or (ratio == theta and move[i] < pull):
                        theta, blocker, pull = ratio, i, move[i]
            if theta == np.inf:
                return False
            for f in range(width):
                iterate.x[f] += theta * iterate.step[f]
            for i in range(n):
                slack[i] += theta * move[i]
        if blocker >= 0:
            if not append(lifted, iterate, blocker):
                return False
            continue
        worst = _worst_member(lifted, iterate)
        if worst < 0:
            measure(lifted, iterate)
            least = 0.0
            for i in range(n):
                if status[i] != ABSENT:
                    least = min(least, slack[i])
            return least >= -INFEASIBLE
        remove(iterate, worst, INACTIVE)
    return False


@inner
def lift(lifted, iterate):
    """Make the point feasible for all rows that are not absent by raising s; forgets the members."""
    width, n = iterate.x.size, iterate.slack.size - 1
    forget_members(iterate)
    iterate.x[width - 1] = 0.0
    _multiply(lifted, iterate, iterate.x, iterate.slack)
    most = 0.0
    for i in range(n):
        if iterate.status[i] != ABSENT:
            most = max(
                most, (iterate.sign[i] * lifted.right[i] - iterate.slack[i]) / entry(lifted, iterate, i, width - 1)
            )
    iterate.x[width - 1] = most
    measure(lifted, iterate)


@inner
def proved_value(lifted, iterate, alpha_w):
    """Dual value of the members alone: a lower bound on conv of any set that holds them, by weak duality.

    Multipliers are made feasible (not negative, balanced over the classes) and scaled best: for every feasible alpha,
    with sign_i alpha_i in the place of alpha_i for reversed samples,
    conv >= max_c c t sum_i alpha_i - c^2/2 ||sum_i alpha_i a_i||^2 = (t sum_i alpha_i)^2 / 2 / ||sum_i alpha_i a_i||^2.
    """
    width, n = iterate.x.size, iterate.slack.size - 1
    d, m, mu = width - 2, iterate.size[0], iterate.multiplier
    plus, minus = 0.0, 0.0
    for k in range(m):
        i = iterate.members[k]
        mu[k] = max(mu[k], 0.0) if i < n else 0.0
        if iterate.sign[i] * lifted.rows[i, d] > 0.0:
            plus += mu[k]
        else:
            minus += mu[k]
    if plus <= 0.0 or minus <= 0.0:
        return 0.0
    # Shrinking the heavier class balances exactly up to one rounding of the sums.
    clear(alpha_w)
    gain = 0.0
    for k in range(m):
        i = iterate.members[k]
        if i == n:
            continue
        share = mu[k] / (plus if iterate.sign[i] * lifted.rows[i, d] > 0.0 else minus)
        gain += share * iterate.sign[i] * lifted.right[i]
        for f in range(d):
            alpha_w[f] += share * iterate.sign[i] * lifted.rows[i, f]
    if gain <= 0.0:
        return 0.0
    norm = dot(alpha_w, alpha_w)
    return np.inf if norm <= 0.0 else 0.5 * gain * gain / norm
