"""The report's sections, each a function from a comparison to HTML."""

from __future__ import annotations

import math
import platform
from collections.abc import Sequence
from typing import Any

import numpy as np
import sklearn

from ... import __version__
from ...core.result import Certificate, Claim
from ...evaluation.rates import paired
from ..compare.abstain import answers
from ..compare.job import Comparison, Outcome
from ..compare.summary import flips_found, n_nonzero, n_support, standing, story
from ..compare.tuning import Tuning, in_words
from ..pages import data_script, table, text

#: The questions a report answers first.
QUESTIONS = {
    "Labels": "The labels",
    "Rows": "Which rows to look at?",
    "Model": "Which model to use?",
    "Rivals": "How does it compare?",
    "Promise": "What can be promised?",
}

_CLAIMS = {
    Claim.CONVEX: "The problem is convex and the gap is recomputed by us from dual multipliers: no solution of this "
    "model is better by more than the gap.",
    Claim.GLOBAL: "The problem has many local optima; a search over all of them proves that none is better by more "
    "than the gap. A large gap means that the search ran out of time: the solution is the best one found, and may or "
    "may not be the best there is.",
    Claim.CRITICAL: "A local optimum: small changes cannot improve it, a better solution elsewhere is not excluded.",
    Claim.RESTRICTED: "The best solution of a restricted problem; the full problem may have a better one.",
    Claim.NONE: "Nothing is proved about this fit.",
}


def section(name: str, title: str, body: str) -> str:
    """Return a section with a heading that can be linked to."""
    heading = f'<h2 id="{name}-title">{title}</h2>'
    return f'<section id="{name}-section" aria-labelledby="{name}-title">{heading}{body}</section>'


def header(comparison: Comparison, source: str, sections: Sequence[tuple[str, str]]) -> str:
    """Return title, the answers in words, and the list of sections."""
    links = "".join(f'<li><a href="#{name}-section">{title}</a></li>' for name, title in sections)
    answers = "".join(
        f"<dt>{text(QUESTIONS.get(topic, topic))}</dt><dd>{text(words, 900)}</dd>"
        for topic, words in story(comparison).items()
    )
    return (
        '<a class="skip" href="#main">Skip to the results</a><header>'
        f"<h1>Can the labels of {text(source)} be trusted?</h1>"
        f'<dl class="verdict">{answers}</dl>'
        f'<nav aria-label="Sections"><ul>{links}</ul></nav></header>'
    )


def data_section(comparison: Comparison) -> str:
    """Say what was understood of the table."""
    data = comparison.data
    classes = ", ".join(f"{text(c, 40)} ({n})" for c, n in list(data.class_counts.items())[:12])
    notes = "".join(f"<li>{text(note, 300)}</li>" for note in data.notes[:20])
    rows = [
        [text(c.name), text(c.kind), str(c.missing), str(c.levels or "")]
        for c in sorted(data.columns, key=lambda c: not c.is_used)
    ]
    used = sum(c.is_used for c in data.columns)
    columns = table(["column", "understood as", "missing", "different values"], rows[:200], "Columns", (2, 3))
    return (
        f"<p>{len(data.labels)} rows, {used} columns used as features, label <b>{text(data.target)}</b>: {classes}.</p>"
        + (f"<ul>{notes}</ul>" if notes else "")
        + f"<details><summary>All {len(rows)} columns</summary>{columns}</details>"
    )


def methods_section(comparison: Comparison) -> str:
    """Return the table of methods with intervals, and what was not run."""
    top = min(1.0, max((o.interval[1] for o in comparison.outcomes), default=1.0) * 1.05)
    svm = comparison.outcome("svm-l2")
    best = min((o.error for o in comparison.outcomes), default=0.0)
    rows = [_method_row(comparison, o, svm, best, top) for o in comparison.outcomes]
    head = [
        "method", "test error", f"95% interval,<br>0–{100 * top:.0f}%", "against SVM, l2", "coefs", "support",
        "suspects", "tuned", "seconds", "training optimum",
    ]  # fmt: skip
    caption = (
        "Errors on rows no method has seen, with Wilson's interval; rows only this method got right (+) or wrong (−) "
        "against the SVM, with McNemar's exact p"
    )
    notes = [f"{text(o.method.label)}: {text(n, 200)}." for o in comparison.outcomes for n in o.notes]
    notes += [f"{text(m.label)} was not run: {text(reason, 300)}" for m, reason in comparison.not_run]
    says = "".join(f"<dt>{text(o.method.label)}</dt><dd>{text(o.method.says, 300)}</dd>" for o in comparison.outcomes)
    flips = ""
    if comparison.settings.flip:
        n = len(comparison.splits[0].flipped)
        flips = (
            f"<p>{n} training labels ({100 * comparison.settings.flip:g}%) were flipped on purpose; the test labels "
            "were not. Under suspects: flipped labels found / samples the fit refused to believe.</p>"
        )
    caution = (
        ""
        if comparison.settings.flip
        else '<p class="note">Errors are counted against the labels as given. If those are wrong, a method that is '
        "right is charged for it.</p>"
    )
    return (
        flips
        + table(head, rows, caption, (1, 4, 5, 6, 8), (3, 9))
        + "".join(f'<p class="note">{n}</p>' for n in notes)
        + caution
        + f"<details><summary>What the methods are</summary><dl>{says}</dl></details>"
    )


