"""Speed of the rule learners on larger tables, and several classes: one program against one for each class.

python benchmarks/rules_large.py [l0] [lp] [classes]    (all without arguments)

CPU seconds of one process, compiled code warmed up first. "classes" reads data sets from the folder named by
PSILEARN_DATA.
"""

from __future__ import annotations

import sys
import time
import warnings

import numpy as np
from sklearn.model_selection import train_test_split

from psilearn.core.result import Status
from psilearn.datasets import load_dataset
from psilearn.estimators.rules import L0BoostClassifier, LPBoostClassifier


def additive(M, N, seed=0, noise=0.1):
    """Binary data whose label is a noisy linear threshold with two interactions."""
    rng = np.random.default_rng(seed)
    A = (rng.random((M, N)) < rng.uniform(0.2, 0.8, N)).astype(np.uint8)
    score = A[:, :10] @ rng.normal(size=10) + 1.5 * (A[:, 0] & A[:, 11]) - 1.5 * (A[:, 3] & A[:, 12])
    return A, np.where((score > np.median(score)) ^ (rng.random(M) < noise), 1, -1)


def numeric(M, d=20, seed=0, noise=0.1):
    """Numbers whose label is a noisy sum of steps and curves of six features."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(M, d))
    score = X[:, 0] + np.sin(2 * X[:, 1]) + (X[:, 2] > 0.5) - (X[:, 3] < -1) + X[:, 4] * (X[:, 5] > 0)
    return X, (score > np.median(score)) ^ (rng.random(M) < noise)


def report(label, make, X, y, target):
    """Fit once and print CPU seconds, status and rules."""
    start = time.process_time()
    model = make().fit(X, y)
    seconds = time.process_time() - start
    is_met = seconds <= target and model.status_ is Status.OPTIMAL
    print(
        f"  {label:44s} {seconds:7.1f} s   target {target:g} s   {'met' if is_met else 'MISSED'}   ({model.status_}, "
        f"gap {model.gap_:.2g}, {model.n_rules_} rules)",
        flush=True,
    )


def l0():
    """L0-RBoost with the default margin and with that of a cross-validation."""
    print("L0-RBoost, M = 2000, N = 200")
    A, y = additive(2000, 200)
    L0BoostClassifier(max_order=2).fit(*additive(100, 15))
    for order, target in ((1, 5), (2, 10)):
        for rho in ("auto", "cv"):
            report(
                f'K = {order}, rho="{rho}"',
                lambda: L0BoostClassifier(rho=rho, max_order=order, time_limit=120),  # noqa: B023
                A,
                y,
                target,
            )


def lp():
    """LP-Boost on many rows, nu given and tuned."""
    print("LP-Boost, M = 100,000, 20 numbers")
    X, y = numeric(100_000)
    LPBoostClassifier(max_order=2).fit(*numeric(200))
    for nu in (0.5, 0.35):
        report(f"order 1, 32 cuts, nu = {nu}", lambda: LPBoostClassifier(nu=nu, time_limit=60), X, y, 10)  # noqa: B023
        report(
            f"order 2, 32 cuts, nu = {nu}",
            lambda: LPBoostClassifier(nu=nu, max_order=2, time_limit=120),  # noqa: B023
            X, y, 60,
        )  # fmt: skip


def classes():
    """Test error and rules of the joint program and of one problem for each class, half of the rows held out."""
    print("Several classes, order 2, nu tuned: test error in %, rules, CPU seconds")
    for name, most in (("glass", 214), ("vehicle", 846), ("segment", 1000), ("dna", 1000), ("letter", 2000)):
        X, y = load_dataset(name, return_X_y=True, as_frame=True)
        rows = np.random.default_rng(0).permutation(len(y))[:most]
        X, y = X.iloc[rows].reset_index(drop=True), y.to_numpy()[rows]
        train, test = train_test_split(np.arange(len(y)), test_size=0.5, stratify=y, random_state=0)
        cells = []
        for multiclass in ("joint", "one-vs-rest"):
            start = time.process_time()
            model = LPBoostClassifier(nu="auto", max_order=2, multiclass=multiclass, time_limit=60)
            model.fit(X.iloc[train], y[train])
            seconds = time.process_time() - start
            error = 100 * np.mean(model.predict(X.iloc[test]) != y[test])
            cells.append(f"{multiclass} {error:5.1f} {model.n_rules_:5d} rules {seconds:6.1f} s")
        print(f"  {name:10s}{'   '.join(cells)}", flush=True)


if __name__ == "__main__":
    warnings.filterwarnings("ignore")
    parts = {f.__name__: f for f in (l0, lp, classes)}
    for chosen in sys.argv[1:] or parts:
        parts[chosen]()
