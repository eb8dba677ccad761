"""Writing a model in one of the formats."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..files import writing
from .formula import ExportError, Formula
from .onnx import to_onnx
from .pmml import to_pmml
from .sql import to_sql

FORMATS: dict[str, Callable[[Formula], str | bytes]] = {"onnx": to_onnx, "sql": to_sql, "pmml": to_pmml}


def export(model: Any, path: str | Path, to: str | None = None) -> None:
    """Write a fitted model in a format that other systems read, with the same answers.

    Parameters
    ----------
    model : estimator or TableModel
        A margin classifier, a rule learner, or a model made by ``psilearn fit``.
    path : str or Path
        The file; it appears whole or not at all.
    to : {"onnx", "sql", "pmml"}, optional
        The format; by default what the ending of the file says. ONNX takes every model (its file has the inputs
        ``X``, or one per column of the table); SQL and PMML take linear models and rules.

    Raises
    ------
    ExportError
        If the format cannot hold the model; the message says what to do.

    See Also
    --------
    psilearn.save : Keep a model for psilearn itself.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import psilearn
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "model.sql"
    >>> model = psilearn.SVMClassifier().fit([[0.0], [1.0], [2.0], [3.0]], ["no", "no", "yes", "yes"])
    >>> psilearn.export(model, path)
    >>> print(path.read_text().splitlines()[2].strip())
    CASE WHEN "score" > 0 THEN 'yes' ELSE 'no' END AS prediction
    """
    chosen = to or Path(path).suffix.lstrip(".").lower()
    if chosen not in FORMATS:
        raise ExportError(f"There is no export to {chosen!r}; choose among {', '.join(FORMATS)}.")
    content = FORMATS[chosen](Formula.of(model))
    with writing(path, "wb") as file:
        file.write(content if isinstance(content, bytes) else content.encode())
