"""Label noise shared by the generators: which labels are changed, and to what."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

Flip = Literal["others", "all"]


def flip_labels(y: NDArray, n_flips: int, classes: NDArray, rng: np.random.Generator, to: Flip = "others") -> NDArray:
    """Return a copy of y in which n_flips randomly chosen labels are redrawn with equal probabilities.

    Parameters
    ----------
    y : array of shape (n_samples,)
    n_flips : int
        How many samples are chosen, without replacement.
    classes : array
        The class labels.
    rng : numpy.random.Generator
    to : {"others", "all"}
        Redraw among the *other* classes (every chosen label changes) or among *all* classes (it may stay).
    """
    if not 0 <= n_flips <= len(y):
        raise ValueError(f"n_flips={n_flips} must lie between 0 and the number of samples, {len(y)}.")
    if to not in ("others", "all"):
        raise ValueError(f"flips go to 'others' or to 'all' classes, not to {to!r}.")
    noisy = np.array(y)
    chosen = rng.permutation(len(y))[:n_flips]
    k = len(classes)
    steps = rng.integers(1 if to == "others" else 0, k, size=n_flips)
    position = (np.searchsorted(classes, noisy[chosen]) + steps) % k
    noisy[chosen] = classes[position]
    return noisy


def flip_share(n_samples: int, share: float) -> int:
    """Return the number of flips that a share in [0, 1] of n_samples means."""
    if not 0.0 <= share <= 1.0:
        raise ValueError(f"the share of flipped labels must lie in [0, 1], got {share}.")
    return round(share * n_samples)
