"""Dividing rows: stratified by class, and never through a group of rows that belong together."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold, train_test_split

Rows = NDArray[np.intp]
#: Folds of which a share of the groups is put together.
PARTS = 10


def folds(y: NDArray, groups: Rows | None, n_folds: int, seed: int) -> list[tuple[Rows, Rows]]:
    """Return (training rows, test rows) of each fold; fewer folds if a class has fewer rows or groups."""
    units = y if groups is None else _one_per_group(y, groups)
    n_folds = max(2, min(n_folds, int(np.unique(units, return_counts=True)[1].min())))
    if groups is None:
        return list(StratifiedKFold(n_folds, shuffle=True, random_state=seed).split(y, y))
    splitter = StratifiedGroupKFold(n_folds, shuffle=True, random_state=seed)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The least populated class")  # groups decide, not rows
        return list(splitter.split(y, y, groups))


def holdout(y: NDArray, groups: Rows | None, share: float, seed: int) -> tuple[Rows, Rows]:
    """Return training and test rows, about ``share`` of them for the test."""
    if groups is None:
        train, test = train_test_split(np.arange(len(y)), test_size=share, stratify=y, random_state=seed)
        return np.sort(train), np.sort(test)
    parts = [test for _, test in folds(y, groups, PARTS, seed)]
    test = np.sort(np.concatenate(parts[: max(1, round(share * len(parts)))]))
    train = np.setdiff1d(np.arange(len(y)), test)
    if np.unique(y[train]).size < np.unique(y).size:
        # A class in few groups may be missing where it is needed most.
        test, train = parts[-1], np.setdiff1d(np.arange(len(y)), parts[-1])
    return train, test


def _one_per_group(y: NDArray, groups: Rows) -> NDArray:
    """Return the class of every pair of group and class."""
    classes, codes = np.unique(y, return_inverse=True)
    return classes[np.unique(np.stack([groups, codes]), axis=1)[1]]
