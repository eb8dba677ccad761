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
        rules = self.model.ruleset_.rules
        self.n_rules_, self.n_conditions_ = len(rules), sum(len(rule.conds) for rule in rules)
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
        self.model = BooleanRuleCG(silent=True, solver="CLARABEL")
        self.model.fit(self.binarizer.transform(self.frame(X)), pd.Series(y))
        rules = self.model.explain()["rules"]
        self.n_rules_, self.n_conditions_ = len(rules), sum(rule.count(" AND ") + 1 for rule in rules)
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


def _last(model: Any) -> Any:
    return model[-1] if hasattr(model, "steps") else model


def size_of(model: Any) -> float:
    """Rules with a weight: stumps of an ensemble, for RuleFit its linear terms, too; nan where nothing is counted."""
    last = _last(model)
    if hasattr(last, "n_rules_"):
        return float(last.n_rules_)
    if hasattr(last, "estimators_"):
        return float(len(last.estimators_))
    return float(np.count_nonzero(last.coef)) if hasattr(last, "coef") else np.nan


def conditions_of(model: Any) -> float:
    """Conditions of all rules with a weight: of trees the splits, one for a linear term; nan where none are counted."""
    last = _last(model)
    if isinstance(getattr(last, "rules_", None), list) and hasattr(last, "weights_"):
        return float(sum(rule.order for rule in last.rules_))
    if hasattr(last, "n_conditions_"):
        return float(last.n_conditions_)
    if hasattr(last, "coef"):
        used = pd.DataFrame(last._get_rules(exclude_zero_coef=True))["rule"]
        return float(sum(text.count(" and ") + 1 for text in used))
    if hasattr(last, "trees_"):
        return float(last.complexity_)
    if hasattr(last, "estimators_"):
        return float(sum(tree.tree_.node_count // 2 for tree in last.estimators_))
    return np.nan
