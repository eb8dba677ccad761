"""Bounds over cones of coefficients for losses that are truncated at margin 0: relaxation, rigorous bound, split.

A cell is the simplex of the origin v_0 = 0 and p points v_1 .. v_p, theta = sum_j lambda_j v_j: the part that can
matter of the cone that they span. The loss of a sample is the largest of l(u_r), u_r = rows[i, r]'theta, over its
rivals r, because l does not increase. For every line below g the function m(u) = min(cap, line(u)) is concave and
below l, so its linear interpolation between the vertices is below l in the whole cell. Two kinds of lines are used:
the pieces of g, for which interpolation is exact along rays whatever their length, and the steepest one from (low,
cap), low the least margin in the cell, to the graph of g, which makes the convex envelope of l on [low, inf).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...core._jit import inner, kernel
from ..envelope_jit import tangent
from ..inverse_jit import invert
from .hinge_qp_jit import rounding, solve_hinge_qp
from .relaxation_jit import objective, product

Array = NDArray[np.float64]
#: Cells that cannot be discarded are bounded to this fraction of what is missing.
LOOSE = 0.1
#: Error of a margin relative to its terms: far above the rounding of p products and of a thousand splits.
ROUNDING = 1e-12


class Cell(NamedTuple):
    """A cell's relaxation: B with lambda = B theta, H and margins ``above`` at the vertices, the hinge program."""

    B: NDArray[np.float64]
    edges: NDArray[np.float64]
    H: NDArray[np.float64]
    above: NDArray[np.float64]
    A: NDArray[np.float64]
    tau: NDArray[np.float64]
    first: NDArray[np.int64]
    c: NDArray[np.float64]


def _make_cell(n_rows: int, n_groups: int, p: int) -> Cell:
    """Allocate a relaxation of at most so many rows and groups, and the p + 1 sides of the cell."""
    relaxed = np.empty((p, p)), np.empty((p, p)), np.empty((n_rows, p + 1)), np.empty((n_rows, p + 1))
    hinges = np.empty((n_rows + p + 1, p)), np.empty(n_rows + p + 1)
    return Cell(*relaxed, *hinges, np.empty(n_groups + p + 2, np.int64), np.empty(n_groups + p + 1))


@inner
def frame(V, q, side, budget, edges, B):
    """Cut the cone off where P > ``budget`` or |theta| > side: scales v_1 .. v_p, writes B with lambda = B theta.

    The rays are brought to length 1, where they leave that set; then sum_j lambda_j is at most some reach in it, by
    which they are stretched: with s = B'1, s'theta = sum_j lambda_j s'v_j is at most the reach of s over the set, and
    s'v_j is 1 up to the errors of the inverse, which are measured. B is zero if the cone is flat to rounding.
    ``edges`` is scratch of the shape of B.
    """
    p = q.size
    budget = max(budget, 1e-300)
    for j in range(1, p + 1):
        size, length = 0.0, 0.0
        for l in range(p):
            size += q[l] * V[j, l] * V[j, l] / (2.0 * budget)
            length = max(length, abs(V[j, l]) / side[l])
        length = max(length, np.sqrt(size))
        for l in range(p):
            V[j, l] /= length
            edges[l, j - 1] = V[j, l] / side[l]
    invert(edges, B)
    ball, reach = 0.0, 0.0
    for l in range(p):
        slope = 0.0
        for j in range(p):
            B[j, l] /= side[l]
            slope += B[j, l]
        if q[l] > 0.0:
            ball += slope * slope / q[l]
        else:
            reach += abs(slope) * side[l]
    reach = (reach + np.sqrt(2.0 * budget * ball)) * (1.0 + 1e-9)
    least = 1.0  # of the sum of the rows of B at the rays: 1 but for rounding
    for j in range(1, p + 1):
        total = 0.0
        for l in range(p):
            for r in range(p):
                total += B[r, l] * V[j, l]
        least = min(least, total)
    if least < 0.5:
        B[:, :] = 0.0
    reach /= max(least, 0.5) * (1.0 - 1e-12)
    for j in range(p):
        for l in range(p):
            V[j + 1, l] *= reach
            B[j, l] /= max(reach, 1e-300)


@inner
def _size(row, theta):
    """|row|'|theta|."""
    total = 0.0
    for l in range(theta.size):
        total += abs(row[l] * theta[l])
    return total


