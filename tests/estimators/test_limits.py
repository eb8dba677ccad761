"""Limits and inputs, by tables: one time limit for the whole fit, and one clear sentence for what cannot be fitted."""

import time

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from psilearn import (
    L0BoostClassifier,
    LPBoostClassifier,
    MarginClassifier,
    PsiClassifier,
    RejectClassifier,
    SlipperClassifier,
    SVMClassifier,
    TruncatedHingeClassifier,
    regularization_path,
    truncation_path,
)
from psilearn.core.result import Status
from psilearn.estimators import base, parameters, reject
from psilearn.solvers import SOLVERS, refusal

MARGIN = [SVMClassifier, PsiClassifier, TruncatedHingeClassifier, RejectClassifier, MarginClassifier]


def data(n=30, d=3, k=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = np.digitize(X[:, 0] + 0.5 * rng.normal(size=n), np.linspace(-0.5, 0.5, k - 1) if k > 2 else [0.0])
    y[:k] = np.arange(k)
    return X, y


# -- inputs -----------------------------------------------------------------------------------------------------------

BAD_INPUTS = [
    ({"class_weight": {0: 1.0, 1: np.nan}}, "class_weight must hold finite numbers"),
    ({"class_weight": {0: 1.0, 1: np.inf}}, "class_weight must hold finite numbers"),
    ({"class_weight": {0: 1.0, 1: -2.0}}, "class_weight must hold finite numbers"),
    ({"time_limit": -1}, "'time_limit' parameter"),
    ({"time_limit": 0}, "'time_limit' parameter"),
    ({"time_limit": np.nan}, "'time_limit' parameter"),
]


@pytest.mark.parametrize("solver", ["auto", *SOLVERS])
@pytest.mark.parametrize("kind", MARGIN)
@pytest.mark.parametrize(("parameters", "words"), BAD_INPUTS, ids=str)
def test_bad_parameters_get_a_sentence(kind, solver, parameters, words):
    with pytest.raises(ValueError, match=words):
        kind(solver=solver, **parameters).fit(*data())


@pytest.mark.parametrize("limit", [-1, 0, np.nan, "soon"])
@pytest.mark.parametrize("kind", [LPBoostClassifier, L0BoostClassifier])
def test_bad_limits_of_boosters_get_a_sentence(kind, limit):
    with pytest.raises(ValueError, match="time_limit must be a positive number"):
        kind(time_limit=limit).fit(*data())


@pytest.mark.parametrize("kind", [*MARGIN, LPBoostClassifier, L0BoostClassifier, SlipperClassifier])
def test_labels_of_mixed_types_get_a_sentence_that_names_y(kind):
    X, y = data()
    mixed = y.astype(object)
    mixed[3] = "three"
    with pytest.raises(ValueError, match="labels in y must be of one type, got int and str"):
        kind().fit(X, mixed)


@pytest.mark.parametrize("form", [sp.coo_array, sp.csc_array, sp.csr_array, sp.coo_matrix])
@pytest.mark.parametrize("model", [*(kind() for kind in MARGIN), RejectClassifier(threshold="auto")], ids=str)
def test_every_sparse_format_is_taken(model, form):
    X, y = data()
    dense, sparse = clone(model).fit(X, y), clone(model).fit(form(X), y)
    assert sparse.objective_ == pytest.approx(dense.objective_, rel=1e-3)
    np.testing.assert_array_equal(sparse.predict(form(X)), sparse.predict(X))
    if isinstance(model, RejectClassifier):
        assert sparse.threshold_ == pytest.approx(dense.threshold_, abs=1e-2)


@pytest.mark.parametrize("path", [regularization_path, truncation_path])
@pytest.mark.parametrize("model", [LPBoostClassifier(), L0BoostClassifier()], ids=str)
def test_paths_of_boosters_are_refused_in_words(path, model):
    with pytest.raises(ValueError, match=f"margin classifiers.*got {type(model).__name__}"):
        path(model, *data(), [0.5])


@pytest.mark.parametrize("solver", ["smoothed", "columns"])
def test_an_adaptive_penalty_is_no_reason_to_refuse_a_solver(solver):
    X, y = data(n=60)
    model = SVMClassifier(penalty="adaptive-l1", solver=solver).fit(X, y)
    assert model.verify(X, y).ok


# -- limits -----------------------------------------------------------------------------------------------------------


def limits_handed_out(monkeypatch, modules, model, *sample):
    """Fit with a time limit and return the limits that the solvers were given by these modules."""
    given, true_solve = [], base.solve

    def listening(problem, solver, options, start=None):
        given.append(options.time_limit)
        return true_solve(problem, solver, options, start)

    for module in modules:
        monkeypatch.setattr(module, "solve", listening)
    model.fit(*sample)
    return given


def test_pilot_and_fit_share_one_limit(monkeypatch):
    limits = limits_handed_out(
        monkeypatch, (parameters, base), SVMClassifier(penalty="adaptive-l1", time_limit=40.0), *data()
    )
    assert len(limits) == 2
    assert limits[0] <= 20.0
    assert limits[1] <= 40.0


def test_folds_and_fit_share_one_limit(monkeypatch):
    model = RejectClassifier(threshold="auto", threshold_folds=4, time_limit=40.0)
    limits = limits_handed_out(monkeypatch, (base,), model, *data(n=60))
    assert len(limits) == 5
    assert limits[0] <= 40.0 * reject.FIT_SHARE
    assert limits[1] <= 10.0  # a quarter of what the fit has left over


@pytest.mark.parametrize(
    ("kind", "options"), [(LPBoostClassifier, {"multiclass": "one-vs-rest"}), (L0BoostClassifier, {})]
)
def test_classes_of_a_booster_share_one_limit(monkeypatch, kind, options):
    given, true_solve = [], kind._solve

    def listening(self, observations, seconds):
        given.append(seconds)
        return true_solve(self, observations, seconds)

    monkeypatch.setattr(kind, "_solve", listening)
    kind(time_limit=40.0, **options).fit(*data(n=40, k=4))
    assert len(given) == 4
    assert given[0] <= 10.0
    assert sum(given) <= 4 * 40.0
    assert given == sorted(given)  # what one problem leaves over goes to the next ones


def test_the_kernel_matrix_counts(monkeypatch):
    """A nap stands for a slow Gram matrix."""
    X, y = data()

    def slow_gram(samples):
        time.sleep(0.3)
        return samples @ samples.T if samples.shape[0] == len(y) else samples @ X.T

    model = SVMClassifier(kernel=lambda a, b: slow_gram(a), time_limit=40.0)
    limits = limits_handed_out(monkeypatch, (base,), model, X, y)
    assert limits[0] <= 39.7


#: Fits that used to take many times their limit of one second.
SLOW = [
    (TruncatedHingeClassifier(s=0.0, kernel="rbf", solver="mip"), 2000, 2),
    (TruncatedHingeClassifier(s=0.0, kernel="rbf"), 1500, 2),
    (PsiClassifier(a=2.0, solver="cones"), 200, 3),
    (RejectClassifier(threshold="auto", s=-1.0, n_starts=50), 400, 2),
    (SVMClassifier(penalty="adaptive-l1", solver="bundle", tol=1e-12), 3000, 3),
]


@pytest.mark.parametrize(("model", "n", "k"), SLOW, ids=str)
def test_a_second_is_a_second(model, n, k):
    """Ten times the limit is allowed, since the tests may share their cores; the faults took longer still."""
    X, y = data(n=n, k=k, d=2 if k > 2 else 4)
    clone(model).set_params(time_limit=1.0).fit(X[:40], y[:40])  # compiles
    began = time.perf_counter()
    fit = clone(model).set_params(time_limit=1.0).fit(X, y)
    assert time.perf_counter() - began < 10.0
    assert np.isfinite(fit.objective_)


def test_a_search_that_cannot_begin_in_time_says_so():
    X, y = data(n=1500)
    model = PsiClassifier(a=1.0, kernel="rbf", solver="mip", restrict="svm", time_limit=0.2).fit(X, y)
    assert model.status_ is Status.TIME_LIMIT
    assert "too short" in model.certificate_.note
    check = model.verify(X, y)
    assert check.ok, check.message
    assert refusal("mip", model.problem(X, y)) is None
