"""The what-if form: change values, see which rules apply, the class, and the nearest way to another one."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...estimators.rules.booster import RuleBooster
from ...estimators.rules.votes import TIE
from ...rules.attributes import Attribute, Conjunction, Table
from ...rules.reading import MOST_FEATURES, MOST_TRIALS
from ...rules.rules import Rule
from ..pages import asset, inert_json
from ..words import shown

_STYLE = """<style>.psi-form{font:16px/1.45 system-ui,sans-serif;max-width:44rem;margin-bottom:1.5em}
.psi-form label{display:flex;flex-wrap:wrap;align-items:center}
.psi-form label{gap:.2em 1em;justify-content:space-between;padding:.25em 0}
.psi-form label span{overflow-wrap:anywhere;flex:1 1 9rem}
.psi-form input,.psi-form select{font:inherit;flex:1 1 8rem;max-width:16rem;min-width:0;padding:.25em}
.psi-form output{display:block;font-weight:700;font-size:1.15em;margin:.6em 0;overflow-wrap:anywhere}
.psi-form ul{padding-left:1.2em;margin:.3em 0}.psi-form li,.psi-form p{overflow-wrap:anywhere}
.psi-form button{font:inherit;padding:.2em .8em}</style>"""
#: Characters of a condition, and of a name or a category, that are shown.
_LONG, _SHORT = 300, 60


def what_if_form(model: RuleBooster, row: Any = None) -> str:
    """Return a form, an HTML fragment with its own script: change values and see the rules that apply and the class.

    It also names the nearest values that would give another class (of three features at most). An empty number, or the
    choice "missing", is a missing value, and read as the model reads one.

    Parameters
    ----------
    model : LPBoostClassifier or L0BoostClassifier
        Fitted on conditions.
    row : DataFrame or array of one row, optional
        The values to begin with; medians and first categories if None.

    Returns
    -------
    str
        The fragment, to be put anywhere into a page. It needs no network.
    """
    if model.base_learner is not None:
        raise ValueError("A what-if form is for rules with conditions, not for those of another base_learner.")
    start = model._read_rows(row)[0] if row is not None else None
    attributes = {a: None for rule in model._conditions() for a, _ in rule.condition.parts}
    features = sorted({a.feature for a in attributes})
    known = [a for a in {**dict.fromkeys(model.attributes_), **attributes} if a.feature in features]
    spec = {
        "classes": [shown(c, _SHORT) for c in model.classes_],
        "share": model.class_share_.tolist(),
        "tie": TIE,
        "unit": model._unit,
        "mostFeatures": MOST_FEATURES,
        "mostTrials": MOST_TRIALS,
        "fields": [_field([a for a in known if a.feature == feature], start) for feature in features],
        "rules": [
            _rule(rule, float(weight), int(problem), features, known, len(model.classes_))
            for rule, weight, problem in zip(model.rules_, model.weights_, model.rule_problem_)
            if isinstance(rule, Rule)
        ],
    }
    data = f'<script type="application/json">{inert_json(spec)}</script>'
    return f'{_STYLE}<div class="psi-form">{data}</div><script>{asset("cards", "form.js")}</script>'


def _categories(mine: list[Attribute]) -> list[Attribute]:
    """The attributes of a feature that name a category."""
    return [a for a in mine if a.kind == "equals"]


def _field(mine: list[Attribute], start: Table | None) -> dict[str, Any]:
    """A feature as a field of the form, with the value to begin with."""
    name = shown(mine[0].name, _SHORT)
    value = start[mine[0].feature][0] if start is not None else None
    is_missing = value is None or value != value
    numbers = [a for a in mine if a.kind == "above"]
    if numbers:
        now = float(numbers[0].fill) if start is None else None if is_missing else float(value)  # type: ignore[arg-type]
        return {"name": name, "kind": "number", "value": now}
    if mine[0].kind == "flag":
        return {"name": name, "kind": "choice", "options": ["0", "1"], "value": int(start is not None and value == 1)}
    named = [a.value for a in _categories(mine)]
    options = [shown(v, _SHORT) for v in named] + (["another"] if named else ["known"]) + ["missing"]
    place = named.index(value) if value in named else len(named)
    at = (0 if start is None else len(named) + 1 if is_missing else place)  # fmt: skip
    return {"name": name, "kind": "choice", "options": options, "missing": len(named) + 1, "value": at}


def _rule(
    rule: Rule, weight: float, problem: int, features: list[int], known: list[Attribute], n_classes: int
) -> dict[str, Any]:
    """A rule as the script reads it."""
    return {
        "text": shown(rule.condition, _LONG),
        "to": problem if n_classes > 2 else int(rule.sign > 0),
        "sign": rule.sign,
        "weight": weight,
        "reliability": rule.reliability,
        "parts": [_part(a, answer, features, known) for a, answer in rule.condition.parts],
    }


def _part(a: Attribute, answer: bool, features: list[int], known: list[Attribute]) -> dict[str, Any]:
    """A question of a rule: about which field, and how it is answered."""
    value: Any = None
    if a.kind == "above":
        value = float(a.value)
    elif a.kind == "equals":
        value = _categories([b for b in known if b.feature == a.feature]).index(a)
    words = [shown(Conjunction(((a, given),)), _LONG) for given in (True, False)]
    fill = float(a.fill) if np.isfinite(a.fill) else 0.0
    return {
        "field": features.index(a.feature), "kind": a.kind, "value": value, "fill": fill, "answer": answer,
        "words": words,
    }  # fmt: skip
