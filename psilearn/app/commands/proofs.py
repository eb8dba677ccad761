"""``psilearn prove`` and ``psilearn check``: proof files, written and checked."""

from __future__ import annotations

import csv
import warnings
from pathlib import Path
from typing import Annotated

import typer

from ..tables import TableError
from ..words import shown
from .common import check_folder, check_methods


def prove(
    data: Annotated[Path, typer.Argument(help="CSV file with a header; all columns but the labels must be numbers.")],
    target: Annotated[str, typer.Option(help="Column of the labels.")],
    out: Annotated[Path, typer.Option(help="Write the proof here.")],
    method: Annotated[str, typer.Option(help="svm-l2, svm-l1, truncated, psi, reject, lp-boost or l0-boost.")] = "psi",
    price: Annotated[
        float | None,
        typer.Option("--C", min=0, help="Price of a unit of loss, greater than 0; not for boosters.", show_default="1"),
    ] = None,
    weight: Annotated[str | None, typer.Option(help="Column of the sample weights.")] = None,
    budget: Annotated[float, typer.Option(min=1, help="Seconds for the fit, and again for its proof.")] = 60.0,
) -> None:
    """Fit one method on the columns as they are and write a proof that anyone can check."""
    from sklearn.exceptions import ConvergenceWarning

    from ...proofs.check import Rejected, read_csv
    from ...proofs.write import prove as write_proof
    from ..provable import PROVABLE, PROVABLE_RULES

    check_methods([method], [*PROVABLE, *PROVABLE_RULES])
    if price is not None and (price <= 0 or method in PROVABLE_RULES):
        reason = "the price must be greater than 0." if price <= 0 else f"{method} has no price of a unit of loss."
        raise typer.BadParameter(reason, param_hint="--C")
    check_folder(out)
    try:
        rows, labels, weights, features = read_csv(data, target, weight)
        columns = {"features": features, "target": target, "weight": weight}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the proof says what was reached
            rules = PROVABLE_RULES.get(method)
            model = rules(budget) if rules else PROVABLE[method](1.0 if price is None else price, budget)
            write_proof(model, rows, labels, out, weights, columns=columns)
    except (Rejected, ValueError, OSError, csv.Error) as error:
        raise TableError(f"No proof was written: {str(error).rstrip('.')}.") from None
    typer.echo(f"Objective {model.objective_:.6g}. Proof: {shown(out, 200)}")


def check(
    proof: Annotated[Path, typer.Argument(help="A file made by psilearn prove.")],
    data: Annotated[Path, typer.Argument(help="The CSV file it is about.")],
    fast: Annotated[
        bool,
        typer.Option("--fast", help="Use numpy with bounds on its rounding, exact only where needed."),
    ] = False,
) -> None:
    """Check a proof in exact arithmetic; exit status 1 if it does not hold."""
    from ...proofs.files import checker_of

    try:
        ok, objective, bound, message = checker_of(proof, fast).check_file(proof, data)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise TableError(f"Could not read: {error}.") from None
    if not ok:
        raise TableError(f"The proof does not hold: {message.removeprefix('rejected: ')}.")
    typer.echo(f"{message}; objective {objective!r}, bound {bound!r}")
