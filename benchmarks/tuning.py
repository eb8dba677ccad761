"""Tuning: TunedClassifier against GridSearchCV around the same classifier, 20 values of C, 5 folds, fit included.

Both choose by held-out accuracy. Around its top the accuracy hardly depends on C, and a handful of samples decides
which C wins; so the check is that our choice is as good in GridSearchCV's own table, and the same C is a goal.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from sklearn.datasets import make_classification
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import StandardScaler

from benchmarks.runner.rows import Plan, Row, at_most, timed
from psilearn import RejectClassifier, SVMClassifier, TruncatedHingeClassifier, TunedClassifier

GRID = {"C": np.logspace(-4, 2, 20).tolist()}
MODELS = {
    "l2": SVMClassifier(),
    "l1": SVMClassifier(penalty="l1"),
    "reject": RejectClassifier(),
    "truncated": TruncatedHingeClassifier(),
}
#: Largest loss of mean held-out accuracy, in GridSearchCV's table, of what we choose.
REGRET = 0.002


def rows(plan: Plan) -> Iterator[Row]:
    """Yield a row for each classifier and number of features."""
    n = 3000 if plan.quick else 10_000
    for d in (20,) if plan.quick else (20, 100):
        X, y = make_classification(n, d, n_informative=d // 4, flip_y=0.1, class_sep=0.7, random_state=3)
        X = StandardScaler().fit_transform(X)
        for label, model in MODELS.items():
            if plan.wants(name := f"{label}, n={n} d={d}"):
                TunedClassifier(model, GRID).fit(X[:500], y[:500])  # compile
                yield row(name, model, X, y)


def row(name, model, X, y) -> Row:
    theirs, grid = timed(lambda: GridSearchCV(model, GRID, cv=5).fit(X, y))
    ours, tuned = timed(lambda: TunedClassifier(model, GRID, cv=5).fit(X, y))
    table = grid.cv_results_["mean_test_score"]
    regret = float(table.max() - table[GRID["C"].index(tuned.best_params_["C"])])
    goals = at_most(ours / theirs, 0.2) | {"same C": tuned.best_params_ == grid.best_params_}
    note = f"C {tuned.best_params_['C']:.3g} and {grid.best_params_['C']:.3g}; regret {regret:.2g}"
    return Row(name, ours, theirs, goals, {f"regret at most {REGRET}": regret <= REGRET}, note)
