"""Binarization: cut points, indicators of categories, and a small set of them that still tells the classes apart.

Boros, Hammer, Ibaraki and Kogan, Logical analysis of numerical data (1997).
"""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, check_X_y, validate_data

from .attributes import Attribute, Table, is_missing

#: Entries of the largest pair matrix built for a support set; beyond it, pairs are sampled.
_MAX_ENTRIES = 100_000_000
_MAX_PAIRS = 300_000
_MAX_CANDIDATES = 20_000


def read_table(estimator: BaseEstimator, X: Any, reset: bool) -> tuple[Table, list[str]]:
    """Validate X (array or DataFrame), split it into typed columns, and remember their names in the estimator."""
    is_frame = hasattr(X, "iloc") and hasattr(X, "columns")
    if is_frame:
        validate_data(estimator, X, reset=reset, skip_check_array=True)
    else:
        X = validate_data(estimator, X, reset=reset, dtype=None, ensure_all_finite=False)
    if 0 in X.shape:
        raise ValueError(f"Found array with shape {X.shape} while a minimum of 1 sample and 1 feature(s) is required.")
    names = getattr(estimator, "feature_names_in_", X.columns if is_frame else [f"x{j}" for j in range(X.shape[1])])
    return as_table(X), [str(name) for name in names]


def as_table(X: Any) -> Table:
    """Split an array or DataFrame into columns: floats with NaN where it is numeric, else objects with None."""
    if hasattr(X, "iloc"):
        return [_typed_series(X.iloc[:, j]) for j in range(X.shape[1])]
    X = np.asarray(X)
    return [_typed(X[:, j]) for j in range(X.shape[1])]


def _typed_series(series: Any) -> NDArray:
    if getattr(series.dtype, "kind", "O") in "iuf" and not hasattr(series.dtype, "categories"):
        return _typed(series.to_numpy(dtype=np.float64, na_value=np.nan))
    values = series.astype(object)
    return _typed(values.where(series.notna(), None).to_numpy(dtype=object))


def _typed(column: NDArray) -> NDArray:
    """Floats with NaN, or objects with None; an object column that holds numbers only is numeric."""
    if column.dtype.kind in "biuf":
        column = column.astype(np.float64)
        if np.isinf(column).any():
            raise ValueError("Input X contains infinity or a value too large for dtype('float64').")
        return column
    values = [None if value is None or value != value else value for value in column.tolist()]
    kinds = {type(value) for value in values if value is not None}
    if any(not issubclass(kind, str | numbers.Real) for kind in kinds):
        raise TypeError("Cannot read X: argument must be a string or a real number.")
    if kinds and all(kind is not bool and issubclass(kind, numbers.Real) for kind in kinds):
        return _typed(np.array([np.nan if value is None else float(value) for value in values]))
    return np.array(values, dtype=object)


def cut_points(x: NDArray, y: NDArray, max_cuts: int | None = None) -> NDArray[np.float64]:
    """Midpoints between consecutive values of x not all of whose observations share one class.

    With ``max_cuts`` half of as many are those nearest to equally spaced quantiles of x, where the observations are,
    and the others are spread evenly over the list of the remaining ones, where the class changes.
    """
    known = ~np.isnan(x)
    values, place = np.unique(x[known], return_inverse=True)
    if values.size < 2:
        return np.empty(0)
    low, high = np.full(values.size, np.inf), np.full(values.size, -np.inf)
    np.minimum.at(low, place, y[known])
    np.maximum.at(high, place, y[known])
    useful = np.minimum(low[:-1], low[1:]) != np.maximum(high[:-1], high[1:])
    middle = values[:-1] + (values[1:] - values[:-1]) / 2
    # in the last bits the midpoint may round up to the larger value, which "x > cut" would then exclude
    cuts = np.where(middle < values[1:], middle, values[:-1])[useful]
    if max_cuts is not None and cuts.size > max_cuts:
        n = max_cuts // 2
        wanted = np.quantile(x[known], (np.arange(n) + 0.5) / n) if n else np.empty(0)
        chosen = np.unique(_nearest(cuts, wanted))
        rest = np.setdiff1d(np.arange(cuts.size), chosen)
        spread = np.linspace(0, rest.size - 1, max_cuts - chosen.size).round().astype(np.intp)
        cuts = cuts[np.union1d(chosen, rest[spread])]
    return cuts


def median_of(x: NDArray) -> float:
    """The median of what is known, 0 if nothing is: what a missing number counts as."""
    return float(np.nanmedian(x)) if not np.isnan(x).all() else 0.0


