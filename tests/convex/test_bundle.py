"""The bundle method against the whole programs, its modes against each other, and where the l1 path starts."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from psilearn.convex.bundle import solver as bundle
from psilearn.convex.bundle.master import solve_master
from psilearn.convex.interior import solver as l1
from psilearn.convex.risk import LocalRisk, risk_of
from psilearn.core.losses import Hinge, RejectHinge, TruncatedHinge
from psilearn.core.penalties import Penalty
from psilearn.core.problem import Problem
from psilearn.core.result import Status
from psilearn.core.solving import Options
from psilearn.core.spaces import LinearSpace

from oracles import l1_threshold as threshold
from oracles.l1_reference import optimum, random_problem
from oracles.l1_threshold import l1_threshold, smallest_useful_C

LOOSE = Options(tol=1e-3)
PAPER = Options(tol=1e-4, settings=(bundle.Settings(mode="paper"),))


def gaussians(n, p, seed=0, r=0.3):
    """The simulation of Choi, Kim, Han and Kang (2009): means +-0.5 in five coordinates, covariance r^|k-l|."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    for j in range(1, p):
        X[:, j] = r * X[:, j - 1] + np.sqrt(1 - r * r) * X[:, j]
    y = (np.arange(n) < n // 2).astype(np.intp)
    X[:, :5] += np.where(y == 1, 0.5, -0.5)[:, None]
    return X, y


def l1_problem(X, y, lam=0.01, loss=None, penalty=None, weights=None):
    weights = np.ones(y.size) if weights is None else weights
    C = 1.0 / (lam * weights.sum())
    return Problem(LinearSpace(X), y, 2, loss or RejectHinge(0.2), penalty or Penalty(l1=1.0), C, weights)


def check(problem, result, truth, tol):
    scale = max(abs(truth), 1e-4)
    assert result.status is Status.OPTIMAL, (result.status, result.gap)
    assert result.objective == problem.value(result.coef, result.intercept)
    assert -1e-7 * scale <= result.objective - truth <= 1.01 * tol * scale
    assert result.lower_bound <= truth + 1e-7 * scale


@pytest.mark.parametrize("block", range(5))
def test_level_mode_brackets_the_optimum(block):
    for seed in range(20 * block, 20 * block + 20):
        rng = np.random.default_rng(seed)
        problem = random_problem(rng, l2=0.0 if seed % 2 else 10.0 ** rng.uniform(-2, 1))
        options = Options(tol=1e-4, max_iter=100)
        check(problem, bundle.solve(problem, options, None, l1.solve), optimum(problem), 1e-4)


def test_paper_mode_brackets_the_optimum():
    for seed in range(40):
        rng = np.random.default_rng(500 + seed)
        problem = random_problem(rng, l2=0.0 if seed % 2 else 10.0 ** rng.uniform(-1, 1), tilted=False)
        if problem.space.dim < 10:
            check(problem, bundle.solve(problem, PAPER), optimum(problem), 1e-4)


def test_a_finisher_makes_it_tight():
    for seed in range(20):
        problem = random_problem(np.random.default_rng(700 + seed))
        check(problem, bundle.solve(problem, Options(tol=1e-7, max_iter=50), None, l1.solve), optimum(problem), 1e-6)


@pytest.mark.parametrize("penalty", [Penalty(l1=1.0), Penalty(l2=1.0), Penalty(l2=0.5, l1=0.5)])
def test_many_samples_modes_and_solvers_agree(penalty):
    X, y = gaussians(30_000, 8)
    problem = l1_problem(X, y, penalty=penalty)
    level = bundle.solve(problem, LOOSE)
    exact = l1.solve(problem, Options(tol=1e-6))
    paper = bundle.solve(problem, replace(LOOSE, settings=(bundle.Settings(mode="paper"),)))
    for result in (level, paper):
        check(problem, result, exact.objective, 1e-3)
    assert level.extra["passes"] <= 25
    assert level.extra["passes"] < paper.extra["passes"]


def test_history_has_rising_lower_and_falling_upper_bounds():
    X, y = gaussians(3000, 6)
    problem = l1_problem(X, y)
    result = bundle.solve(problem, Options(tol=1e-4))
    lower = np.array([step.bound for step in result.history])
    upper = np.array([step.objective for step in result.history[:-1]])
    assert np.all(np.diff(upper) <= 1e-12 * upper[1:])
    assert np.all(np.diff(lower[:-1]) >= -1e-6 * upper[-1])
    assert np.all(lower <= l1.solve(problem, Options(tol=1e-8)).objective * (1 + 1e-7))


def test_local_risk_is_a_lower_bound_that_touches():
    X, y = gaussians(2000, 4)
    problem = l1_problem(X, y)
    risk = risk_of(problem)
    rng = np.random.default_rng(0)
    v = 0.3 * rng.normal(size=5)
    evaluation = risk.evaluate(v)
    local = LocalRisk(risk, problem, v, evaluation, 0.2)
    assert local.evaluate(v).value == pytest.approx(evaluation.value)
    for _ in range(50):
        other = v + rng.normal(size=5) * rng.choice([0.01, 0.1, 1.0])
        here, whole = local.evaluate(other), risk.evaluate(other)
        assert here.value <= whole.value + 1e-9 * evaluation.value
        again = v + 0.5 * rng.normal(size=5)
        assert risk.evaluate(again).value >= here.value + here.gradient @ (again - other) - 1e-9 * evaluation.value


def test_a_cut_s_multipliers_are_its_gradient():
    X, y = gaussians(500, 3)
    problem = l1_problem(X, y)
    risk = risk_of(problem)
    evaluation = risk.evaluate(np.array([0.2, -0.1, 0.4, 0.1]))
    R = risk.mixed([evaluation.code], np.ones(1))
    np.testing.assert_allclose(risk.scaling.gradient(problem.space.combine(-R), -R.sum(axis=0))[0], evaluation.gradient)


def test_cuts_of_one_lambda_help_the_next():
    X, y = gaussians(30_000, 10)
    problem = l1_problem(X, y)
    first = bundle.solve(problem, LOOSE)
    nearby = replace(problem, C=1.3 * problem.C)
    warm, cold = bundle.solve(nearby, LOOSE, first), bundle.solve(nearby, LOOSE)
    assert warm.status is Status.OPTIMAL
    assert warm.objective == pytest.approx(cold.objective, rel=2e-3)
    assert warm.extra["passes"] < cold.extra["passes"]
    reweighted = replace(nearby, weights=np.where(y == 1, 2.0, 1.0))
    assert bundle.solve(reweighted, LOOSE, first).status is Status.OPTIMAL  # old cuts do not fit and are not used


def test_csr_and_float32_agree_with_dense():
    X, y = gaussians(25_000, 12)
    X[np.abs(X) < 1.0] = 0.0
    dense, sparse, single = (
        bundle.solve(l1_problem(data, y), LOOSE) for data in (X, sp.csr_matrix(X), X.astype(np.float32))
    )
    for other in (sparse, single):
        assert other.status is Status.OPTIMAL
        assert other.objective == pytest.approx(dense.objective, rel=2e-3)


def test_coefficients_are_exactly_sparse():
    X, y = gaussians(25_000, 30)
    result = bundle.solve(l1_problem(X, y, lam=0.02), LOOSE)
    assert 4 <= np.count_nonzero(result.coef) <= 12


def test_weights_are_duplicated_rows():
    X, y = gaussians(2000, 5)
    times = np.random.default_rng(0).integers(1, 4, 2000)
    weighted = bundle.solve(l1_problem(X, y, weights=times.astype(float)), Options(tol=1e-5))
    repeated = bundle.solve(l1_problem(np.repeat(X, times, axis=0), np.repeat(y, times)), Options(tol=1e-5))
    assert weighted.objective == pytest.approx(repeated.objective, rel=2e-5)


def test_time_limit_returns_an_honest_incumbent():
    X, y = gaussians(3000, 20)
    result = bundle.solve(l1_problem(X, y), Options(tol=1e-6, time_limit=0.0))
    assert result.status is Status.TIME_LIMIT
    assert result.objective == l1_problem(X, y).value(result.coef, result.intercept)


def test_interrupt_returns_the_incumbent(monkeypatch):
    X, y = gaussians(3000, 20)
    calls = []

    def interrupted(risk, v, evaluate=bundle.TwoClassRisk.evaluate):
        calls.append(v)
        if len(calls) == 5:
            raise KeyboardInterrupt
        return evaluate(risk, v)

    monkeypatch.setattr(bundle.TwoClassRisk, "evaluate", interrupted)
    problem = l1_problem(X, y)
    result = bundle.solve(problem, Options(tol=1e-6))
    assert result.status is Status.INTERRUPTED
    assert result.objective < problem.zero_value
    assert np.isfinite(result.lower_bound)


def test_refusals_say_why():
    X, y = gaussians(10, 5)
    problem = l1_problem(X, y)
    assert bundle.TAKES.refusal(problem) is None
    assert "convex" in bundle.TAKES.refusal(replace(problem, loss=TruncatedHinge(0.0)))
    assert "penalty" in bundle.TAKES.refusal(replace(problem, penalty=Penalty()))


@pytest.mark.parametrize("block", range(4))
def test_threshold_is_where_coefficients_appear(block):
    for seed in range(25 * block, 25 * block + 25):
        rng = np.random.default_rng(seed)
        problem = random_problem(rng)
        problem = replace(problem, penalty=Penalty(0.0, rng.random((problem.n_functions, problem.space.dim)) + 0.1))
        s = l1_threshold(problem)
        above, below = (replace(problem, penalty=Penalty(0.0, problem.penalty.l1 * s * f)) for f in (1.01, 0.98))
        if s > 1e-9:
            assert np.all(l1.solve(above, Options(tol=1e-7)).coef == 0)
            assert np.any(l1.solve(below, Options(tol=1e-9)).coef != 0)


def test_threshold_is_the_same_with_few_open_multipliers_at_a_time(monkeypatch):
    monkeypatch.setattr(threshold, "_FEW", 3)
    monkeypatch.setattr(threshold, "_PER_FEATURE", 1)
    rounds = []

    def counted(pairs, *which, restricted=threshold._Pairs.restricted):
        rounds.append(1)
        return restricted(pairs, *which)

    monkeypatch.setattr(threshold._Pairs, "restricted", counted)
    for seed in range(60):
        problem = random_problem(np.random.default_rng(900 + seed), k=2, max_n=60, wide=60)
        monkeypatch.setattr(threshold, "_MANY", 10**9)
        whole = l1_threshold(problem)
        monkeypatch.setattr(threshold, "_MANY", 0)
        assert l1_threshold(problem) == pytest.approx(whole, rel=1e-8, abs=1e-12)
    assert len(rounds) > 60


@pytest.mark.parametrize("k", [2, 3])
def test_coefficients_appear_just_above_the_smallest_useful_C(k):
    for seed in range(10):
        problem = replace(random_problem(np.random.default_rng(seed), k=k, tilted=False), tilt=None, offset=0.0)
        problem = replace(problem, penalty=Penalty(l1=1.0))
        C = smallest_useful_C(problem)
        assert smallest_useful_C(replace(problem, C=7.0 * problem.C)) == pytest.approx(C, rel=1e-9)
        if np.isfinite(C):
            below, above = (l1.solve(replace(problem, C=f * C), Options(tol=1e-9)) for f in (0.99, 1.02))
            assert np.all(below.coef == 0)
            assert np.any(above.coef != 0)


def test_the_smallest_useful_C_needs_a_problem_without_tilt():
    problem = make_tilted()
    with pytest.raises(ValueError, match="tilt"):
        smallest_useful_C(problem)


def make_tilted():
    X, y = gaussians(20, 5)
    return replace(l1_problem(X, y), tilt=np.full((20, 1), 0.01))


def test_threshold_intercept_rejects_all_iff_the_minority_exceeds_d():
    for minority, expected in ((30, 0.0), (10, -1.0)):
        y = (np.arange(100) < minority).astype(np.intp)
        X = np.random.default_rng(1).normal(size=(100, 3)) + 2.0 * y[:, None]
        problem = Problem(LinearSpace(X), y, 2, RejectHinge(0.2), Penalty(l1=1.0), 1.0, np.ones(100))
        scaled = replace(problem, penalty=Penalty(l1=1.01 * l1_threshold(problem)))
        for result in (l1.solve(scaled, Options(tol=1e-8)), bundle.solve(scaled, Options(tol=1e-5))):
            assert np.all(result.coef == 0)
            assert result.intercept[0] == pytest.approx(expected, abs=1e-5)


def test_threshold_with_the_hinge_and_balanced_classes():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(60, 4))
    y = (np.arange(60) < 30).astype(np.intp)
    problem = Problem(LinearSpace(X), y, 2, Hinge(), Penalty(l1=1.0), 1.0, np.ones(60))
    # Any intercept in (-1, 1) is optimal, so every multiplier is 1 and lambda_max is a plain maximum.
    assert l1_threshold(problem) == pytest.approx(np.abs(problem.signs @ X).max(), rel=1e-9)


