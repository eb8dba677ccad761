"""The convex solver of linear functions with penalty l2, against scikit-learn and an independent QP."""

import itertools
import math
import time
from dataclasses import replace
from fractions import Fraction

import clarabel
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.svm import SVC

from psilearn.convex import newton
from psilearn.core.losses import ConvexHinges, Hinge, Psi, RejectHinge
from psilearn.core.penalties import Penalty
from psilearn.core.problem import Problem
from psilearn.core.result import Status
from psilearn.core.solving import Options
from psilearn.core.spaces import KernelSpace, LinearSpace

EXACT = Options(tol=1e-8)
THREE_HINGES = ConvexHinges(((0.5, 1.5), (1.0, 1.0), (2.0, -0.3)))
LOSSES = [Hinge(), RejectHinge(0.2), Psi(0.7).convex_part, THREE_HINGES]


def gaussian(seed, n, d, k, noise=0.15):
    """Gaussian features, labels by random linear scores, a share of them redrawn."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    y = (X @ rng.standard_normal((d, k)) + rng.standard_normal(k)).argmax(axis=1)
    flipped = rng.random(n) < noise
    y[flipped] = rng.integers(0, k, flipped.sum())
    y[:k] = np.arange(k)
    return X, y


def problem_of(X, y, C=1.0, loss=None, weights=None, tilt=None, k=None):
    weights = np.ones(len(y)) if weights is None else weights
    k = int(y.max()) + 1 if k is None else k
    return Problem(LinearSpace(X), np.asarray(y, dtype=np.intp), k, loss or Hinge(), Penalty(l2=1.0), C, weights, tilt)


def truncation_tilt(problem, seed, share=0.2):
    """The linear term by which a d.c. step removes some samples' losses: their dual boxes shift to [-top, 0]."""
    rng = np.random.default_rng(seed)
    alpha = problem.costs * problem.loss.max_slope * (rng.random(problem.n) < share)
    rival = None
    if problem.n_classes > 2:
        rival = (problem.y + rng.integers(1, problem.n_classes, problem.n)) % problem.n_classes
    return problem.spread(alpha, rival)


def qp_optimum(problem, norm_weight=1.0, functions=None):
    """Optimum of the plain QP in Clarabel: variables (W, b, one slack per sample and hinge), one row per rival."""
    X, y, k = np.asarray(problem.space.X, dtype=float), problem.y, problem.n_classes
    (n, d), m = X.shape, functions or problem.n_functions
    hinges, size = problem.loss.hinges, m * (d + 1)
    rows, rhs = [], []
    for i, (h, (_, t)) in itertools.product(range(n), enumerate(hinges)):
        for j in [None] if m == 1 else [j for j in range(k) if j != y[i]]:
            row = np.zeros(size + n * len(hinges))
            score = np.zeros((m, d + 1))
            if m == 1:
                score[0] = np.append(X[i], 1.0) * (2 * y[i] - 1)
            else:
                score[y[i]], score[j] = np.append(X[i], 1.0), -np.append(X[i], 1.0)
            row[:size], row[size + i * len(hinges) + h] = -score.ravel(), -1.0
            rows.append(row)
            rhs.append(-t)
    zeros = [np.tile(np.arange(d + 1) == e, m) for e in range(d + 1)] if m > 1 else []
    equal = [np.append(z, np.zeros(n * len(hinges))) for z in zeros]
    slack = np.hstack([np.zeros((n * len(hinges), size)), -np.eye(n * len(hinges))])
    A = sp.csc_matrix(np.vstack([*equal, *rows, slack]).astype(float))
    b = np.concatenate([np.zeros(len(equal)), rhs, np.zeros(n * len(hinges))])
    curvature = np.zeros(size + n * len(hinges))
    curvature[:size] = np.tile(np.append(np.full(d, norm_weight * problem.penalty.l2), 0.0), m)
    q = np.concatenate([np.zeros(size), np.outer(problem.costs, [c for c, _ in hinges]).ravel()])
    if problem.tilt is not None:
        q[:size] = (problem.tilt.T @ np.hstack([X, np.ones((n, 1))])).ravel()
    cones = [clarabel.NonnegativeConeT(len(b) - len(equal))]
    cones = [clarabel.ZeroConeT(len(equal)), *cones] if equal else cones
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_rel = settings.tol_gap_abs = settings.tol_feas = 1e-10
    answer = clarabel.DefaultSolver(sp.diags(curvature).tocsc(), q, A, b, cones, settings).solve()
    assert str(answer.status) in {"Solved", "AlmostSolved"}
    return answer.obj_val


