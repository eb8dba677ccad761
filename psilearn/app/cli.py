"""The command line: ``psilearn compare`` and the others; exit status 0, 1 (did not do it) or 2 (bad usage)."""

from __future__ import annotations

import csv
import shlex
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer

from .. import __version__
from .tables import TableError, Understanding, read_table, understand
from .words import shown

if TYPE_CHECKING:
    import pandas as pd

app = typer.Typer(
    help="Robust, sparse, abstaining classifiers that prove how good their fit is.",
    add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False,
)  # fmt: skip

#: The base class of all usage errors; typer exports only its heirs.
USAGE_ERROR: Any = typer.BadParameter.__bases__[0]

#: How some versions of typer report Ctrl-C.
CTRL_C = 130
INTERRUPTED = "Interrupted; nothing was written."
#: Signals that asked this run to stop.
STOPPED: list[int] = []

DataFile = Annotated[Path | None, typer.Argument(help="CSV, TSV, Parquet or ARFF file; without one, embedded data.")]
Target = Annotated[str | None, typer.Option(help="Column of the labels.")]
Drop = Annotated[list[str] | None, typer.Option(help="Column to leave out; may be given several times.")]
Seed = Annotated[int, typer.Option(min=0, help="Seed of every random choice.")]


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"psilearn {__version__}")
        raise typer.Exit


Version = Annotated[
    bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and stop.")
]