@inner
def relax(V, data, floor, H, above, first, c):
    """Relax the losses in a cell: returns (number of rows, number of groups, constant).

    Sample or hinge g pays c_g (max_r H[r]'lambda)_+ over its rows r = first[g] .. first[g + 1] - 1; ``constant`` is
    what the samples pay that are at the cap in the whole cell. ``above`` receives the margins of the rows at the
    vertices; ``floor`` are least margins known from elsewhere.

    A margin is known up to ``tiny``, and a cell covers its part of a cone up to rounding: neighbours have their shared
    rays from different roundings. So signs are taken as known up to 2 tiny, and every line is lowered by what its
    margin can change within 4 tiny.
    """
    n, R, p = data.rows.shape
    K = data.breakpoints.size
    steepest_piece = 0.0
    for m in range(K):
        steepest_piece += data.slopes[m]
    constant, g, x = 0.0, 0, 0
    first[0] = 0
    for i in range(n):
        begin, is_capped, tiny = x, False, 0.0
        for r in range(R):
            u = above[x]
            low, high, size = np.inf, -np.inf, 0.0
            for j in range(p + 1):
                u[j] = product(data.rows[i, r], V[j])
                low, high, size = min(low, u[j]), max(high, u[j]), max(size, _size(data.rows[i, r], V[j]))
            tiny = ROUNDING * (1.0 + size)
            if high <= tiny:
                is_capped = True
                break
            low = max(low - tiny, floor[i])
            if low >= data.breakpoints[0]:
                continue
            is_believed = low >= -2.0 * tiny
            value, steep = 0.0, 0.0
            for m in range(K if is_believed else K + 1):
                if m < K:
                    value += data.slopes[m] * data.breakpoints[m]
                    steep += data.slopes[m]
                else:
                    steep = max(tangent(low, np.inf, data.breakpoints, data.slopes, data.t, data.cap)[1], 0.0)
                    value = data.cap + steep * low
                error = 4.0 * steep * tiny + ROUNDING * abs(value)
                for j in range(p + 1):
                    line = value - steep * u[j] - error
                    H[x, j] = line if is_believed or m == K else min(data.cap, line)
                    above[x, j] = u[j]
                x += 1
        if is_capped:  # margins of up to 2 tiny are possible
            x = begin
            constant += data.cost[i] * max(data.cap - 2.0 * tiny * steepest_piece, 0.0)
        elif x > begin:
            c[g] = data.cost[i]
            g += 1
            first[g] = x
    for e in range(data.extra_cost.size):
        for j in range(p + 1):
            above[x, j] = 0.0
            H[x, j] = -product(data.extra_rows[e], V[j])
        x += 1
        c[g] = data.extra_cost[e]
        g += 1
        first[g] = x
    return x, g, constant


@inner
def _bound_at_vertices(V, H, alpha, q, theta):
    """min_j P(theta) + grad P(theta)'(v_j - theta) + sum_r alpha_r H[r, j]: below the relaxed objective in the cell.

    Holds for every theta and every alpha >= 0 with sums of at most c_g over the groups: P lies above its tangent,
    c_g (max_r h_r)_+ >= sum_r alpha_r h_r, and a function that is linear in lambda is least at a vertex.
    """
    least = np.inf
    for j in range(V.shape[0]):
        total, size = 0.0, 0.0
        for l in range(q.size):
            part = q[l] * theta[l] * (V[j, l] - 0.5 * theta[l])
            total += part
            size += abs(part)
        for r in range(H.shape[0]):  # the multipliers of the cell's own sides come after these
            part = alpha[r] * H[r, j]
            total += part
            size += abs(part)
        least = min(least, total - rounding(H.shape[0] + q.size) * size)
    return least


@inner
def _touch(A, alpha, q, lower, upper, theta):
    """Write where the Lagrangian at alpha is least in a box: the point at which to take the tangent of P."""
    for l in range(q.size):
        theta[l] = 0.0
        if q[l] > 0.0:
            for r in range(A.shape[0]):
                theta[l] += alpha[r] * A[r, l]
            theta[l] = min(max(theta[l] / q[l], lower[l]), upper[l])


@inner
def _best_split(above, alpha, weight, split, place, worth):
    """Choose the edge (j, k) on which interpolation errs most at the relaxed minimiser, and where to cut it.

    A row whose margin changes its sign between v_j and v_k errs in proportion to alpha_r min(|above_j| weight_j,
    |above_k| weight_k). The cut is at the weighted median of the places where the margins pass 0, not too near an end.
    Writes (j, k, share of v_j); j < 0 if there is no such edge. ``place`` and ``worth`` are scratch.
    """
    m = weight.size
    most = 0.0
    split[0] = -1.0
    for j in range(1, m):
        for k in range(j + 1, m):
            score = 0.0
            for r in range(above.shape[0]):
                a, b = above[r, j], above[r, k]
                if a * b < 0.0:
                    score += alpha[r] * min(abs(a) * weight[j], abs(b) * weight[k])
            if score > most:
                most = score
                split[0], split[1] = j, k
    if split[0] < 0.0:
        return
    j, k = int(split[0]), int(split[1])
    count = 0
    for r in range(above.shape[0]):
        a, b = above[r, j], above[r, k]
        if a * b < 0.0:
            place[count] = abs(b) / (abs(a) + abs(b))
            worth[count] = alpha[r] * min(abs(a) * weight[j], abs(b) * weight[k])
            count += 1
    low, high = 0.15, 0.85
    for _ in range(20):
        middle, passed = 0.5 * (low + high), 0.0
        for index in range(count):
            if place[index] <= middle:
                passed += worth[index]
        if passed >= 0.5 * most:
            high = middle
        else:
            low = middle
    split[2] = high
    for index in range(count):  # exactly where the margin vanishes, so that the halves know its sign
        if abs(place[index] - high) < 1e-5:
            split[2] = place[index]


