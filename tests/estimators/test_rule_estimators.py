"""The boosters as users meet them."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.tree import DecisionTreeClassifier

from psilearn.estimators.rules import L0BoostClassifier, LPBoostClassifier
from psilearn.rules.binarize import LogicalBinarizer

from oracles.frames import frame

BOTH = [LPBoostClassifier(nu=0.3, max_order=2), L0BoostClassifier(max_order=2)]


@pytest.mark.parametrize("model", BOTH)
def test_a_data_frame_with_types_and_missing_values(model):
    X, y = frame(n=150)
    model.fit(X, y)
    assert model.score(X, y) > 0.9
    assert model.weights_.sum() == pytest.approx(1)
    assert (model.weights_ > 0).all()
    assert model.n_rules_ == len(model.rules_) == len(model.weights_)
    assert all(rule.order <= 2 for rule in model.rules_)
    votes = sum(w * rule.sign * rule.covers(X) for w, rule in zip(model.weights_, model.rules_))
    scores = model.decision_function(X)
    decided = np.abs(votes) > 1e-9
    np.testing.assert_allclose(scores[decided], votes[decided])
    text = model.export_text()
    assert "stage = III" in text
    assert "right for" in text


@pytest.mark.parametrize("model", BOTH)
def test_the_text_reproduces_the_predictions(model):
    X, y = frame(2, n=120)
    model.fit(X, y)
    net = np.zeros(len(y))
    for line in model.export_text().splitlines()[2:]:
        points, rest = line.strip().split("  for ", 1)
        label, condition = (
            (rest.split("  if  ")[0], rest) if "  if  " in rest else (rest.split("  always")[0], "always")
        )
        covered = np.ones(len(y), dtype=bool)
        if condition != "always":
            shown = condition.split("  if  ")[1].split("   [")[0]
            covered = next(rule for rule in model.rules_ if str(rule.condition) == shown).covers(X)
        net += float(points) * covered * (1 if label == "well" else -1)
    decided = np.abs(net) > 0.01
    assert decided.mean() > 0.5
    np.testing.assert_array_equal(model.predict(X)[decided], np.where(net > 0, "well", "ill")[decided])


@pytest.mark.parametrize("model", BOTH)
def test_binary_data_are_used_as_they_are(model):
    rng = np.random.default_rng(0)
    A = pd.DataFrame(rng.integers(0, 2, (60, 5)), columns=list("pqrst"))
    y = (A["p"] & A["q"]).to_numpy()
    model.fit(A, y)
    assert [a.name for a in model.attributes_] == list("pqrst")
    assert model.score(A, y) == 1.0
    assert "p = 1 and q = 1" in model.export_text()


@pytest.mark.parametrize("model", BOTH)
def test_several_classes(model):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(150, 2))
    y = np.array(["a", "b", "c"])[(X[:, 0] > -0.4).astype(int) + (X[:, 0] > 0.5)]
    model.fit(X, y)
    assert model.decision_function(X).shape == (150, 3)
    assert model.score(X, y) > 0.95
    text = model.export_text()
    assert "\nb\n" in text
    # a joint program has rules for one class each, one-vs-rest has rules against a class, too
    assert ("for not" in text) == isinstance(model, L0BoostClassifier)


def test_the_bounds_bracket():
    X, y = frame(3, n=100)
    lp, l0 = LPBoostClassifier(max_order=2).fit(X, y), L0BoostClassifier(max_order=2).fit(X, y)
    assert lp.objective_ <= lp.upper_bound_ <= lp.objective_ + 1e-6
    assert l0.lower_bound_ <= l0.objective_ <= l0.lower_bound_ + 1e-3
    assert l0.rho_ == pytest.approx(0.2)
    (certificate,) = l0.certificate_
    assert certificate.reduced_cost >= -1e-5
    assert certificate.violation <= 1e-5
    assert l0.gap_ < 1e-5
    paper = L0BoostClassifier(max_order=2, cuts="paper").fit(X, y)
    assert paper.lower_bound_ == -np.inf


def test_costs_steer_the_number_of_rules():
    X, y = frame(4, n=100)
    cheap = L0BoostClassifier(max_order=1, costs=0.01).fit(X, y)
    expensive = L0BoostClassifier(max_order=1, costs=lambda order: 20.0 + order).fit(X, y)
    assert expensive.n_rules_ < cheap.n_rules_
    with pytest.raises(ValueError, match="costs"):
        L0BoostClassifier(costs="aic").fit(X, y)


@pytest.mark.parametrize("model", [LPBoostClassifier(nu=0.2), L0BoostClassifier(costs=0.2)])
def test_other_base_learners(model):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(120, 3))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    tree = DecisionTreeClassifier(max_depth=2, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        boosted = model.set_params(base_learner=tree).fit(X, y)
    assert boosted.score(X, y) >= tree.fit(X, y).score(X, y) - 0.02
    assert boosted.score(X, y) > 0.85
    H = np.sign(np.round(X))
    model.set_params(base_learner="precomputed", **({"nu": 0.6} if hasattr(model, "nu") else {}))
    given = model.fit(H, (X.sum(axis=1) > 0).astype(int))
    assert given.score(H, (X.sum(axis=1) > 0).astype(int)) > 0.8
    assert "column" in given.export_text()
    model.set_params(base_learner=None)


def test_precomputed_answers_must_be_votes():
    with pytest.raises(ValueError, match="-1, 0 or 1"):
        L0BoostClassifier(base_learner="precomputed").fit([[0.5], [1.0]], [0, 1])
    with pytest.raises(ValueError, match="base_learner"):
        LPBoostClassifier(base_learner="stump").fit([[0.5], [1.0]], [0, 1])


def test_stopping_early_warns_and_stays_honest():
    X, y = frame(6, n=120)
    best = L0BoostClassifier(max_order=3).fit(X, y)
    with pytest.warns(ConvergenceWarning, match="stopped early"):
        early = L0BoostClassifier(max_order=3, max_iter=2).fit(X, y)
    assert early.lower_bound_ <= best.objective_ + 1e-6
    with pytest.warns(ConvergenceWarning):
        early_lp = LPBoostClassifier(max_order=3, nu=0.1, max_iter=1).fit(X, y)
    best_lp = LPBoostClassifier(max_order=3, nu=0.1).fit(X, y)
    assert early_lp.objective_ <= best_lp.objective_ + 1e-9
    assert early_lp.upper_bound_ >= best_lp.objective_ - 1e-9


def test_fits_are_deterministic_and_independent_of_row_order():
    X, y = frame(7, n=90)
    order = np.random.default_rng(0).permutation(90)
    for model in BOTH:
        a = model.fit(X, y)
        rules, weights = [str(r) for r in a.rules_], a.weights_.copy()
        b = model.fit(X.iloc[order], y[order])
        assert [str(r) for r in b.rules_] == rules
        np.testing.assert_array_equal(b.weights_, weights)


def test_a_custom_binarizer_is_used_and_left_alone():
    X, y = frame(8, n=90)
    binarizer = LogicalBinarizer(multiplicity=2, max_cuts=5)
    small = LPBoostClassifier(binarizer=LogicalBinarizer(max_cuts=5)).fit(X, y)
    large = LPBoostClassifier(binarizer=binarizer).fit(X, y)
    assert len(large.attributes_) > len(small.attributes_)
    assert not hasattr(binarizer, "attributes_")
