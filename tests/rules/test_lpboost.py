"""LP-Boost by column generation against the linear program over all monomials."""

import numpy as np
import pytest
from scipy.optimize import linprog
from sklearn.exceptions import ConvergenceWarning
from sklearn.tree import DecisionTreeClassifier

from psilearn.core.result import Status
from psilearn.estimators.rules import LPBoostClassifier
from psilearn.rules import lpboost
from psilearn.rules.observations import Observations
from psilearn.rules.pricing.oracles import MatrixOracle, MonomialOracle

from oracles.rule_programs import all_columns, random_data


def soft_margin_lp(data, H, D):
    """(3) written out in full."""
    m, U = H.shape
    cost = np.r_[np.zeros(U), D * data.weight, -1.0]
    rows = np.c_[-data.y[:, None] * H, -np.eye(m), np.ones(m)]
    total = np.r_[np.ones(U), np.zeros(m + 1)]
    bounds = [(0, None)] * (U + m) + [(None, None)]
    return -linprog(cost, A_ub=rows, b_ub=np.zeros(m), A_eq=[total], b_eq=[1.0], bounds=bounds).fun


@pytest.mark.parametrize("seed", range(60))
def test_equals_the_lp_over_all_monomials(seed):
    rng = np.random.default_rng(seed)
    A, y, weight = random_data(rng)
    data = Observations.merge(A, y, weight)
    K, nu = int(rng.integers(0, min(A.shape[1], 3) + 1)), rng.uniform(0.1, 1)
    result = lpboost.solve(data, MonomialOracle(data, K), nu)
    truth = soft_margin_lp(data, all_columns(data.X, K), 1 / (nu * data.total))
    assert result.status is Status.OPTIMAL
    assert result.objective == pytest.approx(truth, abs=1e-7)
    assert result.upper_bound == pytest.approx(truth, abs=1e-7)
    assert result.weights.sum() == pytest.approx(1)


def test_merged_and_repeated_observations_agree():
    rng = np.random.default_rng(1)
    A, y = rng.integers(0, 2, (15, 4)), rng.choice([-1, 1], 15)
    weight = rng.integers(1, 4, 15)
    merged = Observations.merge(A, y, weight)
    repeated = Observations.merge(np.repeat(A, weight, axis=0), np.repeat(y, weight))
    unmerged = Observations(np.repeat(A, weight, axis=0), np.repeat(y, weight), np.ones(weight.sum()))
    a, b, c = (lpboost.solve(d, MonomialOracle(d, 2), 0.4) for d in (merged, repeated, unmerged))
    assert a.objective == b.objective
    assert a.objective == pytest.approx(c.objective, abs=1e-9)


def test_a_given_matrix_is_priced_exactly():
    rng = np.random.default_rng(2)
    for _ in range(20):
        data = Observations(np.zeros((20, 1)), rng.choice([-1, 1], 20), rng.uniform(0.5, 2, 20))
        H = rng.choice([-1.0, 0.0, 1.0], (20, 30))
        result = lpboost.solve(data, MatrixOracle(data, H), 0.3)
        assert result.objective == pytest.approx(soft_margin_lp(data, H, 1 / (0.3 * data.total)), abs=1e-7)


def test_nu_bounds_the_fraction_of_margin_errors():
    rng = np.random.default_rng(3)
    A = rng.integers(0, 2, (200, 6))
    y = np.where((A[:, 0] & A[:, 1]) ^ (rng.random(200) < 0.1), 1, -1)
    data = Observations.merge(A, y)
    for nu in (0.3, 0.5, 0.8):
        result = lpboost.solve(data, MonomialOracle(data, 2), nu)
        margins = data.y * sum(l * c.h for l, c in zip(result.weights, result.columns))
        assert data.weight[margins < result.margin - 1e-9].sum() <= nu * data.total + 1e-6


def test_soft_margin_is_the_best_over_rho():
    rng = np.random.default_rng(4)
    for _ in range(50):
        margins, weight = rng.normal(size=12), rng.uniform(0.1, 2, 12)
        D = 1 / (rng.uniform(0.05, 1) * weight.sum())
        rho, value = lpboost.soft_margin(margins, weight, D)
        assert value == pytest.approx(rho - D * weight @ np.maximum(rho - margins, 0))
        assert value >= max(r - D * weight @ np.maximum(r - margins, 0) for r in margins) - 1e-12


def test_with_many_flips_and_small_nu_the_largest_soft_margin_is_zero():
    rng = np.random.default_rng(0)
    A = rng.integers(0, 2, (200, 5))
    y = np.where((A[:, 0] & A[:, 1]) ^ (rng.random(200) < 0.2), 1, -1)
    with pytest.warns(UserWarning, match=r"constant.*raise nu"):
        model = LPBoostClassifier(nu=0.2, max_order=2).fit(A, y)
    data = Observations.merge(A, y)
    assert soft_margin_lp(data, all_columns(data.X, 2), 1 / (0.2 * data.total)) == pytest.approx(0, abs=1e-9)
    assert model.objective_ == pytest.approx(0, abs=1e-9)
    assert model.gap_ == 0
    assert LPBoostClassifier(nu=0.5, max_order=2).fit(A, y).objective_ > 0.01


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_gap_is_relative_to_the_soft_margin(n_classes):
    rng = np.random.default_rng(1)
    A = rng.integers(0, 2, (300, 10))
    y = np.digitize(A @ rng.uniform(1, 2, 10) + 0.5 * rng.normal(size=300), [7.5, 9.0][: n_classes - 1])
    with pytest.warns(ConvergenceWarning):
        early = LPBoostClassifier(nu=0.7, max_order=2, max_iter=2).fit(A, y)
    assert early.gap_ > 0.01
    assert early.gap_ == pytest.approx((early.upper_bound_ - early.objective_) / abs(early.objective_))
    proved = LPBoostClassifier(nu=0.7, max_order=2).fit(A, y)
    assert proved.objective_ > 0.05
    assert proved.upper_bound_ - proved.objective_ <= 1e-8
    assert proved.gap_ <= 1e-7


def test_without_a_bound_the_gap_is_infinite():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(60, 3))
    with pytest.warns(ConvergenceWarning):
        model = LPBoostClassifier(base_learner=DecisionTreeClassifier(max_depth=1)).fit(X, X[:, 0] + X[:, 1] > 0)
    assert model.gap_ == np.inf


def test_bad_nu_is_refused():
    data = Observations.merge([[0], [1]], [1, -1])
    with pytest.raises(ValueError, match="nu"):
        lpboost.solve(data, MonomialOracle(data), 1.5)
