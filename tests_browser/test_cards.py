# ruff: noqa: D103
"""The what-if form in a browser says what the classifier says, and its advice holds."""

import re

import numpy as np
import pandas as pd
import pytest

from psilearn import LPBoostClassifier, score_card, what_if_form


def table(seed, n=140):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({
        "age": rng.integers(20, 80, n).astype(float), "dose <mg>": rng.normal(size=n).round(2),
        "kind": rng.choice(["a", "b", "other"], n).astype(object),
    })  # fmt: skip
    X.loc[rng.random(n) < 0.2, "dose <mg>"] = np.nan
    X.loc[rng.random(n) < 0.2, "kind"] = None
    score = X["age"] / 20 + X["dose <mg>"].fillna(1.5) + (X["kind"] == "a") + rng.normal(size=n) / 2
    return X, score.to_numpy()


def model_of(name):
    X, score = table(5)
    if name == "two classes":
        return LPBoostClassifier(nu=0.4, max_order=2).fit(X, np.where(score > np.median(score), "ill", "well")), X
    y = np.digitize(score, np.quantile(score, [0.3, 0.7]))
    kind = name if name in ("joint", "one-vs-rest") else "joint"
    points = {"max_rules": 4, "points": 2} if name == "ties of points" else {}
    return LPBoostClassifier(nu=0.5, max_order=2, multiclass=kind, **points).fit(X, y), X


@pytest.mark.parametrize("name", ["two classes", "joint", "one-vs-rest", "ties of points"])
def test_the_form_says_what_the_classifier_says(visit, tmp_path, name):
    model, X = model_of(name)
    rows = X.iloc[:40]
    forms = "".join(what_if_form(model, rows.iloc[[i]]) for i in range(len(rows)))
    (tmp_path / "form.html").write_text("<!doctype html><meta charset=utf-8>" + forms, encoding="utf-8")
    page = visit((tmp_path / "form.html").as_uri(), width=380)
    said = page.eval_on_selector_all(".psi-form output", "nodes => nodes.map(n => n.textContent.split(' (')[0])")
    assert said == [str(label) for label in model.predict(rows)]
    assert page.evaluate("document.documentElement.scrollWidth") <= 380
    advice = page.eval_on_selector_all(".psi-form p", "nodes => nodes.map(n => n.textContent)")
    python = model.what_would_change(rows)
    assert [bool(change) for change in python] == [text.startswith("It would be") for text in advice]
    for text, change in zip(advice, python):
        assert not change or len(text.split(" with ")[1].split(" and ")) >= len(change)


def test_the_advice_can_be_tried(visit, tmp_path):
    model, X = model_of("two classes")
    (tmp_path / "form.html").write_text(what_if_form(model, X.iloc[[2]]), encoding="utf-8")
    page = visit((tmp_path / "form.html").as_uri())
    promised = re.match("It would be (\\w+) with", page.locator(".psi-form p").inner_text()).group(1)
    before = page.locator("output").inner_text()
    page.get_by_role("button", name="Try it").click()
    assert not before.startswith(promised)
    assert page.locator("output").inner_text().startswith(promised)


def test_values_can_be_changed_by_keys(visit, tmp_path):
    model, X = model_of("two classes")
    (tmp_path / "form.html").write_text(what_if_form(model, X.iloc[[2]]), encoding="utf-8")
    page = visit((tmp_path / "form.html").as_uri())
    for age in ("20", "79", ""):
        page.get_by_label("age").fill(age)
        row = X.iloc[[2]].assign(age=float(age) if age else np.nan)
        assert page.locator("output").inner_text().startswith(str(model.predict(row)[0]))


@pytest.mark.parametrize("width", [1200, 380])
def test_a_card_fits(visit, tmp_path, width):
    X, score = table(5)
    y = score > np.median(score)
    card = score_card(LPBoostClassifier(nu="auto", max_rules=5, points=5).fit(X, y), X, y)
    (tmp_path / "card.html").write_text("<!doctype html>" + card.html() + card.svg(), encoding="utf-8")
    page = visit((tmp_path / "card.html").as_uri(), width=width)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    right = page.evaluate(
        "Math.max(...[...document.querySelectorAll('svg text')].map(t => t.getBBox().x + t.getBBox().width))"
    )
    assert right <= 560
