"""The labels: which column holds them, which spellings are one class, and targets that are no classes."""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections import defaultdict
from collections.abc import Sequence

import numpy as np
import pandas as pd

from ..words import listed, shown
from .error import TableError

#: Names a target column goes by when the user does not name it.
TARGET_NAMES = ("target", "label", "class", "y")
#: Fewer rows of a class than this cannot be split, tuned and tested.
MIN_PER_CLASS = 4
#: Whole numbers with more levels than this are a measurement if this share of the levels is rare.
MAX_LEVELS, RARE_LEVELS = 20, 0.1
#: A spelling that differs in capitals is taken for a slip if it is this rare beside the usual one.
SLIP = 0.1
#: Words that make an ordered scale, lowest first.
SCALES = (
    ("low", "medium", "high"), ("mild", "moderate", "severe"), ("none", "mild", "moderate", "severe"),
    ("niedrig", "mittel", "hoch"), ("leicht", "mittel", "schwer"), ("keine", "leicht", "mittel", "schwer"),
    ("small", "medium", "large"), ("i", "ii", "iii", "iv"), ("i", "ii", "iii"), ("poor", "fair", "good"),
    ("never", "sometimes", "often", "always"),
)  # fmt: skip


def find_column(names: Sequence[str], wanted: str) -> str:
    """Return the column of that name, or raise with the nearest names."""
    if wanted in names:
        return wanted
    near = difflib.get_close_matches(wanted, names, n=3, cutoff=0.6)
    hint = f"did you mean {listed(near)}?" if near else f"the columns are {listed(names)}."
    raise TableError(f"There is no column '{shown(wanted)}'; {hint}")


def find_target(frame: pd.DataFrame, target: str | None) -> str:
    """Return the name of the column that holds the labels; without a wish, the one with a usual name."""
    names = frame.columns.tolist()
    if target is not None:
        return find_column(names, target)
    for wanted in TARGET_NAMES:
        for name in names:
            if name.lower() == wanted:
                return name
    few = [name for name in reversed(names) if 2 <= frame[name].nunique() <= MAX_LEVELS]
    which = f"columns of few values are {listed(few)}" if few else f"the columns are {listed(names)}"
    raise TableError(f"Which column holds the labels? Name it with --target; {which}.")


def read_labels(column: pd.Series, notes: list[str]) -> pd.Series:
    """Return the labels as strings, rows without one and rare classes dropped; the index tells which rows remain."""
    if pd.api.types.is_float_dtype(column):
        column = column.mask(column.isin([np.inf, -np.inf]))
    given = column.dropna()
    if not pd.api.types.is_numeric_dtype(given):
        given = given[given.astype(str).str.strip() != ""]
    name = shown(column.name)
    if given.empty:
        raise TableError(f"The target column '{name}' is empty.")
    if len(given) < len(column):
        notes.append(f"{len(column) - len(given)} of {len(column)} rows have no label in '{name}' and are left out.")
    _refuse_measurements(given, name)
    if pd.api.types.is_float_dtype(given) and np.all(given == np.round(given)):
        given = given.astype("int64")
    labels = one_spelling(given.astype(str), f"class of '{name}'", notes)
    if labels.nunique() == 1:
        raise TableError(
            f"The target column '{name}' holds one class only ({listed(labels.unique())}); nothing can be learnt."
        )
    labels = _without_rare(labels, name, notes)
    notes += _ordered(labels, name)
    return labels


def one_spelling(texts: pd.Series, what: str, notes: list[str]) -> pd.Series:
    """Give one spelling to texts that differ in spaces only, or in capitals if one spelling is rare; note the rest."""
    counts = texts.value_counts()
    alike: dict[str, list[str]] = defaultdict(list)
    for spelling in counts.index:  # the commonest first
        alike[_plain(spelling).casefold()].append(str(spelling))
    usual: dict[str, str] = {}
    for spellings in alike.values():
        first, *others = spellings
        for other in others:
            if _plain(other) == _plain(first) or counts[other] < SLIP * counts[first]:
                usual[other] = first
        # Spaces around the usual spelling help nobody either.
        if _plain(first) != first and _plain(first) not in counts:
            usual |= {s: _plain(first) for s in spellings if s == first or usual.get(s) == first}
        merged = [s for s in others if s in usual]
        if merged:
            notes.append(f"{listed(merged)} and '{shown(first)}' are read as one {what}; they differ in spelling only.")
        if left := [s for s in others if s not in usual]:
            notes.append(
                f"{listed([first, *left])} are read as different, though they differ in capitals only; if they are one "
                f"{what}, give them one spelling in the file."
            )
    return texts.replace(usual) if usual else texts


def _plain(text: str) -> str:
    """Return a text with ordinary characters and single spaces."""
    return re.sub(r"\s+", " ", unicodedata.normalize("NFKC", str(text))).strip()


def _refuse_measurements(given: pd.Series, name: str) -> None:
    levels = given.nunique()
    is_number = pd.api.types.is_numeric_dtype(given) and not pd.api.types.is_bool_dtype(given)
    is_whole = is_number and bool(np.all(given == np.round(given)))
    hint = "to learn from it, make classes of it in the file, such as 'high' and 'normal'."
    if is_number and not is_whole and levels > MAX_LEVELS:
        raise TableError(
            f"The target column '{name}' holds {levels} different decimal numbers: a measurement, not classes; {hint}"
        )
    if levels > max(100, len(given) // 5) or (levels > MAX_LEVELS and levels == len(given)):
        raise TableError(
            f"The target column '{name}' has {levels} different values in {len(given)} rows: too many for classes."
        )
    rare = float((given.value_counts() < MIN_PER_CLASS).mean())
    if is_whole and levels > MAX_LEVELS and rare > RARE_LEVELS:
        raise TableError(
            f"The target column '{name}' holds {levels} different whole numbers from {given.min():g} to "
            f"{given.max():g}: a measurement, not classes; {hint}"
        )


def _without_rare(labels: pd.Series, name: str, notes: list[str]) -> pd.Series:
    counts = labels.value_counts()
    rare = counts[counts < MIN_PER_CLASS]
    if counts.size - rare.size < 2:
        raise TableError(
            f"At least two classes need {MIN_PER_CLASS} rows each; '{name}' has "
            + ", ".join(f"{n} of '{shown(c, 40)}'" for c, n in counts.head(6).items()) + "."
        )  # fmt: skip
    if rare.size:
        notes.append(f"Classes with fewer than {MIN_PER_CLASS} rows are left out: {listed(rare.index.tolist())}.")
    return labels[~labels.isin(rare.index)]


def _ordered(labels: pd.Series, name: str) -> list[str]:
    """Question classes that look like steps of a scale: whole numbers in a row, or words of a known one."""
    levels = sorted(labels.unique())
    small = {level.casefold() for level in levels}
    in_a_row = all(re.fullmatch(r"-?\d+", level) for level in levels) and (
        max(map(int, levels)) - min(map(int, levels)) < 1.5 * len(levels)
    )
    if len(levels) > 2 and (in_a_row or any(small <= set(scale) for scale in SCALES)):
        return [
            f"The {len(levels)} classes of '{name}' ({listed(levels, 4)}) look like steps of a scale. They are treated "
            "as classes without an order; two groups of them, up to a step and above it, are often the better question."
        ]
    return []
