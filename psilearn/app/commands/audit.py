"""``psilearn audit``: how many labels are wrong, which ones, and the table corrected by what a person decided."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from ..tables import TableError, Understanding, read_table
from ..words import listed, shown
from .common import (
    DataFile,
    Drop,
    Group,
    Identifier,
    Memory,
    Seed,
    Target,
    check_folder,
    heed,
    source_name,
    understood_table,
    write_whole,
)

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray
    from rich.console import Console

#: Endings of the names of corrected tables.
WRITTEN = (".csv", ".tsv", ".txt", ".xlsx")


def audit(
    data: DataFile = None,
    target: Target = None,
    drop: Drop = None,
    group: Group = None,
    identifier: Identifier = None,
    annotator: Annotated[
        list[str] | None, typer.Option(help="Column with another person's labels; may be given several times.")
    ] = None,
    review: Annotated[
        Path | None, typer.Option(help="Write a page here on which a person decides about every suspect.")
    ] = None,
    apply: Annotated[Path | None, typer.Option(help="Decisions exported by that page; needs --out.")] = None,
    out: Annotated[
        Path | None, typer.Option(help="Write the ranking of all rows here, as CSV; with --apply the corrected table.")
    ] = None,
    top: Annotated[int, typer.Option(min=1, help="Rows to show.")] = 20,
    repeats: Annotated[int, typer.Option(min=1, help="How often the rows are divided anew.")] = 1,
    exact: Annotated[
        float, typer.Option(min=0, help="Seconds for proving what it costs to believe a suspect, two classes only.")
    ] = 5.0,
    seed: Seed = 0,
    memory: Memory = None,
) -> None:
    """Say how many labels are wrong and which, write a page to review them, and apply what was decided."""
    from ..large import is_large
    from ..terminal import console, progress_bar, show_audit, show_understanding

    check_folder(out)
    check_folder(review)
    annotators = annotator or []
    if data is not None and is_large(data, memory):
        if annotators or review or apply:
            raise TableError("--annotator, --review and --apply need the whole table in memory; leave out --memory.")
        columns = {"target": target, "drop": drop or [], "group": group, "identifier": identifier}
        _audit_large(data, columns, memory or "", out, top, seed)
        return
    understood = understood_table(data, target, [*(drop or []), *annotators], group, identifier)
    screen = console()
    if apply is not None:
        _apply(screen, data, understood, apply, out)
        return
    show_understanding(screen, understood)
    known = _known(screen, data, understood)
    from ..audit.table import audit_table

    with progress_bar() as progress:
        found = audit_table(
            understood, identifiers=_columns(data, understood, "identifier"),
            annotators=_labels_of(data, understood, annotators), known=known, repeats=repeats, seed=seed, exact=exact,
            progress=heed(progress),
        )  # fmt: skip
    show_audit(screen, found, top)
    if out is not None:
        write_whole(out, found.ranking().to_csv(index=False))
        screen.print(f"Ranking of all rows: {shown(out, 200)}")
    if review is not None:
        from ..review import is_excel, review_page

        name = "data.csv" if data is None else data.name
        options = ["--target", understood.target, *(["--id", identifier] if identifier else [])]
        made = f"{Path(name).stem.removesuffix('.csv')}-corrected{'.xlsx' if is_excel(Path(name)) else '.csv'}"
        command = shlex.join(["psilearn", "audit", name, *options, "--apply", "decisions.csv", "--out", made])
        write_whole(review, review_page(found, source_name(data), command))
        screen.print(f"Review page: {shown(review, 200)}. Open it in a browser, decide, export decisions.csv, then:")
        screen.print(f"  {shown(command, 300)}")


def _audit_large(data: Path, columns: dict[str, Any], memory: str, out: Path | None, top: int, seed: int) -> None:
    """Name the rows whose labels a robust fit of all rows contradicts."""
    from ..compare import METHODS
    from ..large import fit_large, suspects_of
    from ..terminal import console, progress_bar, show_understanding

    robust = [method for method in METHODS if method.key == "truncated"]
    with progress_bar() as progress:
        found = fit_large(data, columns, robust, memory, 60.0, seed, heed(progress))
        progress("asking about every row", 0.8)
        suspects = suspects_of(data, found)
    screen = console()
    show_understanding(screen, found.understood)
    screen.print(
        f"{len(suspects)} of {found.rows - found.left_out} labels are contradicted by a fit that need not believe them"
        f" ({robust[0].label}); the clearest:"
    )
    screen.print(suspects.head(top).to_string(index=False), markup=False, highlight=False)
    if out is not None:
        write_whole(out, suspects.to_csv(index=False))
        screen.print(f"Suspects: {shown(out, 200)}")


def _apply(screen: Console, data: Path | None, understood: Understanding, decisions: Path, out: Path | None) -> None:
    from ..review import corrected, is_excel, log_beside, log_text, read_decisions

    if data is None or str(data) == "-":
        raise TableError("Decisions are applied to a file; name the table they are about.")
    if out is None:
        raise typer.BadParameter("name the corrected table with --out.", param_hint="--apply")
    if out.suffix.lower() not in WRITTEN:
        raise TableError(f"The corrected table can be written as {listed(WRITTEN)}, not as '{shown(out.name)}'.")
    if out.resolve() == data.resolve():
        raise TableError("--out is the table itself; write the corrected table elsewhere, so that nothing is lost.")
    decided = read_decisions(decisions, understood)
    log = log_text(decided, data)
    content = corrected(data, understood, decided, is_excel(out))
    write_whole(out, content)
    write_whole(log_beside(out), log)
    screen.print(f"{len(decided.frame)} decisions: {decided.counted()}.")
    screen.print(f"Corrected table: {shown(out, 200)}. Log of all decisions: {shown(log_beside(out), 200)}.")
    screen.print("Next round: audit the corrected table; the log beside it tells which rows need not be asked again.")


def _known(screen: Console, data: Path | None, understood: Understanding) -> NDArray[np.bool_] | None:
    from ..review import confirmed, log_beside

    known = None if data is None or str(data) == "-" else confirmed(data, understood)
    if data is not None and known is not None:
        where = shown(log_beside(data).name, 100)
        screen.print(
            f"  • {int(known.sum())} labels were confirmed in earlier rounds ({where}); they are not asked again."
        )
    return known


def _columns(data: Path | None, understood: Understanding, kind: str) -> dict[str, pd.Series]:
    """Return the columns of one kind as they stand in the file, for the rows that are used."""
    names = [column.name for column in understood.columns if column.kind == kind]
    if data is None or str(data) == "-" or not names:
        return {}
    frame: Any = read_table(data)
    return {name: frame[name].iloc[understood.rows - 1].reset_index(drop=True) for name in names}


def _labels_of(data: Path | None, understood: Understanding, names: list[str]) -> pd.DataFrame | None:
    """Return the columns of further annotators."""
    if not names:
        return None
    if data is None or str(data) == "-":
        raise TableError("--annotator needs a file.")
    frame: Any = read_table(data)
    return frame[names].iloc[understood.rows - 1].reset_index(drop=True)
