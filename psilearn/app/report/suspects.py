"""The rows to look at: what the audit doubts, and how many robust fits refused to believe it too."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ...evaluation.selective import confidence_of
from ..audit.story import answer, is_refused, worth_a_look
from ..compare.job import Comparison, Outcome
from ..pages import table, text

MOST_ROWS, MOST_COLUMNS = 40, 6


class Suspect(NamedTuple):
    """A doubtful row: its position in the data, label, better class, and how doubtful, in words."""

    at: int
    given: str
    suggested: str
    doubt: str


def suspects_section(comparison: Comparison) -> str:
    """Return the doubtful rows with the columns that tell most."""
    intro, head, found = _by_audit(comparison) if comparison.issues is not None else _by_refusal(comparison)
    if not found:
        return intro
    flipped = set(comparison.splits[0].train[comparison.splits[0].flipped].tolist())
    votes, robust = _refusals(comparison)
    ids, columns = comparison.data.ids, _telling_columns(comparison)
    rows = [
        [
            str(comparison.data.rows[s.at]), *([text(ids.iloc[s.at], 30)] if ids is not None else []),
            text(s.given, 30), text(s.suggested, 30), s.doubt,
            *([f"{votes.get(s.at, 0)} of {robust}"] if robust and comparison.issues is not None else []),
            *(["yes" if s.at in flipped else ""] if flipped else []),
            *(_cell(comparison.data.frame[c].iloc[s.at]) for c in columns),
        ]
        for s in found[:MOST_ROWS]
    ]  # fmt: skip
    names = ["row", *(["id"] if ids is not None else []), "label", "suggested", head]
    names += ["refused by"] if robust and comparison.issues is not None else []
    names += ["flipped"] if flipped else []
    names += [text(c, 24) for c in columns]
    more = f"<p class='note'>The first {MOST_ROWS} of {len(found)}.</p>" if len(found) > MOST_ROWS else ""
    caption = "Doubtful labels; rows are counted from 1 without the header; the columns are those that weigh most"
    return intro + table(names, rows, caption, (0,)) + more


def _by_audit(comparison: Comparison) -> tuple[str, str, list[Suspect]]:
    issues = comparison.issues
    assert issues is not None
    told = answer(issues)
    rows = worth_a_look(issues)
    if is_refused(issues) or rows.empty:
        return "".join(f"<p>{text(sentence, 600)}</p>" for sentence in told), "", []
    intro = f"<p>{text(told[0], 600)} Labels that it contradicts most come first.</p>"
    if (refusing := _refusals(comparison)[1]) and len(rows):
        intro += f'<p class="note">Refused by: how many of {refusing} robust fits gave a training label up.</p>'
    return (
        intro,
        "wrong with",
        [
            Suspect(int(at), str(given), str(suggested), f"{100 * score:.0f}%")
            for at, given, suggested, score in zip(rows["index"], rows["given"], rows["suggested"], rows["score"])
        ],
    )


def _by_refusal(comparison: Comparison) -> tuple[str, str, list[Suspect]]:
    split = comparison.splits[0]
    robust = [o for o in comparison.outcomes if o.suspects is not None and len(o.suspects)]
    if not robust:
        return "<p>No robust fit refused a training row.</p>", "", []
    votes, margin = np.zeros(len(split.train), dtype=int), np.zeros(len(split.train))
    suggested: dict[int, str] = {}
    for o in robust:
        refused = np.asarray(o.suspects)
        votes[refused] += 1
        margin[refused] += confidence_of(o.model.decision_function(split.X_train[refused]))
        for row, label in zip(refused.tolist(), o.model.predict(split.X_train[refused])):
            suggested.setdefault(row, str(label))
    order = sorted(np.flatnonzero(votes).tolist(), key=lambda i: (-votes[i], -margin[i]))
    intro = (
        f"<p>{len(order)} of {len(split.train)} training rows lie so far on the wrong side that a robust fit stopped "
        "believing their label. Look at these first.</p>"
    )
    return (
        intro,
        "refused by",
        [
            Suspect(int(split.train[i]), str(split.y_train[i]), suggested[i], f"{votes[i]} of {len(robust)}")
            for i in order
        ],
    )


def _refusals(comparison: Comparison) -> tuple[dict[int, int], int]:
    """Return how many robust fits refused a row, by its position in the data, and how many robust fits there are."""
    robust = [o for o in comparison.outcomes if o.suspects is not None]
    votes: dict[int, int] = {}
    for o in robust:
        for at in comparison.splits[0].train[np.asarray(o.suspects)].tolist():
            votes[at] = votes.get(at, 0) + 1
    return votes, len(robust)


def _telling_columns(comparison: Comparison) -> list[str]:
    """Return the columns with the largest coefficients in the best linear fit; without one, the first columns."""
    linear = [o for o in comparison.outcomes if is_linear(o)]
    if not linear:
        return comparison.data.features[:MOST_COLUMNS]
    encoder = comparison.splits[0].encoder
    best = min(linear, key=lambda o: o.error if not o.is_constant else 1.0)
    coef = np.abs(np.atleast_2d(best.model.coef_)).max(axis=0)
    weight: dict[str, float] = {}
    for name, size in zip(map(str, encoder.get_feature_names_out()), coef):
        column = name if name in encoder.number_columns_ else next(
            (c for c in encoder.category_columns_ if name.startswith(f"{c}=")), name
        )  # fmt: skip
        weight[column] = max(weight.get(column, 0.0), float(size))
    return sorted(weight, key=lambda c: -weight[c])[:MOST_COLUMNS]


def is_linear(outcome: Outcome) -> bool:
    """Whether a fit has one coefficient per encoded feature."""
    return hasattr(outcome.model, "coef_") and getattr(outcome.model, "kernel", "linear") == "linear"


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return "" if math.isnan(value) else f"{value:.4g}"
    return text(value, 40)
