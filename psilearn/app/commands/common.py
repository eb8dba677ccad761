"""What the commands share: options, checks of what was asked for, writing, and stopping."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated

import typer

from ..tables import TableError, Understanding, read_table, understand
from ..words import shown

if TYPE_CHECKING:
    import pandas as pd

#: Signals that asked this run to stop.
STOPPED: list[int] = []

#: What a table may be, for the help.
TABLE = "CSV, TSV, Excel (.xlsx), Parquet or ARFF file, or a folder of Parquet files; - is standard input"

DataFile = Annotated[Path | None, typer.Argument(help=f"{TABLE}; without one, embedded data.")]
Target = Annotated[str | None, typer.Option(help="Column of the labels.")]
Drop = Annotated[list[str] | None, typer.Option(help="Column to leave out; may be given several times.")]
Group = Annotated[
    str | None, typer.Option(help="Column that tells which rows belong together (one patient, say): never divided.")
]
Identifier = Annotated[str | None, typer.Option("--id", help="Column to name rows by; it is not learnt from.")]
Memory = Annotated[
    str | None,
    typer.Option(help="Memory to use, such as 2GB: a table that may need more is read in parts, never all at once."),
]
Seed = Annotated[int, typer.Option(min=0, help="Seed of every random choice.")]


def understood_table(
    data: Path | None,
    target: str | None,
    drop: list[str] | None,
    group: str | None = None,
    identifier: str | None = None,
    memory: str | None = None,
    seed: int = 0,
) -> Understanding:
    """Read a table, or take the embedded one, and decide what its columns are.

    Of a table that ``memory`` does not hold, random rows are taken.
    """
    from ..compare.demo import breast_cancer
    from ..large import is_large, part_of

    if data is None:
        return breast_cancer()
    if memory is not None and is_large(data, memory):
        frame, _ = part_of(data, memory, seed)
        return understand(frame, target, drop or [], group, identifier)
    return understand(read_table(data), target, drop or [], group, identifier)


def check_methods(given: list[str], known: list[str]) -> None:
    """Refuse a method nobody knows."""
    for key in given:
        if key not in known:
            raise typer.BadParameter(f"unknown method '{key}'; known: {', '.join(known)}.", param_hint="--method")


def check_folder(out: Path | None) -> None:
    """Refuse a place that cannot be written to before the work is done, not after."""
    if out is not None and not out.parent.is_dir():
        raise TableError(f"There is no folder '{shown(out.parent, 200)}' to write to.")
    if out is not None and out.is_dir():
        raise TableError(f"'{shown(out, 200)}' is a folder; name a file to write.")


def source_name(data: Path | None) -> str:
    """Return what a report calls the table."""
    return "the breast cancer data" if data is None else data.name


def command_line() -> str:
    """Return the command as it was typed."""
    return shlex.join(["psilearn", *sys.argv[1:]])


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file that appears whole or not at all."""
    from ..files import writing

    if STOPPED:
        raise KeyboardInterrupt
    with sentences(), writing(path, "wb") as file:
        file.write(content.encode() if isinstance(content, str) else content)


def stream(answers: Iterator[pd.DataFrame], file: IO[str]) -> None:
    """Write tables one after the other as one CSV."""
    for at, answer in enumerate(answers):
        answer.to_csv(file, index=False, header=at == 0)


@contextmanager
def sentences() -> Iterator[None]:
    """Turn what the operating system or the model format refuses into a sentence."""
    try:
        yield
    except BrokenPipeError:
        raise
    except (OSError, TypeError) as error:
        raise TableError(f"Could not write: {error}.") from None


def heed(progress: Callable[[str, float], None]) -> Callable[[str, float], None]:
    """Return a progress that ends the work if a solver took Ctrl-C for the end of its own fit only."""

    def heeding(text: str, done: float) -> None:
        if STOPPED:
            raise KeyboardInterrupt
        progress(text, done)

    return heeding
