"""Reading the first sheet of an Excel workbook that holds a table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, BinaryIO

import numpy as np
import pandas as pd

from ...core.extras import optional
from ..words import listed, shown
from .delimited import MISSING, refuse_twins
from .error import TableError

#: Rows among which the header is looked for, below titles and remarks.
HEADER_ROWS = 20


def excel_table(name: str, opening: Callable[[], BinaryIO], notes: list[str]) -> pd.DataFrame:
    """Return the first sheet with cells, its header found below titles; ``notes`` says what was left aside."""
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
    return _table(name, sheet.dropna(how="all").dropna(how="all", axis=1), notes)


def _table(name: str, sheet: pd.DataFrame, notes: list[str]) -> pd.DataFrame:
    """Take the first row that is nearly as full as the fullest one as the header."""
    widths = sheet.iloc[:HEADER_ROWS].notna().sum(axis=1).to_numpy()
    at = int(np.argmax(widths >= 0.8 * widths.max()))
    if at:
        notes.append(f"{at} rows above the header were left out.")
    header = [str(cell).strip() if pd.notna(cell) else f"Unnamed: {j}" for j, cell in enumerate(sheet.iloc[at])]
    refuse_twins(header)
    body: Any = sheet.iloc[at + 1 :].set_axis(header, axis=1).reset_index(drop=True)
    if body.empty:
        raise TableError(f"{name} has no rows.")
    return body.infer_objects()
