"""The report and the explorer as files: whole, self-contained, and inert whatever the data says."""

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

from psilearn.app.compare import METHODS, Settings, compare
from psilearn.app.compare.summary import n_nonzero, story
from psilearn.app.explore import explorer_page
from psilearn.app.pages import data_script, text
from psilearn.app.report import report_page
from psilearn.app.report.page import MOST_BYTES
from psilearn.app.report.pictures import bounds
from psilearn.app.tables import understand

METHODS_SHOWN = ("majority", "svm-l2", "svm-l1", "truncated", "reject", "logistic")
HOSTILE = [
    "<script>alert(1)</script>",
    "</script><img src=x onerror=alert(1)>",
    "a\"b'c & d",
    "ünï\u202ecode",
    "x" * 10_000,
]


class Page(HTMLParser):
    """Collects tags, attributes, visible text and scripts."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.attributes, self.ids, self.data, self.words = [], [], [], {}, []
        self._script = None
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += attributes
        given = dict(attributes)
        if "id" in given:
            self.ids.append(given["id"])
        if tag == "script":
            self._script = given.get("id", "")

    def handle_endtag(self, tag):
        if tag == "script":
            self._script = None

    def handle_data(self, data):
        if self._script:
            self.data[self._script] = self.data.get(self._script, "") + data
        elif self._script is None:
            self.words.append(data)


def hostile_data():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(90, len(HOSTILE)))
    frame = pd.DataFrame(X, columns=HOSTILE)
    frame["<b>group</b>"] = np.resize(["<i>", "</td>", "&amp;"], 90)
    frame["target"] = np.where(X[:, 0] > 0, "<script>alert('yes')</script>", "no\u2028")
    return understand(frame)


@pytest.fixture(scope="module")
def comparison():
    return compare(hostile_data(), Settings(budget=30, flip=0.1, methods=METHODS_SHOWN))


@pytest.fixture(scope="module")
def html(comparison):
    return report_page(comparison, "<script>file</script>.csv", "psilearn compare '<x>'", seconds=20)


def test_sections_are_there(html):
    page = Page(html)
    for name in ("methods", "suspects", "plane", "coefficients", "abstaining", "certificates", "data", "repeat"):
        assert f"{name}-section" in page.ids
    assert len(page.ids) == len(set(page.ids))
    for number in (r"SVM, l2", r"Truncated hinge", r"Wilson", r"psilearn compare"):
        assert re.search(number, " ".join(page.words))


def test_nothing_is_fetched(html):
    page = Page(html)
    for name, value in page.attributes:
        if name in {"src", "href", "action"}:
            assert value.startswith(("#", "data:")), (name, value)
    assert "link" not in page.tags or ("href", "data:,") in page.attributes
    assert "@import" not in html
    assert "url(" not in html


def test_hostile_texts_are_inert(html):
    page = Page(html)
    assert page.tags.count("script") == html.count("<script")
    assert "<script>alert" not in html
    assert "onerror=alert(1)>" not in html.replace("&gt;", "")
    assert not [name for name, _ in page.attributes if name.startswith("on")]
    assert "img" not in page.tags
    assert "i" not in [t for t, n in zip(page.tags, page.tags[1:]) if n == "td"]
    words = " ".join(page.words)
    assert "<script>alert(1)</script>" in words  # shown, as text
    assert "\u202e" not in html
    assert "x" * 200 not in words


def test_the_story_stands_on_top(html, comparison):
    page = Page(html)
    words = " ".join(page.words).replace("\ufffd", "")
    for sentences in story(comparison).values():
        assert sentences.replace("\ufffd", "")[:60] in words
    assert words.index("Which model to use?") < words.index("against SVM, l2")


def test_quality_of_the_model_is_what_the_test_rows_say():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 2))
    labels = np.where(X[:, 0] + 0.5 * rng.normal(size=300) > 0.5, "sick", "well")
    data = understand(pd.DataFrame(X, columns=["u", "v"]).assign(target=labels))
    few = [m for m in METHODS if m.key in ("majority", "svm-l2", "truncated", "logistic")]
    found = compare(data, Settings(budget=30), methods=few)
    assert found.issues is not None
    chosen, y = found.recommended, found.y_test
    html = report_page(found, "t.csv", "psilearn", seconds=5)
    words = re.sub(r"\s+", " ", " ".join(Page(html).words))
    sick, well = y == "sick", y == "well"
    sensitivity, specificity = (~chosen.wrong[sick]).mean(), (~chosen.wrong[well]).mean()
    assert f"rarer class: sensitivity {100 * sensitivity:.1f}%" in words
    assert f"specificity {100 * specificity:.1f}%" in words
    assert f"area under the ROC curve {roc_auc_score(sick, -chosen.scores):.3f}" in words
    for label, answer in ((a, b) for a in ("sick", "well") for b in ("sick", "well")):
        count = int(np.sum((y == label) & (chosen.predicted == answer)))
        assert f"{count}<br>" in html.split("<span>Confusion matrix")[1]
    assert "Which rows to look at?" in words
    assert len(html.encode()) < MOST_BYTES


def test_a_large_table_makes_no_large_page(monkeypatch):
    monkeypatch.setattr("psilearn.app.report.page.MOST_BYTES", 60_000)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(120, 150)), columns=[f"feature {'x' * 50} {i}" for i in range(150)])
    data = understand(frame.assign(target=np.where(frame.iloc[:, 0] > 0, "a", "b")))
    found = compare(data, Settings(budget=20, methods=("svm-l1",)))
    html = report_page(found, "t.csv", "psilearn", seconds=5)
    assert "Left out: with this table" in html
    assert "Suspects" in html or "refused" in html
    assert len(html.encode()) < 90_000


def test_data_survives_embedding():
    value = {"a": HOSTILE, "line": "\u2028"}
    script = data_script("name", value)
    assert script.count("<") == 2
    assert json.loads(re.search(r">(.*)</script>$", script, re.DOTALL)[1]) == value


def test_embedded_numbers(html, comparison):
    page = Page(html)
    paths = json.loads(page.data["paths-data"])
    assert [p["title"] for p in paths] == ["SVM, l1", "SVM, l2", "Truncated hinge", "Reject option, l1"]
    assert all(len(line["values"]) == len(p["Cs"]) for p in paths for line in p["lines"])
    for path, key in zip(paths, ("svm-l1", "svm-l2", "truncated", "reject")):
        # Where the slider begins, the picture shows the model of the table, and the features that it uses.
        outcome, at = comparison.outcome(key), path["Cs"].index(path["chosen"])
        assert path["chosen"] == outcome.model.C
        assert path["nonzero"][at] == n_nonzero(outcome.model)
        assert len(path["lines"]) == min(8, n_nonzero(outcome.model))
        largest = np.sort(np.abs(outcome.model.coef_[0]))[::-1][: len(path["lines"])]
        assert [abs(line["values"][at]) for line in path["lines"]] == pytest.approx(largest, rel=1e-4)
    risk = json.loads(page.data["risk-data"])
    assert [r["d"] for r in risk] == sorted(r["d"] for r in risk)
    assert all(r["risk"][-1] == pytest.approx(r["error"]) for r in risk if r["answered"] == 1.0)
    (own,) = (r for r in risk if r["own"])
    reject = comparison.outcome("reject")
    silent = reject.model.abstains(comparison.splits[0].X_test)
    assert own["d"] == comparison.settings.d
    assert own["answered"] == pytest.approx(1 - silent.mean())
    assert f"it answers {100 * own['answered']:.1f}% of the test rows" in " ".join(page.words)
    plane = json.loads(page.data["plane-data"])
    assert len(plane["points"]) == len(comparison.splits[0].train)


def test_every_method_that_abstains_has_a_line():
    settings = Settings(budget=20, methods=("svm-l2", "logistic", "reject"), everyone_abstains=True)
    found = compare(hostile_data(), settings)
    lines = json.loads(Page(report_page(found, "file", "command", seconds=5)).data["answers-data"])
    assert [line["name"] for line in lines] == [o.method.label for o in found.outcomes]
    for line, outcome in zip(lines, found.outcomes):
        n = len(found.splits[0].y_test)
        assert line["coverage"][-1] == 1.0
        assert line["risk"][-1] == pytest.approx(outcome.wrong[:n].mean(), abs=1e-6)
        answered = ~outcome.abstained[:n]
        assert line["answered"] == pytest.approx(answered.mean())
        assert line["error"] == pytest.approx(outcome.wrong[:n][answered].mean() if answered.any() else 0.0)


def test_accessible_structure(html):
    page = Page(html)
    assert ("lang", "en") in page.attributes
    assert page.tags.count("h1") == 1
    assert page.tags.count("main") == 1
    assert page.tags.count("table") == page.tags.count("caption")
    assert ("scope", "row") in page.attributes


def test_without_robust_methods_and_with_one_feature():
    rng = np.random.default_rng(0)
    x = rng.normal(size=80)
    data = understand(pd.DataFrame({"x": x, "target": np.where(x > 0, "a", "b")}))
    comparison = compare(data, Settings(budget=10, methods=("logistic",)))
    page = Page(report_page(comparison, "t.csv", "psilearn", seconds=5))
    assert "plane-section" not in page.ids
    assert "No robust fit refused" in " ".join(page.words)


def test_three_classes():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 2))
    labels = np.array(["a", "b", "c"])[np.digitize(X[:, 0], [-0.5, 0.5])]
    data = understand(pd.DataFrame(X, columns=["u", "v"]).assign(target=labels))
    comparison = compare(data, Settings(budget=20, methods=("svm-l2", "truncated"), outer_folds=2))
    assert comparison.outcomes[0].wrong.size == 90
    page = Page(report_page(comparison, "t.csv", "psilearn", seconds=10))
    assert json.loads(page.data["paths-data"])[0]["signed"] is False
    assert json.loads(page.data["plane-data"])["axes"] == ["u", "v"]


def test_explorer_page():
    page = Page(explorer_page())
    data = json.loads(page.data["explorer-data"])
    assert len(data["points"]) == 41
    assert {p[2] for p in data["points"]} == {-1, 1}


def test_text_is_escaped_and_cut():
    assert text("<a href='x'>") == "&lt;a href=&#x27;x&#x27;&gt;"
    assert len(text("é" * 500, 50)) == 50


def test_bounds_show_the_best_so_far_of_one_problem(comparison):
    inf = float("inf")
    histories = {
        "minimised": [(0.1, 9.0, -inf), (0.2, 12.0, 4.0), (0.3, 8.0, 3.0)],
        "maximised": [(0.1, 1.0, 9.0), (0.2, 3.0, 10.0)],
        "closed at once": [(0.1, 5.0, 4.999), (0.2, 5.0, 5.0)],
        "tightened": [(0.1, 5.0, 1.0), (0.2, 9.0, 8.0)],
    }
    outcome = comparison.outcomes[0]
    fits = [
        replace(outcome, method=replace(outcome.method, label=name), model=SimpleNamespace(history_=history))
        for name, history in histories.items()
    ]
    one, other = bounds(replace(comparison, outcomes=fits))
    assert (one["title"], other["title"]) == ("minimised", "maximised")
    assert one["objective"] == [9.0, 9.0, 8.0]
    assert one["bound"] == [None, 4.0, 4.0]
    assert other["objective"] == [1.0, 3.0]
    assert other["bound"] == [9.0, 9.0]
