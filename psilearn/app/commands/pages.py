"""``psilearn explore`` and ``psilearn reproduce``: the interactive page, and the papers' tables and figures."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ..tables import TableError
from .common import Drop, Target, check_folder, understood_table, write_whole


def explore(
    data: Annotated[
        Path | None, typer.Argument(help="Table to show in its first two components; default: two clouds.")
    ] = None,
    target: Target = None,
    drop: Drop = None,
    out: Annotated[Path, typer.Option(help="Write the page here.")] = Path("explore.html"),
    browser: Annotated[bool, typer.Option("--open", help="Open it in the browser.")] = False,
) -> None:
    """Write the page where one drags a mislabelled point and watches the boundaries respond."""
    from ..encoding import TableEncoder
    from ..explore import explorer_page
    from ..explore.page import as_plane

    check_folder(out)
    plane = None
    if data is not None:
        understood = understood_table(data, target, drop)
        encoder = TableEncoder(numbers=understood.numbers).fit(understood.frame)
        X = encoder.transform(understood.frame)
        plane = as_plane(X, understood.labels.to_numpy(dtype=str), encoder.get_feature_names_out())
        if plane is None:
            raise TableError("A plane needs at least two features; this table has one.")
    write_whole(out, explorer_page(plane))
    typer.echo(f"Page: {out}")
    if browser:
        typer.launch(str(out.resolve()))


def reproduce(
    names: Annotated[list[str] | None, typer.Argument(help="Experiments or papers; none lists them.")] = None,
    reps: Annotated[int | None, typer.Option(min=1, help="Replications (default: the paper's).")] = None,
    small: Annotated[bool, typer.Option("--small", help="A small version of each experiment.")] = False,
    everything: Annotated[bool, typer.Option("--all", help="Every experiment.")] = False,
    cluster: Annotated[str | None, typer.Option(help="Address of a dask scheduler.")] = None,
    store: Annotated[Path | None, typer.Option(help="SQLite file of results.")] = None,
    out: Annotated[Path | None, typer.Option(help="Folder of the pages.")] = None,
) -> None:
    """Regenerate the papers' tables and figures, beside the published numbers."""
    from ..reproduce import main as run

    places: dict[str, Any] = {key: path for key, path in (("store", store), ("out", out)) if path is not None}
    raise typer.Exit(run(names or [], reps, small, everything, cluster, **places))
