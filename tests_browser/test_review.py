# ruff: noqa: D103
"""The review page as a person meets it: deciding by mouse and keys, finding, undoing, coming back, exporting."""

import io

import numpy as np
import pandas as pd
import pytest
from conftest import HOSTILE

from psilearn.app.audit.reasons import Reason
from psilearn.app.audit.table import TableAudit
from psilearn.app.review import review_page
from psilearn.app.tables import understand


def made(n, columns, classes=("well", HOSTILE)):
    """An audit of n suspects, without the fits."""
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(rng.normal(size=(n, columns)), columns=[f"x{j}" for j in range(columns)])
    frame.insert(0, "patient", [f'P{i}, "{i % 7}"' for i in range(n)])
    frame["target"] = np.resize(list(classes), n)
    data = understand(frame, "target", (), None, "patient")
    labels = data.labels.to_numpy(dtype=str)
    other = dict(zip(classes, [*classes[1:], classes[0]]))
    issues = pd.DataFrame(
        {
            "row": data.rows, "id": data.ids, "index": np.arange(n), "given": labels,
            "suggested": [other[c] for c in labels], "score": np.linspace(0.99, 0.3, n), "margin": -1.0,
            "agreement": 0.0, "decided": False, "price": np.nan,
        }
    )  # fmt: skip
    issues.attrs.update(
        share=0.1, share_interval=(0.08, 0.12), held_out_error=0.2, chance_error=0.5, p_clean=1e-9, model="a model"
    )
    order = tuple(range(columns))
    near = [tuple((i + k) % n for k in (1, 2, 3)) for i in range(n)]
    return TableAudit(data, issues, {i: Reason(HOSTILE, near[i], order) for i in range(n)}, [])


@pytest.fixture(scope="session")
def review(tmp_path_factory):
    path = tmp_path_factory.mktemp("review") / "review.html"
    path.write_text(review_page(made(12, 20), HOSTILE, "psilearn audit"), encoding="utf-8")
    return path.as_uri()


def lines(page):
    return page.locator(".line .name").all_inner_texts()


def exported(page):
    with page.expect_download() as download:
        page.keyboard.press("e")
    return pd.read_csv(io.BytesIO(download.value.path().read_bytes()))


@pytest.mark.parametrize("width", [1200, 380])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_and_is_quiet(visit, review, width, scheme):
    page = visit(review, width=width, scheme=scheme)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate("window.hacked") is None
    assert page.locator("img").count() == 0
    assert page.locator(".card h2").is_visible()


def test_deciding_by_keys_and_undoing(visit, review):
    page = visit(review)
    page.keyboard.press("k")
    page.keyboard.press("r")
    page.keyboard.press("u")
    assert "3 of 12 decided: 1 relabelled, 1 kept, 1 unsure" in page.locator(".counts").inner_text()
    assert 'P3, "3"' in page.locator(".card h2").inner_text()
    page.keyboard.press("z")
    assert "2 of 12" in page.locator(".counts").inner_text()
    assert 'P2, "2"' in page.locator(".card h2").inner_text()
    frame = exported(page)
    assert frame["row"].tolist() == [1, 2]
    assert frame["id"].tolist() == ['P0, "0"', 'P1, "1"']
    assert frame["decision"].tolist() == ["keep", "relabel"]
    assert frame["given"].tolist() == ["well", HOSTILE]
    assert frame["label"].tolist() == ["well", "well"]


def test_deciding_by_mouse(visit, review):
    page = visit(review)
    page.locator(".line").nth(4).click()
    assert 'P4, "4"' in page.locator(".card h2").inner_text()
    page.locator(".card button[data-act=relabel]").click()
    assert "1 of 12 decided: 1 relabelled" in page.locator(".counts").inner_text()
    assert 'P5, "5"' in page.locator(".card h2").inner_text()
    page.get_by_role("button", name="All 20 features").click()
    assert page.locator(".card tbody tr").count() == 20


def test_when_all_is_decided_the_page_asks_for_the_export(visit, review):
    page = visit(review)
    for _ in range(11):
        page.keyboard.press("k")
    assert "export" not in page.locator(".counts").inner_text()
    page.keyboard.press("k")
    assert "Now export them" in page.locator(".counts").inner_text()
    assert len(exported(page)) == 12
    assert "export" not in page.locator(".counts").inner_text()


def test_decisions_outlive_the_page(visit, review):
    page = visit(review)
    page.keyboard.press("k")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("r")
    page.reload()
    assert "2 of 12 decided" in page.locator(".counts").inner_text()
    assert 'P1, "1"' in page.locator(".card h2").inner_text()  # the first one that is still open


def test_finding_filtering_sorting(visit, review):
    page = visit(review)
    page.get_by_label("Find in names").fill("p1")
    assert lines(page) == ['P1, "1"', 'P10, "3"', 'P11, "4"']
    page.get_by_label("Find in names").fill("")
    page.get_by_label("Given label").select_option("1")
    assert len(lines(page)) == 6
    page.get_by_label("Given label").select_option("")
    page.get_by_label("Sort by").select_option("identifier")
    page.get_by_label("Show", exact=True).select_option("open")
    first = lines(page)[0]
    page.locator(".line").first.click()
    page.keyboard.press("k")
    assert first not in lines(page)
    page.get_by_label("Show", exact=True).select_option("keep")
    assert lines(page) == [first]


def test_more_classes_offer_a_choice(visit, tmp_path):
    path = tmp_path / "three.html"
    path.write_text(review_page(made(12, 3, ("a", "b", "c")), "t", "psilearn"), encoding="utf-8")
    page = visit(path.as_uri())
    choice = page.get_by_label("New label")
    assert choice.locator("option").all_inner_texts() == ["b", "c"]
    choice.select_option(label="c")
    page.locator(".card h2").click()
    page.keyboard.press("r")
    assert exported(page)["label"].tolist() == ["c"]


def test_ten_thousand_suspects(visit, tmp_path):
    path = tmp_path / "large.html"
    path.write_text(review_page(made(10_000, 100), "large", "psilearn"), encoding="utf-8")
    assert path.stat().st_size < 40e6
    page = visit(path.as_uri())
    assert page.locator(".line").count() < 60
    page.keyboard.press("End")
    assert "P9999" in page.locator(".card h2").inner_text()
    assert page.locator(".line.open").is_visible()
    for _ in range(5):
        page.keyboard.press("r")
    page.get_by_label("Find in names").fill("P777,")
    assert len(lines(page)) == 1
