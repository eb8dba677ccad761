"""A table as it was understood: labels, features, groups and identifiers, and what was decided on the way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..words import listed, shown
from .columns import ID_NAME, Column, leaks, read_column
from .delimited import refuse_twins
from .error import TableError
from .labels import find_column, find_target, read_labels

#: A repeated identifier is worth a note if this share of the rows repeats one.
REPEATED = 0.05


@dataclass(frozen=True)
class Understanding:
    """A table as it was understood: features, labels, and what a careful reader would want to know.

    Attributes
    ----------
    frame : DataFrame
        The features that are used; numbers are float64, categories are strings.
    labels : Series of str
        The labels, one spelling per class.
    target : str
        Their column.
    columns : tuple of Column
        What every column is.
    class_counts : dict of str to int
        Rows per class.
    notes : tuple of str
        What a careful reader would want to know.
    rows : ndarray of int
        Numbers of the rows in the file, counted from 1 without the header.
    groups : ndarray of int, optional
        Which rows belong together, such as those of one patient: no split may part them.
    ids : Series of str, optional
        The identifiers to name rows by.
    """

    frame: pd.DataFrame
    labels: pd.Series
    target: str
    columns: tuple[Column, ...]
    class_counts: dict[str, int]
    notes: tuple[str, ...]
    rows: NDArray[np.intp]
    groups: NDArray[np.intp] | None = None
    ids: pd.Series | None = None

    @property
    def features(self) -> list[str]:
        """Names of the columns that are used."""
        return [c.name for c in self.columns if c.is_used]

    @property
    def numbers(self) -> list[str]:
        """Names of the numeric columns that are used."""
        return [c.name for c in self.columns if c.kind == "number"]

    @property
    def codes(self) -> dict[str, tuple[float, ...]]:
        """Values that stand for "missing", by numeric column."""
        return {c.name: c.codes for c in self.columns if c.kind == "number" and c.codes}


def understand(
    frame: pd.DataFrame,
    target: str | None = None,
    drop: Sequence[str] = (),
    group: str | None = None,
    identifier: str | None = None,
) -> Understanding:
    """Decide what every column is, and say so.

    Parameters
    ----------
    frame : DataFrame
        The table as read.
    target : str, optional
        Column of the labels; None looks for one named target, label, class or y.
    drop : sequence of str
        Columns to leave out.
    group : str, optional
        Column that tells which rows belong together, such as those of one patient.
    identifier : str, optional
        Column to name rows by.
    """
    notes: list[str] = list(frame.attrs.get("notes", ()))
    frame = frame.set_axis([str(c) for c in frame.columns], axis=1).reset_index(drop=True)
    names = frame.columns.tolist()
    refuse_twins(names)
    target = find_target(frame, target)
    kept_aside = {find_column(names, name): "left out" for name in drop}
    kept_aside |= {
        find_column(names, name): role for name, role in ((group, "group"), (identifier, "identifier")) if name
    }
    if target in kept_aside:
        raise TableError(f"Column '{shown(target)}' holds the labels and cannot have another role.")
    labels = read_labels(frame[target], notes)
    rows = np.flatnonzero(frame.index.isin(labels.index)) + 1
    frame = frame.loc[labels.index].reset_index(drop=True)
    labels = labels.reset_index(drop=True)
    columns, used = [], {}
    for name in frame.columns.drop(target):
        column, values = read_column(name, frame[name], kept_aside.get(name, "left out" if _is_meta(name) else None))
        columns.append(column)
        if column.is_used:
            used[name] = values
    naming = identifier or _only_identifier(columns)
    notes += [f"Column '{shown(c.name)}': {c.note}" for c in columns if c.note and c.name != naming]
    if identifier is None and naming is not None:
        notes.append(
            f"Column '{shown(naming)}' differs in nearly every row: an identifier, which names the rows and is not "
            "learnt from."
        )
    if not used:
        raise TableError("No column is left to learn from: " + (" ".join(notes[:3]) or "the table has only labels."))
    ids = None if naming is None else frame[naming].astype(object).map(_as_written)
    groups = None if group is None else _groups(frame[group], labels, notes)
    if groups is None:
        notes += _repeats(frame, identifier, columns)
    features = pd.DataFrame(used)
    notes += leaks(features, labels, columns)
    counts = {str(k): int(v) for k, v in labels.value_counts().items()}
    return Understanding(features, labels, target, tuple(columns), counts, tuple(notes), rows, groups, ids)


def _only_identifier(columns: Sequence[Column]) -> str | None:
    """Return the column that looks like an identifier, if there is just one."""
    names = [column.name for column in columns if column.kind == "identifier"]
    return names[0] if len(names) == 1 else None


def _is_meta(name: str) -> bool:
    return name.startswith("meta_")


def _as_written(value: object) -> str:
    if isinstance(value, float):
        return "" if np.isnan(value) else f"{value:.15g}"
    return "" if value is None else str(value)


def _groups(column: pd.Series, labels: pd.Series, notes: list[str]) -> NDArray[np.intp]:
    """Return numbers of the groups; a row without one is a group of its own."""
    codes, levels = pd.factorize(column.astype(object).map(_as_written).replace("", None))
    alone = codes < 0
    codes[alone] = len(levels) + np.arange(alone.sum())
    name = shown(column.name)
    if alone.any():
        notes.append(f"{int(alone.sum())} rows have no '{name}'; each of them is a group of its own.")
    fewest = pd.Series(codes).groupby(labels.to_numpy()).nunique()
    if fewest.min() < 2:
        raise TableError(
            f"All rows of the class {listed([fewest.idxmin()])} are in one group of '{name}', so they cannot be "
            "divided into training and test."
        )
    return np.asarray(codes, dtype=np.intp)


def _repeats(frame: pd.DataFrame, identifier: str | None, columns: Sequence[Column]) -> list[str]:
    """Ask about identifiers that occur more than once: rows of one patient must not be on both sides of a split."""
    suspects = [identifier] if identifier else [c.name for c in columns if ID_NAME.search(c.name) and c.levels > 10]
    notes = []
    for name in suspects:
        repeated = int(frame[name].duplicated(keep=False).sum())
        several = frame[name].nunique() > 0.1 * len(frame)
        if repeated > REPEATED * len(frame) and several:
            notes.append(
                f"{repeated} rows share their '{shown(name)}' with another row; if these belong together, say "
                f"--group {shown(name)}, so that they are never divided between training and test."
            )
    return notes
