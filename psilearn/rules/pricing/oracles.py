"""Base learners: who offers the columns of a boosting program, and how well the offer is proved."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..observations import Observations
from .data import Attributes, CutPoint, Monomial, Pairs
from .search import price, price_greedily


class Column(NamedTuple):
    """A base classifier: what identifies it, its answers on the merged observations (bytes if whole), its cost c_u."""

    key: Hashable
    h: NDArray
    cost: float


def answers(column: Column, X: NDArray) -> NDArray[np.float64]:
    """Answers of a base classifier on other rows than those it was offered for."""
    key = column.key
    if isinstance(key, Monomial | CutPoint):
        return key.sign * key.covers(X).astype(np.float64)
    if isinstance(key, Fitted):
        return np.asarray(key.learner.predict(X), dtype=np.float64)
    if isinstance(key, int):
        return X[:, key].astype(np.float64)
    return np.full(X.shape[0], column.h[0])


class Offer(NamedTuple):
    """Columns with their rewards minus costs (best first), an upper bound over all columns (inf if unknown), nodes."""

    columns: list[Column]
    values: NDArray[np.float64]
    bound: float
    n_nodes: int = 0


class Oracle(Protocol):
    """Offers columns u of large  sum_i w_i y_i h_iu + sum {v_p : u separates pair p} - c_u."""

    def constants(self) -> list[Column]:
        """The columns a program starts from: the two constant classifiers."""

    def offer(
        self, weight: NDArray, pairs: Pairs | None, threshold: float, n_columns: int, time_limit: float = math.inf,
        proof: bool = True,
    ) -> Offer:  # fmt: skip
        """Columns of value above ``threshold``; with exact oracles, the best ones.

        Without ``proof`` what a quick search finds will do; if that proves nothing, the bound is inf.
        """


def separates(h: NDArray, y: NDArray, pairs: Pairs) -> NDArray[np.bool_]:
    """Whether the classifier with answers h lies in the S of each pair's cut.

    Symmetric cuts: y_i h_i + y_i' h_i' > 0, which for answers in {-1, 0, 1} is S_ii' union S_i'i of (17). Printed cuts:
    h_i = y_i != h_i' with i the positive observation.
    """
    first, second = h[pairs.positive], h[pairs.negative]
    if pairs.symmetric:
        return first - second > 0
    return (first == 1) & (second != 1)


@dataclass
class MonomialOracle:
    """All monomials up to order ``max_order`` with both signs, priced exactly by branch and bound."""

    data: Observations
    max_order: int = 1
    order_cost: Sequence[float] | None = None

    def __post_init__(self) -> None:
        self.attributes = Attributes(self.data.X, self.data.y)

    def column(self, monomial: Monomial) -> Column:
        """The column of a monomial."""
        cost = 0.0 if self.order_cost is None else float(self.order_cost[monomial.order])
        return Column(monomial, monomial.sign * monomial.covers(self.data.X).astype(np.int8), cost)

    def constants(self) -> list[Column]:
        """The two monomials of order 0."""
        return [self.column(Monomial((), 1)), self.column(Monomial((), -1))]

    def offer(
        self, weight: NDArray, pairs: Pairs | None, threshold: float, n_columns: int, time_limit: float = math.inf,
        proof: bool = True,
    ) -> Offer:  # fmt: skip
        """See :class:`Oracle`; exact, by :func:`.search.price`."""
        if not proof and pairs is None and self.max_order > 2:
            quick = price_greedily(self.attributes, weight, self.max_order, self.order_cost, n_columns, threshold)
            return Offer([self.column(m) for m in quick.monomials], quick.values, quick.bound, quick.n_nodes)
        found = price(
            self.attributes, weight, pairs, max_order=self.max_order, order_cost=self.order_cost,
            n_columns=n_columns, threshold=threshold, time_limit=time_limit,
        )  # fmt: skip
        return Offer([self.column(m) for m in found.monomials], found.values, found.bound, found.n_nodes)


@dataclass
class MatrixOracle:
    """The columns of a given matrix H (observations x classifiers), priced by computing the values of all of them.

    ``costs`` is one number or one per column. The constants are added with cost ``constant_cost``.
    """

    data: Observations
    H: NDArray[np.float64]
    costs: ArrayLike = 0.0
    constant_cost: float | None = None

    def __post_init__(self) -> None:
        self.costs = np.broadcast_to(np.asarray(self.costs, dtype=np.float64), (self.H.shape[1],))

    def constants(self) -> list[Column]:
        """The two constant classifiers, unless ``constant_cost`` is None; then the first column of H."""
        if self.constant_cost is None:
            return [self.column(0)]
        ones = np.ones(self.data.y.size)
        return [Column("+1", ones, self.constant_cost), Column("-1", -ones, self.constant_cost)]

    def column(self, u: int) -> Column:
        """Column u."""
        return Column(int(u), self.H[:, u].astype(np.float64), float(np.asarray(self.costs)[u]))

    def offer(
        self, weight: NDArray, pairs: Pairs | None, threshold: float, n_columns: int, time_limit: float = math.inf,
        proof: bool = True,
    ) -> Offer:  # fmt: skip
        """See :class:`Oracle`; exact, by enumeration."""
        value = (weight * self.data.y) @ self.H - np.asarray(self.costs)
        if pairs is not None and pairs.value.size:
            for u in range(self.H.shape[1]):
                value[u] += pairs.value @ separates(self.H[:, u], self.data.y, pairs)
        best = np.argsort(-value, kind="stable")[:n_columns]
        best = best[value[best] > threshold]
        bound = max(threshold, float(value.max())) if value.size else threshold
        return Offer([self.column(u) for u in best], value[best], bound, value.size)


@dataclass
class LearnerOracle:
    """Any scikit-learn classifier, fitted to the weights the program asks for: good columns, no proof.

    Pair rewards are passed on as weights of both their ends. The answers are the classifier's classes, -1 / +1.
    """

    data: Observations
    learner: Any
    clone: Callable[[Any], Any]
    cost: float = 0.0

    def constants(self) -> list[Column]:
        """The two constant classifiers."""
        ones = np.ones(self.data.y.size)
        return [Column(("constant", 1), ones, self.cost), Column(("constant", -1), -ones, self.cost)]

    def offer(
        self, weight: NDArray, pairs: Pairs | None, threshold: float, n_columns: int, time_limit: float = math.inf,
        proof: bool = True,
    ) -> Offer:  # fmt: skip
        """See :class:`Oracle`; one fit, no bound."""
        y, total = self.data.y, weight.copy()
        if pairs is not None:
            total += np.bincount(pairs.positive, pairs.value, minlength=y.size)
            total += np.bincount(pairs.negative, pairs.value, minlength=y.size)
        used = total > 0
        if not used.any() or np.ptp(y[used]) == 0:
            return Offer([], np.empty(0), math.inf)
        fitted = self.clone(self.learner).fit(self.data.X[used], y[used], sample_weight=total[used] / total.max())
        h = np.asarray(fitted.predict(self.data.X), dtype=np.float64)
        value = float((weight * y) @ h) - self.cost
        if pairs is not None:
            value += float(pairs.value @ separates(h, y, pairs))
        if value <= threshold:
            return Offer([], np.empty(0), math.inf)
        return Offer([Column(Fitted(fitted, h.tobytes()), h, self.cost)], np.array([value]), math.inf)


@dataclass(frozen=True)
class Fitted:
    """A fitted base classifier, identified by its answers on the training observations."""

    learner: Any
    answers: bytes

    def __hash__(self) -> int:
        return hash(self.answers)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Fitted) and self.answers == other.answers
