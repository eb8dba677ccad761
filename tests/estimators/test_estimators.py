"""The scikit-learn faces: invariances, agreement with outside truth, bad and extreme input."""

import itertools
import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from psilearn import (
    MarginClassifier,
    PsiClassifier,
    RejectClassifier,
    RejectHinge,
    SVMClassifier,
    TruncatedHingeClassifier,
    regularization_path,
    truncation_path,
)
from psilearn.core.result import Status
from psilearn.solvers import choose_exact, refusal

from oracles.samples import noisy_sample

CONVEX = [
    SVMClassifier(tol=1e-7),
    SVMClassifier(penalty="l1", tol=1e-7),
    SVMClassifier(penalty="adaptive-l1", tol=1e-7),
    SVMClassifier(penalty="elastic-net", tol=1e-7),
    SVMClassifier(kernel="rbf", tol=1e-7),
    SVMClassifier(kernel="poly", degree=2, coef0=1.0, tol=1e-7),
    MarginClassifier(RejectHinge(0.2), tol=1e-7),
    RejectClassifier(tol=1e-7),
]
ROBUST = [
    TruncatedHingeClassifier(solver="dca"),
    TruncatedHingeClassifier(penalty="l1", solver="dca"),
    TruncatedHingeClassifier(kernel="rbf", solver="dca"),
    PsiClassifier(a=2.0, solver="dca"),
    RejectClassifier(s=-1.0, solver="dca"),
]
names = {"ids": lambda value: repr(value) if hasattr(value, "fit") else str(value)}


def data(seed, n=40, d=3, k=2):
    return noisy_sample(np.random.default_rng(seed), n, d, k)


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("model", CONVEX, **names)
class TestConvexMachines:
    def test_certified(self, model, k):
        X, y = data(0, k=k)
        fit = clone(model).fit(X, y)
        assert fit.status_ is Status.OPTIMAL
        assert 0 <= fit.gap_ <= 1e-7
        assert fit.lower_bound_ <= fit.objective_ * (1 + 1e-12)

    def test_duplicated_rows_are_weights(self, model, k):
        X, y = data(1, k=k)
        twice = clone(model).fit(np.vstack([X, X[:10]]), np.r_[y, y[:10]])
        weights = np.r_[np.full(10, 2.0), np.ones(30)]
        once = clone(model).fit(X, y, sample_weight=weights)
        assert twice.objective_ == pytest.approx(once.objective_, rel=1e-9)
        np.testing.assert_allclose(twice.decision_function(X), once.decision_function(X), atol=1e-9)

    def test_zero_weight_is_absence(self, model, k):
        X, y = data(2, k=k)
        keep = np.arange(40) < 30
        y[:k] = np.arange(k)
        absent = clone(model).fit(X[keep], y[keep])
        zero = clone(model).fit(X, y, sample_weight=keep.astype(float))
        np.testing.assert_allclose(zero.decision_function(X), absent.decision_function(X), atol=1e-9)
        assert np.all(zero.support_ < 30)

    def test_order_of_rows_does_not_matter(self, model, k):
        X, y = data(3, k=k)
        order = np.random.default_rng(0).permutation(40)
        a, b = clone(model).fit(X, y), clone(model).fit(X[order], y[order])
        np.testing.assert_allclose(a.decision_function(X), b.decision_function(X), atol=1e-9)
        np.testing.assert_array_equal(np.sort(order[b.support_]), a.support_)

    def test_names_of_labels_do_not_matter(self, model, k):
        X, y = data(4, k=k)
        letters = np.array(["b", "a", "c"])[y]
        a, b = clone(model).fit(X, y), clone(model).fit(X, letters)
        assert a.objective_ == pytest.approx(b.objective_, rel=1e-6)

    def test_order_of_features_does_not_matter(self, model, k):
        X, y = data(5, k=k)
        a, b = clone(model).fit(X, y), clone(model).fit(X[:, ::-1], y)
        assert a.objective_ == pytest.approx(b.objective_, rel=1e-6)

    def test_sparse_equals_dense(self, model, k):
        X, y = data(6, k=k)
        X[np.abs(X) < 0.5] = 0.0
        a, b = clone(model).fit(X, y), clone(model).fit(sp.csr_matrix(X), y)
        assert a.objective_ == pytest.approx(b.objective_, rel=1e-6)
        np.testing.assert_allclose(b.decision_function(sp.csr_matrix(X)), b.decision_function(X), atol=1e-9)

    def test_float32_is_close(self, model, k):
        X, y = data(7, k=k)
        a, b = clone(model).fit(X, y), clone(model).fit(X.astype(np.float32), y)
        assert a.objective_ == pytest.approx(b.objective_, rel=1e-4)

    def test_certificate_verifies(self, model, k):
        X, y = data(8, k=k)
        fit = clone(model).fit(X, y)
        problem = fit.problem(X, y)
        check = fit.certificate_.verify(problem)
        assert check.ok
        assert check.gap <= 1.1e-7
        coef = fit.certificate_.point[0]
        other = coef + np.linspace(0.1, 0.2, coef.size).reshape(coef.shape)
        assert not fit.certificate_.verify(problem, other, fit.intercept_).ok


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("model", ROBUST, **names)
class TestRobustMachines:
    def test_descends_and_is_critical(self, model, k):
        X, y = data(10, n=60, k=k)
        fit = clone(model).fit(X, y)
        assert fit.status_ is Status.CRITICAL
        assert fit.certificate_.residual <= fit.tol
        objectives = [step.objective for step in fit.history_]
        assert all(b <= a * (1 + 1e-12) for a, b in itertools.pairwise(objectives))

    def test_auto_is_no_worse_and_carries_a_bound(self, model, k):
        X, y = data(12, n=40, k=k)
        descent, auto = clone(model).fit(X, y), clone(model).set_params(solver="auto", time_limit=5).fit(X, y)
        assert auto.objective_ <= descent.objective_ * (1 + 1e-9)
        assert auto.lower_bound_ <= auto.objective_ * (1 + 1e-9)
        assert auto.status_ in (Status.CRITICAL, Status.TIME_LIMIT, Status.OPTIMAL)
        assert min(auto.lower_bound_, descent.lower_bound_) >= 0.0
        problem = auto.problem(X, y)
        is_refused = refusal(choose_exact(problem), problem) is not None
        assert (auto.status_ is Status.CRITICAL) == is_refused

    def test_suspects_lie_below_the_cap(self, model, k):
        X, y = data(11, n=60, k=k)
        fit = clone(model).fit(X, y)
        F = fit.decision_function(X)
        if k == 2:
            u = np.where(y == 1, 1, -1) * F
        else:
            own = F[np.arange(60), y]
            F[np.arange(60), y] = -np.inf
            u = own - F.max(axis=1)
        np.testing.assert_array_equal(fit.suspects_, np.flatnonzero(fit._loss(k).is_capped(u)))
        assert not set(fit.suspects_) & set(fit.support_)


