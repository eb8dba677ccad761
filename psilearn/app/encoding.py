"""From a table to a matrix: impute, one-hot, standardise, with everything learnt on training rows only."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from .tables import Numbers, TableError, as_numbers
from .words import listed, shown

#: Levels of a category that get a column of their own; the rest share "other".
MAX_ONE_HOT = 20
#: Cells that tell whether a column that held numbers in training now holds words.
ENOUGH_CELLS = 10


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
    codes : dict of str to tuple of float, optional
        Values that stand for "missing", by numeric column.

    Attributes
    ----------
    columns_ : list of str
        The columns a table must have.
    levels_ : dict of str to list of str
        Levels of the categories that have a column of their own.
    known_ : dict of str to list of str
        All levels of the categories.
    lows_, highs_ : ndarray
        Smallest and largest value of every number.
    medians_, means_, scales_ : ndarray
        What is imputed, subtracted and divided by.
    """

    def __init__(self, numbers: Any = (), max_levels: int = MAX_ONE_HOT, codes: Any = None) -> None:
        self.numbers = numbers
        self.max_levels = max_levels
        self.codes = codes

    def fit(self, X: pd.DataFrame, y: Any = None) -> Self:
        """Learn medians, levels, means and scales."""
        self.columns_ = [str(c) for c in X.columns]
        self.number_columns_ = [c for c in self.columns_ if c in set(self.numbers)]
        self.category_columns_ = [c for c in self.columns_ if c not in set(self.numbers)]
        numbers = X[self.number_columns_].to_numpy(dtype=np.float64)
        seen = ~np.all(np.isnan(numbers), axis=0)
        self.medians_, self.lows_, self.highs_ = np.zeros((3, numbers.shape[1]))
        self.medians_[seen] = np.nanmedian(numbers[:, seen], axis=0)
        self.lows_[seen], self.highs_[seen] = np.nanmin(numbers[:, seen], axis=0), np.nanmax(numbers[:, seen], axis=0)
        self.levels_ = {c: self._levels(X[c]) for c in self.category_columns_}
        self.known_ = {c: sorted(map(str, _texts(X[c]).unique())) for c in self.category_columns_}
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

    def unusual(self, X: pd.DataFrame) -> list[str]:
        """Say of every row what training has not seen: values beyond its range, unknown levels, words for numbers."""
        notes: list[list[str]] = [[] for _ in range(len(X))]
        for at, name in enumerate(self.number_columns_):
            read, low, high = self._read(X[name]), self.lows_[at], self.highs_[at]
            far = max(high - low, np.finfo(float).tiny)
            raw = as_numbers(X[name]).values
            code = np.isin(raw, (self.codes or {}).get(name, ())) | np.isinf(raw)
            for row in np.flatnonzero(read.words | code | (read.values < low) | (read.values > high)):
                if code[row]:
                    said = f"{shown(name, 40)}: {raw[row]:g} counts as missing"
                elif read.words[row]:
                    said = f"{shown(name, 40)}: '{shown(X[name].iloc[row], 40)}' is not a number"
                else:
                    value = read.values[row]
                    much = "far " if value < low - far or value > high + far else ""
                    said = f"{shown(name, 40)}: {value:g} is {much}outside {low:g} to {high:g}"
                notes[row].append(said)
        for name in self.category_columns_:
            texts = _texts(X[name])
            for row in np.flatnonzero(~texts.isin(self.known_[name]).to_numpy()):
                notes[row].append(f"{shown(name, 40)}: '{shown(texts.iloc[row], 40)}' is not known from the training")
        return ["; ".join(row) for row in notes]

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

    def _read(self, column: pd.Series) -> Numbers:
        """Return the numbers of a column, nan where a cell is missing, infinite or a code for it."""
        numbers = as_numbers(column)
        present = int(column.notna().sum())
        if present >= ENOUGH_CELLS and numbers.words.sum() > present / 2:
            words = column[numbers.words].astype(str).unique().tolist()
            raise TableError(f"Column '{shown(column.name)}' held numbers in training, now also {listed(words, 3)}.")
        values = numbers.values.copy()
        values[~np.isfinite(values) | np.isin(values, (self.codes or {}).get(str(column.name), ()))] = np.nan
        return numbers._replace(values=values)

    def _numbers(self, column: pd.Series) -> NDArray[np.float64]:
        return self._read(column).values

    def _imputed(self, X: pd.DataFrame) -> NDArray[np.float64]:
        out = np.empty((len(X), len(self.number_columns_)))
        for at, column in enumerate(self.number_columns_):
            numbers = self._numbers(X[column])
            out[:, at] = np.where(np.isnan(numbers), self.medians_[at], numbers)
        return out


def _texts(values: pd.Series) -> pd.Series:
    """Return a category's cells as texts without spaces around them; a missing cell is the level "missing"."""
    if pd.api.types.is_float_dtype(values) and np.all(values.dropna() % 1 == 0):
        values = values.astype("Int64")  # whole numbers with a missing cell among them
    return values.astype("str").str.strip().where(values.notna(), "missing").astype(object)
