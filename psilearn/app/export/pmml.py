"""A model as PMML 4.4: linear models as RegressionModel, rules as RuleSetModel.

A RegressionModel for two classes has one table for each, that of the first being zero; PMML answers the class of the
larger softmax, which is that of the larger value. (Without a normalisation PMML takes the values for probabilities,
and the last class's for one minus the others.) Rules vote for classes with weights that PMML adds up ("weightedSum");
a rule against a class of several votes for all others, which changes no difference.
"""

from __future__ import annotations

import xml.etree.ElementTree as xml
from typing import Any

import numpy as np

from ... import __version__
from ...rules.attributes import Attribute
from .formula import MISSING, OTHER, Column, ExportError, Formula, Linear, RuleSum

NAMESPACE = "http://www.dmg.org/PMML-4_4"
TARGET = "prediction"


def to_pmml(formula: Formula) -> str:
    """Return the model as the text of a PMML file."""
    if formula.threshold is not None:
        raise ExportError("PMML has no way to abstain; export this model to ONNX or SQL.")
    root = xml.Element("PMML", version="4.4", xmlns=NAMESPACE)
    header = xml.SubElement(root, "Header")
    xml.SubElement(header, "Application", name="psilearn", version=__version__)
    _dictionary(root, formula)
    if isinstance(formula.scores, Linear):
        _regression(root, formula, formula.scores)
    elif isinstance(formula.scores, RuleSum):
        _rule_set(root, formula, formula.scores)
    else:
        raise ExportError("Kernel machines go to ONNX; PMML takes linear models and rules.")
    xml.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + xml.tostring(root, encoding="unicode") + "\n"


def _dictionary(root: xml.Element, formula: Formula) -> None:
    dictionary = xml.SubElement(root, "DataDictionary", numberOfFields=str(len(formula.columns) + 1))
    for column in formula.columns:
        if column.levels is None:
            field = xml.SubElement(dictionary, "DataField", name=column.name, optype="continuous", dataType="double")
            for code in column.codes:
                xml.SubElement(field, "Value", value=repr(float(code)), property="missing")
        else:
            xml.SubElement(dictionary, "DataField", name=column.name, optype="categorical", dataType="string")
    kind = {"i": "integer", "u": "integer", "f": "double", "b": "boolean"}.get(formula.classes.dtype.kind, "string")
    field = xml.SubElement(dictionary, "DataField", name=TARGET, optype="categorical", dataType=kind)
    for label in formula.classes.tolist():
        xml.SubElement(field, "Value", value=_label(label))


def _schema(model: xml.Element, formula: Formula, is_filled: bool) -> None:
    schema = xml.SubElement(model, "MiningSchema")
    xml.SubElement(schema, "MiningField", name=TARGET, usageType="target")
    for column in formula.columns:
        field = xml.SubElement(schema, "MiningField", name=column.name)
        if is_filled and column.levels is not None:
            field.set("missingValueReplacement", MISSING)
        elif is_filled and not np.isnan(column.fill):
            field.set("missingValueReplacement", repr(column.fill))