@pytest.mark.parametrize("k", [2, 3])
def test_svm_shift_moves_only_the_intercept(k):
    X, y = data(20, k=k)
    shift = np.array([5.0, -3.0, 100.0])
    a, b = SVMClassifier(tol=1e-8).fit(X, y), SVMClassifier(tol=1e-8).fit(X + shift, y)
    np.testing.assert_allclose(a.coef_, b.coef_, atol=2e-3)
    assert a.objective_ == pytest.approx(b.objective_, rel=1e-7)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), C=st.sampled_from([0.01, 1.0, 100.0]))
def test_binary_l2_equals_svc(seed, C):
    X, y = data(seed, n=30)
    ours = SVMClassifier(C=C, tol=1e-8).fit(X, y)
    theirs = SVC(kernel="linear", C=C, tol=1e-9).fit(X, y)
    # Their dual value: the primal one suffers from an intercept averaged over free support vectors.
    dual = np.sum(np.abs(theirs.dual_coef_)) - 0.5 * np.sum(theirs.coef_**2)
    assert ours.objective_ == pytest.approx(dual, rel=1e-6)


def test_linear_kernel_equals_linear_and_precomputed_equals_builtin():
    for k in (2, 3):
        X, y = data(21, k=k)
        linear = SVMClassifier(tol=1e-8).fit(X, y)
        gram = SVMClassifier(kernel="precomputed", tol=1e-8).fit(X @ X.T, y)
        assert gram.objective_ == pytest.approx(linear.objective_, rel=1e-6)
        rbf = SVMClassifier(kernel="rbf", gamma=0.7, tol=1e-8).fit(X, y)
        ready = SVMClassifier(kernel="precomputed", tol=1e-8).fit(rbf_kernel(X, X, gamma=0.7), y)
        own = SVMClassifier(kernel=lambda A, B: rbf_kernel(A, B, gamma=0.7), tol=1e-8).fit(X, y)
        assert ready.objective_ == pytest.approx(rbf.objective_, rel=1e-6)
        assert own.objective_ == pytest.approx(rbf.objective_, rel=1e-6)
        np.testing.assert_allclose(ready.decision_function(rbf_kernel(X[:5], X, gamma=0.7)),
                                   rbf.decision_function(X[:5]), atol=1e-2)  # fmt: skip


