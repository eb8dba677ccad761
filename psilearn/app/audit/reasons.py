"""Why a label is doubted, in words: the features that speak against it, and the nearest rows that are believed."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.neighbors import NearestNeighbors

from ..words import shown
from .noise import Array

#: Neighbours that are counted, and features that are named.
NEIGHBOURS, FEATURES = 5, 3
#: A label that is wrong with less than this probability is believed.
BELIEVED = 0.1
#: A feature is named if the value is this much closer to the suggested class, in interquartile ranges or in shares.
TELLING = 0.25


class Reason(NamedTuple):
    """Why one label is doubted.

    Attributes
    ----------
    text : str
        One or two sentences.
    neighbours : tuple of int
        The nearest believed rows, nearest first.
    features : tuple of int
        All features, the one that speaks most for the suggested class first.
    """

    text: str
    neighbours: tuple[int, ...]
    features: tuple[int, ...]


def reasons(
    frame: pd.DataFrame, X: Array, labels: NDArray, suggested: NDArray, wrong: Array, rows: NDArray
) -> list[Reason]:
    """Explain why the labels of some rows are doubted.

    Parameters
    ----------
    frame : DataFrame of shape (n, columns)
        Features as a reader knows them: floats are numbers, everything else is a category.
    X : ndarray of shape (n, d)
        The encoded, standardised features, for distances.
    labels, suggested, wrong : ndarray of shape (n,)
        The labels, the classes suggested instead, and the probability that each label is wrong.
    rows : ndarray of int
        The rows to explain.
    """
    if not rows.size:
        return []
    near = _neighbours(X, labels, wrong, rows)
    evidence = _evidence(frame, labels, suggested, wrong, rows)
    out = []
    for at, row in enumerate(rows):
        order = np.argsort(-evidence[at], kind="stable")
        telling = [j for j in order[:FEATURES] if evidence[at, j] >= TELLING]
        words = [_feature_words(frame.iloc[:, j], labels, wrong, row, labels[row], suggested[row]) for j in telling]
        parts = [_neighbour_words(labels[near[at]], suggested[row])]
        parts += [f"{'; '.join(words)}."] if words else []
        out.append(Reason(" ".join(parts), tuple(near[at].tolist()), tuple(order.tolist())))
    return out


def _neighbours(X: Array, labels: NDArray, wrong: Array, rows: NDArray) -> NDArray[np.intp]:
    """Return the nearest believed rows of each row, without itself."""
    believed = np.flatnonzero(wrong < BELIEVED)
    if believed.size <= NEIGHBOURS:
        believed = np.argsort(wrong, kind="stable")[: max(NEIGHBOURS + 1, len(wrong) // 2)]
    count = min(NEIGHBOURS + 1, believed.size)
    near = believed[NearestNeighbors(n_neighbors=count).fit(X[believed]).kneighbors(X[rows], return_distance=False)]
    return np.array([line[line != row][: count - 1] for line, row in zip(near, rows)])


def _evidence(frame: pd.DataFrame, labels: NDArray, suggested: NDArray, wrong: Array, rows: NDArray) -> Array:
    """Return how much closer each value is to what is usual in the suggested class than in the given one."""
    out = np.zeros((rows.size, frame.shape[1]))
    believed = wrong < 0.5
    for j in range(frame.shape[1]):
        column = frame.iloc[:, j]
        if pd.api.types.is_numeric_dtype(column):
            values = column.to_numpy(dtype=float)
            usual = column[believed].groupby(labels[believed]).median()
            low, high = np.nanpercentile(values, [25, 75]) if np.isfinite(values).any() else (0.0, 0.0)
            width = (high - low) or float(np.nanstd(values)) or 1.0
            here = values[rows]
            far = [np.abs(here - usual.reindex(of[rows]).to_numpy(dtype=float)) for of in (labels, suggested)]
            out[:, j] = np.minimum(np.nan_to_num((far[0] - far[1]) / width), 3.0)
        else:
            shares = pd.crosstab(column[believed].fillna("missing"), labels[believed], normalize="columns")
            here = column.fillna("missing").to_numpy()[rows]
            common = [_shares(shares, here, of[rows]) for of in (labels, suggested)]
            out[:, j] = common[1] - common[0]
    return out


def _shares(shares: pd.DataFrame, values: NDArray, classes: NDArray) -> Array:
    cells = shares.reindex(index=pd.unique(values), columns=pd.unique(classes)).fillna(0.0)
    return cells.to_numpy()[cells.index.get_indexer(values), cells.columns.get_indexer(classes)]


def _neighbour_words(near: NDArray, suggested: object) -> str:
    same = int(np.sum(near == suggested))
    if not same:
        return (
            f"None of its {near.size} nearest believed rows is '{shown(suggested, 30)}', but the model is sure of it."
        )
    whose = f"its {near.size} nearest believed rows"
    count = f"All of {whose}" if same == near.size else f"{same} of {whose}"
    return f"{count} {'is' if same == 1 else 'are'} '{shown(suggested, 30)}'."


def _feature_words(column: pd.Series, labels: NDArray, wrong: Array, row: int, given: object, suggested: object) -> str:
    name, value = shown(column.name, 40), column.iloc[row]
    believed = wrong < 0.5
    if pd.api.types.is_numeric_dtype(column):
        usual = column[believed].groupby(labels[believed]).median()
        return (
            f"{name} {number(value)}, usual for '{shown(suggested, 30)}' is {number(usual.get(suggested))}, "
            f"for '{shown(given, 30)}' {number(usual.get(given))}"
        )
    text = "missing" if pd.isna(value) else value
    cells = column.fillna("missing")[believed] == text
    share = cells.groupby(labels[believed]).mean()
    return (
        f"{name} '{shown(text, 30)}' is found in {100 * share.get(suggested, 0.0):.0f}% of "
        f"'{shown(suggested, 30)}' and {100 * share.get(given, 0.0):.0f}% of '{shown(given, 30)}'"
    )


def number(value: float | None) -> str:
    """Return a number as a person writes it."""
    return "missing" if value is None or np.isnan(value) else f"{value:.4g}"
