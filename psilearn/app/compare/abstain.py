"""What every method does if it may abstain at a price: by its own rule, Chow's rule, or a threshold chosen by cost."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.utils import _safe_indexing

from ...evaluation.metrics import chow_rule
from ...evaluation.selective import cheapest_threshold, confidence_of


class Answers(NamedTuple):
    """Share of the test rows answered, share of the answers that are wrong, and cost per row (an error costs 1)."""

    coverage: float
    error: float
    cost: float


def abstentions(model: Any, fresh: Any, X: Any, y: NDArray, X_test: Any, d: float, seed: int) -> NDArray[np.bool_]:
    """Return on which test rows a fitted model abstains when that costs d and an error 1.

    A model with a reject option knows; probabilities go through Chow's rule; scores through :func:`threshold_for`.
    ``fresh`` is the same method, not fitted.
    """
    if hasattr(model, "abstains"):
        return np.asarray(model.abstains(X_test))
    if hasattr(model, "predict_proba"):
        return chow_rule(model.predict_proba(X_test), d)
    return confidence_of(model.decision_function(X_test)) <= threshold_for(fresh, X, y, d, seed)


def threshold_for(fresh: Any, X: Any, y: NDArray, d: float, seed: int) -> float:
    """Return the threshold that costs least on a third of the rows, predicted by a fit on the other two thirds."""
    splitter = StratifiedShuffleSplit(1, test_size=1 / 3, random_state=seed)
    fit, held = next(splitter.split(np.zeros(len(y)), y))
    fresh.fit(_safe_indexing(X, fit), y[fit])
    rows = _safe_indexing(X, held)
    return cheapest_threshold(confidence_of(fresh.decision_function(rows)), fresh.predict(rows) == y[held], d)


def sureness(model: Any, X: Any) -> NDArray[np.float64]:
    """Return how sure a fitted model is of each answer: its largest probability, or its scores' lead if it has none."""
    if hasattr(model, "predict_proba") and not hasattr(model, "abstains"):
        return np.asarray(model.predict_proba(X)).max(axis=1)
    return confidence_of(model.decision_function(X))


def answers(wrong: NDArray[np.bool_], abstained: NDArray[np.bool_], d: float) -> Answers:
    """Summarise answers and abstentions."""
    answered = ~abstained
    error = float(wrong[answered].mean()) if answered.any() else 0.0
    return Answers(float(answered.mean()), error, float(np.where(answered, wrong, d).mean()))
