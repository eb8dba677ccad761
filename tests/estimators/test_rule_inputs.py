"""Inputs and parameters that a rule learner cannot use, models that say nothing, and the binarizers by name."""

import warnings

import numpy as np
import pandas as pd
import pytest

from psilearn.estimators.rules import L0BoostClassifier, LPBoostClassifier, SlipperClassifier
from psilearn.rules.attributes import Attribute
from psilearn.rules.binarize import LogicalBinarizer
from psilearn.rules.rules import best_monomial

from oracles.frames import frame

A = np.array([[0, 1], [1, 0], [1, 1], [0, 0]] * 5)
Y = np.array([0, 1, 1, 0] * 5)

REFUSED = [
    (LPBoostClassifier, {"nu": 0.0}, "nu must lie"),
    (LPBoostClassifier, {"nu": 1.5}, "nu must lie"),
    (LPBoostClassifier, {"nu": float("nan")}, "nu must lie"),
    (LPBoostClassifier, {"nu": "best"}, "nu must lie"),
    (L0BoostClassifier, {"rho": 0.0}, "rho must lie"),
    (L0BoostClassifier, {"rho": "large"}, "rho must lie"),
    (L0BoostClassifier, {"costs": -1}, "costs must give"),
    (L0BoostClassifier, {"costs": 0.0}, "costs must give"),
    (L0BoostClassifier, {"costs": float("nan")}, "costs must give"),
    (L0BoostClassifier, {"costs": lambda order: 1.0 - order}, "costs must give"),
    (L0BoostClassifier, {"costs": "aic"}, "costs must be"),
    (L0BoostClassifier, {"kappa": float("inf")}, "kappa"),
    (SlipperClassifier, {"max_rounds": 0}, "max_rounds"),
    *[
        (booster, {name: value}, name)
        for booster in (LPBoostClassifier, L0BoostClassifier)
        for name, value in [
            ("time_limit", -1),
            ("time_limit", float("nan")),
            ("time_limit", "1 s"),
            ("max_order", -1),
            ("max_order", 1.5),
            ("max_iter", 0),
            ("tol", -1e-3),
            ("binarizer", "best"),
            ("binarizer", None),
        ]
    ],
]


@pytest.mark.parametrize(("booster", "parameters", "message"), REFUSED)
def test_parameters_that_cannot_be_used_are_refused_by_name(booster, parameters, message):
    X = A + 0.5 if "binarizer" in parameters else A
    with pytest.raises(ValueError, match=message):
        booster(**parameters).fit(X, Y)


@pytest.mark.parametrize("weight", [np.full(20, np.nan), np.full(20, -1.0), np.ones(19)])
def test_weights_that_cannot_be_used_are_refused(weight):
    with pytest.raises(ValueError, match="sample_weight"):
        best_monomial(A, Y, weight)
    for booster in (LPBoostClassifier(), L0BoostClassifier(), SlipperClassifier()):
        with pytest.raises(ValueError, match="weight"):
            booster.fit(A, Y, sample_weight=weight)


def test_best_monomial_refuses_empty_data_and_limits_that_are_none():
    for empty in (np.empty((0, 3)), np.empty((3, 0))):
        with pytest.raises(ValueError, match="at least one row"):
            best_monomial(empty, np.zeros(empty.shape[0]))
    for limit in (-1, float("nan")):
        with pytest.raises(ValueError, match="time_limit"):
            best_monomial(A, Y, time_limit=limit)


def test_a_nu_below_one_observation_is_said_to_be_the_hard_margin():
    with pytest.warns(UserWarning, match="hard margin"):
        small = LPBoostClassifier(nu=1e-4).fit(A, Y)
    least = 5 / 20  # equal observations count together
    assert small.objective_ == pytest.approx(LPBoostClassifier(nu=least).fit(A, Y).objective_)


def test_a_constant_model_is_said_to_be_one():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(120, 3)), (rng.random(120) < 0.4).astype(int)
    for model in (LPBoostClassifier(nu=0.1, max_order=0), L0BoostClassifier(costs=lambda k: 1.0 + 99 * k)):
        with pytest.warns(UserWarning, match="constant: every observation is given class 0"):
            model.fit(X, y)
        assert model.is_constant_
        assert "constant" in model.export_text()
        assert (model.predict(X) == 0).all()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not LPBoostClassifier().fit(A, Y).is_constant_


def test_a_constant_model_names_the_class_it_predicts():
    with pytest.warns(UserWarning, match="given class b"):
        model = LPBoostClassifier(nu=1.0, max_order=0).fit(A[:, :1], np.array(["a", "b", "b", "b"] * 5))
    assert set(model.predict(A[:, :1])) == {"b"}


def test_auto_gives_many_cut_points_and_support_few():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(400, 2))
    y = (X[:, 0] + 0.5 * rng.normal(size=400) > 0).astype(int)
    auto, support = LPBoostClassifier().fit(X, y), LPBoostClassifier(binarizer="support").fit(X, y)
    cuts = pd.Series([a.feature for a in auto.attributes_]).value_counts()
    assert cuts.tolist() == [32, 32]
    assert support.attributes_ == LogicalBinarizer().fit(X, y).attributes_
    assert len(support.attributes_) < len(auto.attributes_)


