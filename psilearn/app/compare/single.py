"""One method on a whole table: tuned, fitted, and wrapped for saving."""

from __future__ import annotations

import time
import warnings
from dataclasses import replace

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ...engines.highs import ProgramError
from ..encoding import TableEncoder
from ..tablemodel import TableModel
from ..tables import TableError, Understanding
from .methods import Context, Method
from .tuning import thin, tune


def fit_table(data: Understanding, method: Method, budget: float = 60.0, seed: int = 0) -> TableModel:
    """Tune and fit a method on all rows of a table.

    Parameters
    ----------
    data : Understanding
        The table, from :func:`psilearn.app.tables.understand`.
    method : Method
        From the registry.
    budget : float
        Seconds for tuning and fitting.
    seed : int
        Of folds and fits.
    """
    start = time.perf_counter()
    y = data.labels.to_numpy(dtype=str)
    rows, _ = thin(y, method.max_rows, seed)
    encoder = TableEncoder(numbers=data.numbers, codes=data.codes).fit(data.frame.iloc[rows])
    table = data.frame.iloc[rows]
    X = encoder.checked(table) if method.on_table else encoder.transform(table)
    groups = None if data.groups is None else data.groups[rows]
    context = Context(budget, seed, np.unique(y[rows]).size, len(rows))
    with warnings.catch_warnings():
        # What a reached limit means is in the fit's certificate, which is shown.
        warnings.simplefilter("ignore", ConvergenceWarning)
        try:
            tuning = tune(method, X, y[rows], 3, context, 0.5 * budget, groups)
            limit = max(0.5, budget - (time.perf_counter() - start))
            classifier = method.build(tuning.best, replace(context, limit=limit)).fit(X, y[rows])
        except (ValueError, ProgramError) as error:
            raise TableError(f"{method.label} could not be fitted: {error}") from None
    share = float(np.mean(classifier.predict(X) != y[rows]))
    about = {"rows": len(rows), method.parameter: tuning.best, "training error": round(share, 4), "seed": seed}
    identifiers = tuple(c.name for c in data.columns if c.kind == "identifier")
    return TableModel(encoder, classifier, data.target, method.key, about, method.on_table, identifiers)
