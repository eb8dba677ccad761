"""What else is wrong with a table: repeated and contradictory rows, outliers, and identifiers that know the label."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.neighbors import NearestNeighbors

from ..tables import Understanding
from ..words import shown
from .noise import Array

#: Rows closer than this part of the usual distance between neighbours, but not equal, are near duplicates.
NEAR = 0.02
#: Rows this many times the quartile range above the median of log distances to their neighbours are outliers.
FAR = 4.0
#: More rows than this are not searched for neighbours: it would take minutes.
MOST_ROWS = 20_000
#: Standard deviations above chance with which an identifier must know the label.
KNOWS = 5.0


class Finding(NamedTuple):
    """One kind of trouble: its name, what to think of it, and the rows (from 0) in sets that belong together."""

    name: str
    text: str
    sets: tuple[tuple[int, ...], ...]

    @property
    def rows(self) -> NDArray[np.intp]:
        """All rows concerned."""
        return np.array([row for one in self.sets for row in one], dtype=np.intp)


def findings(data: Understanding, X: Array, identifiers: dict[str, pd.Series]) -> list[Finding]:
    """Return what is wrong beside the labels.

    Parameters
    ----------
    data : Understanding
        The table.
    X : ndarray of shape (n, d)
        Its encoded, standardised features.
    identifiers : dict of str to Series
        Columns that identify rows, by name.
    """
    labels = data.labels.to_numpy(dtype=str)
    found = [*_duplicates(data.frame, labels), *_neighbours(X), *_knowing(labels, identifiers)]
    return [finding for finding in found if finding.sets or finding.name.startswith("label known")]


def _duplicates(frame: pd.DataFrame, labels: NDArray) -> Iterator[Finding]:
    marks = pd.util.hash_pandas_object(frame, index=False).to_numpy()
    equal = pd.Series(marks).groupby(marks, sort=False).indices
    sets = [tuple(sorted(rows.tolist())) for rows in equal.values() if len(rows) > 1]
    apart = tuple(s for s in sets if len(set(labels[list(s)])) > 1)
    alike = tuple(s for s in sets if len(set(labels[list(s)])) == 1)
    yield Finding(
        "contradictory rows",
        f"{_rows(apart)} equal another row in every feature and have another label. No model can be right about all of "
        "them.",
        apart,
    )
    yield Finding(
        "repeated rows",
        f"{_rows(alike)} equal another row in features and label. If they are the same case entered twice, keep one; "
        "if they belong together, say --group.",
        alike,
    )


def _neighbours(X: Array) -> Iterator[Finding]:
    n = len(X)
    if n > MOST_ROWS or n < 20:
        return
    distance, near = NearestNeighbors(n_neighbors=6).fit(X).kneighbors(X)
    first = distance[:, 1]
    usual = float(np.median(first))
    close = [(int(i), int(j)) for i, j in enumerate(near[:, 1]) if i != j and first[i] < NEAR * usual]
    pairs = sorted({(min(pair), max(pair)) for pair in close if not np.array_equal(X[pair[0]], X[pair[1]])})
    yield Finding(
        "near duplicates",
        f"{_rows(tuple(pairs))} all but equal another row. They may be the same case, measured or entered twice.",
        tuple(pairs),
    )
    log = np.log(np.maximum(distance[:, 1:].mean(axis=1), 1e-12))
    low, middle, high = np.percentile(log, [25, 50, 75])
    out = np.flatnonzero(log > middle + FAR * max(high - low, 0.1))
    alone = tuple((int(i),) for i in out[np.argsort(-log[out], kind="stable")])
    yield Finding(
        "outliers",
        f"Far from all other rows: {_rows(alone)}. Look for slips of the pen, wrong units, or cases that do not "
        "belong here.",
        alone,
    )


def _knowing(labels: NDArray, identifiers: dict[str, pd.Series]) -> Iterator[Finding]:
    """Find identifiers, and the order of the rows, that tell the label: rows entered or numbered class by class."""
    codes = np.unique(labels, return_inverse=True)[1]
    order = pd.Series(np.arange(labels.size))
    for name, column in {"the order of the rows": order, **identifiers}.items():
        numbers = pd.to_numeric(column, errors="coerce")
        if numbers.notna().mean() > 0.9:
            ranked = codes[np.argsort(numbers.to_numpy(dtype=float), kind="stable")]
            right = (ranked[1:-1] == ranked[:-2]) & (ranked[1:-1] == ranked[2:])
            p = np.bincount(codes) / codes.size
            chance = float((p**3).sum())
        else:
            kind = column.astype(str).map(lambda text: re.sub(r"\d+", "", text)).to_numpy()
            if len(set(kind)) < 2 or len(set(kind)) > labels.size / 10:
                continue
            most = pd.Series(codes).groupby(kind).transform(lambda part: part.mode()[0]).to_numpy()
            right, chance = most == codes, float(np.bincount(codes).max()) / codes.size
        if right.mean() > chance + KNOWS * np.sqrt(chance * (1 - chance) / right.size):
            what = name if name.startswith("the order") else f"the identifier '{shown(name, 40)}'"
            yield Finding(
                "label known from " + what,
                f"{what[0].upper()}{what[1:]} tells the label. That is harmless as long as it is not a feature; but if "
                "rows were collected class by class, other columns may tell it, too (another device, another day).",
                (),
            )


def _rows(sets: tuple[tuple[int, ...], ...]) -> str:
    n = sum(map(len, sets))
    return "1 row" if n == 1 else f"{n} rows"
