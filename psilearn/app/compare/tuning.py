"""Tuning and fitting one method on training rows: the library's tuner, and how many rows there is time for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import _safe_indexing

from ... import TunedClassifier
from .abstain import threshold_for
from .costs import Plan
from .methods import Context, Method
from .splits import folds

#: A time limit is for machines that are much slower than the plan thinks, so that it hardly ever decides.
SLACK = 20.0
LEAST_SECONDS = 20.0


@dataclass(frozen=True)
class Tuning:
    """What was tried and chosen.

    Attributes
    ----------
    best : mapping
        The parameters chosen, empty if nothing was tuned.
    error : float or None
        Their cross-validated error within the training rows.
    tried : tuple of (mapping, float)
        All candidates with their cross-validated errors; nan where time was over.
    """

    best: Mapping[str, Any] = field(default_factory=dict)
    error: float | None = None
    tried: tuple[tuple[Mapping[str, Any], float], ...] = ()

    def __str__(self) -> str:
        return in_words(self.best)


def thin(y: NDArray, max_rows: int, seed: int) -> tuple[NDArray[np.intp], list[str]]:
    """Return the rows to train on, at most ``max_rows``, and a note if rows were left out."""
    n = len(y)
    if n <= max_rows:
        return np.arange(n), []
    order = np.random.default_rng(seed).permutation(n)
    first = order[np.sort(np.unique(y[order], return_index=True)[1])]
    rest = order[~np.isin(order, first)]
    return np.sort(np.r_[first, rest][:max_rows]), [f"trained on a random {max_rows} of {n} rows"]


def tuned_fit(
    method: Method, X: Any, y: NDArray, groups: NDArray[np.intp] | None, context: Context, plan: Plan, n_folds: int
) -> tuple[Any, Tuning, list[str]]:
    """Return the fitted classifier, how it was tuned, and notes on what was cut short.

    Parameters
    ----------
    method : Method
        What is fitted.
    X, y, groups : array-like
        Training rows as the method reads them, their labels, and which belong together.
    context : Context
        What it is built for.
    plan : Plan
        Rows for tuning.
    n_folds : int
        Folds of the tuning.
    """
    limit = SLACK * plan.seconds if context.limit is None else min(SLACK * plan.seconds, context.limit)
    context = replace(context, limit=max(LEAST_SECONDS, limit))
    model = method.build(context)
    grid = method.grid_for(context)
    if not grid or np.unique(y, return_counts=True)[1].min() < 2:
        model.fit(X, y)
        return model, _own_choice(model), []
    rows, notes = thin(y, plan.tune_rows, context.seed)
    inner = (method.tuned_by or method.build)(context)
    parts = folds(y[rows], None if groups is None else groups[rows], n_folds, context.seed)
    tuner = TunedClassifier(inner, grid, cv=parts, scoring="accuracy").fit(_safe_indexing(X, rows), y[rows])
    tuning = _tuning(tuner)
    if skipped := sum(np.isnan(error) for _, error in tuning.tried):
        notes = [*notes, f"time allowed {len(tuning.tried) - skipped} of {len(tuning.tried)} candidates in tuning"]
    if method.tuned_by is None and len(rows) == len(y):
        model = tuner.best_estimator_
    else:
        notes = [note.replace("trained", "tuned") for note in notes]
        model.set_params(**tuner.best_params_).fit(X, y)
    if hasattr(model, "abstains") and model.d != context.d:
        model.threshold_ = threshold_for(clone(model), X, y, context.d, context.seed)
    return model, tuning, notes


def _own_choice(model: Any) -> Tuning:
    """What a classifier has chosen by a cross-validation of its own."""
    if getattr(model, "rho", None) == "cv":
        return Tuning({"rho": float(model.rho_)})
    error = getattr(model, "held_out_error_", np.nan)
    if np.isnan(error):
        return Tuning()
    best = {"max_order": int(model.max_order_[0]), "nu": float(model.nu_[0])}
    return Tuning(best, float(error), ((best, float(error)),))


def _tuning(tuner: Any) -> Tuning:
    errors = 1.0 - np.asarray(tuner.cv_results_["mean_test_score"])
    error = 1.0 - tuner.best_score_
    tried = tuple(zip(tuner.cv_results_["params"], errors.tolist()))
    return Tuning(tuner.best_params_, None if np.isnan(error) else float(error), tried)


def in_words(params: Mapping[str, Any]) -> str:
    """Return parameters as "name = value, ..."."""
    return ", ".join(f"{name} = {v:.3g}" if isinstance(v, float) else f"{name} = {v}" for name, v in params.items())
