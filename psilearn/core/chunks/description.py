"""What one reading of the samples tells before a fit: counts, labels, means, what is wrong, and a few rows."""

from __future__ import annotations

from functools import reduce
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .blocks import Block

Array = NDArray[np.float64]


class Description(NamedTuple):
    """What one reading of a block tells.

    Attributes
    ----------
    n : int
        Rows.
    labels : dict
        Label -> (rows of positive weight, their weight).
    mean, spread : ndarray
        Mean of every column and the sum of squared distances from it.
    bad : int
        Entries that are not finite, and weights that are negative or not finite.
    peak : float
        Largest weight.
    rows : list of Block
        Some rows, chosen at random.
    """

    n: int
    labels: dict[Any, tuple[int, float]]
    mean: Array
    spread: Array
    bad: int
    negative: int
    peak: float
    rows: list[Block]

    def plus(self, other: Description) -> Description:
        """Join the descriptions of two sets of rows (means and spreads by Chan's formula)."""
        n = self.n + other.n
        share = other.n / n if n else 0.0
        step = other.mean - self.mean
        labels = dict(self.labels)
        for label, (count, weight) in other.labels.items():
            old = labels.get(label, (0, 0.0))
            labels[label] = (old[0] + count, old[1] + weight)
        return Description(
            n, labels, self.mean + share * step, self.spread + other.spread + step**2 * self.n * share,
            self.bad + other.bad, self.negative + other.negative, max(self.peak, other.peak), self.rows + other.rows,
        )  # fmt: skip


def join(left: Description, right: Description) -> Description:
    """Join two descriptions."""
    return left.plus(right)


def describe(index: int, block: Block, share: float, seed: int) -> Description:
    """Count, average and check a block's rows, and take a random share of them."""
    rng = np.random.default_rng([seed, index])
    p = block.X.shape[1]
    total = Description(0, {}, np.zeros(p), np.zeros(p), 0, 0, 0.0, [])
    return reduce(join, (_describe_part(part, share, rng) for part in block.parts()), total)


def _describe_part(part: Block, share: float, rng: np.random.Generator) -> Description:
    X, y = part.X.astype(np.float64, copy=False), part.y
    assert y is not None
    if X.shape[0] != y.shape[0]:
        raise ValueError(f"A block of X has {X.shape[0]} rows, its part of y has {y.shape[0]}.")
    weights = np.ones(y.shape[0]) if part.weights is None else part.weights.astype(np.float64)
    used = weights > 0
    bad = int(X.size - np.count_nonzero(np.isfinite(X))) + int(np.count_nonzero(~np.isfinite(weights)))
    found, place = np.unique(y[used], return_inverse=True)
    counts, sums = np.bincount(place.ravel()), np.bincount(place.ravel(), weights=weights[used])
    labels = {label: (int(c), float(s)) for label, c, s in zip(found.tolist(), counts, sums)}
    few = np.flatnonzero(used & (rng.random(y.shape[0]) < share))
    rows = [Block(X[few], y[few], weights[few])]
    n = X.shape[0]
    mean = X.mean(axis=0) if n else np.zeros(X.shape[1])
    spread = np.einsum("ij,ij->j", X - mean, X - mean) if n else np.zeros(X.shape[1])
    negative = int(np.count_nonzero(weights < 0))
    return Description(n, labels, mean, spread, bad, negative, float(weights.max(initial=0.0)), rows)
