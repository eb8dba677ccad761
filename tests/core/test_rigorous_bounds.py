"""Reported convex bounds against rational arithmetic: a bound lies below the exact objective of every point."""

import warnings
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp

from psilearn import RejectClassifier, SVMClassifier
from psilearn.convex import newton
from psilearn.core.bounds.correction import approximate_inverse, proved_sizes
from psilearn.core.bounds.duality import balanced_k_class, balanced_two_class
from psilearn.core.bounds.rounding import difference_below, integer_sum, product_below, total_of
from psilearn.core.losses import ConvexHinges, Hinge, RejectHinge, TruncatedHinge
from psilearn.core.penalties import Penalty
from psilearn.core.problem import Problem
from psilearn.core.result import InconsistentBoundError
from psilearn.core.solving import Options
from psilearn.core.spaces import KernelSpace, LinearSpace
from psilearn.core.spaces.sharp import sharp_product
from psilearn.engines.highs import ProgramError
from psilearn.solvers import solve, solve_convex

from oracles.l1_reference import random_problem

EXACT = Options(tol=1e-8, time_limit=20.0)


def rationals(array):
    return [[Fraction(float(v)) for v in row] for row in np.atleast_2d(array)]


def dense(problem):
    if problem.is_kernel:
        return problem.space.K
    return problem.space.X.toarray() if problem.space.is_sparse else problem.space.X


def exact_value(problem, W, b):
    """The objective of the stored numbers, without any rounding; rows of W are taken as they are."""
    X, W, b = rationals(dense(problem)), rationals(W), [Fraction(float(v)) for v in b]
    F = [[sum(x * w for x, w in zip(row, w_j)) + b_j for w_j, b_j in zip(W, b)] for row in X]
    if problem.is_kernel:
        norm = sum(w * (f[j] - b[j]) for j, w_j in enumerate(W) for w, f in zip(w_j, F))
    else:
        norm = sum(w * w for w_j in W for w in w_j)
    total = Fraction(float(problem.offset)) + Fraction(float(problem.penalty.l2)) * norm / 2
    if problem.penalty.has_l1:
        weights = problem.penalty.l1_array((len(W), len(W[0])))
        total += sum(Fraction(float(v)) * abs(w) for v_j, w_j in zip(weights, W) for v, w in zip(v_j, w_j) if w)
    slopes = [np.broadcast_to(c, problem.n) for c in problem.loss.slopes(problem.y)]
    for i, f in enumerate(F):
        y = int(problem.y[i])
        rivals = [f[y] - g for j, g in enumerate(f) if j != y] if problem.n_classes > 2 else [f[0] * (2 * y - 1)]
        u = min(rivals)
        cost = Fraction(float(problem.C)) * Fraction(float(problem.weights[i]))
        for slope, (_, t) in zip(slopes, problem.loss.hinges):
            total += cost * Fraction(float(slope[i])) * max(Fraction(0), Fraction(float(t)) - u)
        if problem.tilt is not None:
            total += sum(Fraction(float(v)) * g for v, g in zip(problem.tilt[i], f))
    return total


def points_of(problem, rng, solution=None):
    """Points with rows that sum to zero exactly (small dyadic numbers), among them constants and the solution."""
    m, dim = problem.n_functions, problem.space.dim
    forbidden = np.isinf(problem.penalty.l1_array((m, dim)))
    for scale in (0.0, 2.0**-20, 2.0**-8, 1.0, 2.0**8):
        W, b = (np.round(64 * rng.normal(size=shape)) / 64 * scale for shape in ((m, dim), (m,)))
        if problem.is_kernel:
            W = W / problem.n
        if m > 1:
            W[-1], b[-1] = -W[:-1].sum(axis=0), -b[:-1].sum()
        W[:, forbidden.any(axis=0)] = 0.0
        yield W, b
        yield np.zeros_like(W), b
    if solution is not None:
        W, b = solution
        if m > 1:  # near the solution, but with sums of exactly zero
            W, b = (np.round(v * 2.0**40) / 2.0**40 for v in (W, b))
            W[-1], b[-1] = -W[:-1].sum(axis=0), -b[:-1].sum()
        yield W, b


def lowest_exact(problem, rng, solution=None):
    return min(exact_value(problem, W, b) for W, b in points_of(problem, rng, solution))


