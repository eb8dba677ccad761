"""Choosing C: few folds, a wide grid, warm starts along C, and a clock."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

from ...estimators.base import MarginEstimator
from ...estimators.path import regularization_path
from .methods import Context, Method
from .splits import folds

#: How many times a later one the first fold is assumed to take.
START_UP = 3.0


@dataclass(frozen=True)
class Tuning:
    """Values tried, their cross-validated errors, and the choice: the smallest error, the smallest value of equals."""

    values: tuple[float, ...]
    errors: tuple[float, ...]
    best: float
    skipped: int
    seconds: float


def thin(y: NDArray, max_rows: int, seed: int) -> tuple[NDArray[np.intp], list[str]]:
    """Return the rows to train on, at most ``max_rows``, and a note if rows were left out."""
    n = len(y)
    if n <= max_rows:
        return np.arange(n), []
    order = np.random.default_rng(seed).permutation(n)
    first = order[np.sort(np.unique(y[order], return_index=True)[1])]
    rest = order[~np.isin(order, first)]
    return np.sort(np.r_[first, rest][:max_rows]), [f"trained on a random {max_rows} of {n} rows"]


def tune(
    method: Method,
    X: Any,
    y: NDArray,
    n_folds: int,
    context: Context,
    seconds: float,
    groups: NDArray[np.intp] | None = None,
) -> Tuning:
    """Choose the value of the method's parameter by cross-validation within about ``seconds`` seconds.

    Whole paths are fitted while time is left, values in an order that spreads over the grid; the values every fold has
    seen compete. With no time at all the middle of the grid is taken.
    """
    start = time.perf_counter()
    middle = method.grid[len(method.grid) // 2]
    if len(method.grid) == 1 or np.unique(y, return_counts=True)[1].min() < 2:
        return Tuning((), (), middle, 0, 0.0)
    build = method.tuned_by or method.build
    parts = folds(y, groups, n_folds, context.seed)
    values = _spread(method.grid)
    errors: dict[float, float] = {}
    context = replace(context, limit=max(0.1, seconds / (len(parts) * len(values))))
    estimator = build(middle, context)
    if isinstance(estimator, MarginEstimator):
        errors = _along_paths(estimator, X, y, parts, values, start + seconds)
    else:
        for value in values:
            if errors and time.perf_counter() - start > seconds:
                break
            errors[value] = _error(build(value, context), X, y, parts)
    tried = tuple(sorted(errors))
    best = min(tried, key=lambda v: (errors[v], v)) if tried else middle
    return Tuning(tried, tuple(errors[v] for v in tried), best, len(values) - len(tried), time.perf_counter() - start)


def _along_paths(
    estimator: MarginEstimator, X: NDArray, y: NDArray, parts: list[Any], values: list[float], deadline: float
) -> dict[float, float]:
    """Errors by warm-started paths; the time of a fold decides how many values the next ones can afford."""
    wrong = {v: 0 for v in values}
    for at, (train, test) in enumerate(parts):
        start = time.perf_counter()
        path = regularization_path(estimator, X[train], y[train], values)
        for value, W, b in zip(path.Cs, path.coefs, path.intercepts):
            F = X[test] @ W.T + b
            codes = (F[:, 0] > 0).astype(int) if F.shape[1] == 1 else F.argmax(axis=1)
            wrong[float(value)] += int(np.sum(path.classes[codes] != y[test]))
        folds_left = len(parts) - at - 1
        if folds_left:
            # The first fold also pays for imports and compiled code being loaded.
            pace = (time.perf_counter() - start) / (START_UP if at == 0 else 1)
            room = int(len(values) * (deadline - time.perf_counter()) / max(pace * folds_left, 1e-9))
            values = values[: max(1, room)]
    return {v: wrong[v] / len(y) for v in values}


def _error(model: Any, X: Any, y: NDArray, parts: list[Any]) -> float:
    wrong = 0
    for train, test in parts:
        model.fit(_safe_indexing(X, train), y[train])
        wrong += int(np.sum(model.predict(_safe_indexing(X, test)) != y[test]))
    return wrong / len(y)


def _spread(grid: tuple[float, ...]) -> list[float]:
    """Order a sorted grid from the middle outwards, so that any beginning of it covers the range."""
    middle = len(grid) // 2
    return sorted(grid, key=lambda v: abs(grid.index(v) - middle))
