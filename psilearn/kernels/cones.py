"""Bounds over cones of coefficients for losses that are truncated at margin 0: relaxation, rigorous bound, split.

A cell is the simplex of the origin v_0 = 0 and p points v_1 .. v_p, theta = sum_j lambda_j v_j: the part that can
matter of the cone that they span. The loss of a sample is the largest of l(u_r), u_r = rows[i, r]'theta, over its
rivals r, because l does not increase. For every line below g the function m(u) = min(cap, line(u)) is concave and
below l, so its linear interpolation between the vertices is below l in the whole cell. Two kinds of lines are used:
the pieces of g, for which interpolation is exact along rays whatever their length, and the steepest one from (low,
cap), low the least margin in the cell, to the graph of g, which makes the convex envelope of l on [low, inf).
"""

import numpy as np
from numba import njit

from .hinge_qp import solve_hinge_qp

#: Cells that cannot be discarded are bounded to this fraction of what is missing.
EASE = 0.1


@njit(cache=True, nogil=True, error_model="numpy")
def _inverse(G):
    """Inverse of a square matrix by Gauss-Jordan steps with row pivots; zeros if it is singular to rounding."""
    m = G.shape[0]
    A, B = G.copy(), np.eye(m)
    for j in range(m):
        best = j
        for i in range(j + 1, m):
            if abs(A[i, j]) > abs(A[best, j]):
                best = i
        if abs(A[best, j]) < 1e-13:
            return np.zeros((m, m))
        for l in range(m):
            A[j, l], A[best, l] = A[best, l], A[j, l]
            B[j, l], B[best, l] = B[best, l], B[j, l]
        pivot = A[j, j]
        for l in range(m):
            A[j, l] /= pivot
            B[j, l] /= pivot
        for i in range(m):
            factor = A[i, j]
            if i != j and factor != 0.0:
                for l in range(m):
                    A[i, l] -= factor * A[j, l]
                    B[i, l] -= factor * B[j, l]
    return B


@njit(cache=True, nogil=True, error_model="numpy")
def frame(V, q, side, budget):
    """Cut the cone off where P > ``budget`` or |theta| > side: scales v_1 .. v_p, returns B with lambda = B theta.

    The rays are brought to length 1, where they leave that set; then sum_j lambda_j is at most some reach in it, by
    which they are stretched. B is zero if the cone is flat to rounding.
    """
    p = q.size
    edges = np.empty((p, p))
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
    B = _inverse(edges)
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
    for j in range(p):
        for l in range(p):
            V[j + 1, l] *= reach
            B[j, l] /= max(reach, 1e-300)
    return B


@njit(cache=True, nogil=True, error_model="numpy")
def _tangent_from(low, kinks, slopes, cap):
    """Steepest line from (low, cap) to the graph of g: returns (value at 0, steepness)."""
    best = 0.0
    for m in range(kinks.size):
        g = 0.0
        for h in range(m):
            g += slopes[h] * (kinks[h] - kinks[m])
        if g < cap and kinks[m] > low:
            best = max(best, (cap - g) / (kinks[m] - low))
    return cap + best * low, best


