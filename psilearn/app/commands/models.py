"""``psilearn fit`` and ``psilearn predict``: a model for a table, saved in a file, and its answers on other tables."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..tables import TableError, read_chunks
from ..tables.labels import find_column
from ..words import shown
from .common import (
    TABLE,
    Drop,
    Group,
    Identifier,
    Memory,
    Seed,
    Target,
    check_folder,
    check_methods,
    heed,
    sentences,
    stream,
    understood_table,
)

if TYPE_CHECKING:
    import pandas as pd

    from ..tablemodel import TableModel


def fit(
    data: Annotated[Path, typer.Argument(help=f"{TABLE}.")],
    out: Annotated[Path, typer.Option(help="Write the model here.")],
    target: Target = None,
    drop: Drop = None,
    group: Group = None,
    identifier: Identifier = None,
    method: Annotated[
        str, typer.Option(help="Method to fit; see psilearn compare; the kernel is chosen.")
    ] = "truncated",
    budget: Annotated[float, typer.Option(min=1, help="Seconds for everything.")] = 60.0,
    seed: Seed = 0,
    memory: Memory = None,
) -> None:
    """Tune and fit one method on a whole table and save it in a file that cannot run code."""
    from ..compare import METHODS
    from ..compare.single import fit_table
    from ..compare.summary import proof
    from ..compare.tuning import in_words
    from ..large import fit_large, is_large
    from ..persist import save
    from ..terminal import console, progress_bar, show_understanding

    ours = [m for m in METHODS if m.is_ours]
    check_methods([method], [m.key for m in ours])
    # Without a kernel in its name, a method is fitted with the kernel that does better on held-out rows.
    variants = [m for m in ours if method in (m.key, m.family)]
    check_folder(out)
    screen = console()
    if is_large(data, memory):
        columns = {"target": target, "drop": drop or [], "group": group, "identifier": identifier}
        with progress_bar() as progress:
            found = fit_large(data, columns, variants, memory or "", budget, seed, heed(progress))
        show_understanding(screen, found.understood)
        screen.print(f"Fitted on {found.rows - found.left_out} rows in blocks; {found.left_out} have no known label.")
        model = found.model
    else:
        understood = understood_table(data, target, drop, group, identifier)
        show_understanding(screen, understood)
        with progress_bar() as progress:
            progress(variants[0].label, 0.1)
            model = fit_table(understood, variants, budget, seed)
    with sentences():
        save(model, out)
    label = next(m.label for m in ours if m.key == model.method)
    screen.print(f"{label}: training optimum: {proof(model.classifier)}; {in_words(model.about)}.")
    if model.is_no_better_than_chance:
        screen.print("It is no better than always answering the commonest class: do not use it.")
    screen.print(f"Model: {shown(out, 200)}")


def predict(
    model: Annotated[Path, typer.Argument(help="A file made by psilearn fit.")],
    data: Annotated[Path, typer.Argument(help=f"{TABLE}; with the columns of the training.")],
    out: Annotated[Path | None, typer.Option(help="Write here instead of to the standard output, as CSV.")] = None,
    identifier: Annotated[
        list[str] | None,
        typer.Option("--id", help="Column to write beside the answers (default: identifiers seen in training)."),
    ] = None,
    chunk: Annotated[int, typer.Option(min=1, help="Rows held in memory at a time.")] = 50_000,
) -> None:
    """Predict the class of every row, however long the file, and say what training has not seen."""
    from ..files import writing
    from ..persist import ModelFileError, load
    from ..tablemodel import TableModel

    check_folder(out)
    try:
        loaded = load(model)
    except ModelFileError as error:
        raise TableError(str(error)) from None
    if not isinstance(loaded, TableModel):
        raise TableError(f"'{shown(model, 200)}' holds a bare estimator; predict needs a model made by psilearn fit.")
    counts = [0, 0]
    answers = _answers(loaded, read_chunks(data, chunk), identifier or [], counts)
    if out is None:
        stream(answers, sys.stdout)
    else:
        with writing(out) as file:
            stream(answers, file)
        typer.echo(f"Answers: {shown(out, 200)}")
    rows, unusual = counts
    if unusual:
        typer.echo(f"{unusual} of {rows} rows hold what training has not seen: see the column 'unusual'.", err=True)


def _answers(
    model: TableModel, parts: Iterator[pd.DataFrame], identifiers: list[str], counts: list[int]
) -> Iterator[pd.DataFrame]:
    """Yield the answers piece by piece, counting rows and unusual ones."""
    for part in parts:
        if part.empty:
            break
        for name in identifiers:
            find_column([str(c) for c in part.columns], name)
        answer = model.predict(part, counts[0] + 1, identifiers)
        counts[0] += len(part)
        counts[1] += int((answer["unusual"] != "").sum())
        yield answer
    if not counts[0]:
        raise TableError("The table has no rows to predict.")
