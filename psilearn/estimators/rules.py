"""Classifiers that are short lists of weighted rules: LP-Boost, L0-RBoost, and SLIPPER for comparison."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from ..core.result import Verification, relative_gap
from ..rules import lpboost, slipper
from ..rules.binarize import LogicalBinarizer
from ..rules.l0 import boost as l0boost
from ..rules.observations import Observations
from ..rules.pricing.oracles import Column, MonomialOracle, Oracle
from ._rule_booster import RuleBooster, Training
from .rule_claims import check_l0, check_lpboost

__all__ = ["L0BoostClassifier", "LPBoostClassifier", "SlipperClassifier"]


class LPBoostClassifier(RuleBooster):
    """LP-Boost: the voting classifier of largest soft margin over all monomials up to an order.

    Equation (3) of Goldberg and Eckstein, Tightened L0-Relaxation Penalties for Classification (2009), solved to proved
    optimality by column generation with exact pricing: maximise rho - D sum_i xi_i with D = 1 / (nu M).

    Parameters
    ----------
    nu : float in (0, 1], default=0.5
        Upper bound on the fraction of margin errors. If no voting classifier gets along with so few, the largest soft
        margin is 0: the two constant rules cancel, and every observation is given the majority's class. Raise nu then;
        with flipped labels it must exceed about twice the fraction of flips.
    max_order : int, default=1
        Largest number of conditions in a rule, K.
    binarizer : transformer, optional
        A :class:`LogicalBinarizer`; the default one if None. Not used for data that are 0/1 already.
    base_learner : classifier or "precomputed", optional
        Another base learner instead of monomials: a scikit-learn classifier that takes sample weights (then nothing is
        proved), or "precomputed" if X itself holds the answers of the base classifiers, in [-1, 1].
    tol : float, default=1e-9
        Tolerance on edges.
    max_iter : int, default=10000
        Rounds of column generation.
    time_limit : float, optional
        Seconds for the whole fit, shared by the problems of more than two classes.

    Attributes
    ----------
    rules_, weights_, n_rules_
        The rules with positive weight, largest first. With k > 2 classes there is one problem per class;
        ``rule_problem_`` says which one a rule belongs to.
    objective_ : float
        The soft margin rho - D sum xi (summed over problems), recomputed from the weights.
    lower_bound_ : float
        The same: what is reached bounds the maximum from below.
    upper_bound_ : float
        Proved upper bound on the soft margin.
    gap_ : float
        Relative gap (upper_bound_ - objective_) / max(|objective_|, eps); 0 where the difference is within the
        tolerance on edges (twice ``tol`` for each problem), since the soft margin itself may be 0.
    status_, n_iter_, history_, results_
        Why it stopped, rounds, (seconds, objective, bound), the solver's results.
    """

    def __init__(
        self, nu=0.5, max_order=1, binarizer=None, base_learner=None, tol=1e-9, max_iter=10_000, time_limit=None
    ):
        self.nu = nu
        self.max_order = max_order
        self.binarizer = binarizer
        self.base_learner = base_learner
        self.tol = tol
        self.max_iter = max_iter
        self.time_limit = time_limit

    def _solve(self, data: Observations, seconds: float) -> tuple[list[Column], NDArray, Any]:
        oracle = self._oracle(data, lambda order: 0.0)
        result = lpboost.solve(data, oracle, self.nu, tol=self.tol, max_iter=self.max_iter, time_limit=seconds)
        return result.columns, result.weights, result

    def _checked(self, data: Observations, result: lpboost.LPBoostResult) -> Verification:
        return check_lpboost(data, self._oracle(data, lambda order: 0.0), self.nu, result)

    def _bound_of(self, result: lpboost.LPBoostResult) -> float:
        return result.objective

    def _collect(self, training: Training, fits: list, targets: list[int]) -> None:
        super()._collect(training, fits, targets)
        self.upper_bound_ = float(sum(result.upper_bound for result in self.results_))
        is_closed = self.upper_bound_ - self.objective_ <= 2 * self.tol * len(self.results_)
        self.gap_ = 0.0 if is_closed else relative_gap(-self.objective_, -self.upper_bound_)


class L0BoostClassifier(RuleBooster):
    """L0-RBoost: few rules, by boosting on a tightened relaxation of the L0 penalty.

    Relaxation (18) of Goldberg and Eckstein, Tightened L0-Relaxation Penalties for Classification (2009), with valid
    cuts and complete pricing: minimise sum_i xi_i + sum_u c_u mu_u over voting classifiers of margin rho, with cuts
    that ask for a rule wherever two observations of different classes are both to be classified correctly.

    Parameters
    ----------
    rho : float in (0, 1] or "auto", default="auto"
        Required margin; "auto" is 20 / M.
    max_order : int, default=1
        Largest number of conditions in a rule, K.
    kappa : float, default=1.5
        Constant of the code length (28).
    costs : "mdl", float or callable, default="mdl"
        c_u: the code length (28), a constant, or a function of the order.
    cuts : {"valid", "paper"}, default="valid"
        Valid pair cuts, or those printed in the paper, which are no relaxation and give no lower bound.
    binarizer, base_learner
        As in :class:`LPBoostClassifier`; the answers of a given base learner must be -1, 0 or 1.
    tol : float, default=1e-6
        Tolerance on reduced costs and cuts.
    max_iter : int, default=10000
        Rounds of column and cut generation.
    time_limit : float, optional
        Seconds for the whole fit, shared by the problems of more than two classes.

    Attributes
    ----------
    rules_, weights_, n_rules_
        The rules with positive weight lambda, largest first; see :class:`LPBoostClassifier`.
    objective_ : float
        z of (18), recomputed (summed over problems).
    lower_bound_ : float
        A proved bound on z over all rules and so on the integer optimum (15); -inf with ``cuts="paper"``.
    rho_ : float
        The margin used.
    certificate_ : list of RelaxationCertificate
        For each problem: z, smallest reduced cost, largest cut violation, lower bound, and the bound on the integer
        optimum, which is rounded up if costs and weights are integers.
    gap_, status_, n_iter_, history_, results_
        Relative gap, why it stopped, rounds, (seconds, objective, bound), the solver's results.
    """

    def __init__(
        self,
        rho="auto",
        max_order=1,
        kappa=1.5,
        costs="mdl",
        cuts="valid",
        binarizer=None,
        base_learner=None,
        tol=1e-6,
        max_iter=10_000,
        time_limit=None,
    ):
        self.rho = rho
        self.max_order = max_order
        self.kappa = kappa
        self.costs = costs
        self.cuts = cuts
        self.binarizer = binarizer
        self.base_learner = base_learner
        self.tol = tol
        self.max_iter = max_iter
        self.time_limit = time_limit

    def _cost(self, data: Observations) -> Callable[[int], float]:
        if callable(self.costs):
            return lambda order: float(self.costs(order))
        if isinstance(self.costs, Real):
            return lambda order: float(self.costs)
        if self.costs != "mdl":
            raise ValueError(f"costs must be 'mdl', a number or a callable, got {self.costs!r}.")
        K = max(1, min(self.max_order, data.X.shape[1])) if self.base_learner is None else 1
        table = l0boost.mdl_costs(K, data.X.shape[1], data.total, self.kappa)
        return lambda order: float(table[order])

    def _solve(self, data: Observations, seconds: float) -> tuple[list[Column], NDArray, Any]:
        if (
            self.base_learner is not None
            and isinstance(self.base_learner, str)
            and not np.isin(data.X, (-1, 0, 1)).all()
        ):
            raise ValueError("L0-RBoost needs answers -1, 0 or 1 from a precomputed base learner.")
        self.rho_ = self._margin(data)
        oracle, costs = self._priced(data)
        result = l0boost.solve(
            data, oracle, self.rho_, cuts=self.cuts, min_cost=min(costs), tol=self.tol,
            integer_costs=all(c.is_integer() for c in costs), max_iter=self.max_iter, time_limit=seconds,
        )  # fmt: skip
        return result.columns, result.weights, result

    def _margin(self, data: Observations) -> float:
        return min(1.0, 20.0 / data.total) if isinstance(self.rho, str) and self.rho == "auto" else self.rho

    def _priced(self, data: Observations) -> tuple[Oracle, list[float]]:
        """Return the base learner and the costs of its orders."""
        cost = self._cost(data)
        oracle = self._oracle(data, cost)
        return oracle, [
            cost(order) for order in range(oracle.max_order + 1 if isinstance(oracle, MonomialOracle) else 2)
        ]

    def _checked(self, data: Observations, result: l0boost.L0BoostResult) -> Verification:
        oracle, costs = self._priced(data)
        return check_l0(data, oracle, self._margin(data), costs, result)

    def _bound_of(self, result: l0boost.L0BoostResult) -> float:
        return result.lower_bound

    def _collect(self, training: Training, fits: list, targets: list[int]) -> None:
        super()._collect(training, fits, targets)
        self.certificate_ = [result.certificate for result in self.results_]
        self.gap_ = relative_gap(self.objective_, self.lower_bound_)


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
    binarizer : transformer, optional
        A :class:`LogicalBinarizer`; all cut points if None.
    random_state : int, RandomState or None, default=0
        Seed of the splits.

    Attributes
    ----------
    rules_, weights_, n_rules_
        Distinct rules with their total confidences.
    objective_ : float
        prod_t Z_t, a bound on the training error (summed over problems). ``lower_bound_`` is -inf: nothing is proved.
    """

    _promises_optimum = False

    def __init__(self, max_rounds=100, folds=5, binarizer=None, random_state=0):
        self.max_rounds = max_rounds
        self.folds = folds
        self.binarizer = binarizer
        self.random_state = random_state

    def _default_binarizer(self) -> LogicalBinarizer:
        return LogicalBinarizer(support=None)

    def _solve(self, data: Observations, seconds: float) -> tuple[list[Column], NDArray, Any]:
        result = slipper.fit(data, self.max_rounds, self.folds, check_random_state(self.random_state))
        return result.columns, result.weights, result

    def _bound_of(self, result: slipper.SlipperResult) -> float:
        return -np.inf
