"""``psilearn compare``: every method on one table, shown in the terminal and, with --out, as a report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..tables import TableError
from ..words import shown
from .common import (
    DataFile,
    Drop,
    Group,
    Identifier,
    Memory,
    Seed,
    Target,
    check_folder,
    check_methods,
    command_line,
    heed,
    source_name,
    understood_table,
    write_whole,
)


def compare(
    data: DataFile = None,
    target: Target = None,
    drop: Drop = None,
    group: Group = None,
    identifier: Identifier = None,
    budget: Annotated[float, typer.Option(min=1, help="Seconds for everything but compiling on first use.")] = 120.0,
    seed: Seed = 0,
    out: Annotated[Path | None, typer.Option(help="Write a report here: one HTML file that opens offline.")] = None,
    flip: Annotated[
        float | None,
        typer.Option(min=0, max=0.49, help="Share of training labels to flip (default: 0.1 without a file, else 0)."),
    ] = None,
    folds: Annotated[int, typer.Option(min=0, help="Test folds of a cross-validation; 0 is one split.")] = 0,
    reject: Annotated[
        float | None,
        typer.Option(help="Let every method abstain at this price, between 0 and 0.5, and show what it answers."),
    ] = None,
    rules: Annotated[bool, typer.Option("--rules", help="Print the rules in words.")] = False,
    method: Annotated[list[str] | None, typer.Option(help="Run this method only; may be given several times.")] = None,
    memory: Memory = None,
) -> None:
    """Compare every method on a table whose labels you doubt; without a file, on breast cancer data."""
    from ..compare import METHODS, Settings
    from ..compare import compare as run
    from ..terminal import console, progress_bar, show_comparison, show_rules, show_understanding

    check_methods(method or [], [m.key for m in METHODS])
    if folds == 1:
        raise typer.BadParameter("a cross-validation needs at least 2 folds.", param_hint="--folds")
    if reject is not None and not 0 < reject < 0.5:
        raise typer.BadParameter("the price must lie between 0 and 0.5.", param_hint="--reject")
    check_folder(out)
    understood = understood_table(data, target, drop, group, identifier, memory, seed)
    screen = console()
    show_understanding(screen, understood)
    settings = Settings(
        # A report's pictures need fits of their own.
        budget=budget if out is None else 0.75 * budget,
        seed=seed, outer_folds=folds, methods=tuple(method or ()),
        d=reject or 0.2, everyone_abstains=reject is not None,
        flip=(0.1 if data is None else 0.0) if flip is None else flip,
    )  # fmt: skip
    with progress_bar() as progress:
        comparison = run(understood, settings, heed(progress))
    show_comparison(screen, comparison)
    if rules:
        show_rules(screen, comparison)
    if not comparison.outcomes:
        raise TableError("No method could be fitted; the reasons are above.")
    if out is not None:
        from ..report import report_page

        with progress_bar() as progress:
            progress("drawing the report", 0.5)
            html = report_page(comparison, source_name(data), command_line(), 0.25 * budget)
        write_whole(out, html)
        screen.print(f"Report: {shown(out, 200)}")
