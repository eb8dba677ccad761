"""Support vector machines against LIBLINEAR and LIBSVM.

Ours: free intercept, relative duality gap at most 1e-3, certified. LIBLINEAR: hinge dual at its default tolerance and
number of iterations for two classes, Crammer-Singer with tol=0.1 for k classes; it penalises the intercept. LIBSVM
(SVC): its default tolerance, one-vs-one if k > 2. Linear data: (a) Gaussian features, labels by noisy linear scores,
10% redrawn; (b) make_classification with 20 informative features and flip_y=0.1. Kernel data, 10% of the labels random:
make_classification, d = 15, 8 informative features, two clusters per class; Gaussian quantiles, d = 10; two moons
and three features of noise; rbf with gamma = "scale", kernel values included.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from sklearn.datasets import make_classification, make_gaussian_quantiles, make_moons
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

from benchmarks.runner.data import L2, linear_problem
from benchmarks.runner.rows import Plan, Row, at_most, timed
from psilearn.convex import newton
from psilearn.convex.smo import solver as smo
from psilearn.core.losses import Hinge
from psilearn.core.problem import Problem
from psilearn.core.solving import Options
from psilearn.core.spaces.gram import Kernel, scale_of

OPTIONS = Options(tol=1e-3)
#: Largest ratio we aim at, by number of samples; k = 3 by C, against one-vs-one.
KERNEL_TARGETS, THREE_TARGETS = {5000: 1.5, 20_000: 1.0}, {1.0: 3.0, 10.0: 6.0}


def gaussian(n, d, k, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    noise = 0.3 * np.sqrt(d) * rng.standard_normal((n, k))
    y = (X @ rng.standard_normal((d, k)) + noise).argmax(axis=1)
    redrawn = rng.random(n) < 0.1
    y[redrawn] = rng.integers(0, k, redrawn.sum())
    return X, y


def informative(n, d, k, seed=0):
    return make_classification(n, d, n_informative=20, n_classes=k, flip_y=0.1, random_state=seed)


def rival(k, C):
    if k == 2:
        return LinearSVC(loss="hinge", dual=True, C=C, random_state=0)
    return LinearSVC(multi_class="crammer_singer", tol=0.1, C=C, random_state=0)


def linear_rows(plan: Plan) -> Iterator[Row]:
    n = 20_000 if plan.quick else 100_000
    for k, Cs in ((2, (0.01, 0.1, 1.0)), (5, (0.1, 1.0))):
        for make in (gaussian, informative):
            wanted = [(C, name) for C in Cs if plan.wants(name := f"linear, {make.__name__}, k={k} C={C:g}")]
            if not wanted:
                continue
            X, y = make(n, 50, k)
            X = StandardScaler().fit_transform(X)
            newton.solve(linear_problem(X[:500], y[:500], Hinge(), L2, 1.0, k), OPTIONS)  # compile
            for C, name in wanted:
                yield linear_row(name, X, y, k, C)


def linear_row(name, X, y, k, C) -> Row:
    ours, result = timed(lambda: newton.solve(linear_problem(X, y, Hinge(), L2, C, k), OPTIONS))
    theirs, _ = timed(lambda: rival(k, C).fit(X, y))
    checks = {"gap at most 1e-3": result.gap <= 1e-3}
    return Row(name, ours, theirs, at_most(ours / theirs, 1.0), checks, f"against LIBLINEAR; n={len(y)}")


def fit_kernel(X, y, k, C):
    space = Kernel("rbf", scale_of("scale", X)).space(X)
    return smo.solve(Problem(space, y, k, Hinge(), L2, C, np.ones(len(y))), OPTIONS)


def clusters(n, k=2):
    return make_classification(n, 15, n_informative=8, n_classes=k, n_clusters_per_class=2, flip_y=0.1, random_state=0)


def rings(n):
    X, y = make_gaussian_quantiles(n_samples=n, n_features=10, n_classes=2, random_state=0)
    return X, flipped(y)


def moons(n):
    X, y = make_moons(n, noise=0.3, random_state=0)
    return np.c_[X, 0.3 * np.random.default_rng(0).normal(size=(n, 3))], flipped(y)


def flipped(y):
    return np.where(np.random.default_rng(1).random(y.size) < 0.1, 1 - y, y)


def kernel_rows(plan: Plan) -> Iterator[Row]:
    for n in (2000,) if plan.quick else KERNEL_TARGETS:
        for make in (clusters, rings, moons):
            for C in (1.0, 10.0):
                if plan.wants(name := f"rbf, {make.__name__}, n={n} C={C:g}"):
                    yield kernel_row(name, *make(n), 2, C, KERNEL_TARGETS.get(n, 1.5))
    for C, target in THREE_TARGETS.items():
        if plan.wants(name := f"rbf, clusters, k=3 C={C:g}"):
            yield kernel_row(name, *clusters(2000 if plan.quick else 5000, 3), 3, C, target)


def kernel_row(name, X, y, k, C, target) -> Row:
    fit_kernel(X[:4200], y[:4200], k, C)  # compile, also what large samples take
    repeats = 3 if len(y) <= 5000 else 1
    theirs, _ = timed(lambda: SVC(C=C).fit(X, y), repeats)
    ours, result = timed(lambda: fit_kernel(X, y, k, C), repeats)
    checks = {"gap at most 1e-3": result.gap <= 1e-3}
    return Row(name, ours, theirs, at_most(ours / theirs, target), checks, f"against SVC; n={len(y)}")


def rows(plan: Plan) -> Iterator[Row]:
    """Linear and kernel classifiers, two and more classes."""
    yield from linear_rows(plan)
    yield from kernel_rows(plan)
    name = "linear, a million samples, ours alone"
    if not plan.quick and plan.wants(name):
        X, y = gaussian(10**6, 50, 2)
        ours, result = timed(lambda: newton.solve(linear_problem(X, y, Hinge(), L2, 1.0), OPTIONS))
        yield Row(name, ours, checks={"gap at most 1e-3": result.gap <= 1e-3})
