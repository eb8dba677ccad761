"""Test error of the rule learners on eleven tables. Reads the data sets from the folder named by PSILEARN_DATA.

python benchmarks/rules_accuracy.py [--rows NAME,...] [--sets NAME,...] [--repeats 2] [--most 2000] [--limit 15]
    [--flip 0]

Twofold cross-validation, repeated: mean error in percent, number of rules, seconds per fit. Tables of more than
``--most`` rows are sampled, ``--flip`` is the share of training labels that are flipped, ``--limit`` the seconds that
one fit may take.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import AdaBoostClassifier, HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.model_selection import RepeatedStratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from psilearn.datasets import load_dataset
from psilearn.estimators.rules import L0BoostClassifier, LPBoostClassifier, SlipperClassifier

SETS = (
    "pima", "banknote", "german_credit", "bcw", "clvheart", "huheart", "sonar", "ionosphere", "vote", "phoneme",
    "spambase",
)  # fmt: skip


def as_numbers() -> Any:
    """What a user of the other packages does first: medians for gaps, one column per category."""
    categories = make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder(handle_unknown="ignore"))
    return make_column_transformer(
        (categories, make_column_selector(dtype_exclude=np.number)),
        (SimpleImputer(strategy="median"), make_column_selector(dtype_include=np.number)),
        sparse_threshold=0,
    )


def models(limit: float) -> dict[str, Callable[[], Any]]:
    """Every row of the table by its name."""
    rows: dict[str, Callable[[], Any]] = {
        "ada": lambda: make_pipeline(as_numbers(), AdaBoostClassifier(n_estimators=100, random_state=0)),
        "hgb": lambda: make_pipeline(as_numbers(), HistGradientBoostingClassifier(random_state=0)),
        "slipper": lambda: SlipperClassifier(),
        "lp-support": lambda: LPBoostClassifier(binarizer="support", time_limit=limit),
        "l0-support": lambda: L0BoostClassifier(binarizer="support", time_limit=limit),
    }
    for K in (1, 2, 3):
        for nu in (0.1, 0.2, 0.3, 0.5, "auto"):
            rows[f"lp-{K}-{nu}"] = lambda K=K, nu=nu: LPBoostClassifier(nu=nu, max_order=K, time_limit=limit)
        rows[f"l0-{K}"] = lambda K=K: L0BoostClassifier(max_order=K, time_limit=limit)
    return rows


def load(name: str, most: int) -> tuple[Any, np.ndarray]:
    """A table and its labels, sampled down to ``most`` rows."""
    X, y = load_dataset(name, return_X_y=True, as_frame=True)
    kept = np.random.default_rng(0).permutation(len(y))[:most]
    return X.iloc[kept], y.to_numpy()[kept]


def cross_validate(make: Callable[[], Any], X: Any, y: np.ndarray, repeats: int, flip: float) -> tuple[float, ...]:
    """Mean test error, mean number of rules (0 for the others), seconds per fit."""
    errors, rules, start = [], [], time.perf_counter()
    for train, test in RepeatedStratifiedKFold(n_splits=2, n_repeats=repeats, random_state=0).split(X, y):
        given = y[train].copy()
        flipped = np.random.default_rng(1).random(given.size) < flip
        given[flipped] = 1 - given[flipped]
        model = make().fit(X.iloc[train], given)
        errors.append(1.0 - model.score(X.iloc[test], y[test]))
        rules.append(getattr(model, "n_rules_", 0))
    return float(np.mean(errors)), float(np.mean(rules)), (time.perf_counter() - start) / len(errors)


def main() -> None:
    """Print a line per model as it is done."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", default="ada,hgb,lp-support,lp-1-0.5,lp-1-auto,l0-support,l0-1")
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--most", type=int, default=2000)
    parser.add_argument("--limit", type=float, default=15.0)
    parser.add_argument("--flip", type=float, default=0.0)
    asked = parser.parse_args()
    warnings.filterwarnings("ignore")
    names, known = asked.sets.split(","), models(asked.limit)
    print("error in %, rules, seconds".ljust(28) + " ".join(name[:9].rjust(15) for name in names), flush=True)
    for row in asked.rows.split(","):
        cells = [cross_validate(known[row], *load(name, asked.most), asked.repeats, asked.flip) for name in names]
        text = " ".join(f"{100 * error:5.1f} {rules:4.0f} {spent:4.1f}" for error, rules, spent in cells)
        print(f"{row:28s}{text}  mean {100 * np.mean([error for error, _, _ in cells]):.2f}", flush=True)


if __name__ == "__main__":
    main()
