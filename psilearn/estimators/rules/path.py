"""Error against the number of rules, from one run: what 7 rules give, and what 20 would."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from ...core.extras import optional
from ...core.solving import Clock
from ...rules import checks, frontier
from ...rules.tuning import Settings
from .lpboost import LPBoostClassifier

__all__ = ["RulesPath", "rules_path"]


@dataclass(frozen=True)
class RulesPath:
    """Lists of every length.

    Attributes
    ----------
    n_rules : ndarray
        Lengths 1, 2, ..., constants included. A list may have fewer rules than allowed, if more did not help.
    train_errors, errors, standard_errors : ndarray
        Share of mistakes on the training rows, and on rows held out in a cross-validation (mean, standard error).
    bounds : ndarray
        No list of so many rules has a smaller training error, whatever its rules and weights (with two classes; 0 with
        more). Votes that are right with less than a thousandth of all points count as wrong.
    estimators : list of LPBoostClassifier
        The fitted lists.
    """

    n_rules: NDArray[np.intp]
    train_errors: NDArray[np.float64]
    errors: NDArray[np.float64]
    standard_errors: NDArray[np.float64]
    bounds: NDArray[np.float64]
    estimators: list[LPBoostClassifier]

    @property
    def best(self) -> int:
        """The shortest length whose held-out error is within half a standard error of the smallest one."""
        least = int(np.argmin(self.errors))
        enough = self.errors <= self.errors[least] + 0.5 * self.standard_errors[least]
        return int(self.n_rules[np.argmax(enough)])

    def estimator(self, n_rules: int) -> LPBoostClassifier:
        """The list of at most so many rules."""
        if not 1 <= n_rules <= self.n_rules.size:
            raise ValueError(f"n_rules must lie in 1, ..., {self.n_rules.size}, got {n_rules!r}.")
        return self.estimators[n_rules - 1]

    def __str__(self) -> str:
        lines = ["rules  held-out error  training error  no list below"]
        for k, m in enumerate(self.n_rules):
            spread = f"{100 * self.errors[k]:5.1f} ± {100 * self.standard_errors[k]:.1f}%"
            lines.append(f"{m:5d}  {spread:>14}  {100 * self.train_errors[k]:13.1f}%  {100 * self.bounds[k]:12.1f}%")
        return "\n".join(lines)

    def plot(self, ax: Any = None) -> Any:
        """Draw held-out and training errors and the bound against the number of rules; return the axes."""
        pyplot = optional("matplotlib.pyplot", "plots", "The plot of a path")
        ax = pyplot.subplots()[1] if ax is None else ax
        ax.errorbar(self.n_rules, 100 * self.errors, 100 * self.standard_errors, marker="o", label="held-out rows")
        ax.plot(self.n_rules, 100 * self.train_errors, marker=".", label="training rows")
        if self.bounds.any():
            ax.fill_between(self.n_rules, 0, 100 * self.bounds, alpha=0.2, step="mid", label="no list is in here")
        ax.set_xlabel("number of rules")
        ax.set_ylabel("error in %")
        ax.legend()
        return ax


def rules_path(
    estimator: LPBoostClassifier,
    X: Any,
    y: ArrayLike,
    max_rules: int = 20,
    sample_weight: ArrayLike | None = None,
    time_limit: float = 60.0,
) -> RulesPath:
    """Fit lists of 1, ..., ``max_rules`` rules in one run, with held-out errors and a bound for each length.

    Parameters
    ----------
    estimator : LPBoostClassifier
        Its order (1 if "auto"), binarizer, points and seed are used; it is not changed. With a given nu the weights are
        those of largest soft margin.
    X : array-like or DataFrame of shape (n, d)
        Training rows as for ``fit``.
    y : array-like of shape (n,)
        Their labels.
    max_rules : int, default=20
        The longest list.
    sample_weight : array-like of shape (n,), optional
        Their weights.
    time_limit : float, default=60
        Seconds for all of it; half of them for the cross-validation, a quarter for the bounds.

    Returns
    -------
    RulesPath
        Errors, bounds and fitted lists by length.

    Examples
    --------
    >>> import numpy as np
    >>> from psilearn import LPBoostClassifier, rules_path
    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> path = rules_path(LPBoostClassifier(nu="auto"), X, X[:, 0] > 0.3, max_rules=3)
    >>> path.n_rules
    array([1, 2, 3])
    >>> bool((path.bounds <= path.train_errors).all())
    True
    """
    if not isinstance(estimator, LPBoostClassifier) or estimator.base_learner is not None:
        raise ValueError("rules_path needs an LPBoostClassifier without a base_learner.")
    checks.count("max_rules", max_rules, 1)
    model, limit = clone(estimator).set_params(multiclass="joint", max_rules=max_rules), checks.seconds(time_limit)
    model._check_parameters()
    training = model._read(X, y, sample_weight)
    target = model._targets()[0]
    program = model._program(model._observations(training, target))
    order = 1 if isinstance(model.max_order, str) else min(model.max_order, program.data.X.shape[1])
    shares = frontier.held_out(program, order, max_rules, model.random_state, Clock(limit / 2), Settings())
    fitted = []
    for found in frontier.lists(program, order, max_rules, limit / 4):
        one = clone(model)
        one._read(X, y, sample_weight)
        result = one._weighted(program, order, found, 0.0)
        one._collect(training, [(result.columns, result.votes, result)], [target])
        fitted.append(one)
    weight = training.weight / training.weight.sum()
    labels = np.asarray(y)
    wrong = np.array([weight @ (one.predict(X) != labels) for one in fitted])
    bounds = np.zeros(max_rules)
    if program.k == 2:
        bounds = frontier.bounds_on_mistakes(program, order, max_rules, limit / 4) / program.data.total
    spread = shares.std(axis=0) / np.sqrt(max(len(shares), 1)) if len(shares) else np.full(max_rules, np.nan)
    mean = shares.mean(axis=0) if len(shares) else np.full(max_rules, np.nan)
    return RulesPath(np.arange(1, max_rules + 1), wrong, mean, spread, np.maximum(bounds, 0.0), fitted)
