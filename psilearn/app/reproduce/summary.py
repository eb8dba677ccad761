"""From stored replicates to the small JSON that is kept: averages, spreads, paired differences, failures, cost."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from .experiment import Experiment, Settings
from .store import Record, Store
from .task import Task, canonical, plain

SHOWN_FAILURES = 20
"""A page lists this many failures; the store holds them all."""


@dataclass(frozen=True)
class Cell:
    """Average of one measure at one setting; ``mean`` and ``sd`` are numbers or lists (curves, points)."""

    settings: dict[str, Any]
    measure: str
    n: int
    mean: Any
    sd: Any


@dataclass(frozen=True)
class Difference:
    """Paired difference higher - lower behind one ordering."""

    text: str
    n: int
    mean: float
    se: float | None


@dataclass(frozen=True)
class Summary:
    """All that a page needs."""

    experiment: str
    cells: list[Cell]
    differences: list[Difference] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    n_tasks: int = 0
    n_failed: int = 0
    replications: int = 0
    seconds: float = 0.0
    seconds_full: float | None = None
    versions: list[str] = field(default_factory=list)

    def get(self, settings: Settings, measure: str) -> Cell | None:
        """Return the cell, None if nothing was computed for it."""
        wanted = canonical(settings)
        for cell in self.cells:
            if cell.measure == measure and canonical(cell.settings) == wanted:
                return cell
        return None

    def mean(self, settings: Settings, measure: str) -> Any:
        """Return the average as an array (or a number); KeyError if nothing was computed or all was undefined."""
        cell = self.get(settings, measure)
        if cell is None or cell.mean is None:
            raise KeyError(f"{self.experiment} has no {measure} at {canonical(settings)}")
        return np.asarray(cell.mean, dtype=float) if isinstance(cell.mean, list) else cell.mean

    def save(self, path: Path) -> None:
        """Write as JSON."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_dumps(asdict(self)), encoding="utf-8")

    @classmethod
    def load(cls, path: Path) -> Summary:
        """Read what `save` wrote."""
        fields = json.loads(path.read_text(encoding="utf-8"))
        fields["cells"] = [Cell(**cell) for cell in fields["cells"]]
        fields["differences"] = [Difference(**difference) for difference in fields["differences"]]
        return cls(**fields)


def summarise(experiment: Experiment, tasks: Sequence[Task], store: Store) -> Summary:
    """Average all that is stored of an experiment: these tasks, and what longer or other runs of it have left.

    Records of settings that are no longer in its grid are not used.
    """
    grid = {canonical(settings) for settings in experiment.origin.settings}
    records = [record for record in store.records(experiment.origin.name) if record.settings in grid]
    wanted = {task.key for task in tasks} | {record.key for record in records}
    done = [record for record in records if record.status == "done"]
    failed = [record for record in records if record.status == "failed"]
    seconds = sum(record.seconds for record in records)
    return Summary(
        experiment=experiment.name,
        cells=_cells(done) + _ratios(experiment, done),
        differences=[d for d in (_difference(o, done) for o in experiment.orderings) if d is not None],
        failures=[_last_line(record) for record in failed[:SHOWN_FAILURES]],
        n_tasks=len(wanted),
        n_failed=len(failed),
        replications=len({record.replicate for record in done}),
        seconds=round(seconds, 3),
        seconds_full=_full_cost(experiment, done),
        versions=sorted({record.version for record in done}),
    )


def _cells(done: Sequence[Record]) -> list[Cell]:
    collected: dict[tuple[str, str], list[Any]] = defaultdict(list)
    for record in done:
        assert record.result is not None
        for measure, value in record.result.items():
            collected[record.settings, measure].append(value)
    return [_cell(settings, measure, values) for (settings, measure), values in collected.items()]


def _cell(settings: str, measure: str, values: list[Any]) -> Cell:
    """Average over replicates, element by element; a number that is undefined (nan) in a replicate is left out."""
    array = np.array(values, dtype=float)
    if array.ndim == 1:
        array = array[~np.isnan(array)]
    n = len(array)
    mean = array.mean(axis=0) if n else np.nan
    spread = array.std(axis=0, ddof=1) if n > 1 else np.full(array.shape[1:], np.nan)
    return Cell(json.loads(settings), measure, n, _strict(plain(mean)), _strict(plain(spread)))


def _ratios(experiment: Experiment, done: Sequence[Record]) -> list[Cell]:
    """Return A / B of two averages, with the standard deviation of its linearisation (a_i - (A / B) b_i) / B."""
    cells = []
    for ratio in experiment.ratios:
        pairs: dict[str, list[tuple[float, float]]] = defaultdict(list)
        for record in done:
            result = record.result or {}
            if ratio.numerator in result and ratio.denominator in result:
                pairs[record.settings].append((result[ratio.numerator], result[ratio.denominator]))
        for settings, values in pairs.items():
            top, bottom = np.array(values, dtype=float).T
            value = top.mean() / bottom.mean()
            influence = value + (top - value * bottom) / bottom.mean()
            cells.append(_cell(settings, ratio.measure, list(influence)))
    return cells


def _dumps(fields: dict[str, Any]) -> str:
    """One cell per line: readable differences between two commits, without one line per number."""
    fields = _strict(plain(fields))
    cells = ",\n  ".join(json.dumps(cell, allow_nan=False) for cell in fields.pop("cells"))
    head = json.dumps(fields, indent=1, allow_nan=False).removesuffix("\n}")
    return f'{head},\n "cells": [\n  {cells}\n ]\n}}\n'


def _strict(value: Any) -> Any:
    """Return the value with nan turned into None, which JSON has."""
    if isinstance(value, dict):
        return {key: _strict(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_strict(item) for item in value]
    return None if isinstance(value, float) and np.isnan(value) else value


def _difference(ordering: Any, done: Sequence[Record]) -> Difference | None:
    sides = []
    for settings, measure in (ordering.lower, ordering.higher):
        wanted = canonical(settings)
        side = {r.replicate: r.result.get(measure) for r in done if r.settings == wanted and r.result is not None}
        sides.append({replicate: value for replicate, value in side.items() if value is not None})
    shared = sorted(sides[0].keys() & sides[1].keys())
    if not shared:
        return None
    gaps = np.array([sides[1][i] - sides[0][i] for i in shared])
    se = float(gaps.std(ddof=1) / np.sqrt(len(gaps))) if len(gaps) > 1 else None
    return Difference(ordering.text, len(gaps), float(gaps.mean()), se)


def _last_line(record: Record) -> str:
    last = (record.error or "").strip().splitlines()[-1:]
    return f"{record.settings}, replicate {record.replicate}: {last[0] if last else 'unknown error'}"


def _full_cost(experiment: Experiment, done: Sequence[Record]) -> float | None:
    """Estimated seconds on one core of the run at the paper's replications: mean cost per setting times the count."""
    costs: dict[str, list[float]] = defaultdict(list)
    for record in done:
        costs[record.settings].append(record.seconds)
    origin = experiment.origin
    if not costs:
        return None
    typical = float(np.mean([np.mean(values) for values in costs.values()]))
    per_setting = [float(np.mean(costs.get(canonical(s), [typical]))) for s in origin.settings]
    return round(origin.replications * sum(per_setting), 3)
