"""One method on a whole table: tuned, fitted, and wrapped for saving."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ...engines.highs import ProgramError
from ..encoding import TableEncoder
from ..tablemodel import TableModel
from ..tables import TableError, Understanding
from .costs import plan
from .methods import Context, Method
from .tuning import thin, tuned_fit

FOLDS = 5


def fit_table(data: Understanding, methods: Sequence[Method], budget: float = 60.0, seed: int = 0) -> TableModel:
    """Tune methods on a table, fit the one with the smallest held-out error on all rows, and wrap it.

    Parameters
    ----------
    data : Understanding
        The table, from :func:`psilearn.app.tables.understand`.
    methods : sequence of Method
        From the registry, the simplest first: of equals the earlier one is taken.
    budget : float
        Seconds for tuning and fitting.
    seed : int
        Of folds and fits.
    """
    y = data.labels.to_numpy(dtype=str)
    encoder = TableEncoder(numbers=data.numbers, codes=data.codes).fit(data.frame)
    X = encoder.transform(data.frame)
    classes = int(np.unique(y).size)
    plans = plan([m.cost for m in methods], len(y), X.shape[1], classes, budget)
    fits: list[tuple[Method, Any, Any, np.ndarray]] = []
    with warnings.catch_warnings():
        # What a reached limit means is in the fit's certificate, which is shown.
        warnings.simplefilter("ignore", ConvergenceWarning)
        for method, planned in zip(methods, plans):
            rows, _ = thin(y, planned.fit_rows, seed)
            table = encoder.checked(data.frame.iloc[rows]) if method.on_table else X[rows]
            groups = None if data.groups is None else data.groups[rows]
            context = Context(budget, seed, classes, len(rows), X.shape[1], budget=budget)
            try:
                classifier, tuning, _ = tuned_fit(method, table, y[rows], groups, context, planned, FOLDS)
            except (ValueError, ProgramError, MemoryError) as error:
                raise TableError(f"{method.label} could not be fitted: {error}") from None
            fits.append((method, classifier, tuning, rows))
    method, classifier, tuning, rows = min(fits, key=lambda fit: 1.0 if fit[2].error is None else fit[2].error)
    about: dict[str, Any] = {"rows": len(rows)} | dict(tuning.best)
    if tuning.error is not None:
        about["held-out error"] = round(tuning.error, 4)
        about["error of the commonest class"] = round(1.0 - max(data.class_counts.values()) / len(y), 4)
    identifiers = tuple(c.name for c in data.columns if c.kind == "identifier")
    return TableModel(
        encoder, classifier, data.target, method.key, about | {"seed": seed}, method.on_table, identifiers
    )
