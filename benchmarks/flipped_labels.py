"""Does robustness pay? Test error on breast cancer data with 10% of the training labels flipped.

Standardised on the training part, C chosen by 5-fold cross-validation on the noisy labels; the test labels are clean.
Ours is the mean test error of the robust fit, theirs that of the SVM, in percent; the note has the standard error of
the paired difference.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from sklearn.model_selection import GridSearchCV, StratifiedKFold

from benchmarks.runner.data import flipped_cancer
from benchmarks.runner.rows import Plan, Row
from psilearn import PsiClassifier, SVMClassifier, TruncatedHingeClassifier

METHODS = {
    "SVM": SVMClassifier(),
    "truncated hinge": TruncatedHingeClassifier(solver="dca"),
    "psi, a = 2": PsiClassifier(a=2.0, solver="dca"),
}
GRID = {"C": [0.01, 0.03, 0.1, 0.3, 1.0]}


def test_errors(seed: int) -> list[float]:
    X_train, X_test, y_train, y_test = flipped_cancer(seed)
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
