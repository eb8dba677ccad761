"""The convex machine of linear functions with penalty l2, against scikit-learn and an independent QP."""

import numpy as np
import pytest
from sklearn.svm import SVC

from psilearn.losses import Hinge
from psilearn.penalties import Penalty
from psilearn.problem import Problem
from psilearn.result import Status
from psilearn.solvers import newton
from psilearn.solvers.base import Options
from psilearn.spaces import LinearSpace


def gaussian(seed, n, d, k, noise=0.15):
    """Gaussian features, labels by random linear scores, a share of them redrawn."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    y = (X @ rng.standard_normal((d, k)) + rng.standard_normal(k)).argmax(axis=1)
    flipped = rng.random(n) < noise
    y[flipped] = rng.integers(0, k, flipped.sum())
    y[:k] = np.arange(k)
    return X, y


def problem_of(X, y, C=1.0, loss=None, weights=None, tilt=None, k=None):
    weights = np.ones(len(y)) if weights is None else weights
    k = int(y.max()) + 1 if k is None else k
    return Problem(LinearSpace(X), np.asarray(y, dtype=np.intp), k, loss or Hinge(), Penalty(l2=1.0), C, weights, tilt)


@pytest.mark.parametrize("C", [1e-3, 1.0, 100.0])
@pytest.mark.parametrize("seed", range(4))
def test_two_classes_equal_svc(seed, C):
    X, y = gaussian(seed, 120, 4, 2)
    weights = np.random.default_rng(seed).uniform(0.5, 2.0, 120)
    problem = problem_of(X, y, C, weights=weights)
    result = newton.solve(problem, Options(tol=1e-8))
    svc = SVC(kernel="linear", C=C, tol=1e-8).fit(X, y, sample_weight=weights)
    alpha = np.abs(svc.dual_coef_).sum()
    truth = alpha - 0.5 * np.sum(svc.coef_**2)  # SVC minimises its dual; its intercept is a mere average
    assert result.status is Status.OPTIMAL
    assert result.objective == pytest.approx(truth, rel=1e-6)
    assert result.lower_bound <= problem.value(svc.coef_, svc.intercept_)
