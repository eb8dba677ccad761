"""The numbers behind the report's pictures: the plane, the paths along C, risk against coverage, bounds over time."""

from __future__ import annotations

import math
import time
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from ...estimators.path import regularization_path
from ...evaluation.selective import confidence_of
from ..compare.abstain import answers, sureness
from ..compare.job import Comparison, Outcome
from ..compare.summary import used_features
from ..compare.tuning import thin
from ..explore.page import as_plane
from ..words import shown

#: Rows used for pictures that need fits of their own.
PICTURE_ROWS = 2000
PATH_CS = tuple(float(c) for c in np.logspace(-3, 1, 17))
DS = (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45)
MAX_LINES = 8
#: Linear methods whose coefficients are drawn, if they are in the table.
PATH_KEYS = ("svm-l1", "svm-l2", "truncated", "truncated-adaptive", "reject")
#: Points of a curve of bounds.
MAX_STEPS = 300
#: Features beyond which the paths would take longer than the comparison itself.
MAX_PATH_FEATURES = 400


def plane(comparison: Comparison) -> dict[str, Any] | None:
    """Return the training rows in two dimensions, for the explorer; None if there is one feature only."""
    split = comparison.splits[0]
    names = split.encoder.get_feature_names_out()
    return as_plane(split.X_train, split.y_train, names, comparison.settings.seed)


def paths(comparison: Comparison, seconds: float) -> list[dict[str, Any]]:
    """Return coefficients along C of the linear fits in the table, each with the very fit of the table among them."""
    split = comparison.splits[0]
    if split.X_train.shape[1] > MAX_PATH_FEATURES:
        return []
    names = [shown(n, 40) for n in split.encoder.get_feature_names_out()]
    drawn = [o for key in PATH_KEYS if (o := comparison.outcome(key)) is not None and "C" in o.tuning.best]
    deadline, out = time.perf_counter() + seconds, []
    for outcome in drawn:
        left = deadline - time.perf_counter()
        if left <= 0:
            break
        out.append(_path(comparison, outcome, names, left))
    return out


def _path(comparison: Comparison, outcome: Outcome, names: list[str], seconds: float) -> dict[str, Any]:
    split, chosen = comparison.splits[0], float(outcome.tuning.best["C"])
    rows = thin(split.y_train, PICTURE_ROWS, comparison.settings.seed)[0]
    Cs = np.unique(np.r_[PATH_CS, chosen])
    # C weighs a sum over rows: with fewer rows it must be larger to mean the same.
    worker = clone(outcome.model).set_params(time_limit=seconds / Cs.size, tol=1e-3)
    found = _quiet(
        regularization_path, worker, split.X_train[rows], split.y_train[rows], Cs * outcome.n_train / len(rows)
    )
    coefs, at = found.coefs.copy(), int(np.flatnonzero(Cs == chosen)[0])
    coefs[at] = np.atleast_2d(outcome.model.coef_)
    size = np.abs(coefs).max(axis=1)
    # The features that the fit of the table uses, the largest first.
    lines = np.argsort(-size[at], kind="stable")[:MAX_LINES]
    lines = lines[used_features(coefs[at])[lines]]
    values = coefs[:, 0, :] if coefs.shape[1] == 1 else size
    return {
        "title": outcome.method.label,
        "Cs": Cs.tolist(),
        "lines": [{"name": names[j], "values": _numbers(values[:, j])} for j in lines],
        "nonzero": [int(used_features(c).sum()) for c in coefs],
        "chosen": chosen,
        "signed": coefs.shape[1] == 1,
    }


def risk_coverage(comparison: Comparison, seconds: float) -> list[dict[str, Any]]:
    """Return, for every d, the error among the answered test rows against the share answered, and where d puts us.

    The classifier is the reject option of the table: at its own d the fit is that one, at others the same with that d.
    """
    split = comparison.splits[0]
    table = comparison.outcome("reject") or comparison.outcome("reject-rbf")
    if table is None:
        return []
    rows = thin(split.y_train, PICTURE_ROWS, comparison.settings.seed)[0]
    X, y, C = split.X_train[rows], split.y_train[rows], table.model.C * table.n_train / len(rows)
    deadline = time.perf_counter() + seconds
    out: list[dict[str, Any]] = []
    own = comparison.settings.d
    for d in sorted({*DS, own}, key=lambda d: (d != own, d)):
        left = deadline - time.perf_counter()
        if left <= 0 and out:
            break
        model = table.model if d == own else _quiet(clone(table.model).set_params(d=d, C=C, time_limit=left).fit, X, y)
        confidence = confidence_of(model.decision_function(split.X_test))
        wrong = model.predict(split.X_test) != split.y_test
        choice = answers(wrong, model.abstains(split.X_test), d)
        line = {"d": d, "own": d == own, "answered": choice.coverage, "error": choice.error, "cost": choice.cost}
        out.append(line | _risk_line(confidence, wrong) | {"name": table.method.label})
    return sorted(out, key=lambda line: line["d"])


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
        if len(history) > MAX_STEPS:
            history = [history[i] for i in np.linspace(0, len(history) - 1, MAX_STEPS).astype(int)]
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
