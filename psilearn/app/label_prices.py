"""The price of believing a label: how much worse must every fit be that does not give the sample up?"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from ..core.problem import Problem
from ..core.result import Certificate, Claim, Result, go_on_after
from ..core.solving import Clock
from ..estimators.base import MarginEstimator
from ..estimators.encode import Sample
from ..exact.label_prices import LabelCertificate, price_labels

if TYPE_CHECKING:
    import pandas as pd

#: Part of the time limit that an estimator which is not fitted yet may spend on its fit.
FIT_SHARE = 0.3


def certify_labels(
    estimator: MarginEstimator,
    X: Any,
    y: ArrayLike,
    suspects: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    time_limit: float | None = None,
) -> pd.DataFrame:
    """Prove what it costs to believe the labels that a robust fit has given up.

    A suspect is a sample whose margin lies where the loss is flat at its cap. For each one the problem is solved again,
    exactly, over the functions that give its margin at least the truncation point. If all of them cost at least
    ``1 + price`` times the fit's objective, the label is wrong in every fit within ``price`` of it: that is proved, not
    estimated.

    Parameters
    ----------
    estimator : MarginEstimator
        A two-class classifier with a truncated loss, for instance :class:`psilearn.TruncatedHingeClassifier` or
        :class:`psilearn.PsiClassifier`. If it is fitted, its function is used; otherwise a clone is fitted.
    X, y : array-like
        The data, as for ``fit``.
    suspects : array-like of int, optional
        Rows to price; by default all samples that the fit has given up.
    sample_weight : array-like, optional
        Weights, as for ``fit``.
    time_limit : float, optional
        Seconds for all suspects together, and the fit if there is one to make; None for as long as it takes.

    Returns
    -------
    pandas.DataFrame
        One row per suspect, the most expensive belief first: ``index`` (row of X), ``given`` (its label), ``price``
        (relative loss of believing it, a proved lower bound; inf if no function can) and ``proved`` (whether the search
        was finished, so that the price cannot be raised any more).

    Examples
    --------
    >>> import numpy as np
    >>> from psilearn import TruncatedHingeClassifier, certify_labels
    >>> X = np.array([[-3.0], [-2.0], [-1.5], [1.5], [2.0], [3.0], [2.5]])
    >>> y = [0, 0, 0, 1, 1, 1, 0]
    >>> prices = certify_labels(TruncatedHingeClassifier(s=0.0, C=10.0), X, y)
    >>> prices["index"].tolist(), prices["proved"].tolist()
    ([6], [True])
    >>> bool(prices["price"][0] > 1.0)
    True
    """
    if not isinstance(estimator, MarginEstimator):
        raise ValueError(
            f"certify_labels takes margin classifiers with a truncated loss, got {type(estimator).__name__}."
        )
    if time_limit is not None and not time_limit > 0:
        raise ValueError(f"time_limit must be a positive number of seconds or None, got {time_limit!r}.")
    clock = Clock(np.inf if time_limit is None else float(time_limit))
    model = _fitted(estimator, X, y, sample_weight, clock)
    go_on_after(model.status_ if model is not estimator else None)
    worker, problem, sample = model._state(X, y, sample_weight)
    if problem.n_classes != 2:
        raise ValueError(f"certify_labels takes two classes, y holds {problem.n_classes}.")
    result = _result(model, problem, sample)
    options = replace(worker._options(), time_limit=clock.left)
    rows = _rows(suspects, sample, problem, result)
    prices = price_labels(problem, result, options, np.unique(sample.position[rows]).tolist())
    return _frame(prices, rows, sample, np.asarray(y))


def _fitted(estimator: MarginEstimator, X: Any, y: Any, sample_weight: Any, clock: Clock) -> MarginEstimator:
    """Return the estimator if it is fitted, else a fitted clone."""
    if hasattr(estimator, "certificate_"):
        check_is_fitted(estimator)
        return estimator
    model = clone(estimator)
    if np.isfinite(clock.limit):
        model.time_limit = min(model.time_limit or np.inf, FIT_SHARE * clock.limit)
    return model.fit(X, y, sample_weight)


def _result(model: MarginEstimator, problem: Problem, sample: Sample) -> Result:
    """Return the fitted function with its objective on the data at hand."""
    W = model._solver_coefficients(problem, sample)
    if W is None or W.shape != (problem.n_functions, problem.space.dim):
        raise ValueError("The estimator was fitted on other data; hand in those of the fit, or an unfitted estimator.")
    objective = problem.value(W, model.intercept_)
    return Result(W, model.intercept_, model.status_, Certificate(Claim.NONE, objective))


def _rows(suspects: ArrayLike | None, sample: Sample, problem: Problem, result: Result) -> NDArray[np.intp]:
    """Return the rows to price, as indices of the given sample."""
    if suspects is None:
        return sample.given(problem.loss.is_capped(problem.margins(result.coef, result.intercept)))
    rows = np.asarray(suspects)
    if rows.ndim != 1 or (rows.size and (rows.dtype.kind not in "iu" or rows.min() < 0)):
        raise ValueError("suspects must be a list of row numbers of X, counted from 0.")
    if rows.size and rows.max() >= sample.position.size:
        raise ValueError(f"suspects holds row {rows.max()}, but X has {sample.position.size} rows.")
    rows = rows.astype(np.intp)
    if np.any(sample.position[rows] < 0):
        raise ValueError("suspects holds rows of weight zero, which are no part of the problem.")
    return rows


def _frame(prices: list[LabelCertificate], rows: NDArray[np.intp], sample: Sample, labels: NDArray) -> pd.DataFrame:
    import pandas as pd

    of = {certificate.index: certificate for certificate in prices}
    mine = [of[position] for position in sample.position[rows].tolist()]
    columns = {
        "index": rows,
        "given": labels[rows],
        "price": np.array([certificate.excess for certificate in mine], dtype=np.float64),
        "proved": np.array([certificate.proved for certificate in mine], dtype=bool),
    }
    return pd.DataFrame(columns).sort_values(["price", "index"], ascending=[False, True], ignore_index=True)
