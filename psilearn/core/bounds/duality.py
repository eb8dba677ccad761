"""Exact repair of dual multipliers: whatever comes in, what goes out is feasible in real arithmetic.

The multipliers of the scores are written R = tilt + D. Every entry of D is a whole multiple of a power of two q, no
more than 2^53 q in absolute value, so it is a float64 without rounding, and its sums are sums of integers, which Python
takes exactly. The intercepts are free, so the columns of D must add up to zero; that is an equation between integers
and is met exactly, not up to rounding. Putting a multiplier on the grid moves it by a rounding error of the largest
one, and always inside its limits.

Arrays in, arrays out; :meth:`psilearn.core.problem.Problem.dual_bound` states the dual these functions serve.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from .rounding import UNIT, difference_below, gamma, integer_sum, total_of

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

_BITS = 53  # of the largest multiplier on the grid: what a float64 holds
_SMALLEST_EXPONENT = -1000  # of the quantum q; multipliers below 2^-1000 are dropped
_LOST_BITS = 20  # a balance that leaves multipliers this much smaller than they came is repeated on a finer grid


def balanced_two_class(alpha: Array, signs: Array, upper: Array, tilt: Array | None) -> Array | None:
    """Return D with sum_i D_i = 0 exactly and 0 <= signs_i (tilt_i + D_i) <= upper_i; None if no D is found.

    ``alpha`` are the wished signs_i (tilt_i + D_i). The side with the surplus is lowered first, in proportion to what
    it has; only what is still missing is added to the other side. Without a tilt nothing is: zeros stay zeros.
    """
    used = np.flatnonzero(alpha > 0) if tilt is None else np.arange(alpha.size)
    if used.size < alpha.size:
        D = np.zeros_like(alpha)
        if used.size:
            found = balanced_two_class(alpha[used], signs[used], upper[used], None)
            assert found is not None, "lowering is always possible"
            D[used] = found
        return D
    shift = np.zeros_like(alpha) if tilt is None else signs * tilt
    wish = np.clip(np.nan_to_num(alpha), 0.0, upper) - shift
    top = upper if tilt is None else difference_below(upper, shift)

    def attempt(wish: Array, exponent: int) -> Integers | None:
        low, high = ceiling_on(-shift, exponent), floor_on(top, exponent)
        if np.any(low > high):
            return None
        beta = np.clip(nearest_on(wish, exponent), low, high)
        surplus = integer_sum(beta[signs > 0]) - integer_sum(beta[signs < 0])
        rich = signs > 0 if surplus > 0 else signs < 0
        cut = min(abs(surplus), integer_sum(beta[rich]) - integer_sum(low[rich]))
        beta[rich] -= shares(beta[rich] - low[rich], cut)
        missing = abs(surplus) - cut
        if missing > integer_sum(high[~rich]) - integer_sum(beta[~rich]):
            return None
        beta[~rich] += shares(high[~rich] - beta[~rich], missing)
        return beta

    beta = _on_grid(wish, 0, attempt)
    return None if beta is None else signs * beta


def balanced_k_class(A: Array, y: NDArray[np.intp], upper: Array, tilt: Array | None) -> Array | None:
    """Return D with rows and columns that sum to zero exactly and tilt + D = R(A') for some feasible A'; or None.

    R_{i y_i} = sum_j A_ij and R_ij = -A_ij, with A_ij >= 0 (j != y_i) and sum_j A_ij <= upper_i. Raising A_ij moves
    weight from column j to column y_i. The sums over the samples of a class describe all that can be reached, because
    the sets {a >= 0, sum a <= u} add up to a set of the same kind; so the columns are balanced by augmenting paths in
    the graph of the classes (:func:`balanced_sums`), in integers. The rows of the tilt must sum to zero.
    """
    n, k = A.shape
    own = y[:, None] == np.arange(k)
    A = np.where(own, 0.0, np.maximum(np.nan_to_num(A, posinf=0.0), 0.0))
    total = A.sum(axis=1)
    A *= np.where(total > upper, upper / np.where(total > 0, total, 1.0), 1.0)[:, None]
    shift = np.zeros_like(A) if tilt is None else np.where(own, 0.0, tilt)  # -shift is the tilt's own A
    top = upper if tilt is None else difference_below(upper, tilt[np.arange(n), y])
    spare = 0 if tilt is None else math.ceil(math.log2(k))  # entries of both signs may be larger than their sum
    limit = 1 << (_BITS - spare)

    def attempt(wish: Array, exponent: int) -> Integers | None:
        low, cap = np.maximum(ceiling_on(shift, exponent), -limit), floor_on(top, exponent)
        low[own] = 0
        if np.any(low > limit) or np.any(low.sum(axis=1) > cap):
            return None
        G = np.maximum(nearest_on(wish, exponent), low)
        fit_rows(G, low, cap)
        return _with_balanced_columns(G, low, cap, y)

    G = _on_grid(A + shift, spare, attempt)
    if G is None:
        return None
    D = -G
    D[own] = G.sum(axis=1)
    return D


def _on_grid(wish: Array, spare: int, attempt: Callable[[Array, int], Integers | None]) -> Array | None:
    """Call ``attempt`` with the exponent of a grid on which the largest row has 53 - spare bits, return its floats.

    Balancing may leave multipliers far smaller than they came (weights that differ by twenty decades); then the wishes
    are cut to that size and the grid is made finer, so that no digits are lost.
    """
    while True:
        size = float(np.abs(wish).reshape(wish.shape[0], -1).sum(axis=1).max(initial=0.0))
        exponent = max(math.frexp(size)[1] - (_BITS - spare), _SMALLEST_EXPONENT)
        found = attempt(wish, exponent)
        if found is None:
            return None
        left = int(np.abs(found).max(initial=0))
        if size == 0.0 or left >= 1 << (_BITS - spare - _LOST_BITS) or exponent == _SMALLEST_EXPONENT:
            return np.ldexp(found.astype(np.float64), exponent)
        cut = math.ldexp(2.0 * max(left, 1), exponent)
        wish = np.clip(wish, -cut, cut)


def floor_on(x: Array, exponent: int) -> Integers:
    """Return floor(x / 2^exponent), at most 2^53."""
    with np.errstate(over="ignore"):
        return np.floor(x * math.ldexp(1.0, -exponent)).clip(-(2.0**62), 2.0**_BITS).astype(np.int64)


def nearest_on(x: Array, exponent: int) -> Integers:
    """Return x / 2^exponent to the nearest integer, at most 2^53 in absolute value."""
    with np.errstate(over="ignore"):
        return np.rint(x * math.ldexp(1.0, -exponent)).clip(-(2.0**_BITS), 2.0**_BITS).astype(np.int64)


def ceiling_on(x: Array, exponent: int) -> Integers:
    """Return ceil(x / 2^exponent), at least -2^53."""
    return -floor_on(-x, exponent)


def shares(available: Integers, amount: int) -> Integers:
    """Return integers between 0 and ``available`` that add up to ``amount``: in proportion, by largest remainders.

    What rounding leaves is spread by one: moved to a single sample it would show in the dual value of long samples.
    """
    total = integer_sum(available)
    assert 0 <= amount <= total, "more is asked than there is"
    if amount == 0:
        return np.zeros_like(available)
    wished = available * (amount / total)
    parts = np.minimum(np.floor(wished).astype(np.int64), available)
    rest = amount - integer_sum(parts)
    while rest:
        sign = 1 if rest > 0 else -1
        room = available - parts if rest > 0 else parts
        can = np.flatnonzero(room)
        if can.size > abs(rest):
            remainders = sign * (wished - parts)[can]
            can = can[np.argpartition(-remainders, abs(rest))[: abs(rest)]]
        moved = np.minimum(room[can], abs(rest) // can.size)
        parts[can] += sign * moved
        rest -= sign * integer_sum(moved)
    return parts


def fit_rows(G: Integers, low: Integers, cap: Integers) -> None:
    """Lower entries of rows that sum to more than their cap, in place; the lowest entries fit."""
    while True:
        excess = G.sum(axis=1) - cap
        rows = np.flatnonzero(excess > 0)
        if rows.size == 0:
            return
        largest = (G[rows] - low[rows]).argmax(axis=1)
        G[rows, largest] -= np.minimum(excess[rows], (G - low)[rows, largest])


def _with_balanced_columns(G: Integers, low: Integers, cap: Integers, y: NDArray[np.intp]) -> Integers | None:
    """Return entries near G, within the limits, whose signed columns sum to zero; None if there are none."""
    k = G.shape[1]
    members = [np.flatnonzero(y == a) for a in range(k)]
    held = [[integer_sum(G[m, j] - low[m, j]) for j in range(k)] for m in members]
    room = [integer_sum(cap[m] - G[m].sum(axis=1)) for m in members]
    rows = [integer_sum(G[m].sum(axis=1)) for m in members]
    surplus = [rows[j] - integer_sum(G[:, j]) for j in range(k)]
    wanted = balanced_sums([row.copy() for row in held], room, surplus)
    if wanted is None:
        return None
    for a, m in enumerate(members):
        for j in range(k):
            if wanted[a][j] < held[a][j]:
                G[m, j] -= shares(G[m, j] - low[m, j], held[a][j] - wanted[a][j])
        for j in range(k):
            if wanted[a][j] > held[a][j]:
                G[m, j] += shares(cap[m] - G[m].sum(axis=1), wanted[a][j] - held[a][j])
    return G


def balanced_sums(held: list[list[int]], room: list[int], surplus: list[int]) -> list[list[int]] | None:
    """Return the sums of A over the samples of class a (row) and rivals j (column) that balance the columns, or None.

    Weight goes from column c to column b by lowering A_cb, by raising A_bc while class b has room, or by exchanging
    A_ab for A_ac in a third class. Shortest augmenting paths, as for the largest flow; all numbers are integers.
    """
    k = len(surplus)
    while any(surplus):
        path = _augmenting_path(held, room, surplus)
        if path is None:
            return None
        moves = [_widest_move(held, room, c, b, k) for c, b in pairwise(path)]
        amount = min(surplus[path[0]], -surplus[path[-1]], *(width for width, _ in moves))
        surplus[path[0]] -= amount
        surplus[path[-1]] += amount
        for (_, via), c, b in zip(moves, path, path[1:]):
            if via == c:
                held[c][b] -= amount
                room[c] += amount
            elif via == b:
                held[b][c] += amount
                room[b] -= amount
            else:
                held[via][b] -= amount
                held[via][c] += amount
    return held


def _widest_move(held: list[list[int]], room: list[int], c: int, b: int, k: int) -> tuple[int, int]:
    """Return (capacity, class whose multipliers change) of the widest way to move weight from column c to column b."""
    ways = [(held[c][b], c), (room[b], b), *((held[a][b], a) for a in range(k) if a not in (b, c))]
    return max(ways, key=lambda way: way[0])


def _augmenting_path(held: list[list[int]], room: list[int], surplus: list[int]) -> list[int] | None:
    """Return a shortest path of classes from a column with too much to one with too little."""
    k = len(surplus)
    parent = {c: -1 for c in range(k) if surplus[c] > 0}
    queue = deque(parent)
    while queue:
        c = queue.popleft()
        if surplus[c] < 0:
            path = [c]
            while parent[path[-1]] >= 0:
                path.append(parent[path[-1]])
            return path[::-1]
        for b in range(k):
            if b not in parent and _widest_move(held, room, c, b, k)[0] > 0:
                parent[b] = c
                queue.append(b)
    return None


def gain_below(alpha: Array, prices: Array, breakpoints: Array) -> tuple[float, float]:
    """Return sum_i max{sum_k t_k a_ik : sum_k a_ik = alpha_i, 0 <= a_ik <= price_ik}, and a bound on its error.

    ``breakpoints`` t_k fall; the first hinges fill first. Prices that are too small only lower the maximum. Filling
    rounds once per hinge, and a product and a sum follow: with K hinges at most (2 K + 2) u max |t_k| alpha_i.
    """
    rest = alpha.copy()
    gain = np.zeros_like(rest)
    for k, t in enumerate(breakpoints):
        part = np.minimum(rest, prices[:, k])
        rest -= part
        gain += t * part
    total, error = total_of(gain)
    steepest = float(np.abs(breakpoints).max(initial=0.0))
    size = float(np.abs(alpha).sum()) * (1.0 + gamma(alpha.size))
    return total, error + gamma(2 * breakpoints.size + 4) * steepest * size


def l1_shrinkage(V: Array, radius: Array, l1: Array, met: NDArray[np.bool_] | None = None) -> float:
    """Return theta in [0, 1] such that theta V' is feasible for the conjugate of a pure l1 penalty, |V' - V| <= radius.

    One row: |theta v_d| <= l1_d. Several rows that may share a shift nu (functions sum to zero):
    theta (v_jd - v_hd) <= l1_jd + l1_hd for all pairs j, h. Entries ``met`` are zero, or equal within their column, and
    ask for nothing among themselves. Quotients are taken 8 units in the last place to the safe
    side, more than their three or four roundings can make.
    """
    safe = 1.0 - 8.0 * UNIT
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        if V.shape[0] == 1:
            size = np.abs(V) + radius
            size = size if met is None else np.where(met, 0.0, size)
            ratio = np.where(size > 0, safe * l1 / size, np.inf)
            return float(min(1.0, ratio.min(initial=np.inf)))
        theta = 1.0
        for j in range(V.shape[0]):
            spread = (V[j] - V) + (radius[j] + radius) + 4.0 * UNIT * (np.abs(V[j]) + np.abs(V))
            spread[j] = 0.0
            if met is not None:
                spread[met & met[j]] = 0.0
            ratio = np.where(spread > 0, safe * (l1[j] + l1) / spread, np.inf)
            theta = min(theta, float(ratio.min(initial=np.inf)))
    return theta
