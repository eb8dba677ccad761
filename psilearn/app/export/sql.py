"""A model as one SELECT in plain SQL (tried in SQLite and DuckDB).

Number columns must hold numbers, or NULL where they are missing. Category columns are compared as text without spaces
around it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ...rules.attributes import Attribute
from .formula import MISSING, OTHER, Column, ExportError, Formula, Linear, RuleSum


def to_sql(formula: Formula, table: str = "data") -> str:
    """Return a SELECT that adds ``prediction``, the scores and, where the model may abstain, ``abstains``.

    Parameters
    ----------
    formula : Formula
    table : str
        The table to read.
    """
    if isinstance(formula.scores, Linear):
        sums = _linear(formula, formula.scores)
    elif isinstance(formula.scores, RuleSum):
        sums = _rules(formula, formula.scores)
    else:
        raise ExportError("A kernel machine is no plain SQL; export it to ONNX, or fit a linear model or rules.")
    names = ["score"] if len(sums) == 1 else [f"score of {label}" for label in formula.classes]
    inner = ",\n".join(f"    {total} AS {_name(name)}" for total, name in zip(sums, names))
    outer = [f"  {_prediction(formula, [_name(n) for n in names])} AS prediction"]
    if formula.threshold is not None:
        outer.append(f"  {_lead([_name(n) for n in names])} <= {_number(formula.threshold)} AS abstains")
    body = ",\n".join(["  *", *outer])
    return f"SELECT\n{body}\nFROM (\n  SELECT *,\n{inner}\n  FROM {_name(table)}\n) AS scored\n"


def _linear(formula: Formula, linear: Linear) -> list[str]:
    """One sum per class; every number column is one product, every category one CASE."""
    totals = []
    for weights, intercept in zip(linear.coef, linear.intercept):
        constant, products = float(intercept), []
        cases: dict[int, dict[str, float]] = {}
        for weight, feature in zip(weights, formula.features):
            slope = float(weight) / feature.scale
            constant -= slope * feature.mean
            if slope == 0.0:
                continue
            if feature.level is None:
                products.append(f"{_number(slope)} * {_value(formula.columns[feature.column])}")
            else:
                cases.setdefault(feature.column, {})[feature.level] = slope
        products += [_case(formula.columns[at], slopes) for at, slopes in cases.items()]
        totals.append("\n      + ".join([_number(constant), *products]))
    return totals


def _case(column: Column, slopes: dict[str, float]) -> str:
    """The contribution of a category; where it has a level "other", every level without a column of its own counts."""
    levels = column.levels or ()
    named = [level for level in levels if level != OTHER or OTHER not in slopes]
    whens = " ".join(f"WHEN {_literal(level)} THEN {_number(slopes.get(level, 0.0))}" for level in named)
    rest = _number(slopes.get(OTHER, 0.0))
    if not whens:
        return rest
    return f"CASE COALESCE(TRIM(CAST({_name(column.name)} AS TEXT)), {_literal(MISSING)}) {whens} ELSE {rest} END"


def _rules(formula: Formula, rules: RuleSum) -> list[str]:
    totals = []
    for weights, intercept in zip(rules.weights.T, rules.intercept):
        parts = [_number(float(intercept))]
        for condition, weight in zip(rules.conditions, weights):
            if weight == 0.0:
                continue
            if not condition:
                parts.append(_number(float(weight)))
                continue
            asked = " AND ".join(_answer(formula.columns, attribute, answer) for attribute, answer in condition)
            parts.append(f"CASE WHEN {asked} THEN {_number(float(weight))} ELSE 0.0 END")
        totals.append("\n      + ".join(parts))
    return totals


def _answer(columns: tuple[Column, ...], attribute: Attribute, answer: bool) -> str:
    column = columns[attribute.feature]
    name = _raw(column)
    if attribute.kind == "missing":
        return f"{name} IS {'NULL' if answer else 'NOT NULL'}"
    if attribute.kind == "above":
        value, is_filled = _number(float(attribute.value)), not np.isnan(attribute.fill)
        left = f"COALESCE({name}, {_number(float(attribute.fill))})" if is_filled else name
        if answer or is_filled:
            return f"{left} {'>' if answer else '<='} {value}"
        return f"({name} IS NULL OR {name} <= {value})"
    wanted = 1 if attribute.kind == "flag" else attribute.value
    shown = f"CAST({name} AS TEXT)" if isinstance(wanted, str) else name
    return f"{shown} = {_literal(wanted)}" if answer else f"({name} IS NULL OR {shown} <> {_literal(wanted)})"


def _prediction(formula: Formula, scores: list[str]) -> str:
    """The class of the largest score, the first of equals, as in Python."""
    labels = [_literal(label) for label in formula.classes.tolist()]
    if len(scores) == 1:
        ties = f"WHEN ABS({scores[0]}) < {_number(formula.tie)} THEN {labels[int(formula.tie_score > 0)]} "
        return f"CASE {ties if formula.tie else ''}WHEN {scores[0]} > 0 THEN {labels[1]} ELSE {labels[0]} END"
    whens = []
    for at, label in enumerate(labels[:-1]):
        best = " AND ".join(f"{scores[at]} >= {other}" for j, other in enumerate(scores) if j > at)
        whens.append(f"WHEN {best} THEN {label}")
    return f"CASE {' '.join(whens)} ELSE {labels[-1]} END"


def _lead(scores: list[str]) -> str:
    """How far the first class is ahead of the second: the smallest lead over the others, of the class that leads."""
    if len(scores) == 1:
        return f"ABS({scores[0]})"
    pairs = [
        (at, [f"{scores[at]} - {other}" for j, other in enumerate(scores) if j != at]) for at in range(len(scores))
    ]
    whens = []
    for at, leads in pairs:
        best = " AND ".join(f"{scores[at]} >= {other}" for j, other in enumerate(scores) if j != at)
        whens.append(f"WHEN {best} THEN {_least(leads)}")
    return f"CASE {' '.join(whens)} END"


def _least(values: list[str]) -> str:
    """The smallest of some values (MIN and LEAST are not the same function everywhere)."""
    if len(values) == 1:
        return values[0]
    first, rest = values[0], _least(values[1:])
    return f"CASE WHEN {first} <= ({rest}) THEN {first} ELSE {rest} END"


def _value(column: Column) -> str:
    raw = _raw(column)
    return raw if np.isnan(column.fill) else f"COALESCE({raw}, {_number(column.fill)})"


def _raw(column: Column) -> str:
    """A column; values that are codes for "missing" are NULL."""
    name = _name(column.name)
    if not column.codes:
        return name
    return f"CASE WHEN {name} IN ({_listed(column.codes)}) THEN NULL ELSE {name} END"


def _listed(values: Iterable[float]) -> str:
    return ", ".join(_number(float(value)) for value in values)


def _name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _literal(value: Any) -> str:
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int | float):
        return repr(value)
    return "'" + str(value).replace("'", "''") + "'"


def _number(value: float) -> str:
    """A number with all its digits; the exponent makes it a double, not a decimal of few digits."""
    return f"{value:.17e}"