def test_truncated_far_out_is_the_hinge():
    X, y = data(22)
    hinge = SVMClassifier(tol=1e-7).fit(X, y)
    far = TruncatedHingeClassifier(s=-1e6, tol=1e-7).fit(X, y)
    assert far.objective_ == pytest.approx(hinge.objective_, rel=1e-6)
    assert far.suspects_.size == 0


def test_psi_two_is_twice_the_truncated_hinge():
    X, y = data(23)
    psi = PsiClassifier(a=2.0, C=0.5, tol=1e-7).fit(X, y)
    truncated = TruncatedHingeClassifier(s=0.0, C=1.0, tol=1e-7).fit(X, y)
    assert psi.objective_ == pytest.approx(truncated.objective_, rel=1e-6)


def test_robust_fit_refuses_flipped_labels():
    rng = np.random.default_rng(5)
    X = np.r_[rng.normal(2, 0.5, (40, 2)), rng.normal(-2, 0.5, (40, 2))]
    y = np.repeat([0, 1], 40)
    y[:4] = 1
    fit = TruncatedHingeClassifier().fit(X, y)
    np.testing.assert_array_equal(fit.suspects_, np.arange(4))


def test_more_starts_are_no_worse():
    X, y = data(24, n=60)
    one = PsiClassifier(a=2.0).fit(X, y)
    many = PsiClassifier(a=2.0, n_starts=8, random_state=1).fit(X, y)
    assert many.objective_ <= one.objective_ * (1 + 1e-9)


def test_class_weight_balanced_equals_weights():
    X, y = data(25)
    counts = np.bincount(y)
    weights = (y.size / (2 * counts))[y]
    a = SVMClassifier(class_weight="balanced").fit(X, y)
    b = SVMClassifier().fit(X, y, sample_weight=weights)
    assert a.objective_ == pytest.approx(b.objective_, rel=1e-9)
    c = SVMClassifier(class_weight={0: 2.0, 1: 1.0}).fit(X, y)
    d = SVMClassifier().fit(X, y, sample_weight=np.where(y == 0, 2.0, 1.0))
    assert c.objective_ == pytest.approx(d.objective_, rel=1e-9)


def test_adaptive_weights_given():
    X, y = data(26)
    pilot = SVMClassifier(tol=1e-9).fit(X, y)
    given_weights = SVMClassifier(penalty="adaptive-l1", adaptive_weights=1 / np.abs(pilot.coef_[0]), tol=1e-8).fit(
        X, y
    )
    own = SVMClassifier(penalty="adaptive-l1", tol=1e-8).fit(X, y)
    assert own.objective_ == pytest.approx(given_weights.objective_, rel=1e-3)
    banned = SVMClassifier(penalty="adaptive-l1", adaptive_weights=[1.0, np.inf, 1.0]).fit(X, y)
    assert banned.coef_[0, 1] == 0
    with pytest.raises(ValueError, match="adaptive_weights"):
        SVMClassifier(penalty="adaptive-l1", adaptive_weights=[1.0, -1.0, 1.0]).fit(X, y)


@pytest.mark.parametrize("penalty", ["l2", "l1", "adaptive-l1"])
def test_path_equals_single_fits(penalty):
    X, y = data(27)
    Cs = [1.0, 0.01, 10.0, 0.1]
    path = regularization_path(SVMClassifier(penalty=penalty, tol=1e-7), X, y, Cs)
    for at, C in enumerate(Cs):
        single = SVMClassifier(C=C, penalty=penalty, tol=1e-7).fit(X, y)
        assert path.objectives[at] == pytest.approx(single.objective_, rel=1e-5)
    assert path.coefs.shape == (4, 1, 3)
    assert np.all(path.gaps <= 1e-7)
    with pytest.raises(ValueError, match="Cs"):
        regularization_path(SVMClassifier(), X, y, [1.0, -1.0])


