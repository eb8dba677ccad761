"""From a file to a table one can learn from: reading, saying what was understood, and clear sentences when it fails."""

from __future__ import annotations

import csv
import difflib
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ._arff import arff_chunks
from .words import listed, shown

#: Cells that mean "missing" wherever they stand.
MISSING = ["", "NA", "N/A", "NaN", "nan", "null", "NULL", "?"]
#: Names a target column goes by when the user does not name it.
TARGET_NAMES = ("target", "label", "class", "y")
ID_NAME = re.compile(r"(^|[ _.-])(id|ids|uuid|guid|index|key|nr|mrn|number|unnamed: 0)$", re.IGNORECASE)
#: Dates as people type them: 2024-03-31, 31.03.2024, 3/31/24, each perhaps with a time.
DATE = re.compile(r"\s*(\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.](\d{4}|\d{2}))([T ]\d{1,2}:\d{2}.*)?\s*")
#: Lines that tell whether a file writes 0,5 for a half.
DECIMAL_LINES = 50
#: A category with more levels than this, most of them rare, is text.
MAX_LEVELS = 50
#: Fewer rows of a class than this cannot be split, tuned and tested.
MIN_PER_CLASS = 4


class TableError(ValueError):
    """The table cannot be used; the message is one sentence for the person who brought it."""


# -- reading ----------------------------------------------------------------------------------------------------------


def read_chunks(path: str | Path, rows: int | None = None) -> Iterator[pd.DataFrame]:
    """Yield the table of a CSV, TSV, Parquet or ARFF file, ``rows`` rows at a time (None: all at once)."""
    path = Path(path)
    if not path.exists():
        raise TableError(f"There is no file '{shown(path, 200)}'.")
    if path.is_dir():
        raise TableError(f"'{shown(path, 200)}' is a folder, not a file.")
    name = path.name.lower().removesuffix(".gz")
    try:
        if name.endswith((".parquet", ".pq")):
            yield from _parquet_chunks(path, rows)
        elif name.endswith(".arff"):
            yield from arff_chunks(path, MISSING, rows)
        else:
            yield from _csv_chunks(path, rows)
    except TableError:
        raise
    except ImportError:
        raise TableError("Reading Parquet needs the package pyarrow: pip install pyarrow.") from None
    except UnicodeDecodeError:
        raise TableError(f"'{shown(path.name)}' is not UTF-8 text; save it as UTF-8 and try again.") from None
    except (ValueError, OSError, pd.errors.ParserError) as error:
        reason = shown(str(error).splitlines()[0] if str(error) else type(error).__name__, 200)
        raise TableError(f"'{shown(path.name)}' could not be read: {reason}") from None


def read_table(path: str | Path) -> pd.DataFrame:
    """Read a whole CSV, TSV, Parquet or ARFF file; a file without rows raises TableError."""
    parts = list(read_chunks(path))
    if not parts or parts[0].empty:
        raise TableError(f"'{shown(Path(path).name)}' has no rows.")
    return parts[0]


def _csv_chunks(path: Path, rows: int | None) -> Iterator[pd.DataFrame]:
    with pd.io.common.get_handle(path, "r", encoding="utf-8-sig", compression="infer") as handle:
        first, *more = [str(line) for line in islice(handle.handle, DECIMAL_LINES)] or [""]
    if not first.strip():
        raise TableError(f"'{shown(path.name)}' is empty.")
    separator = max(",;\t|", key=first.count)
    _refuse_twins(next(csv.reader([first], delimiter=separator)))
    options: dict[str, Any] = {
        "sep": separator, "keep_default_na": False, "na_values": MISSING, "encoding": "utf-8-sig", "low_memory": False,
        "decimal": _decimal(more, separator),
    }  # fmt: skip
    if rows is None:
        yield pd.read_csv(path, **options)
    else:
        yield from pd.read_csv(path, chunksize=rows, **options)


def _refuse_twins(names: Sequence[str]) -> None:
    twins = [name for name, count in Counter(names).items() if count > 1 and name]
    if twins:
        raise TableError(f"Two columns are named {listed(twins)}.")


def _decimal(lines: Sequence[str], separator: str) -> str:
    """Return the decimal sign: a comma if cells like 0,5 occur and cells like 0.5 do not."""
    cells = [cell.strip(' "\r\n') for line in lines for cell in line.split(separator)]
    comma, point = (sum(bool(re.fullmatch(rf"-?\d+{sign}\d+", c)) for c in cells) for sign in (",", r"\."))
    return "," if separator != "," and comma and not point else "."


