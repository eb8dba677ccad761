"""``psilearn audit``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..words import shown
from .common import DataFile, Drop, Group, Identifier, Seed, Target, check_folder, heed, understood_table, write_whole


def audit(
    data: DataFile = None,
    target: Target = None,
    drop: Drop = None,
    group: Group = None,
    identifier: Identifier = None,
    out: Annotated[Path | None, typer.Option(help="Write the ranking of all rows here, as CSV.")] = None,
    top: Annotated[int, typer.Option(min=1, help="Rows to show.")] = 20,
    repeats: Annotated[int, typer.Option(min=1, help="How often the rows are divided anew.")] = 2,
    seed: Seed = 0,
) -> None:
    """Say how many labels are wrong, and rank the rows by the probability that theirs is."""
    from ..audit import find_label_issues
    from ..encoding import TableEncoder
    from ..terminal import console, progress_bar, show_issues, show_understanding

    check_folder(out)
    understood = understood_table(data, target, drop, group, identifier)
    screen = console()
    show_understanding(screen, understood)
    X = TableEncoder(numbers=understood.numbers).fit_transform(understood.frame)
    with progress_bar() as progress:
        issues = find_label_issues(
            X,
            understood.labels.to_numpy(dtype=str),
            groups=understood.groups,
            repeats=repeats,
            random_state=seed,
            progress=heed(progress),
        )
    issues.insert(0, "row", understood.rows[issues["index"]])
    if understood.ids is not None:
        issues.insert(1, "id", understood.ids.to_numpy()[issues["index"]])
    show_issues(screen, issues, top)
    if out is not None:
        write_whole(out, issues.drop(columns="index").to_csv(index=False))
        screen.print(f"Ranking of all rows: {shown(out, 200)}")