def _method_row(comparison: Comparison, o: Outcome, svm: Outcome | None, best: float, top: float) -> list[str]:
    low, high = o.interval
    dot = (
        f'<div class="range{"" if o.method.is_ours else " outside"}" role="img" '
        f'aria-label="{100 * low:.1f} to {100 * high:.1f} percent">'
        f'<i style="left:{100 * low / top:.1f}%;width:{100 * (high - low) / top:.1f}%"></i>'
        f'<b style="left:{100 * o.error / top:.1f}%"></b></div>'
    )
    found = flips_found(comparison, o)
    suspects = f"{found[0]}/{found[1]}" if found else _count(None if o.suspects is None else len(o.suspects))
    versus = ""
    if svm is not None and svm is not o:
        gained, lost, p = paired(o.wrong, svm.wrong)
        versus = f"+{gained} −{lost}, p = {p:.1g}"
    mark = ' class="best"' if o.error == best else ""
    return [
        f"<span{mark}>{text(o.method.label)}</span>", f"<span{mark}>{100 * o.error:.1f}%</span>", dot, versus,
        _count(n_nonzero(o.model)), _count(n_support(o.model)), suspects, text(str(o.tuning)), f"{o.seconds:.1f}",
        text(standing(comparison, o)),
    ]  # fmt: skip


def _count(value: int | None) -> str:
    return "" if value is None else str(value)


def plane_section(data: dict[str, Any], explorer: str, is_projected: bool) -> str:
    """Return the explorer on this table's own rows."""
    how = (
        "The table has more than two features, so this picture shows its first two principal components, and both "
        "classifiers are fitted anew in it: it explains how they differ, not where the full models draw the line."
        if is_projected
        else "The picture shows the two features, standardised; the classifiers are fitted in the browser."
    )
    count = len(data["points"])
    note = f'<p class="note">{count} training rows. Drag one and see which boundary follows.</p>'
    return f"<p>{how}</p>{note}{explorer}"


def paths_section(data: list[dict[str, Any]]) -> str:
    """Return coefficients along C with a slider."""
    return (
        "<p>A small C trusts no single row and keeps the model simple; a large C follows the rows closely.</p>"
        '<div id="paths"><div class="controls"><label>Model <select></select></label>'
        '<label>C <input type="range" min="0" max="1" step="1" value="0"><output></output></label></div>'
        '<div class="chart"></div><p class="legend"></p><p class="says" aria-live="polite"></p></div>'
        + data_script("paths-data", data)
    )


def risk_section(comparison: Comparison, data: list[dict[str, Any]], everyone: list[dict[str, Any]]) -> str:
    """Return what every method answers at the price d, if asked for, and risk against coverage with a slider over d."""
    picture = (
        "<p>A classifier that may abstain answers only where it is sure. The line shows the error among the answered "
        "test rows when only the surest are answered; the dot is where the price d of an abstention puts it.</p>"
        '<div id="risk"><div class="controls"><label>d, the price of “I don\'t know” '
        '<input type="range" min="0" max="1" step="1" value="0"><output></output></label></div>'
        '<div class="chart"></div><p class="says" aria-live="polite"></p></div>' + data_script("risk-data", data)
    )
    return _answers_table(comparison) + _answers_picture(everyone) + picture


