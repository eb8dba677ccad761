"""The command line as a person meets it: through a pseudo-terminal, with odd files, and with Ctrl-C."""

import errno
import os
import pty
import subprocess
import sys
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest

from psilearn.cli import main

COMMAND = [sys.executable, "-c", "from psilearn.cli import main; main()"]


class Done(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def psilearn(monkeypatch, capsys):
    """Run the command in this process (a process of its own costs seconds); return what a shell would see."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["psilearn", *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            main()
        return Done(stop.value.code, *capsys.readouterr())

    return run


def in_terminal(*arguments, columns=130):
    """Run with a pseudo-terminal on all three streams; return (exit status, everything shown)."""
    ours, theirs = pty.openpty()
    env = os.environ | {"COLUMNS": str(columns), "LINES": "40", "TERM": "xterm-256color"}
    process = subprocess.Popen([*COMMAND, *map(str, arguments)], stdin=theirs, stdout=theirs, stderr=theirs, env=env)
    os.close(theirs)
    shown = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError as error:
            if error.errno != errno.EIO:  # how Linux says that the other end is closed
                raise
            break
        if not part:
            break
        shown += part
    os.close(ours)
    return process.wait(timeout=60), shown.decode()


@pytest.fixture(scope="module")
def csv(tmp_path_factory):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(80, 3))
    frame = pd.DataFrame(X, columns=["age", "dose", "score"])
    frame["group"] = np.resize(["u", "v"], 80)
    frame["outcome"] = np.where(X[:, 0] > 0, "sick", "well")
    path = tmp_path_factory.mktemp("data") / "patients.csv"
    frame.to_csv(path, index=False)
    return path


def test_compare_in_a_terminal(csv):
    status, shown = in_terminal("compare", csv, "--target", "outcome", "--method", "svm-l1", "--method", "logistic")
    assert status == 0
    assert "80 rows" in shown
    assert "SVM, l1" in shown
    assert "Smallest test error" in shown
    assert "\x1b[" in shown  # a terminal gets colour and a live bar


def test_compare_in_a_pipe_is_plain(psilearn, csv):
    done = psilearn("compare", csv, "--target", "outcome", "--method", "svm-l1")
    assert done.returncode == 0
    assert done.stderr == ""
    assert "\x1b" not in done.stdout
    assert "optimum, gap" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["compare", "--bogus"], "No such option"),
        (["compare", "--folds", "1"], "at least 2 folds"),
        (["compare", "--method", "magic"], "unknown method 'magic'"),
        (["compare", "--budget", "none"], "--budget"),
        (["nonsense"], "No such command"),
    ],
)
def test_bad_usage_is_2_and_one_sentence(psilearn, arguments, says):
    done = psilearn(*arguments)
    assert done.returncode == 2
    assert says in done.stderr
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""


@pytest.mark.parametrize("command", [[], ["compare"]])
def test_help_everywhere(psilearn, command):
    done = psilearn(*command, "--help")
    assert done.returncode == 0
    assert "Usage:" in done.stdout


ROWS = {"x": np.arange(30) % 7, "z": np.arange(30) % 5}
BAD_TABLES = {
    "one class": (pd.DataFrame(ROWS | {"target": ["a"] * 30}), "one class only"),
    "missing target": (pd.DataFrame(ROWS | {"target": [None] * 30}), "is empty"),
    "no target": (pd.DataFrame(ROWS), "Which column"),
    "one row": (pd.DataFrame({"x": [1], "target": ["a"]}), "one class only"),
    "no features": (pd.DataFrame({"target": np.resize(["a", "b"], 30)}), "No column is left"),
    "all missing": (pd.DataFrame({"x": [None] * 30, "target": np.resize(["a", "b"], 30)}), "every cell is missing"),
}


@pytest.mark.parametrize("name", BAD_TABLES)
def test_bad_tables_are_1_and_one_sentence(psilearn, tmp_path, name):
    frame, says = BAD_TABLES[name]
    frame.to_csv(tmp_path / "t.csv", index=False)
    done = psilearn("compare", tmp_path / "t.csv")
    assert done.returncode == 1
    assert says in done.stderr
    assert done.stderr.count("\n") == 1
    assert "Traceback" not in done.stderr


def test_hostile_names_and_cells_are_inert(tmp_path):
    rng = np.random.default_rng(2)
    x = rng.normal(size=60)
    frame = pd.DataFrame(
        {
            "[bold red]<script>alert(1)</script>": x,
            "\x1b[2Jesc": rng.normal(size=60),
            "long" * 2500: np.resize([1.0, 1.0], 60),
            "q\"uo'te,": np.resize(["<b>", "[/]", "ünï\u202e"], 60),
            "target": np.where(x > 0, "[red]yes", "\x1b]0;no\x07"),
        }
    )
    frame.to_csv(tmp_path / "h.csv", index=False)
    status, shown = in_terminal("compare", tmp_path / "h.csv", "--method", "logistic")
    assert status == 0
    assert "\x1b[2J" not in shown
    assert "\x1b]0;" not in shown
    assert "\u202e" not in shown
    assert "[red]yes" in shown
    assert "long" * 100 not in shown.replace("\r\n", "")