@njit(cache=True, nogil=True, error_model="numpy")
def relax(V, rows, cost, kinks, slopes, cap, floor, hinge_rows, hinge_cost):
    """Relax the losses in a cell: returns (H, above, first, c, constant).

    Sample or hinge g pays c_g (max_r H[r]'lambda)_+ over its rows r = first[g] .. first[g + 1] - 1; ``constant`` is
    what the samples pay that are at the cap in the whole cell. ``above`` holds the margins of the rows at the vertices,
    ``floor`` least margins known from elsewhere.
    """
    n, R, p = rows.shape
    K = kinks.size
    H = np.empty((n * R * (K + 1) + hinge_cost.size, p + 1))
    above = np.zeros(H.shape)
    first = np.zeros(n + hinge_cost.size + 1, np.int64)
    c = np.empty(n + hinge_cost.size)
    constant, g, x = 0.0, 0, 0
    u = np.empty(p + 1)
    for i in range(n):
        begin, is_capped = x, False
        for r in range(R):
            low, high, size = np.inf, -np.inf, 0.0
            for j in range(p + 1):
                u[j] = 0.0
                for l in range(p):
                    u[j] += rows[i, r, l] * V[j, l]
                low, high, size = min(low, u[j]), max(high, u[j]), max(size, abs(u[j]))
            tiny = 1e-12 * (1.0 + size)
            if high <= tiny:
                is_capped = True
                break
            low = max(low - tiny, floor[i])
            if low >= kinks[0]:
                continue
            is_believed = low >= -2.0 * tiny
            value, steep = 0.0, 0.0
            for m in range(K if is_believed else K + 1):
                if m < K:
                    value += slopes[m] * kinks[m]
                    steep += slopes[m]
                else:
                    value, steep = _tangent_from(low, kinks, slopes, cap)
                for j in range(p + 1):
                    line = value - steep * u[j]
                    H[x, j] = line if is_believed or m == K else min(cap, line)
                    above[x, j] = u[j]
                x += 1
        if is_capped:
            x = begin
            constant += cost[i] * cap
        elif x > begin:
            c[g] = cost[i]
            g += 1
            first[g] = x
    for e in range(hinge_cost.size):
        for j in range(p + 1):
            H[x, j] = 0.0
            above[x, j] = 0.0
            for l in range(p):
                H[x, j] -= hinge_rows[e, l] * V[j, l]
        x += 1
        c[g] = hinge_cost[e]
        g += 1
        first[g] = x
    return H[:x], above[:x], first[: g + 1], c[:g], constant


@njit(cache=True, nogil=True, error_model="numpy")
def bound_at_vertices(V, H, alpha, q, theta):
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
        least = min(least, total - 1e-13 * size)
    return least


@njit(cache=True, nogil=True, error_model="numpy")
def _touch(A, alpha, q, lower, upper):
    """Where the Lagrangian at alpha is least in a box: the point at which to take the tangent of P."""
    theta = np.zeros(q.size)
    for l in range(q.size):
        if q[l] > 0.0:
            for r in range(A.shape[0]):
                theta[l] += alpha[r] * A[r, l]
            theta[l] = min(max(theta[l] / q[l], lower[l]), upper[l])
    return theta


