"""Rules of one condition over all cut points: no 0/1 matrix, since their edges are sums over sorted values.

A feature is described by codes: how many of its cut points an observation lies above. The edges of all its cut points
are then the partial sums of one histogram.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..attributes import Attribute, Table
from ..binarize import LogicalBinarizer, cut_points, median_of
from ..observations import Observations
from ..pricing.data import CutPoint, Monomial, Pairs
from ..pricing.oracles import Column, Offer

#: Parts of a feature's cut points each of which may offer a rule: many good ones at once serve a program best.
_PARTS = 16


@dataclass(frozen=True)
class Chain:
    """All cut points of a number, ascending, or the one question about a category."""

    attribute: Attribute
    values: NDArray[np.float64]

    def at(self, place: int) -> Attribute:
        """The attribute of one cut point."""
        if self.attribute.kind != "above":
            return self.attribute
        return replace(self.attribute, value=float(self.values[place]))

    def codes(self, table: Table) -> NDArray[np.int32]:
        """How many of the attributes hold in each row."""
        if self.attribute.kind != "above":
            return self.attribute.holds(table).astype(np.int32)
        column = table[self.attribute.feature]
        filled = np.where(np.isnan(column), self.attribute.fill, column)
        return np.searchsorted(self.values, filled, side="left").astype(np.int32)


def all_chains(table: Table, names: Sequence[str], labels: NDArray) -> list[Chain]:
    """Return the chains of a table: each cut point at which the class changes, each category, and missing values."""
    categories = LogicalBinarizer(max_cuts=0, missing=True)
    found = []
    for j, (column, name) in enumerate(zip(table, names)):
        if column.dtype != object:
            values = cut_points(column, labels)
            if values.size:
                found.append(Chain(Attribute(j, name, "above", math.nan, median_of(column)), values))
        found += [Chain(a, np.zeros(1)) for a in categories.candidates(j, column, name, labels, len(table))]
    return found


def codes_of(chains: Sequence[Chain], table: Table) -> NDArray[np.int32]:
    """Codes of all rows, (n, n_chains)."""
    codes = [chain.codes(table) for chain in chains]
    return np.array(codes, dtype=np.int32).reshape(len(codes), len(table[0])).T


def rule_of(key: CutPoint, chains: Sequence[Chain]) -> tuple[Attribute, bool]:
    """The condition of a cut point: its attribute and the answer."""
    return chains[key.chain].at(key.place), key.answer


class CutPointOracle:
    """All rules of at most one condition on codes, priced exactly.

    ``data.X`` holds codes, ``sizes`` how many attributes each chain has.
    """

    def __init__(self, data: Observations, sizes: Sequence[int]) -> None:
        self.data, self.sizes = data, list(sizes)
        self.codes = np.ascontiguousarray(data.X.T)

    def column(self, key: CutPoint | Monomial) -> Column:
        """The column of a cut point, or of a constant."""
        return Column(key, (key.sign * key.covers(self.data.X)).astype(np.int8), 0.0)

    def constants(self) -> list[Column]:
        """The two constant classifiers."""
        return [self.column(Monomial((), 1)), self.column(Monomial((), -1))]

    def offer(
        self, weight: NDArray, pairs: Pairs | None, threshold: float, n_columns: int, time_limit: float = math.inf,
        proof: bool = True,
    ) -> Offer:  # fmt: skip
        """See :class:`..pricing.oracles.Oracle`; exact, by a histogram for each chain. There are no pair rewards."""
        net = weight * self.data.y
        total = float(net.sum())
        found: list[tuple[float, CutPoint | Monomial]] = [(s * total, Monomial((), s)) for s in (1, -1)]
        for g, size in enumerate(self.sizes):
            above = np.bincount(self.codes[g], net, size + 1)[::-1].cumsum()[::-1][1:]
            for part in np.array_split(np.arange(size), min(size, _PARTS)):
                high, low = (int(part[place]) for place in (above[part].argmax(), above[part].argmin()))
                found += [
                    (float(above[high]), CutPoint(g, high, True, 1)),
                    (float(above[high]) - total, CutPoint(g, high, False, -1)),
                    (-float(above[low]), CutPoint(g, low, True, -1)),
                    (total - float(above[low]), CutPoint(g, low, False, 1)),
                ]
        found.sort(key=lambda item: -item[0])
        best = [item for item in found[:n_columns] if item[0] > threshold]
        values = np.array([value for value, _ in best])
        return Offer([self.column(key) for _, key in best], values, max(threshold, found[0][0]), len(found))
