"""``psilearn audit``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..words import shown
from .common import DataFile, Drop, Seed, Target, check_folder, heed, understood_table, write_whole


def audit(
    data: DataFile = None,
    target: Target = None,
    drop: Drop = None,
    out: Annotated[Path | None, typer.Option(help="Write the ranking of all rows here, as CSV.")] = None,
    top: Annotated[int, typer.Option(min=1, help="Rows to show.")] = 20,
    repeats: Annotated[int, typer.Option(min=1, help="How often the rows are divided anew.")] = 1,
    exact: Annotated[
        float, typer.Option(min=0, help="Seconds for proving the robust fit on all rows, two classes only.")
    ] = 5.0,
    seed: Seed = 0,
) -> None:
    """Rank the rows by how strongly fits made without them contradict their label."""
    from ..audit import find_label_issues
    from ..encoding import TableEncoder
    from ..terminal import console, progress_bar, show_issues, show_understanding

    check_folder(out)
    understood = understood_table(data, target, drop)
    screen = console()
    show_understanding(screen, understood)
    X = TableEncoder(numbers=understood.numbers).fit_transform(understood.frame)
    with progress_bar() as progress:
        labels = understood.labels.to_numpy(dtype=str)
        issues = find_label_issues(
            X, labels, repeats=repeats, random_state=seed, exact=exact or None, progress=heed(progress)
        )
    issues.insert(0, "row", understood.rows[issues["index"]])
    show_issues(screen, issues, top)
    if out is not None:
        write_whole(out, issues.drop(columns="index").to_csv(index=False))
        screen.print(f"Ranking of all rows: {shown(out, 200)}")
