"""Low-rank kernels: the kernel's problem restricted to the functions that landmarks span."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics.pairwise import laplacian_kernel
from sklearn.svm import SVC

import psilearn
from psilearn import (
    MarginClassifier,
    PsiClassifier,
    RejectClassifier,
    SVMClassifier,
    TruncatedHingeClassifier,
    regularization_path,
)
from psilearn.core.spaces import LowRank
from psilearn.core.spaces.gram import Kernel
from psilearn.core.spaces.low_rank import automatic_rank

MODELS = [
    SVMClassifier(),
    TruncatedHingeClassifier(),
    PsiClassifier(a=2.0),
    RejectClassifier(penalty="l2", s=-0.5),
    MarginClassifier(),
]


def rings(n=300, seed=3, flips=0.1):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    y = (np.linalg.norm(X, axis=1) > 1.5).astype(int)
    return X, np.where(rng.random(n) < flips, 1 - y, y)


@pytest.mark.parametrize("model", MODELS, ids=lambda m: type(m).__name__)
@pytest.mark.parametrize("kernel", ["rbf", "poly", laplacian_kernel], ids=["rbf", "poly", "callable"])
def test_every_claim_holds_in_the_restricted_problem(model, kernel):
    X, y = rings()
    model.set_params(kernel=kernel, n_components=25, degree=2).fit(X, y)
    problem, F = model.problem(X, y), model.decision_function(X)
    assert problem.space.kind == "dense"
    assert problem.space.dim <= 25
    assert model.verify(X, y).ok
    assert not model.verify(X + 0.01, y).ok
    scores = problem.space.scores(model.component_coef_, model.intercept_)[:, 0]
    np.testing.assert_allclose(np.sort(scores), np.sort(F), atol=1e-7)
    assert model.objective_ == pytest.approx(problem.value(model.component_coef_, model.intercept_))
    beta, landmarks = model.dual_coef_, model.support_vectors_
    norm = (beta @ model.kernel_.matrix(landmarks, landmarks) @ beta.T).item()
    assert norm == pytest.approx(float(np.sum(model.component_coef_**2)), rel=1e-5)


@pytest.mark.parametrize("kernel", ["rbf", "poly"])
def test_all_samples_as_landmarks_give_the_kernel_itself(kernel):
    X, y = rings(150)
    y[:30] = 2
    exact = SVMClassifier(kernel=kernel, tol=1e-7).fit(X, y)
    same = SVMClassifier(kernel=kernel, n_components=150, tol=1e-7).fit(X, y)
    fewer = SVMClassifier(kernel=kernel, n_components=10, tol=1e-7).fit(X, y)
    assert same.objective_ == pytest.approx(exact.objective_, rel=1e-5)
    assert fewer.objective_ > exact.lower_bound_
    np.testing.assert_allclose(same.decision_function(X), exact.decision_function(X), atol=0.02)


def test_features_of_landmarks_have_their_kernel_values():
    X, _ = rings(40)
    low_rank = LowRank.of(Kernel("rbf", 0.7), X, 12, np.ones(40), 0)
    Z = low_rank.space(low_rank.landmarks).X
    np.testing.assert_allclose(Z @ Z.T, low_rank.kernel.matrix(low_rank.landmarks, low_rank.landmarks), atol=1e-7)


def test_as_accurate_as_the_exact_kernel_of_another_library():
    X, y = rings(2000, flips=0.0)
    train, test = slice(0, 1000), slice(1000, 2000)
    exact = SVC(C=1.0).fit(X[train], y[train]).score(X[test], y[test])
    ours = SVMClassifier(kernel="rbf", n_components=60).fit(X[train], y[train]).score(X[test], y[test])
    assert ours > exact - 0.01 > 0.9


def test_saved_refitted_and_repeated(tmp_path):
    X, y = rings()
    model = TruncatedHingeClassifier(kernel="rbf", n_components=20, random_state=np.random.RandomState(1)).fit(X, y)
    assert model.verify(X, y).ok  # by the landmarks of the fit
    model.random_state = None
    psilearn.save(model, tmp_path / "model")
    loaded = psilearn.load(tmp_path / "model")
    assert np.array_equal(loaded.decision_function(X), model.decision_function(X))
    assert loaded.verify(X, y).ok
    first, second = (SVMClassifier(kernel="rbf", n_components=20, random_state=7).fit(X, y) for _ in range(2))
    assert np.array_equal(first.dual_coef_, second.dual_coef_)
    first.set_params(n_components=None).fit(X, y)
    assert first.low_rank_ is None
    assert first.verify(X, y).ok
    assert first.dual_support_.size > 20


def test_sparse_rows_weights_and_paths():
    X, y = rings()
    dense = SVMClassifier(kernel="rbf", n_components=20, gamma=0.3).fit(X, y)
    sparse = SVMClassifier(kernel="rbf", n_components=20, gamma=0.3).fit(sp.csr_matrix(X), y)
    np.testing.assert_allclose(sparse.decision_function(sp.csr_matrix(X)), dense.decision_function(X), atol=1e-6)
    weight = np.r_[np.zeros(50), np.ones(250)]
    weighted = SVMClassifier(kernel="rbf", n_components=20).fit(X, y, weight)
    without = SVMClassifier(kernel="rbf", n_components=20).fit(X[50:], y[50:])
    np.testing.assert_allclose(weighted.decision_function(X), without.decision_function(X), atol=1e-6)
    path = regularization_path(TruncatedHingeClassifier(kernel="rbf", n_components=20), X, y, [0.1, 1.0, 10.0])
    for C, objective in zip(path.Cs, path.objectives):
        alone = TruncatedHingeClassifier(kernel="rbf", n_components=20, C=C).fit(X, y)
        assert objective <= alone.objective_ * (1 + 1e-6)


def test_auto_is_exact_while_that_is_cheap():
    X, y = rings(60)
    assert SVMClassifier(kernel="rbf", n_components="auto").fit(X, y).low_rank_ is None
    assert [automatic_rank(n) for n in (4000, 4001, 10_000, 10**6, 10**8)] == [None, 316, 500, 500, 21]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_components": 0, "kernel": "rbf"}, "n_components"),
        ({"n_components": 5, "kernel": "precomputed"}, "kernel='precomputed' takes none"),
        ({"n_components": 5, "kernel": lambda x, z: 1.0}, "all pairs"),
        ({"kernel": lambda x, z: 1.0}, "all pairs"),
        ({"n_components": 5, "kernel": "rbf", "penalty": "l1"}, "penalty='l2' only"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(options, message):
    with pytest.raises(ValueError, match=message):
        SVMClassifier(**options).fit(np.eye(6), [0, 1] * 3)


def test_no_proof_file_is_written(tmp_path):
    with pytest.raises(ValueError, match="exact kernels"):
        psilearn.prove(SVMClassifier(kernel="rbf", n_components=5), *rings(60), tmp_path / "proof")


def test_the_linear_kernel_has_no_landmarks():
    X, y = rings(60)
    with pytest.warns(UserWarning, match="no effect with kernel='linear'"):
        model = SVMClassifier(n_components=5).fit(X, y)
    assert np.array_equal(model.coef_, SVMClassifier().fit(X, y).coef_)
