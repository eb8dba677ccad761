"""L0-RBoost against the relaxation and the integer program written out in full, and the paper's three errors."""

import itertools

import numpy as np
import pytest
from scipy.optimize import linprog

from psilearn.core.result import Status
from psilearn.engines.highs import HighsSession
from psilearn.rules.l0 import boost as l0boost
from psilearn.rules.l0 import bounds
from psilearn.rules.observations import Observations
from psilearn.rules.pricing.oracles import MatrixOracle, MonomialOracle

from oracles.rule_programs import (
    all_columns,
    all_monomials,
    in_cut,
    integer_optimum,
    program,
    random_data,
    relaxation,
)

PATH_AT_ONCE = l0boost.Settings(path_work=-np.inf)


def costs_of(A, K, order_cost):
    cost = np.array([order_cost[len(l)] for l in all_monomials(A.shape[1], K)])
    return np.r_[cost, cost]


def random_case(seed):
    rng = np.random.default_rng(seed)
    A, y, weight = random_data(rng)
    K = int(rng.integers(0, min(A.shape[1], 2) + 1))
    data = Observations.merge(A[:14], y[:14], weight[:14])
    return data, K, np.cumsum(rng.uniform(0.05, 0.6, K + 1)), float(rng.uniform(0.02, 1))


@pytest.mark.parametrize("cuts", ["valid", "paper"])
@pytest.mark.parametrize("seed", range(60))
def test_equals_the_relaxation_over_all_monomials_and_pairs(seed, cuts):
    data, K, order_cost, rho = random_case(seed)
    result = l0boost.solve(
        data, MonomialOracle(data, K, order_cost), rho, cuts=cuts, min_cost=order_cost.min(), tol=1e-8
    )
    truth = relaxation(data, all_columns(data.X, K), costs_of(data.X, K, order_cost), rho, cuts)
    assert result.status is Status.OPTIMAL
    assert result.objective == pytest.approx(truth, abs=1e-5)
    assert result.certificate.reduced_cost >= -1e-7
    assert result.certificate.violation <= 1e-5
    if cuts == "valid":
        assert result.lower_bound == pytest.approx(truth, abs=1e-5)
    else:
        assert result.lower_bound == -np.inf


@pytest.mark.parametrize("cuts", ["valid", "paper"])
@pytest.mark.parametrize("seed", range(60))
def test_the_central_path_ends_at_the_relaxation_over_all_monomials_and_pairs(seed, cuts):
    data, K, order_cost, rho = random_case(seed)
    oracle = MonomialOracle(data, K, order_cost)
    result = l0boost.solve(data, oracle, rho, cuts=cuts, min_cost=order_cost.min(), tol=1e-8, settings=PATH_AT_ONCE)
    truth = relaxation(data, all_columns(data.X, K), costs_of(data.X, K, order_cost), rho, cuts)
    assert result.status is Status.OPTIMAL
    assert result.objective == pytest.approx(truth, abs=1e-5)
    assert result.lower_bound == (pytest.approx(truth, abs=1e-5) if cuts == "valid" else -np.inf)


@pytest.mark.parametrize("max_iter", [3, 6, 12, 25])
@pytest.mark.parametrize("seed", range(20))
def test_bounds_from_the_midst_of_the_central_path_stay_below_the_relaxation(seed, max_iter, monkeypatch):
    # the clock is over when the path is left, so that the simplex method adds nothing
    monkeypatch.setattr(l0boost.Workspace, "solve_master", _only_once(l0boost.Workspace.solve_master))
    data, K, order_cost, rho = random_case(seed)
    early = l0boost.solve(
        data, MonomialOracle(data, K, order_cost), rho, min_cost=order_cost.min(), max_iter=max_iter,
        settings=PATH_AT_ONCE,
    )  # fmt: skip
    truth = relaxation(data, all_columns(data.X, K), costs_of(data.X, K, order_cost), rho)
    assert early.lower_bound <= truth + 1e-9
    assert early.objective + 1e3 * early.certificate.violation >= truth - 1e-6


def _only_once(solve_master):
    def once(run):
        return not run.has_followed and solve_master(run)

    return once


def test_the_central_path_leaves_few_pivots_to_the_simplex_method(monkeypatch):
    rng = np.random.default_rng(8)
    data = Observations.merge(rng.integers(0, 2, (120, 10)), rng.choice([-1, 1], 120))
    cost = bounds.mdl_costs(2, 10, data.total)
    pivots, results = [], []
    solve = HighsSession.solve

    def counted(session, time_limit=np.inf, primal=False):
        answer = solve(session, time_limit, primal)
        pivots[-1] += answer.iterations
        return answer

    monkeypatch.setattr(HighsSession, "solve", counted)
    for laborious in (np.inf, -np.inf):
        pivots.append(0)
        settings = l0boost.Settings(path_work=laborious)
        results.append(l0boost.solve(data, MonomialOracle(data, 2, cost), 0.1, min_cost=cost.min(), settings=settings))
    assert results[0].status is results[1].status is Status.OPTIMAL
    assert results[1].objective == pytest.approx(results[0].objective, abs=1e-6)
    assert pivots[1] < pivots[0] / 10


