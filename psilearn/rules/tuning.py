"""The nu of LP-Boost with the smallest held-out error.

nu bounds the share of margin errors: far below twice the error rate of the best vote the largest soft margin is 0 and
the model constant, far above it one or two rules have the largest soft margin. No single value suits all data.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold

from ..core.solving import Clock
from . import lpboost
from .observations import Observations
from .pricing.oracles import Column, Oracle, answers

#: Values of nu that are tried, largest first: each starts from the columns of the one before.
NUS = (0.7, 0.5, 0.4, 0.3, 0.2, 0.1, 0.05)
#: Folds of the cross-validation, and the share of the time limit that it may take.
FOLDS, SHARE = 3, 0.7


def held_out_mistakes(columns: list[Column], weights: NDArray, test: Observations, majority: int) -> float:
    """Weight of the test observations that the vote gets wrong; ties go to the majority of the training part."""
    score = np.zeros(test.y.size)
    for column, weight in zip(columns, weights):
        if weight > 0:
            score += weight * answers(column, test.X)
    given = np.where(np.abs(score) < 1e-12, majority, np.sign(score))
    return float(test.weight @ (given != test.y))


def best_nu(
    data: Observations, oracle_of: Callable[[Observations], Oracle], seed: int, tol: float, time_limit: float
) -> float:
    """Cross-validate over :data:`NUS`; of equal ones the largest nu, whose model is the shortest.

    With fewer than two observations of a class nothing can be held out, and nu is 1/2.
    """
    folds = min(FOLDS, int((data.y > 0).sum()), int((data.y < 0).sum()))
    if folds < 2:
        return 0.5
    clock = Clock(SHARE * time_limit)
    mistakes = np.zeros(len(NUS))
    for train, test in StratifiedKFold(folds, shuffle=True, random_state=seed).split(data.X, data.y):
        part, rest = data.subset(train), data.subset(test)
        oracle = oracle_of(part)
        start: list[Column] = []
        for k, nu in enumerate(NUS):
            result = lpboost.solve(part, oracle, nu, tol=tol, time_limit=max(0.0, clock.left), start=start)
            mistakes[k] += held_out_mistakes(result.columns, result.weights, rest, part.majority)
            start = [column for column, weight in zip(result.columns, result.weights) if weight > 0]
    return NUS[int(np.argmin(mistakes))]