@app.callback(invoke_without_command=True)
def _commands(context: typer.Context, version: Version = False) -> None:
    """Robust, sparse, abstaining classifiers that prove how good their fit is."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command()
def compare(
    data: DataFile = None,
    target: Target = None,
    drop: Drop = None,
    budget: Annotated[float, typer.Option(min=1, help="Seconds for everything but compiling on first use.")] = 60.0,
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
) -> None:
    """Compare every method on a table whose labels you doubt; without a file, on breast cancer data."""
    from .compare import METHODS, Settings
    from .compare import compare as run
    from .terminal import console, progress_bar, show_comparison, show_rules, show_understanding

    _check_methods(method or [], [m.key for m in METHODS])
    if folds == 1:
        raise typer.BadParameter("a cross-validation needs at least 2 folds.", param_hint="--folds")
    if reject is not None and not 0 < reject < 0.5:
        raise typer.BadParameter("the price must lie between 0 and 0.5.", param_hint="--reject")
    _check_folder(out)
    understood = _understood(data, target, drop)
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
        comparison = run(understood, settings, _heed(progress))
    show_comparison(screen, comparison)
    if rules:
        show_rules(screen, comparison)
    if not comparison.outcomes:
        raise TableError("No method could be fitted; the reasons are above.")
    if out is not None:
        from .report import report_page

        with progress_bar() as progress:
            progress("drawing the report", 0.5)
            html = report_page(comparison, _source(data), _command(), 0.25 * budget)
        _write(out, html)
        screen.print(f"Report: {shown(out, 200)}")


@app.command()
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
    from .audit import find_label_issues
    from .encoding import TableEncoder
    from .terminal import console, progress_bar, show_issues, show_understanding

    _check_folder(out)
    understood = _understood(data, target, drop)
    screen = console()
    show_understanding(screen, understood)
    X = TableEncoder(numbers=understood.numbers).fit_transform(understood.frame)
    with progress_bar() as progress:
        labels = understood.labels.to_numpy(dtype=str)
        issues = find_label_issues(
            X, labels, repeats=repeats, random_state=seed, exact=exact or None, progress=_heed(progress)
        )
    issues.insert(0, "row", understood.rows[issues["index"]])
    show_issues(screen, issues, top)
    if out is not None:
        _write(out, issues.drop(columns="index").to_csv(index=False))
        screen.print(f"Ranking of all rows: {shown(out, 200)}")


@app.command()
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
    from .compare import METHODS
    from .compare.single import fit_table
    from .compare.summary import certified
    from .persist import save
    from .terminal import console, progress_bar, show_understanding

    ours = {m.key: m for m in METHODS if m.is_ours}
    _check_methods([method], list(ours))
    _check_folder(out)
    understood = _understood(data, target, drop)
    screen = console()
    show_understanding(screen, understood)
    with progress_bar() as progress:
        progress(ours[method].label, 0.1)
        model = fit_table(understood, ours[method], budget, seed)
    with _sentences():
        save(model, out)
    facts = ", ".join(f"{name} {value}" for name, value in model.about.items())
    screen.print(f"{ours[method].label}: {certified(model.classifier)}; {facts}.")
    screen.print(f"Model: {shown(out, 200)}")


@app.command()
def predict(
    model: Annotated[Path, typer.Argument(help="A file made by psilearn fit.")],
    data: Annotated[Path, typer.Argument(help="CSV, TSV, Parquet or ARFF file with the columns of the training.")],
    out: Annotated[Path | None, typer.Option(help="Write here instead of to the standard output, as CSV.")] = None,
    chunk: Annotated[int, typer.Option(min=1, help="Rows held in memory at a time.")] = 50_000,
) -> None:
    """Predict class, margin and abstention for every row, however long the file."""
    from .files import writing
    from .persist import ModelFileError, load
    from .tablemodel import TableModel
    from .tables import read_chunks

    _check_folder(out)
    try:
        loaded = load(model)
    except ModelFileError as error:
        raise TableError(str(error)) from None
    if not isinstance(loaded, TableModel):
        raise TableError(f"'{shown(model, 200)}' holds a bare estimator; predict needs a model made by psilearn fit.")
    answers = (loaded.predict(part) for part in read_chunks(data, chunk))
    if out is None:
        _stream(answers, sys.stdout)
    else:
        with writing(out) as file:
            _stream(answers, file)


@app.command()
def prove(
    data: Annotated[Path, typer.Argument(help="CSV file with a header; all columns but the labels must be numbers.")],
    target: Annotated[str, typer.Option(help="Column of the labels.")],
    out: Annotated[Path, typer.Option(help="Write the proof here.")],
    method: Annotated[str, typer.Option(help="svm-l2, svm-l1, truncated, psi or reject.")] = "psi",
    price: Annotated[float, typer.Option("--C", min=0, help="Price of a unit of loss, greater than 0.")] = 1.0,
    weight: Annotated[str | None, typer.Option(help="Column of the sample weights.")] = None,
    budget: Annotated[float, typer.Option(min=1, help="Seconds for the fit, and again for its proof.")] = 60.0,
) -> None:
    """Fit one method on the columns as they are and write a proof that anyone can check."""
    from sklearn.exceptions import ConvergenceWarning

    from ..proofs.check import Rejected, read_csv
    from ..proofs.write import PROVABLE
    from ..proofs.write import prove as write_proof

    _check_methods([method], list(PROVABLE))
    if price <= 0:
        raise typer.BadParameter("the price must be greater than 0.", param_hint="--C")
    _check_folder(out)
    try:
        rows, labels, weights, features = read_csv(data, target, weight)
        columns = {"features": features, "target": target, "weight": weight}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the proof says what was reached
            model = write_proof(PROVABLE[method](price, budget), rows, labels, out, weights, columns=columns)
    except (Rejected, ValueError, OSError, csv.Error) as error:
        raise TableError(f"No proof was written: {str(error).rstrip('.')}.") from None
    typer.echo(f"Objective {model.objective_:.6g}. Proof: {shown(out, 200)}")


@app.command()
def check(
    proof: Annotated[Path, typer.Argument(help="A file made by psilearn prove.")],
    data: Annotated[Path, typer.Argument(help="The CSV file it is about.")],
) -> None:
    """Check a proof in exact arithmetic; exit status 1 if it does not hold."""
    from ..proofs.check import check_file

    try:
        ok, objective, bound, message = check_file(proof, data)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise TableError(f"Could not read: {error}.") from None
    if not ok:
        raise TableError(f"The proof does not hold: {message.removeprefix('rejected: ')}.")
    typer.echo(f"{message}; objective {objective!r}, bound {bound!r}")


@app.command()
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
    from .encoding import TableEncoder
    from .explore import explorer_page
    from .explore.page import as_plane

    _check_folder(out)
    plane = None
    if data is not None:
        understood = _understood(data, target, drop)
        encoder = TableEncoder(numbers=understood.numbers).fit(understood.frame)
        X = encoder.transform(understood.frame)
        plane = as_plane(X, understood.labels.to_numpy(dtype=str), encoder.get_feature_names_out())
        if plane is None:
            raise TableError("A plane needs at least two features; this table has one.")
    _write(out, explorer_page(plane))
    typer.echo(f"Page: {out}")
    if browser:
        typer.launch(str(out.resolve()))


@app.command()
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
    from .reproduce import main as run

    places: dict[str, Any] = {key: path for key, path in (("store", store), ("out", out)) if path is not None}
    raise typer.Exit(run(names or [], reps, small, everything, cluster, **places))


def _understood(data: Path | None, target: str | None, drop: list[str] | None) -> Understanding:
    from .compare.demo import breast_cancer

    return breast_cancer() if data is None else understand(read_table(data), target, drop or [])


def _check_methods(given: list[str], known: list[str]) -> None:
    for key in given:
        if key not in known:
            raise typer.BadParameter(f"unknown method '{key}'; known: {', '.join(known)}.", param_hint="--method")


def _check_folder(out: Path | None) -> None:
    """Refuse a place that cannot be written to before the work is done, not after."""
    if out is not None and not out.parent.is_dir():
        raise TableError(f"There is no folder '{shown(out.parent, 200)}' to write to.")
    if out is not None and out.is_dir():
        raise TableError(f"'{shown(out, 200)}' is a folder; name a file to write.")


def _source(data: Path | None) -> str:
    return "the breast cancer data" if data is None else data.name


def _command() -> str:
    return shlex.join(["psilearn", *sys.argv[1:]])


def _write(path: Path, content: str) -> None:
    from .files import writing

    if STOPPED:
        raise KeyboardInterrupt
    with _sentences(), writing(path) as file:
        file.write(content)


def _stream(answers: Iterator[pd.DataFrame], file: IO[str]) -> None:
    for at, answer in enumerate(answers):
        answer.to_csv(file, index=False, header=at == 0)


@contextmanager
def _sentences() -> Iterator[None]:
    """Turn what the operating system or the model format refuses into a sentence."""
    try:
        yield
    except BrokenPipeError:
        raise
    except (OSError, TypeError) as error:
        raise TableError(f"Could not write: {error}.") from None


def _stop(signum: int, frame: Any) -> None:
    STOPPED.append(signum)
    raise KeyboardInterrupt


def _heed(progress: Callable[[str, float], None]) -> Callable[[str, float], None]:
    """Return a progress that ends the work if a solver took Ctrl-C for the end of its own fit only."""

    def heeding(text: str, done: float) -> None:
        if STOPPED:
            raise KeyboardInterrupt
        progress(text, done)

    return heeding


def main() -> None:
    """Run the command line; errors are one sentence on standard error."""
    STOPPED.clear()
    signal.signal(signal.SIGTERM, _stop)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # else ignored, as in the background
        signal.signal(signal.SIGINT, _stop)
    try:
        status = app(standalone_mode=False)
    except (typer.Abort, KeyboardInterrupt):
        _fail(INTERRUPTED, 1)
    except typer.Exit as stop:
        status = stop.exit_code
    except USAGE_ERROR as error:
        _fail(f"{error.format_message().rstrip('.')}. See psilearn --help.", 2)
    except TableError as error:
        # The CSV reader reports an interruption as a file that cannot be read.
        _fail(INTERRUPTED if STOPPED else str(error), 1)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(1)
    if status == CTRL_C:
        _fail(INTERRUPTED, 1)
    sys.exit(status if isinstance(status, int) else 0)


def _fail(sentence: str, status: int) -> None:
    print(f"psilearn: {sentence}", file=sys.stderr)
    sys.exit(status)
