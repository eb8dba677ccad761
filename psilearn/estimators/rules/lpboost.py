"""LP-Boost as a classifier: its parameters, score cards of few rules, and what it claims."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from ...core.result import Status, Verification, relative_gap
from ...core.solving import Clock
from ...rules import checks, frontier, joint, lpboost, short, tuning
from ...rules.observations import Observations
from ...rules.pricing.oracles import Column
from ..docstrings import completed
from .booster import RuleBooster, Training, is_auto
from .claims import check_joint, check_lpboost

__all__ = ["LPBoostClassifier"]

#: Orders that ``max_order="auto"`` tries: the third took most of the time, and on breast cancer data it did not help.
ORDERS = (1, 2)
#: Relative gap of the program that bounds short lists.
BOUND_GAP = 0.05


@completed
class LPBoostClassifier(RuleBooster):
    """LP-Boost: the voting classifier of largest soft margin over all monomials up to an order.

    Equation (3) of Goldberg and Eckstein, Tightened L0-Relaxation Penalties for Classification (2009), solved to proved
    optimality by column generation with exact pricing: maximise rho - D sum_i xi_i with D = 1 / (nu M).

    Parameters
    ----------
    nu : float in (0, 1] or "auto", default=0.5
        Upper bound on the fraction of margin errors. If no voting classifier gets along with so few, the largest soft
        margin is 0: the two constant rules cancel, and every observation is given the majority's class. Raise nu then;
        with flipped labels it must exceed about twice the fraction of flips. Where the classes are easy to tell apart,
        a large nu gives a very short and less accurate list. "auto" takes the value with the smallest held-out error in
        a cross-validation within the training data.
    max_order : int or "auto", default=1
        Largest number of conditions in a rule, K; "auto" takes 1 or 2 by the same cross-validation.
    max_rules : int, optional
        At most so many rules, constants included: a list found by local search, bounded by the program without this
        limit. With ``nu="auto"`` fewer are used if held-out errors say that more do not help, and ``nu_`` is about
        twice the share of mistakes that the list makes.
    points : int, optional
        Whole numbers of points, at most so many for a rule: a score card, of at most 8 rules if ``max_rules`` is None.
    multiclass : {"joint", "one-vs-rest"}, default="joint"
        With k > 2 classes: one program in which every rule votes for one class and margins are against the best rival
        class (see :mod:`psilearn.rules.joint`), or k problems of one class against all others. A given base learner
        has only the latter.
    binarizer : "auto", "support", "all" or LogicalBinarizer, default="auto"
        How features become yes/no attributes: up to 32 cut points for each number where the class can change, an
        attribute for each category and one for missing values ("auto"); or the few of them that still tell the classes
        apart ("support"), as in the paper. Not used for data that are 0/1 already. "all" takes every cut point at which
        the class changes, for rules of one condition: nothing is chosen beforehand, and ``attributes_`` are those that
        the rules use.
    base_learner : classifier or "precomputed", default=None
        Another base learner instead of monomials: a scikit-learn classifier that takes sample weights (then nothing is
        proved), or "precomputed" if X itself holds the answers of the base classifiers, in [-1, 1].
    tol : float, default=1e-9
        Tolerance on edges.
    max_iter : int, default=10000
        Rounds of column generation.
    time_limit : float, default=None
        Seconds for the whole fit, shared by the problems of more than two classes.
    random_state : int, default=0
        Seed of the folds with ``nu="auto"`` and ``max_order="auto"``.

    Attributes
    ----------
    objective_ : float
        The soft margin rho - D sum xi (summed over problems), recomputed from the weights.
    lower_bound_ : float
        The same: what is reached bounds the maximum from below.
    upper_bound_ : float
        Proved upper bound on the soft margin.
    nu_ : ndarray
        The nu of each problem.
    max_order_ : ndarray
        The order of each problem.
    held_out_error_ : float
        Error of the chosen nu and order (or length) in the cross-validation that chose them; nan if nothing was chosen.
    gap_ : float
        Relative gap (upper_bound_ - objective_) / max(|objective_|, eps); 0 where the difference is within the
        tolerance on edges (twice ``tol`` for each problem), since the soft margin itself may be 0.

    See Also
    --------
    L0BoostClassifier : Few rules.
    best_monomial : The single best rule.

    Examples
    --------
    >>> import numpy as np
    >>> from psilearn import LPBoostClassifier
    >>> X, y = np.arange(40.0)[:, None], ["low"] * 20 + ["high"] * 20
    >>> model = LPBoostClassifier().fit(X, y)
    >>> model.predict([[1.5], [35.5]]).tolist()
    ['low', 'high']
    """

    def __init__(
        self,
        nu: Any = 0.5,
        max_order: Any = 1,
        binarizer: Any = "auto",
        base_learner: Any = None,
        max_rules: int | None = None,
        points: int | None = None,
        multiclass: str = "joint",
        tol: float = 1e-9,
        max_iter: int = 10_000,
        time_limit: float | None = None,
        random_state: Any = 0,
    ) -> None:
        self.nu = nu
        self.max_order = max_order
        self.max_rules = max_rules
        self.points = points
        self.multiclass = multiclass
        self.binarizer = binarizer
        self.base_learner = base_learner
        self.tol = tol
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.random_state = random_state

    _against_constant = (
        "The largest soft margin is 0, because no vote gets along with as few margin errors as nu allows: "
        "raise nu (to more than twice the share of wrong labels), or set nu='auto'."
    )

    def _check_parameters(self) -> None:
        if not is_auto(self.max_order):
            checks.count("max_order", self.max_order, 0)
        checks.count("max_iter", self.max_iter, 1)
        checks.tolerance(self.tol)
        self._check_limits()
        if self._has_all_cuts and (self.max_order != 1 or self._is_short or self.base_learner is not None):
            raise ValueError("binarizer='all' is for max_order=1 without max_rules, points and base_learner.")
        if self.multiclass not in ("joint", "one-vs-rest"):
            raise ValueError(f"multiclass must be 'joint' or 'one-vs-rest', got {self.multiclass!r}.")
        if not is_auto(self.nu) and (not isinstance(self.nu, Real) or not 0 < float(self.nu) <= 1):
            raise ValueError(
                f"nu must lie in (0, 1] or be 'auto', got {self.nu!r}: it is the largest share of the observations "
                f"that may have less than the margin."
            )

    def _targets(self) -> list[int | None]:
        is_joint = self.classes_.size > 2 and self.multiclass == "joint" and self.base_learner is None
        if is_joint and self._has_all_cuts:
            raise ValueError("binarizer='all' with more than two classes needs multiclass='one-vs-rest'.")
        return [None] if is_joint else super()._targets()

    def _solve(self, data: Observations, seconds: float) -> tuple[list[Column], NDArray[Any], Any]:
        clock = Clock(seconds)
        program = self._program(data)
        if self._is_short:
            result = self._short_list(program, seconds)
            return result.columns, result.votes, result
        choice = self._choice(program, seconds)
        result = tuning.solve(
            program, choice, self.random_state, max(0.0, clock.left), tol=self.tol, max_iter=self.max_iter
        )
        result = replace(result, max_order=choice.order, held_out_error=choice.error)
        return result.columns, result.weights, result

    def _short_list(self, program: tuning.Program, seconds: float) -> lpboost.LPBoostResult:
        """A list of few rules, and the bound of the program without a limit on their number."""
        clock, most = Clock(seconds), self._most_rules
        orders = list(ORDERS) if is_auto(self.max_order) else [self.max_order]
        choice = frontier.Choice(orders[0], most, np.full(most, np.nan), np.full(most, np.nan))
        if is_auto(self.nu) or len(orders) > 1:
            choice = frontier.choose(program, orders, most, self.random_state, seconds)
        length = choice.length if is_auto(self.nu) else most
        found = frontier.lists(program, choice.order, length, max(0.0, clock.left))[-1]
        result = self._weighted(program, choice.order, found, max(0.0, clock.left))
        return replace(result, held_out_error=choice.error)

    def _weighted(
        self, program: tuning.Program, order: int, found: short.Fitted, seconds: float
    ) -> lpboost.LPBoostResult:
        """The rules of a list with the weights of largest soft margin, rounded if asked for.

        With ``nu="auto"`` the weights of the search stay if the others make more mistakes.
        """
        task, data = frontier.task_of(program, order), program.data
        nu = short.suitable_nu(task, found) if is_auto(self.nu) else float(self.nu)
        D = 1.0 / (nu * data.total)
        softest = short.softest(task, found, nu)
        if not is_auto(self.nu) or short.mistakes(task, softest) <= short.mistakes(task, found):
            found = softest
        points = None
        if self.points is not None:
            found = short.rounded(task, found, self.points)
            points = found.weights
        found = found._replace(weights=found.weights / found.weights.sum())
        bounded = program.solve(order, nu, gap=BOUND_GAP, time_limit=seconds)
        margins = (task.margins(found.columns) @ found.weights).min(axis=1)
        rho, objective = lpboost.soft_margin(margins, data.weight, D)
        upper = max(bounded.upper_bound, objective)
        is_proved = upper - objective <= 2 * self.tol
        return replace(
            bounded, columns=found.columns, weights=found.weights, margin=rho, objective=objective, upper_bound=upper,
            status=Status.OPTIMAL if is_proved else Status.HEURISTIC, max_order=order, points=points,
        )  # fmt: skip

    def _program(self, data: Observations) -> tuning.Program:
        k = 2 if data.y.min() < 0 else self.classes_.size
        if k == 2:
            return tuning.Program(data, lambda part, order: self._oracle(part, lambda _: 0.0, order))
        return tuning.Program(data, lambda part, order: joint.ClassOracle(part, k, min(order, part.X.shape[1])), k)

    def _choice(self, program: tuning.Program, seconds: float) -> tuning.Choice:
        """The order and nu to be used."""
        is_given = not is_auto(self.nu), not is_auto(self.max_order) or self.base_learner is not None
        orders = [1 if is_auto(self.max_order) else self.max_order] if is_given[1] else list(ORDERS)
        if not all(is_given):
            nu = float(self.nu) if is_given[0] else None
            return tuning.choose(program, orders, nu, self.random_state, seconds)
        data = program.data
        least = float(data.weight.min()) / data.total
        if self.nu < least:
            warnings.warn(
                f"nu={self.nu!r} allows for less than the share {least:.3g} of the smallest observation (equal ones "
                f"counted together): this is the hard margin, which one wrong label decides; use a larger nu.",
                UserWarning,
                stacklevel=4,
            )
        return tuning.Choice(orders[0], float(self.nu))

    def _numbers(self, data: Observations, part: int) -> dict[str, Any]:
        if is_auto(self.nu) or is_auto(self.max_order):
            check_is_fitted(self)
        order = int(self.max_order_[part]) if is_auto(self.max_order) else self.max_order
        nu = float(self.nu_[part] if is_auto(self.nu) else self.nu)
        return {"max_order": min(order, data.X.shape[1]), "nu": nu}

    def _checked(self, data: Observations, result: lpboost.LPBoostResult) -> Verification:
        nu = result.nu if is_auto(self.nu) else float(self.nu)
        order = result.max_order if is_auto(self.max_order) else self.max_order
        oracle = self._program(data).oracle_of(data, order)
        if isinstance(oracle, joint.ClassOracle):
            return check_joint(oracle, nu, result)
        return check_lpboost(data, oracle, nu, result)

    def _bound_of(self, result: lpboost.LPBoostResult) -> float:
        return result.objective

    def _collect(self, training: Training, fits: list[Any], targets: list[int | None]) -> None:
        super()._collect(training, fits, targets)
        self.nu_ = np.array([result.nu for result in self.results_])
        self.max_order_ = np.array([result.max_order for result in self.results_])
        self.held_out_error_ = self.results_[0].held_out_error if len(self.results_) == 1 else math.nan
        self.upper_bound_ = float(sum(result.upper_bound for result in self.results_))
        is_closed = self.upper_bound_ - self.objective_ <= 2 * self.tol * len(self.results_)
        self.gap_ = 0.0 if is_closed else relative_gap(-self.objective_, -self.upper_bound_)