def assert_certified(problem, result, tol=1e-8):
    assert result.status is Status.OPTIMAL
    assert result.gap <= tol
    assert result.objective == problem.value(result.coef, result.intercept)
    assert problem.dual_bound(result.multipliers) == pytest.approx(result.lower_bound, rel=1e-12)
    assert result.lower_bound <= result.objective + 1e-12 * abs(result.objective)
    assert np.abs(result.coef.sum(axis=0)).max() <= 1e-9 * np.abs(result.coef).max() or problem.n_classes == 2


@pytest.mark.parametrize("C", [1e-3, 1.0, 100.0])
@pytest.mark.parametrize("seed", range(4))
def test_two_classes_equal_svc(seed, C):
    X, y = gaussian(seed, 120, 4, 2)
    weights = np.random.default_rng(seed).uniform(0.5, 2.0, 120)
    problem = problem_of(X, y, C, weights=weights)
    result = newton.solve(problem, EXACT)
    svc = SVC(kernel="linear", C=C, tol=1e-8).fit(X, y, sample_weight=weights)
    alpha = np.abs(svc.dual_coef_).sum()
    truth = alpha - 0.5 * np.sum(svc.coef_**2)  # SVC minimises its dual; its intercept is a mere average
    assert_certified(problem, result)
    assert result.objective == pytest.approx(truth, rel=1e-6)
    assert result.lower_bound <= problem.value(svc.coef_, svc.intercept_)


@pytest.mark.parametrize("tilted", [False, True])
@pytest.mark.parametrize("loss", LOSSES, ids=["hinge", "reject", "psi", "three"])
@pytest.mark.parametrize(("k", "C"), [(2, 0.1), (2, 10.0), (3, 0.1), (3, 10.0), (5, 1.0)])
def test_equals_the_plain_qp(k, C, loss, tilted):
    X, y = gaussian(k, 40, 3, k)
    problem = problem_of(X, y, C, loss, np.random.default_rng(k).uniform(0.5, 2.0, 40))
    if tilted:
        problem = replace(problem, tilt=truncation_tilt(problem, k))
    result = newton.solve(problem, EXACT)
    assert_certified(problem, result)
    assert result.objective == pytest.approx(qp_optimum(problem), rel=1e-6)


@pytest.mark.parametrize("C", [0.1, 10.0])
def test_many_classes_equal_the_plain_qp(C):
    X, y = gaussian(1, 60, 3, 12)
    problem = problem_of(X, y, C)
    result = newton.solve(problem, EXACT)
    assert_certified(problem, result)
    assert result.objective == pytest.approx(qp_optimum(problem), rel=1e-6)


def test_two_classes_in_k_class_form():
    # f_1 = -f_2 = f/2: the k-class norm is ||w||^2/4 twice, i.e. half of the two-class one.
    X, y = gaussian(7, 50, 3, 2)
    problem = problem_of(X, y, 2.0)
    result = newton.solve(problem, EXACT)
    k_class_form = qp_optimum(replace(problem, C=1.0), functions=2)
    assert result.objective == pytest.approx(2.0 * k_class_form, rel=1e-6)


def hard_data():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((120, 5))
    return {
        "tiny": X * 1e-8,
        "huge": X * 1e8,
        "mixed": X * 10.0 ** np.array([-8, -4, 0, 4, 8]),
        "constant": np.c_[X, np.full(120, 7.0), np.zeros(120)],
        "duplicated columns": np.c_[X, X, 1e4 * X[:, :1]],
        "shifted": X + 1e6,
        "wide": rng.standard_normal((30, 400)),
        "wide and mixed": rng.standard_normal((30, 400)) * 10.0 ** rng.uniform(-8, 8, 400),
        "contradictory": np.r_[X[:40], X[:40], X[:40]],
        "two samples": X[:2],
        "integers": rng.integers(0, 2, (120, 5)).astype(float),
    }


@pytest.mark.parametrize("C", [1e-4, 1e-2, 1.0, 1e3, 1e7])
@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("name", hard_data())
def test_hard_scales_are_certified(name, k, C):
    X = hard_data()[name]
    k = min(k, len(X))
    y = np.random.default_rng(5).integers(0, k, len(X))
    y[:k] = np.arange(k)
    problem = problem_of(X, y, C)
    assert_certified(problem, newton.solve(problem, EXACT))


@pytest.mark.parametrize("k", [2, 3])
def test_separable_samples_and_a_large_cost(k):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((150, 6))
    y = (X @ rng.standard_normal((6, k))).argmax(axis=1)
    problem = problem_of(X, y, 1e7, k=k)
    result = newton.solve(problem, EXACT)
    assert_certified(problem, result)
    assert problem.margins(result.coef, result.intercept).min() >= 1.0 - 1e-6


