"""Rules as users meet them: a condition in the original units, and the class it votes for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import checks
from .attributes import Attribute, Conjunction, Table
from .binarize import as_table
from .pricing.data import Attributes, Monomial
from .pricing.search import price


@dataclass(frozen=True)
class Rule:
    """If the condition holds, vote ``sign`` (+1 for the positive class).

    Attributes
    ----------
    condition : Conjunction
    sign : {1, -1}
    label : object
        The class it votes for.
    n_covered, n_right : float
        Training weight it covers, and how much of it has that class.
    """

    condition: Conjunction
    sign: int
    label: Any = None
    n_covered: float = np.nan
    n_right: float = np.nan

    @property
    def order(self) -> int:
        """Number of literals of the condition."""
        return self.condition.order

    @property
    def reliability(self) -> float:
        """Share of the covered training weight that has the rule's class; 0 if nothing is covered."""
        return self.n_right / self.n_covered if self.n_covered > 0 else 0.0

    def covers(self, X: Any) -> NDArray[np.bool_]:
        """Whether the condition holds for each row of X (array or DataFrame, original units)."""
        table = as_table(X)
        return self.condition.holds(table)

    def votes(self, table: Table) -> NDArray[np.float64]:
        """``sign`` where the condition holds, 0 elsewhere."""
        return self.sign * self.condition.holds(table).astype(np.float64)

    def __str__(self) -> str:
        return f"{self.condition} -> {self.label}" if self.label is not None else str(self.condition)


@dataclass(frozen=True)
class GivenRule:
    """A classifier that is not a monomial: a column of a given matrix, or a fitted learner answering -1 / +1."""

    name: str
    learner: Any = None
    column: int = -1
    constant: int = 0
    label: Any = None
    order: int = 1
    reliability: float = 0.0

    def votes(self, X: NDArray) -> NDArray[np.float64]:
        """Answers in [-1, 1]."""
        if self.constant:
            return np.full(X.shape[0], float(self.constant))
        if self.learner is not None:
            return np.asarray(self.learner.predict(X), dtype=np.float64)
        return X[:, self.column].astype(np.float64)

    def covers(self, X: ArrayLike) -> NDArray[np.bool_]:
        """Whether the answer is not 0."""
        return self.votes(np.asarray(X)) != 0

    def __str__(self) -> str:
        return self.name


def condition_of(monomial: Monomial, attributes: Sequence[Attribute]) -> Conjunction:
    """The monomial over these attributes as a readable condition."""
    n = len(attributes)
    return Conjunction(tuple((attributes[l % n], l < n) for l in monomial.literals))


@dataclass(frozen=True)
class Agreement:
    """Result of :func:`best_monomial`: the recomputed value, a proved upper bound, the rule, nodes, completeness."""

    value: float
    bound: float
    rule: Rule
    n_nodes: int
    is_exact: bool


def best_monomial(
    A: ArrayLike,
    y: ArrayLike,
    sample_weight: ArrayLike | None = None,
    max_order: int | None = None,
    time_limit: float | None = None,
) -> Agreement:
    """Maximum monomial agreement: maximise |w(positives covered) - w(negatives covered)| over all monomials.

    Parameters
    ----------
    A : array-like of shape (M, N)
        0/1 attributes; column names of a DataFrame appear in the rule.
    y : array-like of shape (M,)
        Two classes; the larger label is positive.
    sample_weight : array-like of shape (M,), optional
        Non-negative weights, 1 by default.
    max_order : int, optional
        Largest number of literals; any if None.
    time_limit : float, optional
        Seconds; afterwards the best found is returned with a bound on what was not searched.

    Returns
    -------
    Agreement
        ``value``, ``bound``, ``rule`` and ``n_nodes``; the maximum is proved if value and bound agree.
    """
    names = [str(name) for name in getattr(A, "columns", [])]
    A, y = np.asarray(A), np.asarray(y)
    if A.size == 0:
        raise ValueError(f"best_monomial needs at least one row and one attribute, got A of shape {A.shape}.")
    if A.ndim != 2 or not np.isin(A, (0, 1)).all():
        raise ValueError("best_monomial needs a two-dimensional matrix of zeros and ones.")
    classes, codes = checks.labels(y)
    if classes.size > 2 or y.shape != (A.shape[0],):
        raise ValueError("best_monomial needs one label per row, of at most two classes.")
    if max_order is not None:
        checks.count("max_order", max_order, 0)
    signs = np.where(codes == 1, 1, -1) if classes.size == 2 else np.where(classes[codes] > 0, 1, -1)
    weight, limit = checks.sample_weights(sample_weight, y.size), checks.seconds(time_limit)
    found = price(Attributes(A.astype(np.uint8), signs), weight, max_order=max_order, time_limit=limit)
    best = found.monomials[0]
    covered = best.covers(A)
    value = float(best.sign * (weight * signs)[covered].sum())
    names = names or [f"x{j}" for j in range(A.shape[1])]
    attributes = [Attribute(j, name, "flag") for j, name in enumerate(names)]
    label = classes[-1] if best.sign > 0 else classes[0]
    right = float(weight[covered & (signs == best.sign)].sum())
    rule = Rule(condition_of(best, attributes), best.sign, label, float(weight[covered].sum()), right)
    return Agreement(value, value if found.is_exact else max(value, found.bound), rule, found.n_nodes, found.is_exact)