def _parquet_chunks(path: Path, rows: int | None) -> Iterator[pd.DataFrame]:
    if rows is None:
        yield pd.read_parquet(path)
        return
    import pyarrow.parquet

    for batch in pyarrow.parquet.ParquetFile(path).iter_batches(batch_size=rows):
        yield batch.to_pandas()


# -- understanding ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Column:
    """What was understood of one column: ``kind`` is number, category, or why it is left out."""

    name: str
    kind: str
    missing: int
    levels: int
    note: str = ""

    @property
    def is_used(self) -> bool:
        """Whether the column is a feature."""
        return self.kind in {"number", "category"}


@dataclass(frozen=True)
class Understanding:
    """A table as it was understood: features, labels, and what a careful reader would want to know.

    ``rows`` are the numbers of the rows in the file, counted from 1 without the header.
    """

    frame: pd.DataFrame
    labels: pd.Series
    target: str
    columns: tuple[Column, ...]
    class_counts: dict[str, int]
    notes: tuple[str, ...]
    rows: NDArray[np.intp]

    @property
    def features(self) -> list[str]:
        """Names of the columns that are used."""
        return [c.name for c in self.columns if c.is_used]

    @property
    def numbers(self) -> list[str]:
        """Names of the numeric columns that are used."""
        return [c.name for c in self.columns if c.kind == "number"]


def find_target(frame: pd.DataFrame, target: str | None) -> str:
    """Return the name of the column that holds the labels, or raise with the nearest names."""
    names = [str(c) for c in frame.columns]
    if target is not None:
        if target in names:
            return target
        near = difflib.get_close_matches(target, names, n=3, cutoff=0.6)
        hint = f"did you mean {listed(near)}?" if near else f"the columns are {listed(names)}."
        raise TableError(f"There is no column '{shown(target)}'; {hint}")
    for wanted in TARGET_NAMES:
        for name in names:
            if name.lower() == wanted:
                return name
    raise TableError(f"Which column holds the labels? Name it with --target; the columns are {listed(names)}.")


def understand(frame: pd.DataFrame, target: str | None = None, drop: Sequence[str] = ()) -> Understanding:
    """Decide what every column is, and say so.

    Parameters
    ----------
    frame : DataFrame
        The table as read.
    target : str, optional
        Column of the labels; None looks for one named target, label, class or y.
    drop : sequence of str
        Columns to leave out.
    """
    frame = frame.set_axis([str(c) for c in frame.columns], axis=1).reset_index(drop=True)
    _refuse_twins(frame.columns.tolist())
    target = find_target(frame, target)
    for name in drop:
        find_target(frame, name)
    notes: list[str] = []
    labels = _labels(frame[target], notes)
    rows = np.flatnonzero(frame.index.isin(labels.index)) + 1
    frame = frame.loc[labels.index].reset_index(drop=True)
    labels = labels.reset_index(drop=True)
    columns, used = [], {}
    for name in frame.columns.drop(target):
        left_out = "left out" if name in drop or name.startswith("meta_") else None
        column, values = _column(name, frame[name], left_out)
        columns.append(column)
        if column.is_used:
            used[name] = values
    notes += [f"Column '{shown(c.name)}': {c.note}" for c in columns if c.note]
    if not used:
        raise TableError("No column is left to learn from: " + (" ".join(notes[:3]) or "the table has only labels."))
    frame = pd.DataFrame(used)
    notes += _leaks(frame, labels, columns)
    counts = {str(k): int(v) for k, v in labels.value_counts().items()}
    return Understanding(frame, labels, target, tuple(columns), counts, tuple(notes), rows)