@pytest.mark.parametrize("seed", range(25))
def test_valid_cuts_never_exceed_the_integer_optimum(seed):
    data, K, order_cost, rho = random_case(200 + seed)
    K = min(K, 1)
    result = l0boost.solve(data, MonomialOracle(data, K, order_cost), rho, min_cost=order_cost.min())
    optimum = integer_optimum(data, all_columns(data.X, K), costs_of(data.X, K, order_cost), rho)
    assert result.lower_bound <= result.objective + 1e-6
    assert result.objective <= optimum + 1e-4


def test_error_1_printed_cuts_are_invalid_when_classifiers_abstain():
    H = np.array([[1.0, 0.0], [1.0, -1.0]])
    data = Observations(np.zeros((2, 1)), np.array([1, -1]), np.ones(2))
    assert in_cut(H, data.y, 0, 1, "paper").sum() == 0
    np.testing.assert_allclose(data.y * (H @ [1 / 3, 2 / 3]), 1 / 3)
    cost, rho = 0.1, 1 / 3
    optimum = integer_optimum(data, H, np.full(2, cost), rho)
    assert optimum == pytest.approx(2 * cost)
    valid, paper = (
        l0boost.solve(data, MatrixOracle(data, H, cost), rho, cuts=cuts, min_cost=cost) for cuts in l0boost.CUTS
    )
    assert valid.objective <= optimum + 1e-6
    assert paper.objective >= 1.0 > optimum
    assert paper.lower_bound == -np.inf


def price_as_printed(data, H, c, rho):
    """Column generation with (21) alone: a column enters, with lambda and mu, only if c - sum v - alpha - edge < 0."""
    gamma = [0]
    pairs = list(itertools.product(np.flatnonzero(data.y > 0), np.flatnonzero(data.y < 0)))
    m = data.y.size
    while True:
        U = len(gamma)
        cost, A, b, total = program(data, H[:, gamma], c[gamma], rho, "valid")
        lp = linprog(cost, A_ub=-A, b_ub=-b, A_eq=[total], b_eq=[1.0])
        dual, alpha = -lp.ineqlin.marginals, lp.eqlin.marginals[0]
        w, v = dual[:m], dual[m + U :]
        reach = np.array([in_cut(H, data.y, i, j, "valid") for i, j in pairs])
        reduced = c - v @ reach - alpha - (w * data.y) @ H
        if reduced.min() >= -1e-9:
            return lp.fun
        gamma.append(int(np.argmin(reduced)))


def test_error_2_printed_pricing_stops_too_early():
    worst = 0.0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        m, U = 6, 7
        data = Observations(np.zeros((m, 1)), np.r_[[1, -1], rng.choice([-1, 1], m - 2)], np.ones(m))
        H = np.column_stack([np.ones(m), rng.choice([-1.0, 0.0, 1.0], (m, U))])
        c, rho = rng.uniform(0.05, 0.4, U + 1), float(rng.uniform(0.1, 0.9))
        truth = relaxation(data, H, c, rho)
        ours = l0boost.solve(data, MatrixOracle(data, H, c), rho, min_cost=c.min(), tol=1e-8)
        assert ours.objective == pytest.approx(truth, abs=1e-5)
        worst = max(worst, price_as_printed(data, H, c, rho) / truth - 1)
    assert worst > 0.005


def test_error_3_the_optimum_is_not_convex_in_the_margin():
    cost = 0.3
    data = Observations(np.zeros((1, 1)), np.array([1]), np.ones(1))
    H = np.zeros((1, 1))

    def z(rho):
        return l0boost.solve(data, MatrixOracle(data, H, cost), rho, min_cost=cost).objective

    for rho in (0.2, 0.5, 0.8):
        assert z(rho) == pytest.approx(cost + rho / (1 + rho))
    assert z(0.5) > (z(0.2) + z(0.8)) / 2 + 1e-3


def test_merged_and_repeated_observations_agree():
    rng = np.random.default_rng(5)
    A, y, weight = rng.integers(0, 2, (14, 4)), rng.choice([-1, 1], 14), rng.integers(1, 4, 14)
    cost = np.array([0.2, 0.3, 0.5])
    repeat = np.repeat(np.arange(14), weight)
    unmerged = Observations(A[repeat], y[repeat], np.ones(repeat.size))
    a, b, c = (
        l0boost.solve(d, MonomialOracle(d, 2, cost), 0.2, min_cost=0.2)
        for d in (Observations.merge(A, y, weight), Observations.merge(A[repeat], y[repeat]), unmerged)
    )
    assert a.objective == b.objective
    assert a.objective == pytest.approx(c.objective, abs=1e-5)


