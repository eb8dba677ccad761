"""``psilearn audit``: how many labels are wrong, which ones, and the table corrected by what a person decided."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

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
    from rich.console import Console

    from ..audit.table import TableAudit
    from ..review import Settled

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
    repeats: Annotated[
        int | None, typer.Option(min=1, help="How often the rows are divided anew (default: 3, beyond 1,000 rows 1).")
    ] = None,
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
    options = ["--target", understood.target, *(["--id", identifier] if identifier else [])]
    for name, values in (("--group", [group] if group else []), ("--drop", drop or []), ("--annotator", annotators)):
        options += [word for value in values for word in (name, value)]
    if apply is not None:
        _apply(screen, data, understood, apply, out, options)
        return
    show_understanding(screen, understood)
    before = _settled(screen, data, understood)
    known, corrected = (None, None) if before is None else before
    from ..audit.table import audit_table

    with progress_bar() as progress:
        found = audit_table(
            understood, identifiers=_columns(data, understood, "identifier"),
            annotators=_labels_of(data, understood, annotators), known=known, corrected=corrected,
            repeats=repeats, seed=seed, exact=exact, progress=heed(progress),
        )  # fmt: skip
    show_audit(screen, found, top)
    if out is not None:
        write_whole(out, found.ranking().to_csv(index=False))
        screen.print(f"Ranking of all rows: {shown(out, 200)}")
    if review is not None:
        from ..review import review_page

        table = Path("data.csv") if data is None else data
        write_whole(review, review_page(found, source_name(data), _applying(Path(table.name), options)))
        screen.print(f"Review page: {shown(review, 200)}. {_what_to_do(found)}")
        if len(found.suspects):
            screen.print(f"  {shown(_applying(table, options), 300)}", soft_wrap=True)


def _what_to_do(found: TableAudit) -> str:
    if found.suspects.empty:
        return "No row stands out, so there is nothing to decide; it shows what was found beside the labels."
    return "Open it in a browser, decide, export decisions.csv, then:"


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


def _applying(table: Path, options: list[str]) -> str:
    """Return the command that applies decisions to a table."""
    from ..review import corrected_name

    out = str(corrected_name(table))
    return shlex.join(["psilearn", "audit", str(table), *options, "--apply", "decisions.csv", "--out", out])


def _apply(
    screen: Console,
    data: Path | None,
    understood: Understanding,
    decisions: Path,
    out: Path | None,
    options: list[str],
) -> None:
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
    again = ["psilearn", "audit", str(out), *options, "--review", str(out.with_suffix(".html"))]
    screen.print("Next round; the log beside the table tells which rows need not be asked again:")
    screen.print(f"  {shown(shlex.join(again), 300)}", soft_wrap=True)


def _settled(screen: Console, data: Path | None, understood: Understanding) -> Settled | None:
    from ..review import log_beside, settled_before

    before = None if data is None or str(data) == "-" else settled_before(data, understood)
    if data is not None and before is not None:
        where, count = shown(log_beside(data).name, 100), int(before.known.sum())
        screen.print(f"  • {count} labels were confirmed in earlier rounds ({where}); they are not asked again.")
    return before


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
