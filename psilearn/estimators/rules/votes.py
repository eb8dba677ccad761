"""What every fitted list of weighted rules can do: vote, explain itself, and be printed."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from ...rules import reading
from ...rules.attributes import Attribute, Table
from ...rules.binarize import read_table
from ...rules.rules import GivenRule, Rule
from ...rules.text import constant_score, constant_text, many_class_text, two_class_text

#: Scores closer to zero than this are ties and go to the larger class.
TIE = 1e-12


class VotingRules(ClassifierMixin, BaseEstimator):
    """Weighted rules that vote for classes; how they are found is the affair of :class:`.booster.RuleBooster`."""

    base_learner: Any = None
    points: int | None = None
    classes_: NDArray[Any]
    rules_: list[Rule | GivenRule]
    weights_: NDArray[np.float64]
    rule_problem_: NDArray[np.intp]
    attributes_: list[Attribute]
    class_share_: NDArray[np.float64]
    is_constant_: bool

    @property
    def _unit(self) -> float:
        """Points of a weight of 1 in texts: whole points are shown as they are."""
        return 100.0 if self.points is None else 1.0

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
