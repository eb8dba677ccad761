"""Samples and problems that many tests use."""

import numpy as np

from psilearn.core.losses import Hinge
from psilearn.core.penalties import Penalty
from psilearn.core.problem import Problem
from psilearn.core.spaces import LinearSpace


def noisy_sample(rng, n, d, k, flip=0.1):
    """Gaussian features, labels by the sectors of the first two, some of them redrawn."""
    X = rng.normal(size=(n, d))
    score = X[:, 0] + 0.3 * rng.normal(size=n)
    y = np.digitize(score, np.quantile(score, np.arange(1, k) / k))
    y = np.where(rng.random(n) < flip, rng.integers(0, k, n), y)
    y[:k] = np.arange(k)
    return X, y.astype(np.intp)


def make_problem(rng, n=30, d=3, k=2, loss=None, penalty=None, C=1.0, weights=None):
    X, y = noisy_sample(rng, n, d, k)
    weights = np.ones(n) if weights is None else weights
    return Problem(LinearSpace(X), y, k, loss or Hinge(), penalty or Penalty(l2=1.0), C, weights)
