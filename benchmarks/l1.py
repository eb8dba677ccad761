"""Sparse and abstaining classifiers against LIBLINEAR, SGD, the plain linear program, and the paper's own method.

The simulation of Choi, Kim, Han and Kang (An algorithm for support vector machines with a reject option using bundle
method, 2009): two Gaussians with means +-0.5 in the first five coordinates and covariance r^|k-l|, r = 0.3; reject
hinge with d = 0.2; relative duality gap 1e-3, certified; lambda = 0.01 n unless said. Single fits are the bundle
method's unless said; paths and sparse data are Newton's method on rounded hinges, which is what solver="auto" takes.

The plain linear program of the l1 support vector machine is timed in HiGHS with interior point (without crossover)
and with simplex on fewer samples of the same data, where it ends within minutes; both grow faster than linearly in n,
so scaling the better of the two by n is in its favour.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import highspy
import numpy as np
import scipy.sparse as sp
from sklearn.linear_model import SGDClassifier
from sklearn.svm import LinearSVC

from benchmarks.runner.data import L1, L2, linear_problem
from benchmarks.runner.rows import Plan, Row, at_most, timed
from psilearn.convex.bundle import solver as bundle
from psilearn.convex.risk import risk_of
from psilearn.convex.smoothed import solver as smoothed
from psilearn.core.losses import Hinge, RejectHinge
from psilearn.core.problem import Problem
from psilearn.core.solving import Options
from psilearn.solvers import choose_convex, solve_path
from psilearn.solvers import solve as solve_with

OPTIONS = Options(tol=1e-3)
SPARSE = Options(tol=1e-3, time_limit=300.0)
#: Seconds for the plain linear program and the paper's bundle.
LIMIT = 150.0


def simulate(n, p, r=0.3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    for j in range(1, p):
        X[:, j] *= np.sqrt(1.0 - r * r)
        X[:, j] += r * X[:, j - 1]
    y = (np.arange(n) < n // 2).astype(np.intp)
    X[: n // 2, :5] += 0.5
    X[n // 2 :, :5] -= 0.5
    return X, y


def problem_of(X, y, lam=0.01, loss=None, penalty=L1) -> Problem:
    return linear_problem(X, y, loss or RejectHinge(0.2), penalty, 1.0 / (lam * y.size))


def fit(problem, solver=bundle):
    seconds, result = timed(lambda: solver.solve(problem, OPTIONS))
    return seconds, result, {"gap at most 1e-3": result.gap <= OPTIONS.tol}


def liblinear_l1(X, y, lam=0.01):
    return timed(lambda: LinearSVC(penalty="l1", dual=False, C=1.0 / (lam * y.size)).fit(X, y))[0]


def sgd_l1(X, y, lam=0.01):
    return timed(lambda: SGDClassifier(loss="hinge", penalty="l1", alpha=lam, random_state=0).fit(X, y))[0]


def single_fits(X, y, rivals) -> Iterator[Row]:
    size = f"n={y.size:.0e} p={X.shape[1]}"
    seconds, result, checks = fit(problem_of(X, y))
    passes = result.extra["passes"]
    rounded, _, also = fit(problem_of(X, y), smoothed)
    for rival, target in rivals:
        theirs, against = rival(X, y), {liblinear_l1: "LinearSVC(l1)", sgd_l1: "SGDClassifier(l1)"}[rival]
        goals = at_most(seconds / theirs, target) | at_most(passes, 25, "passes")
        yield Row(f"{size} l1, {against}", seconds, theirs, goals, checks, f"{passes:.1f} passes over the data")
        yield Row(f"{size} l1, {against}, rounded hinges", rounded, theirs, at_most(rounded / theirs, target), also)


def one_pass(X, y) -> Row:
    risk = risk_of(problem_of(X, y))
    v = np.full(X.shape[1] + 1, 0.1)
    w, r = np.ones(X.shape[1]), np.ones(y.size)
    ours, _ = timed(lambda: risk.evaluate(v), 5)
    theirs, _ = timed(lambda: (X @ w, X.T @ r), 5)
    name = f"n={y.size:.0e} p={X.shape[1]}, one pass, gemv + gemv^T"
    return Row(name, ours, theirs, at_most(ours / theirs, 2.0))


def half(X, y, lam=0.01) -> Row:
    """With d = 1/2 the reject hinge is the hinge: the l2 problem that LIBLINEAR solves, too."""
    seconds, result, checks = fit(problem_of(X, y, lam, RejectHinge(0.5), L2))
    theirs, _ = timed(lambda: LinearSVC(loss="hinge", C=1.0 / (lam * y.size)).fit(X, y))
    name = f"n={y.size:.0e} p={X.shape[1]} l2 d=1/2, LinearSVC(hinge)"
    return Row(name, seconds, theirs, at_most(seconds / theirs, 1.0), checks, f"{result.extra['passes']:.1f} passes")


def path(X, y, points) -> Iterator[Row]:
    """A path as the user gets it against cold fits of the same solver and of the bundle; the better of two runs."""
    problem = problem_of(X, y, 1.0)
    problems = [replace(problem, C=1.0 / (lam * y.size)) for lam in np.geomspace(0.3, 0.003, points)]
    solver = choose_convex(problem)
    warm, results = timed(lambda: solve_path(problems, "auto", OPTIONS), 2)
    alone, fits = timed(lambda: [solve_with(here, solver, OPTIONS) for here in problems], 2)
    checks = {"every gap at most 1e-3": all(result.gap <= OPTIONS.tol for result in results + fits)}
    name = f"n={y.size:.0e} p={X.shape[1]}, path of {points} lambdas"
    yield Row(f"{name}, cold fits", warm, alone, at_most(warm / alone, 0.2), checks, f"solver {solver}")
    cold = sum(fit(here)[0] for here in problems)
    yield Row(f"{name}, cold bundle", warm, cold, at_most(warm / cold, 0.2), checks)


def papers_bundle(X, y, lam=0.001) -> Row:
    problem = problem_of(X, y, lam)
    seconds, _, checks = fit(problem)
    settings = Options(tol=1e-3, settings=(bundle.Settings(mode="paper"),), time_limit=60.0)
    theirs, paper = timed(lambda: bundle.solve(problem, settings))
    note = f"theirs: {paper.extra['passes']:.0f} passes, {paper.status} at gap {paper.gap:.1e}"
    name = f"n={y.size:.0e} p={X.shape[1]} lambda=.001n, the paper's bundle"
    return Row(name, seconds, theirs, at_most(seconds / theirs, 0.125), checks, note)


def sparse_data(n, p, nonzeros):
    rng = np.random.default_rng(0)
    entries, places = rng.random(n * nonzeros), rng.integers(0, p, n * nonzeros)
    X = sp.csr_matrix((entries, places, np.arange(n + 1) * nonzeros), (n, p))
    X.sum_duplicates()
    w = np.zeros(p)
    w[rng.choice(p, 500, replace=False)] = rng.standard_normal(500)
    score = X @ w
    return X, (score + 0.5 * score.std() * rng.standard_normal(n) > 0).astype(np.intp)


def sparse_fit(n, lam) -> Row:
    X, y = sparse_data(n, n, 50)
    seconds, result = timed(lambda: smoothed.solve(problem_of(X, y, lam), SPARSE))
    theirs = liblinear_l1(X, y, lam)
    note = f"{np.count_nonzero(result.coef)} coefficients, {result.n_iter} steps"
    checks = {"gap at most 1e-3": result.gap <= SPARSE.tol}
    return Row(f"CSR {n:.0e} x {n:.0e}, LinearSVC(l1)", seconds, theirs, at_most(seconds / theirs, 5.0), checks, note)


def plain_program(problem, engine):
    """CPU seconds of min sum |w| + C sum xi, y f + xi >= 1, over (w+, w-, b, xi)."""
    X, s, n, p = problem.space.X, problem.signs, problem.n, problem.space.dim
    A = sp.hstack([sp.csr_matrix(s[:, None] * X), sp.csr_matrix(-s[:, None] * X), s[:, None], sp.identity(n)]).tocsr()
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = A.shape[1], n
    lp.col_cost_ = np.concatenate([np.ones(2 * p), [0.0], problem.costs])
    lp.col_lower_ = np.concatenate([np.zeros(2 * p), [-highspy.kHighsInf], np.zeros(n)])
    lp.col_upper_ = np.full(A.shape[1], highspy.kHighsInf)
    lp.row_lower_, lp.row_upper_ = np.ones(n), np.full(n, highspy.kHighsInf)
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_, lp.a_matrix_.index_, lp.a_matrix_.value_ = A.indptr, A.indices, A.data
    model = highspy.Highs()
    for name, value in (("output_flag", False), ("threads", 1), ("solver", engine), ("run_crossover", "off")):
        model.setOptionValue(name, value)
    model.setOptionValue("time_limit", LIMIT)
    model.passModel(lp)
    return timed(model.run)[0]


def against_program(X, y, small) -> Row:
    seconds, _, checks = fit(problem_of(X, y, loss=Hinge()))
    rows = np.random.default_rng(0).permutation(y.size)[:small]
    part = problem_of(np.ascontiguousarray(X[rows]), y[rows], loss=Hinge())
    theirs = min(plain_program(part, engine) for engine in ("ipm", "simplex")) * y.size / small
    name = f"n={y.size:.0e} p={X.shape[1]} hinge, plain program in HiGHS"
    return Row(name, seconds, theirs, at_most(seconds / theirs, 0.05), checks, f"theirs scaled from n={small}")


def warm_up() -> None:
    """Compile what is timed."""
    X, y = simulate(30_000, 6)
    solve_path([problem_of(X, y, lam) for lam in (0.02, 0.01)], "auto", OPTIONS)
    for data, penalty in ((X, L1), (X, L2), (sp.csr_matrix(X), L1)):
        bundle.solve(problem_of(data, y, penalty=penalty), OPTIONS)
        if penalty.has_l1:
            smoothed.solve(problem_of(data, y, penalty=penalty), OPTIONS)


def rows(plan: Plan) -> Iterator[Row]:
    """Single fits, a pass, the l2 limit, paths, the paper's method, the plain program, sparse data."""
    warm_up()
    if not plan.quick:
        yield from single_fits(*simulate(1_000_000, 20), [(liblinear_l1, 0.5), (sgd_l1, 0.5)])
    n, points = (20_000, 8) if plan.quick else (100_000, 20)
    for p in (20,) if plan.quick else (20, 200):
        X, y = simulate(n, p)
        yield from single_fits(X, y, [(liblinear_l1, 1.0)])
        yield one_pass(X, y)
        yield half(X, y)
        yield from path(X, y, points)
    yield papers_bundle(X, y)
    yield against_program(X, y, 1000 if plan.quick else 4000)
    yield sparse_fit(10_000, 5e-4) if plan.quick else sparse_fit(100_000, 5e-5)
