"""Weighted observations with equal (row, label) merged, and the boosting program that is written over them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True)
class Observations:
    """Distinct (row, label) pairs in canonical order, with their total weights.

    Equal observations have equal margins and, by convexity, equal slacks in some optimum, so merging them changes no
    optimal value; sorting makes the solve independent of the order of the data.

    Attributes
    ----------
    X : ndarray of shape (m, N)
        Distinct rows.
    y : ndarray of shape (m,)
        Labels -1 / +1, or codes 0, 1, ... of several classes.
    weight : ndarray of shape (m,)
        Total weights, positive.
    """

    X: NDArray
    y: NDArray[np.int64]
    weight: NDArray[np.float64]

    @classmethod
    def merge(cls, X: ArrayLike, y: ArrayLike, weight: ArrayLike | None = None) -> Observations:
        """Merge equal observations and drop those of weight zero."""
        return cls.of_classes(X, np.where(np.asarray(y) > 0, 1, -1), weight)

    @classmethod
    def of_classes(cls, X: ArrayLike, y: ArrayLike, weight: ArrayLike | None = None) -> Observations:
        """The same for classes of any number, given as whole numbers, which are kept as they are."""
        X, y = np.asarray(X), np.asarray(y)
        weight = np.ones(y.size) if weight is None else np.asarray(weight, dtype=np.float64)
        if weight.size and weight.min() < 0:
            raise ValueError("Sample weights must be non-negative.")
        used = weight > 0
        X, y = X[used], y[used].astype(np.int64)
        # packed rows of bits have the same order as the rows themselves
        rows = np.packbits(X, axis=1) if X.dtype == np.uint8 and X.size and X.max() <= 1 else X
        codes = y - y.min(initial=0)
        both = np.column_stack([rows, codes.astype(np.min_scalar_type(int(codes.max(initial=0))))])
        _, first, place = np.unique(both, axis=0, return_index=True, return_inverse=True)
        total = np.zeros(first.size)
        np.add.at(total, place.ravel(), weight[used])
        return cls(np.ascontiguousarray(X[first]), y[first], total)

    def subset(self, rows: NDArray) -> Observations:
        """These observations alone."""
        return Observations(self.X[rows], self.y[rows], self.weight[rows])

    @property
    def total(self) -> float:
        """M, the total weight."""
        return float(self.weight.sum())

    @property
    def majority(self) -> int:
        """The class of larger weight (+1 in a tie): the answer where the rules are silent."""
        return 1 if float(self.weight @ self.y) >= 0 else -1


@dataclass(frozen=True)
class RuleProblem:
    """What a rule learner solves on given data.

    Attributes
    ----------
    parts : tuple of Observations
        One; or one for each class, against the others. X holds what the attributes answer.
    attributes : list
        What a condition of a rule can ask, in the order of the columns of X; empty with a given base learner.
    max_order : list of int
        Largest number of conditions of a rule, for each part.
    nu : list of float or None
        LP-Boost: the share of the observations that may have less than the margin, for each part.
    rho, costs : list or None
        L0-RBoost: the margin that is asked for, and the costs of rules of order 0, 1, ..., for each part.
    """

    parts: tuple[Observations, ...]
    attributes: list[Any]
    max_order: list[int]
    nu: list[float] | None = None
    rho: list[float] | None = None
    costs: list[list[float]] | None = None

    def value(self, margins: ArrayLike, orders: Sequence[int] = (), part: int = 0) -> float:
        """Return the objective of votes whose weights add up to 1.

        Parameters
        ----------
        margins : array-like of shape (m,)
            Votes for an observation's class less those for its best rival, for the observations of the part.
        orders : sequence of int
            L0-RBoost: the orders of the rules that are used.
        part : int
            Which of the problems.

        Returns
        -------
        float
            LP-Boost: the soft margin, which is maximised; L0-RBoost: mistakes and costs, which are minimised.
        """
        u, weight = np.asarray(margins, dtype=np.float64), self.parts[part].weight
        if self.nu is not None:
            short = np.maximum(u[:, None] - u[None, :], 0.0)  # some margin is the best one to ask for
            return float((u - short @ weight / (self.nu[part] * weight.sum())).max())
        if self.rho is None or self.costs is None:
            raise ValueError("SLIPPER is greedy: it minimises no objective.")
        return float(weight @ (u < self.rho[part]) + sum(self.costs[part][order] for order in orders))
