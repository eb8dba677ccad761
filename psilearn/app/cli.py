"""The command line: ``psilearn compare`` and the others; exit status 0, 1 (did not do it) or 2 (bad usage)."""

from __future__ import annotations

import os
import shlex
import signal
import sys
from contextlib import AbstractContextManager, nullcontext
from typing import Annotated, Any

import typer
from threadpoolctl import threadpool_limits

from .. import __version__
from .commands.audit import audit
from .commands.common import STOPPED
from .commands.compare import compare
from .commands.export import export
from .commands.models import fit, predict
from .commands.pages import explore, reproduce
from .commands.proofs import check, prove
from .commands.warmup import warmup
from .tables import TableError

app = typer.Typer(
    help="Robust, sparse, abstaining classifiers that prove how good their fit is.",
    add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False,
)  # fmt: skip
for command in (compare, audit, fit, predict, export, prove, check, explore, warmup, reproduce):
    app.command()(command)

#: The base class of all usage errors; typer exports only its heirs.
USAGE_ERROR: Any = typer.BadParameter.__bases__[0]

#: How some versions of typer report Ctrl-C.
CTRL_C = 130
INTERRUPTED = "Interrupted; nothing was written."


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


def _stop(signum: int, frame: Any) -> None:
    STOPPED.append(signum)
    raise KeyboardInterrupt


def main() -> None:
    """Run the command line; errors are one sentence on standard error."""
    STOPPED.clear()
    signal.signal(signal.SIGTERM, _stop)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # else ignored, as in the background
        signal.signal(signal.SIGINT, _stop)
    try:
        with _one_thread():
            status = app(standalone_mode=False)
    except (typer.Abort, KeyboardInterrupt):
        _fail(INTERRUPTED, 1)
    except typer.Exit as stop:
        status = stop.exit_code
    except USAGE_ERROR as error:
        _fail(_on_a_file() or f"{error.format_message().rstrip('.')}. See psilearn --help.", 2)
    except TableError as error:
        # The CSV reader reports an interruption as a file that cannot be read.
        _fail(INTERRUPTED if STOPPED else str(error), 1)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(1)
    if status == CTRL_C:
        _fail(INTERRUPTED, 1)
    sys.exit(status if isinstance(status, int) else 0)


def _on_a_file() -> str:
    """Return what to do with a file that stands where a command should."""
    name = sys.argv[1] if len(sys.argv) > 1 else ""
    if not os.path.isfile(name):
        return ""
    file = shlex.quote(name)
    return f"Say what to do with the file: psilearn audit {file} finds wrong labels, psilearn compare {file} a model."


def _one_thread() -> AbstractContextManager[Any]:
    """Keep linear algebra on one thread, unless the environment says otherwise.

    Fits make many small calls. On a machine whose cores are taken, or in a container that may use few of the cores it
    sees, threads wait for each other: a Cholesky factorisation of 1,200 rows took 0.6 s on two threads beside two busy
    processes, 0.013 s on one.
    """
    if any(name.endswith("_NUM_THREADS") for name in os.environ):
        return nullcontext()
    return threadpool_limits(1)


def _fail(sentence: str, status: int) -> None:
    print(f"psilearn: {sentence}", file=sys.stderr)
    sys.exit(status)
