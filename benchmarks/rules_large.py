"""Rule learners on larger tables, and several classes: one program against one for each class.

* **L0-RBoost** on 2000 rows of 200 binary attributes, with the default margin and with that of a cross-validation.
* **LP-Boost** on 100,000 rows of 20 numbers, over all cut points and over 32 of each number.
* **Several classes**: order 2, nu tuned, half of the rows held out, three times; ours is the mean test error in percent
  of the joint program, theirs that of one problem for each class.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split

from benchmarks.runner.data import additive, folder
from benchmarks.runner.rows import Plan, Row, at_most, timed
from psilearn.core.result import Status
from psilearn.datasets import load_dataset
from psilearn.estimators.rules import L0BoostClassifier, LPBoostClassifier

#: Divisions into halves; tables of several classes, and how many of their rows are taken.
SPLITS = 3
CLASSES = {"glass": 214, "vehicle": 846, "segment": 1000, "dna": 1000, "letter": 2000}


def numeric(n: int, d: int = 20, seed: int = 0, noise: float = 0.1) -> tuple[Any, Any]:
    """Numbers whose label is a noisy sum of steps and curves of six features."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    score = X[:, 0] + np.sin(2 * X[:, 1]) + (X[:, 2] > 0.5) - (X[:, 3] < -1) + X[:, 4] * (X[:, 5] > 0)
    return X, (score > np.median(score)) ^ (rng.random(n) < noise)


def proof(name: str, model: Any, X: Any, y: Any, target: float) -> Row:
    """CPU seconds until the program is solved."""
    seconds, _ = timed(lambda: model.fit(X, y))
    goals = at_most(seconds, target, "seconds", model.status_ is Status.OPTIMAL)
    return Row(name, seconds, goals=goals, note=f"{model.status_}, gap {model.gap_:.2g}, {model.n_rules_} rules")


def l0_rows(plan: Plan) -> Iterator[Row]:
    n, d = (300, 40) if plan.quick else (2000, 200)
    A, y = additive(n, d)
    L0BoostClassifier(max_order=2).fit(*additive(100, 15))  # compile
    for order, target in ((1, 5), (2, 10)):
        for rho in ("auto", "cv"):
            if plan.wants(name := f'L0-RBoost, n={n} d={d} K={order}, rho="{rho}"'):
                limit = plan.seconds(120.0, 10.0)
                yield proof(name, L0BoostClassifier(rho=rho, max_order=order, time_limit=limit), A, y, target)


def lp_rows(plan: Plan) -> Iterator[Row]:
    n = 5000 if plan.quick else 100_000
    X, y = numeric(n)
    few = numeric(6000)
    for binarizer, order in (("auto", 2), ("all", 1)):
        LPBoostClassifier(max_order=order, binarizer=binarizer).fit(*few)  # compile
    kinds = ("order 1, all cut points", "all", 1, 10), ("order 1", "auto", 1, 10), ("order 2", "auto", 2, 60)
    for nu in (0.5, 0.35):
        for kind, binarizer, order, target in kinds:
            if plan.wants(name := f"LP-Boost, n={n:.0e}, {kind}, nu={nu}"):
                limit = plan.seconds(60.0, 10.0)
                model = LPBoostClassifier(nu=nu, max_order=order, binarizer=binarizer, time_limit=limit)
                yield proof(name, model, X, y, target)


def classes_rows(plan: Plan) -> Iterator[Row]:
    folder()
    for table in ("glass",) if plan.quick else CLASSES:
        if plan.wants(name := f"{table}, joint, one-vs-rest"):
            yield against_one_vs_rest(name, table, plan.seconds(60.0, 20.0), 1 if plan.quick else SPLITS)


def against_one_vs_rest(name: str, table: str, limit: float, splits: int) -> Row:
    X, y = load_dataset(table, return_X_y=True, as_frame=True)
    rows = np.random.default_rng(0).permutation(len(y))[: CLASSES[table]]
    X, y = X.iloc[rows].reset_index(drop=True), y.to_numpy()[rows]
    figures = np.array([[fitted(X, y, way, seed, limit) for way in ("joint", "one-vs-rest")] for seed in range(splits)])
    (ours, theirs), rules, seconds = figures.mean(axis=0).T
    each = ", ".join(f"{a:.1f} and {b:.1f}" for a, b in figures[:, :, 0])
    note = f"{rules[0]:.0f} and {rules[1]:.0f} rules; {seconds[0]:.1f} and {seconds[1]:.1f} s; {each}"
    return Row(name, ours, theirs, note=note, unit="%")


def fitted(X: Any, y: Any, multiclass: str, seed: int, limit: float) -> tuple[float, int, float]:
    """Test error in percent, rules and seconds of one way on one split into halves."""
    train, test = train_test_split(np.arange(len(y)), test_size=0.5, stratify=y, random_state=seed)
    model = LPBoostClassifier(nu="auto", max_order=2, multiclass=multiclass, time_limit=limit)
    seconds, _ = timed(lambda: model.fit(X.iloc[train], y[train]))
    return 100 * float(np.mean(model.predict(X.iloc[test]) != y[test])), model.n_rules_, seconds


def rows(plan: Plan) -> Iterator[Row]:
    """L0-RBoost, LP-Boost, several classes."""
    yield from l0_rows(plan)
    yield from lp_rows(plan)
    yield from classes_rows(plan)
