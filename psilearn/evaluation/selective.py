"""When to answer: thresholds chosen by cost, and thresholds with a guarantee on the error among the answered."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import binom


class Guarantee(NamedTuple):
    """With probability ``confidence`` over the calibration sample, the error among the answered is at most ``risk``.

    ``threshold`` is inf if no threshold could be proved: then nothing is answered.
    """

    threshold: float
    risk: float
    confidence: float
    coverage: float
    n_calibration: int
    n_errors: int

    def __str__(self) -> str:
        if np.isinf(self.threshold):
            return f"no threshold provably keeps errors among answered below {self.risk:.1%}: nothing is answered"
        return (
            f"at most {self.risk:.1%} errors among answered, with {self.confidence:.0%} confidence, answering "
            f"{self.coverage:.1%} (from {self.n_calibration} held-out samples)"
        )


def cheapest_threshold(
    confidence: ArrayLike, correct: ArrayLike, d: ArrayLike, weights: ArrayLike | None = None
) -> float:
    """Return the threshold that minimises Chow's empirical cost when samples with confidence <= threshold abstain.

    ``d`` is the cost of an abstention, a number or one per sample.

    Among equally cheap thresholds the middle of the widest interval is taken, so that the choice is stable.
    """
    confidence = np.asarray(confidence, dtype=np.float64)
    weight = np.ones(confidence.size) if weights is None else np.asarray(weights, dtype=np.float64)
    order = np.argsort(confidence, kind="stable")
    c = confidence[order]
    wrong = (weight * ~np.asarray(correct, dtype=bool))[order]
    # Cost when the lowest r samples abstain, r = 0..n.
    paid = (np.asarray(d, dtype=np.float64) * weight)[order]
    cost = np.r_[0.0, np.cumsum(paid)] + wrong.sum() - np.r_[0.0, np.cumsum(wrong)]
    edges = np.r_[0.0, c, c[-1]]
    splits = np.r_[True, np.diff(c) > 0, True]  # equal confidences cannot be told apart
    cost = np.where(splits, cost, np.inf)
    best = np.flatnonzero(cost <= cost.min() + 1e-12 * max(1.0, weight.sum()))
    width = edges[best + 1] - edges[best]
    at = best[np.argmax(width)]
    return float(0.5 * (edges[at] + edges[at + 1])) if at < c.size else float(c[-1])


def guaranteed_threshold(
    confidence: ArrayLike, correct: ArrayLike, candidates: ArrayLike, risk: float = 0.05, level: float = 0.95
) -> Guarantee:
    """Return the smallest candidate threshold whose selective risk is provably at most ``risk``.

    The candidates are tested from the largest down; each null hypothesis "the error among samples with confidence
    above it exceeds ``risk``" is rejected when the binomial tail P(Bin(answered, risk) <= errors) <= 1 - level, and the
    first failure stops. Testing in a fixed order keeps the level without a correction for the number of tests, provided
    the candidates do not depend on the calibration labels or scores: take them from the training sample.

    Parameters
    ----------
    confidence, correct : array-like of shape (n,)
        Confidence and correctness on a calibration sample that was not used for fitting.
    candidates : array-like
        Thresholds fixed beforehand.
    risk, level : float
        The promise: error among answered <= risk with probability >= level.
    """
    if not (0 < risk < 1 and 0 < level < 1):
        raise ValueError("risk and level must lie strictly between 0 and 1.")
    confidence = np.asarray(confidence, dtype=np.float64)
    correct = np.asarray(correct, dtype=bool)
    n = confidence.size
    best = Guarantee(np.inf, risk, level, 0.0, n, 0)
    # Fewer answers than log(1 - level) / log(1 - risk) cannot prove anything, and a few more tolerate no error, so a
    # fifth of the sample is asked for. Where to start depends on the scores alone, so it does not touch the level.
    enough = max(min(3.0 * np.log(1.0 - level) / np.log(1.0 - risk), 0.5 * n), 0.2 * n)
    for threshold in np.sort(np.unique(np.asarray(candidates, dtype=np.float64)))[::-1]:
        answered = confidence > threshold
        count, errors = int(answered.sum()), int(np.sum(~correct[answered]))
        if count < enough:
            continue
        if binom.cdf(errors, count, risk) > 1.0 - level:
            break
        best = Guarantee(float(threshold), risk, level, count / n, n, errors)
    return best


def confidence_of(F: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return ``|f|`` for two classes, the lead of the best class over the second for more."""
    if F.ndim == 1:
        return np.abs(F)
    top = np.partition(F, -2, axis=1)
    return top[:, -1] - top[:, -2]
