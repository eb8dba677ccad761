"""SLIPPER as a classifier: greedy rules, for comparison with those that are proved."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from ...rules import checks, slipper
from ...rules.observations import Observations
from ...rules.pricing.oracles import Column
from ..docstrings import completed
from .booster import RuleBooster

__all__ = ["SlipperClassifier"]


@completed
class SlipperClassifier(RuleBooster):
    """SLIPPER of Cohen and Singer, A simple, fast, and effective rule learner (1999): greedy rules, boosted.

    A comparator without a certificate: the rules are grown greedily, pruned on held-out observations, and weighted by
    boosting with confidences; the number of rounds is chosen by cross-validation.

    Parameters
    ----------
    max_rounds : int, default=100
        Rounds of boosting at most.
    folds : int, default=5
        Folds of the cross-validation that chooses the number of rounds; below 2, all rounds are used.
    binarizer : "auto", "support" or LogicalBinarizer, default="auto"
        As in :class:`LPBoostClassifier`.
    random_state : int, RandomState or None, default=0
        Seed of the splits.

    Attributes
    ----------
    objective_ : float
        prod_t Z_t, a bound on the training error (summed over problems).
    lower_bound_ : float
        Always -inf: nothing is proved.

    See Also
    --------
    LPBoostClassifier : The largest soft margin, proved.
    L0BoostClassifier : Few rules.

    Examples
    --------
    >>> import numpy as np
    >>> from psilearn import SlipperClassifier
    >>> X, y = np.arange(40.0)[:, None], ["low"] * 20 + ["high"] * 20
    >>> model = SlipperClassifier(folds=0).fit(X, y)
    >>> model.predict([[1.5], [35.5]]).tolist()
    ['low', 'high']
    """

    @property
    def _promises_optimum(self) -> bool:
        return False

    def __init__(self, max_rounds: int = 100, folds: int = 5, binarizer: Any = "auto", random_state: Any = 0) -> None:
        self.max_rounds = max_rounds
        self.folds = folds
        self.binarizer = binarizer
        self.random_state = random_state

    _against_constant = "No rule was better on held-out observations: give more rounds or more data."

    def _check_parameters(self) -> None:
        checks.count("max_rounds", self.max_rounds, 1)
        checks.count("folds", self.folds, 0)

    def _solve(self, data: Observations, seconds: float) -> tuple[list[Column], NDArray[Any], Any]:
        result = slipper.fit(data, self.max_rounds, self.folds, check_random_state(self.random_state))
        return result.columns, result.weights, result

    def _bound_of(self, result: slipper.SlipperResult) -> float:
        return -np.inf
