"""How good the model to use is: by class, by how sure it is, and what may be promised; shares with intervals."""

from __future__ import annotations

import math

import numpy as np

from ...evaluation.rates import Rate, area_under_roc, calibration, rate
from ...evaluation.selective import confidence_of
from ..compare.job import Comparison, Outcome
from ..compare.summary import promise
from ..pages import table, text

#: Classes up to which there is a whole table of confusions; beyond, the commonest confusions are listed.
MOST_CLASSES, MOST_CONFUSIONS = 8, 12
#: Groups of rows by how sure the model is.
GROUPS = 5


def shown_model(comparison: Comparison) -> Outcome | None:
    """Return the model that the report describes: the recommended one, if it is of use."""
    chosen = comparison.recommended
    return chosen if chosen is not None and comparison.is_useful(chosen) else None


def quality_section(comparison: Comparison, chosen: Outcome) -> str:
    """Return everything about the errors of the chosen model on the test rows."""
    parts = [
        f"<p>{text(chosen.method.label)}: {text(chosen.method.says, 300)} Chosen by its held-out error on the training "
        "rows; every figure here is from test rows it has not seen, with 95% intervals.</p>"
    ]
    if made := promise(comparison, chosen):
        parts.append(f"<p><b>{text(made[0], 400)}</b></p>")
    parts.append(_by_class(comparison, chosen))
    parts.append(_confusions(comparison, chosen))
    parts.append(_by_confidence(comparison, chosen))
    parts.append(_all_methods(comparison))
    return "".join(parts)


def _by_class(comparison: Comparison, chosen: Outcome) -> str:
    y, predicted = comparison.y_test, chosen.predicted
    labels = np.unique(y)
    rows = []
    for label in labels[:40]:
        called = predicted == label
        rows.append([text(label, 40), str(int(np.sum(y == label))), _share(rate(called[y == label])),
                     str(int(called.sum())), _share(rate(y[called] == label))])  # fmt: skip
    head = ["class", "test rows", "recognised", "called so", "of these right"]
    caption = "Each class: share recognised (sensitivity), and how often the answer is right (predictive value)"
    words = ""
    if labels.size == 2:
        rare, other = sorted(labels, key=lambda label: int(np.sum(y == label)))
        found, spared = rate(predicted[y == rare] == rare), rate(predicted[y == other] == other)
        words = (
            f"<p>For '{text(rare, 40)}', the rarer class: sensitivity {_share(found)}, specificity {_share(spared)}"
            + (f", area under the ROC curve {_area(chosen, comparison)}" if chosen.scores is not None else "")
            + ".</p>"
        )
    return words + table(head, rows, caption, (1, 3), (2, 4))


def _confusions(comparison: Comparison, chosen: Outcome) -> str:
    y, predicted = comparison.y_test, chosen.predicted
    labels = np.unique(np.r_[y, predicted])
    counts = np.array([[int(np.sum((y == a) & (predicted == b))) for b in labels] for a in labels])
    if labels.size <= MOST_CLASSES:
        rows = [
            [text(a, 40), *(_count_with_share(counts[i, j], counts[i].sum()) for j in range(labels.size))]
            for i, a in enumerate(labels)
        ]
        head = ["label", *(f"answered {text(b, 24)}" for b in labels)]
        caption = "Confusion matrix: rows by their label, columns by the answer"
        return table(head, rows, caption, range(1, labels.size + 1))
    pairs = [(counts[i, j], i, j) for i in range(labels.size) for j in range(labels.size) if i != j and counts[i, j]]
    rows = [
        [text(labels[i], 40), text(labels[j], 40), _count_with_share(n, counts[i].sum())]
        for n, i, j in sorted(pairs, reverse=True)[:MOST_CONFUSIONS]
    ]
    return table(["label", "answered", "rows"], rows, "The commonest confusions", (2,))


def _by_confidence(comparison: Comparison, chosen: Outcome) -> str:
    """Say how often answers are right by how sure the model is: do its scores mean anything?"""
    split = comparison.splits[0]
    if not hasattr(chosen.model, "decision_function"):
        return ""
    confidence = confidence_of(chosen.model.decision_function(split.testing(chosen.method)))
    right = ~chosen.wrong[: confidence.size]
    rows = [
        [f"{confidence[part].min():.3g} to {confidence[part].max():.3g}", str(part.size), _share(rate(right[part]))]
        for part in np.array_split(np.argsort(confidence, kind="stable"), min(GROUPS, max(1, confidence.size // 10)))
    ]
    return table(["margin", "test rows", "right"], rows, "How sure, how right", (1,), (0, 2))


def _all_methods(comparison: Comparison) -> str:
    y = comparison.y_test
    labels = np.unique(y)
    if labels.size != 2:
        return ""
    rows = []
    for o in comparison.outcomes:
        off = _calibration_error(o, y == labels[1])
        rows.append([
            text(o.method.label), _area(o, comparison) if o.scores is not None else "",
            *(_share(rate(~o.wrong[y == label])) for label in labels), "" if off is None else f"{100 * off:.1f} points",
        ])  # fmt: skip
    head = ["method", "area under the ROC curve", *(f"recognised {text(label, 24)}" for label in labels), "calibration"]
    caption = (
        "Every method; calibration: mean distance between predicted and observed shares, in ten groups, where a method "
        "knows probabilities"
    )
    return f"<details><summary>All methods</summary>{table(head, rows, caption, (), (1, 2, 3))}</details>"


def _calibration_error(outcome: Outcome, positive: np.ndarray) -> float | None:
    if outcome.probabilities is None or outcome.method.key == "majority":
        return None
    groups = calibration(outcome.probabilities, positive)
    return sum(n * abs(mean - seen.value) for mean, seen, n in groups) / sum(n for *_, n in groups)


def _area(outcome: Outcome, comparison: Comparison) -> str:
    y = comparison.y_test
    found = area_under_roc(outcome.scores if outcome.scores is not None else [], y == np.unique(y)[1])
    return "" if math.isnan(found.value) else f"{found.value:.3f} ({found.low:.3f}–{found.high:.3f})"


def _share(share: Rate) -> str:
    return "" if math.isnan(share.value) else str(share)


def _count_with_share(count: int, total: int) -> str:
    hits = np.arange(total) < count
    return f"{count}<br><small>{_share(rate(hits))}</small>"