seeds = st.integers(0, 10**6)
classes = st.sampled_from([2, 3, 4])
costs = st.sampled_from([0.01, 1.0, 50.0])


@settings(max_examples=25, deadline=None, derandomize=True)
@given(seeds, classes, costs)
def test_invariances(seed, k, C):
    """Duplicated rows are weights, order and names carry no meaning, a shift moves the intercept only."""
    rng = np.random.default_rng(seed)
    X, y = gaussian(seed, 40, 4, k)
    result = newton.solve(problem_of(X, y, C), EXACT)
    truth = pytest.approx(result.objective, rel=1e-7)

    doubled = rng.random(40) < 0.3
    weighted = newton.solve(problem_of(X, y, C, weights=1.0 + doubled), EXACT)
    repeated = newton.solve(problem_of(np.r_[X, X[doubled]], np.r_[y, y[doubled]], C), EXACT)
    assert weighted.objective == pytest.approx(repeated.objective, rel=1e-7)

    samples, features, names = rng.permutation(40), rng.permutation(4), rng.permutation(k)
    permuted = newton.solve(problem_of(np.ascontiguousarray(X[samples][:, features]), names[y[samples]], C), EXACT)
    assert permuted.objective == truth

    shift = rng.uniform(-5, 5, 4)
    shifted = newton.solve(problem_of(X + shift, y, C), EXACT)
    assert shifted.objective == truth
    np.testing.assert_allclose(shifted.coef, result.coef, atol=2e-3 * np.abs(result.coef).max())

    sparse = newton.solve(problem_of(sp.csr_matrix(X), y, C), EXACT)
    assert sparse.objective == truth
    single = newton.solve(problem_of(X.astype(np.float32), y, C), EXACT)
    assert single.objective == pytest.approx(result.objective, rel=1e-5)


@pytest.mark.parametrize("k", [2, 3])
def test_warm_start(k):
    X, y = gaussian(11, 3000, 10, k)
    problem = problem_of(X, y)
    options = Options(tol=1e-5)
    cold = newton.solve(problem, options)
    again = newton.solve(problem, options, cold)
    assert again.objective == pytest.approx(cold.objective, rel=1e-5)
    assert again.n_iter <= 0.5 * cold.n_iter
    costlier = replace(problem, C=1.2)
    warm, fresh = newton.solve(costlier, options, cold), newton.solve(costlier, options)
    assert warm.objective == pytest.approx(fresh.objective, rel=1e-5)
    assert warm.n_iter < fresh.n_iter
    tilted = replace(problem, tilt=truncation_tilt(problem, 0, share=0.01))
    warm, fresh = newton.solve(tilted, options, cold), newton.solve(tilted, options)
    assert warm.status is fresh.status is Status.OPTIMAL
    assert warm.objective == pytest.approx(fresh.objective, rel=1e-5)


@pytest.mark.parametrize("k", [2, 3])
def test_a_start_without_multipliers_or_with_zeros(k):
    X, y = gaussian(12, 200, 5, k)
    problem = problem_of(X, y)
    cold = newton.solve(problem, EXACT)
    for multipliers in (None, np.zeros_like(cold.multipliers)):
        result = newton.solve(problem, EXACT, replace(cold, multipliers=multipliers))
        assert_certified(problem, result)
        assert result.objective == pytest.approx(cold.objective, rel=1e-7)


@pytest.mark.parametrize("k", [2, 3])
def test_conjugate_gradients_agree_with_cholesky(k, monkeypatch):
    X, y = gaussian(2, 300, 12, k)
    X[np.abs(X) < 1.0] = 0.0
    problem = problem_of(sp.csr_matrix(X), y)
    direct = newton.solve(problem, Options(tol=1e-6))
    monkeypatch.setattr(newton, "DIRECT_LIMIT", 0)
    iterative = newton.solve(problem, Options(tol=1e-6))
    assert iterative.status is Status.OPTIMAL
    assert iterative.objective == pytest.approx(direct.objective, rel=2e-6)


def test_wide_sparse_samples_without_rotation(monkeypatch):
    rng = np.random.default_rng(0)
    X = sp.random(100, 2000, 0.02, format="csr", random_state=0)
    y = rng.integers(0, 3, 100)
    problem = problem_of(X, y)
    rotated = newton.solve(problem, EXACT)
    monkeypatch.setattr(newton, "ROTATION_LIMIT", 0)
    plain = newton.solve(replace(problem, space=LinearSpace(X)), Options(tol=1e-5))
    assert plain.status is Status.OPTIMAL
    assert plain.objective == pytest.approx(rotated.objective, rel=1e-5)


