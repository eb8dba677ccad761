"""``psilearn export``: a saved model as ONNX, SQL or PMML."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from ..tables import TableError
from ..words import shown
from .common import check_folder, sentences


class Format(StrEnum):
    """What a model can be written as."""

    onnx = "onnx"
    sql = "sql"
    pmml = "pmml"


def export(
    model: Annotated[Path, typer.Argument(help="A file made by psilearn fit.")],
    to: Annotated[Format, typer.Option(help="ONNX (any model), SQL or PMML (linear models and rules).")],
    out: Annotated[Path | None, typer.Option(help="Write here instead of beside the model.")] = None,
) -> None:
    """Write a model in a format that other systems read, with the same answers."""
    from ...core.extras import MissingExtraError
    from ..export import ExportError
    from ..export import export as write
    from ..persist import ModelFileError, load

    path = out or model.with_suffix(f".{to.value}")
    check_folder(path)
    try:
        with sentences():
            write(load(model), path, to.value)
    except (ModelFileError, ExportError, MissingExtraError) as error:
        raise TableError(str(error)) from None
    typer.echo(f"{to.value.upper()}: {shown(path, 200)}")
