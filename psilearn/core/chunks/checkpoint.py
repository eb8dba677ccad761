"""Passes that are remembered in a file, so that a fit that was broken off goes on where it was.

A fit asks for sums at points, and the next point follows from the sums. So the answers are all there is to keep: a fit
that is begun again asks the same questions, finds the answers in the file up to the place where it was broken off, and
ends with the same result bit by bit. The file holds plain arrays (numpy's format, nothing that could run), each pass
behind the last; a pass that was cut short at the end is forgotten.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import joblib
import numpy as np

from .description import Description
from .sums import Sums, evaluate
from .workers import Some, Workers

#: Fields of :class:`Sums` that are plain numbers.
_NUMBERS = [name for name in Sums._fields if name not in ("net", "hessian", "near", "digest")]


@dataclass(eq=False)
class Remembered:
    """Workers whose sums at points are kept in a file.

    Attributes
    ----------
    workers : Workers
        Who does the work that is not in the file.
    path : Path
        The file.
    data : str
        Tells which data the file is about.
    """

    workers: Workers
    path: Path
    data: str
    _places: dict[str, int] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        if self.path.exists() and self.path.stat().st_size:
            self._index()
        else:
            with self.path.open("wb") as file:
                _write(file, np.array(self.data))

    @property
    def n_blocks(self) -> int:
        """Number of blocks."""
        return self.workers.n_blocks

    def map(self, function: Callable[..., Any], *args: Any) -> list[Any]:
        """Return every block's answer; these are not kept."""
        return self.workers.map(function, *args)

    def sum(self, function: Callable[..., Any], add: Callable[[Any, Any], Any], *args: Any, only: Some = None) -> Any:
        """Return the sum of all answers, or of those of some blocks; from the file if it is there."""
        if function is not evaluate:
            return self.workers.sum(function, add, *args, only=only)
        key = str(joblib.hash(args))
        if key in self._places:
            with self.path.open("rb") as file:
                file.seek(self._places[key])
                return _read_sums(file)
        answer: list[Sums] = self.workers.sum(function, add, *args)
        with self.path.open("ab") as file:
            _write(file, np.array(key))
            self._places[key] = file.tell()
            _write_sums(file, answer)
        return answer

    def _index(self) -> None:
        """Find the passes in the file; a last one that is not complete is cut off."""
        with self.path.open("rb") as file:
            try:
                data = str(_read(file))
            except (ValueError, EOFError) as error:
                raise ValueError(f"checkpoint={str(self.path)!r} is not a file of passes; name another one.") from error
            if data != self.data:
                raise ValueError(f"checkpoint={str(self.path)!r} belongs to other data or blocks; name another file.")
            end = file.tell()
            while file.peek(1):
                try:
                    key, place = str(_read(file)), file.tell()
                    _read_sums(file)
                except (ValueError, EOFError):
                    break
                self._places[key], end = place, file.tell()
        with self.path.open("ab") as file:
            file.truncate(end)


def name_of_data(seen: Description, n_blocks: int) -> str:
    """Return what tells data in blocks from others: their description."""
    labels = sorted((str(label), count, weight) for label, (count, weight) in seen.labels.items())
    return str(joblib.hash((n_blocks, seen.n, labels, seen.mean, seen.spread)))


def _write(file: BinaryIO, array: Any) -> None:
    np.save(file, array, allow_pickle=False)


def _read(file: BinaryIO) -> Any:
    return np.load(file, allow_pickle=False)


def _write_sums(file: BinaryIO, answer: list[Sums]) -> None:
    """Write the answers to the queries of one pass."""
    _write(file, np.array([[getattr(sums, name) for name in _NUMBERS] for sums in answer]))
    _write(file, np.array([[sums.near, sums.digest] for sums in answer], dtype=np.uint64))
    for sums in answer:
        _write(file, np.asarray(sums.net))
        _write(file, np.asarray(sums.hessian))


def _read_sums(file: BinaryIO) -> list[Sums]:
    numbers, counts = _read(file), _read(file)
    answer = []
    for values, (near, digest) in zip(numbers.tolist(), counts.tolist()):
        net, hessian = _read(file), _read(file)
        known = dict(zip(_NUMBERS, values))
        answer.append(Sums(**known, net=net, hessian=hessian, near=near, digest=digest))
    return answer
