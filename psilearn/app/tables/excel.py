"""Reading the first sheet of an Excel workbook that holds a table."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from typing import Any, BinaryIO

import numpy as np
import pandas as pd

from ...core.extras import optional
from ..words import listed, shown
from .delimited import MISSING, left_out_above, refuse_twins
from .error import TableError

#: Rows among which the header is looked for, below titles and remarks.
HEADER_ROWS = 20


def excel_table(name: str, opening: Callable[[], BinaryIO], notes: list[str]) -> pd.DataFrame:
    """Return the first sheet with cells, its header found below titles; ``notes`` says what was left aside."""
    _, sheet, at = _found(name, opening, notes)
    if at:
        notes.append(left_out_above(at))
    header = _names(sheet, at)
    refuse_twins(header)
    body: Any = sheet.iloc[at + 1 :].set_axis(header, axis=1).reset_index(drop=True)
    if body.empty:
        raise TableError(f"{name} has no rows.")
    return body.infer_objects()


def excel_with(name: str, opening: Callable[[], BinaryIO], column: str, cells: Mapping[int, str]) -> bytes:
    """Return the workbook with new cells in a column, by row from 0; formats and other sheets stay as they are.

    Formulas become their values: nobody but Excel can compute them anew.
    """
    optional("openpyxl", "excel", "Writing Excel files")
    from openpyxl import load_workbook

    title, sheet, at = _found(name, opening, [])
    with opening() as file:
        book = load_workbook(io.BytesIO(file.read()), data_only=True)
    across = int(sheet.columns[_names(sheet, at).index(column)])
    for row, value in cells.items():
        cell = book[title].cell(int(sheet.index[at + 1 + row]) + 1, across + 1)
        cell.value = _like(cell.value, value)
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


def _found(name: str, opening: Callable[[], BinaryIO], notes: list[str]) -> tuple[str, pd.DataFrame, int]:
    """Return the title of the first sheet with cells, its rows and columns that are not empty, and which is the header.

    The header is the first row that is nearly as full as the fullest one.
    """
    optional("openpyxl", "excel", "Reading Excel files")
    with opening() as file:
        try:
            sheets = pd.read_excel(
                file, sheet_name=None, header=None, engine="openpyxl", keep_default_na=False, na_values=MISSING
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise TableError(f"{name} is a ZIP archive but no Excel workbook ({shown(error)}).") from None
    full = {str(title): sheet for title, sheet in sheets.items() if sheet.notna().to_numpy().any()}
    if not full:
        raise TableError(f"{name} is empty.")
    (title, sheet), *others = full.items()
    if others:
        notes.append(f"The sheet '{shown(title)}' was read; not {listed([other for other, _ in others])}.")
    sheet = sheet.dropna(how="all").dropna(how="all", axis=1)
    widths = sheet.iloc[:HEADER_ROWS].notna().sum(axis=1).to_numpy()
    return title, sheet, int(np.argmax(widths >= 0.8 * widths.max()))


def _names(sheet: pd.DataFrame, at: int) -> list[str]:
    return [str(cell).strip() if pd.notna(cell) else f"Unnamed: {j}" for j, cell in enumerate(sheet.iloc[at])]


def _like(old: Any, new: str) -> Any:
    """Return a label as the kind of cell it replaces."""
    if isinstance(old, bool):
        return new == "True" if new in {"True", "False"} else new
    if isinstance(old, (int, float)):
        try:
            return float(new) if float(new) % 1 else int(float(new))
        except ValueError:
            return new
    return new
