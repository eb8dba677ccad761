"""What all rule learners share: reading the data, one problem per class, rules, votes and text."""

from __future__ import annotations

import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import assert_all_finite
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, column_or_1d, validate_data

from ...core.result import Status, Verification
from ...core.solving import Clock
from ...rules import checks, reading
from ...rules.attributes import Attribute, Table
from ...rules.binarize import LogicalBinarizer, read_table
from ...rules.joint import Vote
from ...rules.observations import Observations
from ...rules.pricing.oracles import Column, Fitted, LearnerOracle, MatrixOracle, MonomialOracle, Oracle
from ...rules.pricing.search import Monomial
from ...rules.rules import GivenRule, Rule, condition_of
from ...rules.text import constant_score, constant_text, many_class_text, two_class_text
from ..chunked import needs_memory
from ..encode import classes_of

#: Scores closer to zero than this are ties and go to the larger class.
TIE = 1e-12
#: Cut points per feature with ``binarizer="auto"``: with 16, 32 or 64 at quantiles LP-Boost's mean held-out error
#: on seven data sets differed by less than half a point, and pricing takes the longer, the more there are.
MAX_CUTS = 32


def binarizer_named(name: str) -> LogicalBinarizer:
    """Return the binarizer for accuracy ("auto") or the small support set of the paper ("support")."""
    if name == "auto":
        return LogicalBinarizer(support=None, max_cuts=MAX_CUTS, missing=True)
    if name == "support":
        return LogicalBinarizer()
    raise ValueError(f"binarizer must be 'auto', 'support' or a LogicalBinarizer, got {name!r}.")


class Training(NamedTuple):
    """What a fit works on: typed columns (none with a given base learner), the matrix the learner sees, class codes."""

    table: Table
    matrix: NDArray[Any]
    codes: NDArray[np.intp]
    weight: NDArray[np.float64]


