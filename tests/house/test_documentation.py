"""Every block of code on every page runs, prints what the page shows, and every command does what the page says."""

import contextlib
import gzip
import io
import re
import runpy
import shlex
import sys
import tomllib
import warnings
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
import typer
from typer.main import get_command

import psilearn
from psilearn.app.cli import app, main

mpl.use("Agg")
import matplotlib.pyplot as plt

ROOT = Path(__file__).parents[2]
#: Pages without code of their own: made from results, or from examples and docstrings, which are tested by themselves.
MADE = ("reproduction", "gallery", "generated", "_build")
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "CHANGELOG.md",
    *(page for page in sorted((ROOT / "docs").rglob("*.md")) if page.relative_to(ROOT / "docs").parts[0] not in MADE),
]
#: A block in a language, and what the page says it prints, if it says so.
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```\n(?:\n?```text\n(.*?)^```)?", re.M | re.S)
#: What shell blocks may hold beside commands of ours, with where the thing named must exist.
MAKE_TARGETS = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.M))
EXTRAS = set(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"])
#: These compute (or compile) for minutes; that the command and its options exist is checked all the same.
TOO_LONG = ("psilearn reproduce --all", "psilearn warmup")


def blocks(page, kind):
    return [(code, shown) for language, code, shown in BLOCK.findall(page.read_text()) if language == kind]


def with_blocks(kind):
    pages = [page for page in PAGES if blocks(page, kind)]
    return pytest.mark.parametrize("page", pages, ids=[str(page.relative_to(ROOT)) for page in pages])


@with_blocks("python")
def test_the_python_of_a_page_runs_from_top_to_bottom(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "page"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for code, shown in blocks(page, "python"):
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(compile(code, str(page), "exec"), names)
            if shown:
                assert printed.getvalue().rstrip() == shown.rstrip(), code


@pytest.fixture
def tables(tmp_path, monkeypatch):
    """The files that the commands of a page speak of."""
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"patient": np.arange(1001, 1091), "age": rng.normal(50, 15, 90)})
    frame["dose"] = rng.exponential(size=90)
    frame["site"] = np.resize(["north", "south"], 90)
    frame["outcome"] = np.where(frame["age"] + 5 * frame["dose"] > 55, "sick", "well")
    frame.to_csv(tmp_path / "patients.csv", index=False)
    frame.drop(columns="outcome").to_csv(tmp_path / "new_patients.csv", index=False)
    frame[["age", "dose", "outcome"]][:40].to_csv(tmp_path / "measurements.csv", index=False)
    changed = {"sick": "well", "well": "sick"}[frame["outcome"][2]]
    decision = {"row": 3, "id": 1003, "given": frame["outcome"][2], "decision": "relabel", "label": changed}
    pd.DataFrame([decision]).to_csv(tmp_path / "decisions.csv", index=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(typer, "launch", lambda url: 0)


def run(line, monkeypatch):
    """Run a line of a shell block; return its exit status."""
    words = shlex.split(line, comments=True)
    if words[0] != "psilearn":
        return 0 if exists(words) else f"what is {words}?"
    monkeypatch.setattr(sys, "argv", [*words, "--help"] if line.startswith(TOO_LONG) else words)
    with pytest.raises(SystemExit) as stop:
        main()
    return stop.value.code


def exists(words):
    """Whether what is made or installed is there to be made or installed."""
    if words[0] == "make":
        return set(words[1:]) <= MAKE_TARGETS
    extras = re.findall(r"\[(.*?)\]", words[-1])
    return words[:2] == ["pip", "install"] and set(",".join(extras).split(",")) <= EXTRAS | {""}


@with_blocks("bash")
@pytest.mark.filterwarnings("ignore")
def test_the_commands_of_a_page_run_one_after_the_other(page, tables, monkeypatch):
    for code, _ in blocks(page, "bash"):
        for line in filter(None, map(str.strip, code.splitlines())):
            assert run(line, monkeypatch) == 0, line


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_in_sentences_exist(page):
    commands = get_command(app).commands
    for line in re.findall(r"(?<!`)`psilearn ([^`]+)`(?!`)", page.read_text()):
        words = line.split()
        assert words[0] in commands or words[0].startswith("-"), line
        known = {name for option in getattr(commands.get(words[0]), "params", []) for name in option.opts}
        options = {word.split("=")[0] for word in words if word.startswith("--")}
        assert options <= known | {"--help", "--version"}, (line, options - known)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_block_says_what_it_is(page):
    """A block without a language, or in one that no test reads, would never run."""
    fences = re.findall(r"^(`{3,}.*|:{3,}.*)$", page.read_text(), re.M)
    assert {fence.split()[0] for fence in fences[::2]} <= {
        "```python", "```py", "```bash", "```text", "```{toctree}", "```{include}", "```{literalinclude}",
    }, page  # fmt: skip
    assert set(fences[1::2]) <= {"```"}


