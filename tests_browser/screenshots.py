"""Take the pictures of the README: the explorer after a drag, and the head of the report of ``psilearn compare``.

python tests_browser/screenshots.py REPORT.html FOLDER
"""

import os
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from psilearn.app.explore import explorer_page

FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]


def main(report, folder):
    """Write explorer.png and report.png."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch, sync_playwright() as playwright:
        explorer = Path(scratch) / "explore.html"
        explorer.write_text(explorer_page(), encoding="utf-8")
        chromium = os.environ.get("PSILEARN_CHROMIUM", "/usr/bin/chromium")
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        page = browser.new_page(viewport={"width": 900, "height": 980})
        page.goto(explorer.as_uri())
        point, plane = page.locator(".point.chosen .mark").bounding_box(), page.locator(".plane").bounding_box()
        page.mouse.move(point["x"] + 5, point["y"] + 5)
        page.mouse.down()
        page.mouse.move(plane["x"] + 0.96 * plane["width"], plane["y"] + 0.93 * plane["height"], steps=6)
        page.mouse.up()
        page.screenshot(path=folder / "explorer.png")
        page = browser.new_page(viewport={"width": 1280, "height": 1150})
        page.goto(report.resolve().as_uri())
        page.screenshot(path=folder / "report.png")
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
