"""The hard margin with one way out: a primal active set in d + 2 variables, warm from any feasible point.

    f(S) = min  1/2 ||w||^2 + M s     s.t.   <a_i, w> + y_i b + v_i s >= t  (i in S),   s >= 0,     a_i = y_i x_i

with fixed v_i > 0, so that every set S is feasible. For M >= sum_i v_i alpha_i of the hard margin's multipliers the
optimum has s = 0 and f(S) is the hard margin's value conv(S); in any case f(S) <= conv(S). A sample may be reversed
(sign -1): its row is then -<a_i, w> - y_i b + v_i s >= -t. Its way out is v_i times its ``ease``.

Rows (a_i, y_i, v_i), and the row of s >= 0, are tight or not. The tight ones, ``members``, are kept in an orthogonal
factorisation G' = Q R, whose last columns span the directions that keep them tight. The Hessian is the identity but for
b and s, so its inverse on these directions is a correction of rank two. A step goes to the optimum over the members or
to the first row in the way, which becomes a member; at the optimum a member with a negative multiplier leaves.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ....core._jit import inner

#: Roles of a sample: it may become tight, it is a member, it is left out.
WATCHED, TIGHT, ABSENT = 0, 1, 2
#: A point that misses a row by more than this is no solution (data have unit size).
INFEASIBLE = 1e-8
_FLAT = 1e-10
_TINY = 1e-12


class Lifted(NamedTuple):
    """Rows of all samples and of s >= 0 (last), both ways round, right-hand sides, M, and the ease of known fates."""

    rows: NDArray[np.float64]
    columns: NDArray[np.float64]
    right: NDArray[np.float64]
    price: float
    hard: float


class Spot(NamedTuple):
    """A point x = (w, b, s) with its slacks, roles, members, their factors, scratch vectors, signs and ease."""

    x: NDArray[np.float64]
    slack: NDArray[np.float64]
    role: NDArray[np.int8]
    size: NDArray[np.int64]
    members: NDArray[np.int64]
    q: NDArray[np.float64]
    r: NDArray[np.float64]
    multiplier: NDArray[np.float64]
    step: NDArray[np.float64]
    move: NDArray[np.float64]
    spare: NDArray[np.float64]
    sign: NDArray[np.float64]
    ease: NDArray[np.float64]


def make_spot(n_rows: int, width: int) -> Spot:
    """Allocate a point for ``n_rows`` rows in ``width`` variables."""
    square = np.zeros((width, width)), np.zeros((width, width))
    vectors = np.zeros(width), np.zeros(width), np.zeros(n_rows), np.zeros(width)
    integers, signs = (np.zeros(1, np.int64), np.zeros(width, np.int64)), (np.ones(n_rows), np.ones(n_rows))
    return Spot(np.zeros(width), np.zeros(n_rows), np.zeros(n_rows, np.int8), *integers, *square, *vectors, *signs)


@inner
def copy_spot(source, target):
    """Copy everything but scratch vectors."""
    width = source.x.size
    for i in range(source.slack.size):
        target.slack[i] = source.slack[i]
        target.role[i] = source.role[i]
        target.sign[i] = source.sign[i]
        target.ease[i] = source.ease[i]
    target.size[0] = source.size[0]
    for k in range(width):
        target.x[k] = source.x[k]
        target.members[k] = source.members[k]
        for l in range(width):
            target.q[k, l] = source.q[k, l]
            target.r[k, l] = source.r[k, l]


@inner
def forget_members(spot):
    """No member, all directions free; members become watched."""
    width = spot.x.size
    for c in range(spot.size[0]):
        if spot.role[spot.members[c]] == TIGHT:
            spot.role[spot.members[c]] = WATCHED
    spot.size[0] = 0
    for k in range(width):
        for l in range(width):
            spot.q[k, l] = 1.0 if k == l else 0.0


@inner
def entry(lifted, spot, i, f):
    """Entry f of row i with the sample's sign and ease."""
    return (spot.ease[i] if f == spot.x.size - 1 else spot.sign[i]) * lifted.rows[i, f]


