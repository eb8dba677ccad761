"""A score card as text, HTML and SVG."""

from __future__ import annotations

import html
import re
import textwrap
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...estimators.rules.booster import RuleBooster
from ...rules.rules import Rule
from ...rules.text import merged_intervals, net_points

_STYLE = """<style>.psi-card{font:16px/1.4 system-ui,sans-serif;max-width:44rem;border-collapse:collapse;width:100%}
.psi-card+.psi-card{margin-top:1.2em}
.psi-card caption{text-align:left;padding:.35em .6em;font-weight:600}
.psi-card td,.psi-card th{padding:.35em .6em;border-bottom:1px solid #8886;text-align:left;overflow-wrap:anywhere}
.psi-card td:last-child,.psi-card th:last-child{text-align:right;white-space:nowrap}</style>"""

#: Height of a line of the picture, and letters that fit into one.
_SVG_LINE, _SVG_LETTERS = 28, 62


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

    @property
    def how(self) -> str:
        """What is done with the points."""
        return f"Add up the points: above 0 is {self.positive}, below 0 is {self.negative}, 0 is {self.otherwise}."

    def text(self) -> str:
        """The card as plain text."""
        width = max([len(condition) for condition, _ in self.lines] + [12])
        out = [self.how]
        out += [f"  {condition:<{width}}  {_signed(points):>6}" for condition, points in self.lines]
        if self.risks:
            out.append(f"score: share of {self.positive} among the training rows (rows)")
            out += [f"  {_signed(score):>6}: {100 * share:3.0f}% ({n})" for score, share, n in self.risks]
        return "\n".join(out)

    def _parts(self) -> list[list[tuple[str, str]]]:
        """Heads and lines of the points, and of the scores if there are any, in print."""
        parts = [[("if", "points")] + [(_in_print(condition), _in_print(_signed(p))) for condition, p in self.lines]]
        if self.risks:
            scores = [(_in_print(_signed(score)), f"{100 * share:.0f}% of {n}") for score, share, n in self.risks]
            parts.append([("score", self.positive), *scores])
        return parts

    def html(self) -> str:
        """The card as an HTML fragment."""
        tables: list[str] = []
        for head, *lines in self._parts():
            caption = "" if tables else f"<caption>{html.escape(self.how)}</caption>"
            rows = "".join(f"<tr><td>{html.escape(a)}</td><td>{html.escape(b)}</td></tr>" for a, b in lines)
            cells = "".join(f"<th>{html.escape(cell)}</th>" for cell in head)
            tables.append(f'<table class="psi-card">{caption}<tr>{cells}</tr>{rows}</table>')
        return _STYLE + "".join(tables)

    def svg(self) -> str:
        """The card as an SVG picture, black on white, for printing."""
        y, body = 14, ""
        for line in textwrap.wrap(self.how, _SVG_LETTERS):
            y += _SVG_LINE
            body += f'<text x="12" y="{y}" font-weight="bold">{html.escape(line)}</text>'
        for part in self._parts():
            y += _SVG_LINE // 2
            for k, (left, right) in enumerate(part):
                weight = ' font-weight="bold"' if k == 0 else ""
                y += _SVG_LINE
                body += f'<text x="548" y="{y}" text-anchor="end"{weight}>{html.escape(_cut(right, 20))}</text>'
                for place, line in enumerate(textwrap.wrap(left, _SVG_LETTERS - 10)):
                    y += _SVG_LINE - 6 if place else 0
                    body += f'<text x="12" y="{y}"{weight}>{html.escape(line)}</text>'
                body += f'<line x1="12" x2="548" y1="{y + 8}" y2="{y + 8}" stroke="#bbb"/>'
        frame = f'<rect x="1" y="1" width="558" height="{y + 22}" fill="white" stroke="black"/>'
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 560 {y + 24}" style="max-width:44rem" '
            f'font-family="sans-serif" font-size="15">{frame}{body}</svg>'
        )


def _signed(points: float) -> str:
    """Points with their sign, nothing as 0."""
    return f"{points:+.4g}" if points else "0"


def _in_print(text: str) -> str:
    """Comparisons and minus signs as printers set them."""
    return re.sub(r"^-(?=[\d.])", "\u2212", text).replace(" <= ", " \u2264 ")


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "\u2026"


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
