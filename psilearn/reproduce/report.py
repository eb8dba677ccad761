"""Pages from summaries: one per table or figure, and an index that says in two minutes what reproduces."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from .compare import Row, compare, describe, verdict
from .experiment import Experiment
from .page import Block, Heading, Image, Items, Link, Table, Text, to_html, to_markdown
from .summary import Cell, Summary

NOT_COMPUTED = "Not computed yet."


def page_name(experiment: str) -> str:
    """Return the file name of an experiment's page without its ending."""
    return experiment.replace("/", "-")


def summary_path(folder: Path, experiment: str) -> Path:
    """Return where the results of an experiment are kept."""
    return folder / "results" / f"{page_name(experiment)}.json"


def write_page(experiment: Experiment, summary: Summary, folder: Path) -> None:
    """Write the page of one experiment as markdown, HTML and, where it draws, PNG."""
    folder.mkdir(parents=True, exist_ok=True)
    name = page_name(experiment.name)
    rows = compare(experiment, summary)
    blocks: list[Block] = [Text(f"{experiment.paper}.")]
    if experiment.about:
        blocks.append(Text(experiment.about))
    blocks += [Heading("Verdict"), Items(verdict(experiment, summary, rows))]
    if experiment.draw is not None and summary.cells:
        blocks.append(_draw(experiment, summary, folder / f"{name}.png"))
    if rows:
        blocks += [Heading("Published and ours"), _comparison(rows)]
    others = _unpublished(summary, rows)
    if others:
        blocks += [Heading("Also measured"), _measured(others)]
    if summary.failures:
        hidden = summary.n_failed - len(summary.failures)
        blocks += [Heading("Failed tasks"), Items([*summary.failures, *([f"and {hidden} more"] if hidden else [])])]
    blocks += [Heading("Cost"), Text(_cost(experiment, summary))]
    _write(folder / name, f"{experiment.name}: {experiment.title}", blocks)


def rebuild(experiments: Iterable[Experiment], folder: Path) -> None:
    """Write every page and the index anew from the results kept in the folder; nothing is computed."""
    known = list(experiments)
    for experiment in known:
        path = summary_path(folder, experiment.name)
        if path.is_file():
            write_page(experiment, Summary.load(path), folder)
    write_index(known, folder)


def write_index(experiments: Iterable[Experiment], folder: Path) -> None:
    """Write the index over every experiment, computed or not, paper by paper."""
    known = list(experiments)
    entries = {experiment.name: _entry(experiment, folder) for experiment in known}
    blocks: list[Block] = [
        Text(
            "Every table and figure of the five papers, regenerated and set against the printed numbers. A number "
            "reproduces when it lies within three standard errors (theirs and ours together) of the printed one; the "
            "verdicts are computed from the stored results, and each page gives the reason where numbers part."
        ),
        Text(_tally([entry.verdict for entry in entries.values()])),
    ]
    for paper in dict.fromkeys(experiment.paper for experiment in known):
        lines = [entries[experiment.name].line for experiment in known if experiment.paper == paper]
        blocks += [Heading(str(paper)), Table(["experiment", "what it is", "verdict", "replications"], lines)]
    costs = {experiment.origin.name: entries[experiment.origin.name].seconds for experiment in known}
    total, uncounted = sum(s for s in costs.values() if s is not None), sum(s is None for s in costs.values())
    blocks += [
        Heading("How to run it"),
        Text(
            "`psilearn reproduce NAME` regenerates one page at the paper's replications, `psilearn reproduce --all` "
            "everything, `--small` a short version of it; `--cluster ADDRESS` uses a dask cluster. Results are stored "
            "as they come: interrupt it at any time and run it again to go on."
        ),
        Text(
            f"The whole run at the papers' replications costs about {_hours(total)} on one core"
            + (f", without {uncounted} experiments whose cost is not known yet." if uncounted else ".")
        ),
    ]
    _write(folder / "index", "Reproduction of the papers", blocks)