def test_limits_give_valid_bounds():
    rng = np.random.default_rng(6)
    A, y = rng.integers(0, 2, (60, 8)), rng.choice([-1, 1], 60)
    data = Observations.merge(A, y)
    cost = bounds.mdl_costs(3, 8, data.total)
    oracle = MonomialOracle(data, 3, cost)
    best = l0boost.solve(data, oracle, 0.1, min_cost=cost.min())
    for rounds in (1, 2, 4, 6):
        early = l0boost.solve(data, oracle, 0.1, min_cost=cost.min(), max_iter=rounds)
        assert early.status is Status.ITERATION_LIMIT
        assert early.lower_bound <= best.objective + 1e-6
    assert early.lower_bound > 0


@pytest.mark.parametrize("rounds", range(2, 12))
def test_a_clock_that_stops_a_master_leaves_the_last_point_whole(rounds, monkeypatch):
    rng = np.random.default_rng(9)
    data = Observations.merge(rng.integers(0, 2, (60, 8)), rng.choice([-1, 1], 60))
    cost = bounds.mdl_costs(3, 8, data.total)
    solve_master, solved = l0boost.Workspace.solve_master, []

    def stopped(run):
        solved.append(run)
        return len(solved) <= rounds and solve_master(run)

    monkeypatch.setattr(l0boost.Workspace, "solve_master", stopped)
    result = l0boost.solve(
        data, MonomialOracle(data, 3, cost), 0.1, min_cost=cost.min(), settings=l0boost.Settings(patience=1)
    )
    assert result.status is Status.TIME_LIMIT
    assert result.weights.sum() == pytest.approx(1)
    costs = np.array([column.cost for column in result.columns])
    assert result.objective == pytest.approx(data.weight @ result.xi + costs @ result.mu)
    votes = data.y * (np.column_stack([column.h for column in result.columns]) @ result.weights)
    assert (votes + 1.1 * result.xi).min() >= 0.1 - 1e-9


@pytest.mark.parametrize("seed", range(40))
def test_bounds_of_unfinished_runs_stay_below_the_relaxation(seed):
    data, K, order_cost, rho = random_case(400 + seed)
    truth = relaxation(data, all_columns(data.X, K), costs_of(data.X, K, order_cost), rho)
    for rounds in (2, 3, 5):
        early = l0boost.solve(
            data, MonomialOracle(data, K, order_cost), rho, min_cost=order_cost.min(), max_iter=rounds,
            settings=l0boost.Settings(n_columns=1),
        )  # fmt: skip
        assert early.lower_bound <= truth + 1e-6


def test_the_scaled_bound_is_the_best_feasible_scaling():
    # one classifier, cost 2, its cut charged 3: two thirds of the multipliers are feasible
    assert bounds.scaled_bound(3.0, 0.0, -1.0, 2.0) == pytest.approx(2 / 3 * 3 + 1 / 3 * 2)
    assert bounds.scaled_bound(3.0, -0.5, 0.0, 2.0) == 2.5


@pytest.mark.parametrize("seed", range(15))
def test_with_integer_costs_the_bound_on_the_integer_optimum_is_rounded_up(seed):
    data, K, _, rho = random_case(500 + seed)
    K, cost = min(K, 1), np.array([1.0, 2.0])[: min(K, 1) + 1]
    data = Observations(data.X, data.y, np.ceil(data.weight))
    oracle = MonomialOracle(data, K, cost)
    rounded, plain = (
        l0boost.solve(data, oracle, rho, min_cost=1.0, integer_costs=known).certificate for known in (True, False)
    )
    optimum = integer_optimum(data, all_columns(data.X, K), costs_of(data.X, K, cost), rho)
    assert plain.integer_bound == plain.lower_bound
    assert rounded.integer_bound == np.ceil(rounded.lower_bound - 1e-6)
    assert rounded.integer_bound <= optimum + 1e-6


def test_mdl_costs_follow_28():
    cost = bounds.mdl_costs(5, 30, 256)
    assert cost[0] == pytest.approx(np.log2(5) / 8 + 1.5)
    assert cost[2] == pytest.approx((2 + np.log2(435) + np.log2(5)) / 8 + 1.5)


def test_refusals():
    data = Observations.merge([[0], [1]], [1, -1])
    oracle = MonomialOracle(data, 1, [1.0, 1.0])
    with pytest.raises(ValueError, match="cuts"):
        l0boost.solve(data, oracle, 0.5, cuts="new", min_cost=1.0)
    with pytest.raises(ValueError, match="rho"):
        l0boost.solve(data, oracle, 0.0, min_cost=1.0)