def _answers_table(comparison: Comparison) -> str:
    d, rows = comparison.settings.d, []
    for o in comparison.outcomes:
        if o.abstained is not None:
            a = answers(o.wrong, o.abstained, d)
            cells = (o.method.label, f"{100 * a.coverage:.1f}%", f"{100 * a.error:.1f}%", f"{a.cost:.4f}")
            rows.append([text(cell) for cell in cells])
    if not rows:
        return ""
    caption = f"Answers and abstentions: an abstention costs {d:g}, an error 1"
    return (
        "<p>A method without a rule of its own abstains where its probabilities or scores are least sure.</p>"
        + table(["method", "answered", "error among answered", "cost per row"], rows, caption, (1, 2, 3))
    )


def _answers_picture(everyone: list[dict[str, Any]]) -> str:
    if not everyone:
        return ""
    return (
        "<p>Each line answers first where its method is surest, by its largest probability or by its margin. The dot "
        "is the method's own choice at this price.</p>"
        '<div id="answers"><div class="chart"></div><p class="legend"></p></div>'
        + data_script("answers-data", everyone)
    )


def rules_section(outcomes: Sequence[Outcome]) -> str:
    """Return the rules in words."""
    parts = ["<p>Each rule that applies gives its points to a class; the class with more points wins.</p>"]
    for outcome in outcomes:
        parts.append(f"<h3>{text(outcome.method.label)}</h3>")
        lines = outcome.model.export_text().splitlines()
        parts.append(f"<pre>{chr(10).join(text(line, 300) for line in lines[:200])}</pre>")
    return "".join(parts)


def certificates_section(comparison: Comparison, data: list[dict[str, Any]]) -> str:
    """Say what is proved about each fit, with the closing of the bounds."""
    rows = []
    claims = []
    for o in comparison.outcomes:
        certificate = getattr(o.model, "certificate_", None)
        if not isinstance(certificate, Certificate):
            continue
        claims.append(certificate.claim)
        bound = f"{o.model.lower_bound_:.6g}" if math.isfinite(o.model.lower_bound_) else "none"
        gap = f"{100 * o.model.gap_:.3g}%" if math.isfinite(o.model.gap_) else ""
        checked = "recomputed here" if certificate.rechecked else f"attested by {certificate.engine}"
        rows.append([
            text(o.method.label), text(certificate.claim.value), f"{o.model.objective_:.6g}", bound, gap,
            checked if math.isfinite(o.model.lower_bound_) else "", text(o.model.status_.value),
        ])  # fmt: skip
    head = ["method", "claim", "objective", "lower bound", "gap", "bound", "stopped because"]
    words = "".join(f"<dt>{text(c.value, 80)}</dt><dd>{_CLAIMS[c]}</dd>" for c in dict.fromkeys(claims))
    return (
        "<p>Every fit of ours minimises a stated objective. The lower bound says how small it could possibly be; the "
        "gap is what is left unproved.</p>"
        + table(head, rows, "Certificates", (2, 3, 4))
        + f"<dl>{words}</dl>"
        + (f'<div id="bounds"></div>{data_script("bounds-data", data)}' if data else "")
    )


def _tried(tuning: Tuning) -> str:
    """Return the candidates of a tuning with their errors."""
    return "; ".join(
        f"{text(in_words(params))}: " + ("no time" if math.isnan(error) else f"{100 * error:.1f}%")
        for params, error in tuning.tried
    )


def settings_section(comparison: Comparison, command: str) -> str:
    """Return everything needed to repeat the comparison."""
    s = comparison.settings
    split = comparison.splits[0]
    facts = {
        "seed": s.seed,
        "test": f"{s.outer_folds}-fold cross-validation" if s.outer_folds else f"{len(split.test)} rows held out",
        "tuning": f"{s.tuning_folds} folds within the {len(split.train)} training rows",
        "flipped labels": f"{100 * s.flip:g}% of the training labels",
        "time": f"{comparison.seconds:.1f} s for the methods, of {s.budget:g} s allowed",
        "features": f"{split.X_train.shape[1]} after encoding: medians for missing numbers, one column per category, "
        "all standardised on the training rows",
        "versions": f"psilearn {__version__}, scikit-learn {sklearn.__version__}, numpy {np.__version__}, "
        f"Python {platform.python_version()}",
    }
    grids = "".join(
        f"<dt>{text(o.method.label)}: {text(str(o.tuning))}</dt><dd>{_tried(o.tuning)}</dd>"
        for o in comparison.outcomes
        if o.tuning.tried
    )
    return (
        f"<pre><code>{text(command, 500)}</code></pre><dl>"
        + "".join(f"<dt>{k}</dt><dd>{text(v, 300)}</dd>" for k, v in facts.items())
        + f"</dl><details><summary>Values tried in tuning</summary><dl>{grids}</dl></details>"
    )
