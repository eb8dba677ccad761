"""Exhaustive enumeration for tiny instances, independent of the solvers: vectorised over all choices at once.

A solution of the 2-norm problem is determined by the regions of its samples: with one hinge (a, t_1) each is left out,
on the floor t, on the slope between t and t_1, on the breakpoint t_1, or beyond it. Stationarity is a linear system for
each of the 5^n combinations. Their solutions contain every local optimum, so the smallest objective among them is the
global optimum.
"""

from __future__ import annotations

import itertools

import clarabel
import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog

GONE, FLOOR, SLOPE, KNOT, BEYOND = range(5)
#: A margin this little below t is on it.
TOUCH = 1e-9


def regions(n):
    """All combinations of regions."""
    return np.array(list(itertools.product(range(5), repeat=n)))


def value(X, signs, costs, loss, w, b):
    """Objective 1/2 |w|^2 + sum costs l(u) at stacks of points, evaluated strictly but for TOUCH."""
    u = signs * (w @ X.T + b[:, None])
    scale = 1.0 + np.abs(w) @ np.abs(X).max(axis=0) + np.abs(b)
    paid = sum(c * np.maximum(breakpoint - np.maximum(u, loss.t), 0.0) for c, breakpoint in loss.hinges)
    out = u < loss.t - TOUCH * scale[:, None]
    return 0.5 * np.sum(w * w, axis=1) + np.where(out, loss.cap, np.minimum(paid, loss.cap)) @ costs


def optimum_l2(X, signs, costs, loss):
    """Global optimum by solving the stationarity conditions of all region patterns in one batch (one hinge)."""
    n, d = X.shape
    (slope, breakpoint), t = loss.hinges[0], loss.t
    pattern = regions(n)
    active = (pattern == FLOOR) | (pattern == KNOT)
    pattern = pattern[active.sum(axis=1) <= d + 1]
    active = (pattern == FLOOR) | (pattern == KNOT)
    pays = (pattern == SLOPE) | (pattern == FLOOR)
    A = np.column_stack([X * signs[:, None], signs])
    H = np.diag(np.append(np.ones(d), 0.0))
    m = d + 1 + n
    K, right = np.zeros((len(pattern), m, m)), np.zeros((len(pattern), m))
    K[:, : d + 1, : d + 1] = H
    K[:, : d + 1, d + 1 :] = -A.T[None] * active[:, None, :]
    K[:, d + 1 :, : d + 1] = A[None] * active[:, :, None]
    K[:, d + 1 :, d + 1 :] = np.eye(n)[None] * ~active[:, :, None]
    right[:, : d + 1] = (pays * (slope * costs)) @ A
    right[:, d + 1 :] = np.where(active, np.where(pattern == FLOOR, t, breakpoint), 0.0)
    # Singular systems (an intercept that nothing determines, dependent rows) get their least-norm solution.
    solution = np.einsum("pij,pj->pi", np.linalg.pinv(K, rcond=1e-11, hermitian=False), right)
    w, b = solution[:, :d], solution[:, d]
    best = value(X, signs, costs, loss, w, b).min()
    levels = np.array([0.0, t, -t, breakpoint, -breakpoint])
    return min(best, value(X, signs, costs, loss, np.zeros((5, d)), levels).min())


def optimum_l1(X, signs, costs, loss):
    """Global optimum with penalty |w|_1: one linear program per choice of the samples that are left out."""
    n, d = X.shape
    U = np.column_stack([X, -X, np.ones(n)]) * signs[:, None]
    best = np.inf
    (slope, breakpoint), t = loss.hinges[0], loss.t
    for kept in itertools.product([True, False], repeat=n):
        rows = np.flatnonzero(kept)
        paid = loss.cap * costs[~np.array(kept)].sum()
        if rows.size == 0 or paid >= best:
            best = min(best, paid)
            continue
        k = rows.size
        cost = np.concatenate([np.ones(2 * d), [0.0], slope * costs[rows]])
        left = np.block([[-U[rows], np.zeros((k, k))], [-U[rows], -np.eye(k)]])
        right = np.concatenate([np.full(k, -t), np.full(k, -breakpoint)])
        bounds = [(0, None)] * (2 * d) + [(None, None)] + [(0, None)] * k
        answer = linprog(cost, A_ub=left, b_ub=right, bounds=bounds, method="highs")
        if answer.status == 0:
            best = min(best, paid + answer.fun)
    return best


def least_penalty(rows, right):
    """Least 1/2 |w|^2 with rows @ (w, b) >= right by a general solver, inf if there is none, None if it cannot say."""
    d = rows.shape[1] - 1
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
    quadratic = sp.diags(np.append(np.ones(d), 0.0)).tocsc()
    cones = [clarabel.NonnegativeConeT(right.size)]
    answer = clarabel.DefaultSolver(quadratic, np.zeros(d + 1), sp.csc_matrix(-rows), -right, cones, settings).solve()
    if answer.status == clarabel.SolverStatus.PrimalInfeasible:
        return np.inf
    return float(answer.obj_val) if answer.status == clarabel.SolverStatus.Solved else None
