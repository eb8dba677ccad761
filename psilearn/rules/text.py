"""A list of weighted rules as a text a reader can follow by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .attributes import Conjunction
from .rules import GivenRule, Rule

ALWAYS = Conjunction(())


def net_points(rules: Sequence[Rule | GivenRule], weights: Sequence[float]) -> dict[Any, float]:
    """Signed points by condition (positive for the positive class), largest first; the scores stay the same.

    Opposite votes under one condition are set off against each other. If a condition and its negation vote for the same
    class, the smaller of the two votes is due always, and is written so.
    """
    net: dict[Any, float] = {}
    for rule, weight in zip(rules, weights):
        key = rule.condition if isinstance(rule, Rule) else rule
        net[key] = net.get(key, 0.0) + (weight * rule.sign if isinstance(rule, Rule) else weight)
    for key in [key for key in net if isinstance(key, Conjunction) and key.order == 1]:
        ((attribute, answer),) = key.parts
        other = Conjunction(((attribute, not answer),))
        if net[key] * net.get(other, 0.0) > 0:
            common = min(net[key], net[other], key=abs)
            net[key] -= common
            net[other] -= common
            net[ALWAYS] = net.get(ALWAYS, 0.0) + common
    return dict(
        sorted(((key, value) for key, value in net.items() if abs(value) > 1e-9), key=lambda pair: -abs(pair[1]))
    )


def _right_for_positive(rule: Rule) -> float:
    """Training weight of the positive class that a rule covers."""
    return rule.n_right if rule.sign > 0 else rule.n_covered - rule.n_right


def merged_intervals(net: dict[Any, float], records: dict[Any, tuple[float, float]]) -> dict[Any, float]:
    """Write equal and opposite points at two cut points of one feature as one interval: "1.2 < x <= 2.6".

    The records (covered weight, and that of the positive class) of new intervals are added to ``records``.
    """
    merged = dict(net)
    for key in list(net):
        if not isinstance(key, Conjunction) or key.order != 1 or key.parts[0][0].kind != "above" or key not in merged:
            continue
        ((attribute, answer),) = key.parts
        for other in list(merged):
            if not isinstance(other, Conjunction) or other.order != 1 or other == key:
                continue
            ((second, same),) = other.parts
            is_pair = second.kind == "above" and second.feature == attribute.feature and same == answer
            if not is_pair or abs(merged[key] + merged[other]) > 1e-9 * abs(merged[key]):
                continue
            # the wider condition keeps its points inside the interval
            wide, narrow = (key, other) if (attribute.value < second.value) == answer else (other, key)
            low, high = sorted((attribute, second), key=lambda a: a.value)
            interval = Conjunction(((low, True), (high, False)))
            if interval in merged:
                continue
            merged[interval] = merged[wide]
            records[interval] = (
                records[wide][0] - records[narrow][0],
                records[wide][1] - records[narrow][1],
            )
            del merged[wide], merged[narrow]
            break
    return dict(sorted(merged.items(), key=lambda pair: -abs(pair[1])))


def constant_score(rules: Sequence[Rule | GivenRule], weights: Sequence[float]) -> float | None:
    """The score of every observation if only votes without a condition are left after setting off; else None."""
    net = net_points(rules, weights)
    if any(key.order > 0 for key in net):
        return None
    return float(sum(value * getattr(key, "constant", 1) for key, value in net.items()))


def constant_text(label: Any) -> str:
    """The text of a model that does not depend on the features."""
    return f"A constant model: no rule was found worth its place, and every observation is given class {label}."


def votes_text(
    rules: Sequence[Rule | GivenRule], weights: Sequence[float], positive: Any, negative: Any, unit: float = 100.0
) -> list[str]:
    """One line per condition: points (``unit`` for a weight of 1), their class, and how often that was right."""
    records = {rule.condition: (rule.n_covered, _right_for_positive(rule)) for rule in rules if isinstance(rule, Rule)}
    lines = []
    merged = merged_intervals(net_points(rules, weights), records)
    width = max([6, *(len(f"{unit * abs(value):.4g}") for value in merged.values())])
    for key, value in merged.items():
        points = f"{unit * abs(value):{width}.4g}"
        if not isinstance(key, Conjunction):
            lines.append(f"{points}  as {key} says")
            continue
        line = f"{points}  for {positive if value > 0 else negative}"
        if key.order:
            covered, positive_ones = records[key]
            right = positive_ones if value > 0 else covered - positive_ones
            line += f"  if  {key}   [right for {right:g} of {covered:g}]"
        else:
            line += "  always"
        lines.append(line)
    return lines


def two_class_text(
    rules: Sequence, weights: Sequence[float], classes: Sequence[Any], otherwise: Any, unit: float = 100.0
) -> str:
    """The whole model for two classes."""
    head = (
        f"Add up the points of the lines that apply, for {classes[0]} and for {classes[1]}.\n"
        f"The class with more points wins; with equal points it is {otherwise}.\n"
    )
    return head + "\n".join(votes_text(rules, weights, classes[1], classes[0], unit))


def many_class_text(groups: Sequence[tuple[Any, Sequence, Sequence[float]]], unit: float = 100.0) -> str:
    """The whole model for several classes: for each class, the points for and against it."""
    parts = ["For each class, add the points for it and subtract those against it; the largest sum wins."]
    for label, rules, weights in groups:
        parts.append(f"\n{label}\n" + "\n".join(votes_text(rules, weights, label, f"not {label}", unit)))
    return "\n".join(parts)
