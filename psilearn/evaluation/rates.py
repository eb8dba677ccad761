"""Shares with intervals: Wilson's for errors, DeLong's for areas under ROC curves, McNemar's test for two methods."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import binomtest, norm, rankdata

Z95 = 1.959964


class Rate(NamedTuple):
    """A share and its 95% interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{100 * self.value:.1f}% ({100 * self.low:.1f}–{100 * self.high:.1f}%)"


def wilson(hits: int, n: int, z: float = Z95) -> tuple[float, float]:
    """Return Wilson's score interval of a share."""
    if n == 0:
        return 0.0, 1.0
    centre = (hits + z * z / 2) / (n + z * z)
    half = z / (n + z * z) * math.sqrt(hits * (n - hits) / n + z * z / 4)
    return max(0.0, centre - half), min(1.0, centre + half)


def rate(hits: ArrayLike) -> Rate:
    """Return the share of True, with Wilson's interval; nan without any."""
    hits = np.asarray(hits, dtype=bool)
    if hits.size == 0:
        return Rate(math.nan, 0.0, 1.0)
    return Rate(float(hits.mean()), *wilson(int(hits.sum()), hits.size))


def area_under_roc(scores: ArrayLike, positive: ArrayLike) -> Rate:
    """Return the area under the ROC curve and its interval (DeLong, DeLong and Clarke-Pearson, 1988).

    The interval is that of log(A / (1 - A)), so that it stays within 0 and 1.
    """
    scores, positive = np.asarray(scores, dtype=np.float64), np.asarray(positive, dtype=bool)
    up, down = scores[positive], scores[~positive]
    m, n = up.size, down.size
    if m < 2 or n < 2:
        return Rate(math.nan, 0.0, 1.0)
    among_all = rankdata(np.r_[up, down])
    v_up = (among_all[:m] - rankdata(up)) / n
    v_down = 1.0 - (among_all[m:] - rankdata(down)) / m
    area = float(v_up.mean())
    if not 0.0 < area < 1.0:
        # Nothing spreads; the interval is that of a share of as many hits as there are of the rarer class.
        low, high = wilson(round(area * min(m, n)), min(m, n))
        return Rate(area, low, high)
    spread = math.sqrt(v_up.var(ddof=1) / m + v_down.var(ddof=1) / n) / (area * (1.0 - area))
    logit = math.log(area / (1.0 - area))
    low, high = (1.0 / (1.0 + math.exp(-(logit + sign * Z95 * spread))) for sign in (-1, 1))
    return Rate(area, low, high)


class Paired(NamedTuple):
    """Two methods on the same rows: rows only the first got right, only the second, and McNemar's exact p value."""

    gained: int
    lost: int
    p: float

    @property
    def is_clear(self) -> bool:
        """Whether chance alone hardly explains the difference."""
        return self.p <= 0.05


def paired(wrong: NDArray[np.bool_], other_wrong: NDArray[np.bool_]) -> Paired:
    """Compare the errors of a method with those of another one on the same rows."""
    gained, lost = int(np.sum(other_wrong & ~wrong)), int(np.sum(wrong & ~other_wrong))
    p = binomtest(gained, gained + lost).pvalue if gained + lost else 1.0
    return Paired(gained, lost, float(p))


def difference(wrong: NDArray[np.bool_], other_wrong: NDArray[np.bool_]) -> Rate:
    """Return by how much a share of errors is smaller than another one on the same rows, with its 95% interval."""
    gain = other_wrong.astype(float) - wrong.astype(float)
    half = float(norm.ppf(0.975)) * float(gain.std(ddof=1)) / math.sqrt(gain.size) if gain.size > 1 else 1.0
    mean = float(gain.mean())
    return Rate(mean, mean - half, mean + half)


def calibration(probability: ArrayLike, positive: ArrayLike, bins: int = 10) -> list[tuple[float, Rate, int]]:
    """Return, for groups of equal size by predicted probability: its mean, the observed share, and the rows."""
    probability, positive = np.asarray(probability, dtype=np.float64), np.asarray(positive, dtype=bool)
    order = np.argsort(probability, kind="stable")
    parts = [part for part in np.array_split(order, min(bins, max(1, order.size // 10))) if part.size]
    return [(float(probability[part].mean()), rate(positive[part]), int(part.size)) for part in parts]
