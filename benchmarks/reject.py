"""Abstaining machines on the simulation of Choi, Kim, Han and Kang (2009), against LIBLINEAR, SGD and its own method.

Two Gaussians with means +-0.5 in the first five coordinates and covariance r^|k-l|, r = 0.3; reject hinge with d = 0.2;
relative duality gap 1e-3, certified; lambda = 0.01 n unless said. CPU seconds, one thread, both sides in this process.
Single fits are the bundle method's unless said; paths and sparse data are Newton's method on rounded hinges, which is
what solver="auto" takes here, and its paths are set against the cold fits of both.

    python benchmarks/reject.py [--large]        (--large adds n = 1e6, p = 200: 1.6 GB of data)
"""

import importlib
import sys
import time
import warnings
from dataclasses import replace

import numpy as np
import scipy.sparse as sp
from sklearn.linear_model import SGDClassifier
from sklearn.svm import LinearSVC

from psilearn.convex.bundle import solver as bundle
from psilearn.convex.risk import risk_of
from psilearn.convex.smoothed import solver as smoothed
from psilearn.core.losses import RejectHinge
from psilearn.core.penalties import Penalty
from psilearn.core.problem import Problem
from psilearn.core.solving import Options
from psilearn.core.spaces import LinearSpace

registry = importlib.import_module("psilearn.solve")

OPTIONS = Options(tol=1e-3)
SPARSE = Options(tol=1e-3, time_limit=300.0)
PAPER = Options(tol=1e-3, settings=(bundle.Settings(mode="paper"),), time_limit=60.0)


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


def machine(X, y, lam, d=0.2, penalty=None):
    n = y.size
    return Problem(LinearSpace(X), y, 2, RejectHinge(d), penalty or Penalty(l1=1.0), 1.0 / (lam * n), np.ones(n))


def seconds(task):
    start = time.process_time()
    answer = task()
    return time.process_time() - start, answer


def ours(problem, start=None, machine=bundle):
    taken, result = seconds(lambda: machine.solve(problem, OPTIONS, start))
    assert result.gap <= OPTIONS.tol, (result.status, result.gap)
    return taken, result


def report(what, mine, theirs, limit=None, note="", certified=True):
    """Print one line: CPU seconds of both sides, their ratio, and whether it is within the limit."""
    ratio = mine / theirs
    verdict = "" if limit is None else f"target <= {limit}: {'met' if ratio <= limit and certified else 'MISSED'}"
    print(f"{what:72s} {mine:8.3f} s {theirs:8.3f} s  ratio {ratio:6.3f}  {verdict}  {note}", flush=True)


def liblinear_l1(X, y, lam):
    return seconds(lambda: LinearSVC(penalty="l1", dual=False, C=1.0 / (lam * y.size)).fit(X, y))[0]


def sgd_l1(X, y, lam):
    return seconds(lambda: SGDClassifier(loss="hinge", penalty="l1", alpha=lam, random_state=0).fit(X, y))[0]


def compare_l1(n, p, rivals, lam=0.01):
    X, y = simulate(n, p)
    taken, result = ours(machine(X, y, lam))
    passes = result.extra["passes"]
    note = f"{passes:.1f} passes (target <= 25: {'met' if passes <= 25 else 'MISSED'}), gap {result.gap:.1e}"
    rounded, _ = ours(machine(X, y, lam), None, smoothed)
    for name, rival, target in rivals:
        theirs = rival(X, y, lam)
        report(f"n={n:.0e} p={p} l1, {name}", taken, theirs, target, note)
        report(f"n={n:.0e} p={p} l1, {name}, rounded hinges", rounded, theirs, target)
    return X, y


def compare_pass(X, y):
    risk = risk_of(machine(X, y, 0.01))
    v = np.full(X.shape[1] + 1, 0.1)
    w, r = np.ones(X.shape[1]), np.ones(y.size)
    mine = min(seconds(lambda: risk.evaluate(v))[0] for _ in range(5))
    blas = min(seconds(lambda: (X @ w, X.T @ r))[0] for _ in range(5))
    report(f"one pass, n={y.size:.0e} p={X.shape[1]}, gemv + gemv^T", mine, blas, 2)


def compare_paper(X, y, lam=0.001):
    problem = machine(X, y, lam)
    taken, _ = ours(problem)
    theirs, paper = seconds(lambda: bundle.solve(problem, PAPER))
    note = f"paper's method: {paper.extra['passes']:.0f} passes, {paper.status} at gap {paper.gap:.1e}"
    report(f"n={y.size:.0e} p={X.shape[1]} lambda=.001n, the paper's bundle", taken, theirs, 0.125, note)