def master_value(x, A, b, weights, mu, centre):
    return weights @ np.abs(x) + max(0.0, (A @ x + b).max()) + 0.5 * mu * np.sum((x - centre) ** 2)


def test_master_is_within_its_bound_and_nothing_nearby_is_better():
    rng = np.random.default_rng(3)
    for _ in range(50):
        A = 0.3 * rng.normal(size=(rng.integers(1, 20), 8))
        b = 1.0 + 0.1 * rng.normal(size=len(A))
        weights = np.append(np.full(7, 0.2 * rng.random()), 0.0)
        mu, centre = 10.0 ** rng.uniform(-2, 2), rng.normal(size=8)
        v, shares, bound = solve_master(A, b, 1.0, np.zeros(8), np.zeros(8), weights, 1, mu, centre, 1e-9)
        assert bound <= master_value(v, A, b, weights, mu, centre) <= bound + 1e-8
        assert shares.min() >= 0
        assert shares.sum() <= 1 + 1e-9
        near = v + 1e-3 * rng.normal(size=(20, 8))
        assert all(master_value(x, A, b, weights, mu, centre) >= bound for x in near)


@pytest.mark.parametrize("C", [1.0, 100.0])
def test_a_tiny_class_weight_does_not_keep_it_cutting(C):
    """An optimum of 1e-10 of the first objective is below what the master program resolves: the finisher's."""
    rng = np.random.default_rng(0)
    y = np.arange(6) % 2
    problem = Problem(
        LinearSpace(rng.normal(size=(6, 2))), y, 2, Hinge(), Penalty(l1=1.0), C, np.where(y == 1, 1e-10, 1.0)
    )
    handed = []

    def finish(*arguments):
        handed.append(len(arguments[2].history))
        return l1.solve(*arguments)

    result = bundle.solve(problem, Options(tol=1e-4), None, finish)
    assert result.status is Status.OPTIMAL
    assert result.objective == pytest.approx(6e-10 * C, rel=1e-3)
    assert handed[0] < 100
