"""Tuning: the scores are those of fits made alone, and the choice is the one GridSearchCV would make."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import make_scorer, roc_auc_score
from sklearn.model_selection import GridSearchCV, GroupKFold, LeaveOneGroupOut
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from psilearn import (
    L0BoostClassifier,
    LPBoostClassifier,
    PsiClassifier,
    RejectClassifier,
    SlipperClassifier,
    SVMClassifier,
    TruncatedHingeClassifier,
    TunedClassifier,
)

from oracles.samples import noisy_sample

CS = [0.01, 0.1, 1.0, 10.0]


@parametrize_with_checks(
    [
        TunedClassifier(SVMClassifier(), {"C": [0.1, 1.0]}),
        TunedClassifier(RejectClassifier(), {"C": [0.1, 1.0]}, rule="1se"),
        TunedClassifier(DecisionTreeClassifier(random_state=0), {"max_depth": [1, 2]}),
    ]
)
def test_sklearn_compatible(estimator, check):
    check(estimator)


def sample(k=2, n=90, d=3, seed=0):
    return noisy_sample(np.random.default_rng(seed), n, d, k)


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize(
    "model",
    [
        SVMClassifier(tol=1e-9),
        SVMClassifier(tol=1e-9, penalty="l1"),
        SVMClassifier(tol=1e-9, penalty="adaptive-l1"),
        SVMClassifier(tol=1e-9, class_weight="balanced"),
        SVMClassifier(tol=1e-9, kernel="rbf"),
        SVMClassifier(tol=1e-9, kernel="rbf", gamma=0.3),
        RejectClassifier(tol=1e-9),
        RejectClassifier(tol=1e-9, threshold="auto"),
    ],
    ids=repr,
)
def test_scores_are_those_of_fits_made_alone(model, k):
    X, y = sample(k)
    grid = {"C": CS[1:] if model.penalty == "adaptive-l1" else CS}  # below, its optimum is not unique
    alone = GridSearchCV(model, grid, cv=4).fit(X, y)
    tuned = TunedClassifier(model, grid, cv=4).fit(X, y)
    np.testing.assert_allclose(
        tuned.cv_results_["mean_test_score"], alone.cv_results_["mean_test_score"], atol=1.5 / len(y)
    )
    assert tuned.best_score_ == tuned.cv_results_["mean_test_score"].max()
    assert tuned.best_params_ == tuned.cv_results_["params"][tuned.best_index_]
    same = clone_with(model, tuned.best_params_).fit(X, y)
    assert tuned.best_estimator_.objective_ == same.objective_


def clone_with(model, params):
    return type(model)(**model.get_params()).set_params(**params)


def test_a_gram_matrix_gives_the_scores_of_its_kernel():
    X, y = sample(3)
    K = np.exp(-0.5 * ((X[:, None] - X[None]) ** 2).sum(axis=2))
    by_name = TunedClassifier(SVMClassifier(kernel="rbf", tol=1e-9), {"gamma": [0.5], "C": CS}).fit(X, y)
    by_gram = TunedClassifier(SVMClassifier(kernel="precomputed", tol=1e-9), {"C": CS}).fit(K, y)
    np.testing.assert_allclose(by_name.cv_results_["mean_test_score"], by_gram.cv_results_["mean_test_score"])
    np.testing.assert_array_equal(by_name.predict(X), by_gram.predict(K))


@pytest.mark.parametrize("scoring", ["roc_auc", "balanced_accuracy", "accuracy", make_scorer(roc_auc_score)])
def test_any_scorer(scoring):
    X, y = sample()
    grid = {"C": CS}
    alone = GridSearchCV(SVMClassifier(tol=1e-9), grid, scoring=scoring).fit(X, y)
    tuned = TunedClassifier(SVMClassifier(tol=1e-9), grid, scoring=scoring).fit(X, y)
    np.testing.assert_allclose(
        tuned.cv_results_["mean_test_score"], alone.cv_results_["mean_test_score"], atol=1.5 / 18
    )
    assert tuned.score(X, y) == pytest.approx(alone.score(X, y), abs=0.02)


def test_a_pipeline_is_tuned_as_grid_search_tunes_it():
    X, y = sample()
    X = X * [1.0, 100.0, 0.01]
    pipeline = make_pipeline(StandardScaler(), SVMClassifier(tol=1e-9))
    grid = {"svmclassifier__C": CS}
    alone, tuned = GridSearchCV(pipeline, grid).fit(X, y), TunedClassifier(pipeline, grid).fit(X, y)
    np.testing.assert_allclose(tuned.cv_results_["mean_test_score"], alone.cv_results_["mean_test_score"])
    assert TunedClassifier(pipeline).fit(X, y, np.ones(len(y))).best_params_.keys() == {"svmclassifier__C"}


def test_preprocessing_of_every_candidate_is_its_own():
    X, y = sample()
    pipeline = make_pipeline(StandardScaler(), SVMClassifier(tol=1e-9))
    grid = {"standardscaler__with_mean": [True, False], "svmclassifier__C": CS}
    alone, tuned = GridSearchCV(pipeline, grid).fit(X, y), TunedClassifier(pipeline, grid).fit(X, y)
    assert tuned.best_score_ == pytest.approx(alone.best_score_)


def test_groups_are_kept_together():
    X, y = sample(n=60)
    group = np.repeat(np.arange(20), 3)
    tuned = TunedClassifier(SVMClassifier(tol=1e-9), {"C": CS}, cv=GroupKFold(4)).fit(X, y, groups=group)
    alone = GridSearchCV(SVMClassifier(tol=1e-9), {"C": CS}, cv=GroupKFold(4)).fit(X, y, groups=group)
    np.testing.assert_allclose(tuned.cv_results_["mean_test_score"], alone.cv_results_["mean_test_score"])
    by_number = TunedClassifier(SVMClassifier(), {"C": CS}, cv=4)
    for train, test in by_number.set_params(random_state=3)._splits(*data_of(by_number, X, y), group):
        assert not set(group[train]) & set(group[test])


def data_of(tuned, X, y):
    from psilearn.estimators.tuning.folds import Data

    return (Data(X, y, None, None),)


def test_a_weight_of_two_is_a_row_given_twice():
    X, y = sample(n=60)
    group = np.arange(60) % 3
    weight = 1.0 + (np.arange(60) % 2)
    rows = np.repeat(np.arange(60), weight.astype(int))
    grid, model = {"C": CS}, SVMClassifier(tol=1e-9)
    weighted = TunedClassifier(model, grid, cv=LeaveOneGroupOut()).fit(X, y, weight, groups=group)
    repeated = TunedClassifier(model, grid, cv=LeaveOneGroupOut()).fit(X[rows], y[rows], groups=group[rows])
    np.testing.assert_allclose(weighted.cv_results_["mean_test_score"], repeated.cv_results_["mean_test_score"])


def test_of_equals_the_simplest_and_within_an_error_the_simplest():
    X = np.r_[np.full(20, -1.0), np.full(20, 1.0)][:, None]
    y = np.repeat([0, 1], 20)
    assert TunedClassifier(SVMClassifier(), {"C": [10.0, 0.1, 1.0]}).fit(X, y).best_params_ == {"C": 0.1}
    tuned = TunedClassifier(SVMClassifier(kernel="rbf"), {"gamma": [3.0, 0.3], "C": [1.0, 10.0]}).fit(X, y)
    assert tuned.best_params_ == {"gamma": 0.3, "C": 1.0}
    X, y = sample(seed=2)
    best = TunedClassifier(SVMClassifier(), {"C": CS}).fit(X, y)
    simple = TunedClassifier(SVMClassifier(), {"C": CS}, rule="1se").fit(X, y)
    mean, spread = best.cv_results_["mean_test_score"], best.cv_results_["std_test_score"]
    within = mean >= mean.max() - spread[best.best_index_] / np.sqrt(5)
    assert simple.best_params_ == {"C": min(C for C, is_near in zip(CS, within) if is_near)}
    assert simple.best_params_["C"] < best.best_params_["C"]


@pytest.mark.parametrize("penalty", ["l2", "l1", "adaptive-l1"])
@pytest.mark.parametrize("unit", [1e-3, 1.0, 1e4])
def test_the_default_grid_does_not_depend_on_units(unit, penalty):
    X, y = sample(n=120)
    tuned = TunedClassifier(SVMClassifier(penalty=penalty, tol=1e-8)).fit(X * unit, y)
    plain = TunedClassifier(SVMClassifier(penalty=penalty, tol=1e-8)).fit(X, y)
    assert tuned.best_score_ == pytest.approx(plain.best_score_, abs=0.02)
    if penalty != "adaptive-l1":
        scores = [model.cv_results_["mean_test_score"] for model in (tuned, plain)]
        np.testing.assert_allclose(*scores, atol=0.02)


@pytest.mark.parametrize(
    ("model", "names"),
    [
        (TruncatedHingeClassifier(), ["C", "s"]),
        (TruncatedHingeClassifier(s=-0.5, kernel="rbf"), ["C", "gamma"]),
        (PsiClassifier(a=2.0), ["C"]),
        (RejectClassifier(), ["C"]),
        (LPBoostClassifier(), ["nu", "max_order"]),
        (L0BoostClassifier(), ["max_order"]),
    ],
    ids=repr,
)
def test_the_default_grid_knows_the_classifier(model, names):
    X, y = sample(n=60)
    tuned = TunedClassifier(model, cv=2).fit(X, y)
    assert tuned.best_params_.keys() == set(names)
    assert tuned.verify(X, y).ok
    assert np.isfinite(tuned.best_score_)


def test_folds_in_processes_give_the_same_scores():
    X, y = sample()
    one = TunedClassifier(TruncatedHingeClassifier(kernel="rbf"), {"gamma": [0.1, 1.0], "C": CS}).fit(X, y)
    two = TunedClassifier(TruncatedHingeClassifier(kernel="rbf"), {"gamma": [0.1, 1.0], "C": CS}, n_jobs=2).fit(X, y)
    np.testing.assert_array_equal(one.cv_results_["mean_test_score"], two.cv_results_["mean_test_score"])


def test_a_time_limit_that_is_over_leaves_scores_out_but_fits():
    X, y = sample()
    model = PsiClassifier(solver="mip", time_limit=1e-3)
    with pytest.warns(ConvergenceWarning):
        tuned = TunedClassifier(model, {"a": [0.5, 1.0], "C": CS}).fit(X, y)
    assert np.isnan(tuned.cv_results_["mean_test_score"]).any()
    assert tuned.best_estimator_.time_limit == 1e-3
    assert tuned.predict(X).shape == y.shape
    ranked = tuned.cv_results_["rank_test_score"]
    assert np.all(ranked[np.isnan(tuned.cv_results_["mean_test_score"])] > 1)


def test_what_only_some_classifiers_can_do():
    X, y = sample()
    tuned = TunedClassifier(RejectClassifier(), {"C": [0.1]}).fit(X, y)
    assert tuned.abstains(X).dtype == bool
    assert (tuned.predict_or_abstain(X, -1) == -1).sum() == tuned.abstains(X).sum()
    assert not hasattr(TunedClassifier(SVMClassifier()), "abstains")
    assert not hasattr(TunedClassifier(SVMClassifier()), "predict_proba")
    assert TunedClassifier(LogisticRegression(), {"C": [0.1, 1.0]}).fit(X, y).predict_proba(X).shape == (90, 2)


def test_a_class_that_cannot_be_held_out_leaves_the_middle_of_the_grid():
    X, y = sample(n=20)
    y = np.where(np.arange(20) == 3, 1, 0)
    tuned = TunedClassifier(SVMClassifier(), {"C": [0.1, 1.0, 10.0]}).fit(X, y)
    assert tuned.best_params_ == {"C": 1.0}
    assert np.isnan(tuned.best_score_)


@pytest.mark.parametrize(
    ("tuned", "message"),
    [
        (TunedClassifier(LogisticRegression()), "param_grid='auto' knows no values for LogisticRegression"),
        (TunedClassifier(SlipperClassifier()), "param_grid='auto' knows no values for SlipperClassifier"),
        (TunedClassifier(SVMClassifier(), "C"), "param_grid must be 'auto' or a dict"),
        (TunedClassifier(SVMClassifier(), {"C": []}), "param_grid must be 'auto' or a dict"),
        (TunedClassifier(SVMClassifier(), {"D": [1.0]}), "Invalid parameter 'D'"),
        (TunedClassifier(SVMClassifier(), {"C": [1.0, -1.0]}), "'C' parameter"),
        (TunedClassifier(SVMClassifier(), rule="2se"), "rule must be 'best' or '1se', got '2se'"),
        (TunedClassifier(SVMClassifier(), criterion="aic"), "criterion must be 'cv', got 'aic'"),
        (TunedClassifier(SVMClassifier(), scoring="nonsense"), "scoring"),
    ],
)
def test_bad_input_gets_a_sentence(tuned, message):
    with pytest.raises(ValueError, match=message):
        tuned.fit(*sample())


def test_landmarks_are_chosen_once_for_all_folds():
    X, y = sample(n=120)
    grid = {"gamma": [0.1, 1.0], "C": CS}
    exact = TunedClassifier(SVMClassifier(kernel="rbf", tol=1e-9), grid).fit(X, y)
    few = TunedClassifier(SVMClassifier(kernel="rbf", n_components=120, tol=1e-9), grid).fit(X, y)
    scores = [tuned.cv_results_["mean_test_score"] for tuned in (exact, few)]
    np.testing.assert_allclose(*scores, atol=1.5 / 120)
    assert few.best_estimator_.low_rank_ is not None
    pipeline = make_pipeline(StandardScaler(), SVMClassifier(kernel="rbf", n_components=20))
    assert TunedClassifier(pipeline).fit(X, y).best_score_ > 0.7
