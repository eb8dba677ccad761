"""The fits everybody makes, through the public estimators: seconds after compilation, and their objectives.

Meant for comparing two states of the package, because nothing but its public names is used:

    python -m benchmarks everyday --package /path/to/older/checkout --json before.json
    python -m benchmarks everyday --json after.json --against before.json

The note has the objective: the two runs should agree in six digits wherever the fit is proved or deterministic.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer

import psilearn
from benchmarks.runner.data import clouds, standardized
from benchmarks.runner.rows import Plan, Row, timed


def wdbc(n: int = 569) -> tuple[np.ndarray, np.ndarray]:
    X, y = load_breast_cancer(return_X_y=True)
    rows = np.random.default_rng(1).permutation(y.size)[:n]
    return standardized(X[rows]), y[rows]


def words(n: int, p: int) -> tuple[sp.csr_matrix, np.ndarray]:
    """Sparse counts with a sparse linear rule behind the labels, a tenth of them redrawn."""
    rng = np.random.default_rng(0)
    X = sp.random_array((n, p), density=0.01, format="csr", rng=rng)
    score = X @ (rng.normal(size=p) * (rng.random(p) < 0.1))
    y = (score > np.median(score)).astype(int)
    return sp.csr_matrix(X), np.where(rng.random(n) < 0.1, rng.integers(0, 2, n), y)


def binary(n: int, p: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = (rng.random((n, p)) < rng.uniform(0.2, 0.8, p)).astype(int)
    score = X[:, :5] @ rng.normal(size=5) + 1.5 * (X[:, 0] & X[:, 6])
    return X, ((score > np.median(score)) ^ (rng.random(n) < 0.1)).astype(int)


SVM, Truncated, Psi = psilearn.SVMClassifier, psilearn.TruncatedHingeClassifier, psilearn.PsiClassifier
Reject, LPBoost, L0Boost = psilearn.RejectClassifier, psilearn.LPBoostClassifier, psilearn.L0BoostClassifier

#: name -> (estimator, its data)
CASES: dict[str, tuple[Any, Callable[[], Any]]] = {
    "l2, n=20000 p=50": (SVM(), lambda: clouds(20_000, 50, 2)),
    "l1, n=2000 p=50": (SVM(penalty="l1", C=0.01), lambda: clouds(2000, 50, 2)),
    "l1, n=20000 p=20": (SVM(penalty="l1", C=0.01), lambda: clouds(20_000, 20, 2)),
    "l1, CSR 5000 x 400": (SVM(penalty="l1"), lambda: words(5000, 400)),
    "l2, CSR 2000 x 400": (SVM(), lambda: words(2000, 400)),
    "rbf, n=1500": (SVM(kernel="rbf"), lambda: clouds(1500, 10, 2, 0.6)),
    "l2, k=3, n=5000": (SVM(), lambda: clouds(5000, 20, 3)),
    "truncated, n=5000 p=20": (Truncated(solver="dca"), lambda: clouds(5000, 20, 2)),
    "truncated, k=3, n=5000": (Truncated(solver="dca"), lambda: clouds(5000, 20, 3)),
    "truncated rbf, n=1500": (Truncated(kernel="rbf", solver="dca"), lambda: clouds(1500, 10, 2, 0.6)),
    "reject l1, n=2000 p=50": (Reject(C=0.01), lambda: clouds(2000, 50, 2)),
    "reject l2, n=20000 p=50": (Reject(penalty="l2"), lambda: clouds(20_000, 50, 2)),
    "psi a=2, auto, WDBC": (Psi(a=2.0), wdbc),
    "psi a=1, auto, WDBC n=200": (Psi(), lambda: wdbc(200)),
    "psi a=2, mip, WDBC n=200": (Psi(a=2.0, solver="mip"), lambda: wdbc(200)),
    "psi a=1, mip, d=2 n=100": (Psi(solver="mip"), lambda: clouds(100, 2, 2, 1.0)),
    "LP-Boost, order 1": (LPBoost(), lambda: binary(500, 30)),
    "LP-Boost, order 3": (LPBoost(max_order=3), lambda: binary(300, 20)),
    "L0-RBoost, order 1": (L0Boost(), lambda: binary(300, 20)),
}


def rows(plan: Plan) -> Iterator[Row]:
    """Each fit, the best of some runs."""
    for name, (estimator, data) in CASES.items():
        if not plan.wants(name):
            continue
        fit = partial(estimator.fit, *data())
        first, _ = timed(fit)  # compiles
        seconds, model = timed(fit, 2 if first > 1.0 else 7)
        yield Row(name, seconds, note=f"objective {model.objective_:.8g}, gap {model.gap_:.1e}")