def test_excerpts_are_lines_of_the_package_in_their_order():
    """Blocks in "py" are parts of files; what stands between their lines may be left out."""
    sources = [list(map(str.strip, path.read_text().splitlines())) for path in (ROOT / "psilearn").rglob("*.py")]
    excerpts = [code for page in PAGES for code in re.findall(r"^ *```py\n(.*?)^ *```", page.read_text(), re.M | re.S)]
    assert excerpts
    for code in excerpts:
        lines = [line.strip() for line in code.splitlines() if line.strip()]
        assert any(are_in_order(lines, source) for source in sources), code


def are_in_order(lines, source):
    rest = iter(source)
    return all(line in rest for line in lines)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_fractions_have_braces(page):
    """What makes MathML of the formulas reads 12 over x where TeX would read 1 over 2, times x."""
    assert re.findall(r"frac[^{]", page.read_text()) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    """Links of pages that the site does not render, such as README's, and of those that it does."""
    for target in re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", page.read_text()):
        place = page.parent / target
        made = target.endswith("index.rst") or "gallery" in target
        if made:  # from examples/, by sphinx
            name = Path(target).with_suffix(".py").name
            assert name == "index.py" or list((ROOT / "examples").rglob(name)), target
        else:
            assert place.exists(), target


def test_every_public_name_is_on_the_page_of_the_api():
    listed = set(re.findall(r"^   ([\w.]+)$", (ROOT / "docs" / "api.rst").read_text(), re.M))
    assert set(psilearn.__all__) - {"__version__"} <= listed
    assert {f"datasets.{name}" for name in psilearn.datasets.__all__ if name.startswith(("make_", "load_"))} <= listed


EXAMPLES = sorted((ROOT / "examples").rglob("plot_*.py"))


def test_there_are_twenty_examples():
    assert len(EXAMPLES) >= 20


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.stem)
@pytest.mark.filterwarnings("ignore")
def test_an_example_of_the_gallery_runs_and_draws(example, monkeypatch):
    monkeypatch.setattr(plt, "show", lambda: None)
    plt.close("all")
    title = example.read_text().splitlines()[:3]
    assert title[2] == "=" * len(title[1])
    runpy.run_path(str(example))
    assert plt.get_fignums(), "an example without a picture"
    assert all(axes.has_data() for number in plt.get_fignums() for axes in plt.figure(number).axes)
    plt.close("all")


def test_the_proof_that_the_page_explains_holds(tmp_path):
    text = (ROOT / "docs" / "certificates.md").read_text()
    table, proof = (re.search(rf"((?:^    {start}.*\n)(?:^    .*\n)+)", text, re.M)[1] for start in ("x,label", r"\{"))
    table, proof = ("".join(line[4:] + "\n" for line in lines.splitlines()) for lines in (table, proof))
    (tmp_path / "fit.proof").write_bytes(gzip.compress(proof.encode()))
    data = pd.read_csv(io.StringIO(table))
    assert psilearn.check(tmp_path / "fit.proof", data[["x"]], data["label"]).ok
    data.loc[0, "x"] += 1
    assert not psilearn.check(tmp_path / "fit.proof", data[["x"]], data["label"]).ok
