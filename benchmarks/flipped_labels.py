"""Does robustness pay? Test error on breast cancer data with 10% of the training labels flipped.

Standardised on the training part, C chosen by 5-fold cross-validation on the noisy labels; the test labels are clean.
Ours is the mean test error of the robust fit, theirs that of the SVM, in percent; the note has the standard error of
the paired difference.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import GridSearchCV, StratifiedKFold, train_test_split
from sklearn.preprocessing import StandardScaler

from benchmarks.runner.rows import Plan, Row
from psilearn import PsiClassifier, SVMClassifier, TruncatedHingeClassifier

METHODS = {
    "SVM": SVMClassifier(),
    "truncated hinge": TruncatedHingeClassifier(solver="dca"),
    "psi, a = 2": PsiClassifier(a=2.0, solver="dca"),
}
GRID = {"C": [0.01, 0.03, 0.1, 0.3, 1.0]}


def split(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Training and test data; every tenth training label is flipped."""
    X, y = load_breast_cancer(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.3, stratify=y, random_state=seed)
    flipped = np.random.default_rng(seed).choice(y_train.size, y_train.size // 10, replace=False)
    y_train[flipped] = 1 - y_train[flipped]
    scaler = StandardScaler().fit(X_train)
    return scaler.transform(X_train), scaler.transform(X_test), y_train, y_test


def test_errors(seed: int) -> list[float]:
    X_train, X_test, y_train, y_test = split(seed)
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    searches = [GridSearchCV(m, GRID, cv=folds).fit(X_train, y_train) for m in METHODS.values()]
    return [float(np.mean(search.predict(X_test) != y_test)) for search in searches]


def rows(plan: Plan) -> Iterator[Row]:
    """Robust fits against the SVM, over seeds."""
    seeds = 3 if plan.quick else 20
    errors = 100 * np.array([test_errors(seed) for seed in range(seeds)])
    for name, column in list(zip(METHODS, errors.T))[1:]:
        difference = column - errors[:, 0]
        note = f"difference {difference.mean():+.2f} (se {difference.std(ddof=1) / np.sqrt(seeds):.2f}), {seeds} seeds"
        yield Row(name, column.mean(), errors[:, 0].mean(), {"ahead": difference.mean() < 0}, {}, note, unit="%")
