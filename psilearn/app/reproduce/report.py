"""Pages from summaries: one per table or figure."""

from __future__ import annotations

import math
from pathlib import Path

from .compare import Row, compare, describe, verdict
from .experiment import Experiment
from .page import cell as text_cell
from .page import items, table, write
from .summary import Cell, Summary


def page_name(experiment: str) -> str:
    """Return the file name of an experiment's page without its ending."""
    return experiment.replace("/", "-")


def summary_path(folder: Path, experiment: str) -> Path:
    """Return where the results of an experiment are kept."""
    return folder / "results" / f"{page_name(experiment)}.json"


def write_page(experiment: Experiment, summary: Summary, folder: Path) -> None:
    """Write the page of one experiment as markdown and, where it draws, PNG."""
    folder.mkdir(parents=True, exist_ok=True)
    name = page_name(experiment.name)
    rows = compare(experiment, summary)
    blocks = [f"{experiment.paper}.", experiment.about, "## Verdict", items(verdict(experiment, summary, rows))]
    if experiment.draw is not None and summary.cells:
        experiment.draw(summary).savefig(folder / f"{name}.png", dpi=100, metadata={"Software": None})
        blocks.append(f"![{experiment.title}]({name}.png)")
    if rows:
        blocks += ["## Published and ours", _comparison(rows)]
    if others := _unpublished(summary, rows):
        blocks += ["## Also measured", _measured(others)]
    if summary.failures:
        hidden = summary.n_failed - len(summary.failures)
        blocks += ["## Failed tasks", items([*summary.failures, *([f"and {hidden} more"] if hidden else [])])]
    blocks += ["## Cost", _cost(experiment, summary)]
    write(folder / name, f"{experiment.name}: {experiment.title}", filter(None, blocks))


def _comparison(rows: list[Row]) -> str:
    lines = [
        [
            text_cell(describe(row.settings)),
            text_cell(row.measure),
            _number(row.published, "not printed"),
            _number(row.ours, "not computed"),
            _number(row.se),
            _score(row.z),
        ]
        for row in rows
    ]
    return table(["setting", "measure", "published", "ours", "s.e.", "z"], lines)


def _unpublished(summary: Summary, rows: list[Row]) -> list[Cell]:
    """Cells of plain numbers that no published figure covers."""
    covered = {(describe(row.settings), row.measure) for row in rows}
    return [
        cell
        for cell in summary.cells
        if not isinstance(cell.mean, list) and (describe(cell.settings), cell.measure) not in covered
    ]


def _measured(cells: list[Cell]) -> str:
    """One line per setting, one column per measure, the standard error in parentheses."""
    measures = list(dict.fromkeys(cell.measure for cell in cells))
    lines: dict[str, dict[str, str]] = {}
    for cell in cells:
        se = "" if cell.sd is None else f" ({_number(cell.sd / math.sqrt(cell.n))})"
        lines.setdefault(describe(cell.settings), {})[cell.measure] = _number(cell.mean, "undefined") + se
    rows = [[text_cell(name), *(values.get(m, "") for m in measures)] for name, values in lines.items()]
    return table(["setting", *map(text_cell, measures)], rows)


def _cost(experiment: Experiment, summary: Summary) -> str:
    text = (
        f"{summary.n_tasks} tasks, {duration(summary.seconds)} of computing, {summary.replications} of "
        f"{experiment.replications} replications, psilearn {', '.join(summary.versions) or 'unknown'}."
    )
    if summary.seconds_full is not None:
        full = duration(summary.seconds_full)
        text += f" The full run costs about {full} on one core: psilearn reproduce {experiment.name}."
    return text


def _number(value: float | None, missing: str = "") -> str:
    return missing if value is None else f"{value:.4g}"


def _score(z: float | None) -> str:
    return "" if z is None else f"{z:+.1f}"


def duration(seconds: float) -> str:
    """Return a time in the unit that suits it."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
