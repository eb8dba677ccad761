"""Paths along C: no fit on a path is worse than the same fit made alone."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.preprocessing import StandardScaler

from psilearn import (
    PsiClassifier,
    RejectClassifier,
    SVMClassifier,
    TruncatedHingeClassifier,
    regularization_path,
    truncation_path,
)

from oracles.samples import noisy_sample

CS = [0.001, 0.01, 0.1, 1.0, 10.0]
ROBUST = [
    PsiClassifier(a=2.0),
    PsiClassifier(a=1.0, max_iter=50),
    TruncatedHingeClassifier(),
    TruncatedHingeClassifier(penalty="adaptive-l1"),
    TruncatedHingeClassifier(penalty="scad"),
    TruncatedHingeClassifier(kernel="rbf"),
    RejectClassifier(s=-1.0),
]


def assert_never_worse(model, X, y):
    path = regularization_path(model, X, y, CS[::-1])
    alone = [clone(model).set_params(C=C).fit(X, y) for C in path.Cs]
    for at, fit in enumerate(alone):
        assert path.objectives[at] <= fit.objective_ * (1 + 1e-12)
        assert path.lower_bounds[at] <= path.objectives[at]


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("model", ROBUST, ids=repr)
def test_a_path_is_never_worse_than_fits_made_alone(model, k):
    assert_never_worse(model, *noisy_sample(np.random.default_rng(k), 60, 4, k))


@pytest.mark.parametrize("model", [PsiClassifier(a=2.0), TruncatedHingeClassifier()], ids=repr)
@pytest.mark.parametrize("load", [load_breast_cancer, load_iris], ids=lambda f: f.__name__)
def test_real_data_are_not_stuck_at_zero(model, load):
    """At C = 0.001 the optimum is f = 0; the d.c. algorithm never leaves it, so it must not be the only start."""
    bunch = load()
    X, y = StandardScaler().fit_transform(bunch.data), bunch.target
    assert_never_worse(model, X, y)
    last = regularization_path(model, X, y, CS).coefs[-1]
    assert np.abs(last).max() > 0.01


def test_a_truncation_path_needs_a_truncation_point():
    X, y = noisy_sample(np.random.default_rng(0), 30, 2, 2)
    with pytest.raises(ValueError, match="SVMClassifier has no parameter s"):
        truncation_path(SVMClassifier(), X, y, [0.0, -1.0])
