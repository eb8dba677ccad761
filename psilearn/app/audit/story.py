"""The answer of an audit in words: can the labels be trusted, how many are wrong, which rows are worth a look."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..words import shown

if TYPE_CHECKING:
    import pandas as pd

#: Rows whose label is wrong with at least this probability are worth a look.
WORTH_A_LOOK = 0.25
#: p-value below which "no label is wrong" is rejected.
REJECTED = 0.01


def answer(issues: pd.DataFrame) -> list[str]:
    """Return the sentences with which an audit begins.

    Parameters
    ----------
    issues : DataFrame
        What :func:`psilearn.find_label_issues` returned.
    """
    return [_skill(issues), *(_refusal(issues) if is_refused(issues) else [_share(issues), _rows(issues)])]


def judge(issues: pd.DataFrame) -> str:
    """Say which model the answer rests on."""
    return f"Judged by {issues.attrs['model']}."


def probability(value: float) -> str:
    """Return a probability in words; nothing is certain."""
    return "more than 99%" if value > 0.995 else f"{100 * value:.0f}%"


def is_refused(issues: pd.DataFrame) -> bool:
    """Whether the audit declined to estimate the share of wrong labels."""
    return bool(np.isnan(issues.attrs["share"]))


def worth_a_look(issues: pd.DataFrame) -> pd.DataFrame:
    """Return the rows that a person should look at, most suspicious first; none if the audit refused."""
    return issues.head(0) if is_refused(issues) else issues[issues["score"] >= WORTH_A_LOOK]


def _skill(issues: pd.DataFrame) -> str:
    error, chance = issues.attrs["held_out_error"], issues.attrs["chance_error"]
    largest = issues["given"].mode()[0]
    text = (
        f"A model that learnt from the other rows disagrees with {_percent(error)} of the labels; "
        f"always answering '{shown(largest, 30)}' disagrees with {_percent(chance)}"
    )
    return text + (f", {chance / error:.1f} times as many." if error and not is_refused(issues) else ".")


def _refusal(issues: pd.DataFrame) -> list[str]:
    return [
        "That is not reliably better than guessing. A label can only be doubted where the columns tell something about "
        "it, so no share of wrong labels is estimated. Perhaps the columns that matter are missing, there are too few "
        "rows, or very many labels are wrong.",
        "Any order of the rows by suspicion is a guess.",
    ]


def _share(issues: pd.DataFrame) -> str:
    share, (low, high), n = issues.attrs["share"], issues.attrs["share_interval"], len(issues)
    p = issues.attrs["p_clean"]
    interval = f"90% interval {_percent(low)} to {_percent(high)}"
    if np.isnan(p):
        if round(high * n) == 0:
            return "After the corrections no label looks wrong."
        return f"After the corrections {_percent(share)} of the labels are wrong, {_rows_of(share * n)} ({interval})."
    if p >= REJECTED and round(high * n) == 0:
        return f"No label looks wrong; the test of 'no label is wrong' does not reject it (p = {p:.2g})."
    if p >= REJECTED and round(share * n) > 0:
        return (
            f"Perhaps {_rows_of(share * n)} of {n} are wrong, no more than {round(high * n)}; clean labels could look "
            f"like this, too: the test of 'no label is wrong' does not reject it (p = {p:.2g})."
        )
    if p >= REJECTED:
        look = "looks" if round(high * n) == 1 else "look"
        return (
            f"The labels may well be clean: no more than {_rows_of(high * n)} of {n} {look} wrong, and "
            f"the test of 'no label is wrong' does not reject it (p = {p:.2g})."
        )
    return (
        f"About {_percent(share)} of the labels are wrong: {_rows_of(share * n)} of {n} ({interval}); "
        f"'no label is wrong' is rejected (p {_p(p)})."
    )


def _rows(issues: pd.DataFrame) -> str:
    rows = worth_a_look(issues)
    if rows.empty:
        return "No single row stands out."
    expected = max(1, round(float(rows["score"].sum())))
    return f"{_rows_of(len(rows))} {'is' if len(rows) == 1 else 'are'} worth a look; about {expected} of them wrong."


def _rows_of(count: float) -> str:
    n = round(count)
    return "1 row" if n == 1 else f"{n} rows"


def _percent(share: float) -> str:
    return f"{100 * share:.1f}%" if 0 < share < 0.1 else f"{100 * share:.0f}%"


def _p(value: float) -> str:
    return "< 0.0001" if value < 1e-4 else f"= {value:.2g}"