@inner
def append(lifted, spot, i):
    """Make row i a member; False if it depends on the members."""
    width, m, q, c = spot.x.size, spot.size[0], spot.q, spot.spare
    if m == width:
        return False
    norm, rest = 0.0, 0.0
    for k in range(width):
        c[k] = 0.0
    for f in range(width):
        g = entry(lifted, spot, i, f)
        norm += g * g
        for k in range(width):
            c[k] += g * q[f, k]
    for k in range(m, width):
        rest += c[k] * c[k]
    if rest <= _TINY * _TINY * norm:
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
        spot.r[k, m] = c[k]
    spot.members[m] = i
    spot.role[i] = TIGHT
    spot.size[0] = m + 1
    return True


@inner
def remove(spot, position, role):
    """Take a member out, give it another role, and restore the triangle."""
    width, m, q, r = spot.x.size, spot.size[0] - 1, spot.q, spot.r
    spot.role[spot.members[position]] = role
    for c in range(position, m):
        spot.members[c] = spot.members[c + 1]
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
    spot.size[0] = m


@inner
def _multiply(lifted, spot, vector, out):
    """Products of all rows with a vector."""
    n, last = out.size, vector.size - 1
    for i in range(n):
        out[i] = 0.0
    for k in range(last):
        p = vector[k]
        if p != 0.0:
            column = lifted.columns[k]
            for i in range(n):
                out[i] += p * column[i]
    p = vector[last]
    column = lifted.columns[last]
    for i in range(n):
        out[i] = spot.sign[i] * out[i] + p * spot.ease[i] * column[i]


@inner
def measure(lifted, spot):
    """Bring the members back to their right-hand sides and compute all slacks anew."""
    width, m, c = spot.x.size, spot.size[0], spot.spare
    for k in range(m):
        i = spot.members[k]
        off = spot.sign[i] * lifted.right[i]
        for f in range(width):
            off -= entry(lifted, spot, i, f) * spot.x[f]
        for l in range(k):
            off -= spot.r[l, k] * c[l]
        c[k] = off / spot.r[k, k]
    for f in range(width):
        for k in range(m):
            spot.x[f] += spot.q[f, k] * c[k]
    _multiply(lifted, spot, spot.x, spot.slack)
    for i in range(spot.slack.size):
        spot.slack[i] -= spot.sign[i] * lifted.right[i]


@inner
def _direction(lifted, spot):
    """Write the step to the optimum over the members; returns (its size, whether it may be longer than one)."""
    width, m, q, p = spot.x.size, spot.size[0], spot.q, spot.step
    d = width - 2
    bb, bs, ss, b_side, s_side = 0.0, 0.0, 0.0, 0.0, 0.0
    for k in range(m, width):
        down = lifted.price * q[d + 1, k]
        for f in range(d):
            down += q[f, k] * spot.x[f]
        spot.spare[k] = down
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
    for f in range(width):
        p[f] = 0.0
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
            z = spot.spare[k] + cb * q[d, k] + cs * q[d + 1, k]
            for f in range(width):
                p[f] -= z * q[f, k]
    size = 0.0
    for f in range(width):
        size += p[f] * p[f]
    return np.sqrt(size), straight


@inner
def _worst_member(lifted, spot):
    """Write the multipliers of the members; position of the most negative one, -1 if none is."""
    width, m, mu = spot.x.size, spot.size[0], spot.multiplier
    d = width - 2
    most = 0.0
    for k in range(m - 1, -1, -1):
        total = lifted.price * spot.q[d + 1, k]
        for f in range(d):
            total += spot.q[f, k] * spot.x[f]
        for c in range(k + 1, m):
            total -= spot.r[k, c] * mu[c]
        mu[k] = total / spot.r[k, k]
        most = max(most, abs(mu[k]))
    worst, who = -1e-10 * most, -1
    for k in range(m):
        if mu[k] < worst:
            worst, who = mu[k], k
    return who


