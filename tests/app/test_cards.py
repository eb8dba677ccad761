"""Score cards and the what-if form."""

import json
import xml.etree.ElementTree as ElementTree

import numpy as np
import pandas as pd
import pytest

from psilearn import L0BoostClassifier, LPBoostClassifier, score_card, what_if_form

from oracles.frames import frame


@pytest.fixture(scope="module")
def fitted():
    X, y = frame(0, n=150)
    return LPBoostClassifier(nu=0.4, max_order=2, max_rules=6, points=4).fit(X, y), X, y


def test_the_card_adds_up_to_the_score(fitted):
    model, X, y = fitted
    card = score_card(model, X, y)
    conditions = {str(rule.condition): rule for rule in model.rules_}
    total = np.zeros(len(X))
    for condition, points in card.lines:
        assert points == round(points)
        total += points * (1.0 if condition == "always" else conditions[condition].covers(X))
    np.testing.assert_allclose(total, np.round(model.decision_function(X), 6), atol=1e-6)
    assert all(f"{points:+6.4g}" in card.text() for _, points in card.lines)


def test_risks_are_monotone_and_count_every_row(fitted):
    model, X, y = fitted
    risks = score_card(model, X, y).risks
    shares = [share for _, share, _ in risks]
    assert shares == sorted(shares)
    assert sum(n for *_, n in risks) == len(X)
    assert sum(n * share for _, share, n in risks) == pytest.approx((y == model.classes_[1]).sum())
    assert score_card(model).risks == []


def test_names_are_escaped_and_the_pictures_are_well_formed():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"<b>&": rng.normal(size=80)})
    y = np.where(X["<b>&"] > 0, "<i>", "no")
    model = L0BoostClassifier().fit(X, y)
    card = score_card(model, X, y)
    ElementTree.fromstring(card.svg())
    assert "<b>" not in card.html().replace("<table", "")
    assert "<i>" not in what_if_form(model)


def test_several_classes_have_no_card():
    X = np.arange(60.0)[:, None]
    model = LPBoostClassifier(nu=0.5).fit(X, np.repeat([0, 1, 2], 20))
    with pytest.raises(ValueError, match="two classes"):
        score_card(model)
    assert "psi-form" in what_if_form(model)


def test_the_form_knows_every_rule_and_begins_with_the_row(fitted):
    model, X, _ = fitted
    spec = specification(what_if_form(model, X.iloc[[3]]))
    assert [rule["text"] for rule in spec["rules"]] == [str(rule.condition) for rule in model.rules_]
    used = sorted({a.feature for rule in model.rules_ for a, _ in rule.condition.parts})
    assert [field["name"] for field in spec["fields"]] == [X.columns[feature] for feature in used]
    assert "http" not in what_if_form(model, X.iloc[[3]])


def specification(form):
    return json.loads(form.split('<script type="application/json">')[1].split("</script>")[0])


def test_a_missing_value_stays_missing_in_the_form():
    rng = np.random.default_rng(3)
    X = pd.DataFrame({"height": rng.normal(size=120), "kind": rng.choice(["a", "b", "other"], 120).astype(object)})
    X.loc[::3, "height"], X.loc[::4, "kind"] = np.nan, None
    y = X["height"].isna() ^ (X["kind"] == "a")
    model = LPBoostClassifier(nu=0.3, max_order=2).fit(X, y)
    height, kind = specification(what_if_form(model, X.iloc[[0]]))["fields"]
    assert height["value"] is None
    assert kind["value"] == kind["missing"]
    assert kind["options"] == ["a", "b", "other", "another", "missing"]


def test_the_form_is_for_rules():
    X = np.random.default_rng(0).choice([-1.0, 1.0], (40, 3))
    model = LPBoostClassifier(base_learner="precomputed").fit(X, X[:, 0] > 0)
    with pytest.raises(ValueError, match="base_learner"):
        what_if_form(model)


def test_every_form_of_the_card_says_what_a_score_of_zero_means(fitted):
    model, X, y = fitted
    card = score_card(model, X, y)
    picture = " ".join(
        "".join(text.itertext()) for text in ElementTree.fromstring(card.svg()) if text.tag[-4:] == "text"
    )
    assert card.how.endswith(f"0 is {card.otherwise}.")
    assert card.how in card.text()
    assert card.how in picture
    for _, points in card.lines:
        assert f"{points:+.4g}".replace("-", "\u2212") in picture