def _nearest(cuts: NDArray, wanted: NDArray) -> NDArray[np.intp]:
    """Places of the cuts (sorted) nearest to the wanted values."""
    right = np.clip(np.searchsorted(cuts, wanted), 1, cuts.size - 1)
    return right - (wanted - cuts[right - 1] <= cuts[right] - wanted)


def separating(A: NDArray, y: NDArray, limit: int, seed: int) -> NDArray[np.uint8]:
    """0/1 matrix (pairs of observations of different classes x attributes): which attribute tells which pair apart.

    Equal rows count once, pairs no attribute tells apart are left out, and above ``limit`` pairs a sample is taken.
    """
    rows = np.unique(np.column_stack([A, y]), axis=0)
    A, y = rows[:, :-1].astype(np.uint8), rows[:, -1]
    n_pairs = (y.size**2 - int((np.unique(y, return_counts=True)[1] ** 2).sum())) // 2
    if n_pairs <= limit:
        i, j = np.nonzero(np.triu(y[:, None] != y))
    else:
        i, j = check_random_state(seed).randint(0, y.size, (2, limit))
        i, j = i[y[i] != y[j]], j[y[i] != y[j]]
    differ = A[i] ^ A[j]
    return differ[differ.any(axis=1)]


def greedy_support(differ: NDArray[np.uint8], multiplicity: int) -> NDArray[np.intp]:
    """Attributes chosen greedily until every pair is told apart ``multiplicity`` times, or as often as it can be."""
    need = np.minimum(differ.sum(axis=1, dtype=np.int64), multiplicity)
    gain = differ.sum(axis=0, dtype=np.int64)
    chosen: list[int] = []
    while (need > 0).any():
        j = int(np.argmax(gain))
        chosen.append(j)
        gain[j] = -1
        need[differ[:, j] == 1] -= 1
        satisfied = (need == 0) & (differ[:, j] == 1)
        gain[gain >= 0] -= differ[satisfied].sum(axis=0, dtype=np.int64)[gain >= 0]
    return np.array(sorted(chosen), dtype=np.intp)


def exact_support(differ: NDArray[np.uint8], multiplicity: int, time_limit: float) -> NDArray[np.intp]:
    """A smallest such set of attributes, by set covering in HiGHS (the best found within the time limit)."""
    from ..engines.highs import HighsSession

    rows = np.unique(differ, axis=0)
    session = HighsSession()
    session.add_columns(np.ones(differ.shape[1]), 0.0, 1.0, integer=True)
    need = np.minimum(rows.sum(axis=1, dtype=np.int64), multiplicity)
    session.add_rows(sp.csr_matrix(rows.astype(np.float64)), need.astype(np.float64), np.inf)
    start = np.zeros(differ.shape[1])
    start[greedy_support(differ, multiplicity)] = 1.0
    session.set_start(start)
    return np.flatnonzero(session.solve(time_limit).x > 0.5)


