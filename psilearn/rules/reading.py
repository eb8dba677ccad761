"""Reading single predictions: which rules applied, and the smallest change of conditions that gives another class."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .attributes import Attribute, Conjunction, Table, _shown
from .rules import Rule

#: Changes of so many features at once are looked for, and so many combinations of values are tried at most.
MOST_FEATURES, MOST_TRIALS = 3, 60_000


@dataclass(frozen=True)
class Explanation:
    """Why a row is given its class.

    Attributes
    ----------
    prediction : object
        The class.
    scores : dict
        Points of each class.
    fired : list of (str, object, float)
        The conditions that hold, the class each votes for, and its points, largest first.
    """

    prediction: Any
    scores: dict[Any, float]
    fired: list[tuple[str, Any, float]]

    def __str__(self) -> str:
        lines = [f"{self.prediction}: " + ", ".join(f"{points:.4g} for {c}" for c, points in self.scores.items())]
        return "\n".join(lines + [f"{points:8.4g}  for {label}  because  {text}" for text, label, points in self.fired])


@dataclass(frozen=True)
class Change:
    """One feature that would have to be otherwise: its value now, what it would have to be, and such a value."""

    feature: str
    now: Any
    condition: str
    value: Any

    def __str__(self) -> str:
        now = "missing" if self.now is None or self.now != self.now else _shown(self.now)
        return f"{self.condition}   [now {now}]"


@dataclass(frozen=True)
class Cell:
    """Values of a feature that no rule tells apart: in words, and one of them."""

    text: str
    value: Any


def cells_of(feature: int, rules: Sequence[Rule], known: Sequence[Attribute], x: Any) -> list[Cell]:
    """The cells into which the conditions of the rules on one feature divide its values.

    ``known`` are all attributes of the model, whose categories can stand for those no rule names; ``x`` is the present
    value.
    """
    parts = {a: None for rule in rules for a, _ in rule.condition.parts if a.feature == feature}
    attributes = list(parts)
    numbers = sorted((a for a in attributes if a.kind == "above"), key=lambda a: a.value)
    cells: list[Cell] = []
    if numbers:
        cells += list(_intervals(numbers, x))
    flags = [a for a in attributes if a.kind == "flag"]
    if flags:
        cells += [Cell(flags[0].text(False), 0.0), Cell(flags[0].text(True), 1.0)]
    named = [a for a in attributes if a.kind == "equals"]
    cells += [Cell(a.text(True), a.value) for a in named]
    others = [a for a in known if a.feature == feature and a.kind == "equals" and a not in attributes]
    if named and others:
        cells.append(Cell(" and ".join(a.text(False) for a in named), others[0].value))
    return cells


def _intervals(cuts: Sequence[Attribute], x: Any) -> Iterator[Cell]:
    """Intervals between cut points, each with the value nearest to the present one."""
    x = cuts[0].fill if x is None or x != x else float(x)
    for low, high in itertools.pairwise([None, *cuts, None]):
        parts = tuple((a, answer) for a, answer in ((low, True), (high, False)) if a is not None)
        if low is not None and high is not None:
            middle = low.value + (high.value - low.value) / 2
            value = x if low.value < x <= high.value else high.value if x > high.value else middle
        elif low is not None:
            value = max(x, np.nextafter(low.value, np.inf)) if x > low.value else _beyond(low.value, cuts)
        else:
            assert high is not None
            value = min(x, high.value)
        yield Cell(str(Conjunction(parts)), float(value))


def _beyond(cut: float, cuts: Sequence[Attribute]) -> float:
    """A round-looking value above the last cut point."""
    width = cuts[-1].value - cuts[0].value
    return cut + (0.1 * width if width > 0 else max(0.1 * abs(cut), 1e-3))


def smallest_change(
    row: Table,
    names: Sequence[str],
    rules: Sequence[Rule],
    known: Sequence[Attribute],
    predict: Callable[[Table], NDArray],
    target: Any = None,
) -> list[Change]:
    """The fewest features that have to change for another class (``target``, or any), and how.

    ``row`` is a table of one row, ``predict`` gives the classes of a table; nothing is made missing. Of several ways
    with as few features the one nearest in the order of cells is taken; empty if three features do not do.
    """
    now = predict(row)[0]
    used = sorted({a.feature for rule in rules for a, _ in rule.condition.parts})
    cells = {feature: cells_of(feature, rules, known, row[feature][0]) for feature in used}
    for count in range(1, MOST_FEATURES + 1):
        found = _with_features(row, cells, count, predict, now, target)
        if found is not None:
            return [Change(names[f], row[f][0], cell.text, cell.value) for f, cell in found]
    return []


def _with_features(
    row: Table, cells: dict[int, list[Cell]], count: int, predict: Callable[[Table], NDArray], now: Any, target: Any
) -> list[tuple[int, Cell]] | None:
    """A way with exactly so many features, the least change of numbers first."""
    trials: list[tuple[float, list[tuple[int, Cell]]]] = []
    for features in itertools.combinations(cells, count):
        for chosen in itertools.product(*(cells[f] for f in features)):
            if len(trials) >= MOST_TRIALS:
                break
            pairs = list(zip(features, chosen))
            trials.append((sum(_distance(row[f][0], cell, cells[f]) for f, cell in pairs), pairs))
    trials.sort(key=lambda trial: trial[0])
    if not trials:
        return None
    table = [np.repeat(column, len(trials)) for column in row]
    for t, (_, pairs) in enumerate(trials):
        for feature, cell in pairs:
            table[feature][t] = cell.value
    given = predict(table)
    good = given != now if target is None else given == target
    return trials[int(np.argmax(good))][1] if good.any() else None


def _distance(x: Any, cell: Cell, cells: Sequence[Cell]) -> float:
    """How far a value is from a cell, as a share of the range of its feature's cells; 1 for categories."""
    if not isinstance(cell.value, float) or isinstance(x, str) or x is None or x != x:
        return 1.0
    values = [c.value for c in cells if isinstance(c.value, float)]
    width = max(values) - min(values)
    return abs(float(x) - cell.value) / width if width > 0 else 1.0
