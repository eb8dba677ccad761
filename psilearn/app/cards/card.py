"""A score card as text, HTML and SVG."""

from __future__ import annotations

import html
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...estimators.rules.booster import RuleBooster
from ...rules.rules import Rule
from ...rules.text import merged_intervals, net_points

_STYLE = """<style>.psi-card{font:16px/1.4 system-ui,sans-serif;max-width:44rem;border-collapse:collapse;width:100%}
.psi-card caption{text-align:left;padding:.35em .6em;font-weight:600}
.psi-card td,.psi-card th{padding:.35em .6em;border-bottom:1px solid #8886;text-align:left;overflow-wrap:anywhere}
.psi-card td:last-child,.psi-card th:last-child{text-align:right;white-space:nowrap}</style>"""


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