class LogicalBinarizer(TransformerMixin, BaseEstimator):
    """Turn features into readable yes/no attributes.

    Numbers are cut at the midpoints between consecutive values whose observations do not all share one class,
    categories give one indicator each. A support set, a small set of attributes that still tells apart all
    observations of different classes that can be told apart, is then chosen among them.

    Parameters
    ----------
    support : {"greedy", "exact", None}, default="greedy"
        How the support set is chosen: greedily, as small as possible (set covering), or not at all.
    multiplicity : int, default=1
        How many attributes of the support set must tell each pair apart (or as many as there are).
    max_cuts : int, "auto" or None, default="auto"
        Cut points per feature at most, half of them near quantiles; "auto" allows about 20 000 over all features.
    categorical_features : list of names or indices, optional
        Features to treat as categories whatever their type. Otherwise strings, booleans and pandas categories are.
    missing : bool, default=False
        Whether "x is missing" is an attribute of a feature with missing values, too.
    time_limit : float, default=60
        Seconds for ``support="exact"``.
    random_state : int, default=0
        Seed of the sample of pairs that large data are judged by.

    Attributes
    ----------
    attributes_ : list of Attribute
        The chosen attributes, in the order of the features.
    n_candidates_ : int
        Number of attributes before the choice.
    n_features_in_ : int
        Number of features seen in ``fit``.
    feature_names_in_ : ndarray of str
        Their names, if ``X`` had some.

    See Also
    --------
    LPBoostClassifier : Votes of rules over these attributes.

    Examples
    --------
    >>> import numpy as np
    >>> from psilearn import LogicalBinarizer
    >>> X, y = np.array([[1.0], [2.0], [5.0], [6.0]]), [0, 0, 1, 1]
    >>> binarizer = LogicalBinarizer().fit(X, y)
    >>> len(binarizer.attributes_)
    1
    """

    def __init__(
        self,
        support: str | None = "greedy",
        multiplicity: int = 1,
        max_cuts: int | str | None = "auto",
        categorical_features: Any = None,
        missing: bool = False,
        time_limit: float = 60.0,
        random_state: Any = 0,
    ) -> None:
        self.support = support
        self.multiplicity = multiplicity
        self.max_cuts = max_cuts
        self.categorical_features = categorical_features
        self.missing = missing
        self.time_limit = time_limit
        self.random_state = random_state

    def fit(self, X: Any, y: ArrayLike) -> LogicalBinarizer:
        """Find the attributes of X for classes y.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n, d)
            Observations.
        y : array-like of shape (n,)
            Their labels.

        Returns
        -------
        LogicalBinarizer
            The fitted transformer itself.
        """
        table, names = read_table(self, X, reset=True)
        labels = check_X_y(np.zeros((len(table[0]), 1)), y, dtype=None)[1]
        self.attributes_ = self.find(table, names, np.unique(labels, return_inverse=True)[1])
        return self

    def find(self, table: Table, names: list[str], labels: NDArray) -> list[Attribute]:
        """Return the attributes of typed columns.

        Parameters
        ----------
        table : list of ndarray
            The columns.
        names : list of str
            Their names.
        labels : ndarray of shape (n,)
            Classes coded 0, 1, ...

        Returns
        -------
        list of Attribute
            The chosen attributes.
        """
        if self.support not in ("greedy", "exact", None):
            raise ValueError(f"support must be 'greedy', 'exact' or None, got {self.support!r}.")
        candidates = [
            attribute for j, (column, name) in enumerate(zip(table, names))
            for attribute in self.candidates(j, column, name, labels, len(table))
        ]  # fmt: skip
        self.n_candidates_ = len(candidates)
        return self._chosen(candidates, table, labels)

    def candidates(self, j: int, column: NDArray, name: str, labels: NDArray, n_features: int) -> list[Attribute]:
        """Return all attributes of one feature.

        Parameters
        ----------
        j : int
            Its index.
        column : ndarray of shape (n,)
            Its values.
        name : str
            Its name.
        labels : ndarray of shape (n,)
            Classes coded 0, 1, ...
        n_features : int
            How many features there are.

        Returns
        -------
        list of Attribute
            Attributes before the choice of a support set.
        """
        forced = set(self.categorical_features or ())
        found = []
        if column.dtype == object or j in forced or name in forced:
            present = [value for value in column.tolist() if value is not None and value == value]
            values = sorted(set(present), key=lambda value: (str(type(value)), value))
            found = [Attribute(j, name, "equals", value) for value in values]
        else:
            limit = max(8, _MAX_CANDIDATES // n_features) if isinstance(self.max_cuts, str) else self.max_cuts
            fill = median_of(column)
            found = [Attribute(j, name, "above", float(t), fill) for t in cut_points(column, labels, limit)]
        if self.missing and 0 < np.count_nonzero(is_missing(column)) < column.size:
            found.append(Attribute(j, name, "missing"))
        return found

    def _chosen(self, candidates: list[Attribute], table: Table, labels: NDArray) -> list[Attribute]:
        if self.support is None or not candidates:
            return candidates
        A = np.column_stack([attribute.holds(table) for attribute in candidates])
        limit = max(1, min(_MAX_PAIRS, _MAX_ENTRIES // len(candidates)))
        differ = separating(A, labels, limit, self.random_state)
        if self.support == "greedy":
            chosen = greedy_support(differ, self.multiplicity)
        else:
            chosen = exact_support(differ, self.multiplicity, self.time_limit)
        return [candidates[k] for k in chosen]

    def transform(self, X: Any) -> NDArray[np.uint8]:
        """Return the answers of all attributes.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n, d)
            Observations.

        Returns
        -------
        ndarray of shape (n, number of attributes)
            0 or 1.
        """
        check_is_fitted(self)
        table, _ = read_table(self, X, reset=False)
        return self._transform_table(table)

    def _transform_table(self, table: Table) -> NDArray[np.uint8]:
        answers = [attribute.holds(table) for attribute in self.attributes_]
        return np.array(answers, dtype=np.uint8).reshape(len(answers), len(table[0])).T

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray:
        """Return the attributes as readable conditions.

        Parameters
        ----------
        input_features : array-like of str, optional
            Not used: the names are those seen in ``fit``.

        Returns
        -------
        ndarray of str
            One text for each attribute.
        """
        check_is_fitted(self)
        return np.array([attribute.text() for attribute in self.attributes_], dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.transformer_tags.preserves_dtype = []
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        return tags