def test_refusals():
    X, y = gaussian(0, 20, 3, 2)
    problem = problem_of(X, y)
    assert newton.TAKES.refusal(problem) is None
    assert "linear" in newton.TAKES.refusal(replace(problem, space=KernelSpace(X @ X.T)))
    assert "convex" in newton.TAKES.refusal(replace(problem, loss=Psi(1.0)))
    assert "l2" in newton.TAKES.refusal(replace(problem, penalty=Penalty(l1=1.0)))
    assert "l2" in newton.TAKES.refusal(replace(problem, penalty=Penalty(l2=1.0, l1=1.0)))
    assert "hinge" in newton.TAKES.refusal(replace(problem, loss=ConvexHinges(())))


def test_limits_return_the_incumbent():
    X, y = gaussian(4, 2000, 20, 3)
    problem = problem_of(X, y)
    newton.solve(problem, Options(tol=1e-1))  # compiles
    began = time.perf_counter()
    late = newton.solve(problem, Options(tol=1e-12, time_limit=1e-3))
    assert time.perf_counter() - began <= 1.1e-3 + 1.0
    assert late.status is Status.TIME_LIMIT
    few = newton.solve(problem, Options(tol=1e-12, max_iter=3))
    assert few.status is Status.ITERATION_LIMIT
    for result in (late, few):
        assert result.objective == problem.value(result.coef, result.intercept)
        assert result.lower_bound <= result.objective


def test_an_interrupt_returns_the_incumbent(monkeypatch):
    X, y = gaussian(4, 500, 5, 2)
    problem = problem_of(X, y)
    step, calls = newton._Iterate.step, []

    def interrupted(self):
        calls.append(1)
        if len(calls) == 4:
            raise KeyboardInterrupt
        step(self)

    monkeypatch.setattr(newton._Iterate, "step", interrupted)
    result = newton.solve(problem, EXACT)
    assert result.status is Status.INTERRUPTED
    assert result.lower_bound <= result.objective <= problem.zero_value


def test_data_are_left_alone():
    X, y = gaussian(6, 50, 4, 3)
    before = X.copy()
    problem = problem_of(X, y)
    start = newton.solve(problem, EXACT)
    kept = start.multipliers.copy(), start.coef.copy()
    newton.solve(replace(problem, C=3.0), EXACT, start)
    np.testing.assert_array_equal(X, before)
    np.testing.assert_array_equal(start.multipliers, kept[0])
    np.testing.assert_array_equal(start.coef, kept[1])


def test_samples_far_from_zero_lose_no_digits():
    """Scores and combinations against rational arithmetic: features near 1e6 that vary by 1."""
    rng = np.random.default_rng(8)
    X, w, b = rng.standard_normal((20, 4)) + 1e6, rng.standard_normal(4), -1e6
    b -= 1e6 * (w.sum() - 1.0)  # scores near 1
    R = rng.standard_normal(20) * 1e7
    R[-1] -= math.fsum(R)
    space = LinearSpace(X)
    exact = [float(sum(Fraction(x) * Fraction(c) for x, c in zip(row, w)) + Fraction(b)) for row in X.tolist()]
    plain = X @ w + b
    assert np.abs(plain - exact).max() > 1e-10  # what is lost otherwise
    np.testing.assert_allclose(space.scores(w[None], np.array([b]))[:, 0], exact, rtol=0, atol=1e-12)
    centred = X - 1e6  # without rounding; R sums to zero
    sums = [float(sum(Fraction(r) * Fraction(x) for r, x in zip(R, column))) for column in centred.T.tolist()]
    np.testing.assert_allclose(space.combine(R[:, None])[0], sums, rtol=1e-12, atol=1e-6)


def test_sparse_data_give_the_gram_matrix_of_dense_ones():
    X = sp.random(300, 30, 0.05, format="csr", random_state=1)
    weights, rows = np.random.default_rng(2).random(300), np.arange(0, 300, 2)
    sparse = LinearSpace(X).standardised_gram(rows, weights)
    np.testing.assert_allclose(sparse, LinearSpace(X.toarray()).standardised_gram(rows, weights), atol=1e-9)


def test_many_sparse_features_are_solved_as_dense_ones_are():
    rng = np.random.default_rng(4)
    X = sp.random(1500, 700, 0.02, format="csr", random_state=3)
    y = (X @ rng.normal(size=700) + 0.3 * rng.normal(size=1500) > 0).astype(np.intp)
    fits = []
    for data in (X, X.toarray()):
        problem = Problem(LinearSpace(data), y, 2, Hinge(), Penalty(l2=1.0), 10.0, np.ones(1500))
        fits.append(newton.solve(problem, Options(tol=1e-6)))
    assert all(fit.gap <= 1e-6 for fit in fits)
    assert fits[0].objective == pytest.approx(fits[1].objective, rel=2e-6)
