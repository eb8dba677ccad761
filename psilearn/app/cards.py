"""Rules for people: a score card as text, HTML and SVG, and a what-if form that works without a network."""

from __future__ import annotations

import html
import json
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..estimators.rules.booster import RuleBooster
from ..rules.rules import Rule
from ..rules.text import merged_intervals, net_points

_STYLE = """<style>.psi-card{font:16px/1.4 system-ui,sans-serif;max-width:44rem;border-collapse:collapse;width:100%}
.psi-card td,.psi-card th{padding:.35em .6em;border-bottom:1px solid #8886;text-align:left}
.psi-card td:last-child,.psi-card th:last-child{text-align:right;white-space:nowrap}
.psi-form label{display:flex;gap:1em;justify-content:space-between;padding:.25em 0;max-width:44rem;font:16px system-ui}
.psi-form input,.psi-form select{font:inherit;width:45%;max-width:16rem}
.psi-form output{display:block;font:700 18px system-ui;margin:.6em 0}.psi-fired{color:inherit;opacity:.4}
.psi-fired.on{opacity:1;font-weight:600}</style>"""


@dataclass(frozen=True)
class ScoreCard:
    """Lines of a two-class score card: (condition, points for the positive class), its classes, and risk by score.

    Attributes
    ----------
    lines : list of (str, float)
        Points may be negative; "always" is the constant.
    negative, positive : str
        The classes; a score above 0 is the positive one, and ``otherwise`` is given at 0.
    otherwise : str
    risks : list of (float, float, int)
        Scores with the share of the positive class among the rows that have them, made monotone, and their number;
        empty if no rows were given.
    """

    lines: list[tuple[str, float]]
    negative: str
    positive: str
    otherwise: str
    risks: list[tuple[float, float, int]]

    def text(self) -> str:
        """The card as plain text."""
        width = max([len(condition) for condition, _ in self.lines] + [12])
        out = [f"Add up the points: above 0 is {self.positive}, below 0 is {self.negative}, 0 is {self.otherwise}."]
        out += [f"  {condition:<{width}}  {points:+6.4g}" for condition, points in self.lines]
        if self.risks:
            out.append(f"score: share of {self.positive} among the training rows (rows)")
            out += [f"  {score:+6.4g}: {100 * share:3.0f}% ({n})" for score, share, n in self.risks]
        return "\n".join(out)

    def html(self) -> str:
        """The card as an HTML fragment."""
        rows = "".join(f"<tr><td>{html.escape(c)}</td><td>{p:+.4g}</td></tr>" for c, p in self.lines)
        risks = "".join(f"<tr><td>{s:+.4g}</td><td>{100 * r:.0f}% of {n}</td></tr>" for s, r, n in self.risks)
        table = (
            f'<table class="psi-card"><tr><th>score</th><th>{html.escape(self.positive)}</th></tr>{risks}</table>'
            if risks
            else ""
        )
        return (
            f'{_STYLE}<table class="psi-card"><caption>Add up the points: above 0 is {html.escape(self.positive)}, '
            f"below 0 is {html.escape(self.negative)}, 0 is {html.escape(self.otherwise)}.</caption>"
            f"<tr><th>if</th><th>points</th></tr>{rows}</table>{table}"
        )

    def svg(self) -> str:
        """The card as an SVG picture, black on white, for printing."""
        lines = [(condition, f"{points:+.4g}") for condition, points in self.lines]
        lines += [(f"score {s:+.4g}", f"{100 * r:.0f}% of {n}") for s, r, n in self.risks]
        height = 28 * (len(lines) + 2)
        head = f"{self.positive} if the points add up to more than 0"
        body = "".join(
            f'<text x="12" y="{28 * k + 62}">{html.escape(left)}</text>'
            f'<text x="548" y="{28 * k + 62}" text-anchor="end">{html.escape(right)}</text>'
            f'<line x1="12" x2="548" y1="{28 * k + 70}" y2="{28 * k + 70}" stroke="#bbb"/>'
            for k, (left, right) in enumerate(lines)
        )
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 560 {height}" font-family="sans-serif" '
            f'font-size="15">'
            f'<rect width="560" height="{height}" fill="white" stroke="black"/>'
            f'<text x="12" y="30" font-weight="bold">{html.escape(head)}</text>{body}</svg>'
        )


def score_card(model: RuleBooster, X: Any = None, y: Any = None) -> ScoreCard:
    """Return the card of a fitted booster with two classes, best one with whole ``points``.

    Parameters
    ----------
    model : LPBoostClassifier or L0BoostClassifier
        Fitted; two classes.
    X : array-like or DataFrame, optional
        Rows from which the share of the positive class by score is taken.
    y : array-like, optional
        Their labels.

    Returns
    -------
    ScoreCard
        With ``text()``, ``html()`` and ``svg()``.
    """
    if len(model.classes_) != 2:
        raise ValueError("A score card is for two classes; for more, export_text() lists the points of each class.")
    rules = [rule for rule in model.rules_ if isinstance(rule, Rule)]
    unit = 1.0 if model.points is not None else 100.0
    net = net_points(rules, model.weights_.tolist())
    net = merged_intervals(net, {rule.condition: (0.0, 0.0) for rule in rules} | {key: (0.0, 0.0) for key in net})
    lines = [(str(condition), unit * value) for condition, value in net.items()]
    negative, positive = (str(c) for c in model.classes_)
    otherwise = positive if model.class_share_[1] >= model.class_share_[0] else negative
    return ScoreCard(lines, negative, positive, otherwise, _risks(model, X, y, unit) if X is not None else [])