@inner
def settle(lifted, spot):
    """Go to the optimum over the members, whatever is in the way: where an optimal point's members are known."""
    measure(lifted, spot)
    _direction(lifted, spot)
    for f in range(spot.x.size):
        spot.x[f] += spot.step[f]
    measure(lifted, spot)


@inner
def descend(lifted, spot, limit):
    """Go from a feasible point to the optimum; False if ``limit`` pivots or the precision do not suffice.

    Members are a subset of the tight rows; slacks are up to date.
    """
    width, n = spot.x.size, spot.slack.size
    slack, move, role = spot.slack, spot.move, spot.role
    for _ in range(limit):
        size, straight = _direction(lifted, spot)
        scale = 1.0
        for f in range(width):
            scale = max(scale, abs(spot.x[f]))
        theta, blocker, pull = (np.inf if straight else 1.0), -1, 0.0
        if size > 1e-13 * scale:
            _multiply(lifted, spot, spot.step, move)
            for i in range(n):
                if move[i] < -_FLAT * size and role[i] == WATCHED:
                    ratio = max(slack[i], 0.0) / -move[i]
                    if ratio < theta or (ratio == theta and move[i] < pull):
                        theta, blocker, pull = ratio, i, move[i]
            if theta == np.inf:
                return False
            for f in range(width):
                spot.x[f] += theta * spot.step[f]
            for i in range(n):
                slack[i] += theta * move[i]
        if blocker >= 0:
            if not append(lifted, spot, blocker):
                return False
            continue
        worst = _worst_member(lifted, spot)
        if worst < 0:
            measure(lifted, spot)
            least = 0.0
            for i in range(n):
                if role[i] != ABSENT:
                    least = min(least, slack[i])
            return least >= -INFEASIBLE
        remove(spot, worst, WATCHED)
    return False


@inner
def lift(lifted, spot):
    """Make the point feasible for all rows that are not absent by raising s; forgets the members."""
    width, n = spot.x.size, spot.slack.size - 1
    forget_members(spot)
    spot.x[width - 1] = 0.0
    _multiply(lifted, spot, spot.x, spot.slack)
    most = 0.0
    for i in range(n):
        if spot.role[i] != ABSENT:
            most = max(most, (spot.sign[i] * lifted.right[i] - spot.slack[i]) / entry(lifted, spot, i, width - 1))
    spot.x[width - 1] = most
    measure(lifted, spot)


@inner
def proved_value(lifted, spot, alpha_w):
    """Dual value of the members alone: a lower bound on conv of any set that holds them, by weak duality.

    Multipliers are made feasible (not negative, balanced over the classes) and scaled best: for every feasible alpha,
    with sign_i alpha_i in the place of alpha_i for reversed samples,
    conv >= max_c c t sum_i alpha_i - c^2/2 ||sum_i alpha_i a_i||^2 = (t sum_i alpha_i)^2 / 2 / ||sum_i alpha_i a_i||^2.
    """
    width, n = spot.x.size, spot.slack.size - 1
    d, m, mu = width - 2, spot.size[0], spot.multiplier
    plus, minus = 0.0, 0.0
    for k in range(m):
        i = spot.members[k]
        mu[k] = max(mu[k], 0.0) if i < n else 0.0
        if spot.sign[i] * lifted.rows[i, d] > 0.0:
            plus += mu[k]
        else:
            minus += mu[k]
    if plus <= 0.0 or minus <= 0.0:
        return 0.0
    # Shrinking the heavier class balances exactly up to one rounding of the sums.
    for f in range(d):
        alpha_w[f] = 0.0
    gain = 0.0
    for k in range(m):
        i = spot.members[k]
        if i == n:
            continue
        share = mu[k] / (plus if spot.sign[i] * lifted.rows[i, d] > 0.0 else minus)
        gain += share * spot.sign[i] * lifted.right[i]
        for f in range(d):
            alpha_w[f] += share * spot.sign[i] * lifted.rows[i, f]
    if gain <= 0.0:
        return 0.0
    norm = 0.0
    for f in range(d):
        norm += alpha_w[f] * alpha_w[f]
    return np.inf if norm <= 0.0 else 0.5 * gain * gain / norm
