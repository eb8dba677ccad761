"""Claims of the boosters are recomputed by pricing; what is tampered with is noticed."""

import copy
import math
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.tree import DecisionTreeClassifier

from psilearn import L0BoostClassifier, LPBoostClassifier, SlipperClassifier

MODELS = [
    LPBoostClassifier(nu=0.6),
    LPBoostClassifier(nu=0.6, max_order=2),
    L0BoostClassifier(),
    L0BoostClassifier(max_order=2, costs=0.7),
    L0BoostClassifier(max_order=2, costs=1),
    LPBoostClassifier(nu=0.6, max_iter=3),
    L0BoostClassifier(max_iter=4),
]


def data(k):
    rng = np.random.default_rng(2)
    X = (rng.random((50, 6)) < 0.5).astype(float)
    y = (X[:, 0] + X[:, 1] * (k - 2)).astype(int)
    return X, np.where(rng.random(50) < 0.1, rng.integers(0, k, 50), y)


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("model", MODELS, ids=str)
def test_honest_fits_verify_and_others_do_not(model, k):
    X, y = data(k)
    fit = clone(model).fit(X, y)
    check = fit.verify(X, y)
    assert check.ok, check.message
    assert check.objective == pytest.approx(fit.objective_, abs=1e-7)
    assert not fit.verify(1 - X, y).ok
    assert not fit.verify(X, (y + 1) % k).ok
    assert not fit.verify(X, y + 5).ok


@pytest.mark.parametrize("name", ["objective_", "lower_bound_", "gap_", "weights_", "rules_"])
@pytest.mark.parametrize("model", MODELS, ids=str)
def test_attributes_must_follow_from_the_results(model, name):
    X, y = data(2)
    fit = clone(model).fit(X, y)
    changed = {"weights_": 0.5 * fit.weights_, "rules_": fit.rules_[1:]}
    setattr(fit, name, changed.get(name, 0.123))
    assert not fit.verify(X, y).ok


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_tampered_results_are_noticed(model):
    X, y = data(2)
    fit, rng = clone(model).fit(X, y), np.random.default_rng(0)
    (honest,) = fit.results_
    for _ in range(40):
        forged = copy.copy(fit)
        forged.results_ = [tampered(honest, rng)]
        forged._collect(fit_training(fit, X, y), [(r.columns, r.weights, r) for r in forged.results_], [1])
        check = forged.verify(X, y)
        if check.ok:  # what is stated must then be true: attained, and not above what the untouched fit proves
            assert forged.objective_ == pytest.approx(fit.objective_, abs=1e-6)
            if isinstance(model, LPBoostClassifier):
                assert forged.upper_bound_ >= fit.upper_bound_ - 1e-6 or forged.upper_bound_ >= fit.objective_ - 1e-6
            else:
                assert forged.lower_bound_ <= fit.objective_ + 1e-6
                assert forged.certificate_[0].integer_bound <= math.ceil(fit.objective_ - 1e-6) + 1e-6


def fit_training(fit, X, y):
    return clone(fit)._read(X, y, None)


def tampered(result, rng):
    number = rng.choice([math.nan, math.inf, 0.0, -1.0, 1e300])
    factor = rng.choice([0.5, 0.99, 1.01, 2.0])
    value = float(number if rng.random() < 0.3 else factor)
    change = rng.choice(["objective", "bound", "weights", "evidence"])
    if change == "weights":
        return replace(result, weights=result.weights * factor)
    if change == "evidence":
        head = result.evidence if isinstance(result.evidence, np.ndarray) else result.evidence[0]
        head = head * value
        return replace(
            result, evidence=head if isinstance(result.evidence, np.ndarray) else (head, *result.evidence[1:])
        )
    if hasattr(result, "certificate"):
        name = "objective" if change == "objective" else rng.choice(["lower_bound", "integer_bound"])
        stated = getattr(result.certificate, name) * value
        return replace(result, certificate=replace(result.certificate, **{name: stated}))
    name = "objective" if change == "objective" else "upper_bound"
    return replace(result, **{name: getattr(result, name) * value})


