"""What a person decided, applied to the table: a corrected table, a log, and what need not be asked again."""

from __future__ import annotations

import io
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..tables import TableError, Understanding, read_table, table_with
from ..words import listed, shown

#: What a person may decide; the first two settle the label.
SETTLED, OPEN = ("keep", "relabel"), "unsure"
#: Columns of a file of decisions, and of the log.
COLUMNS = ("row", "given", "decision", "label")
LOG_COLUMNS = ("round", "row", "id", "given", "decision", "label")


@dataclass(frozen=True)
class Decisions:
    """Decisions that fit a table.

    Attributes
    ----------
    frame : DataFrame
        ``row`` (in the file, from 1), ``given``, ``decision`` (keep, relabel or unsure) and ``label`` (the right one),
        by row; ``id`` if the table has identifiers.
    """

    frame: pd.DataFrame

    @property
    def changes(self) -> pd.DataFrame:
        """The rows that get another label."""
        return self.frame[self.frame["decision"] == "relabel"]

    def counted(self) -> str:
        """Say how many there are of each kind."""
        counts = self.frame["decision"].value_counts()
        words = {"relabel": "relabelled", "keep": "kept", OPEN: "left open as unsure"}
        return ", ".join(f"{counts.get(key, 0)} {word}" for key, word in words.items())


def read_decisions(path: Path, data: Understanding) -> Decisions:
    """Read the file that the review page exported, and insist that it is about this table."""
    name = f"'{shown(path.name)}'"
    frame = _texts(path)
    if lacking := [c for c in COLUMNS if c not in frame]:
        raise TableError(f"{name} lacks the columns {listed(lacking)}; it must be a file exported by a review page.")
    rows = pd.to_numeric(frame["row"], errors="coerce")
    if rows.isna().any() or (rows != rows.round()).any():
        raise TableError(f"{name}: the column 'row' must hold row numbers, and line {_line(rows.isna())} does not.")
    frame = frame.assign(row=rows.astype(int))
    if (twice := frame["row"].duplicated()).any():
        raise TableError(f"{name} decides about row {frame['row'][twice].iloc[0]} twice.")
    known = (*SETTLED, OPEN)
    if (strange := ~frame["decision"].isin(known)).any():
        word = shown(frame["decision"][strange].iloc[0], 40)
        raise TableError(f"{name}: '{word}' in line {_line(strange)} is no decision; use keep, relabel or unsure.")
    labels = pd.Series(data.labels.to_numpy(dtype=str), index=data.rows)
    for decision in frame.itertuples():
        _check(decision, labels, set(data.class_counts), name)
    ids = None if data.ids is None else pd.Series(data.ids.to_numpy(), index=data.rows)
    frame["id"] = "" if ids is None else ids.loc[frame["row"]].to_numpy()
    return Decisions(frame.sort_values("row", ignore_index=True))


def corrected(path: Path, data: Understanding, decisions: Decisions, as_excel: bool = False) -> bytes:
    """Return the table's file with the new labels; every other cell is as it was written.

    A text table keeps its encoding, separator and titles, a workbook its formats and other sheets.
    """
    change = {int(row) - 1: str(label) for row, label in zip(decisions.changes["row"], decisions.changes["label"])}
    frame = read_table(path)
    if as_excel == is_excel(path):
        rewritten = table_with(path, data.target, change, len(frame))
        if rewritten is not None:
            return rewritten
    column = [change.get(at, value) for at, value in enumerate(frame[data.target])]
    frame = frame.assign(**{data.target: column})
    if not as_excel:
        return str(frame.to_csv(index=False)).encode()
    out = io.BytesIO()
    frame.to_excel(out, index=False, engine="openpyxl")
    return out.getvalue()


def is_excel(path: Path) -> bool:
    """Tell by its name whether a file is a workbook."""
    return path.suffix.lower() in {".xlsx", ".xlsm"}


def corrected_name(path: Path) -> Path:
    """Return a name for the corrected table: beside ``a.csv`` ``a-corrected.csv``, then ``a-corrected-2.csv``."""
    name = path.stem.removesuffix(".csv")
    again = re.fullmatch(r"(.*-corrected)(?:-(\d+))?", name)
    name = f"{again[1]}-{int(again[2] or 1) + 1}" if again else f"{name}-corrected"
    return path.with_name(f"{name}{'.xlsx' if is_excel(path) else '.csv'}")


