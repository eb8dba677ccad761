"""The l1 solver against the whole linear or quadratic program, and its invariances."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from psilearn.convex import columns
from psilearn.convex.interior import solver as l1
from psilearn.core.losses import Hinge, RejectHinge, TruncatedHinge
from psilearn.core.penalties import Penalty
from psilearn.core.problem import Problem
from psilearn.core.result import Status
from psilearn.core.solving import Options
from psilearn.core.spaces import KernelSpace, LinearSpace

from oracles.l1_reference import optimum, random_problem

TIGHT = Options(tol=1e-7)


def check(problem, result, tol=1e-6):
    truth = optimum(problem)
    scale = max(abs(truth), 1e-4)
    assert result.status is Status.OPTIMAL, (result.status, result.gap)
    assert result.objective == problem.value(result.coef, result.intercept)
    assert abs(result.objective - truth) <= tol * scale
    assert result.lower_bound <= truth + (1e-8 if problem.penalty.l2 == 0 else 1e-7) * scale
    assert result.gap <= TIGHT.tol
    if problem.n_classes > 2:
        assert np.abs(result.coef.sum(axis=0)).max() <= 1e-9 * max(1.0, np.abs(result.coef).max())
    assert np.all(result.coef[np.isinf(problem.penalty.l1_array(result.coef.shape))] == 0)


@pytest.mark.parametrize("block", range(10))
def test_pure_l1_equals_the_linear_program(block):
    for seed in range(25 * block, 25 * block + 25):
        problem = random_problem(np.random.default_rng(seed))
        check(problem, l1.solve(problem, TIGHT))


@pytest.mark.parametrize("block", range(4))
def test_elastic_net_equals_the_quadratic_program(block):
    for seed in range(20 * block, 20 * block + 20):
        rng = np.random.default_rng(10_000 + seed)
        problem = random_problem(rng, l2=10.0 ** rng.uniform(-2, 1))
        check(problem, l1.solve(problem, TIGHT))


def two_gaussians(rng, n, p, flip=0.1):
    y = (rng.random(n) < 0.5).astype(np.intp)
    y[:2] = 0, 1
    X = rng.normal(size=(n, p))
    X[:, : min(p, 5)] += np.where(y == 1, 0.5, -0.5)[:, None]
    return X, np.where(rng.random(n) < flip, 1 - y, y).astype(np.intp)


def l1_problem(X, y, C=0.1, loss=None, penalty=None, weights=None):
    weights = np.ones(y.size) if weights is None else weights
    penalty = Penalty(l1=1.0) if penalty is None else penalty
    return Problem(LinearSpace(X), y, int(y.max()) + 1, loss or RejectHinge(0.2), penalty, C, weights)


def test_solutions_are_vertices_with_exact_zeros():
    X, y = two_gaussians(np.random.default_rng(0), 200, 30)
    problem = l1_problem(X, y)
    result = l1.solve(problem, TIGHT)
    assert 0 < np.count_nonzero(result.coef) < 30
    u = problem.margins(result.coef, result.intercept)
    at_kink = sum(int(np.sum(np.abs(u - t) < 1e-9)) for _, t in problem.loss.hinges)
    assert at_kink >= np.count_nonzero(result.coef)  # a vertex: as many tight hinges as free coefficients


def test_reject_hinge_at_one_half_is_the_hinge():
    X, y = two_gaussians(np.random.default_rng(1), 60, 6)
    results = [l1.solve(l1_problem(X, y, loss=loss), TIGHT) for loss in (Hinge(), RejectHinge(0.5))]
    assert results[0].objective == pytest.approx(results[1].objective, rel=1e-6)


def test_duplicated_rows_are_weights():
    rng = np.random.default_rng(2)
    X, y = two_gaussians(rng, 40, 5)
    times = rng.integers(1, 4, 40)
    weighted = l1.solve(l1_problem(X, y, weights=times.astype(float)), TIGHT)
    repeated = l1.solve(l1_problem(np.repeat(X, times, axis=0), np.repeat(y, times)), TIGHT)
    assert weighted.objective == pytest.approx(repeated.objective, rel=1e-6)


@pytest.mark.parametrize("scale", [1e-8, 1e8])
def test_scale_and_shift_of_features(scale):
    X, y = two_gaussians(np.random.default_rng(3), 50, 4)
    plain = l1.solve(l1_problem(X, y), TIGHT)
    moved = l1.solve(l1_problem(X * scale + 3 * scale, y, penalty=Penalty(l1=scale)), TIGHT)
    assert moved.status is Status.OPTIMAL
    assert moved.objective == pytest.approx(plain.objective, rel=1e-6)


def test_csr_and_float32_agree_with_dense():
    X, y = two_gaussians(np.random.default_rng(4), 80, 10)
    X[np.abs(X) < 0.7] = 0.0
    dense, sparse, single = (
        l1.solve(l1_problem(data, y), TIGHT) for data in (X, sp.csr_matrix(X), X.astype(np.float32))
    )
    assert sparse.objective == pytest.approx(dense.objective, rel=1e-6)
    assert single.objective == pytest.approx(dense.objective, rel=1e-5)


def test_constant_and_duplicated_columns():
    X, y = two_gaussians(np.random.default_rng(5), 30, 3)
    X = np.column_stack([X, X[:, 0], np.full(30, 7.0), np.zeros(30)])
    problem = l1_problem(X, y)
    result = l1.solve(problem, TIGHT)
    check(problem, result)
    assert np.all(result.coef[0, 4:] == 0)


def test_imbalanced_classes_with_a_constant_optimum():
    rng = np.random.default_rng(6)
    y = np.zeros(40, dtype=np.intp)
    y[:3] = 1  # the minority's share is below d = 0.2: the best constant is -1
    problem = l1_problem(rng.normal(size=(40, 3)), y, C=1e-4)
    result = l1.solve(problem, TIGHT)
    assert np.all(result.coef == 0)
    assert result.intercept[0] == pytest.approx(-1.0, abs=1e-6)
    check(problem, result)


def test_an_optimal_start_is_kept():
    X, y = two_gaussians(np.random.default_rng(7), 60, 5)
    problem = l1_problem(X, y)
    first = l1.solve(problem, TIGHT)
    again = l1.solve(problem, Options(tol=1e-6), first)
    assert again.n_iter == 0
    np.testing.assert_array_equal(again.coef, first.coef)


def test_time_limit_returns_an_honest_incumbent():
    X, y = two_gaussians(np.random.default_rng(8), 200, 20)
    problem = l1_problem(X, y)
    result = l1.solve(problem, replace(TIGHT, time_limit=0.0))
    assert result.status is Status.TIME_LIMIT
    assert result.objective == problem.value(result.coef, result.intercept)
    assert result.lower_bound <= l1.solve(problem, TIGHT).objective


def test_refusals_say_why():
    X, y = two_gaussians(np.random.default_rng(9), 10, 2)
    problem = l1_problem(X, y)
    assert l1.TAKES.refusal(problem) is None
    assert "linear space" in l1.TAKES.refusal(replace(problem, space=KernelSpace(X @ X.T)))
    assert "convex" in l1.TAKES.refusal(replace(problem, loss=TruncatedHinge(0.0)))


def test_columns_are_generated_until_the_whole_problem_is_solved():
    rng = np.random.default_rng(10)
    for k in (2, 3):
        y = rng.integers(0, k, 40)
        y[:k] = np.arange(k)
        X = rng.normal(size=(40, 300))
        X[:, :3] += y[:, None]
        for data in (X, sp.csr_matrix(np.where(np.abs(X) > 1, X, 0.0))):
            penalty = Penalty(l1=rng.random((1 if k == 2 else k, 300)) + 0.5)
            problem = Problem(LinearSpace(data), y, k, RejectHinge(0.2), penalty, 0.3, np.ones(40))
            result = columns.solve(problem, TIGHT, None, inner=l1.solve)
            check(problem, result)
            assert columns.solve(problem, TIGHT, result, inner=l1.solve).n_iter <= result.n_iter


def test_columns_need_a_penalty_on_every_coefficient():
    X, y = two_gaussians(np.random.default_rng(11), 20, 3)
    assert columns.TAKES.refusal(l1_problem(X, y)) is None
    assert "every coefficient" in columns.TAKES.refusal(
        l1_problem(X, y, penalty=Penalty(l1=np.array([[1.0, 0.0, 1.0]])))
    )
