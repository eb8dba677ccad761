# ruff: noqa: D103
"""The report and the explorer as a person meets them: in a browser, on a desk and on a phone, by mouse and by keys."""

import numpy as np
import pytest

import psilearn

WIDTHS = {"desktop": 1200, "phone": 380}


@pytest.mark.parametrize("width", WIDTHS.values(), ids=WIDTHS)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_report_fits_and_is_quiet(visit, report, width, scheme):
    page = visit(report, width=width, scheme=scheme)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.locator("section").count() >= 8
    assert page.locator("#paths svg").count() >= 1
    assert page.locator("#risk svg").count() == 1
    assert page.locator(".explorer svg").count() == 1
    assert page.evaluate("window.hacked") is None


def test_hostile_texts_are_shown_as_text(visit, report):
    page = visit(report)
    assert "</script>" in page.locator("h1").inner_text()
    assert page.locator("img").count() == 0
    assert page.locator("h1 script").count() == 0


def test_dark_and_light_differ_and_have_contrast(visit, report):
    found = {}
    for scheme in ("light", "dark"):
        page = visit(report, scheme=scheme)
        colours = page.evaluate(
            """() => ['.note', 'p', 'th', '.best', 'a', 'caption'].map((s) => {
                 const node = document.querySelector('main ' + s) || document.querySelector(s);
                 const paper = getComputedStyle(document.querySelector('section')).backgroundColor;
                 return [s, getComputedStyle(node).color, paper];
               })"""
        )
        found[scheme] = colours[1][2]
        for name, ink, paper in colours:
            assert contrast(ink, paper) >= 4.5, (scheme, name, ink, paper)
    assert found["light"] != found["dark"]


def contrast(one, other):
    def luminance(colour):
        parts = np.array([float(v) for v in colour[colour.index("(") + 1 : -1].split(",")[:3]]) / 255
        linear = np.where(parts <= 0.03928, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
        return linear @ [0.2126, 0.7152, 0.0722]

    high, low = sorted([luminance(one), luminance(other)], reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_path_slider_moves_by_keyboard(visit, report):
    page = visit(report)
    slider = page.locator("#paths input")
    slider.focus()
    page.keyboard.press("Home")
    first = page.locator("#paths .says").inner_text()
    page.keyboard.press("End")
    last = page.locator("#paths .says").inner_text()
    assert "C = 0.001" in first
    assert "C = 10" in last
    page.locator("#paths select").select_option(index=2)
    assert "Truncated" in page.locator("#paths svg").first.get_attribute("aria-label")


def test_risk_slider_answers_more_as_abstaining_gets_dearer(visit, report):
    page = visit(report)
    page.locator("#risk input").focus()
    shares = []
    for key in ("Home", "End"):
        page.keyboard.press(key)
        shares.append(float(page.locator("#risk .says").inner_text().split("answers ")[1].split("%")[0]))
    assert shares[0] < shares[1]


def test_sections_are_reached_by_links_and_skip_link_comes_first(visit, report):
    page = visit(report)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    for link in page.locator("nav a").all():
        assert page.locator(link.get_attribute("href")).count() == 1


def test_report_is_readable_without_scripts(visit, report):
    page = visit(report, script=False)
    assert page.locator("#methods-section tbody tr").count() >= 5
    assert "Wilson" in page.locator("#methods-section caption").inner_text()


def test_report_prints(visit, report):
    page = visit(report)
    page.emulate_media(media="print")
    assert page.locator("nav").is_hidden()
    assert len(page.pdf(format="A4")) > 20_000


# -- the explorer


def fits(page):
    """Return what the page's solvers find on the points it shows."""
    return page.evaluate(
        """() => { const data = JSON.parse(document.getElementById('explorer-data').textContent);
                   const [points, C] = [data.points, data.C];
                   return {points, C, svm: Solvers.svm(points, C), psi: Solvers.psi(points, C)}; }"""
    )


def test_solvers_in_the_page_agree_with_ours(visit, explorer):
    found = fits(visit(explorer))
    points = np.array(found["points"])
    svm = psilearn.SVMClassifier(C=found["C"], tol=1e-8).fit(points[:, :2], points[:, 2])
    assert found["svm"]["objective"] == pytest.approx(svm.objective_, rel=1e-5)
    psi = psilearn.PsiClassifier(a=2.0, C=found["C"], solver="dca", n_starts=20).fit(points[:, :2], points[:, 2])
    assert found["psi"]["objective"] <= psi.objective_ * (1 + 1e-5)
    problem, _ = psi._prepare(points[:, :2], points[:, 2], None)
    value = problem.value(np.array([found["psi"]["w"]]), np.array([found["psi"]["b"]]))
    assert found["psi"]["objective"] == pytest.approx(value, rel=1e-6)


def turned(page):
    words = page.locator(".says").inner_text()
    numbers = [float(part.split("°")[0].split()[-1]) for part in words.split("by ")[1:]]
    return numbers[0], numbers[1]


def test_dragging_turns_the_svm_more_than_psi(visit, explorer):
    page = visit(explorer)
    assert turned(page) == (0.0, 0.0)
    box = page.locator(".point.chosen .mark").bounding_box()
    plane = page.locator(".plane").bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(plane["x"] + 0.97 * plane["width"], plane["y"] + 0.95 * plane["height"], steps=8)
    page.mouse.up()
    svm, psi = turned(page)
    assert svm > psi + 1
    page.get_by_role("button", name="Start again").click()
    assert turned(page) == (0.0, 0.0)


def test_keys_move_choose_and_flip(visit, explorer):
    page = visit(explorer)
    page.locator(".point.chosen").focus()
    before = page.locator(".point.chosen").get_attribute("transform")
    page.keyboard.press("ArrowRight")
    assert page.locator(".point.chosen").get_attribute("transform") != before
    page.keyboard.press("PageUp")
    assert page.locator(".point.chosen").get_attribute("data-at") == "39"
    label = page.locator(".point.chosen").get_attribute("aria-label")
    page.keyboard.press("Enter")
    assert page.locator(".point.chosen").get_attribute("aria-label") != label


def test_touch_on_a_phone(chromium, explorer):
    context = chromium.new_context(viewport={"width": 380, "height": 800}, has_touch=True, is_mobile=True)
    page = context.new_page()
    page.goto(explorer)
    assert page.evaluate("document.documentElement.scrollWidth") <= 380
    box = page.locator('.point[data-at="3"] .mark').bounding_box()
    page.touchscreen.tap(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    assert page.locator(".point.chosen").get_attribute("data-at") == "3"
    context.close()