def wild_problem(rng, kind):
    """Small; costs over many decades, features of any size; kernels are products of integers, so exactly positive."""
    k, n, p = int(rng.integers(2, 5)), int(rng.integers(6, 14)), int(rng.integers(1, 4))
    y = np.concatenate([np.arange(k), rng.integers(0, k, n - k)]).astype(np.intp)
    X = rng.normal(size=(n, p)) * 10.0 ** rng.integers(-4, 5) + rng.choice([0.0, 0.0, 1e6])
    weights = 10.0 ** rng.uniform(-8, 8, n) if rng.random() < 0.5 else np.ones(n)
    if rng.random() < 0.3:
        weights = np.where(y == 0, 10.0 ** rng.uniform(-20, -10), weights)
    loss = (Hinge(), RejectHinge(0.2), ConvexHinges(((1.0, 1.0), (0.3, 0.1), (2.0, -1.0))))[rng.integers(3)]
    penalty = {"l2": Penalty(l2=0.7), "l1": Penalty(l1=0.9), "net": Penalty(l2=0.3, l1=0.6), "kernel": Penalty(l2=1.0)}
    space = LinearSpace(X)
    if kind == "kernel":
        A = rng.integers(-9, 10, size=(n, n))
        space = KernelSpace((A @ A.T).astype(float))
    return Problem(space, y, k, loss, penalty[kind], 10.0 ** rng.uniform(-3, 8), weights)


@pytest.mark.parametrize("kind", ["l2", "l1", "net", "kernel"])
def test_any_multipliers_prove_a_true_bound(kind):
    for seed in range(60):
        rng = np.random.default_rng(seed)
        problem = wild_problem(rng, kind)
        lowest = lowest_exact(problem, rng)
        F = rng.normal(size=(problem.n, problem.n_functions))
        for scale in (0.0, 1e-18, 1.0, 1e3):
            R = problem.loss_multipliers(F * scale) * rng.choice([1.0, 1e-9]) + scale * rng.normal(size=F.shape)
            assert Fraction(problem.dual_bound(R)) <= lowest


@pytest.mark.parametrize("kind", ["l2", "l1", "net", "kernel"])
def test_bounds_of_wild_solutions_hold(kind):
    for seed in range(40):
        rng = np.random.default_rng(100 + seed)
        problem = wild_problem(rng, kind)
        result = solve_convex(problem, replace(EXACT, time_limit=2.0))
        assert result.lower_bound <= result.objective
        solution = result.coef, result.intercept
        assert Fraction(result.lower_bound) <= lowest_exact(problem, rng, solution), seed


def exact_dual(problem, R):
    """D(R) of balanced two-class multipliers of hinges, in rational arithmetic; pure l1: after shrinking them."""
    X, r = rationals(dense(problem)), [Fraction(float(v)) for v in R[:, 0]]
    gain = sum(abs(a) for a in r)
    if problem.is_kernel:
        norm = sum(a * c * v for a, row in zip(r, X) for c, v in zip(r, row))
        return gain - norm / 2
    V = [sum(a * x for a, x in zip(r, column)) for column in zip(*X)]
    l1 = Fraction(float(problem.penalty.l1))
    if problem.penalty.l2 == 0:
        return gain * min(Fraction(1), *(l1 / abs(v) for v in V))
    return gain - sum(max(Fraction(0), abs(v) - l1) ** 2 for v in V) / (2 * Fraction(float(problem.penalty.l2)))