def test_truncation_path_goes_from_the_hinge_to_psi():
    X, y = data(28, n=60)
    path = truncation_path(TruncatedHingeClassifier(), X, y, [-np.inf, -5.0, -0.5, 0.0])
    assert path.objectives[0] == pytest.approx(SVMClassifier().fit(X, y).objective_, rel=1e-3)
    assert path.objectives[0] > path.objectives[-1]


def test_pandas_pipeline_grid_search_and_pickle():
    X, y = data(29, n=60)
    frame = pd.DataFrame(X, columns=["age", "weight", "dose"])
    labels = pd.Series(np.array(["well", "ill"])[y])
    pipe = make_pipeline(StandardScaler(), SVMClassifier())
    search = GridSearchCV(pipe, {"svmclassifier__C": [0.1, 1.0]}, cv=3).fit(frame, labels)
    again = pickle.loads(pickle.dumps(search.best_estimator_))
    np.testing.assert_array_equal(again.predict(frame), search.predict(frame))
    np.testing.assert_array_equal(SVMClassifier().fit(frame, labels).feature_names_in_, frame.columns)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"C": 0.0}, "C"),
        ({"C": -1.0}, "C"),
        ({"penalty": "l3"}, "penalty"),
        ({"kernel": "cubic"}, "kernel"),
        ({"solver": "magic"}, "solver"),
        ({"kernel": "rbf", "penalty": "l1"}, "penalty='l2' only"),
        ({"gamma": -1.0}, "gamma"),
        ({"tol": 0.0}, "tol"),
        ({"time_limit": -3.0}, "time_limit"),
        ({"class_weight": {0: -1.0, 1: 1.0}}, "class_weight"),
        ({"kernel": "precomputed"}, "square"),
    ],
)
def test_bad_parameters_are_named(change, message):
    X, y = data(30)
    with pytest.raises(ValueError, match=message):
        SVMClassifier(**change).fit(X, y)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda X, y: (np.where(X > 2, np.nan, X), y, None), "NaN"),
        (lambda X, y: (np.where(X > 2, np.inf, X), y, None), "inf"),
        (lambda X, y: (X, np.zeros(40), None), "class"),
        (lambda X, y: (X[:0], y[:0], None), "sample"),
        (lambda X, y: (X[0], y, None), "Reshape|2D"),
        (lambda X, y: (X, y[:-1], None), "inconsistent"),
        (lambda X, y: (X, y, -np.ones(40)), "sample_weight"),
        (lambda X, y: (X, y, np.zeros(40)), "sample_weight"),
        (lambda X, y: (X, y, np.ones(3)), "sample_weight"),
        (lambda X, y: (X, y, (y == 0).astype(float)), "sample_weight"),
        (lambda X, y: (X, X[:, 0], None), "label type|classification"),
    ],
)
def test_bad_data_is_named(spoil, message):
    X, y, weight = spoil(*data(31))
    with pytest.raises(ValueError, match=message):
        SVMClassifier().fit(X, y, weight)


def test_more_classes_than_features_or_barely_samples():
    X = np.array([[0.0], [1.0], [2.0]])
    fit = SVMClassifier(C=100.0).fit(X, ["a", "b", "c"])
    assert fit.status_ is Status.OPTIMAL
    assert fit.coef_.shape == (3, 1)


@pytest.mark.parametrize("penalty", ["l2", "l1"])
@pytest.mark.parametrize(
    "shape",
    ["constant", "duplicated", "wide", "two", "tiny", "huge", "mixed", "contradictory"],
)
def test_extreme_data_is_certified(shape, penalty):
    X, y = data(32)
    if shape == "constant":
        X[:, 0] = 7.0
    elif shape == "duplicated":
        X[:, 1] = X[:, 0]
    elif shape == "wide":
        X = np.random.default_rng(0).normal(size=(40, 500))
    elif shape == "two":
        X, y = X[:2], np.array([0, 1])
    elif shape == "tiny":
        X = X * 1e-8
    elif shape == "huge":
        X = X * 1e8
    elif shape == "mixed":
        X = X * np.array([1e-8, 1.0, 1e8])
    elif shape == "contradictory":
        X, y = np.vstack([X, X]), np.r_[y, 1 - y]
    fit = SVMClassifier(penalty=penalty).fit(X, y)
    assert fit.status_ is Status.OPTIMAL
    assert fit.gap_ <= 1e-4
