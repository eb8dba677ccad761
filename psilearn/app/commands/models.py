"""``psilearn fit`` and ``psilearn predict``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from ..tables import TableError
from ..words import shown
from .common import Drop, Seed, Target, check_folder, check_methods, sentences, stream, understood_table


def fit(
    data: Annotated[Path, typer.Argument(help="CSV, TSV, Parquet or ARFF file.")],
    out: Annotated[Path, typer.Option(help="Write the model here.")],
    target: Target = None,
    drop: Drop = None,
    method: Annotated[str, typer.Option(help="Method to fit; see psilearn compare.")] = "truncated",
    budget: Annotated[float, typer.Option(min=1, help="Seconds for everything.")] = 60.0,
    seed: Seed = 0,
) -> None:
    """Tune and fit one method on a whole table and save it in a file that cannot run code."""
    from ..compare import METHODS
    from ..compare.single import fit_table
    from ..compare.summary import certified
    from ..persist import save
    from ..terminal import console, progress_bar, show_understanding

    ours = {m.key: m for m in METHODS if m.is_ours}
    check_methods([method], list(ours))
    check_folder(out)
    understood = understood_table(data, target, drop)
    screen = console()
    show_understanding(screen, understood)
    with progress_bar() as progress:
        progress(ours[method].label, 0.1)
        model = fit_table(understood, ours[method], budget, seed)
    with sentences():
        save(model, out)
    facts = ", ".join(f"{name} {value}" for name, value in model.about.items())
    screen.print(f"{ours[method].label}: {certified(model.classifier)}; {facts}.")
    screen.print(f"Model: {shown(out, 200)}")


def predict(
    model: Annotated[Path, typer.Argument(help="A file made by psilearn fit.")],
    data: Annotated[Path, typer.Argument(help="CSV, TSV, Parquet or ARFF file with the columns of the training.")],
    out: Annotated[Path | None, typer.Option(help="Write here instead of to the standard output, as CSV.")] = None,
    chunk: Annotated[int, typer.Option(min=1, help="Rows held in memory at a time.")] = 50_000,
) -> None:
    """Predict class, margin and abstention for every row, however long the file."""
    from ..files import writing
    from ..persist import ModelFileError, load
    from ..tablemodel import TableModel
    from ..tables import read_chunks

    check_folder(out)
    try:
        loaded = load(model)
    except ModelFileError as error:
        raise TableError(str(error)) from None
    if not isinstance(loaded, TableModel):
        raise TableError(f"'{shown(model, 200)}' holds a bare estimator; predict needs a model made by psilearn fit.")
    answers = (loaded.predict(part) for part in read_chunks(data, chunk))
    if out is None:
        stream(answers, sys.stdout)
    else:
        with writing(out) as file:
            stream(answers, file)