@pytest.mark.parametrize("kind", ["l2", "l1", "net", "kernel"])
def test_feasible_multipliers_lose_rounding_only(kind):
    """Multipliers of 1e8 and pairs of samples that nearly cancel: the bound is D(R), rounded down and by little."""
    penalty = {"l2": Penalty(l2=1.0), "l1": Penalty(l1=0.1), "net": Penalty(l2=1.0, l1=0.1), "kernel": Penalty(l2=1.0)}
    for seed in range(60):
        rng = np.random.default_rng(seed)
        n, size = 14, 10.0 ** rng.uniform(-3, 3)
        X = rng.normal(size=(n // 2, 2)).repeat(2, axis=0) * size
        X += rng.normal(size=X.shape) * 10.0 ** rng.uniform(-9, -5) * size
        space = KernelSpace(X @ X.T) if kind == "kernel" else LinearSpace(X)
        problem = Problem(space, np.arange(n) % 2, 2, Hinge(), penalty[kind], 1e8, np.ones(n))
        R = rng.integers(0, 10**8, size=n // 2).repeat(2).astype(float)[:, None] * problem.signs[:, None]
        exact, bound = exact_dual(problem, R), Fraction(problem.dual_bound(R))
        assert bound <= exact
        assert exact - bound <= Fraction(1e-9) * abs(exact) + Fraction(1e-9) * int(np.abs(R).sum())


def exact_solution(M, r):
    """Solve M s = r by elimination in rational arithmetic."""
    rows = [[Fraction(float(v)) for v in row] + [Fraction(float(t))] for row, t in zip(M, r)]
    for j in range(len(rows)):
        pivot = next(i for i in range(j, len(rows)) if rows[i][j])
        rows[j], rows[pivot] = rows[pivot], rows[j]
        rows = [
            row if i == j else [a - row[j] / rows[j][j] * c for a, c in zip(row, rows[j])] for i, row in enumerate(rows)
        ]
    return [row[-1] / row[j] for j, row in enumerate(rows)]


def test_corrections_are_no_larger_than_proved():
    proved = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        M = rng.normal(size=(5, 5)) * 10.0 ** rng.uniform(-3, 3, 5)[:, None]
        M[-1] = M[0] + 10.0 ** rng.uniform(-14, 0) * M[-1]  # down to singular
        r = rng.normal(size=5) * 10.0 ** rng.uniform(-12, 0, 5)
        Y = approximate_inverse(M)
        sizes = None if Y is None else proved_sizes(M, Y, np.abs(r))
        if sizes is None:
            continue
        proved += 1
        assert all(abs(s) <= Fraction(size) for s, size in zip(exact_solution(M, -r), sizes))
    assert 30 <= proved < 60


def test_corrections_are_allowed_for():
    """Multipliers that may move by 2 in all: what a penalised coefficient allows must hold after the move, too."""
    X, y = two_classes()
    problem = Problem(
        LinearSpace(X), y.astype(np.intp), 2, Hinge(), Penalty(l1=np.array([[0.0, 1.0, 1.0]])), 1.0, np.ones(40)
    )
    D = problem.balanced_step(problem.signs[:, None])
    V, radius = problem.space.sharp_sums(D)
    free = problem.penalty.l1 == 0
    plain, moved = (problem._linear_proof(D, V, radius, size, free) for size in (0.0, 2.0))
    theta = np.abs(moved.multipliers).sum() / np.abs(D).sum()
    assert np.all(theta * (np.abs(V) + 2.0 * problem.space.column_peaks)[~free] <= 1.0 + 1e-12)
    assert moved.bound <= plain.bound - 2.0


def random_tilt(rng, y, k, upper):
    """Rows that are feasible multipliers of some of the samples, as those of a majorant."""
    alpha, rival = upper * rng.random(y.size) * (rng.random(y.size) < 0.4), (y + 1 + rng.integers(0, k - 1, y.size)) % k
    tilt = np.zeros((y.size, k))
    tilt[np.arange(y.size), y] += alpha
    tilt[np.arange(y.size), rival] -= alpha
    return tilt


def test_balance_is_exact():
    for seed in range(200):
        rng = np.random.default_rng(seed)
        k, n = int(rng.integers(2, 6)), int(rng.integers(6, 40))
        y = np.concatenate([np.arange(k), rng.integers(0, k, n - k)]).astype(np.intp)
        upper = 10.0 ** rng.uniform(-12, 12, n)
        wish = upper[:, None] * rng.normal(size=(n, k)) * rng.choice([0.1, 1.0, 10.0])
        tilt = random_tilt(rng, y, k, upper) if seed % 2 else None
        if k == 2:  # one function, f = f_1
            signs = np.where(y == 1, 1.0, -1.0)
            D = balanced_two_class(wish[:, 0], signs, upper, None if tilt is None else tilt[:, 1])
            D = np.column_stack([-D, D])
        else:
            D = balanced_k_class(wish, y, upper, tilt)
        assert all(sum(map(Fraction, column)) == 0 for column in D.T.tolist())
        rows = zip(D.tolist(), np.zeros((n, k)).tolist() if tilt is None else tilt.tolist(), y, upper.tolist())
        for step, shift, mine, limit in rows:
            R = [Fraction(a) + Fraction(b) for a, b in zip(step, shift)]
            assert sum(R) == 0
            assert 0 <= R[mine] <= Fraction(limit)
            assert all(r <= 0 for j, r in enumerate(R) if j != mine)


def test_steps_to_the_safe_side():
    rng = np.random.default_rng(0)
    a, b = (10.0 ** rng.uniform(-150, 140, 2000) for _ in range(2))
    for x, y, low in zip(a, b, product_below(a, b)):
        assert Fraction(low) <= Fraction(x) * Fraction(y) <= Fraction(low) * (1 + Fraction(1, 2**49))
    a, b = rng.normal(size=2000), rng.normal(size=2000) * 10.0 ** rng.uniform(-20, 3, 2000)
    for x, y, low in zip(a, b, difference_below(a, b)):
        assert Fraction(low) <= Fraction(x) - Fraction(y)
    for n in (10, 5000, 100_003):
        x = rng.normal(size=n) * 10.0 ** rng.uniform(-5, 15, n)
        total, error = total_of(x)
        assert abs(Fraction(total) - sum(map(Fraction, x.tolist()))) <= Fraction(error)
    big = rng.integers(-(2**53), 2**53, 5000)
    assert integer_sum(big) == sum(int(v) for v in big)


@pytest.mark.parametrize("is_sparse", [False, True])
def test_sums_lie_within_their_radius(is_sparse):
    for seed in range(20):
        rng = np.random.default_rng(seed)
        n, p = int(rng.integers(4, 60)), 3
        X = rng.normal(size=(n, p)) * 10.0 ** rng.integers(-8, 9, p) + (0.0 if is_sparse else 1e5)
        D = np.rint(rng.normal(size=(n, 2)) * 2.0**50) * 2.0**-30
        D[-1] = 0.0
        D[-1] = [-float(sum(map(Fraction, column))) for column in D.T.tolist()]
        if any(sum(map(Fraction, column)) != 0 for column in D.T.tolist()):
            continue
        space = LinearSpace(sp.csr_matrix(X) if is_sparse else X)
        truth = [[sum(Fraction(d) * Fraction(x) for d, x in zip(a, c)) for c in X.T.tolist()] for a in D.T.tolist()]
        for V, radius in (space.balanced_sums(D), space.sharp_sums(D)):
            for row in zip(truth, V, radius):
                assert all(abs(t - Fraction(v)) <= Fraction(r) for t, v, r in zip(*row))
        radius = sharp_product(D, space.X, None, space.column_peaks)[2]
        assert np.all(radius <= 1e-21 * np.abs(D).sum(axis=0)[:, None] * space.column_peaks)


# -- through the public interface --------------------------------------------------------------------------------------


def two_classes(n=40, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, (X[:, 0] + 0.8 * rng.normal(size=n) > 0).astype(int)


def assert_bound_holds(estimator, X, y, sample_weight=None):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what is not proved to the tolerance is announced; here only the bound counts
        estimator.fit(X, y, sample_weight=sample_weight)
        problem, _ = estimator._prepare(X, y, sample_weight)
    W = estimator.coef_ if estimator._is_linear else np.zeros((problem.n_functions, problem.n))
    if not estimator._is_linear:
        W[:, estimator.dual_support_] = estimator.dual_coef_
    exact = exact_value(problem, W, estimator.intercept_)
    assert estimator.lower_bound_ <= estimator.objective_
    assert estimator.gap_ >= 0
    assert estimator.lower_bound_ == -np.inf or Fraction(estimator.lower_bound_) <= exact


EVERY_SOLVER = [
    ("program", "l2"), ("newton", "l2"), ("bundle", "l2"), ("program", "l1"), ("l1", "l1"), ("bundle", "l1"),
    ("smoothed", "l1"), ("columns", "l1"), ("program", "elastic-net"), ("l1", "elastic-net"), ("bundle", "elastic-net"),
]  # fmt: skip


@pytest.mark.parametrize(("solver", "penalty"), EVERY_SOLVER)
@pytest.mark.parametrize("weight", [1e-12, 1e-16, 1e-20])
def test_tiny_class_weights(solver, penalty, weight):
    X, y = two_classes()
    options = {"solver": solver, "penalty": penalty, "class_weight": {0: 1.0, 1: weight}}
    assert_bound_holds(SVMClassifier(**options, tol=1e-8, time_limit=5.0, max_iter=200), X, y)


@pytest.mark.parametrize(("solver", "penalty"), EVERY_SOLVER)
def test_sample_weights_over_fourteen_decades(solver, penalty):
    for seed in range(3):
        X, y = two_classes(seed=seed)
        weight = 10.0 ** np.random.default_rng(seed).uniform(-7, 7, y.size)
        estimator = SVMClassifier(solver=solver, penalty=penalty, tol=1e-8, time_limit=5.0, max_iter=200)
        assert_bound_holds(estimator, X, y, weight)


@pytest.mark.parametrize(("solver", "penalty"), EVERY_SOLVER)
@pytest.mark.parametrize("C", [1e8, 1e10])
def test_huge_prices(solver, penalty, C):
    proved = 0
    for seed in range(6):
        X, y = two_classes(n=30, seed=seed)
        estimator = SVMClassifier(C=C, solver=solver, penalty=penalty, tol=1e-8, time_limit=5.0, max_iter=200)
        try:
            assert_bound_holds(estimator, X, y)
        except ProgramError:  # the engine gives up on some; then nothing is claimed
            continue
        proved += np.isfinite(estimator.lower_bound_)
    assert proved > 0


@pytest.mark.parametrize("C", [1.0, 1e8, 1e10])
@pytest.mark.parametrize("solver", ["newton", "program", "bundle"])
def test_three_classes_at_huge_prices(solver, C):
    X, _ = two_classes(n=36)
    y = np.digitize(X[:, 0] + 0.3 * X[:, 1] ** 2, [-0.4, 0.5])
    y[::5] = np.arange(y[::5].size) % 3
    weight = {0: 1.0, 1: 1e-13, 2: 1.0} if C == 1.0 and solver != "program" else None
    assert_bound_holds(SVMClassifier(C=C, solver=solver, class_weight=weight, tol=1e-8, time_limit=5.0), X, y)


@pytest.mark.parametrize("C", [1e6, 1e8, 1e10])
@pytest.mark.parametrize("k", [2, 3])
def test_precomputed_kernels_at_huge_prices(k, C):
    rng = np.random.default_rng(k)
    A = rng.integers(-3, 4, size=(30, 30))
    K = (A @ A.T).astype(float)  # of integers: positive semidefinite without rounding
    y = rng.integers(0, k, 30)
    assert_bound_holds(SVMClassifier(kernel="precomputed", C=C, tol=1e-8, time_limit=10.0), K, y)
    few = (A[:, :4] @ A[:, :4].T).astype(float)
    assert_bound_holds(SVMClassifier(kernel="precomputed", C=C, tol=1e-8, time_limit=10.0), few, y)


@pytest.mark.parametrize("seed", range(8))
def test_objectives_of_cancelling_kernel_coefficients_are_those_of_exact_arithmetic(seed):
    """A Gram matrix of rank 3 and C = 1e8: sums of terms of size 1e9 are margins of size 1."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(12, 40))
    X, y = rng.normal(size=(n, 3)), rng.integers(0, 3, n)
    y[:3] = 0, 1, 2
    K = X @ X.T
    fit = SVMClassifier(kernel="precomputed", C=1e8, solver="smo", tol=1e-8, time_limit=5.0).fit(K, y)
    check = fit.verify(K, y)
    assert check.ok, check.message
    problem, (W, b) = fit.problem(K, y), fit.certificate_.point
    rows = [[Fraction(x) for x in row] for row in problem.space.K.tolist()]
    coef, intercept = [[Fraction(x) for x in row] for row in W.tolist()], [Fraction(x) for x in b.tolist()]
    products = [[sum(k * v for k, v in zip(row, v_j)) for row in rows] for v_j in coef]
    total = sum(v * p for v_j, p_j in zip(coef, products) for v, p in zip(v_j, p_j)) / 2
    for i, code in enumerate(problem.y.tolist()):
        f = [p_j[i] + c for p_j, c in zip(products, intercept)]
        u = min(f[code] - f[j] for j in range(3) if j != code)
        total += Fraction(problem.C) * Fraction(problem.weights[i]) * max(1 - u, 0)
    assert abs(Fraction(fit.objective_) / total - 1) < Fraction(1, 10**12)


def test_reject_losses_with_wild_weights():
    X, y = two_classes()
    weight = 10.0 ** np.random.default_rng(1).uniform(-7, 7, y.size)
    for penalty in ("l2", "l1"):
        assert_bound_holds(RejectClassifier(d=0.2, penalty=penalty, tol=1e-8, time_limit=5.0), X, y, weight)


@pytest.mark.parametrize("k", [2, 3])
def test_unpenalised_coefficients(k):
    """No constant allowance: far out along a free coefficient the bound still lies below the objective."""
    tight = 0
    for seed in range(16):
        rng = np.random.default_rng(seed)
        problem = random_problem(rng, k=k, tilted=False, max_n=25, wide=6)
        m, p = problem.n_functions, problem.space.dim
        free = rng.random(p) < 0.5
        weights = np.where(free, 0.0, rng.random(p) + 0.1) if seed % 2 else np.where(rng.random((m, p)) < 0.5, 0.0, 0.5)
        problem = replace(problem, penalty=Penalty(l1=np.broadcast_to(weights, (m, p))))
        result = solve_convex(problem, Options(tol=1e-8, time_limit=2.0))
        bound = Fraction(result.lower_bound) if np.isfinite(result.lower_bound) else None
        tight += result.gap <= 1e-6
        if bound is None:
            continue
        for W, b in points_of(problem, rng, (result.coef, result.intercept)):
            for far in (1.0, 2.0**10, 2.0**30):
                assert bound <= exact_value(problem, np.where(weights == 0, far * W, W) if m == 1 else W, b)
    assert tight >= 10


def test_majorants_of_scad_are_bounded():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(30, 3))
        y = (X[:, 0] + 0.5 * rng.normal(size=30) > 0).astype(np.intp)
        penalty = Penalty(l1=0.5, scad=3.7)
        problem = Problem(LinearSpace(X), y, 2, TruncatedHinge(-0.5), penalty, 10.0 ** rng.uniform(-1, 6), np.ones(30))
        result = solve(problem, "dca", Options(tol=1e-5, time_limit=5.0))
        majorant = problem.majorant(result.coef, result.intercept)
        found = solve_convex(majorant, Options(tol=1e-8))
        values = [exact_value(majorant, s * found.coef, found.intercept) for s in (0.5, 1.0, 2.0, 2.0**20)]
        assert Fraction(found.lower_bound) <= min(values)


def test_a_false_bound_is_an_error(monkeypatch):
    X, y = two_classes()
    problem = Problem(LinearSpace(X), y.astype(np.intp), 2, Hinge(), Penalty(l2=1.0), 1.0, np.ones(y.size))
    honest = Problem.proof

    def lying(self, R, *sharp):
        proof = honest(self, R)
        return proof._replace(bound=proof.bound * (1 + 1e-6))

    monkeypatch.setattr(Problem, "proof", lying)
    with pytest.raises(InconsistentBoundError):
        newton.solve(problem, Options(tol=1e-9))


def test_gaussian_kernels_far_from_zero():
    """The objective is that of the function predicted, in extended precision; samples near 1e6 that vary by 1."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = (X[:, 0] + X[:, 1] ** 2 > 0.5).astype(int)
    near = SVMClassifier(kernel="rbf", tol=1e-6).fit(X, y)
    far = SVMClassifier(kernel="rbf", tol=1e-6).fit(X + 1e6, y)
    assert far.kernel_.gamma == pytest.approx(near.kernel_.gamma, rel=1e-8)
    Z, S = ((X + 1e6).astype(np.longdouble), np.asarray(far.support_vectors_, dtype=np.longdouble))
    coef, signs = far.dual_coef_[0].astype(np.longdouble), np.where(y == 1, 1.0, -1.0)

    def kernel(A, B):
        return np.exp(-np.longdouble(far.kernel_.gamma) * ((A[:, None] - B[None]) ** 2).sum(axis=-1))

    scores = kernel(Z, S) @ coef + far.intercept_[0]
    objective = 0.5 * coef @ kernel(S, S) @ coef + np.maximum(0.0, 1.0 - signs * scores).sum()
    assert far.objective_ == pytest.approx(float(objective), rel=1e-12)
    np.testing.assert_allclose(far.decision_function(X + 1e6), scores.astype(float), rtol=0, atol=1e-12)
    assert far.lower_bound_ <= objective


def test_rounded_kernel_functions_do_not_claim_too_much():
    """A polynomial kernel of samples near 1e3 to 1e6 has lost its digits; the status must not say optimal."""
    X, y = two_classes()
    for shift in (1e4, 1e6):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = SVMClassifier(kernel="poly", coef0=1.0, time_limit=5.0).fit(X + shift, y)
        assert found.status_.value != "optimal"


@pytest.mark.parametrize("solver", ["bundle", "l1", "smoothed", "columns", "program"])
@pytest.mark.parametrize("C", [1e6, 1e8])
def test_a_tiny_penalty_is_verified(solver, C):
    """Multipliers of size C, whose sums are as small as the penalty: rounding them would be seen there."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    y = (X[:, 0] + rng.normal(size=40) > 0).astype(int)
    model = SVMClassifier(solver=solver, penalty="l1", C=C).fit(X, y)
    check = model.verify(X, y)
    assert check.ok, check.message
