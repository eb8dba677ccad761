"""The command line: ``psilearn compare`` and the others; exit status 0, 1 (did not do it) or 2 (bad usage)."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from .tables import TableError

app = typer.Typer(
    help="Robust, sparse, abstaining classifiers that prove how good their fit is.",
    add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False,
)  # fmt: skip

#: The base class of all usage errors; typer exports only its heirs.
USAGE_ERROR: Any = typer.BadParameter.__bases__[0]

DataFile = Annotated[Path | None, typer.Argument(help="CSV, TSV, Parquet or ARFF file; without one, embedded data.")]
Target = Annotated[str | None, typer.Option(help="Column of the labels.")]
Drop = Annotated[list[str] | None, typer.Option(help="Column to leave out; may be given several times.")]
Seed = Annotated[int, typer.Option(min=0, help="Seed of every random choice.")]


@app.callback(invoke_without_command=True)
def _commands(context: typer.Context) -> None:
    """Robust, sparse, abstaining classifiers that prove how good their fit is."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command()
def compare(
    data: DataFile = None,
    target: Target = None,
    drop: Drop = None,
    budget: Annotated[float, typer.Option(min=1, help="Seconds for everything.")] = 60.0,
    seed: Seed = 0,
    flip: Annotated[
        float | None,
        typer.Option(min=0, max=0.49, help="Share of training labels to flip (default: 0.1 without a file, else 0)."),
    ] = None,
    folds: Annotated[int, typer.Option(min=0, help="Test folds of a cross-validation; 0 is one split.")] = 0,
    method: Annotated[list[str] | None, typer.Option(help="Run this method only; may be given several times.")] = None,
) -> None:
    """Compare every method on a table whose labels you doubt; without a file, on breast cancer data."""
    from .compare import METHODS, Settings
    from .compare import compare as run
    from .compare.demo import breast_cancer
    from .tables import read_table, understand
    from .terminal import console, progress_bar, show_comparison, show_understanding

    keys = [m.key for m in METHODS]
    for key in method or []:
        if key not in keys:
            raise typer.BadParameter(
                f"unknown method '{key}'; the methods are {', '.join(keys)}.", param_hint="--method"
            )
    if folds == 1:
        raise typer.BadParameter("a cross-validation needs at least 2 folds.", param_hint="--folds")
    understood = breast_cancer() if data is None else understand(read_table(data), target, drop or [])
    out = console()
    show_understanding(out, understood)
    settings = Settings(
        budget=budget, seed=seed, outer_folds=folds, methods=tuple(method or ()),
        flip=(0.1 if data is None else 0.0) if flip is None else flip,
    )  # fmt: skip
    with progress_bar() as progress:
        comparison = run(understood, settings, progress)
    show_comparison(out, comparison)
    if not comparison.outcomes:
        raise TableError("No method could be fitted; the reasons are above.")


def main() -> None:
    """Run the command line; errors are one sentence on standard error."""
    try:
        status = app(standalone_mode=False)
    except (typer.Abort, KeyboardInterrupt):
        _fail("Interrupted; nothing was written.", 1)
    except typer.Exit as stop:
        sys.exit(stop.exit_code)
    except USAGE_ERROR as error:
        _fail(f"{error.format_message().rstrip('.')}. See psilearn --help.", 2)
    except TableError as error:
        _fail(str(error), 1)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(1)
    sys.exit(status if isinstance(status, int) else 0)


def _fail(sentence: str, status: int) -> None:
    print(f"psilearn: {sentence}", file=sys.stderr)
    sys.exit(status)
