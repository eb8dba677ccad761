"""Instances of psi-learning whose size is a parameter, for the benchmarks that search for their global optimum."""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_breast_cancer

from psilearn.core.losses import Psi
from psilearn.core.problem import Problem

from .data import L1, L2, linear_problem, standardized


def disk(n: int, flips: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    radius, angle = np.sqrt(rng.uniform(size=n)), rng.uniform(0, 2 * np.pi, n)
    X = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
    y = (X[:, 0] >= 0).astype(int)
    flipped = rng.choice(n, flips, replace=False)
    y[flipped] = 1 - y[flipped]
    return X, y


def quadratic(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.uniform(-2, 2, (n, 4))
    y = (x[:, 0] ** 2 + x[:, 1] ** 2 > 2.8).astype(int)
    flipped = rng.uniform(size=n) < 0.05
    return np.hstack([x**2, x]), np.where(flipped, 1 - y, y)


def wdbc(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    X, y = load_breast_cancer(return_X_y=True)
    rows = np.random.default_rng(seed).permutation(y.size)[:n]
    X = X[rows]
    return standardized(X), y[rows]


def gaussians(n: int, d: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    X = rng.normal(size=(n, d))
    X[:, :5] += np.where(y[:, None] > 0, 1.0, -1.0)
    flipped = rng.uniform(size=n) < 0.05
    return X, np.where(flipped, 1 - y, y)


LADDERS = {
    "disk, d = 2, C = 1": (lambda n: disk(n, n // 10, seed=1), 1.0, (500, 1000, 2000, 4000, 6000, 8000)),
    "quadratic, d = 8, C = 10": (lambda n: quadratic(n, seed=1), 10.0, (100, 150, 200, 250, 300, 400)),
    "quadratic, d = 8, C = 1": (lambda n: quadratic(n, seed=1), 1.0, (100, 150, 200, 250, 300, 400)),
    "Gaussians, d = 8, C = 1": (lambda n: gaussians(n, 8, seed=1), 1.0, (250, 500, 1000, 1500, 2000)),
    "WDBC, d = 30, C = 0.1": (lambda n: wdbc(n, seed=1), 0.1, (200, 400, 569)),
    "WDBC, d = 30, C = 1": (lambda n: wdbc(n, seed=1), 1.0, (200, 400, 569)),
    "Gaussians, d = 30, C = 1": (lambda n: gaussians(n, 30, seed=1), 1.0, (250, 500, 750, 1000)),
}


def problem_of(X: np.ndarray, y: np.ndarray, C: float, a: float, norm: int) -> Problem:
    return linear_problem(np.ascontiguousarray(X), y, Psi(a), L2 if norm == 2 else L1, C)