def test_missing_values_are_attributes_of_their_own():
    rng = np.random.default_rng(2)
    X = pd.DataFrame({"a": rng.normal(size=200), "b": rng.choice(["u", "v"], 200)})
    y = (rng.random(200) < 0.5).astype(int)
    X.loc[y == 1, "a"] = np.nan
    model = LPBoostClassifier().fit(X, y)
    assert model.score(X, y) == 1.0
    assert "a is missing" in model.export_text()
    X.loc[3, "b"] = None
    names = LogicalBinarizer(missing=True).fit(X, y).attributes_
    assert [a.feature for a in names if a.kind == "missing"] == [0]
    is_missing = Attribute(1, "b", "missing")
    assert is_missing.holds([np.zeros(2), np.array(["u", None], dtype=object)]).tolist() == [False, True]
    assert is_missing.text(False) == "b is known"


def test_nu_auto_is_as_good_as_the_best_of_its_grid_on_clean_and_on_noisy_data():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(1500, 4))
    clean = (X[:, 0] + X[:, 1] > 0).astype(int)
    noisy = np.where(rng.random(1500) < 0.2, 1 - clean, clean)
    chosen = []
    for y in (clean, noisy):
        train, test = slice(0, 600), slice(600, 1500)
        auto = LPBoostClassifier(nu="auto").fit(X[train], y[train])
        chosen.append(float(auto.nu_[0]))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            scores = [
                LPBoostClassifier(nu=nu).fit(X[train], y[train]).score(X[test], clean[test])
                for nu in (0.9, 0.7, 0.5, 0.3, 0.1)
            ]
        assert auto.score(X[test], clean[test]) >= max(scores) - 0.05
    assert chosen[0] < chosen[1]


def test_nu_auto_is_reproducible_and_serves_every_base_learner():
    X, y = frame(4, n=90)
    a, b = (LPBoostClassifier(nu="auto").fit(X, y) for _ in range(2))
    assert a.export_text() == b.export_text()
    H = np.sign(np.random.default_rng(5).normal(size=(60, 4)))
    model = LPBoostClassifier(nu="auto", base_learner="precomputed").fit(H, (H.sum(axis=1) > 0).astype(int))
    assert model.score(H, (H.sum(axis=1) > 0).astype(int)) > 0.8


def test_nu_auto_on_few_noisy_rows():
    """300 rows with a quarter of the labels flipped: between the values that say nothing and those that overfit."""
    scores = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(1300, 6))
        y = (X[:, 0] + 0.7 * X[:, 1] > 0).astype(int)
        given = np.where(rng.random(300) < 0.25, 1 - y[:300], y[:300])
        scores.append(LPBoostClassifier(nu="auto").fit(X[:300], given).score(X[300:], y[300:]))
    assert np.mean(scores) > 0.78


def test_order_auto_takes_what_the_data_need():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (400, 6))
    either = (X[:, 0] ^ X[:, 1]).astype(int)
    model = LPBoostClassifier(nu="auto", max_order="auto").fit(X, either)
    assert model.max_order_.tolist() == [2]
    assert model.score(X, either) == 1.0
    assert model.verify(X, either).ok
    single = LPBoostClassifier(nu="auto", max_order="auto").fit(X, X[:, 0])
    assert single.max_order_.tolist() == [1]
    assert LPBoostClassifier(nu=0.5, max_order="auto").fit(X, either).max_order_.tolist() == [2]


def test_a_tuned_margin_of_l0_rboost_asks_for_more_where_labels_are_wrong():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(1400, 8))
    y = (X[:, 0] + 0.7 * X[:, 1] > 0).astype(int)
    given = np.where(rng.random(400) < 0.2, 1 - y[:400], y[:400])
    clean, noisy = (L0BoostClassifier(rho="cv").fit(X[:400], labels) for labels in (y[:400], given))
    assert clean.rho_ < noisy.rho_
    assert clean.score(X[400:], y[400:]) > 0.9
    plain = L0BoostClassifier().fit(X[:400], given)
    assert noisy.n_rules_ < plain.n_rules_
    assert noisy.score(X[400:], y[400:]) > 0.75  # neither margin is the better one on every sample
    assert noisy.verify(X[:400], given).ok
    with pytest.raises(ValueError, match="rho must lie in"):
        L0BoostClassifier(rho="large").fit(X[:400], given)


def test_a_tuned_margin_serves_several_classes():
    X, y = np.arange(90.0)[:, None], np.repeat(["a", "b", "c"], 30)
    model = L0BoostClassifier(rho="cv", max_order=2).fit(X, y)
    assert model.score(X, y) == 1.0
    assert model.rho_ == min(result.rho for result in model.results_)
    assert model.verify(X, y).ok
