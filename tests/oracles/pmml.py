"""A reader of PMML's regression and rule set models, written from the standard alone."""

import xml.etree.ElementTree as xml

FILL = "missingValueReplacement"
N = "{http://www.dmg.org/PMML-4_4}"
COMPARE = {
    "greaterThan": lambda a, b: float(a) > float(b),
    "lessOrEqual": lambda a, b: float(a) <= float(b),
    "equal": lambda a, b: same(a, b),
    "notEqual": lambda a, b: not same(a, b),
}


def same(a, b):
    """Equal as numbers if both are numbers, else as words."""
    try:
        return float(a) == float(b)
    except ValueError:
        return str(a) == str(b)


def answer(text, row):
    """The class of one row, a dict in which a missing field is None."""
    root = xml.fromstring(text)
    model = root.find(f"{N}RegressionModel")
    model = root.find(f"{N}RuleSetModel") if model is None else model
    row = dict(row)
    for field in root.iter(f"{N}DataField"):
        codes = {float(v.get("value")) for v in field.findall(f"{N}Value") if v.get("property") == "missing"}
        if codes and row[field.get("name")] is not None and float(row[field.get("name")]) in codes:
            row[field.get("name")] = None
    for field in model.iter(f"{N}MiningField"):
        if field.get("usageType") != "target" and row[field.get("name")] is None and field.get(FILL):
            row[field.get("name")] = field.get(FILL)
    return (regression if model.tag.endswith("RegressionModel") else rule_set)(model, row)


def regression(model, row):
    """The category of the largest softmax of the tables' sums, the first of equals; other normalisations differ."""
    assert model.get("normalizationMethod") == "softmax"
    sums = {}
    for table in model.findall(f"{N}RegressionTable"):
        total = float(table.get("intercept"))
        for p in table.findall(f"{N}NumericPredictor"):
            total += float(p.get("coefficient")) * float(row[p.get("name")])
        for p in table.findall(f"{N}CategoricalPredictor"):
            total += float(p.get("coefficient")) * (str(row[p.get("name")]) == p.get("value"))
        sums[table.get("targetCategory")] = total
    return max(sums, key=sums.get)


def rule_set(model, row):
    """The score with the largest sum of weights over the rules that fire."""
    rules = model.find(f"{N}RuleSet")
    assert rules.find(f"{N}RuleSelectionMethod").get("criterion") == "weightedSum"
    sums = {}
    for rule in rules.findall(f"{N}SimpleRule"):
        if holds(rule[0], row):
            sums[rule.get("score")] = sums.get(rule.get("score"), 0.0) + float(rule.get("weight"))
    return max(sums, key=sums.get) if sums else rules.get("defaultScore")


def holds(predicate, row):
    """Whether a predicate is true."""
    if predicate.tag == f"{N}True":
        return True
    if predicate.tag == f"{N}CompoundPredicate":
        return {"and": all, "or": any}[predicate.get("booleanOperator")](holds(part, row) for part in predicate)
    value = row[predicate.get("field")]
    if predicate.get("operator") in ("isMissing", "isNotMissing"):
        return (value is None) == (predicate.get("operator") == "isMissing")
    return value is not None and COMPARE[predicate.get("operator")](value, predicate.get("value"))
