"""From what a user hands in to a Problem: labels to codes, weights, and the canonical form of small samples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight

#: Samples with at most this many entries are merged and sorted; it costs a millisecond and makes a fit exactly
#: invariant to the order and duplication of rows. Larger ones would pay more than they gain.
CANONICAL_ENTRIES = 100_000


@dataclass(frozen=True)
class Sample:
    """The rows a solver sees, and where each given row went (-1 if its weight is zero)."""

    X: Any
    y: NDArray[np.intp]
    weights: NDArray[np.float64]
    sample_weight: NDArray[np.float64]
    position: NDArray[np.intp]

    def given(self, rows: NDArray[np.intp] | NDArray[np.bool_]) -> NDArray[np.intp]:
        """Translate rows of the solver's sample into indices of the given one."""
        mask = np.zeros(self.y.size + 1, dtype=bool)
        mask[:-1][rows] = True
        return np.flatnonzero(mask[self.position])


def classes_of(y: NDArray[Any]) -> NDArray[Any]:
    """Return the different labels in order; unusable ones get a sentence."""
    try:
        classes = np.unique(y)
    except TypeError:  # labels that cannot be compared
        kinds = sorted({type(label).__name__ for label in y.tolist()})
        raise ValueError(f"The labels in y must be of one type, got {' and '.join(kinds)}.") from None
    check_classification_targets(y)
    if classes.size < 2:
        raise ValueError(f"y must contain at least two classes, got only one class: {classes.tolist()}.")
    return classes


def encode(
    X: Any, y: NDArray[Any], classes: NDArray[Any], sample_weight: Any, class_weight: Any, is_precomputed: bool = False
) -> Sample:
    """Drop samples of weight zero, multiply in class weights, and bring small samples into canonical form."""
    codes = np.searchsorted(classes, y).astype(np.intp)
    if sample_weight is None:
        given = np.ones(len(y))
    elif not np.any(np.asarray(sample_weight)):
        raise ValueError("sample_weight is zero for every sample; at least two classes need positive weight.")
    else:
        given = _check_sample_weight(sample_weight, X, dtype=np.float64)
    if np.any(given < 0):
        raise ValueError("sample_weight must not be negative.")
    keep = np.flatnonzero(given > 0)
    if np.unique(codes[keep]).size < 2:
        raise ValueError("Only one class has samples of positive sample_weight; at least two are needed.")
    position = np.full(len(y), -1, dtype=np.intp)
    position[keep] = np.arange(keep.size)
    if keep.size < len(y):
        X, codes, given = (X[np.ix_(keep, keep)] if is_precomputed else X[keep]), codes[keep], given[keep]
    if not is_precomputed and X.shape[0] * max(1, X.shape[1]) <= CANONICAL_ENTRIES:
        X, codes, given, where = _canonical(X, codes, given)
        position = np.where(position >= 0, where[position], -1)
    return Sample(X, codes, given * _class_factor(class_weight, classes, codes, given), given, position)


def _canonical(
    X: Any, codes: NDArray[Any], weights: NDArray[Any]
) -> tuple[Any, NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Sort rows by (label, features) and merge equal ones, adding their weights."""
    dense = X.toarray() if sp.issparse(X) else X
    table = np.column_stack([codes, dense]) + 0.0  # + 0.0 turns -0.0 into 0.0
    _, first, inverse = np.unique(table, axis=0, return_index=True, return_inverse=True)
    inverse = inverse.ravel()
    merged = np.bincount(inverse, weights=weights)
    return X[first], codes[first], merged, inverse


def _class_factor(
    class_weight: Any, classes: NDArray[Any], codes: NDArray[Any], given: NDArray[Any]
) -> NDArray[np.float64]:
    if class_weight is None:
        return np.ones(codes.size)
    if isinstance(class_weight, str) and class_weight == "balanced":
        total = np.bincount(codes, weights=given, minlength=classes.size)
        present = total > 0
        factor = np.where(present, given.sum() / (present.sum() * np.where(present, total, 1.0)), 0.0)
    else:
        factor = compute_class_weight(class_weight, classes=classes, y=classes[codes])
        if not np.all(np.isfinite(factor) & (factor >= 0)):
            raise ValueError(f"class_weight must hold finite numbers that are not negative, got {class_weight!r}.")
    return factor[codes]
