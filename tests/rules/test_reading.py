"""Explanations, smallest changes, merged intervals, and columns that are not needed."""

import itertools

import numpy as np
import pandas as pd
import pytest

from psilearn.estimators.rules import L0BoostClassifier, LPBoostClassifier
from psilearn.rules.attributes import Attribute, Conjunction
from psilearn.rules.rules import Rule
from psilearn.rules.text import votes_text

from oracles.frames import frame

MODELS = [
    LPBoostClassifier(nu=0.4, max_order=2, max_rules=6),
    LPBoostClassifier(nu=0.4, max_rules=6, points=4),
    L0BoostClassifier(),
]


@pytest.mark.parametrize("model", MODELS)
def test_explanations_add_up_to_the_prediction(model):
    X, y = frame(0, n=150)
    model.fit(X, y)
    for i, told in enumerate(model.explain(X.iloc[:40])):
        assert told.prediction == model.predict(X.iloc[[i]])[0]
        points = {c: sum(p for _, label, p in told.fired if label == c) for c in model.classes_}
        for label, total in told.scores.items():
            assert points[label] == pytest.approx(total)
        unit = 1.0 if getattr(model, "points", None) else 100.0
        score = (points[model.classes_[1]] - points[model.classes_[0]]) / unit
        assert model.decision_function(X.iloc[[i]])[0] == pytest.approx(score, abs=1e-9)
        assert str(told).startswith(str(told.prediction))


@pytest.mark.parametrize("model", MODELS)
def test_the_smallest_change_flips_the_class_and_nothing_smaller_is_overlooked(model):
    X, y = frame(1, n=150)
    model.fit(X, y)
    rows = X.iloc[:25]
    for i, changes in enumerate(model.what_would_change(rows)):
        if not changes:
            continue
        changed = rows.iloc[[i]].copy()
        for change in changes:
            changed[change.feature] = changed[change.feature].astype(object)
            changed.loc[changed.index[0], change.feature] = change.value
        assert model.predict(changed)[0] != model.predict(rows.iloc[[i]])[0]
        if len(changes) == 2:  # no single feature would do, whatever value of the data it takes
            for name in X.columns:
                others = pd.concat([rows.iloc[[i]]] * len(X), ignore_index=True)
                others[name] = X[name].to_numpy()
                assert (model.predict(others) == model.predict(rows.iloc[[i]])[0]).all()


def test_a_wanted_class_is_reached_and_an_unknown_one_refused():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=200), "b": rng.normal(size=200)})
    y = np.digitize(X["a"], [-0.5, 0.5])
    model = LPBoostClassifier(nu=0.2, max_order=2).fit(X, y)
    row = X.iloc[[int(np.argmax(y == 0))]]
    (changes,) = model.what_would_change(row, target=2)
    assert [change.feature for change in changes] == ["a"]
    assert "a >" in str(changes[0])
    assert changes[0].value > 0.3
    with pytest.raises(ValueError, match="target must be one of"):
        model.what_would_change(row, target=7)


def test_predict_needs_only_the_columns_the_rules_use():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(120, 4)), columns=list("abcd"))
    y = (X["b"] > 0.2).astype(int)
    model = LPBoostClassifier().fit(X, y)
    assert {a.name for rule in model.rules_ for a, _ in rule.condition.parts} == {"b"}
    np.testing.assert_array_equal(model.predict(X[["b"]]), model.predict(X))
    np.testing.assert_array_equal(model.predict(X[["a", "b"]]), model.predict(X))
    assert model.explain(X[["b"]].iloc[:1])[0].prediction == model.predict(X.iloc[:1])[0]
    with pytest.raises(ValueError, match="feature names"):
        model.predict(X[["a", "c"]])
    with pytest.raises(ValueError, match="feature names"):
        model.predict(X[["b"]].assign(z=1.0))


def test_opposite_points_at_two_cut_points_are_one_interval():
    x = np.random.default_rng(0).uniform(0, 4, 200)
    y = (x > 1.2) & (x <= 2.6)
    cuts = {t: Attribute(0, "oldpeak", "above", t, 2.0) for t in (1.2, 2.6)}
    for answers, signs in itertools.product([(True, True), (False, False)], [(1, -1), (-1, 1)]):
        rules = []
        for t, answer, sign in zip((1.2, 2.6), answers, signs):
            covered = (x > t) == answer
            right = covered & (y == (sign > 0))
            rules.append(Rule(Conjunction(((cuts[t], answer),)), sign, None, covered.sum(), right.sum()))
        (line,) = votes_text(rules, [0.5, 0.5], "ill", "well")
        inside = y.sum()
        assert "1.2 < oldpeak <= 2.6" in line
        is_ill = (signs[0] if answers[0] else signs[1]) > 0
        assert f"for {'ill' if is_ill else 'well'}" in line
        assert f"[right for {inside if is_ill else 0} of {inside}]" in line


def test_points_stand_under_one_another():
    conditions = [Conjunction(((Attribute(j, f"x{j}", "above", 1.5, 0.0), True),)) for j in range(3)]
    rules = [Rule(condition, 1, "yes", 5.0, 4.0) for condition in conditions]
    lines = votes_text(rules, [0.5, 0.0001234567, 0.07654321], "yes", "no")
    assert len({line.index("  for yes") for line in lines}) == 1
