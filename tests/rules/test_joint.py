"""Joint LP-Boost of several classes against the whole program written out."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import linprog

from psilearn.estimators.rules import LPBoostClassifier
from psilearn.rules import joint, lpboost
from psilearn.rules.observations import Observations
from psilearn.rules.pricing.data import Monomial

from oracles.rule_programs import all_monomials


def random_classes(rng):
    M, N, k = int(rng.integers(4, 25)), int(rng.integers(1, 5)), int(rng.integers(3, 5))
    weight = rng.integers(0, 3, M).astype(float)
    y = rng.integers(0, k, M)
    weight[:k], y[:k] = 1, np.arange(k)[: min(k, M)]
    return rng.integers(0, 2, (M, N)).astype(np.uint8), y, weight, k


def whole_program(A, y, weight, k, K, nu):
    """Largest soft margin over all rules, every rival written out."""
    rules = [(Monomial(l, 1).covers(A), c) for l in all_monomials(A.shape[1], K) for c in range(k)]
    rows = []
    for i, r in itertools.product(range(len(y)), range(k)):
        if r != y[i] and weight[i] > 0:
            row = np.zeros(len(rules) + len(y) + 1)
            row[: len(rules)] = [covers[i] * (float(c == y[i]) - float(c == r)) for covers, c in rules]
            row[len(rules) + i], row[-1] = 1.0, -1.0
            rows.append(-row)
    cost = np.r_[np.zeros(len(rules)), weight / (nu * weight.sum()), -1.0]
    total = np.r_[np.ones(len(rules)), np.zeros(len(y) + 1)]
    bounds = [(0, None)] * (len(rules) + len(y)) + [(None, None)]
    return -linprog(cost, A_ub=rows, b_ub=np.zeros(len(rows)), A_eq=[total], b_eq=[1], bounds=bounds).fun


@pytest.mark.parametrize("seed", range(8))
def test_the_optimum_is_that_of_the_whole_program(seed):
    rng = np.random.default_rng(seed)
    for _ in range(6):
        A, y, weight, k = random_classes(rng)
        K, nu = int(rng.integers(0, A.shape[1] + 1)), rng.uniform(0.1, 1.0)
        data = Observations.of_classes(A, y, weight)
        result = joint.solve(joint.ClassOracle(data, k, K), nu)
        expected = whole_program(A, y, weight, k, K, nu)
        assert result.objective == pytest.approx(expected, abs=1e-7)
        assert result.upper_bound == pytest.approx(expected, abs=1e-7)
        margins = joint.margins_of(joint.scores(result.columns, result.weights, A, k), y).min(axis=1)
        assert lpboost.soft_margin(margins, weight, 1 / (nu * weight.sum()))[1] == pytest.approx(expected, abs=1e-7)


@pytest.mark.parametrize("seed", range(3))
def test_a_stopped_solve_states_a_true_bound(seed):
    rng = np.random.default_rng(seed)
    for _ in range(6):
        A, y, weight, k = random_classes(rng)
        data = Observations.of_classes(A, y, weight)
        stopped = joint.solve(joint.ClassOracle(data, k, 2), 0.4, max_iter=1)
        expected = whole_program(A, y, weight, k, min(2, A.shape[1]), 0.4)
        assert stopped.objective <= expected + 1e-9 <= stopped.upper_bound + 2e-9


def test_two_classes_are_a_special_case():
    rng = np.random.default_rng(3)
    A, y = rng.integers(0, 2, (40, 4)).astype(np.uint8), rng.integers(0, 2, 40)
    of_classes = joint.solve(joint.ClassOracle(Observations.of_classes(A, y), 2, 2), 0.8)
    from psilearn.rules.pricing.oracles import MonomialOracle

    signed = Observations.merge(A, np.where(y > 0, 1, -1))
    assert of_classes.objective == pytest.approx(lpboost.solve(signed, MonomialOracle(signed, 2), 0.8).objective)


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(150, 3)).round(1)
    y = np.array(["a", "b", "c"])[(X[:, 0] > -0.4).astype(int) + (X[:, 0] + X[:, 1] > 0.5)]
    return LPBoostClassifier(nu=0.2, max_order=2).fit(X, y), X, y


def test_rules_vote_for_one_class_each(fitted):
    model, X, y = fitted
    assert model.score(X, y) > 0.9
    votes = np.zeros((len(X), 3))
    for weight, rule in zip(model.weights_, model.rules_):
        votes[:, list(model.classes_).index(rule.label)] += weight * rule.covers(X)
    np.testing.assert_allclose(model.decision_function(X), votes, atol=1e-6)
    assert "for not" not in model.export_text()


def test_verify_recomputes_and_notices_changes(fitted):
    model, X, y = fitted
    assert model.verify(X, y).ok
    assert not model.verify(X, np.roll(y, 1)).ok
    (result,) = model.results_
    given = model.results_
    for name, wrong in (("evidence", 1.5 * result.evidence), ("weights", np.roll(result.weights, 1))):
        model.results_ = [replace(result, **{name: wrong})]
        assert not model.verify(X, y).ok
    model.results_ = [replace(result, upper_bound=result.upper_bound - 0.01)]
    assert not model.verify(X, y).ok
    model.results_ = given
    assert model.verify(X, y).ok
