"""What the command line shows: tables and progress by rich, every text from the data inert."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from .audit.story import answer, judge, probability
from .audit.table import TableAudit
from .compare.abstain import answers
from .compare.job import Comparison, Outcome
from .compare.summary import flips_found, n_nonzero, n_support, standing, story
from .tables import Understanding
from .words import shown

if TYPE_CHECKING:
    import pandas as pd


#: Columns of the comparison, the terminal they need, and those a narrower one can do without.
COLUMNS = (
    "method", "test error", "95% interval", "coefs", "support", "suspects", "tuned", "seconds", "training optimum",
)  # fmt: skip
WIDE, WIDE_ONLY = 138, (3, 4, 6, 7)


def console() -> Console:
    """Return a console on standard output; a pipe gets plain text, wide enough for the tables."""
    return Console(highlight=False, markup=False, width=None if sys.stdout.isatty() else 150)


@contextmanager
def progress_bar() -> Iterator[Callable[[str, float], None]]:
    """Yield a function (text, share done) that moves a live bar on standard error, silent if that is no terminal."""
    screen = Console(stderr=True)
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=screen, transient=True, disable=not screen.is_terminal) as bar:
        task = bar.add_task("starting", total=1.0)
        yield lambda text, done: bar.update(task, description=f"{text:<30}", completed=done)


def show_understanding(out: Console, data: Understanding) -> None:
    """Say what was understood of the table."""
    kinds: dict[str, int] = {}
    for column in data.columns:
        kinds[column.kind] = kinds.get(column.kind, 0) + 1
    plural = {"category": "categories", "number": "numbers", "identifier": "identifiers"}
    parts = ", ".join(f"{n} {plural.get(kind, kind) if n > 1 else kind}" for kind, n in kinds.items())
    classes = ", ".join(f"{shown(c, 30)} {n}" for c, n in list(data.class_counts.items())[:8])
    more = f" and {len(data.class_counts) - 8} more classes" if len(data.class_counts) > 8 else ""
    missing = sum(c.missing for c in data.columns if c.is_used)
    out.print(f"{len(data.labels)} rows; columns: {parts}; {missing} missing cells among the features.")
    out.print(f"Label '{shown(data.target)}': {classes}{more}.")
    for note in data.notes[:12]:
        out.print(f"  • {shown(note, 300)}")
    if len(data.notes) > 12:
        out.print(f"  • and {len(data.notes) - 12} more notes.")


def show_comparison(out: Console, comparison: Comparison) -> None:
    """Print the table of methods, what was not run, and the verdict."""
    first = comparison.splits[0]
    settings = comparison.settings
    how = (
        f"{settings.outer_folds}-fold cross-validation"
        if settings.outer_folds
        else f"{len(first.y_train)} rows for training, {len(first.y_test)} for the test"
    )
    flips = f"; {len(first.flipped)} training labels flipped ({100 * settings.flip:g}%)" if settings.flip else ""
    out.print(f"{how}{flips}; {first.X_train.shape[1]} features after encoding; seed {settings.seed}.\n")
    is_wide = out.width >= WIDE
    shown_columns = [at for at in range(len(COLUMNS)) if is_wide or at not in WIDE_ONLY]
    table = Table(box=None, padding=(0, 1) if is_wide else (0, 1, 0, 0), header_style="bold")
    for at in shown_columns:
        is_text = COLUMNS[at] in {"method", "training optimum"}
        table.add_column(COLUMNS[at], justify="left" if is_text else "right", no_wrap=True)
    smallest = min((o.error for o in comparison.outcomes), default=0.0)
    for outcome in comparison.outcomes:
        cells = _cells(comparison, outcome, outcome.error == smallest)
        table.add_row(*(cells[at] for at in shown_columns))
    out.print(table)
    if not is_wide:
        left_out = ", ".join(COLUMNS[at] for at in WIDE_ONLY)
        out.print(f"(a terminal {WIDE} columns wide also shows {left_out})")
    for outcome in comparison.outcomes:
        for note in outcome.notes:
            out.print(f"  • {outcome.method.label}: {note}.")
    for method, reason in comparison.not_run:
        out.print(f"  • {method.label} was not run: {shown(reason, 300)}")
    if settings.everyone_abstains:
        show_abstentions(out, comparison)
    out.print("")
    for topic, words in story(comparison).items():
        out.print(f"{topic}: {words}")
    if settings.flip:
        out.print("suspects: flipped labels found / samples the fit refused to believe.")
    out.print(f"{comparison.seconds:.1f} s in all.")


def show_abstentions(out: Console, comparison: Comparison) -> None:
    """Print what every method answers when an abstention costs d and an error 1."""
    d = comparison.settings.d
    out.print(f"\nIf an abstention costs {d:g} and an error 1 (a fit without a rule of its own: by its sureness):")
    table = Table(box=None, padding=(0, 1), header_style="bold")
    table.add_column("method", no_wrap=True)
    for name in ("answered", "error among answered", "cost per row"):
        table.add_column(name, justify="right", no_wrap=True)
    shown_rows = [(o, answers(o.wrong, o.abstained, d)) for o in comparison.outcomes if o.abstained is not None]
    least = min((a.cost for _, a in shown_rows), default=0.0)
    for outcome, a in shown_rows:
        cells = outcome.method.label, f"{100 * a.coverage:.1f}%", f"{100 * a.error:.1f}%", f"{a.cost:.4f}"
        table.add_row(*(Text(cell, style="bold green" if a.cost == least else "") for cell in cells))
    out.print(table)


def show_rules(out: Console, comparison: Comparison) -> None:
    """Print the rules of the methods that have some, the one of smallest test error first."""
    with_rules = [outcome for outcome in comparison.outcomes if hasattr(outcome.model, "rules_")]
    for outcome in sorted(with_rules, key=lambda outcome: outcome.error):
        out.print(f"\n{outcome.method.label}, test error {100 * outcome.error:.1f}%:")
        for line in outcome.model.export_text().splitlines():
            out.print(f"  {shown(line, 200)}")
    if not with_rules:
        out.print("\nNo rules to print: neither LP-Boost nor L0-RBoost was run.")


def show_audit(out: Console, audit: TableAudit, top: int) -> None:
    """Print the answer in words, the most suspicious rows with reasons, and what else is wrong."""
    issues = audit.issues
    for sentence in answer(issues):
        out.print(shown(sentence, 400))
    out.print()
    suspects = audit.suspects.head(top)
    for issue in suspects.itertuples():
        called = f"row {issue.row}" + (f", {shown(issue.id, 40)}" if "id" in issues else "")
        out.print(f"{called}: '{shown(issue.given, 30)}', perhaps '{shown(issue.suggested, 30)}' "
                  f"(wrong with probability {probability(issue.score)})")  # fmt: skip
        out.print(f"    {shown(audit.reasons[issue.index].text, 400)}")
        if issue.price > 0:
            out.print(f"    Proved: every linear fit that believes it is at least {100 * issue.price:.2g}% worse.")
    if len(audit.suspects) > top:
        out.print(f"... and {len(audit.suspects) - top} more rows; --review writes a page with all of them.")
    if "annotators" in issues.attrs:
        _show_annotators(out, issues.attrs["annotators"])
    for finding in audit.findings:
        rows = [str(audit.data.rows[row]) for row in finding.rows[:8]]
        where = f" (rows {', '.join(rows)}{', ...' if len(finding.rows) > 8 else ''})" if rows else ""
        out.print(f"  • {finding.name}: {shown(finding.text, 300)}{where}")
    out.print(f"{judge(issues)} Rows are counted from 1 without the header: row 1 is line 2 of a spreadsheet.")


def _show_annotators(out: Console, quality: pd.DataFrame) -> None:
    out.print()
    table = Table(box=None, padding=(0, 1), header_style="bold")
    for name in ("annotator", "labels", "agrees with the consensus", "right with probability"):
        table.add_column(name, justify="left" if name == "annotator" else "right", no_wrap=True)
    for one in quality.itertuples():
        table.add_row(
            Text(shown(one.Index, 40)), str(one.labels), f"{100 * one.agreement:.0f}%", f"{100 * one.accuracy:.0f}%"
        )
    out.print(table)


def _cells(comparison: Comparison, outcome: Outcome, is_best: bool) -> list[Text]:
    low, high = outcome.interval
    found = flips_found(comparison, outcome)
    suspects = (
        f"{found[0]}/{found[1]}" if found else _number(None if outcome.suspects is None else len(outcome.suspects))
    )
    cells = [
        outcome.method.label, f"{100 * outcome.error:.1f}%", f"{100 * low:.1f}–{100 * high:.1f}%",
        _number(n_nonzero(outcome.model)), _number(n_support(outcome.model)), suspects, str(outcome.tuning),
        f"{outcome.seconds:.1f}", standing(comparison, outcome),
    ]  # fmt: skip
    return [Text(cell, style="bold green" if is_best and at < 2 else "") for at, cell in enumerate(cells)]


def _number(value: int | None) -> str:
    return "" if value is None else str(value)