def log_beside(path: Path) -> Path:
    """Return where the log of changes of a corrected table lies: ``corrected.csv`` has ``corrected.log.csv``."""
    name = path.name
    for packed in (".gz", ".bz2", ".xz", ".zip"):
        name = name.removesuffix(packed)
    return path.with_name(f"{Path(name).stem}.log.csv")


def log_text(decisions: Decisions, source: Path) -> str:
    """Return the log: what earlier rounds decided about the table, and the new decisions."""
    before = _log(log_beside(source))
    last = 0 if before.empty else int(before["round"].max())
    now = decisions.frame.assign(round=last + 1)[list(LOG_COLUMNS)]
    return str(pd.concat([before, now], ignore_index=True).to_csv(index=False) if last else now.to_csv(index=False))


class Settled(NamedTuple):
    """Rows whose label a person has confirmed, and which of them had another one before."""

    known: NDArray[np.bool_]
    corrected: NDArray[np.bool_]


def settled_before(source: Path, data: Understanding) -> Settled | None:
    """Return what a person has settled in earlier rounds, None if there is no log beside the table.

    A row counts only while the table still holds the label that was decided, and the same identifier there.
    """
    log = _log(log_beside(source))
    if log.empty:
        return None
    last = log.drop_duplicates("row", keep="last").set_index("row").reindex(data.rows)
    settled = last["label"].where(last["decision"].isin(SETTLED))
    is_settled = np.asarray(settled.to_numpy() == data.labels.to_numpy(dtype=str), dtype=bool)
    if data.ids is not None and log["id"].any():
        # Rows may have been added, sorted or removed since.
        is_settled &= np.asarray(last["id"].to_numpy() == data.ids.to_numpy(dtype=str), dtype=bool)
    first = log.drop_duplicates("row").set_index("row").reindex(data.rows)["given"]
    return Settled(is_settled, is_settled & np.asarray(first.to_numpy() != settled.to_numpy(), dtype=bool))


def _check(decision: Any, labels: pd.Series, classes: set[str], name: str) -> None:
    row, given, label = decision.row, decision.given, decision.label
    if row not in labels.index:
        raise TableError(f"{name} decides about row {row}, which the table does not have or which has no label.")
    if labels[row] != given:
        raise TableError(
            f"{name} is about another table: it says that row {row} is labelled '{shown(given, 40)}', and the table "
            f"says '{shown(labels[row], 40)}'. Were the decisions applied already?"
        )
    if label not in classes:
        raise TableError(
            f"{name} gives row {row} the label '{shown(label, 40)}'; the table has {listed(sorted(classes))}."
        )
    if decision.decision == "relabel" and label == given:
        raise TableError(f"{name} relabels row {row} as '{shown(label, 40)}', which is the label it has.")


def _texts(path: Path) -> pd.DataFrame:
    try:
        return pd.read_csv(path, dtype=str, keep_default_na=False, encoding="utf-8-sig")
    except FileNotFoundError:
        raise TableError(_absent(path)) from None
    except (ValueError, OSError) as error:
        raise TableError(f"'{shown(path.name)}' could not be read: {shown(str(error).splitlines()[0], 200)}.") from None


def _absent(path: Path) -> str:
    """Say that there is no such file; browsers save what a page exports in a folder of their own."""
    saved = Path.home() / "Downloads" / path.name
    found = f"Is it '{shown(saved, 200)}'? Move it here." if saved.exists() else ""
    return f"There is no file '{shown(path, 200)}'. {found or 'Browsers save such files in their folder of downloads.'}"


def _log(path: Path) -> pd.DataFrame:
    if not path.exists():
        return pd.DataFrame(columns=list(LOG_COLUMNS))
    log = _texts(path)
    if lacking := [c for c in LOG_COLUMNS if c not in log]:
        raise TableError(f"'{shown(path.name)}' is no log of a review, it lacks {listed(lacking)}; move it away.")
    try:
        return log.astype({"round": int, "row": int})
    except ValueError:
        raise TableError(f"'{shown(path.name)}' is no log of a review: a round or row is no number.") from None


def _line(bad: pd.Series) -> int:
    return int(np.argmax(bad.to_numpy())) + 2
