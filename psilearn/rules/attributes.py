"""Readable conditions on the original features, and conjunctions of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

#: The features of a data set, one array each: float with NaN for missing values, or object with None.
Table = list[NDArray]


@dataclass(frozen=True)
class Attribute:
    """A yes/no question about one feature: ``x > value``, ``x = value``, ``x`` missing, or, if it is 0/1, ``x = 1``.

    A missing number is answered as ``fill`` (the training median) would be; a missing category equals no value.
    """

    feature: int
    name: str
    kind: Literal["above", "equals", "flag", "missing"]
    value: Any = 1
    fill: float = np.nan

    def holds(self, table: Table) -> NDArray[np.bool_]:
        """Answer for every row."""
        column = table[self.feature]
        if self.kind == "missing":
            return is_missing(column)
        if self.kind != "above":
            return np.asarray(column == self.value, dtype=bool)
        return np.where(np.isnan(column), self.fill, column) > self.value

    def text(self, answer: bool = True) -> str:
        """The condition that the question has this answer."""
        if self.kind == "flag":
            return f"{self.name} = {int(answer)}"
        if self.kind == "missing":
            return f"{self.name} is {'missing' if answer else 'known'}"
        if self.kind == "equals":
            return f"{self.name} {'=' if answer else '!='} {_shown(self.value)}"
        return f"{self.name} {'>' if answer else '<='} {_shown(self.value)}"


def is_missing(column: NDArray) -> NDArray[np.bool_]:
    """Where a column of a table has no value."""
    if column.dtype == object:
        return np.array([value is None for value in column.tolist()], dtype=bool)
    return np.isnan(column)


def _shown(value: Any) -> str:
    if isinstance(value, float | np.floating):
        return f"{value:.6g}"
    return str(value)


@dataclass(frozen=True)
class Conjunction:
    """Attributes with the answers they must have; empty for the rule that covers everything."""

    parts: tuple[tuple[Attribute, bool], ...]

    @property
    def order(self) -> int:
        """Number of literals."""
        return len(self.parts)

    def holds(self, table: Table) -> NDArray[np.bool_]:
        """Whether each row has all answers."""
        covered = np.ones(len(table[0]) if table else 0, dtype=bool)
        for attribute, answer in self.parts:
            covered &= attribute.holds(table) == answer
        return covered

    def __str__(self) -> str:
        """Conditions in the order of the features, several thresholds of one feature written as one interval."""
        if not self.parts:
            return "always"
        features = list(dict.fromkeys(a.feature for a, _ in sorted(self.parts, key=lambda part: part[0].feature)))
        return " and ".join(self._of_feature(feature) for feature in features)

    def _of_feature(self, feature: int) -> str:
        mine = [(a, answer) for a, answer in self.parts if a.feature == feature]
        others = [a.text(answer) for a, answer in mine if a.kind != "above"]
        above = [a.value for a, answer in mine if a.kind == "above" and answer]
        upto = [a.value for a, answer in mine if a.kind == "above" and not answer]
        name = mine[0][0].name
        if above and upto:
            others.insert(0, f"{_shown(max(above))} < {name} <= {_shown(min(upto))}")
        elif above:
            others.insert(0, f"{name} > {_shown(max(above))}")
        elif upto:
            others.insert(0, f"{name} <= {_shown(min(upto))}")
        return " and ".join(others)
