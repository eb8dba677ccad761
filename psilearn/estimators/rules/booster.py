"""What all rule learners share: reading the data, one problem per class, and verification."""

from __future__ import annotations

import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import assert_all_finite
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, column_or_1d, validate_data

from ...core.result import Status, Verification
from ...core.solving import Clock
from ...rules import checks
from ...rules.attributes import Attribute, Conjunction, Table
from ...rules.binarize import LogicalBinarizer, read_table
from ...rules.joint import Vote
from ...rules.large import cut_points
from ...rules.observations import Observations, RuleProblem
from ...rules.pricing.data import CutPoint, Monomial
from ...rules.pricing.oracles import Column, Fitted, LearnerOracle, MatrixOracle, MonomialOracle, Oracle
from ...rules.rules import GivenRule, Rule, condition_of
from ..chunked import needs_memory
from ..encode import classes_of
from .votes import VotingRules

#: Cut points per feature with ``binarizer="auto"``: with 16, 32 or 64 at quantiles LP-Boost's mean held-out error
#: on seven data sets differed by less than half a point, and pricing takes the longer, the more there are.
MAX_CUTS = 32
#: Rules of a score card if ``max_rules`` does not say it.
CARD_RULES = 8


def is_auto(value: Any) -> bool:
    """Whether a parameter leaves the choice to the fit."""
    return isinstance(value, str) and value == "auto"


def binarizer_named(name: str) -> LogicalBinarizer:
    """Return the binarizer for accuracy ("auto") or the small support set of the paper ("support")."""
    if name == "auto":
        return LogicalBinarizer(support=None, max_cuts=MAX_CUTS, missing=True)
    if name == "support":
        return LogicalBinarizer()
    raise ValueError(f"binarizer must be 'auto', 'support' or a LogicalBinarizer here, got {name!r}.")


class Training(NamedTuple):
    """What a fit works on: typed columns (none with a given base learner), the matrix the learner sees, class codes."""

    table: Table
    matrix: NDArray[Any]
    codes: NDArray[np.intp]
    weight: NDArray[np.float64]


