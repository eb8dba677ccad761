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


#: Kinds of two-class data that have made exact searches stumble.
KINDS = ("plain", "ties", "duplicates", "contradictions", "collinear", "lonely class", "scale", "weights")


def two_class_problem(rng, n, d, loss, kind="plain", norm=2, C=None, noise=1.0, log_C=(-1.0, 2.0)):
    """Gaussian features, the first of which says the label but for noise; ``rng`` is a generator or a seed.

    C is drawn between powers of ten if it is not given. For the kind "scale" (features times 1e4) it is made smaller
    so that the problem stays the same.
    """
    rng = np.random.default_rng(rng)
    X = rng.normal(size=(n, d))
    y = (X[:, 0] + noise * rng.normal(size=n) > 0).astype(np.intp)
    y[:2] = 0, 1
    weights = rng.uniform(0.2, 3.0, n) if kind == "weights" else np.ones(n)
    if kind in ("ties", "duplicates", "contradictions"):
        X = np.round(X)
    if kind in ("duplicates", "contradictions"):
        X[n // 2 :] = X[: n - n // 2]
    if kind == "contradictions":
        y[n // 2 :] = 1 - y[: n - n // 2]
    if kind == "collinear":
        X = rng.normal(size=(n, 1)) * rng.normal(size=d) + rng.normal(size=d)
    if kind == "lonely class":
        y[:], y[1] = 0, 1
    C = 10.0 ** rng.uniform(*log_C) if C is None else C
    size = 1e4 if kind == "scale" else 1.0
    penalty = Penalty(l2=1.0) if norm == 2 else Penalty(l1=1.0)
    return Problem(LinearSpace(size * X), y, 2, loss, penalty, C / size**norm, weights)
