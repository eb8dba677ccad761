"""Opening a table whatever its format: CSV in any usual encoding, Excel, Parquet, ARFF; a file or standard input."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import lzma
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import pandas as pd

from ...core.extras import MissingExtraError
from ..words import shown
from .arff import arff_chunks
from .delimited import delimited_chunks, delimited_text
from .error import TableError
from .excel import excel_table, excel_with

#: The path that means standard input.
STDIN = "-"
_OPENERS: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
_EXPORT = "export it as .xlsx or CSV and try again."
#: Beginnings of files that are no text, and what to do about them.
_FOREIGN = {
    b"\xd0\xcf\x11\xe0": "is an old (.xls) or password-protected Excel file; save it as .xlsx without a password.",
    b"%PDF": f"is a PDF; {_EXPORT}",
    b"\x7fELF": "is a program, not a table.",
    b"$FL2": f"is an SPSS file; {_EXPORT}",
    b"<stata_dta": f"is a Stata file; {_EXPORT}",
    b"SQLite format 3": f"is a database; {_EXPORT}",
    b"{\\rtf": f"is a text document; {_EXPORT}",
    b"<!DOCTYPE": f"is a web page; {_EXPORT}",
    b"<html": f"is a web page; {_EXPORT}",
}


@dataclass
class Source:
    """A file or standard input that can be opened as often as needed.

    Attributes
    ----------
    name : str
        Name for sentences, safe to show.
    path : Path or None
        The file; None for standard input, whose bytes are in ``content``.
    notes : list of str
        What a careful reader would want to know about the reading.
    """

    name: str
    path: Path | None = None
    content: bytes = b""
    notes: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, path: str | Path) -> Source:
        """Return the source of a path; ``-`` is standard input."""
        if str(path) == STDIN:
            return cls("standard input", None, sys.stdin.buffer.read())
        path = Path(path)
        if not path.exists():
            raise TableError(f"There is no file '{shown(path, 200)}'.")
        if path.is_dir():
            raise TableError(f"'{shown(path, 200)}' is a folder, not a file.")
        return cls(f"'{shown(path.name)}'", path)

    @property
    def suffix(self) -> str:
        """Return the last suffix below that of a compression, in small letters."""
        name = self.path.name.lower() if self.path else ""
        for packed in _OPENERS:
            name = name.removesuffix(packed)
        return Path(name).suffix

    def open(self) -> BinaryIO:
        """Return the bytes, decompressed."""
        if self.path is None:
            return io.BytesIO(self.content)
        opener: Any = _OPENERS.get(self.path.suffix.lower(), open)
        return opener(self.path, "rb")


def read_chunks(path: str | Path, rows: int | None = None) -> Iterator[pd.DataFrame]:
    """Yield the table of a file, ``rows`` rows at a time (None: all at once); ``-`` is standard input.

    ``attrs["notes"]`` of the first piece says what was odd about the file.
    """
    if str(path) != STDIN and Path(path).is_dir():
        yield from _folder_chunks(Path(path), rows)
        return
    source = Source.of(path)
    try:
        for at, part in enumerate(_chunks(source, rows)):
            if at == 0:
                part.attrs["notes"] = source.notes
            yield part
    except TableError:
        raise
    except MissingExtraError as error:
        raise TableError(f"{error}.") from None
    except ImportError:
        raise TableError("Reading Parquet needs the package pyarrow: pip install pyarrow.") from None
    except (ValueError, OSError, EOFError, KeyError, zipfile.BadZipFile, zlib.error, lzma.LZMAError) as error:
        reason = shown(str(error).splitlines()[0] if str(error) else type(error).__name__, 200)
        raise TableError(f"{source.name} could not be read: {reason.rstrip('.')}.") from None


def _folder_chunks(folder: Path, rows: int | None) -> Iterator[pd.DataFrame]:
    """Yield the table that the Parquet files of a folder, in the order of their names, make together."""
    files = sorted(path for path in folder.rglob("*") if path.suffix in {".parquet", ".pq"})
    if not files:
        raise TableError(f"'{shown(folder, 200)}' is a folder without Parquet files.")
    parts = (part for file in files for part in _alike(read_chunks(file, rows), files[0], file))
    if rows is None:
        yield pd.concat(parts, ignore_index=True)
    else:
        yield from parts


def _alike(parts: Iterator[pd.DataFrame], first: Path, file: Path) -> Iterator[pd.DataFrame]:
    """Yield the parts of a file whose columns must be those of the first file."""
    from pyarrow.parquet import read_schema

    names = [name for name in read_schema(first).names if not name.startswith("__index")]
    for part in parts:
        if part.columns.tolist() != names:
            raise TableError(f"'{shown(file, 200)}' has other columns than the first file of its folder.")
        yield part


def read_table(path: str | Path) -> pd.DataFrame:
    """Read a whole table; a file without rows raises TableError."""
    parts = list(read_chunks(path))
    if not parts or parts[0].empty:
        name = "The input" if str(path) == STDIN else f"'{shown(Path(path).name)}'"
        raise TableError(f"{name} has no rows.")
    return parts[0]


def table_with(path: str | Path, column: str, cells: Mapping[int, str], rows: int) -> bytes | None:
    """Return a table's file with new cells in a column, by row from 0, and all others as they are written.

    None for files of a kind that is not rewritten, or that does not hold that number of ``rows``.
    """
    source = Source.of(path)
    with source.open() as file:
        beginning = file.read(4)
    if beginning.startswith(b"PK\x03\x04"):
        return excel_with(source.name, source.open, column, cells)
    if beginning.startswith(b"PAR1") or source.suffix == ".arff":
        return None
    written = delimited_text(source.open)
    body = [row for row in written.rows[written.header :] if row]
    if len(body) - 1 != rows:
        return None
    at = [cell.strip() for cell in body[0]].index(column)
    for row, value in cells.items():
        body[row + 1][at] = value
    out = io.StringIO()
    csv.writer(out, delimiter=written.separator, lineterminator=written.newline).writerows(written.rows)
    return out.getvalue().encode(written.encoding)


def _chunks(source: Source, rows: int | None) -> Iterator[pd.DataFrame]:
    with source.open() as file:
        beginning = file.read(4096)
    if not beginning.strip():
        raise TableError(f"{source.name} is empty.")
    for mark, words in _FOREIGN.items():
        if beginning.lstrip().lower().startswith(mark.lower()):
            raise TableError(f"{source.name} {words}")
    if beginning.startswith(b"PAR1") or source.suffix in {".parquet", ".pq"}:
        yield from _parquet_chunks(source, rows)
    elif beginning.startswith(b"PK\x03\x04"):
        yield from _sliced(excel_table(source.name, source.open, source.notes), rows)
    elif source.suffix in {".xlsx", ".xlsm"}:
        raise TableError(f"{source.name} is not an Excel file, whatever its name says.")
    elif source.suffix == ".arff":
        yield from arff_chunks(source.open, rows)
    elif source.suffix in {".json", ".jsonl"}:
        raise TableError(f"{source.name} is JSON; {_EXPORT}")
    else:
        yield from delimited_chunks(source.name, source.open, source.notes, rows)


def _sliced(frame: pd.DataFrame, rows: int | None) -> Iterator[pd.DataFrame]:
    step = rows or max(1, len(frame))
    for at in range(0, len(frame), step):
        yield frame.iloc[at : at + step]


def _parquet_chunks(source: Source, rows: int | None) -> Iterator[pd.DataFrame]:
    if rows is None:
        with source.open() as file:
            yield pd.read_parquet(file)
        return
    import pyarrow.parquet

    with source.open() as file:
        for batch in pyarrow.parquet.ParquetFile(file).iter_batches(batch_size=rows):
            yield batch.to_pandas()
