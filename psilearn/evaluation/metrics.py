"""How good a classifier is that may abstain: Chow's loss, risk and coverage, and the paper's information criterion."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray


def chow_loss(
    y_true: ArrayLike, y_pred: ArrayLike, abstained: ArrayLike, d: ArrayLike, sample_weight: Any = None
) -> float:
    """Return the mean of Chow's loss: 1 for a wrong answer, d for an abstention, 0 for a right answer (Chow 1970).

    ``d`` is a number, or one per sample where the cost of abstaining depends on the class.
    """
    wrong = np.asarray(y_true) != np.asarray(y_pred)
    loss = np.where(np.asarray(abstained, dtype=bool), np.asarray(d, dtype=np.float64), wrong.astype(np.float64))
    return float(np.average(loss, weights=sample_weight))


class RiskCoverage(NamedTuple):
    """Error among the answered (``risk``) against the share answered (``coverage``), one point per distinct threshold.

    ``thresholds[i]`` is the confidence from which on a sample is answered at point i; coverage rises.
    """

    coverage: NDArray[np.float64]
    risk: NDArray[np.float64]
    thresholds: NDArray[np.float64]

    @property
    def area(self) -> float:
        """Area under risk against coverage (smaller is better): the mean risk over all shares answered."""
        return float(np.trapezoid(np.r_[self.risk[0], self.risk], np.r_[0.0, self.coverage]))


def risk_coverage_curve(
    y_true: ArrayLike, y_pred: ArrayLike, confidence: ArrayLike, sample_weight: Any = None
) -> RiskCoverage:
    """Return selective risk against coverage as the confidence asked for falls; equal confidences are one point."""
    confidence = np.asarray(confidence, dtype=np.float64)
    if confidence.ndim != 1 or confidence.size == 0 or confidence.size != len(np.asarray(y_true)):
        raise ValueError("confidence must hold one number per sample, at least one.")
    weight = np.ones(confidence.size) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    wrong = weight * (np.asarray(y_true) != np.asarray(y_pred))
    order = np.argsort(-confidence, kind="stable")
    answered, errors = np.cumsum(weight[order]), np.cumsum(wrong[order])
    last = np.r_[np.flatnonzero(np.diff(confidence[order]) != 0), confidence.size - 1]
    risk = np.divide(errors[last], answered[last], out=np.zeros(last.size), where=answered[last] > 0)
    return RiskCoverage(answered[last] / answered[-1], risk, confidence[order][last])


def chow_rule(probabilities: ArrayLike, d: float) -> NDArray[np.bool_]:
    """Return where Chow's rule abstains: the largest class probability does not exceed 1 - d."""
    return np.asarray(probabilities, dtype=np.float64).max(axis=1) <= 1.0 - d


def information_criterion(estimator: Any, X: Any, y: Any) -> float:
    """Return mean loss + log(n)/(2n) times the number of non-zero coefficients (Choi, Kim, Han and Kang 2009, 3.2).

    Compare values at one d only: the loss falls as d rises to 1/2, so the criterion cannot choose d.
    """
    if not hasattr(estimator, "coef_"):
        raise ValueError("information_criterion counts coefficients; it needs a fitted linear estimator.")
    problem = estimator.problem(X, y)
    loss = problem.loss.value(problem.margins(estimator.coef_, estimator.intercept_), problem.y)
    n = float(problem.weights.sum())
    size = int(np.count_nonzero(np.any(estimator.coef_ != 0, axis=0)))
    return float(problem.weights @ loss) / n + np.log(n) / (2.0 * n) * size
