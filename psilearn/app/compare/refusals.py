"""Which classes a robust fit has given up."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..words import shown


def given_up(labels: Any, refused: Any) -> list[str]:
    """Say of which classes a fit refuses more than half of the labels: it has given them up, whatever their labels.

    Parameters
    ----------
    labels : array-like of shape (n,)
        The labels.
    refused : array-like of int or bool
        Which of them are refused.
    """
    labels = np.asarray(labels)
    classes, codes = np.unique(labels, return_inverse=True)
    counts, lost = np.bincount(codes), np.bincount(codes[np.asarray(refused)], minlength=classes.size)
    return [
        f"refuses {lost[j]} of the {counts[j]} labels '{shown(classes[j], 40)}': it has given this class up, which "
        "says little about the labels"
        for j in np.flatnonzero(2 * lost > counts)
    ]
