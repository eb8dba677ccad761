"""From a table to a matrix: impute, one-hot, standardise, with everything learnt on training rows only."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from .tables import TableError
from .words import listed, shown

#: Levels of a category that get a column of their own; the rest share "other".
MAX_ONE_HOT = 20


class TableEncoder(TransformerMixin, BaseEstimator):
    """Encode a table: numbers by median imputation, categories one-hot, all columns standardised.

    A category's missing cells are a level of their own. A level not seen in training has zeros in all its columns
    (before standardising), or one in "other" if the training table had more than ``max_levels`` levels.

    Parameters
    ----------
    numbers : list of str
        Names of the numeric columns; every other column is a category.
    max_levels : int, default=20
        Levels of a category that get a column of their own.

    Attributes
    ----------
    columns_ : list of str
        The columns a table must have.
    levels_ : dict of str to list of str
        Levels of the categories.
    medians_, means_, scales_ : ndarray
        What is imputed, subtracted and divided by.
    """

    def __init__(self, numbers: Any = (), max_levels: int = MAX_ONE_HOT) -> None:
        self.numbers = numbers
        self.max_levels = max_levels

    def fit(self, X: pd.DataFrame, y: Any = None) -> Self:
        """Learn medians, levels, means and scales."""
        self.columns_ = [str(c) for c in X.columns]
        self.number_columns_ = [c for c in self.columns_ if c in set(self.numbers)]
        self.category_columns_ = [c for c in self.columns_ if c not in set(self.numbers)]
        numbers = X[self.number_columns_].to_numpy(dtype=np.float64)
        seen = ~np.all(np.isnan(numbers), axis=0)
        self.medians_ = np.zeros(numbers.shape[1])
        self.medians_[seen] = np.nanmedian(numbers[:, seen], axis=0)
        self.levels_ = {c: self._levels(X[c]) for c in self.category_columns_}
        raw = self._raw(X)
        self.means_ = raw.mean(axis=0)
        spread = raw.std(axis=0)
        # A column of rounding-size spread is constant: it must not be blown up.
        self.scales_ = np.where(spread > 1e-12 * np.maximum(1.0, np.abs(self.means_)), spread, 1.0)
        return self

    def transform(self, X: pd.DataFrame) -> NDArray[np.float64]:
        """Return the standardised matrix; TableError names a missing column or a cell that is not a number."""
        check_is_fitted(self)
        return (self._raw(X) - self.means_) / self.scales_

    def checked(self, X: pd.DataFrame) -> pd.DataFrame:
        """Return the training columns of a table, numbers as numbers; TableError names what does not fit."""
        self._require(X)
        numbers = {c: self._numbers(X[c]) for c in self.number_columns_}
        return X[self.columns_].assign(**numbers)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray:
        """Return the names of the matrix's columns: ``column`` or ``column=level``."""
        names = list(self.number_columns_)
        for column in self.category_columns_:
            names += [f"{column}={level}" for level in self.levels_[column]]
        return np.array(names, dtype=object)

    def _levels(self, values: pd.Series) -> list[str]:
        counts = _texts(values).value_counts()
        counts = counts.sort_index().sort_values(ascending=False, kind="stable")
        if counts.size > self.max_levels:
            return [*map(str, counts.index[: self.max_levels - 1]), "other"]
        # One of two levels is the other's mirror image.
        return [str(counts.index[-1])] if counts.size == 2 else [str(c) for c in counts.index]

    def _raw(self, X: pd.DataFrame) -> NDArray[np.float64]:
        self._require(X)
        blocks = [self._imputed(X)]
        for column in self.category_columns_:
            levels = self.levels_[column]
            position = {level: at for at, level in enumerate(levels)}
            other = position.get("other", -1)
            codes = _texts(X[column]).map(position).fillna(other).to_numpy(dtype=np.intp)
            blocks.append((codes[:, None] == np.arange(len(levels))).astype(np.float64))
        return np.hstack(blocks)

    def _require(self, X: pd.DataFrame) -> None:
        absent = [c for c in self.columns_ if c not in X.columns]
        if absent:
            raise TableError(f"The table lacks columns the model was trained on: {listed(absent)}.")

    def _numbers(self, column: pd.Series) -> NDArray[np.float64]:
        """Return the numbers of a column, nan where a cell is missing or infinite; a few odd words count as missing."""
        values = pd.to_numeric(column, errors="coerce")
        bad = values.isna() & column.notna()
        if bad.mean() > 0.05:
            words = column[bad].astype(str).unique().tolist()
            raise TableError(f"Column '{shown(column.name)}' held numbers in training, now also {listed(words, 3)}.")
        numbers = values.to_numpy(dtype=np.float64, na_value=np.nan)
        return np.where(np.isfinite(numbers), numbers, np.nan)

    def _imputed(self, X: pd.DataFrame) -> NDArray[np.float64]:
        out = np.empty((len(X), len(self.number_columns_)))
        for at, column in enumerate(self.number_columns_):
            numbers = self._numbers(X[column])
            out[:, at] = np.where(np.isnan(numbers), self.medians_[at], numbers)
        return out


def _texts(values: pd.Series) -> pd.Series:
    return values.astype("str").where(values.notna(), "missing").astype(object)
