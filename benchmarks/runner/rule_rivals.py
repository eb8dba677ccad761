"""Rule learners and boosted trees of other packages, under one interface: ``fit``, ``score``, and a number of rules."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import AdaBoostClassifier, HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

#: The package that a rival needs.
PACKAGES = {
    "boosted": "imodels", "rulefit": "imodels", "figs": "imodels", "ripper": "wittgenstein", "brcg": "aix360",
    "ebm": "interpret",
}  # fmt: skip


def as_numbers() -> Any:
    """What a user of the other packages does first: medians for gaps, one column per category."""
    categories = make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder(handle_unknown="ignore"))
    return make_column_transformer(
        (categories, make_column_selector(dtype_exclude=np.number)),
        (SimpleImputer(strategy="median"), make_column_selector(dtype_include=np.number)),
        sparse_threshold=0,
    )


def ada(stumps: int) -> Any:
    return make_pipeline(as_numbers(), AdaBoostClassifier(n_estimators=stumps, random_state=0))


def hgb() -> Any:
    return make_pipeline(as_numbers(), HistGradientBoostingClassifier(random_state=0))


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


#: Every rival at its defaults.
RIVALS: dict[str, Callable[[], Any]] = {
    "ada": lambda: ada(100),
    "hgb": hgb,
    "boosted": lambda: _imodels("BoostedRulesClassifier"),
    "rulefit": lambda: _imodels("RuleFitClassifier"),
    "figs": lambda: _imodels("FIGSClassifier"),
    "ripper": _Ripper,
    "brcg": _Brcg,
    "ebm": _ebm,
}


def missing() -> list[str]:
    """The packages that are not installed."""
    return sorted({package for package in PACKAGES.values() if not find_spec(package)})


def is_here(rival: str) -> bool:
    """Whether the package of a rival is installed."""
    return rival not in PACKAGES or find_spec(PACKAGES[rival]) is not None


def size_of(model: Any) -> float:
    """Rules with a weight: stumps of an ensemble, for RuleFit its linear terms, too; nan where nothing is counted."""
    last = model[-1] if hasattr(model, "steps") else model
    if hasattr(last, "n_rules_"):
        return float(last.n_rules_)
    if hasattr(last, "estimators_"):
        return float(len(last.estimators_))
    return float(np.count_nonzero(last.coef)) if hasattr(last, "coef") else np.nan
