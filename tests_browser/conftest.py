# ruff: noqa: D103
"""A headless Chromium for the pages; PSILEARN_CHROMIUM names another one than Debian's."""

import os

import numpy as np
import pandas as pd
import pytest
from playwright.sync_api import sync_playwright

from psilearn.app.compare import Settings, compare
from psilearn.app.explore import explorer_page
from psilearn.app.report import report_page
from psilearn.app.tables import understand

FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip
HOSTILE = '</script><img src=x onerror="window.hacked=1"><script>window.hacked=1</script>'


@pytest.fixture(scope="session")
def chromium():
    path = os.environ.get("PSILEARN_CHROMIUM", "/usr/bin/chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def report(tmp_path_factory):
    """A report on a table with hostile names and cells."""
    rng = np.random.default_rng(7)
    X = rng.normal(size=(150, 5))
    frame = pd.DataFrame(X, columns=["age", HOSTILE, "long" * 2500, "a\"b'c", "ünï\u202ecode"])
    frame["group"] = np.resize([HOSTILE, "<b>bold</b>", "x" * 10_000], 150)
    frame["target"] = np.where(X[:, 0] + X[:, 1] > 0, HOSTILE, "well")
    comparison = compare(understand(frame), Settings(budget=60, flip=0.1, seed=1))
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(report_page(comparison, HOSTILE, "psilearn compare", seconds=30), encoding="utf-8")
    return path.as_uri()


@pytest.fixture(scope="session")
def explorer(tmp_path_factory):
    path = tmp_path_factory.mktemp("explorer") / "explore.html"
    path.write_text(explorer_page(), encoding="utf-8")
    return path.as_uri()


@pytest.fixture
def visit(chromium):
    """Open a page and afterwards insist that it had no error, no console message and no request."""
    troubles, contexts = [], []

    def go(url, width=1200, height=900, scheme="light", script=True):
        context = chromium.new_context(
            viewport={"width": width, "height": height}, color_scheme=scheme, java_script_enabled=script
        )
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: troubles.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: troubles.append(f"error: {error}"))
        page.on("request", lambda r: troubles.append(r.url) if not r.url.startswith(("file:", "data:")) else None)
        page.goto(url)
        return page

    yield go
    for context in contexts:
        context.close()
    assert troubles == []
