"""The numbers behind the report's pictures: the plane, the paths along C, risk against coverage, bounds over time."""

from __future__ import annotations

import math
import time
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from ... import RejectClassifier, SVMClassifier, TruncatedHingeClassifier
from ...estimators.path import regularization_path
from ..compare.abstain import answers, sureness
from ..compare.job import Comparison
from ..compare.methods import TRUNCATION
from ..compare.tuning import thin
from ..explore.page import as_plane
from ..words import shown

#: Rows used for pictures that need fits of their own.
PICTURE_ROWS = 2000
PATH_CS = tuple(float(c) for c in np.logspace(-3, 1, 17))
DS = (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45)
MAX_LINES = 8
#: Features beyond which the paths would take longer than the comparison itself.
MAX_PATH_FEATURES = 400


def plane(comparison: Comparison) -> dict[str, Any] | None:
    """Return the training rows in two dimensions, for the explorer; None if there is one feature only."""
    split = comparison.splits[0]
    names = split.encoder.get_feature_names_out()
    return as_plane(split.X_train, split.y_train, names, comparison.settings.seed)


def paths(comparison: Comparison, seconds: float) -> list[dict[str, Any]]:
    """Return coefficients along C of a dense, a sparse and a robust classifier, as far as time allows."""
    split = comparison.splits[0]
    if split.X_train.shape[1] > MAX_PATH_FEATURES:
        return []
    rows = thin(split.y_train, PICTURE_ROWS, comparison.settings.seed)[0]
    X, y = split.X_train[rows], split.y_train[rows]
    names = [shown(n, 40) for n in split.encoder.get_feature_names_out()]
    out = []
    deadline = time.perf_counter() + seconds
    for key, title, machine in (
        ("svm-l1", "SVM, l1", SVMClassifier(penalty="l1")),
        ("svm-l2", "SVM, l2", SVMClassifier()),
        ("truncated", "Truncated hinge", TruncatedHingeClassifier(s=TRUNCATION, solver="dca")),
    ):
        left = deadline - time.perf_counter()
        if left <= 0:
            break
        machine.set_params(time_limit=left / len(PATH_CS), tol=1e-3)
        path = _quiet(regularization_path, machine, X, y, PATH_CS)
        size = np.abs(path.coefs).max(axis=1)
        chosen = np.argsort(-size.max(axis=0), kind="stable")[:MAX_LINES]
        chosen = chosen[size.max(axis=0)[chosen] > 0]
        sign = path.coefs[:, 0, :] if path.coefs.shape[1] == 1 else size
        outcome = comparison.outcome(key)
        out.append(
            {
                "title": title,
                "Cs": list(PATH_CS),
                "lines": [{"name": names[j], "values": _numbers(sign[:, j])} for j in chosen],
                "nonzero": [int(v) for v in np.sum(size > 1e-9 * max(size.max(), 1e-300), axis=1)],
                "chosen": None if outcome is None else outcome.tuning.best.get("C"),
                "signed": path.coefs.shape[1] == 1,
            }
        )
    return out


def risk_coverage(comparison: Comparison, seconds: float) -> list[dict[str, Any]]:
    """Return, for every d, the error among the answered test rows against the share answered, and where d puts us."""
    split = comparison.splits[0]
    rows = thin(split.y_train, PICTURE_ROWS, comparison.settings.seed)[0]
    X, y = split.X_train[rows], split.y_train[rows]
    tuned = comparison.outcome("svm-l2")
    C = 0.1 if tuned is None else float(tuned.tuning.best.get("C", 0.1))
    deadline = time.perf_counter() + seconds
    out = []
    for d in DS:
        left = deadline - time.perf_counter()
        if left <= 0:
            break
        model = _quiet(RejectClassifier(d=d, C=C, penalty="l2", time_limit=left).fit, X, y)
        scores = model.decision_function(split.X_test)
        confidence = np.abs(scores) if scores.ndim == 1 else np.diff(np.sort(scores, axis=1)[:, -2:], axis=1)[:, 0]
        wrong = model.predict(split.X_test) != split.y_test
        answered = ~model.abstains(split.X_test)
        out.append(
            {
                "d": d,
                **_risk_line(confidence, wrong),
                "answered": float(answered.mean()),
                "error": float(wrong[answered].mean()) if answered.any() else 0.0,
                "cost": float(np.where(answered, wrong, d).mean()),
                "C": C,
            }
        )
    return out


def answers_of_all(comparison: Comparison) -> list[dict[str, Any]]:
    """Return risk against coverage of every method that was asked to abstain, on the first split, and its choice."""
    split = comparison.splits[0]
    out = []
    for outcome in comparison.outcomes:
        if outcome.abstained is None:
            continue
        wrong, abstained = outcome.wrong[: len(split.y_test)], outcome.abstained[: len(split.y_test)]
        confidence = sureness(outcome.model, split.testing(outcome.method))
        choice = answers(wrong, abstained, comparison.settings.d)
        line = {"name": outcome.method.label, "answered": choice.coverage, "error": choice.error}
        out.append(line | _risk_line(confidence, wrong))
    return out


def _risk_line(confidence: NDArray[np.float64], wrong: NDArray[np.bool_]) -> dict[str, list[float]]:
    """Return the error among the surest answers against their share."""
    order = np.argsort(-confidence, kind="stable")
    risk = np.cumsum(wrong[order]) / np.arange(1, wrong.size + 1)
    keep = np.unique(np.linspace(0, wrong.size - 1, 120).astype(int))
    return {"coverage": _numbers((keep + 1) / wrong.size), "risk": _numbers(risk[keep])}


def bounds(comparison: Comparison) -> list[dict[str, Any]]:
    """Return the best objective and the best bound over time of every fit that had a gap of 1% or more to close."""
    out = []
    for outcome in comparison.outcomes:
        history = [s for s in getattr(outcome.model, "history_", []) if math.isfinite(s[1])]
        if len(history) < 2 or not any(math.isfinite(s[2]) for s in history):
            continue
        seconds, objective, bound = (np.array(column, dtype=float) for column in zip(*(s[:3] for s in history)))
        bound[~np.isfinite(bound)] = np.nan
        # A bound from above belongs to a problem that is maximised.
        sign = -1.0 if np.nansum(bound - objective) > 0 else 1.0
        objective = sign * np.minimum.accumulate(sign * objective)
        bound = sign * np.fmax.accumulate(sign * bound)
        gaps = sign * (objective - bound)
        # Relaxations that are tightened on the way are not one problem: their bounds pass earlier solutions.
        if np.nanmax(gaps) < 0.01 * abs(objective[-1]) or np.nanmin(gaps) < -1e-3 * abs(objective[-1]):
            continue
        out.append(
            {
                "title": outcome.method.label,
                "seconds": _numbers(seconds),
                "objective": _numbers(objective),
                "bound": [None if math.isnan(v) else v for v in _numbers(bound)],
            }
        )
    return out


def _numbers(values: NDArray) -> list[float]:
    return [float(f"{v:.5g}") for v in np.asarray(values, dtype=float)]


def _quiet(function: Any, *arguments: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return function(*arguments)
