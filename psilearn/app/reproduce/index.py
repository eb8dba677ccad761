"""The index over all experiments: what reproduces and what does not, to be read in two minutes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from .compare import LIMIT, Row, by_measure, compare, is_test_error, judge, reasons, verdict
from .experiment import Experiment, Paper
from .page import cell, table, write
from .report import duration, page_name, summary_path, write_page
from .summary import Summary

NOT_COMPUTED = "Not computed yet."

_WORDS = {
    "Reproduces:": "reproduce",
    "Reproduces with exceptions:": "reproduce with exceptions",
    "Test errors reproduce:": "reproduce in their test errors, not in their other numbers",
    "Does not reproduce:": "do not reproduce",
    "Computed;": "have no printed number to compare with",
    "No verdict:": "cannot be judged",
    "Not computed": "are not computed",
}
"""How a verdict begins, and how many of its kind are counted."""

_KINDS = {"test errors and accuracies that agree": True, "other numbers that agree": False}
"""Kinds of printed numbers, and whether they are test errors."""


@dataclass(frozen=True)
class _Entry:
    """One experiment with its results, as far as there are any."""

    experiment: Experiment
    summary: Summary | None

    @cached_property
    def rows(self) -> list[Row]:
        return [] if self.summary is None else compare(self.experiment, self.summary)

    @property
    def verdict(self) -> str:
        return NOT_COMPUTED if self.summary is None else verdict(self.experiment, self.summary, self.rows)[0]

    @property
    def is_judged(self) -> bool:
        return self.verdict.startswith(("Reproduces", "Test errors reproduce", "Does not reproduce"))

    @property
    def judged(self) -> list[Row]:
        """The printed figures that can be judged, where the experiment as a whole can."""
        return [row for row in self.rows if row.z is not None] if self.is_judged else []

    @property
    def link(self) -> str:
        return f"[{self.experiment.name}]({page_name(self.experiment.name)}.md)"

    @property
    def difference(self) -> Sequence[str]:
        """What differs, and the known reasons."""
        return [self.link, cell(by_measure(self.judged)), cell(" Also: ".join(reasons(self.experiment, self.rows)))]

    @property
    def line(self) -> Sequence[str]:
        experiment, summary = self.experiment, self.summary
        if summary is None:
            return [experiment.name, cell(experiment.title), NOT_COMPUTED, "", ""]
        done = f"{summary.replications} of {experiment.replications}"
        full = "" if summary.seconds_full is None else duration(summary.seconds_full)
        return [self.link, cell(experiment.title), cell(_brief(self.verdict)), done, full]


def _brief(said: str) -> str:
    """A verdict without what its page tells: the judgement and how many figures differ."""
    start, _, rest = said.partition(": ")
    return f"{start}: {rest.split(' (')[0].split(';')[0].rstrip('.')}." if rest else said


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
    entries = [_entry(experiment, folder) for experiment in experiments]
    papers = dict.fromkeys(entry.experiment.paper for entry in entries)
    of = {paper: [entry for entry in entries if entry.experiment.paper == paper] for paper in papers}
    blocks = [
        "Every table and figure of the five papers, regenerated and set against the printed numbers. A number agrees "
        f"when it lies within {LIMIT:g} standard errors (theirs and ours together) of the printed one. The verdicts "
        "are computed from the stored results.",
        "## In short",
        _errors_and_others([row for entry in entries for row in entry.judged]),
        table(["paper", *_KINDS, "claims that hold"], [in_short(paper, of[paper]) for paper in papers]),
        "A claim says that one method does better than another; those that do not hold are undecided, unless said.",
        *_differences(entries),
        _tally([entry.verdict for entry in entries]),
    ]
    header = ["experiment", "what it is", "verdict", "replications", "cost of all"]
    for paper in papers:
        blocks += [f"## {paper}", table(header, [entry.line for entry in of[paper]])]
    blocks += [
        "## How to run it",
        "`psilearn reproduce NAME` regenerates one page at the paper's replications, `psilearn reproduce --all` "
        "everything, `--small` a short version of it; `--cluster ADDRESS` uses a dask cluster. Results are stored as "
        "they come: interrupt it at any time and run it again to go on.",
        _cost(entries),
    ]
    write(folder / "index", "Reproduction of the papers", filter(None, blocks))


def _errors_and_others(rows: Sequence[Row]) -> str:
    """Say how many printed test errors agree, and how many of the other numbers."""
    kinds = (("test errors and accuracies", True), ("other numbers (support vectors, coefficients, rules, ...)", False))
    told = []
    for what, is_error in kinds:
        some = [row for row in rows if is_test_error(row.measure) == is_error]
        if some:
            told.append(f"{sum(not row.differs for row in some)} of the {len(some)} {what} agree with the printed ones")
    return f"{'; '.join(told)}." if told else ""


def _entry(experiment: Experiment, folder: Path) -> _Entry:
    path = summary_path(folder, experiment.name)
    return _Entry(experiment, Summary.load(path) if path.is_file() else None)


def in_short(paper: Paper, entries: Sequence[_Entry]) -> Sequence[str]:
    """A line about one paper: how many numbers agree, of each kind, and how many of its claims hold."""
    rows = [row for entry in entries for row in entry.judged]
    counts = [_agreeing([row for row in rows if is_test_error(row.measure) == kind]) for kind in _KINDS.values()]
    return [cell(f"{paper.authors}, {paper.title}, {paper.year}"), *counts, _claims(entries)]


def _agreeing(rows: Sequence[Row]) -> str:
    return f"{sum(not row.differs for row in rows)} of {len(rows)}" if rows else "none printed, or none judged"


def _claims(entries: Sequence[_Entry]) -> str:
    differences = [difference for entry in entries if entry.summary for difference in entry.summary.differences]
    said = [judge(difference).split(":")[0] for difference in differences]
    opposite = said.count("the opposite holds")
    told = f"{said.count('holds')} of {len(said)}" if said else "none"
    return f"{told}; {opposite} the other way" if opposite else told


def _differences(entries: Sequence[_Entry]) -> list[str]:
    """The numbers that differ, table by table, with the reasons."""
    some = [entry.difference for entry in entries if any(row.differs for row in entry.judged)]
    return ["### What differs, and why", table(["table", "numbers that differ", "why"], some)] if some else []


def _tally(verdicts: Sequence[str]) -> str:
    """Count the verdicts by their first words."""
    counts = {text: sum(verdict.startswith(start) for verdict in verdicts) for start, text in _WORDS.items()}
    return f"Of {len(verdicts)} tables and figures " + ", ".join(f"{n} {text}" for text, n in counts.items() if n) + "."


def _cost(entries: Sequence[_Entry]) -> str:
    """What was computed here and by which version, and what the whole run costs."""
    origins = {entry.experiment.origin.name: entry.summary for entry in entries}
    done = [summary for summary in origins.values() if summary is not None]
    versions = Counter(version for summary in done for version in summary.versions)
    whole = sum(summary.seconds_full or 0.0 for summary in done)
    text = (
        f"What is shown here took {_core_hours(sum(summary.seconds for summary in done))} of computing (psilearn "
        f"{', '.join(sorted(versions)) or 'unknown'}). The whole run at the papers' replications costs about "
        f"{_core_hours(whole)}, estimated from the mean cost of the stored tasks"
    )
    uncounted = len(origins) - len(done)
    return text + (f", without {uncounted} experiments whose cost is not known yet." if uncounted else ".")


def _core_hours(seconds: float) -> str:
    return f"{seconds / 3600:.2f} CPU-hours"
