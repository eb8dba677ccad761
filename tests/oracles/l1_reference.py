"""The whole linear or quadratic program of a convex problem, stated plainly for an outside engine."""

from dataclasses import replace

import clarabel
import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog

from psilearn.core.losses import ByClass, ConvexHinges, Hinge, RejectHinge
from psilearn.core.penalties import Penalty
from psilearn.core.problem import Problem
from psilearn.core.spaces import LinearSpace

LOSSES = (
    Hinge(),
    RejectHinge(0.2),
    RejectHinge(0.5),
    RejectHinge(0.01),
    ConvexHinges(((1.0, 1.0), (0.5, 0.3), (2.0, -1.0))),
)


def random_problem(rng, l2=0.0, k=None, tilted=None, max_n=40, wide=40):
    """A small random instance: any k, weights, adaptive penalties with bans, often p > n, sometimes tilted."""
    k = int(rng.integers(2, 5)) if k is None else k
    n = int(rng.integers(k + 2, max_n))
    p = int(rng.integers(1, 8)) if rng.random() < 0.8 else int(rng.integers(wide, wide + wide // 2))
    X = rng.normal(size=(n, p)) * 10.0 ** rng.integers(-2, 3) + rng.normal()
    y = rng.integers(0, k, n)
    y[:k] = np.arange(k)
    m = 1 if k == 2 else k
    l1 = rng.random((m, p)) * rng.choice([0.1, 1.0, 10.0])
    if rng.random() < 0.3:
        l1[rng.random((m, p)) < 0.2] = np.inf
    elif rng.random() < 0.4:
        l1 = float(rng.random() * 3 + 0.01)
    loss = LOSSES[rng.integers(len(LOSSES))]
    if rng.random() < 0.2:
        loss = ByClass(tuple(LOSSES[rng.integers(len(LOSSES))] for _ in range(k)))
    weights = rng.random(n) + 0.1
    problem = Problem(LinearSpace(X), y, k, loss, Penalty(l2, l1), 10.0 ** rng.uniform(-2, 2), weights)
    if rng.random() < 0.4 if tilted is None else tilted:
        F = rng.normal(size=(n, m))
        steep = problem.loss_multipliers(F) * (rng.random(n) < 0.3)[:, None]
        problem = replace(problem, tilt=steep)
    return problem


def program(problem):
    """Return (cost, A_ub, b_ub, A_eq, b_eq, upper) over (w+, w-, b, xi); all but b are non-negative."""
    X = problem.space.X
    X = np.asarray(X.todense() if sp.issparse(X) else X, dtype=float)
    n, p, m = problem.n, X.shape[1], problem.n_functions
    l1 = problem.penalty.l1_array((m, p)).ravel()
    finite = np.where(np.isfinite(l1), l1, 0.0)
    tilt = np.zeros((n, m)) if problem.tilt is None else problem.tilt
    slope = (tilt.T @ X).ravel()
    hinges = problem.loss.hinges
    own = [problem.loss.losses[c] if isinstance(problem.loss, ByClass) else problem.loss for c in problem.y]
    slopes = np.array([[sum(c for c, at in loss.hinges if at == t) for _, t in hinges] for loss in own])
    prices = (problem.costs[:, None] * slopes).ravel()
    cost = np.concatenate([finite + slope, finite - slope, tilt.sum(axis=0), prices])
    scores = [sp.hstack([sp.csr_matrix((n, j * p)), X, sp.csr_matrix((n, (m - 1 - j) * p))]) for j in range(m)]
    unit = [sp.csr_matrix((np.ones(n), (np.arange(n), np.full(n, j))), shape=(n, m)) for j in range(m)]
    scores = [sp.hstack([s, -s, e]).toarray() for s, e in zip(scores, unit)]
    rows, rhs = [], []
    for i in range(n):
        own = problem.y[i]
        margins = (
            [problem.signs[i] * scores[0][i]]
            if m == 1
            else [scores[own][i] - scores[j][i] for j in range(m) if j != own]
        )
        for h, (_, t) in enumerate(hinges):
            slack = np.zeros(n * len(hinges))
            slack[i * len(hinges) + h] = 1.0
            rows += [-np.concatenate([z, slack]) for z in margins]
            rhs += [-t] * len(margins)
    equal = np.zeros((0, cost.size))
    if m > 1:
        sums = np.hstack([np.tile(np.eye(p), m), -np.tile(np.eye(p), m), np.zeros((p, m + prices.size))])
        intercepts = np.concatenate([np.zeros(2 * m * p), np.ones(m), np.zeros(prices.size)])
        equal = np.vstack([sums, intercepts])
    upper = np.concatenate([np.tile(np.where(np.isfinite(l1), np.inf, 0.0), 2), np.full(m + prices.size, np.inf)])
    return cost, np.array(rows), np.array(rhs), equal, np.zeros(equal.shape[0]), upper


def optimum(problem):
    """Optimal value by HiGHS (linear) or Clarabel (quadratic)."""
    cost, A, b, E, e, upper = program(problem)
    wide = 2 * problem.n_functions * problem.space.dim
    free = np.zeros(cost.size, dtype=bool)
    free[wide : wide + problem.n_functions] = True
    if problem.penalty.l2 == 0:
        bounds = [(None if f else 0.0, u) for f, u in zip(free, upper)]
        answer = linprog(cost, A, b, E, e, bounds=bounds, method="highs")
        assert answer.status == 0, answer.message
        return answer.fun
    half = sp.identity(wide // 2)
    Q = sp.block_diag([sp.bmat([[half, -half], [-half, half]]), sp.csr_matrix((cost.size - wide,) * 2)])
    E = np.vstack([E, np.eye(cost.size)[upper == 0]])
    rows = np.vstack([E, A, -np.eye(cost.size)[~free]])
    rhs = np.concatenate([np.zeros(E.shape[0]), b, np.zeros(int((~free).sum()))])
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_rel = settings.tol_gap_abs = settings.tol_feas = 1e-11
    cones = [clarabel.ZeroConeT(E.shape[0]), clarabel.NonnegativeConeT(rhs.size - E.shape[0])]
    upper_triangle = sp.triu(problem.penalty.l2 * Q).tocsc()
    answer = clarabel.DefaultSolver(upper_triangle, cost, sp.csc_matrix(rows), rhs, cones, settings).solve()
    assert "Solved" in str(answer.status)
    return answer.obj_val