@njit(cache=True, nogil=True, error_model="numpy")
def _best_split(above, alpha, weight, split):
    """Choose the edge (j, k) on which interpolation errs most at the relaxed minimiser, and where to cut it.

    A row whose margin changes its sign between v_j and v_k errs in proportion to alpha_r min(|above_j| weight_j,
    |above_k| weight_k). The cut is at the weighted median of the places where the margins pass 0, not too near an end.
    Writes (j, k, share of v_j); j < 0 if there is no such edge.
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
    place, worth, count = np.empty(above.shape[0]), np.empty(above.shape[0]), 0
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


@njit(cache=True, nogil=True, error_model="numpy")
def _objective(rows, cost, kinks, slopes, cap, hinge_rows, hinge_cost, q, theta):
    """The objective itself at theta."""
    total = 0.0
    for l in range(q.size):
        total += 0.5 * q[l] * theta[l] * theta[l]
    for i in range(cost.size):
        u = np.inf
        for r in range(rows.shape[1]):
            f = 0.0
            for l in range(q.size):
                f += rows[i, r, l] * theta[l]
            u = min(u, f)
        g = 0.0
        for m in range(kinks.size):
            g += slopes[m] * max(kinks[m] - u, 0.0)
        total += cost[i] * min(g, cap)
    for e in range(hinge_cost.size):
        f = 0.0
        for l in range(q.size):
            f += hinge_rows[e, l] * theta[l]
        total += hinge_cost[e] * max(-f, 0.0)
    return total


@njit(cache=True, nogil=True, error_model="numpy")
def prepare(V, rows, cost, kinks, slopes, cap, floor, hinge_rows, hinge_cost, q, side, budget):
    """Scale a cell and write its relaxation as a hinge programme in theta: (B, H, above, constant, programme).

    B is that of :func:`frame`, H, ``above`` and ``constant`` those of :func:`relax`; the programme is (A, tau, first,
    c) of :mod:`.hinge_qp` with lambda_j >= 0 and sum_j lambda_j <= 1 as its last p + 1 rows.
    """
    p = q.size
    B = frame(V, q, side, budget)
    H, above, first, c, constant = relax(V, rows, cost, kinks, slopes, cap, floor, hinge_rows, hinge_cost)
    n_rows, n_groups = H.shape[0], c.size
    A, tau = np.zeros((n_rows + p + 1, p)), np.zeros(n_rows + p + 1)
    for r in range(n_rows):
        tau[r] = H[r, 0]
        for j in range(p):
            for l in range(p):
                A[r, l] -= (H[r, j + 1] - H[r, 0]) * B[j, l]
    every, price = np.empty(n_groups + p + 2, np.int64), np.empty(n_groups + p + 1)
    for g in range(n_groups):
        every[g] = first[g]
        price[g] = c[g]
    every[n_groups] = n_rows
    tau[n_rows + p] = -1.0
    for j in range(p + 1):
        every[n_groups + j + 1] = n_rows + j + 1
        price[n_groups + j] = np.inf
        for l in range(p):
            if j < p:
                A[n_rows + j, l] = B[j, l]
                A[n_rows + p, l] -= B[j, l]
    return B, H, above, constant, (A, tau, every, price)


@njit(cache=True, nogil=True, error_model="numpy")
def conclude(V, B, H, above, A, alpha, q, lower, upper, theta, least, split):
    """Return the bound that the multipliers prove and choose the split; rays weigh at least ``least`` in that."""
    p = q.size
    bound = bound_at_vertices(V, H, alpha, q, _touch(A, alpha, q, lower, upper))
    weight = np.empty(p + 1)
    for j in range(p):
        weight[j + 1] = 0.0
        for l in range(p):
            weight[j + 1] += B[j, l] * theta[l]
        weight[j + 1] = max(weight[j + 1], least)
    _best_split(above, alpha, weight, split)
    return bound


def bound_cell(V, data, floor, hinges, q, side, budget, cutoff, tol, split):
    """Bound a cell from below; scales ``V`` to what can hold points with objective <= ``budget``.

    ``tol`` is the absolute accuracy of the relaxed problem, ``cutoff`` the bound at which the cell can be discarded.
    Returns (bound, theta, objective at theta), theta the relaxed minimiser, None if the cell can be discarded or is
    flat to rounding (bound -inf); ``split`` receives what :func:`_best_split` says. The steps are compiled one by one:
    together they would take twice as long to compile.
    """
    split[0] = -1.0
    rows, cost, kinks, slopes, cap = data
    B, H, above, constant, (A, tau, first, c) = prepare(
        V, rows, cost, kinks, slopes, cap, floor, hinges[0], hinges[1], q, side, budget
    )
    if constant >= cutoff or not B.any():
        return (constant if constant >= cutoff else -np.inf), None, np.inf
    lower, upper, bound = V.min(axis=0), V.max(axis=0), -np.inf
    for ease, least in ((EASE, 0.0), (0.0, 1e-3)):  # roughly, and in earnest if that shows no place to split
        theta = V.sum(axis=0) / V.shape[0]
        _, alpha = solve_hinge_qp(
            A, tau, first, c, np.zeros(q.size), q, lower, upper, theta, 0.0, tol, cutoff - constant, ease
        )
        proved = conclude(V, B, H, above, A, alpha, q, lower, upper, theta, least, split)
        bound = max(bound, constant + proved)
        if bound >= cutoff:
            return bound, None, np.inf
        if split[0] > 0.0:
            break
    return bound, theta, _objective(rows, cost, kinks, slopes, cap, hinges[0], hinges[1], q, theta)
