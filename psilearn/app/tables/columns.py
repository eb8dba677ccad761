"""What each column is: a number, a category, or why it is left out."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from ..words import listed, shown
from .cells import are_numbers, as_numbers, doubtful_zeros, missing_codes, number_notes
from .labels import one_spelling

ID_NAME = re.compile(
    r"(^|[ _.-])(id|ids|uuid|guid|index|key|nr|mrn|number|no|patient|subject|person|case|unnamed: 0)$", re.IGNORECASE
)
#: Dates as people type them: 2024-03-31, 31.03.2024, 3/31/24, each perhaps with a time.
DATE = re.compile(r"\s*(\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.](\d{4}|\d{2}))([T ]\d{1,2}:\d{2}.*)?\s*")
#: A category with more levels than this, most of them rare, is text.
MAX_LEVELS = 50
#: Words beside so many numbers are worth a note even where the column is not read as numbers.
HALF = 0.5


@dataclass(frozen=True)
class Column:
    """What was understood of one column.

    Attributes
    ----------
    name : str
        Its name.
    kind : str
        number, category, or why it is left out.
    missing, levels : int
        How many cells are missing, and how many different values there are.
    note : str
        What a careful reader would want to know.
    codes : tuple of float
        Values that stand for "missing", such as 999.
    """

    name: str
    kind: str
    missing: int
    levels: int
    note: str = ""
    codes: tuple[float, ...] = ()

    @property
    def is_used(self) -> bool:
        """Whether the column is a feature."""
        return self.kind in {"number", "category"}


def read_column(name: str, values: pd.Series, left_out: str | None) -> tuple[Column, pd.Series]:
    """Decide what one column is; the values come back as float64 or as strings."""
    if left_out:
        return Column(name, left_out, int(values.isna().sum()), 0), values
    if isinstance(values.dtype, pd.CategoricalDtype):
        values = values.astype(object)
    if pd.api.types.is_datetime64_any_dtype(values):
        return _described(name, "date", values, "holds dates, which are not used; left out."), values
    if not pd.api.types.is_bool_dtype(values) and not pd.api.types.is_numeric_dtype(values):
        if _are_dates(values):
            return _described(name, "date", values, "holds dates, which are not used; left out."), values
        numbers = as_numbers(values)
        if not are_numbers(numbers):
            return _words(name, values, float(np.mean(~np.isnan(numbers.values))))
        notes = number_notes(values, numbers)
        values = pd.Series(numbers.values, index=values.index, name=values.name)
    else:
        notes = []
    return _numbers(name, values.astype(float), notes)


def _numbers(name: str, values: pd.Series, notes: list[str]) -> tuple[Column, pd.Series]:
    infinite = np.isinf(values)
    if infinite.any():
        values = values.mask(infinite)
        notes.append(f"{int(infinite.sum())} infinite values count as missing")
    codes = tuple(missing_codes(values.to_numpy()))
    if codes:
        cells = values.isin(codes)
        values = values.mask(cells)
        low, high = values.min(), values.max()
        notes.append(
            f"{', '.join(f'{c:g}' for c in codes[:5])} ({int(cells.sum())} {_cells(cells.sum())}) cannot be a "
            f"measurement (the others lie between {low:g} and {high:g}) and counts as missing"
        )
    if zeros := doubtful_zeros(values.to_numpy()):
        next_value = values[values != 0].min()
        notes.append(
            f"{zeros} cells are 0, the next value is {next_value:g}; if 0 means missing here, empty these cells"
        )
    is_whole = bool(np.all(values.dropna() == np.round(values.dropna())))
    is_name = bool(ID_NAME.search(name)) or _counts_up(values)
    return _kind(name, "number", values, "; ".join(notes), may_be_id=is_whole and is_name, codes=codes)


def _words(name: str, values: pd.Series, numbers: float) -> tuple[Column, pd.Series]:
    notes: list[str] = []
    texts = values.dropna().astype(str)
    texts = one_spelling(texts[texts.str.strip() != ""], "value", notes)
    values = texts.reindex(values.index)
    if numbers > HALF:
        bad = as_numbers(values).words
        others = listed(values[bad].unique().tolist(), 3)
        notes.append(f"{100 * numbers:.0f}% of the cells are numbers, others are not ({others}); it is read as words")
    note = "; ".join(note.rstrip(".") for note in notes)
    column, values = _kind(name, "category", values, note, may_be_id=True)
    if (
        column.kind == "category"
        and column.levels > MAX_LEVELS
        and column.levels > 0.2 * (len(values) - column.missing)
    ):
        return _described(name, "text", values, f"holds {column.levels} different texts; left out.", note), values
    return column, values


def _kind(
    name: str, kind: str, values: pd.Series, note: str, may_be_id: bool, codes: tuple[float, ...] = ()
) -> tuple[Column, pd.Series]:
    missing, levels = int(values.isna().sum()), int(values.nunique())
    if levels == 0:
        return _described(name, "empty", values, "every cell is missing; left out."), values
    if levels == 1 and missing == 0:
        return _described(name, "constant", values, "every cell is the same; left out."), values
    if may_be_id and len(values) >= 20 and levels > 0.95 * max(1, len(values) - missing):
        why = "looks like an identifier (nearly every row differs); left out."
        return _described(name, "identifier", values, why, note), values
    return Column(name, kind, missing, levels, f"{note}." if note else "", codes), values


def _described(name: str, kind: str, values: pd.Series, why: str, note: str = "") -> Column:
    whole = f"{note}; {why}" if note else why
    return Column(name, kind, int(values.isna().sum()), int(values.nunique()), whole)


def _are_dates(values: pd.Series) -> bool:
    present = values.dropna().astype(str).unique()
    return bool(present.size and np.mean([DATE.fullmatch(text) is not None for text in present]) > 0.95)


def _counts_up(values: pd.Series) -> bool:
    steps = np.diff(values.to_numpy(dtype=float))
    return bool(steps.size and np.all(steps == steps[0]) and steps[0] != 0)


def _cells(n: int) -> str:
    return "cell" if n == 1 else "cells"


def leaks(frame: pd.DataFrame, labels: pd.Series, columns: Sequence[Column]) -> list[str]:
    """Name the single columns that already decide the label: perhaps it leaked into them."""
    notes = []
    for column in columns:
        if column.is_used and column.missing == 0 and _decides(frame[column.name], labels, column.kind):
            notes.append(
                f"Column '{shown(column.name)}' alone decides the label in every row; if it was made from the label, "
                "leave it out with --drop."
            )
    return notes


def _decides(values: pd.Series, labels: pd.Series, kind: str) -> bool:
    if kind == "category" or values.nunique() <= 20:
        groups = labels.groupby(values.to_numpy())
        return bool(groups.size().min() >= 2 and (groups.nunique() == 1).all())
    runs = labels.iloc[np.argsort(values.to_numpy(), kind="stable")].to_numpy()
    ties_apart = values.groupby(labels.to_numpy()).agg(["min", "max"]).sort_values("min")
    apart = bool(np.all(ties_apart["max"].to_numpy()[:-1] < ties_apart["min"].to_numpy()[1:]))
    return apart and int(np.sum(runs[1:] != runs[:-1])) == labels.nunique() - 1
