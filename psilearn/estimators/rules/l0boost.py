"""L0-RBoost as a classifier: its parameters, score cards of few rules, and what it claims."""

from __future__ import annotations

import math
from dataclasses import replace
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from ...core.result import Status, Verification, relative_gap
from ...core.solving import Clock
from ...rules import checks, short, tuning
from ...rules.l0 import boost as l0boost
from ...rules.l0 import bounds, exact, limited
from ...rules.l0.result import L0BoostResult
from ...rules.observations import Observations
from ...rules.pricing.oracles import Column, MonomialOracle
from ..docstrings import completed
from .booster import RuleBooster, Training, is_auto
from .claims import check_l0, check_limited

__all__ = ["L0BoostClassifier"]


@completed
class L0BoostClassifier(RuleBooster):
    """L0-RBoost: few rules, by boosting on a tightened relaxation of the L0 penalty.

    Relaxation (18) of Goldberg and Eckstein, Tightened L0-Relaxation Penalties for Classification (2009), with valid
    cuts and complete pricing: minimise sum_i xi_i + sum_u c_u mu_u over voting classifiers of margin rho, with cuts
    that ask for a rule wherever two observations of different classes are both to be classified correctly.

    Parameters
    ----------
    rho : float in (0, 1], "auto" or "cv", default="auto"
        Required margin; "auto" is 20 / M. The smaller it is, the more rules there are, and the more wrong labels are
        believed: "cv" takes the margin that LP-Boost asks for at the smallest held-out loss in a cross-validation
        within the training data.
    max_order : int, default=1
        Largest number of conditions in a rule, K.
    kappa : float, default=1.5
        Constant of the code length (28).
    costs : "mdl", float or callable, default="mdl"
        Cost c_u of a rule: the code length (28), a constant, or a function of the order.
    max_rules : int, optional
        At most so many rules, constants included: the integer program (15) over the rules that the relaxation and local
        search propose, bounded over all rules. ``objective_`` is then the value in (15): mistakes plus costs.
    points : int, optional
        Whole numbers of points, at most so many for a rule; with ``max_rules=None`` at most 8 rules.
    cuts : {"valid", "paper"}, default="valid"
        Valid pair cuts, or those printed in the paper, which are no relaxation and give no lower bound.
    binarizer : "auto", "support" or LogicalBinarizer, default="auto"
        As in :class:`LPBoostClassifier`.
    base_learner : classifier or "precomputed", default=None
        As in :class:`LPBoostClassifier`; the answers must be -1, 0 or 1.
    tol : float, default=1e-6
        Tolerance on reduced costs and cuts.
    max_iter : int, default=10000
        Rounds of column and cut generation.
    time_limit : float, default=None
        Seconds for the whole fit, shared by the problems of more than two classes.
    random_state : int, default=0
        Seed of the folds with ``rho="cv"``.

    Attributes
    ----------
    objective_ : float
        z of (18), recomputed (summed over problems).
    lower_bound_ : float
        A proved bound on z over all rules and so on the integer optimum (15); -inf with ``cuts="paper"``.
    rho_ : float
        The margin used; of several problems the smallest.
    certificate_ : list of RelaxationCertificate
        For each problem: z, smallest reduced cost, largest cut violation, lower bound, and the bound on the integer
        optimum, which is rounded up if costs and weights are integers.
    gap_ : float
        Relative gap between objective_ and lower_bound_.

    See Also
    --------
    LPBoostClassifier : The largest soft margin.
    best_monomial : The single best rule.

    Examples
    --------
    >>> import numpy as np
    >>> from psilearn import L0BoostClassifier
    >>> X, y = np.arange(40.0)[:, None], ["low"] * 20 + ["high"] * 20
    >>> model = L0BoostClassifier(costs=0.5).fit(X, y)
    >>> model.predict([[1.5], [35.5]]).tolist()
    ['low', 'high']
    """

    def __init__(
        self,
        rho: Any = "auto",
        max_order: int = 1,
        kappa: float = 1.5,
        costs: Any = "mdl",
        max_rules: int | None = None,
        points: int | None = None,
        cuts: str = "valid",
        binarizer: Any = "auto",
        base_learner: Any = None,
        tol: float = 1e-6,
        max_iter: int = 10_000,
        time_limit: float | None = None,
        random_state: Any = 0,
    ) -> None:
        self.rho = rho
        self.max_order = max_order
        self.kappa = kappa
        self.costs = costs
        self.max_rules = max_rules
        self.points = points
        self.cuts = cuts
        self.binarizer = binarizer
        self.base_learner = base_learner
        self.tol = tol
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.random_state = random_state

    _against_constant = "Every rule costs more than the mistakes it saves: lower costs or kappa, or give more data."

    def _check_parameters(self) -> None:
        checks.count("max_order", self.max_order, 0)
        checks.count("max_iter", self.max_iter, 1)
        checks.tolerance(self.tol)
        is_named = is_auto(self.rho) or self._is_tuned
        if not is_named and not (isinstance(self.rho, Real) and 0 < float(self.rho) <= 1):
            raise ValueError(f"rho must lie in (0, 1], be 'auto' (20 / M) or 'cv', got {self.rho!r}.")
        if not callable(self.costs) and not isinstance(self.costs, Real) and self.costs != "mdl":
            raise ValueError(f"costs must be 'mdl', a number or a callable, got {self.costs!r}.")
        if not isinstance(self.kappa, Real) or not math.isfinite(self.kappa):
            raise ValueError(f"kappa must be a finite number, got {self.kappa!r}.")
        self._check_limits()

    def _costs(self, data: Observations) -> list[float]:
        """c(0), ..., c(K); classifiers that are not monomials count as order 1."""
        K = min(self.max_order, data.X.shape[1]) if self.base_learner is None else 1
        if callable(self.costs):
            return checks.positive_costs(self.costs(order) for order in range(K + 1))
        if isinstance(self.costs, Real):
            return checks.positive_costs([float(self.costs)] * (K + 1))
        table = bounds.mdl_costs(max(1, K), data.X.shape[1], data.total, self.kappa)
        return checks.positive_costs(table[: K + 1])

    def _solve(self, data: Observations, seconds: float) -> tuple[list[Column], NDArray[Any], Any]:
        if isinstance(self.base_learner, str) and not np.isin(data.X, (-1, 0, 1)).all():
            raise ValueError("L0-RBoost needs answers -1, 0 or 1 from a precomputed base learner.")
        clock, costs = Clock(seconds), self._costs(data)
        rho = self._tuned_margin(data, seconds) if self._is_tuned else self._margin(data)
        result = l0boost.solve(
            data, self._oracle(data, costs.__getitem__), rho, cuts=self.cuts, min_cost=min(costs), tol=self.tol,
            integer_costs=all(c.is_integer() for c in costs), max_iter=self.max_iter,
            time_limit=max(0.0, clock.left),
        )  # fmt: skip
        if self._is_short:
            result = self._short_list(data, costs, result, max(0.0, clock.left))
        return result.columns, result.votes, result

    def _short_list(
        self, data: Observations, costs: list[float], relaxed: L0BoostResult, seconds: float
    ) -> L0BoostResult:
        """The list of the integer program with at most ``max_rules`` rules, and its bound."""
        found = limited.solve(data, costs, relaxed.rho, relaxed, self._most_rules, seconds)
        columns, weights, points = found.columns, found.weights, None
        if self.points is not None:
            oracle = MonomialOracle(data, len(costs) - 1, costs)
            card = short.rounded(
                short.TwoClasses(data, oracle), short.Fitted(columns, weights, 0.0, np.empty(0)), self.points
            )
            columns, points, weights = card.columns, card.weights, card.weights / card.weights.sum()
        value, wrong = exact.evaluate(data, columns, weights, relaxed.rho)
        bound = min(found.lower_bound, value)
        certificate = replace(
            relaxed.certificate, objective=value, lower_bound=bound, integer_bound=bound, integer_value=value
        )
        is_proved = value - bound <= self.tol * max(1.0, abs(value))
        return replace(
            found.relaxed, columns=columns, weights=weights, mu=(weights > 0).astype(float), xi=wrong.astype(float),
            certificate=certificate, points=points, theta=found.theta,
            status=Status.OPTIMAL if is_proved else Status.HEURISTIC,
        )  # fmt: skip

    @property
    def _is_tuned(self) -> bool:
        return isinstance(self.rho, str) and self.rho == "cv"

    def _margin(self, data: Observations) -> float:
        """The margin that is given, or that of the paper."""
        return float(self.rho) if isinstance(self.rho, Real) else min(1.0, 20.0 / data.total)

    def _tuned_margin(self, data: Observations, seconds: float) -> float:
        """The margin that LP-Boost asks for at the price of smallest held-out loss."""
        clock = Clock(tuning.Settings().share * seconds)
        program = tuning.Program(data, lambda part, order: self._oracle(part, lambda _: 0.0, order))
        choice = tuning.choose(program, [self.max_order], None, self.random_state, seconds)
        model = tuning.model_of(program, choice, self.random_state, max(0.0, clock.left))
        return self._margin(data) if model is None else min(1.0, model.margin)

    def _numbers(self, data: Observations, part: int) -> dict[str, Any]:
        if self._is_tuned:
            check_is_fitted(self)
        costs = self._costs(data)
        rho = self.results_[part].rho if self._is_tuned else self._margin(data)
        return {"max_order": len(costs) - 1, "rho": rho, "costs": costs}

    def _checked(self, data: Observations, result: L0BoostResult) -> Verification:
        costs = self._costs(data)
        rho = result.rho if self._is_tuned else self._margin(data)
        if self._is_short:
            most, raised = self._most_rules, [cost + result.theta for cost in costs]
            oracle = self._oracle(data, raised.__getitem__)
            return check_limited(data, oracle, rho, costs, result, most)
        return check_l0(data, self._oracle(data, costs.__getitem__), rho, costs, result)

    def _bound_of(self, result: L0BoostResult) -> float:
        return result.lower_bound

    def _collect(self, training: Training, fits: list[Any], targets: list[int | None]) -> None:
        super()._collect(training, fits, targets)
        self.certificate_ = [result.certificate for result in self.results_]
        self.rho_ = min(result.rho for result in self.results_)
        self.gap_ = relative_gap(self.objective_, self.lower_bound_)
