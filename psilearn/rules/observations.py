"""Weighted observations with equal (row, label) merged: the finite list a boosting program is written over."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True)
class Observations:
    """Distinct (row, label) pairs in canonical order, with their total weights.

    Equal observations have equal margins and, by convexity, equal slacks in some optimum, so merging them changes no
    optimal value; sorting makes the solve independent of the order of the data.

    Attributes
    ----------
    X : ndarray of shape (m, N)
        Distinct rows.
    y : ndarray of shape (m,)
        Labels -1 / +1.
    weight : ndarray of shape (m,)
        Total weights, positive.
    """

    X: NDArray
    y: NDArray[np.int64]
    weight: NDArray[np.float64]

    @classmethod
    def merge(cls, X: ArrayLike, y: ArrayLike, weight: ArrayLike | None = None) -> Observations:
        """Merge equal observations and drop those of weight zero."""
        X, y = np.asarray(X), np.where(np.asarray(y) > 0, 1, -1)
        weight = np.ones(y.size) if weight is None else np.asarray(weight, dtype=np.float64)
        if weight.size and weight.min() < 0:
            raise ValueError("Sample weights must be non-negative.")
        used = weight > 0
        both, place = np.unique(np.column_stack([X[used], y[used]]), axis=0, return_inverse=True)
        total = np.zeros(both.shape[0])
        np.add.at(total, place.ravel(), weight[used])
        return cls(np.ascontiguousarray(both[:, :-1]), both[:, -1].astype(np.int64), total)

    def subset(self, rows: NDArray) -> Observations:
        """These observations alone."""
        return Observations(self.X[rows], self.y[rows], self.weight[rows])

    @property
    def total(self) -> float:
        """M, the total weight."""
        return float(self.weight.sum())

    @property
    def majority(self) -> int:
        """The class of larger weight (+1 in a tie): the answer where the rules are silent."""
        return 1 if float(self.weight @ self.y) >= 0 else -1
