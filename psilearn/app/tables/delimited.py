"""Reading delimited text: which encoding, which separator, which decimal sign, and rows that do not fit the header."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any, BinaryIO, NamedTuple

import pandas as pd

from ..words import listed
from .error import TableError

#: Cells that mean "missing" wherever they stand.
MISSING = [
    "", "NA", "N/A", "n/a", "N.A.", "<NA>", "NaN", "nan", "null", "NULL", "?", "#N/A", "#NV", "#DIV/0!", "#VALUE!",
    "#WERT!", "#REF!", "#NAME?", "#NULL!", "#NUM!",
]  # fmt: skip
#: Lines that tell the separator and whether a file writes 0,5 for a half.
SAMPLE_LINES = 50
SEPARATORS = ",;\t|"
#: Lines with one cell, or with fewer filled cells than this part of the fullest line, are titles above the header.
TITLE = 1 / 3
#: Bytes read at a time while looking for the encoding.
BLOCK = 1 << 20
_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF32_LE, "utf-32"), (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"),
)  # fmt: skip


class Written(NamedTuple):
    """A delimited table as it is written.

    Attributes
    ----------
    rows : list of list of str
        All lines, titles and empty ones too.
    header : int
        Which of them is the header.
    separator, newline, encoding : str
        Of the file.
    """

    rows: list[list[str]]
    header: int
    separator: str
    newline: str
    encoding: str


def delimited_chunks(
    name: str, opening: Callable[[], BinaryIO], notes: list[str], rows: int | None
) -> Iterator[pd.DataFrame]:
    """Yield a delimited table, ``rows`` rows at a time (None: all at once), and note what was odd about it."""
    encoding = _encoding(opening)
    if encoding in {"cp1252", "latin-1"}:
        notes.append("The file is not UTF-8; it was read as Windows text (cp1252). Check accents and umlauts.")
    with _text(opening, encoding) as lines:
        sample = list(islice(lines, SAMPLE_LINES))
    if not "".join(sample).strip():
        raise TableError(f"{name} is empty.")
    if any("\0" in line for line in sample):
        raise TableError(f"{name} holds zero bytes: it is not a text table.")
    separator = _separator(sample)
    titles = _titles(sample, separator)
    with _text(opening, encoding) as lines:
        header, above = _check_rows(name, lines, separator, titles, notes)
    _note_header(header, notes)
    options: dict[str, Any] = {
        "sep": separator, "keep_default_na": False, "na_values": MISSING, "low_memory": False, "index_col": False,
        "decimal": _decimal(sample[1:], separator), "skipinitialspace": True, "chunksize": rows,
    }  # fmt: skip
    with _text(opening, encoding) as lines:
        list(islice(lines, above))
        parts = pd.read_csv(lines, **options)
        for part in [parts] if rows is None else parts:
            yield part.set_axis([str(c).strip() for c in part.columns], axis=1)


def delimited_text(opening: Callable[[], BinaryIO]) -> Written:
    """Return a delimited table as it is written."""
    encoding = _encoding(opening)
    with _text(opening, encoding) as lines:
        sample = list(islice(lines, SAMPLE_LINES))
    separator = _separator(sample)
    newline = next((end for end in ("\r\n", "\n", "\r") if sample[0].endswith(end)), "\n")
    with _text(opening, encoding) as lines:
        rows = list(csv.reader(lines, delimiter=separator, skipinitialspace=True))
    return Written(rows, _titles(sample, separator), separator, newline, encoding)


def left_out_above(rows: int) -> str:
    """Say that titles above the header were left out."""
    return "1 row above the header is left out." if rows == 1 else f"{rows} rows above the header are left out."


def refuse_twins(names: Sequence[str]) -> None:
    """Refuse a table in which two columns have one name."""
    twins = [name for name, count in Counter(names).items() if count > 1 and name]
    if twins:
        raise TableError(f"Two columns are named {listed(twins)}.")


def _text(opening: Callable[[], BinaryIO], encoding: str) -> io.TextIOWrapper:
    return io.TextIOWrapper(opening(), encoding=encoding, newline="")


def _encoding(opening: Callable[[], BinaryIO]) -> str:
    """Return the encoding: by the byte order mark, by zero bytes, or the first of UTF-8 and cp1252 that can be read."""
    with opening() as file:
        block = file.read(BLOCK)
        for mark, encoding in _BOMS:
            if block.startswith(mark):
                return encoding
        even, odd = block[0:4096:2].count(0), block[1:4096:2].count(0)
        if max(even, odd) > len(block[:4096]) // 5:
            return "utf-16-le" if odd > even else "utf-16-be"
        decoder, is_windows, is_utf8 = codecs.getincrementaldecoder("utf-8")(), True, True
        while block:
            if is_utf8:
                try:
                    decoder.decode(block)
                except UnicodeDecodeError:
                    is_utf8 = False
            # Five bytes mean nothing in cp1252; latin-1 knows all of them.
            is_windows = is_windows and not any(byte in block for byte in b"\x81\x8d\x8f\x90\x9d")
            block = file.read(BLOCK)
        if is_utf8:
            try:
                decoder.decode(b"", final=True)
                return "utf-8"
            except UnicodeDecodeError:
                pass
    return "cp1252" if is_windows else "latin-1"


def _separator(lines: Sequence[str]) -> str:
    """Return the separator that gives the header most cells, preferring one with which the lines agree."""

    def merit(separator: str) -> tuple[int, int]:
        widths = [len(row) for row in csv.reader(lines, delimiter=separator) if row]
        return (sum(width == widths[0] for width in widths) if widths[0] > 1 else 0, widths[0])

    return max(SEPARATORS, key=merit)


def _titles(sample: Sequence[str], separator: str) -> int:
    """Return how many rows stand above the header: titles, and what is empty."""
    rows = csv.reader(sample, delimiter=separator, skipinitialspace=True)
    filled = [sum(bool(cell.strip()) for cell in row) for row in rows]
    fullest = max(filled, default=0)
    if fullest < 3:
        return next((at for at, count in enumerate(filled) if count), 0)
    return next(at for at, count in enumerate(filled) if count > max(1, TITLE * fullest))


def _check_rows(
    name: str, lines: io.TextIOWrapper, separator: str, titles: int, notes: list[str]
) -> tuple[list[str], int]:
    """Return the header and the number of lines above it; refuse longer rows, note shorter and doubtful ones."""
    csv.field_size_limit(1 << 30)
    reader = csv.reader(lines, delimiter=separator, skipinitialspace=True)
    header: list[str] = []
    above, short, first_short, swallowing = 0, 0, 0, 0
    try:
        above = _skip(reader, titles, notes)
        for row in reader:
            if not header:
                header = [cell.strip() for cell in row]
                refuse_twins(header)
            elif len(row) > len(header):
                raise TableError(
                    f"{name} could not be read: line {reader.line_num} has {len(row)} cells, the header {len(header)}; "
                    "is a cell with a separator in it not quoted, or does a title stand above the header?"
                )
            elif len(row) < len(header) and "".join(row).strip():
                short, first_short = short + 1, first_short or reader.line_num
            if not swallowing and any(_holds_a_row(cell, separator, len(header)) for cell in row):
                swallowing = reader.line_num
    except csv.Error as error:
        raise TableError(f"{name} could not be read: line {reader.line_num}: {error}.") from None
    if short:
        rows = f"{short} rows have" if short > 1 else "1 row has"
        notes.append(f"{rows} fewer cells than the header (line {first_short} first); what lacks counts as missing.")
    if swallowing:
        notes.append(
            f"A cell that ends in line {swallowing} holds a whole row, which is lost: is a quotation mark not closed?"
        )
    return header, above


def _skip(reader: Any, rows: int, notes: list[str]) -> int:
    """Pass over the rows above the header; return in how many lines they stand."""
    said = sum(bool("".join(next(reader)).strip()) for _ in range(rows))
    if said:
        notes.append(left_out_above(said))
    return int(reader.line_num)


def _holds_a_row(cell: str, separator: str, width: int) -> bool:
    """Whether a line within a cell has as many separators as a row."""
    return "\n" in cell and width > 1 and any(line.count(separator) >= width - 1 for line in cell.split("\n"))


def _note_header(header: Sequence[str], notes: list[str]) -> None:
    numbers = sum(re.fullmatch(r"[-+]?\d+([.,]\d+)?", cell) is not None for cell in header)
    if numbers > len(header) / 2:
        notes.append(f"The first line was read as names of columns, but looks like data ({listed(header, 3)}).")


def _decimal(lines: Sequence[str], separator: str) -> str:
    """Return the decimal sign: a comma if cells like 0,5 occur and cells like 0.5 do not."""
    cells = [cell.strip(' "\r\n') for line in lines for cell in line.split(separator)]
    comma, point = (sum(bool(re.fullmatch(rf"-?\d+{sign}\d+", c)) for c in cells) for sign in (",", r"\."))
    return "," if separator != "," and comma and not point else "."
