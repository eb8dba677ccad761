"""The formula of a fitted model: what every writer reads, whatever the estimator.

    columns  ->  features  ->  scores  ->  class, and whether the model abstains

A *column* is what a row of the user's table holds, a *feature* is a number made of one column (imputed, standardised,
or 1 where a category has a level). The scores are linear in the features, a sum over kernel values, or a sum of weights
of rules whose conditions are about the columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from ...core.spaces.gram import Kernel
from ...estimators.base import MarginEstimator
from ...estimators.rules.booster import RuleBooster
from ...estimators.rules.votes import TIE
from ...rules.attributes import Attribute
from ...rules.rules import Rule
from ..tablemodel import TableModel

Array = NDArray[np.float64]
MISSING, OTHER = "missing", "other"


class ExportError(ValueError):
    """The model cannot be written in this format; the message says why, and what to do."""


@dataclass(frozen=True)
class Column:
    """A column of the user's table: a number (missing values become ``fill``) or, with levels, a category."""

    name: str
    fill: float = np.nan
    codes: tuple[float, ...] = ()
    levels: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Feature:
    """``(value - mean) / scale`` of a column; with a level, the value is 1 where the column has it and 0 elsewhere."""

    column: int
    level: str | None = None
    mean: float = 0.0
    scale: float = 1.0


@dataclass(frozen=True)
class Linear:
    """Scores ``coef @ features + intercept``."""

    coef: Array
    intercept: Array


@dataclass(frozen=True)
class KernelSum:
    """Scores ``sum_i coef_i k(support_i, features) + intercept``."""

    kernel: Kernel
    support: Array
    coef: Array
    intercept: Array


@dataclass(frozen=True)
class RuleSum:
    """Scores ``intercept + sum of weights[r]`` over the rules r whose questions all have the answer asked for."""

    conditions: tuple[tuple[tuple[Attribute, bool], ...], ...]
    weights: Array
    intercept: Array


@dataclass(frozen=True)
class Formula:
    """A model as numbers.

    Attributes
    ----------
    columns, features : tuples
        What goes in; rules ask about columns and have no features.
    scores : Linear, KernelSum or RuleSum
        One score for two classes (positive means the second), else one per class.
    classes : ndarray
    tie : float
        With two classes, scores up to this size count as ``tie_score``.
    tie_score : float
    threshold : float or None
        The model abstains where the lead of its class is at most this.
    is_matrix : bool
        Whether the model was fitted on an array, not on a table.
    """

    columns: tuple[Column, ...]
    features: tuple[Feature, ...]
    scores: Linear | KernelSum | RuleSum
    classes: NDArray[Any]
    tie: float = 0.0
    tie_score: float = 0.0
    threshold: float | None = None
    is_matrix: bool = True

    @classmethod
    def of(cls, model: Any) -> Formula:
        """Take a fitted classifier of ours, a tuned one, or a model made by ``psilearn fit``, apart."""
        if isinstance(model, TableModel):
            return _of_table_model(model)
        model = getattr(model, "best_estimator_", model)
        if not isinstance(model, MarginEstimator | RuleBooster):
            name = type(model).__name__
            raise ExportError(f"A {name} cannot be exported; export a margin classifier or a rule learner of psilearn.")
        check_is_fitted(model)
        names = getattr(model, "feature_names_in_", [f"x{j}" for j in range(model.n_features_in_)])
        columns = tuple(Column(str(name)) for name in names)
        features = tuple(Feature(j) for j in range(len(columns)))
        return _assembled(model, columns, features, is_matrix=True)


def _of_table_model(model: TableModel) -> Formula:
    encoder, classifier = model.encoder, getattr(model.classifier, "best_estimator_", model.classifier)
    codes = encoder.codes or {}
    of = {
        name: Column(name, float(fill), tuple(codes.get(name, ())))
        for name, fill in zip(encoder.number_columns_, encoder.medians_)
    }
    of |= {name: Column(name, levels=tuple(encoder.levels_[name])) for name in encoder.category_columns_}
    places: list[tuple[str, str | None]] = [(name, None) for name in encoder.number_columns_]
    places += [(name, level) for name in encoder.category_columns_ for level in encoder.levels_[name]]
    order = encoder.columns_ if model.on_table else list(of)
    features = tuple(
        Feature(order.index(name), level, float(mean), float(scale))
        for (name, level), mean, scale in zip(places, encoder.means_, encoder.scales_)
    )
    return _assembled(classifier, tuple(of[name] for name in order), features, is_matrix=False, on_table=model.on_table)


def _assembled(
    model: Any, columns: tuple[Column, ...], features: tuple[Feature, ...], is_matrix: bool, on_table: bool = True
) -> Formula:
    threshold = float(model.threshold_) if hasattr(model, "threshold_") else None
    if isinstance(model, RuleBooster):
        if not (is_matrix or on_table):
            raise ExportError("Rules on an encoded table cannot be exported; fit the rule learner on the table itself.")
        scores = _rule_sum(model)
        larger = TIE if model.class_share_[1] >= model.class_share_[0] else -TIE
        tie, tie_score = (TIE, larger) if model.classes_.size == 2 else (0.0, 0.0)
        return Formula(columns, (), scores, model.classes_, tie, tie_score, threshold, is_matrix)
    intercept = np.atleast_1d(np.asarray(model.intercept_, dtype=np.float64))
    if hasattr(model, "coef_"):
        linear = Linear(np.asarray(model.coef_, dtype=np.float64), intercept)
        return Formula(columns, features, linear, model.classes_, threshold=threshold, is_matrix=is_matrix)
    kernel = model.kernel_
    if callable(kernel.kind) or kernel.kind == "precomputed":
        raise ExportError(
            "A kernel given as a function or a matrix cannot be exported; use 'rbf', 'poly' or 'sigmoid'."
        )
    support = model.support_vectors_
    support = support.toarray() if hasattr(support, "toarray") else np.asarray(support, dtype=np.float64)
    kernels = KernelSum(kernel, support, np.asarray(model.dual_coef_), intercept)
    return Formula(columns, features, kernels, model.classes_, threshold=threshold, is_matrix=is_matrix)


def _rule_sum(model: RuleBooster) -> RuleSum:
    """Votes as sums of weights; what decides ties of several classes is linear in the votes and goes into them."""
    rules = [rule for rule in model.rules_ if isinstance(rule, Rule)]
    if len(rules) < len(model.rules_):
        raise ExportError("Rules of a base learner of your own cannot be exported; leave base_learner at None.")
    many = model.classes_.size > 2
    weights = np.zeros((len(rules), model.classes_.size if many else 1))
    for at, (rule, weight, problem) in enumerate(zip(rules, model.weights_, model.rule_problem_)):
        weights[at, problem] = weight * rule.sign * (1.0 + (1e3 * TIE * rule.reliability if many else 0.0))
    intercept = TIE * np.asarray(model.class_share_) if many else np.zeros(1)
    return RuleSum(tuple(rule.condition.parts for rule in rules), weights, intercept)
