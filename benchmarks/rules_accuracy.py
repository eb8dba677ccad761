"""Test error of the rule learners on ten tables. Reads the data sets from the folder named by PSILEARN_DATA.

python benchmarks/rules_accuracy.py [--rows NAME,...] [--sets NAME,...] [--repeats 2] [--most 2000] [--limit 60]
    [--flip 0]

Twofold cross-validation, repeated: mean error in percent, number of rules, CPU seconds per fit. Tables of more than
``--most`` rows are sampled, ``--flip`` is the share of training labels that are flipped, ``--limit`` the seconds that
one fit of ours may take. Every row of the table is the package's default; the rivals ("--rows boosted,rulefit,figs,
ripper,brcg,ebm") run in an environment of their own with imodels, wittgenstein, aix360, cvxpy and interpret-core, on
the same folds.
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

SETS = (
    "pima", "banknote", "german_credit", "bcw", "clvheart", "huheart", "sonar", "vote", "phoneme", "spambase",
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
    return {
        "ada": lambda: make_pipeline(as_numbers(), AdaBoostClassifier(n_estimators=100, random_state=0)),
        "hgb": lambda: make_pipeline(as_numbers(), HistGradientBoostingClassifier(random_state=0)),
        "lp-1": lambda: _ours("LPBoostClassifier", nu="auto", time_limit=limit),
        "lp-2": lambda: _ours("LPBoostClassifier", nu="auto", max_order=2, time_limit=limit),
        "lp-auto": lambda: _ours("LPBoostClassifier", nu="auto", max_order="auto", time_limit=limit),
        "lp-bare": lambda: _ours("LPBoostClassifier", time_limit=limit),
        "lp-short": lambda: _ours("LPBoostClassifier", nu="auto", max_order=2, max_rules=8, time_limit=limit),
        "lp-card": lambda: _ours("LPBoostClassifier", nu="auto", max_rules=8, points=10, time_limit=limit),
        "l0": lambda: _ours("L0BoostClassifier", time_limit=limit),
        "l0-cv": lambda: _ours("L0BoostClassifier", rho="cv", time_limit=limit),
        "slipper": lambda: _ours("SlipperClassifier"),
        "boosted": lambda: _imodels("BoostedRulesClassifier"),
        "rulefit": lambda: _imodels("RuleFitClassifier"),
        "figs": lambda: _imodels("FIGSClassifier"),
        "ripper": _Ripper,
        "brcg": _Brcg,
        "ebm": _ebm,
    }


def _ours(name: str, **options: Any) -> Any:
    from psilearn.estimators import rules

    return getattr(rules, name)(**options)


def _imodels(name: str) -> Any:
    import imodels

    return make_pipeline(as_numbers(), getattr(imodels, name)(random_state=0))


def _ebm() -> Any:
    from interpret.glassbox import ExplainableBoostingClassifier

    return ExplainableBoostingClassifier(random_state=0, n_jobs=1)


class _Ripper:
    """RIPPER of wittgenstein."""

    def fit(self, X: Any, y: np.ndarray) -> _Ripper:
        from wittgenstein import RIPPER

        self.encoder = as_numbers().fit(X)
        self.model = RIPPER(random_state=0)
        self.model.fit(self.encoder.transform(X), y, pos_class=1)
        self.n_rules_ = len(self.model.ruleset_.rules)
        return self

    def score(self, X: Any, y: np.ndarray) -> float:
        return float(np.mean(np.asarray(self.model.predict(self.encoder.transform(X))) == y))


class _Brcg:
    """BRCG of AIX360, with its own binarizer."""

    def fit(self, X: Any, y: np.ndarray) -> _Brcg:
        import pandas as pd
        from aix360.algorithms.rbm import BooleanRuleCG, FeatureBinarizer

        self.frame = lambda T: pd.DataFrame(self.encoder.transform(T)).add_prefix("x")
        self.encoder = as_numbers().fit(X)
        self.binarizer = FeatureBinarizer(negations=True).fit(self.frame(X))
        self.model = BooleanRuleCG(silent=True)
        self.model.fit(self.binarizer.transform(self.frame(X)), pd.Series(y))
        self.n_rules_ = len(self.model.explain()["rules"])
        return self

    def score(self, X: Any, y: np.ndarray) -> float:
        return float(np.mean(self.model.predict(self.binarizer.transform(self.frame(X))) == y))


def load(name: str, most: int) -> tuple[Any, np.ndarray]:
    """A table and its labels, sampled down to ``most`` rows."""
    X, y = load_dataset(name, return_X_y=True, as_frame=True)
    kept = np.random.default_rng(0).permutation(len(y))[:most]
    labels = y.to_numpy()
    return X.iloc[kept].reset_index(drop=True), (labels == np.unique(labels)[-1]).astype(int)[kept]


def cross_validate(make: Callable[[], Any], X: Any, y: np.ndarray, repeats: int, flip: float) -> tuple[float, ...]:
    """Mean test error, mean number of rules (0 for the others), CPU seconds per fit."""
    errors, rules, start = [], [], time.process_time()
    for train, test in RepeatedStratifiedKFold(n_splits=2, n_repeats=repeats, random_state=0).split(X, y):
        given = y[train].copy()
        flipped = np.random.default_rng(1).random(given.size) < flip
        given[flipped] = 1 - given[flipped]
        model = make().fit(X.iloc[train], given)
        errors.append(1.0 - model.score(X.iloc[test], y[test]))
        rules.append(getattr(model, "n_rules_", 0))
    return float(np.mean(errors)), float(np.mean(rules)), (time.process_time() - start) / len(errors)


def main() -> None:
    """Print a line per model as it is done."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", default="ada,hgb,lp-1,lp-auto,lp-short,lp-card,l0,slipper")
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--most", type=int, default=2000)
    parser.add_argument("--limit", type=float, default=60.0)
    parser.add_argument("--flip", type=float, default=0.0)
    asked = parser.parse_args()
    warnings.filterwarnings("ignore")
    names, known = asked.sets.split(","), models(asked.limit)
    print("error in %, rules, seconds".ljust(28) + " ".join(name[:9].rjust(15) for name in names), flush=True)
    for row in asked.rows.split(","):
        cells = []
        for name in names:
            try:
                cells.append(cross_validate(known[row], *load(name, asked.most), asked.repeats, asked.flip))
            except Exception as error:  # a rival that fails on a table is told, and the others go on
                print(f"{row} on {name}: {type(error).__name__}: {str(error)[:80]}", flush=True)
                cells.append((np.nan, np.nan, np.nan))
        text = " ".join(f"{100 * error:5.1f} {rules:4.0f} {spent:4.1f}" for error, rules, spent in cells)
        print(f"{row:28s}{text}  mean {100 * np.mean([error for error, _, _ in cells]):.2f}", flush=True)


if __name__ == "__main__":
    main()
