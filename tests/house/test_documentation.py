"""Every block of code on every page runs, and every command that a page shows exists."""

import re
import warnings
from pathlib import Path

import pytest
from typer.main import get_command

from psilearn.app.cli import app

ROOT = Path(__file__).parents[2]
#: Pages that hold no code of their own.
MADE = ("reproduction", "gallery", "generated", "_build")
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *(page for page in sorted((ROOT / "docs").rglob("*.md")) if page.relative_to(ROOT / "docs").parts[0] not in MADE),
]
#: A line that shows a command: indented, or in a block of its own.
COMMAND = re.compile(r"(\s{4,}psilearn \w)|(psilearn \w+ .*--)")
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.M | re.S)


def blocks(page, kind):
    return [text for language, text in BLOCK.findall(page.read_text()) if language == kind]


@pytest.mark.parametrize(
    "page", [page for page in PAGES if blocks(page, "python")], ids=lambda page: str(page.relative_to(ROOT))
)
def test_the_python_of_a_page_runs_from_top_to_bottom(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "page"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for text in blocks(page, "python"):
            exec(compile(text, str(page), "exec"), names)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_commands_of_a_page_exist(page):
    commands = get_command(app).commands
    text = page.read_text()
    shown = [line.strip() for line in text.splitlines() if COMMAND.match(line)]
    for line in shown:
        words = line.split("#")[0].split()
        assert words[1] in commands, line
        known = {name for option in commands[words[1]].params for name in option.opts} | {"--help"}
        options = {word.split("=")[0] for word in words if word.startswith("--")}
        assert options <= known, (line, options - known)