def _regression(root: xml.Element, formula: Formula, linear: Linear) -> None:
    model = xml.SubElement(
        root, "RegressionModel", functionName="classification", targetFieldName=TARGET, normalizationMethod="softmax"
    )
    _schema(model, formula, is_filled=True)
    coef, intercept = linear.coef, linear.intercept
    if formula.classes.size == 2:  # PMML wants a table for each class
        coef, intercept = np.vstack([0.0 * coef, coef]), np.r_[0.0, intercept]
    for label, weights, constant in zip(formula.classes.tolist(), coef, intercept):
        slopes = [float(weight) / feature.scale for weight, feature in zip(weights, formula.features)]
        constant = float(constant) - sum(slope * feature.mean for slope, feature in zip(slopes, formula.features))
        # where a category has a level "other", every known level takes its weight back
        other = {f.column: slope for slope, f in zip(slopes, formula.features) if f.level == OTHER}
        table = xml.SubElement(
            model, "RegressionTable", targetCategory=_label(label), intercept=repr(constant + sum(other.values()))
        )
        numbers = [(f, slope) for slope, f in zip(slopes, formula.features) if f.level is None and slope != 0.0]
        for feature, slope in numbers:
            name = formula.columns[feature.column].name
            xml.SubElement(table, "NumericPredictor", name=name, coefficient=repr(slope))
        for slope, feature in zip(slopes, formula.features):
            net = slope - other.get(feature.column, 0.0)
            if feature.level not in (None, OTHER) and net != 0.0:
                name = formula.columns[feature.column].name
                xml.SubElement(
                    table, "CategoricalPredictor", name=name, value=str(feature.level), coefficient=repr(net)
                )


def _rule_set(root: xml.Element, formula: Formula, rules: RuleSum) -> None:
    model = xml.SubElement(root, "RuleSetModel", functionName="classification")
    _schema(model, formula, is_filled=False)
    default = formula.classes.tolist()[_default(formula, rules)]
    rule_set = xml.SubElement(model, "RuleSet", defaultScore=_label(default))
    xml.SubElement(rule_set, "RuleSelectionMethod", criterion="weightedSum")
    conditions = [(), *rules.conditions]  # the first holds always, and decides where the votes are equal
    for condition, weights in zip(conditions, [_tie_breaker(formula, rules), *rules.weights]):
        for label, weight in _votes(formula, weights):
            rule = xml.SubElement(rule_set, "SimpleRule", score=_label(label), weight=repr(weight))
            _predicate(rule, formula.columns, condition)


def _tie_breaker(formula: Formula, rules: RuleSum) -> Any:
    return np.array([formula.tie_score]) if formula.classes.size == 2 else rules.intercept


def _default(formula: Formula, rules: RuleSum) -> int:
    return int(formula.tie_score > 0) if formula.classes.size == 2 else int(np.argmax(rules.intercept))


def _votes(formula: Formula, weights: Any) -> list[tuple[Any, float]]:
    """Positive weights for classes that amount to the given scores, up to what all classes share."""
    labels = formula.classes.tolist()
    per_class = np.r_[-weights[0], weights[0]] / 2.0 if len(labels) == 2 else np.asarray(weights)
    raised = per_class - per_class.min()
    return [(label, float(weight)) for label, weight in zip(labels, raised) if weight > 0.0]


def _predicate(rule: xml.Element, columns: tuple[Column, ...], condition: Any) -> None:
    if not condition:
        xml.SubElement(rule, "True")
        return
    place = rule if len(condition) == 1 else xml.SubElement(rule, "CompoundPredicate", booleanOperator="and")
    for attribute, answer in condition:
        _question(place, columns[attribute.feature].name, attribute, answer)


def _question(place: xml.Element, field: str, attribute: Attribute, answer: bool) -> None:
    """One question; a comparison with a missing value is never true, so where the answer counts it is asked for."""
    if attribute.kind == "missing":
        xml.SubElement(place, "SimplePredicate", field=field, operator="isMissing" if answer else "isNotMissing")
        return
    if attribute.kind == "above":
        operator, value = ("greaterThan" if answer else "lessOrEqual"), repr(float(attribute.value))
        fits_missing = (attribute.fill > attribute.value) == answer
    else:
        operator, value = ("equal" if answer else "notEqual"), _label(attribute.value)
        fits_missing = not answer
    if fits_missing:
        place = xml.SubElement(place, "CompoundPredicate", booleanOperator="or")
    xml.SubElement(place, "SimplePredicate", field=field, operator=operator, value=value)
    if fits_missing:
        xml.SubElement(place, "SimplePredicate", field=field, operator="isMissing")


def _label(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return repr(value) if isinstance(value, float) else str(value)