@kernel
def prepare(V, data, floor, side, budget, cell):
    """Scale a cell and write its relaxation as a hinge program in theta: returns (rows, groups, constant).

    The numbers are those of :func:`relax`. The program has p + 1 more rows and groups: lambda_j >= 0 and sum_j
    lambda_j <= 1.
    """
    p, A, tau, B, H = data.q.size, cell.A, cell.tau, cell.B, cell.H
    frame(V, data.q, side, budget, cell.edges, B)
    n_rows, n_groups, constant = relax(V, data, floor, H, cell.above, cell.first, cell.c)
    for r in range(n_rows):
        tau[r] = H[r, 0]
        for l in range(p):
            A[r, l] = 0.0
            for j in range(p):
                A[r, l] -= (H[r, j + 1] - H[r, 0]) * B[j, l]
    for l in range(p):
        A[n_rows + p, l] = 0.0
    for j in range(p + 1):
        tau[n_rows + j] = 0.0 if j < p else -1.0
        cell.first[n_groups + j + 1] = n_rows + j + 1
        cell.c[n_groups + j] = np.inf
        for l in range(p):
            if j < p:
                A[n_rows + j, l] = B[j, l]
                A[n_rows + p, l] -= B[j, l]
    return n_rows, n_groups, constant


@kernel
def conclude(V, B, H, above, A, alpha, q, lower, upper, theta, least, split, weight, place, worth):
    """Return the bound that the multipliers prove and choose the split; rays weigh at least ``least`` in that.

    The last three arguments are scratch.
    """
    p = q.size
    touch = weight[:p]
    _touch(A, alpha, q, lower, upper, touch)
    bound = _bound_at_vertices(V, H, alpha, q, touch)
    for j in range(p):
        weight[j + 1] = 0.0
        for l in range(p):
            weight[j + 1] += B[j, l] * theta[l]
        weight[j + 1] = max(weight[j + 1], least)
    _best_split(above, alpha, weight, split, place, worth)
    return bound


def bound_cell(
    V: Array, data: Any, floor: Array, side: Array, budget: float, cutoff: float, tol: float, split: Array
) -> tuple[float, Array | None, float]:
    """Bound a cell from below; scales ``V`` to what can hold points with objective <= ``budget``.

    ``tol`` is the absolute accuracy of the relaxed problem, ``cutoff`` the bound at which the cell can be discarded.
    Returns (bound, theta, objective at theta), theta the relaxed minimiser, None if the cell can be discarded or is
    flat to rounding (bound -inf); ``split`` receives what :func:`_best_split` says.
    """
    split[0] = -1.0
    (n, n_rivals, p), q, extra = data.rows.shape, data.q, data.extra_cost.size
    cell = _make_cell(n * n_rivals * (data.breakpoints.size + 1) + extra, n + extra, p)
    n_rows, n_groups, constant = prepare(V, data, floor, side, budget, cell)
    B, H, above = cell.B, cell.H[:n_rows], cell.above[:n_rows]
    A, tau = cell.A[: n_rows + p + 1], cell.tau[: n_rows + p + 1]
    first, c = cell.first[: n_groups + p + 2], cell.c[: n_groups + p + 1]
    if constant >= cutoff or not B.any():
        return (constant if constant >= cutoff else -np.inf), None, np.inf
    lower, upper, bound = V.min(axis=0), V.max(axis=0), -np.inf
    for loose, least in ((LOOSE, 0.0), (0.0, 1e-3)):  # roughly, and in earnest if that shows no place to split
        theta = V.sum(axis=0) / V.shape[0]
        _, alpha = solve_hinge_qp(
            A, tau, first, c, np.zeros(p), q, lower, upper, theta, 0.0, tol, cutoff - constant, loose
        )
        scratch = np.empty(p + 1), np.empty(n_rows), np.empty(n_rows)
        proved = conclude(V, B, H, above, A, alpha, q, lower, upper, theta, least, split, *scratch)
        bound = max(bound, constant + proved)
        if bound >= cutoff:
            return bound, None, np.inf
        if split[0] > 0.0:
            break
    return bound, theta, objective(data, theta)
