"""The command behind ``psilearn reproduce``."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from .catalogue import catalogue, select
from .compare import compare, verdict
from .experiment import Experiment
from .index import write_index
from .report import page_name, summary_path, write_page
from .runner import ClusterError, run
from .store import Store
from .summary import summarise

STORE = "reproduction.sqlite"
FOLDER = "reproduction"


def main(
    names: Sequence[str] = (),
    reps: int | None = None,
    small: bool = False,
    all: bool = False,
    cluster: str | None = None,
    store: str | Path = STORE,
    out: str | Path = FOLDER,
    *,
    n_jobs: int | None = None,
    known: dict[str, Experiment] | None = None,
) -> int:
    """Regenerate tables and figures, and set them beside the published ones.

    Parameters
    ----------
    names : sequence of str
        Experiments (``psi-mip/table2``) or papers (``psi-mip``). Without names and without ``all``: list them.
    reps : int or None
        Replications; None means the paper's, or few with ``small``.
    small : bool
        The small version of each experiment.
    all : bool
        Every experiment.
    cluster : str or None
        Address of a dask scheduler; None means the cores of this machine.
    store : path
        SQLite file of results; what it holds is not computed again.
    out : path
        Folder of the pages and of ``results/*.json``.
    n_jobs : int or None
        Local processes; None means one per core.
    known : dict or None
        The experiments to choose from; None means `catalogue`.

    Returns
    -------
    int
        Exit status: 0 all done, 1 interrupted or some task failed, 2 bad usage.
    """
    console = Console()
    known = catalogue() if known is None else known
    try:
        chosen = list(known.values()) if all else select(names, known)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    if reps is not None and reps < 1:
        print(f"the number of replications must be at least 1, got {reps}.", file=sys.stderr)
        return 2
    if not chosen:
        _list(known, console)
        return 0
    try:
        return _reproduce(chosen, known, reps, small, cluster, Store(store), Path(out), n_jobs, console)
    except KeyboardInterrupt:
        print(f"interrupted; what is finished is in {store}, run the command again to go on.", file=sys.stderr)
    except (ClusterError, OSError, sqlite3.Error) as error:
        print(f"cannot reproduce: {error}", file=sys.stderr)
    return 1


def _reproduce(
    chosen: Sequence[Experiment],
    known: dict[str, Experiment],
    reps: int | None,
    small: bool,
    cluster: str | None,
    store: Store,
    folder: Path,
    n_jobs: int | None,
    console: Console,
) -> int:
    tasks = {experiment.name: experiment.tasks(reps, small) for experiment in chosen}
    console.print(f"{len(chosen)} experiments; results go to {store.path} as they come, pages to {folder}.")
    run((task for some in tasks.values() for task in some), store, n_jobs=n_jobs, cluster=cluster, console=console)
    failed: dict[str, int] = {}
    for experiment in chosen:
        summary = summarise(experiment, tasks[experiment.name], store)
        summary.save(summary_path(folder, experiment.name))
        write_page(experiment, summary, folder)
        failed[experiment.origin.name] = summary.n_failed
        headline = verdict(experiment, summary, compare(experiment, summary))[0]
        console.print(f"[bold]{experiment.name}[/bold]: {headline} ({folder / page_name(experiment.name)}.md)")
        for failure in summary.failures:
            console.print(f"  failed: {failure}", style="red", markup=False)
    write_index(known.values(), folder)
    if n_failed := sum(failed.values()):
        print(f"{n_failed} tasks failed; their errors are on the pages and in {store.path}.", file=sys.stderr)
    return 1 if n_failed else 0


def _list(known: dict[str, Experiment], console: Console) -> None:
    """Print every experiment under its paper."""
    for paper in dict.fromkeys(experiment.paper for experiment in known.values()):
        table = Table.grid(padding=(0, 2))
        for experiment in known.values():
            if experiment.paper == paper:
                table.add_row(f"  {experiment.name}", experiment.title)
        console.print(f"[bold]{paper}[/bold]", table, sep="\n", end="\n\n")