def compare_path(X, y):
    """A path as the user gets it, against cold fits of the same machine and of the bundle; the better of two runs."""
    problem = machine(X, y, 1.0)
    problems = [replace(problem, C=1.0 / (lam * y.size)) for lam in np.geomspace(0.3, 0.003, 20)]
    solver = registry.choose_convex(problem)

    def ahead():
        return registry.solve_path(problems, "auto", OPTIONS)

    def cold():
        return [registry.solve(here, solver, OPTIONS) for here in problems]

    (warm, path), (alone, fits) = (
        min((seconds(task) for _ in range(2)), key=lambda run: run[0]) for task in (ahead, cold)
    )
    assert all(result.gap <= OPTIONS.tol for result in path + fits)
    each, each_alone = (np.mean([result.extra["passes"] for result in results]) for results in (path, fits))
    what = f"path of 20 lambdas, n={y.size:.0e} p={X.shape[1]}, 20 cold fits"
    report(f"{what}, {solver}", warm, alone, 0.2, f"{each:.1f} passes a point, cold {each_alone:.1f}")
    report(f"{what}, bundle", warm, sum(ours(here)[0] for here in problems), 0.2)


def compare_l2(X, y, lam=0.01):
    taken, result = ours(machine(X, y, lam, 0.5, Penalty(l2=1.0)))
    theirs = seconds(lambda: LinearSVC(loss="hinge", C=1.0 / (lam * y.size)).fit(X, y))[0]
    note = f"{result.extra['passes']:.1f} passes"
    report(f"n={y.size:.0e} p={X.shape[1]} l2 d=1/2, LinearSVC(hinge, dual)", taken, theirs, 1, note)


def sparse_data(n, p, nonzeros):
    rng = np.random.default_rng(0)
    entries, places = rng.random(n * nonzeros), rng.integers(0, p, n * nonzeros)
    X = sp.csr_matrix((entries, places, np.arange(n + 1) * nonzeros), (n, p))
    X.sum_duplicates()
    w = np.zeros(p)
    w[rng.choice(p, 500, replace=False)] = rng.standard_normal(500)
    score = X @ w
    return X, (score + 0.5 * score.std() * rng.standard_normal(n) > 0).astype(np.intp)


def compare_sparse(n=100_000, p=100_000, nonzeros=50, lam=5e-5):
    X, y = sparse_data(n, p, nonzeros)
    problem = machine(X, y, lam)
    taken, result = seconds(lambda: smoothed.solve(problem, SPARSE))
    note = f"gap {result.gap:.1e}, {np.count_nonzero(result.coef)} coefficients, {result.n_iter} steps"
    certified = result.gap <= SPARSE.tol
    report(f"sparse {n:.0e} x {p:.0e}, LinearSVC(l1)", taken, liblinear_l1(X, y, lam), 5, note, certified)


def main():
    warnings.simplefilter("ignore")
    X, y = simulate(30_000, 6)
    registry.solve_path([machine(X, y, lam) for lam in (0.02, 0.01)], "auto", OPTIONS)
    for data, penalty in ((X, Penalty(l1=1.0)), (X, Penalty(l2=1.0)), (sp.csr_matrix(X), Penalty(l1=1.0))):
        bundle.solve(machine(data, y, 0.01, penalty=penalty), OPTIONS)  # compile before timing
        if penalty.has_l1:
            smoothed.solve(machine(data, y, 0.01, penalty=penalty), OPTIONS)
    print(f"{'what, against':72s} {'ours':>10s} {'theirs':>10s}")
    liblinear, sgd = "LinearSVC(l1)", "SGDClassifier(hinge, l1)"
    compare_l1(1_000_000, 20, [(liblinear, liblinear_l1, 0.5), (sgd, sgd_l1, 0.5)])
    X, y = simulate(100_000, 20)
    compare_pass(X, y)
    compare_l2(X, y)
    compare_path(X, y)
    X, y = compare_l1(100_000, 200, [(liblinear, liblinear_l1, 1.0)])
    compare_pass(X, y)
    compare_l2(X, y)
    compare_path(X, y)
    compare_paper(X, y)
    del X, y
    compare_sparse()
    if "--large" in sys.argv:
        compare_l1(1_000_000, 200, [(sgd, sgd_l1, 0.5)])


if __name__ == "__main__":
    main()