class RuleBooster(VotingRules, ABC):
    """A voting classifier over rules; a subclass says how it solves one problem of two classes.

    Attributes
    ----------
    classes_ : ndarray of shape (k,)
        The labels, in order.
    rules_ : list
        The rules with positive weight, largest weight first; ``str`` of one is readable.
    weights_ : ndarray
        Their weights.
    n_rules_ : int
        Their number.
    rule_problem_ : ndarray of int
        The problem a rule belongs to: always 0 for two classes, else the place of its class in ``classes_``.
    attributes_ : list
        The yes/no attributes that rules are made of.
    is_constant_ : bool
        Whether no rule with a condition is left; then every observation is given the majority's class.
    class_share_ : ndarray of shape (k,)
        Share of each class in the training data.
    status_ : Status
        Why the solver stopped.
    n_iter_ : int
        Rounds.
    history_ : tuple
        (seconds, objective, bound) of every round.
    results_ : list
        What the solver returned, for each problem.
    n_features_in_ : int
        Number of features seen in ``fit``.
    feature_names_in_ : ndarray of str
        Their names, if ``X`` had some.
    """

    max_order: int
    binarizer: Any
    time_limit: float | None = None
    max_rules: int | None = None
    #: What to do about a constant model.
    _against_constant: str

    @abstractmethod
    def _check_parameters(self) -> None:
        """Refuse parameters that cannot be used, before anything is computed."""

    @abstractmethod
    def _solve(self, data: Observations, seconds: float) -> tuple[list[Column], NDArray[Any], Any]:
        """Solve one problem of two classes: columns, their weights, and the solver's result."""

    @abstractmethod
    def _bound_of(self, result: Any) -> float:
        """A lower bound on the optimum of that problem."""

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> RuleBooster:
        """Fit the rules.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n, d)
            0/1 data is used as it is, other data goes through ``binarizer``.
        y : array-like of shape (n,)
            Labels of any type, two or more classes.
        sample_weight : array-like of shape (n,), optional
            A weight of 2 is the same as the observation given twice, 0 the same as leaving it out.

        Returns
        -------
        RuleBooster
            The fitted classifier itself.
        """
        self._check_parameters()
        clock = Clock(checks.seconds(self.time_limit))
        training = self._read(X, y, sample_weight)
        targets = self._targets()
        fits = []
        for done, target in enumerate(targets):
            data = self._observations(training, target)
            fits.append(self._solve(data, max(0.0, clock.left) / (len(targets) - done)))
        self._collect(training, fits, targets)
        self._warn()
        return self

    def _targets(self) -> list[int | None]:
        """The class that each problem is about, None if one problem is about all of them."""
        return [1] if self.classes_.size == 2 else list(range(self.classes_.size))

    def _observations(self, training: Training, target: int | None) -> Observations:
        if target is None:
            return Observations.of_classes(training.matrix, training.codes, training.weight)
        return Observations.merge(training.matrix, np.where(training.codes == target, 1, -1), training.weight)

    def _warn(self) -> None:
        """Warn of a fit that was stopped, or that has nothing to say."""
        name = type(self).__name__
        is_stopped = self._promises_optimum and self.status_ is not Status.OPTIMAL
        constant = f"constant: every observation is given class {self._constant_class()}." if self.is_constant_ else ""
        if is_stopped:
            message = f"{name} stopped early ({self.status_}); objective_ and its bound are honest."
            message += f" So far the model is {constant}" if constant else ""
            warnings.warn(message, ConvergenceWarning, stacklevel=3)
        elif constant:
            warnings.warn(f"{name} is {constant} {self._against_constant}", UserWarning, stacklevel=3)

    def problem(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> RuleProblem:
        """State the problem that :meth:`fit` solves on these data; the estimator is not changed.

        Parameters
        ----------
        X, y, sample_weight : array-like
            As for ``fit``.

        Returns
        -------
        RuleProblem
            Merged observations, attributes, and the numbers of the objective; for "auto" those of the fit.
        """
        self._check_parameters()
        worker = clone(self)
        training = worker._read(X, y, sample_weight)
        parts = tuple(worker._observations(training, target) for target in worker._targets())
        numbers = [self._numbers(data, part) for part, data in enumerate(parts)]
        stated = {name: [one[name] for one in numbers] for name in numbers[0]}
        return RuleProblem(parts, getattr(worker, "attributes_", []), **stated)

    def _numbers(self, data: Observations, part: int) -> dict[str, Any]:
        """Return the numbers of the objective of one problem."""
        return {"max_order": data.X.shape[1]}

    def verify(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Verification:
        """Recompute every claim of the fit from the data it was made on.

        Parameters
        ----------
        X, y, sample_weight : array-like
            What was handed to ``fit``.

        Returns
        -------
        Verification
            ``ok, objective, bound, gap, message``; ``ok`` is True only if every claim was recomputed.
        """
        check_is_fitted(self)
        worker = clone(self)
        training = worker._read(X, y, sample_weight)
        if not np.array_equal(worker.classes_, self.classes_):
            return Verification(False, math.nan, -math.inf, math.inf, "y holds other classes than those of the fit")
        targets = worker._targets()
        checked = [
            worker._checked(worker._observations(training, target), result)
            for target, result in zip(targets, self.results_)
        ]
        faults = [check.message for check in checked if not check.ok]
        if not faults:
            again = [(r.columns, getattr(r, "votes", r.weights), r) for r in self.results_]
            worker._collect(training, again, targets)
            faults = _differences(worker, self)
        objective, bound = (float(sum(getattr(check, name) for check in checked)) for name in ("objective", "bound"))
        gap = self.gap_ if not faults else math.inf
        return Verification(not faults, objective, bound, gap, "; ".join(faults) or "objective and bound recomputed")

    def _checked(self, data: Observations, result: Any) -> Verification:
        """Recompute objective and bound of one problem."""
        message = f"{type(self).__name__} claims nothing that can be recomputed"
        return Verification(False, math.nan, -math.inf, math.inf, message)

    def _read(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None) -> Training:
        needs_memory(X, type(self).__name__)
        labels = np.asarray(column_or_1d(y, warn=True))
        table: Table = []
        names: list[str] = []
        if self.base_learner is not None:
            matrix = validate_data(self, X, dtype=np.float64)
        else:
            table, names = read_table(self, X, reset=True)
            matrix = np.empty((len(table[0]), 0))
        assert_all_finite(labels, input_name="y")
        classes_of(labels)
        if labels.size != len(matrix):
            raise ValueError(
                f"Found input variables with inconsistent numbers of samples: {[len(matrix), labels.size]}."
            )
        weight = _check_sample_weight(sample_weight, matrix, dtype=np.float64, ensure_non_negative=True)
        self.classes_, codes = np.unique(labels, return_inverse=True)
        used = weight > 0
        if np.unique(codes[used]).size < 2:
            raise ValueError("The training data (after sample weights) holds one class only; at least two are needed.")
        if self.base_learner is None and self._has_all_cuts:
            self._chains = cut_points.all_chains([column[used] for column in table], names, codes[used])
            matrix = cut_points.codes_of(self._chains, table)
        elif self.base_learner is None:
            self.attributes_ = self._find_attributes([column[used] for column in table], names, codes[used])
            matrix = self._answers(table)
        return Training(table, matrix, codes, weight)

    def _find_attributes(self, table: Table, names: list[str], codes: NDArray[Any]) -> list[Attribute]:
        if all(column.dtype != object and np.isin(column, (0.0, 1.0)).all() for column in table):
            return [Attribute(j, name, "flag") for j, name in enumerate(names)]
        if isinstance(self.binarizer, LogicalBinarizer):
            return clone(self.binarizer).find(table, names, codes)
        return binarizer_named(self.binarizer).find(table, names, codes)

    def _answers(self, table: Table) -> NDArray[np.uint8]:
        answers = [attribute.holds(table) for attribute in self.attributes_]
        return np.array(answers, dtype=np.uint8).reshape(len(answers), len(table[0])).T

    def _oracle(self, data: Observations, cost: Callable[[int], float], max_order: int | None = None) -> Oracle:
        """The base learner with costs c(order); classifiers that are not monomials count as order 1."""
        if self._has_all_cuts:
            return cut_points.CutPointOracle(data, [chain.values.size for chain in self._chains])
        if self.base_learner is None:
            K = min(self.max_order if max_order is None else max_order, data.X.shape[1])
            return MonomialOracle(data, K, [cost(k) for k in range(K + 1)])
        if not isinstance(self.base_learner, str):
            return LearnerOracle(data, self.base_learner, clone, cost(1))
        if self.base_learner != "precomputed":
            raise ValueError(f"base_learner must be None, 'precomputed' or a classifier, got {self.base_learner!r}.")
        return MatrixOracle(data, data.X, cost(1), cost(0))

    def _collect(self, training: Training, fits: list[Any], targets: list[int | None]) -> None:
        """Rules and weights of all problems, largest weights first, and the figures of the solves."""
        rules, weights, problem = [], [], []
        for index, (columns, lam, _) in enumerate(fits):
            for k in np.argsort(-lam, kind="stable"):
                if lam[k] > 0:
                    key, target = columns[k].key, targets[index]
                    about = key.target if isinstance(key, Vote) else 1 if target is None else target
                    rules.append(self._rule(columns[k], about, training))
                    weights.append(float(lam[k]))
                    problem.append(0 if self.classes_.size == 2 else about)
        self.rules_, self.weights_, self.rule_problem_ = rules, np.array(weights), np.array(problem)
        self.n_rules_ = len(rules)
        if self._has_all_cuts:
            self.attributes_ = list(dict.fromkeys(a for rule in self._conditions() for a, _ in rule.condition.parts))
        self.class_share_ = np.bincount(training.codes, training.weight) / training.weight.sum()
        self.results_ = [result for _, _, result in fits]
        self.is_constant_ = self._constant_class() is not None
        self.objective_ = float(sum(result.objective for result in self.results_))
        self.lower_bound_ = float(sum(self._bound_of(result) for result in self.results_))
        self.n_iter_ = int(sum(result.n_iter for result in self.results_))
        self.history_ = tuple(step for result in self.results_ for step in result.history)
        stopped = [result.status for result in self.results_ if result.status is not Status.OPTIMAL]
        self.status_ = stopped[0] if stopped else Status.OPTIMAL

    @property
    def _has_all_cuts(self) -> bool:
        """Whether rules are about any cut point, not about attributes chosen before."""
        return isinstance(self.binarizer, str) and self.binarizer == "all"

    @property
    def _is_short(self) -> bool:
        return self.max_rules is not None or self.points is not None

    @property
    def _most_rules(self) -> int:
        """Rules that a short list may have."""
        return self.max_rules or CARD_RULES

    @property
    def _promises_optimum(self) -> bool:
        """Whether a fit that does not end with a proof is worth a warning."""
        return not self._is_short

    def _check_limits(self) -> None:
        for name in ("max_rules", "points"):
            if getattr(self, name) is not None:
                checks.count(name, getattr(self, name), 1)
                if self.base_learner is not None:
                    raise ValueError(f"{name} is for rules: it cannot be used with another base_learner.")

    def _rule(self, column: Column, target: int, training: Training) -> Rule | GivenRule:
        key = column.key
        if isinstance(key, Fitted):
            return GivenRule(type(key.learner).__name__, learner=key.learner)
        if isinstance(key, int):
            return GivenRule(f"column {key}", column=key)
        if isinstance(key, Vote):
            key = Monomial(key.literals, 1)
        if not isinstance(key, Monomial | CutPoint):
            return GivenRule(f"always {int(column.h[0]):+d}", constant=int(column.h[0]), order=0)
        label = self.classes_[target]
        if key.sign < 0:
            label = self.classes_[0] if self.classes_.size == 2 else f"not {label}"
        if isinstance(key, CutPoint):
            condition = Conjunction((cut_points.rule_of(key, self._chains),))
        else:
            condition = condition_of(key, [] if self._has_all_cuts else self.attributes_)
        covered = condition.holds(training.table)
        right = covered & ((training.codes == target) == (key.sign > 0))
        return Rule(condition, key.sign, label, float(training.weight @ covered), float(training.weight @ right))


def _differences(again: RuleBooster, given: RuleBooster) -> list[str]:
    """Name the figures and rules of a fit that do not follow from its results."""
    faults = []
    for name in ("objective_", "lower_bound_", "upper_bound_", "gap_"):
        stated = getattr(given, name, None)
        if stated is not None and stated != getattr(again, name):
            faults.append(f"{name} is stated as {stated!r}, the results give {getattr(again, name)!r}")
    if not np.array_equal(again.weights_, given.weights_) or list(map(str, again.rules_)) != list(
        map(str, given.rules_)
    ):
        faults.append("the rules or their weights are not those of the results")
    return faults
