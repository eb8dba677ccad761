"""Tables larger than memory: understood and tuned on a random part of the rows, fitted on all of them in blocks.

The table is read three times at most: to draw the part, to write every row once as numbers into a temporary file (four
bytes a cell), and nothing else; the passes of the fit read that file.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from .compare.methods import Method
from .compare.single import fit_table
from .encoding import TableEncoder
from .tablemodel import TableModel
from .tables import TableError, Understanding, read_chunks, understand
from .words import shown

#: Bytes in memory that a byte of a file may become.
GROWTH = 6
#: Rows that are read at a time, and those of the part at most.
CHUNK, MOST = 20_000, 100_000
#: Share of the memory for the part, which several copies are made of.
SHARE = 1 / 16
_UNITS = {"k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}

Progress = Callable[[str, float], None]


def bytes_of(text: str) -> float:
    """Return the number of bytes that a text such as "2GB" or "500M" stands for."""
    plain = text.strip().lower().removesuffix("b")
    factor = _UNITS.get(plain[-1:], 1)
    try:
        number = float(plain[:-1] if plain[-1:] in _UNITS else plain)
    except ValueError:
        number = -1.0
    if not number > 0:
        raise TableError(f"--memory must be a size such as 2GB or 500MB, got '{shown(text)}'.")
    return number * factor


def is_large(path: Path | None, memory: str | None) -> bool:
    """Whether a table is to be read in blocks."""
    if path is None or memory is None or str(path) == "-":
        return False
    limit = bytes_of(memory)
    files = [part for part in path.rglob("*") if part.is_file()] if path.is_dir() else [path]
    return GROWTH * sum(part.stat().st_size for part in files if part.exists()) > limit


def part_of(path: Path, memory: str, seed: int) -> tuple[pd.DataFrame, int]:
    """Return random rows of a table, in their order, and how many rows it has."""
    kept: list[pd.DataFrame] = []
    keys: list[Any] = []
    rng, rows, most = np.random.default_rng(seed), 0, MOST
    for part in read_chunks(path, CHUNK):
        if rows == 0:
            cost = float(part.memory_usage(deep=True).sum()) / max(1, len(part))
            most = int(min(MOST, max(1000, SHARE * bytes_of(memory) / cost)))
        key = rng.random(len(part))
        limit = np.sort(np.concatenate([*keys, key]))[:most][-1] if len(part) else 1.0
        kept.append(part[key <= limit])
        keys.append(key[key <= limit])
        rows += len(part)
        if sum(map(len, kept)) > 2 * most:
            kept, keys = _fewest(kept, keys, most)
    if rows == 0:
        raise TableError(f"'{shown(path.name)}' has no rows.")
    kept, _ = _fewest(kept, keys, most)
    frame = kept[0].reset_index(drop=True)
    if len(frame) < rows:
        frame.attrs["notes"] = [f"{len(frame)} of {rows} rows, drawn at random, tell what the columns are."]
    return frame, rows


def _fewest(kept: list[pd.DataFrame], keys: list[Any], most: int) -> tuple[list[pd.DataFrame], list[Any]]:
    """Return the rows with the smallest keys, in their order."""
    key = np.concatenate(keys)
    rows = np.sort(np.argsort(key, kind="stable")[:most])
    return [pd.concat(kept, ignore_index=True).iloc[rows]], [key[rows]]


@dataclass(frozen=True)
class LargeFit:
    """A model of all rows, how the table was understood, rows of the table, and rows without a known label.

    ``spelled`` tells which class a label stands for, however it is written.
    """

    model: TableModel
    understood: Understanding
    rows: int
    left_out: int
    spelled: dict[str, str]


def fit_large(
    path: Path, columns: dict[str, Any], methods: Sequence[Method], memory: str, budget: float, seed: int,
    progress: Progress,
) -> LargeFit:  # fmt: skip
    """Fit a linear method on all rows of a table that is larger than memory.

    Parameters
    ----------
    path : Path
        The table.
    columns : dict
        Keywords of :func:`psilearn.app.tables.understand`.
    methods : sequence of Method
        Those to choose from; only linear functions are fitted in blocks.
    memory : str
        How much may be used.
    budget : float
        Seconds for tuning on the part, and again for the fit.
    seed : int
        Of the part, folds and fits.
    progress : callable
        Told what is done.
    """
    linear = [m for m in methods if not m.on_table and not m.key.endswith("-rbf")]
    if not linear:
        raise TableError(f"{methods[0].label} needs all rows in memory; choose a linear method, or leave out --memory.")
    progress("reading some rows", 0.1)
    frame, _ = part_of(path, memory, seed)
    understood = understand(frame, **columns)
    progress(f"tuning {linear[0].label} on {len(understood.frame)} rows", 0.2)
    model = fit_table(understood, linear[:1], budget, seed)
    if not hasattr(model.classifier, "checkpoint"):
        raise TableError(f"{linear[0].label} needs all rows in memory; leave out --memory.")
    with tempfile.TemporaryDirectory(prefix="psilearn-") as folder:
        progress("writing all rows as numbers", 0.4)
        used, rows = _written(path, understood, frame, model.encoder, Path(folder))
        width = len(model.encoder.get_feature_names_out())
        X = np.memmap(Path(folder, "X"), np.float32, "r", shape=(used, width))
        y = np.memmap(Path(folder, "y"), np.intp, "r", shape=(used,))
        progress(f"fitting {used} rows", 0.6)
        names = np.array(sorted(understood.class_counts))
        classifier = clone(model.classifier).set_params(time_limit=budget)
        classifier.set_params(C=classifier.C * len(understood.frame) / used)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the certificate is shown
            classifier.fit(X, y)
        classifier.classes_ = names[classifier.classes_]
    about = {**model.about, "rows": used}
    spelled = dict(zip(_given(frame, understood), understood.labels))
    return LargeFit(replace(model, classifier=classifier, about=about), understood, rows, rows - used, spelled)


def suspects_of(path: Path, found: LargeFit, most: int = MOST) -> pd.DataFrame:
    """Return the rows whose label the model of all rows contradicts, the clearest first.

    ``row`` counts from 1, ``margin`` is how far the suggested class is ahead of the next one.
    """
    first, worst = 1, pd.DataFrame(columns=["row", "given", "suggested", "margin"])
    for part in _named(read_chunks(path, CHUNK)):
        answer = found.model.predict(part, first)
        given = part[found.understood.target].map(_text).map(found.spelled)
        doubted = (given.notna() & (given.to_numpy() != answer["prediction"].to_numpy())).to_numpy()
        fresh = pd.DataFrame(
            {
                "row": answer["row"][doubted], "given": given[doubted],
                "suggested": answer["prediction"][doubted], "margin": answer["margin"][doubted],
            }
        )  # fmt: skip
        worst = fresh if worst.empty else pd.concat([worst, fresh])
        worst = worst.sort_values(["margin", "row"], ascending=[False, True]).head(most)
        first += len(part)
    return worst.reset_index(drop=True)


def _written(
    path: Path, understood: Understanding, frame: pd.DataFrame, encoder: TableEncoder, folder: Path
) -> tuple[int, int]:
    """Write all rows with a known label as numbers; returns how many those are, and all rows."""
    code = {name: at for at, name in enumerate(sorted(understood.class_counts))}
    known = dict(zip(_given(frame, understood), understood.labels.map(code)))
    used = rows = 0
    with Path(folder, "X").open("wb") as xs, Path(folder, "y").open("wb") as ys:
        for part in _named(read_chunks(path, CHUNK)):
            labels = part[understood.target].map(_text).map(known)
            mine = labels.notna().to_numpy()
            rows += len(part)
            used += int(mine.sum())
            if mine.any():
                xs.write(encoder.transform(part[mine]).astype(np.float32).tobytes())
                ys.write(labels[mine].to_numpy().astype(np.intp).tobytes())
    return used, rows


def _given(frame: pd.DataFrame, understood: Understanding) -> pd.Series:
    """Return the labels of the part as they are written."""
    return frame[understood.target].iloc[understood.rows - 1].map(_text)


def _named(parts: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    for part in parts:
        yield part.set_axis([str(c) for c in part.columns], axis=1)


def _text(value: Any) -> str:
    """Return a label as one text, whether its column was read as whole or as decimal numbers."""
    return str(int(value)) if isinstance(value, float) and value == int(value) else str(value).strip()