@dataclass(frozen=True)
class _Entry:
    """One line of the index."""

    line: Sequence[str | Link]
    verdict: str
    seconds: float | None


def _entry(experiment: Experiment, folder: Path) -> _Entry:
    path = summary_path(folder, experiment.name)
    if not path.is_file():
        return _Entry([experiment.name, experiment.title, NOT_COMPUTED, ""], NOT_COMPUTED, None)
    summary = Summary.load(path)
    headline = verdict(experiment, summary, compare(experiment, summary))[0]
    done = f"{summary.replications} of {experiment.replications}"
    line: list[str | Link] = [Link(experiment.name, page_name(experiment.name)), experiment.title, headline, done]
    return _Entry(line, headline, summary.seconds_full)


def _tally(verdicts: Sequence[str]) -> str:
    """Count the verdicts by their first words."""
    words = {
        "Reproduces:": "reproduce",
        "Reproduces with exceptions:": "reproduce with exceptions",
        "Does not reproduce:": "do not reproduce",
        "Computed;": "have no printed number to compare with",
        "No verdict:": "cannot be judged",
        "Not computed": "are not computed",
    }
    counts = {text: sum(verdict.startswith(start) for verdict in verdicts) for start, text in words.items()}
    return f"Of {len(verdicts)} tables and figures " + ", ".join(f"{n} {text}" for text, n in counts.items() if n) + "."


def _write(stem: Path, title: str, blocks: list[Block]) -> None:
    stem.with_suffix(".md").write_text(to_markdown(title, blocks), encoding="utf-8")
    stem.with_suffix(".html").write_text(to_html(title, blocks), encoding="utf-8")


def _draw(experiment: Experiment, summary: Summary, path: Path) -> Image:
    assert experiment.draw is not None
    experiment.draw(summary).savefig(path, dpi=100, metadata={"Software": None})
    return Image(path, experiment.title)


def _comparison(rows: list[Row]) -> Table:
    lines = [
        [
            describe(row.settings),
            row.measure,
            _number(row.published, "not printed"),
            _number(row.ours, "not computed"),
            _number(row.se),
            _score(row.z),
        ]
        for row in rows
    ]
    return Table(["setting", "measure", "published", "ours", "s.e.", "z"], lines)


def _unpublished(summary: Summary, rows: list[Row]) -> list[Cell]:
    """Cells of plain numbers that no published figure covers."""
    covered = {(describe(row.settings), row.measure) for row in rows}
    return [
        cell
        for cell in summary.cells
        if not isinstance(cell.mean, list) and (describe(cell.settings), cell.measure) not in covered
    ]


def _measured(cells: list[Cell]) -> Table:
    """One line per setting, one column per measure, the standard error in parentheses."""
    measures = list(dict.fromkeys(cell.measure for cell in cells))
    lines: dict[str, dict[str, str]] = {}
    for cell in cells:
        se = "" if cell.sd is None else f" ({_number(cell.sd / math.sqrt(cell.n))})"
        lines.setdefault(describe(cell.settings), {})[cell.measure] = _number(cell.mean, "undefined") + se
    rows = [[setting, *(values.get(measure, "") for measure in measures)] for setting, values in lines.items()]
    return Table(["setting", *measures], rows)


def _cost(experiment: Experiment, summary: Summary) -> str:
    text = (
        f"{summary.n_tasks} tasks, {_hours(summary.seconds)} of computing, {summary.replications} of "
        f"{experiment.replications} replications, psilearn {', '.join(summary.versions) or 'unknown'}."
    )
    if summary.seconds_full is not None:
        full = _hours(summary.seconds_full)
        text += f" The full run costs about {full} on one core: psilearn reproduce {experiment.name}."
    return text


def _number(value: float | None, missing: str = "") -> str:
    return missing if value is None else f"{value:.4g}"


def _score(z: float | None) -> str:
    return "" if z is None else f"{z:+.1f}"


def _hours(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