def _risks(model: RuleBooster, X: Any, y: Any, unit: float, most: int = 12) -> list[tuple[float, float, int]]:
    """Scores with the isotonic share of the positive class; close scores are put together."""
    from sklearn.isotonic import IsotonicRegression

    score = np.round(unit * model.decision_function(X), 6)
    levels = np.unique(score)
    if levels.size > most:
        levels = np.unique(np.quantile(score, np.linspace(0, 1, most), method="nearest"))
    place = np.abs(score[:, None] - levels).argmin(axis=1)
    is_positive = np.asarray(y) == model.classes_[1]
    n = np.bincount(place, minlength=levels.size)
    share = np.bincount(place, is_positive, minlength=levels.size) / np.maximum(n, 1)
    smooth = IsotonicRegression().fit_transform(levels, share, sample_weight=n)
    return [(float(s), float(r), int(k)) for s, r, k in zip(levels, smooth, n) if k]


def what_if_form(model: RuleBooster, row: Any = None) -> str:
    """Return a form, an HTML fragment with its own script: change values and see the rules that apply and the class.

    Parameters
    ----------
    model : LPBoostClassifier or L0BoostClassifier
        Fitted on conditions.
    row : DataFrame or array of one row, optional
        The values to begin with.

    Returns
    -------
    str
        The fragment, to be put anywhere into a page.
    """
    rules = [(rule, w) for rule, w in zip(model.rules_, model.weights_) if isinstance(rule, Rule)]
    attributes = list({a: None for rule, _ in rules for a, _ in rule.condition.parts})
    known = {a: None for a in model.attributes_}
    start = model._read_rows(row)[0] if row is not None else None
    fields = []
    for feature in sorted({a.feature for a in attributes}):
        mine = [a for a in known if a.feature == feature] or [a for a in attributes if a.feature == feature]
        value = start[feature][0] if start is not None else None
        numbers = [a for a in mine if a.kind == "above"]
        if numbers:
            missing = value is None or value != value
            now = float(numbers[0].fill) if missing else float(value)  # type: ignore[arg-type]
            fields.append({"name": mine[0].name, "feature": feature, "kind": "number", "value": now})
        else:
            options = [0, 1] if mine[0].kind == "flag" else [a.value for a in mine if a.kind == "equals"]
            now = value if value is not None and value == value else options[0]
            shown = [str(option) for option in options] + ["other"] * (mine[0].kind == "equals")
            text = str(int(now)) if mine[0].kind == "flag" else str(now)
            fields.append({"name": mine[0].name, "feature": feature, "kind": "choice", "options": shown, "value": text})
    spec = {
        "classes": [str(c) for c in model.classes_],
        "tie": int(np.argmax(model.class_share_)),
        "fields": fields,
        "rules": [
            {
                "text": str(rule.condition),
                "to": [str(c) for c in model.classes_].index(str(rule.label)) if _is_class(model, rule) else -1,
                "against": int(problem) if not _is_class(model, rule) else -1,
                "points": float((1.0 if model.points is not None else 100.0) * weight),
                "parts": [
                    {"feature": a.feature, "kind": a.kind, "value": a.value if a.kind == "above" else str(a.value),
                     "answer": bool(answer)}
                    for a, answer in rule.condition.parts
                ],
            }
            for (rule, weight), problem in zip(rules, model.rule_problem_)
        ],
    }  # fmt: skip
    data = json.dumps(spec).replace("<", "\\u003c")
    return f'{_STYLE}<div class="psi-form"><script type="application/json">{data}</script></div>{_SCRIPT}'


def _is_class(model: RuleBooster, rule: Rule) -> bool:
    return str(rule.label) in {str(c) for c in model.classes_}


_SCRIPT = """<script>(() => {
const box = document.currentScript.previousElementSibling, m = JSON.parse(box.querySelector("script").textContent);
const get = {}, out = document.createElement("output"), list = document.createElement("ul");
for (const f of m.fields) {
  const label = document.createElement("label");
  const input = document.createElement(f.kind === "number" ? "input" : "select");
  if (f.kind === "number") { input.type = "number"; input.step = "any"; }
  else for (const o of f.options) input.add(new Option(o, o));
  input.value = f.value; input.addEventListener("input", show); get[f.feature] = () => input.value;
  label.append(f.name, input); box.append(label);
}
box.append(out, list);
const holds = p => {
  const v = get[p.feature]();
  const yes = p.kind === "above" ? Number(v) > p.value : p.kind === "missing" ? false :
    p.kind === "flag" ? v === "1" : v === p.value;
  return yes === p.answer;
};
function show() {
  const score = m.classes.map(() => 0); list.replaceChildren();
  for (const r of m.rules) {
    const on = r.parts.every(holds), item = document.createElement("li");
    if (on && r.to >= 0) score[r.to] += r.points;
    if (on && r.against >= 0) score[r.against] -= r.points;
    item.textContent = Number(r.points.toPrecision(4)) + " for " +
      (r.to >= 0 ? m.classes[r.to] : "not " + m.classes[r.against]) + " if " + r.text;
    item.className = on ? "psi-fired on" : "psi-fired"; list.append(item);
  }
  const top = Math.max(...score), winners = score.map((s, k) => s > top - 1e-9 ? k : -1).filter(k => k >= 0);
  const k = winners.includes(m.tie) ? m.tie : winners[0];
  const sums = score.map((s, j) => m.classes[j] + " " + Number(s.toPrecision(4)));
  out.textContent = m.classes[k] + " (" + sums.join(", ") + ")";
}
show();
})()</script>"""