class RuleBooster(ClassifierMixin, BaseEstimator, ABC):
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
    base_learner: Any = None
    binarizer: Any
    time_limit: float | None = None
    max_rules: int | None = None
    points: int | None = None
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
        if self.base_learner is None:
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
    def _unit(self) -> float:
        """Points of a weight of 1 in texts: whole points are shown as they are."""
        return 100.0 if self.points is None else 1.0

    @property
    def _is_short(self) -> bool:
        return self.max_rules is not None or self.points is not None

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

    @property
    def _n_scores(self) -> int:
        return 1 if self.classes_.size == 2 else self.classes_.size

    def _constant_class(self) -> Any:
        """The class that every observation is given, None if it depends on the observation."""
        scores = []
        for problem in range(self._n_scores):
            mine = np.flatnonzero(self.rule_problem_ == problem)
            scores.append(constant_score([self.rules_[k] for k in mine], self.weights_[mine].tolist()))
        if any(score is None for score in scores):
            return None
        votes = np.array(scores, dtype=np.float64)[None]
        return self._winners(self._without_ties(votes, np.zeros_like(votes)))[0]

    def _rule(self, column: Column, target: int, training: Training) -> Rule | GivenRule:
        key = column.key
        if isinstance(key, Fitted):
            return GivenRule(type(key.learner).__name__, learner=key.learner)
        if isinstance(key, int):
            return GivenRule(f"column {key}", column=key)
        if isinstance(key, Vote):
            key = Monomial(key.literals, 1)
        if not isinstance(key, Monomial):
            return GivenRule(f"always {int(column.h[0]):+d}", constant=int(column.h[0]), order=0)
        label = self.classes_[target]
        if key.sign < 0:
            label = self.classes_[0] if self.classes_.size == 2 else f"not {label}"
        condition = condition_of(key, self.attributes_)
        covered = condition.holds(training.table)
        right = covered & ((training.codes == target) == (key.sign > 0))
        return Rule(condition, key.sign, label, float(training.weight @ covered), float(training.weight @ right))

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Weighted votes: (n,) for two classes (positive means ``classes_[1]``), (n, k) otherwise.

        A tie of two classes goes to the larger one in the training data. Ties of several are decided by the training
        records of the rules (how often each was right), then by the sizes of the classes.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n, d)
            Samples.

        Returns
        -------
        ndarray of shape (n,) or (n, k)
            Votes.
        """
        check_is_fitted(self)
        if self.base_learner is not None:
            data: Any = validate_data(self, X, reset=False, dtype=np.float64)
            n = data.shape[0]
        else:
            data, _ = read_table(self, self._completed(X), reset=False)
            n = len(data[0])
        return self._scores(data, n)

    def _conditions(self) -> list[Rule]:
        return [rule for rule in self.rules_ if isinstance(rule, Rule)]

    def _completed(self, X: Any) -> Any:
        """A DataFrame that lacks columns no rule asks for gets them, empty."""
        names = getattr(self, "feature_names_in_", None)
        if names is None or not hasattr(X, "reindex") or len(X.columns) >= len(names):
            return X
        used = {int(a.feature) for rule in self._conditions() for a, _ in rule.condition.parts}
        present = [name for name in names if name in set(X.columns)]
        needed = {names[feature] for feature in used}
        is_part = list(X.columns) == present and needed <= set(present)
        return X.reindex(columns=names) if is_part else X

    def _scores(self, data: Any, n: int) -> NDArray[np.float64]:
        scores = np.zeros((n, self._n_scores))
        records = np.zeros_like(scores)
        for rule, weight, problem in zip(self.rules_, self.weights_, self.rule_problem_):
            votes = weight * rule.votes(data)
            scores[:, problem] += votes
            records[:, problem] += votes * rule.reliability
        return self._without_ties(scores, records)

    def _without_ties(self, scores: NDArray[Any], records: NDArray[Any]) -> NDArray[np.float64]:
        if self.classes_.size > 2:
            return scores + 1e3 * TIE * records + TIE * self.class_share_
        larger = TIE if self.class_share_[1] >= self.class_share_[0] else -TIE
        return np.where(np.abs(scores[:, 0]) < TIE, larger, scores[:, 0])

    def _winners(self, scores: NDArray[Any]) -> NDArray[Any]:
        return self.classes_[scores.argmax(axis=1) if scores.ndim == 2 else (scores > 0).astype(int)]

    def predict(self, X: Any) -> NDArray[Any]:
        """The class with more votes.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n, d)
            Samples.

        Returns
        -------
        ndarray of shape (n,)
            Labels.
        """
        return self._winners(self.decision_function(X))

    def _read_rows(self, X: Any) -> tuple[Table, list[str]]:
        """Typed columns of new rows with their names, for what is said about conditions."""
        check_is_fitted(self)
        if self.base_learner is not None:
            raise ValueError("Only rules with conditions can be explained, not those of another base_learner.")
        return read_table(self, self._completed(X), reset=False)

    def explain(self, X: Any) -> list[reading.Explanation]:
        """Say for each row which rules apply, for which class, and with how many points.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n, d)
            A DataFrame needs only the columns that the rules ask for.

        Returns
        -------
        list of Explanation
            ``prediction, scores, fired``; ``str`` of one is a text.
        """
        table, _ = self._read_rows(X)
        n = len(table[0])
        given = self._winners(self._scores(table, n))
        rules = self._conditions()
        holds = [rule.condition.holds(table) for rule in rules]
        out = []
        for i in range(n):
            scores: dict[Any, float] = {}
            fired = []
            for rule, weight, covered in zip(rules, self.weights_, holds):
                if covered[i]:
                    points = self._unit * float(weight)
                    scores[rule.label] = scores.get(rule.label, 0.0) + points
                    fired.append((str(rule.condition), rule.label, points))
            out.append(reading.Explanation(given[i], scores, fired))
        return out

    def what_would_change(self, X: Any, target: Any = None) -> list[list[reading.Change]]:
        """Find for each row the fewest features that would have to be otherwise for another class.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n, d)
            A few rows: the search tries combinations of up to three features.
        target : object, optional
            The class that is wanted; any other class if None.

        Returns
        -------
        list of list of Change
            ``feature, now, condition, value`` of each change; an empty list if none with three features was found.
        """
        table, names = self._read_rows(X)
        if target is not None and target not in self.classes_.tolist():
            raise ValueError(f"target must be one of the classes {self.classes_.tolist()}, got {target!r}.")

        def predict(rows: Table) -> NDArray[Any]:
            return self._winners(self._scores(rows, len(rows[0])))

        rows = ([column[i : i + 1] for column in table] for i in range(len(table[0])))
        return [
            reading.smallest_change(row, names, self._conditions(), self.attributes_, predict, target) for row in rows
        ]

    def export_text(self) -> str:
        """The model as a text: points of each rule, what it votes for, when it applies, its training record.

        Returns
        -------
        str
            Lines to be printed.
        """
        check_is_fitted(self)
        if self.is_constant_:
            return constant_text(self._constant_class())
        if self.classes_.size == 2:
            otherwise = self.classes_[int(self.class_share_[1] >= self.class_share_[0])]
            return two_class_text(self.rules_, self.weights_.tolist(), self.classes_.tolist(), otherwise, self._unit)
        groups = []
        for problem, label in enumerate(self.classes_):
            mine = np.flatnonzero(self.rule_problem_ == problem)
            groups.append((label, [self.rules_[k] for k in mine], self.weights_[mine].tolist()))
        return many_class_text(groups, self._unit)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.base_learner is None
        tags.input_tags.categorical = self.base_learner is None
        return tags


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