@pytest.mark.parametrize(
    "model",
    [SlipperClassifier(max_rounds=5, folds=0), LPBoostClassifier(base_learner=DecisionTreeClassifier(max_depth=1))],
    ids=str,
)
def test_what_cannot_be_recomputed_is_said(model):
    X, y = data(2)
    check = clone(model).fit(X, y).verify(X, y)
    assert not check.ok
    assert check.message


def test_precomputed_answers_verify():
    X, y = data(2)
    fit = LPBoostClassifier(base_learner="precomputed", nu=0.6).fit(2 * X - 1, y)
    assert fit.verify(2 * X - 1, y).ok


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("multiclass", ["joint", "one-vs-rest"])
def test_the_stated_problem_of_lpboost_has_the_objective_of_the_fit(k, multiclass):
    """The soft margin of its votes, evaluated rule by rule on the observations of the problem."""
    X, y = data(k)
    weight = np.random.default_rng(4).uniform(0.0, 2.0, 50)
    fit = LPBoostClassifier(nu=0.6, max_order=2, multiclass=multiclass).fit(X, y, weight)
    problem = fit.problem(X, y, weight)
    assert problem.max_order == [2] * len(problem.parts)
    assert [attribute.text() for attribute in problem.attributes] == [a.text() for a in fit.attributes_]
    total = 0.0
    for part, (rows, result) in enumerate(zip(problem.parts, fit.results_)):
        assert rows.total == pytest.approx(weight.sum())
        n, votes = rows.y.size, np.zeros((rows.y.size, 3))
        for column, lam in zip(result.columns, result.weights):
            literals = list(column.key.literals)
            holds = [rows.X[:, a] == 1 if a < 6 else rows.X[:, a - 6] == 0 for a in literals]
            covered = np.all(holds, axis=0) if literals else np.ones(n, bool)
            if hasattr(column.key, "target"):
                votes[covered, column.key.target] += lam
            else:
                votes[covered, int(column.key.sign > 0)] += lam
        own = rows.y if rows.y.min() >= 0 else (rows.y > 0).astype(int)
        classes = 3 if rows.y.max() > 1 else 2
        rivals = votes[:, :classes].copy()
        rivals[np.arange(n), own] = -np.inf
        total += problem.value(votes[np.arange(n), own] - rivals.max(axis=1), part=part)
    assert total == pytest.approx(fit.objective_, abs=1e-9)


def test_the_stated_problem_of_l0boost_has_the_value_of_its_list():
    X, y = data(2)
    fit = L0BoostClassifier(max_order=2, max_rules=2, costs=0.7).fit(X, y)
    problem = fit.problem(X, y)
    rows = problem.parts[0]
    margins = fit.decision_function(rows.X.astype(float)).ravel() * rows.y / fit.weights_.sum()
    assert problem.value(margins, [rule.order for rule in fit.rules_]) == pytest.approx(fit.objective_)
    assert problem.costs == [[0.7, 0.7, 0.7]]
    assert problem.rho == [fit.rho_]


def test_problems_are_stated_before_a_fit_unless_it_has_to_choose():
    X, y = data(2)
    assert LPBoostClassifier(nu=0.3).problem(X, y).nu == [0.3]
    assert L0BoostClassifier().problem(X, y).rho == [pytest.approx(20 / 50)]
    with pytest.raises(NotFittedError):
        LPBoostClassifier(nu="auto").problem(X, y)
    with pytest.raises(NotFittedError):
        L0BoostClassifier(rho="cv").problem(X, y)
    tuned = LPBoostClassifier(nu="auto").fit(X, y)
    assert tuned.problem(X, y).nu == tuned.nu_.tolist()
    with pytest.raises(ValueError, match="greedy"):
        SlipperClassifier().problem(X, y).value(np.zeros(50))
    with pytest.raises(ValueError, match="nu must lie"):
        LPBoostClassifier(nu=3.0).problem(X, y)
