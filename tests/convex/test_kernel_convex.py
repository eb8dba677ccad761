"""Convex problems in kernel spaces: against SVC, against a general QP solver, and against their own symmetries."""

from __future__ import annotations

import math
from dataclasses import replace

import clarabel
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel, sigmoid_kernel
from sklearn.svm import SVC

from psilearn.convex.smo import solver as smo
from psilearn.core.losses import ConvexHinges, Hinge, Psi, RejectHinge
from psilearn.core.penalties import Penalty
from psilearn.core.problem import Problem
from psilearn.core.result import Claim, Status
from psilearn.core.solving import Options
from psilearn.core.spaces import KernelSpace, LinearSpace
from psilearn.core.spaces.gram import GramOnDemand, Kernel, scale_of

TIGHT = Options(tol=1e-8)
MEDIUM = Options(tol=1e-3)
THREE_HINGES = ConvexHinges(((1.0, 1.0), (0.5, 0.25), (2.0, -0.5)))


def noisy(n: int, k: int, seed: int, d: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """Overlapping classes, every class present, a fifth of the labels random."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % k
    X = rng.normal(size=(n, d)) + 1.5 * rng.normal(size=(k, d))[y]
    flipped = (rng.random(n) < 0.2) & (np.arange(n) >= k)
    y[flipped] = rng.integers(k, size=flipped.sum())
    return X, y


def make(K, y, C=1.0, loss=None, weights=None, tilt=None, l2=1.0, k=None, known_psd=False) -> Problem:
    space = K if isinstance(K, KernelSpace) else KernelSpace(np.asarray(K), known_psd)
    weights = np.ones(len(y)) if weights is None else np.asarray(weights, dtype=float)
    k = int(y.max()) + 1 if k is None else k
    return Problem(space, np.asarray(y), k, loss or Hinge(), Penalty(l2=l2), C, weights, tilt)


def truncation_tilt(problem: Problem, share: float, seed: int) -> np.ndarray:
    """The tilt a d.c. algorithm adds: some samples' losses are linearised away, towards a random rival."""
    rng = np.random.default_rng(seed)
    capped = (rng.random(problem.n) < share) * problem.costs * problem.loss.max_slope
    rival = (problem.y + 1 + rng.integers(problem.n_classes - 1, size=problem.n)) % problem.n_classes
    return problem.spread(capped, rival)


def reference_optimum(problem: Problem) -> float:
    """The same optimum by Clarabel, primal, in the coordinates of a square root of the Gram matrix."""
    eigenvalues, Q = np.linalg.eigh(problem.space.K)
    root = Q * np.sqrt(np.maximum(eigenvalues, 0.0))
    n, m = problem.n, problem.n_functions
    hinges = problem.loss.hinges
    scores = sp.kron(sp.eye(m), np.hstack([root, np.ones((n, 1))]), format="csr")  # (m n) x m (n + 1), row j n + i
    n_w, n_xi = m * (n + 1), n * len(hinges)
    price = np.concatenate([problem.costs * c for c, _ in hinges])
    tilt = np.zeros((n, m)) if problem.tilt is None else problem.tilt
    q = np.concatenate([scores.T @ tilt.T.ravel(), price])
    P = sp.diags(np.concatenate([np.tile(np.r_[np.full(n, problem.penalty.l2), 0.0], m), np.zeros(n_xi)]))
    blocks, rhs = [sp.hstack([sp.csr_matrix((n_xi, n_w)), -sp.eye(n_xi)])], [np.zeros(n_xi)]
    for h, (_, t) in enumerate(hinges):
        xi = sp.csr_matrix((np.ones(n), (np.arange(n), h * n + np.arange(n))), shape=(n, n_xi))
        for margin in margin_rows(problem, scores):
            blocks.append(sp.hstack([-margin, -xi]))
            rhs.append(np.full(n, -t))
    equal = sp.hstack([sp.kron(np.ones((1, m)), sp.eye(n + 1)), sp.csr_matrix((n + 1, n_xi))])
    n_equal = n + 1 if m > 1 else 0
    A = sp.vstack(([equal] if m > 1 else []) + blocks).tocsc()
    b = np.concatenate([np.zeros(n_equal), *rhs])
    cones = [clarabel.ZeroConeT(n_equal)] * (m > 1) + [clarabel.NonnegativeConeT(b.size - n_equal)]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    answer = clarabel.DefaultSolver(sp.csc_matrix(P), q, A, b, cones, settings).solve()
    assert str(answer.status) == "Solved"
    return answer.obj_val


def margin_rows(problem: Problem, scores: sp.csr_matrix) -> list[sp.csr_matrix]:
    """For each rank of rival: the n rows of f_y - f_j (two classes: y f) as functions of the coefficients."""
    n, k = problem.n, problem.n_classes
    if k == 2:
        return [sp.diags(problem.signs) @ scores]
    own = scores[problem.y * n + np.arange(n)]
    return [own - scores[((problem.y + r) % k) * n + np.arange(n)] for r in range(1, k)]


def certified(problem: Problem, options: Options = TIGHT, start=None):
    """Solve, and check the certificate against the problem."""
    result = smo.solve(problem, options, start)
    check = result.certificate.verify(problem, result.coef, result.intercept)
    assert check.ok, check.message
    assert result.status is Status.OPTIMAL
    assert result.gap <= options.tol
    assert result.lower_bound <= result.objective + 1e-12 * abs(result.objective)
    return result


def svc_objective(model: SVC, K: np.ndarray, y: np.ndarray, C: float) -> float:
    v = np.zeros(len(y))
    v[model.support_] = model.dual_coef_[0]
    margins = np.where(y == 1, 1, -1) * (K @ v + model.intercept_)
    return 0.5 * v @ K @ v + C * np.maximum(1 - margins, 0).sum()


@pytest.mark.parametrize("C", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
def test_two_classes_agree_with_svc(kernel, C):
    X, y = noisy(150, 2, seed=3)
    K = {"linear": X @ X.T, "rbf": rbf_kernel(X, gamma=0.3), "poly": polynomial_kernel(X, degree=3, gamma=0.1, coef0=1)}
    model = SVC(C=C, kernel="precomputed", tol=1e-9).fit(K[kernel], y)
    result = certified(make(K[kernel], y, C))
    theirs = svc_objective(model, K[kernel], y, C)  # libsvm keeps its matrix in single precision
    assert result.objective == pytest.approx(theirs, rel=1e-6)
    assert result.objective <= theirs * (1 + 1e-8)


@pytest.mark.parametrize("loss", [Hinge(), RejectHinge(0.2), THREE_HINGES], ids=["hinge", "reject", "three"])
@pytest.mark.parametrize("k", [2, 3, 4, 5])
@pytest.mark.parametrize("C", [0.05, 1.0, 30.0])
def test_agrees_with_a_general_solver(k, loss, C):
    X, y = noisy(24, k, seed=k)
    weights = np.random.default_rng(k).uniform(0.2, 3.0, size=24)
    problem = make(rbf_kernel(X, gamma=0.5), y, C, loss, weights, l2=0.7)
    assert certified(problem).objective == pytest.approx(reference_optimum(problem), rel=1e-6)


@pytest.mark.parametrize("loss", [Hinge(), RejectHinge(0.1)], ids=["hinge", "reject"])
@pytest.mark.parametrize("k", [2, 3, 4])
@pytest.mark.parametrize("seed", range(3))
def test_tilted_problems_agree_with_a_general_solver(k, loss, seed):
    X, y = noisy(24, k, seed=10 + seed)
    plain = make(rbf_kernel(X, gamma=0.5), y, 2.0, loss)
    problem = replace(plain, tilt=truncation_tilt(plain, 0.25, seed))
    assert certified(problem).objective == pytest.approx(reference_optimum(problem), rel=1e-6)


def test_random_small_instances_agree_with_a_general_solver():
    for seed in range(40):
        rng = np.random.default_rng(seed)
        k, n = int(rng.integers(2, 6)), int(rng.integers(6, 16))
        X, y = noisy(n, k, seed, d=2)
        plain = make(rbf_kernel(X, gamma=rng.uniform(0.1, 3.0)), y, 10 ** rng.uniform(-2, 2), k=k)
        problem = replace(plain, tilt=truncation_tilt(plain, rng.uniform(0, 0.3), seed))
        expected = reference_optimum(problem)
        assert certified(problem).objective == pytest.approx(expected, rel=1e-6, abs=1e-6 * plain.zero_value)


@pytest.mark.parametrize("k", [2, 3])
def test_linear_gram_equals_linear_problem(k):
    X, y = noisy(60, k, seed=5)
    result = certified(make(X @ X.T, y, 0.5))
    linear = replace(make(X @ X.T, y, 0.5), space=LinearSpace(X))
    W = result.coef @ X
    assert linear.value(W, result.intercept) == pytest.approx(result.objective, rel=1e-10)
    assert linear.dual_bound(result.multipliers) == pytest.approx(result.objective, rel=2e-8)


@pytest.mark.parametrize("k", [2, 3])
def test_decomposition_finds_the_same_optimum(k):
    X, y = noisy(300, k, seed=6)
    problem = make(rbf_kernel(X, gamma=0.5), y, 5.0, known_psd=True)
    whole = certified(problem)
    parts = certified(problem, replace(TIGHT, settings=(smo.Settings(working_set=40),)))
    assert parts.extra["rounds"] > whole.extra["rounds"]
    assert parts.objective == pytest.approx(whole.objective, rel=1e-7)


def truncated_at(problem: Problem, result, s: float) -> np.ndarray:
    """The tilt that linearises away the losses of samples with a margin below s."""
    F = problem.space.scores(result.coef, result.intercept)
    capped = problem.costs * (problem.margins_of_scores(F) < s)
    return problem.spread(capped, None if problem.n_classes == 2 else problem.rivals(F))


@pytest.mark.parametrize("k", [2, 3, 4])
def test_warm_start_after_a_change_of_tilt(k):
    X, y = noisy(300, k, seed=7)
    plain = make(rbf_kernel(X, gamma=0.5), y, 2.0, known_psd=True)
    first = certified(plain, MEDIUM)
    lowest = np.sort(plain.margins(first.coef, first.intercept))
    few = replace(plain, tilt=truncated_at(plain, first, lowest[20]))
    second = certified(few, MEDIUM, first)
    more = replace(plain, tilt=truncated_at(plain, first, lowest[22]))
    cold, warm = certified(more, MEDIUM), certified(more, MEDIUM, second)
    assert warm.objective == pytest.approx(cold.objective, rel=2e-3)
    assert warm.n_iter < cold.n_iter
    tight_cold, tight_warm = certified(more), certified(more, start=second)
    assert tight_warm.objective == pytest.approx(tight_cold.objective, rel=1e-7)


@pytest.mark.parametrize("C", [0.7, 1.0, 1.5])
@pytest.mark.parametrize("k", [2, 3])
def test_warm_start_after_a_change_of_cost(k, C):
    X, y = noisy(300, k, seed=8)
    problem = make(rbf_kernel(X, gamma=0.5), y, 1.0, known_psd=True)
    first = certified(problem, MEDIUM)
    other = replace(problem, C=C)
    cold, warm = certified(other, MEDIUM), certified(other, MEDIUM, first)
    assert warm.objective == pytest.approx(cold.objective, rel=2e-3)
    assert warm.n_iter < cold.n_iter


@settings(max_examples=25, deadline=None, derandomize=True)
@given(seed=st.integers(0, 10_000), k=st.integers(2, 4), C=st.sampled_from([0.1, 1.0, 20.0]))
def test_duplicated_rows_are_weight_two(seed, k, C):
    X, y = noisy(20, k, seed)
    K = rbf_kernel(X, gamma=0.5)
    twice = np.r_[np.arange(20), np.arange(8)]
    weights = 1.0 + (np.arange(20) < 8)
    doubled = certified(make(K[np.ix_(twice, twice)], y[twice], C, k=k))
    weighted = certified(make(K, y, C, weights=weights, k=k))
    assert doubled.objective == pytest.approx(weighted.objective, rel=3e-8)


@settings(max_examples=25, deadline=None, derandomize=True)
@given(seed=st.integers(0, 10_000), k=st.integers(2, 5))
def test_order_of_samples_and_names_of_classes_do_not_matter(seed, k):
    rng = np.random.default_rng(seed)
    X, y = noisy(25, k, seed)
    K = rbf_kernel(X, gamma=0.5)
    samples, classes = rng.permutation(25), rng.permutation(k)
    plain = certified(make(K, y, 3.0, k=k))
    permuted = certified(make(K[np.ix_(samples, samples)], classes[y[samples]], 3.0, k=k))
    assert permuted.objective == pytest.approx(plain.objective, rel=3e-8)


@pytest.mark.parametrize("C", [1e-4, 1e7])
@pytest.mark.parametrize("k", [2, 3])
def test_extreme_costs_are_certified(k, C):
    X, y = noisy(60, k, seed=9)
    certified(make(rbf_kernel(X, gamma=0.5), y, C), Options(tol=1e-6))


@pytest.mark.parametrize("scale", [1e-8, 1e8])
@pytest.mark.parametrize("k", [2, 3])
def test_extreme_kernel_scales_are_certified(k, scale):
    X, y = noisy(60, k, seed=9)
    certified(make(scale * rbf_kernel(X, gamma=0.5), y), Options(tol=1e-6))


@pytest.mark.parametrize("k", [2, 3])
def test_singular_gram_matrices(k):
    X, y = noisy(45, k, seed=11)
    zero = certified(make(np.zeros((45, 45)), y))
    assert zero.objective == pytest.approx(make(np.zeros((45, 45)), y).best_constant()[0], rel=1e-8)
    contradictory = np.zeros((9, 2))
    certified(make(contradictory @ contradictory.T + 1.0, np.arange(9) % k, 10.0))
    rank_one = X[:, :1] @ X[:, :1].T
    problem = make(rank_one, y, 4.0)
    assert certified(problem).objective == pytest.approx(reference_optimum(problem), rel=1e-6)


def test_two_samples():
    result = certified(make(np.array([[1.0, 0.2], [0.2, 1.0]]), np.array([0, 1]), 100.0))
    # Both on the margin: f(x_1) - f(x_0) = 2, so ||f||^2 = 4 / ||K_0 - K_1||^2 = 4 / 1.6.
    assert result.objective == pytest.approx(0.5 * 4 / 1.6, rel=1e-7)
    assert result.intercept == pytest.approx(0.0, abs=1e-6)


def test_a_class_without_samples_and_a_lone_class():
    X, y = noisy(20, 2, seed=1)
    certified(make(rbf_kernel(X), y, k=3))
    lone = certified(make(rbf_kernel(X), np.zeros(20, dtype=int), k=3))
    assert lone.objective == pytest.approx(0.0, abs=1e-9)


def test_indefinite_kernel_is_not_certified():
    X, y = noisy(80, 2, seed=2)
    K = sigmoid_kernel(X, gamma=1.0, coef0=-1.0)
    for labels, k in ((y, 2), (noisy(80, 3, seed=2)[1], 3)):
        problem = make(K, labels, 10.0, k=k)
        assert not problem.space.is_psd
        result = smo.solve(problem, Options(tol=1e-3, time_limit=20.0))
        assert result.status in (Status.CRITICAL, Status.STALLED, Status.ITERATION_LIMIT)
        assert result.certificate.claim is Claim.NONE
        assert result.lower_bound == -math.inf
        assert result.certificate.verify(problem, result.coef, result.intercept).ok


def test_large_indefinite_matrices_are_recognised():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(1600, 5))
    assert KernelSpace(A @ A.T).is_psd
    assert KernelSpace((A @ A.T).astype(np.float32)).is_psd
    assert not KernelSpace(A @ A.T - 0.1 * np.outer(A[:, 0], A[:, 0]) * 30).is_psd


def test_impossible_tilt_is_reported():
    X, y = noisy(20, 2, seed=1)
    tilt = np.ones((20, 1))  # the intercept can fall for ever: more tilt than all losses can resist
    result = smo.solve(make(rbf_kernel(X), y, 0.5, tilt=tilt), TIGHT)
    assert result.status is Status.STALLED
    assert result.lower_bound == -math.inf


def test_limits_return_the_incumbent(monkeypatch):
    X, y = noisy(400, 3, seed=4)
    problem = make(rbf_kernel(X, gamma=0.5), y, 100.0, known_psd=True)
    few = smo.solve(problem, replace(TIGHT, max_iter=50))
    assert few.status is Status.ITERATION_LIMIT
    assert few.n_iter <= 50
    late = smo.solve(problem, replace(TIGHT, time_limit=0.0))
    assert late.status is Status.TIME_LIMIT
    optimum = certified(problem).objective
    for result in (few, late):
        assert result.lower_bound <= optimum <= result.objective

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(smo.Dual, "round", interrupted)
    stopped = smo.solve(problem, TIGHT, few)
    assert stopped.status is Status.INTERRUPTED
    assert few.lower_bound * (1 - 1e-12) <= stopped.lower_bound <= optimum


def test_refuses_what_it_cannot_solve():
    X, y = noisy(20, 2, seed=1)
    problem = make(rbf_kernel(X), y)
    assert smo.TAKES.refusal(problem) is None
    assert "Gram" in smo.TAKES.refusal(replace(problem, space=LinearSpace(X)))
    assert "l2" in smo.TAKES.refusal(replace(problem, penalty=Penalty(l2=1.0, l1=0.1)))
    assert "convex" in smo.TAKES.refusal(replace(problem, loss=Psi(2.0)))


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("kind", ["linear", "rbf", "poly", "sigmoid"])
def test_gram_matrices(kind, sparse):
    X, _ = noisy(40, 2, seed=0, d=6)
    X[X < 0] = 0
    Z = X[:7]
    gamma = scale_of("scale", X)
    assert gamma == pytest.approx(1 / (6 * X.var()))
    expected = {
        "linear": X @ Z.T,
        "rbf": rbf_kernel(X, Z, gamma=gamma),
        "poly": polynomial_kernel(X, Z, degree=2, gamma=gamma, coef0=0.5),
        "sigmoid": sigmoid_kernel(X, Z, gamma=gamma, coef0=0.5),
    }[kind]
    kernel = Kernel(kind, gamma, degree=2, coef0=0.5)
    data = sp.csr_matrix(X) if sparse else X
    assert scale_of("scale", data) == pytest.approx(gamma)
    assert kernel.space(data).K[:, :7] == pytest.approx(expected, abs=1e-12)
    coef, intercept = np.ones((2, 7)), np.array([0.0, 3.0])
    assert kernel.scores(data, data[:7], coef, intercept) == pytest.approx(expected @ coef.T + intercept)
    assert kernel.space(data.astype(np.float32)).K[:, :7] == pytest.approx(expected, abs=1e-4)


def test_precomputed_and_callable_equal_built_in():
    X, y = noisy(50, 3, seed=0)
    built_in = Kernel("rbf", 0.5).space(X)
    precomputed = Kernel("precomputed").space(rbf_kernel(X, gamma=0.5))
    called = Kernel(lambda A, B: rbf_kernel(A, B, gamma=0.5)).space(X)
    assert built_in.known_psd
    assert not precomputed.known_psd
    objectives = [certified(make(space, y)).objective for space in (built_in, precomputed, called)]
    assert objectives == pytest.approx([objectives[0]] * 3, rel=2e-8)


def test_bad_kernels_are_named():
    with pytest.raises(ValueError, match="square"):
        Kernel("precomputed").space(np.ones((3, 2)))
    with pytest.raises(ValueError, match="NaN"):
        Kernel("precomputed").space(np.full((2, 2), np.nan))
    with pytest.raises(ValueError, match="symmetric"):
        Kernel("precomputed").space(np.array([[1.0, 0.5], [0.0, 1.0]]))
    with pytest.raises(ValueError, match="wrong"):
        Kernel("wrong")
    with pytest.raises(ValueError, match="gamma"):
        scale_of("wrong", np.ones((2, 2)))
    with pytest.raises(MemoryError, match="GiB"):
        Kernel("sigmoid").space(sp.csr_matrix((10**6, 1)))
    with pytest.raises(MemoryError, match="GiB"):
        np.asarray(Kernel("rbf").space(sp.csr_matrix((10**6, 1))).K)


def on_demand(kernel: Kernel, X) -> KernelSpace:
    return KernelSpace(GramOnDemand(kernel, X), True, kernel.space(X).entry_error)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("kernel", [Kernel("linear"), Kernel("rbf", 0.7), Kernel("poly", 0.3, 3, 0.5)], ids=repr)
def test_a_matrix_on_demand_is_the_stored_one(kernel, sparse):
    X, _ = noisy(700, 2, seed=1)
    data = sp.csr_matrix(X) if sparse else X
    stored, space = kernel.space(data), on_demand(kernel, data)
    size = np.abs(stored.K).max()
    assert np.asarray(space.K) == pytest.approx(stored.K, abs=1e-13 * size)
    assert space.squared_norms == pytest.approx(stored.squared_norms)
    assert np.all(np.abs(stored.K) <= np.outer(space.row_reach, space.row_reach))
    rng = np.random.default_rng(0)
    rows, columns = rng.permutation(700)[:300], rng.permutation(700)[:600]
    assert space.block(rows, columns) == pytest.approx(stored.K[np.ix_(rows, columns)], abs=1e-13 * size)
    assert space.K.rough(rows) == pytest.approx(stored.K[np.ix_(rows, rows)], abs=1e-4 * size)
    assert space.subset(rows).block(np.arange(9), np.arange(9)) == pytest.approx(stored.subset(rows).K[:9, :9])
    D = np.zeros((700, 2))
    D[rows] = rng.normal(size=(300, 2))
    truth = float(np.sum(D * (stored.K.astype(np.longdouble) @ D)))
    for value, error in (space.quadratic(D), space.sharp_quadratic(np.rint(D * 2**20) / 2**20)):
        assert 0 < error < 1e-6 * size * 700**2
        assert value == pytest.approx(truth, rel=1e-5)
    value, error = space.quadratic(D)
    assert abs(value - truth) <= error
    assert space.scores(D.T, np.ones(2)) == pytest.approx(stored.scores(D.T, np.ones(2)))
    scores, norm2 = space.sharp_scores(D.T, np.zeros(2))
    assert np.sum(scores * D) == pytest.approx(norm2, rel=1e-12)
    assert scores == pytest.approx(stored.sharp_scores(D.T, np.zeros(2))[0], rel=1e-9, abs=1e-11 * size)


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("seed", range(3))
def test_fits_on_demand_are_those_of_the_stored_matrix(k, seed):
    X, y = noisy(600, k, seed)
    kernel = Kernel("rbf", 0.5)
    truth = certified(make(kernel.space(X), y, 3.0))
    found = certified(make(on_demand(kernel, X), y, 3.0))
    assert found.objective == pytest.approx(truth.objective, rel=1e-7)
    stored = make(kernel.space(X), y, 3.0, loss=RejectHinge(0.2))
    tilted = replace(stored, tilt=truncation_tilt(stored, 0.2, seed))
    lazy = replace(tilted, space=on_demand(kernel, X))
    warm = certified(lazy, TIGHT, start=certified(replace(lazy, tilt=None)))
    assert warm.objective == pytest.approx(certified(tilted).objective, rel=1e-7)


def test_scores_remember_and_update():
    rng = np.random.default_rng(0)
    X, _ = noisy(60, 2, seed=0)
    for dtype, tolerance in ((np.float64, 1e-12), (np.float32, 1e-5)):
        K = rbf_kernel(X)
        space = KernelSpace(K.astype(dtype))
        W = rng.normal(size=(2, 60)) * (rng.random(60) < 0.5)
        for changes in (0, 5, 40):
            W = W.copy()
            W[:, rng.permutation(60)[:changes]] += 1.0
            assert space.scores(W, np.ones(2)) == pytest.approx(K @ W.T + 1.0, abs=tolerance * 60)
            assert space.inner(W, W) == pytest.approx(np.sum(W * (W @ K)), rel=60 * tolerance)


def test_single_precision_gram_is_certified_on_its_own_terms():
    X, y = noisy(200, 3, seed=12)
    double = certified(make(rbf_kernel(X, gamma=0.5), y))
    single = certified(make(rbf_kernel(X, gamma=0.5).astype(np.float32), y, known_psd=True))
    assert single.objective == pytest.approx(double.objective, rel=1e-6)
