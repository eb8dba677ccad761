"""The review page: one file that opens offline, in which every suspect is kept, relabelled or left open."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import numpy as np
import pandas as pd

from ..audit.reasons import number
from ..audit.story import answer, judge
from ..audit.table import TableAudit
from ..pages import asset, data_script, page, text
from ..words import shown

#: Neighbours that are shown beside a suspect, features that are ordered by what they tell, characters of a cell.
NEIGHBOURS, TELLING, CELL = 3, 12, 80


def review_page(audit: TableAudit, source: str, command: str) -> str:
    """Return the page as HTML.

    Parameters
    ----------
    audit : TableAudit
        What is reviewed.
    source : str
        Name of the table's file.
    command : str
        The command that applies the decisions, for the reader.
    """
    tree = _tree(audit, source)
    sentences = "".join(f"<p>{text(s, 400)}</p>" for s in answer(audit.issues))
    others = "".join(_finding(f.name, f.text, [int(audit.data.rows[r]) for r in f.rows]) for f in audit.findings)
    notes = "".join(f"<li>{text(note, 400)}</li>" for note in audit.data.notes)
    body = (
        f'<header><h1>{text(source, 80)}: labels to review</h1><div class="verdict">{sentences}</div></header>'
        f'<main><div id="review" data-command="{text(command, 400)}"></div>'
        '<noscript><p class="lead">This page needs JavaScript, which is switched off.</p></noscript>'
        f'<section id="beside"><h2>Beside the labels</h2>{others or "<p>Nothing else was found.</p>"}'
        f'<p class="note">{text(judge(audit.issues), 400)}</p>'
        f"{f'<h3>What was understood of the table</h3><ul>{notes}</ul>' if notes else ''}</section></main>"
        "<footer><p>Made by psilearn. Nothing in this file leaves your computer.</p></footer>"
    )
    scripts = [asset("review", "review.js")]
    return page(
        f"{shown(source, 80)}: labels to review", data_script("review-data", tree) + body, scripts,
        asset("review", "review.css"),
    )  # fmt: skip


def _finding(name: str, words: str, rows: list[int]) -> str:
    listed = ", ".join(map(str, rows[:50])) + (f" and {len(rows) - 50} more" if len(rows) > 50 else "")
    where = f'<p class="note">Rows {listed}</p>' if rows else ""
    return f"<h3>{text(name[0].upper() + name[1:], 100)}</h3><p>{text(words, 400)}</p>{where}"


def _tree(audit: TableAudit, source: str) -> dict[str, Any]:
    """Return what the page's script shows."""
    suspects, frame = audit.suspects, audit.data.frame
    classes = sorted(audit.data.class_counts)
    code = {name: at for at, name in enumerate(classes)}
    labels = audit.data.labels.map(code).to_numpy()
    needed: set[int] = set()
    listed = []
    for issue in suspects.itertuples():
        why = audit.reasons[issue.index]
        near = list(why.neighbours[:NEIGHBOURS])
        needed.update([issue.index, *near])
        listed.append(
            {
                "i": issue.index, "s": code[str(issue.suggested)], "p": round(float(issue.score), 4), "why": why.text,
                "near": near, "first": list(why.features[:TELLING]),
                "price": None if np.isnan(issue.price) else round(float(issue.price), 4),
            }
        )  # fmt: skip
    rows = sorted(needed)
    columns = [_cells(frame.iloc[rows, j]) for j in range(frame.shape[1])]
    ids = None if audit.data.ids is None else audit.data.ids.iloc[rows].map(str).tolist()
    tree = {
        "source": shown(source, 200), "target": shown(audit.data.target, 80),
        "classes": [shown(c, CELL) for c in classes], "raw": classes, "features": [shown(c, CELL) for c in frame],
        "index": rows, "row": audit.data.rows[rows].tolist(), "id": ids and [shown(v, CELL) for v in ids],
        "rawid": ids, "label": labels[rows].tolist(),
        "cells": columns, "suspects": listed,
    }  # fmt: skip
    mark = hashlib.sha256(json.dumps(tree, sort_keys=True).encode()).hexdigest()[:16]
    return {**tree, "key": mark}


def _cells(column: pd.Series) -> list[str]:
    if pd.api.types.is_numeric_dtype(column):
        return ["" if np.isnan(v) else number(float(v)) for v in column]
    return ["" if pd.isna(v) else shown(v, CELL) for v in column]
