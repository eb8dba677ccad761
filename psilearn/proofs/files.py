"""Proof files on disk: written whole or not at all, bounds rounded to the safe side, and who checks which file."""

from __future__ import annotations

import gzip
import itertools
import json
import math
import os
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import IO, Any

from . import check as checker
from .statement import Record

#: Level of compression: 9 makes files a seventh smaller and takes eight times as long. Lines written at a time.
LEVEL, LINES = 3, 256


def rounded_up(value: Fraction) -> float:
    """Return the least double that is not below ``value``."""
    return -rounded_down(-value)


def rounded_down(value: Fraction) -> float:
    """Return the largest double that is at most ``value``."""
    near = float(value)
    return math.nextafter(near, -math.inf) if Fraction(near) > value else near


def checker_of(path: str | Path, fast: bool = False) -> Any:
    """Return the module that checks a file: about rules if it says so, else about margin classifiers."""
    try:
        with gzip.open(path, "rb") as file:
            is_about_rules = b'"psilearn rules proof"' in file.readline(1 << 12)
    except (OSError, EOFError, zlib.error):
        is_about_rules = False
    if is_about_rules:
        from . import check_rules

        return check_rules
    if fast:
        from . import fast as fast_checker

        return fast_checker
    return checker


@contextmanager
def _whole(path: str | Path) -> Iterator[IO[bytes]]:
    """Open a temporary neighbour of ``path`` and rename it at the end, so that nobody sees half a proof."""
    path = Path(path)
    part = path.with_name(f".{path.name[:40]}.{os.getpid()}.part")
    try:
        with open(part, "wb") as file:
            yield file
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def write(path: str | Path, records: Iterable[Record]) -> None:
    """Write records as JSON lines, gzip."""
    encode = json.JSONEncoder(separators=(",", ":")).encode
    with _whole(path) as file, gzip.GzipFile("", "wb", LEVEL, fileobj=file, mtime=0) as packed:
        for lines in _batches(map(encode, records)):
            packed.write("\n".join([*lines, ""]).encode())


def _batches(lines: Iterator[str]) -> Iterator[list[str]]:
    while batch := list(itertools.islice(lines, LINES)):
        yield batch
