"""The audit of a whole table: label issues with reasons and prices, and what else is wrong with it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from ...estimators.margin import TruncatedHingeClassifier
from ..encoding import TableEncoder
from ..label_prices import certify_labels
from ..tables import TableError, Understanding
from .checks import Finding, findings
from .issues import find_label_issues
from .noise import Array
from .reasons import Reason, reasons
from .story import is_refused, worth_a_look

#: Rows that are explained and shown, and rows whose belief is priced, at most.
MOST_EXPLAINED, MOST_PRICED = 10_000, 20
#: More rows than this have no proved prices: no search of seconds proves one.
MOST_ROWS_PRICED = 2000
#: C and truncation point of the fit behind the prices; features are standardised.
PRICE_C, PRICE_TRUNCATION = 0.1, -1.0


@dataclass(frozen=True)
class TableAudit:
    """What an audit found.

    Attributes
    ----------
    data : Understanding
        The table.
    issues : DataFrame
        As :func:`psilearn.find_label_issues` returns it, with ``row`` (in the file, from 1), ``id`` if the table has
        identifiers, ``price`` (proved relative loss of believing the label, nan where nothing is proved) and
        ``decided`` (a person has confirmed the label).
    reasons : dict of int to Reason
        Why the rows worth a look are doubted, by ``index``.
    findings : list of Finding
        What else is wrong.
    """

    data: Understanding
    issues: pd.DataFrame
    reasons: dict[int, Reason]
    findings: list[Finding]

    @property
    def suspects(self) -> pd.DataFrame:
        """The rows worth a look, most suspicious first."""
        return self.issues[self.issues["index"].isin(list(self.reasons))]

    def ranking(self) -> pd.DataFrame:
        """Return all rows, most suspicious first, for a file: with reasons in words, without ``index``."""
        words = self.issues["index"].map({row: why.text for row, why in self.reasons.items()}).fillna("")
        return self.issues.assign(reason=words).drop(columns="index")


def audit_table(
    data: Understanding,
    *,
    identifiers: dict[str, pd.Series] | None = None,
    annotators: pd.DataFrame | None = None,
    known: NDArray[np.bool_] | None = None,
    corrected: NDArray[np.bool_] | None = None,
    repeats: int | None = None,
    seed: int = 0,
    exact: float = 0.0,
    progress: Callable[[str, float], None] = lambda text, done: None,
) -> TableAudit:
    """Audit a table.

    Parameters
    ----------
    data : Understanding
        The table.
    identifiers : dict of str to Series, optional
        Columns that name rows, which are checked for knowing the label.
    annotators : DataFrame, optional
        Further labels of the same rows, one column per annotator.
    known, corrected : ndarray of bool, optional
        Rows whose label a person has confirmed, and which of them had another one before.
    repeats, seed : int
        How often the rows are divided anew, and the seed of the divisions.
    exact : float
        Seconds for proving prices, two classes only; 0 proves none.
    progress : callable
        Called with a text and the share done.
    """
    encoder = TableEncoder(numbers=data.numbers, codes=data.codes)
    X = encoder.fit_transform(data.frame)
    labels = data.labels.to_numpy(dtype=str)
    try:
        issues = find_label_issues(
            X, labels, groups=data.groups, annotators=annotators, known=known, corrected=corrected, repeats=repeats,
            random_state=seed, progress=lambda text, done: progress(text, 0.9 * done),
        )  # fmt: skip
    except ValueError as error:
        raise TableError(str(error)) from None
    issues.insert(0, "row", data.rows[issues["index"]])
    if data.ids is not None:
        issues.insert(1, "id", data.ids.to_numpy()[issues["index"]])
    issues["decided"] = False if known is None else known[issues["index"]]
    found = findings(data, X, identifiers or {})
    explained = _explained(issues, found)
    progress("explaining", 0.92)
    by_row = issues.set_index("index").sort_index()
    why = reasons(
        data.frame, X, labels, by_row["suggested"].to_numpy(), by_row["score"].to_numpy(), explained
    )  # fmt: skip
    progress("proving prices", 0.95)
    issues["price"] = _prices(X, labels, explained[:MOST_PRICED], exact)[issues["index"]]
    progress("done", 1.0)
    return TableAudit(data, issues, dict(zip(explained.tolist(), why)), found)


def _explained(issues: pd.DataFrame, found: Sequence[Finding]) -> NDArray[np.intp]:
    """Return the rows worth a look that nobody has confirmed; if the audit refused, those that contradict another."""
    rows = worth_a_look(issues)["index"]
    if is_refused(issues):
        rows = pd.Series([row for finding in found if finding.name == "contradictory rows" for row in finding.rows])
    rows = issues["index"].to_numpy()[(issues["index"].isin(rows) & ~issues["decided"]).to_numpy()]
    return rows[:MOST_EXPLAINED]


def _prices(X: Array, labels: NDArray, rows: NDArray, seconds: float) -> Array:
    """Return the proved prices of believing labels, nan where there is none."""
    out = np.full(labels.size, np.nan)
    if seconds <= 0 or not rows.size or labels.size > MOST_ROWS_PRICED or np.unique(labels).size != 2:
        return out
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = TruncatedHingeClassifier(C=PRICE_C, s=PRICE_TRUNCATION, solver="dca").fit(X, labels)
        mine = np.intersect1d(rows, model.suspects_)
        if mine.size:
            prices = certify_labels(model, X, labels, suspects=mine, time_limit=seconds)
            prices = prices[prices["price"] > 0]
            out[prices["index"]] = prices["price"]
    return out