def _labels(column: pd.Series, notes: list[str]) -> pd.Series:
    """Return the labels as strings, rows without one dropped; the index tells which rows remain."""
    if pd.api.types.is_float_dtype(column):
        column = column.mask(column.isin([np.inf, -np.inf]))
    given = column.dropna()
    name = shown(column.name)
    if given.empty:
        raise TableError(f"The target column '{name}' is empty.")
    if len(given) < len(column):
        notes.append(f"{len(column) - len(given)} of {len(column)} rows have no label in '{name}' and are left out.")
    levels = given.nunique()
    if pd.api.types.is_float_dtype(given) and not np.all(given == np.round(given)) and levels > 20:
        raise TableError(
            f"The target column '{name}' holds {levels} different decimal numbers: a measurement, not classes."
        )
    if levels > max(100, len(given) // 5) or (levels > 20 and levels == len(given)):
        raise TableError(
            f"The target column '{name}' has {levels} different values in {len(given)} rows: too many for classes."
        )
    if pd.api.types.is_float_dtype(given) and np.all(given == np.round(given)):
        given = given.astype("int64")
    labels = given.astype(str)
    if levels == 1:
        raise TableError(
            f"The target column '{name}' holds one class only ({listed(labels.unique())}); nothing can be learnt."
        )
    counts = labels.value_counts()
    rare = counts[counts < MIN_PER_CLASS]
    if counts.size - rare.size < 2:
        raise TableError(
            f"At least two classes need {MIN_PER_CLASS} rows each; '{name}' has "
            + ", ".join(f"{n} of '{shown(c, 40)}'" for c, n in counts.head(6).items()) + "."
        )  # fmt: skip
    if rare.size:
        notes.append(f"Classes with fewer than {MIN_PER_CLASS} rows are left out: {listed(rare.index.tolist())}.")
        labels = labels[~labels.isin(rare.index)]
    return labels


def _column(name: str, values: pd.Series, left_out: str | None) -> tuple[Column, pd.Series]:
    """Decide what one column is; the values come back as float64 or as strings."""
    n = len(values)
    note = ""
    if left_out:
        return Column(name, left_out, int(values.isna().sum()), 0), values
    if pd.api.types.is_bool_dtype(values):
        values = values.astype(float)
    if not pd.api.types.is_numeric_dtype(values) and not pd.api.types.is_datetime64_any_dtype(values):
        values, note = _numbers_if_most_are(values)
    is_number = pd.api.types.is_numeric_dtype(values)
    if is_number:
        values = values.astype(float)
        infinite = np.isinf(values)
        if infinite.any():
            values = values.mask(infinite)
            note = f"{int(infinite.sum())} infinite values count as missing."
    missing, levels = int(values.isna().sum()), int(values.nunique())
    share = levels / max(1, n - missing)
    if levels == 0:
        return Column(name, "empty", missing, 0, "every cell is missing; left out."), values
    if levels == 1 and missing == 0:
        return Column(name, "constant", missing, 1, "every cell is the same; left out."), values
    if pd.api.types.is_datetime64_any_dtype(values) or (not is_number and _are_dates(values)):
        return Column(name, "date", missing, levels, "holds dates, which are not used; left out."), values
    is_whole = is_number and bool(np.all(values.dropna() == np.round(values.dropna())))
    if n >= 20 and share > 0.95 and (not is_number or (is_whole and (ID_NAME.search(name) or _counts_up(values)))):
        return Column(
            name, "identifier", missing, levels, "looks like an identifier (nearly every row differs); left out."
        ), values
    if is_number:
        return Column(name, "number", missing, levels, note), values
    if levels > MAX_LEVELS and share > 0.2:
        return Column(name, "text", missing, levels, f"holds {levels} different texts; left out."), values
    return Column(name, "category", missing, levels, note), values.astype("str").where(values.notna())


def _are_dates(values: pd.Series) -> bool:
    present = values.dropna().astype(str).unique()
    return bool(np.mean([DATE.fullmatch(text) is not None for text in present]) > 0.95)


def _counts_up(values: pd.Series) -> bool:
    steps = np.diff(values.to_numpy(dtype=float))
    return bool(steps.size and np.all(steps == steps[0]) and steps[0] != 0)


def _numbers_if_most_are(values: pd.Series) -> tuple[pd.Series, str]:
    """Numbers typed with a few other words among them are numbers, and the words are missing values."""
    present = values.dropna()
    parsed = pd.to_numeric(present, errors="coerce")
    bad = parsed.isna()
    if present.empty or bad.mean() > 0.05:
        return values, ""
    words = present[bad].astype(str).unique().tolist()
    note = f"{int(bad.sum())} cells are not numbers ({listed(words, 3)}) and count as missing." if words else ""
    return parsed.reindex(values.index), note


def _leaks(frame: pd.DataFrame, labels: pd.Series, columns: Sequence[Column]) -> list[str]:
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
