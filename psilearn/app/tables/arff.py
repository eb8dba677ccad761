"""Reading Weka's ARFF files: a typed header, then comma-separated rows."""

from __future__ import annotations

import io
import itertools
import re
from collections.abc import Callable, Iterator
from typing import IO, Any, BinaryIO

import pandas as pd

from .delimited import MISSING

_ATTRIBUTE = re.compile(r"@attribute\s+('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|\S+)\s+(.+)$", re.IGNORECASE)


class _Lines:
    """The data section as a file pandas can read: comments and blank lines dropped."""

    def __init__(self, lines: Iterator[str]) -> None:
        self._lines = (line for line in lines if line.strip() and not line.lstrip().startswith("%"))

    def __iter__(self) -> Iterator[str]:
        return self._lines

    def read(self, size: int = -1) -> str:
        """Return whole lines worth about ``size`` characters."""
        if size < 0:
            return "".join(self._lines)
        return "".join(itertools.islice(self._lines, max(1, size // 200)))


def arff_chunks(opening: Callable[[], BinaryIO], rows: int | None) -> Iterator[pd.DataFrame]:
    """Yield the table of an ARFF file, ``rows`` rows at a time (None: all at once)."""
    with io.TextIOWrapper(opening(), encoding="utf-8") as file:
        names, kinds = _header(file)
        first = next((line for line in file if line.strip() and not line.lstrip().startswith("%")), "")
        if first.lstrip().startswith("{"):
            raise ValueError("sparse ARFF is not read here; save it dense or as CSV.")
        quote = '"' if first.count('"') > first.count("'") else "'"
        options: dict[str, Any] = {
            "header": None, "names": names, "quotechar": quote, "escapechar": "\\", "skipinitialspace": True,
            "keep_default_na": False, "na_values": MISSING, "dtype": {n: str for n in kinds if not kinds[n]},
        }  # fmt: skip
        data = _Lines(itertools.chain([first], file))
        if rows is None:
            yield pd.read_csv(data, **options)
        else:
            yield from pd.read_csv(data, chunksize=rows, **options)


def _header(file: IO[str]) -> tuple[list[str], dict[str, bool]]:
    """Read up to @data; return the names and, by name, whether the attribute is numeric."""
    kinds: dict[str, bool] = {}
    for line in file:
        text = line.strip()
        if text.lower().startswith("@data"):
            if not kinds:
                break
            return list(kinds), kinds
        match = _ATTRIBUTE.match(text)
        if match:
            name = match[1][1:-1] if match[1][0] in "'\"" else match[1]
            kinds[name] = match[2].split()[0].lower() in {"numeric", "real", "integer"}
    raise ValueError("it has no @attribute lines followed by @data.")
