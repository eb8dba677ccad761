"""The command line as a person meets it: through a pseudo-terminal, with odd files, and with Ctrl-C."""

import errno
import io
import os
import pty
import re
import signal
import subprocess
import sys
import time
from functools import partial
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from psilearn import SVMClassifier
from psilearn.app.cli import STOPPED, main

COMMAND = [sys.executable, "-c", "from psilearn.app.cli import main; main()"]


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
    assert "always answering 'sick' is wrong in" in shown
    assert "\x1b[" in shown  # a terminal gets colour and a live bar


def test_a_narrow_terminal_keeps_error_and_proof(csv):
    arguments = ["--method", "truncated-adaptive", "--method", "l0-boost"]
    status, shown = in_terminal("compare", csv, "--target", "outcome", *arguments, columns=80)
    assert status == 0
    assert "Truncated, adaptive l1" in shown
    assert "95% interval" in shown
    assert "local optimum" in shown
    assert "also shows coefs" in shown


def test_compare_in_a_pipe_is_plain(psilearn, csv):
    done = psilearn("compare", csv, "--target", "outcome", "--method", "svm-l1")
    assert done.returncode == 0
    assert done.stderr == ""
    assert "\x1b" not in done.stdout
    assert "proved, gap" in done.stdout


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


def test_a_file_without_a_command_is_told_what_to_do(psilearn, tmp_path):
    path = tmp_path / "my table.csv"
    path.write_text("a,b\n1,2\n")
    done = psilearn(path)
    assert done.returncode == 2
    assert f"psilearn audit '{path}'" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("command", [[], ["compare"], ["audit"], ["fit"], ["predict"], ["explore"], ["reproduce"]])
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


# -- report, audit, fit and predict


def test_report_is_written_whole(psilearn, csv, tmp_path):
    out = tmp_path / "report.html"
    methods = ["--method", "svm-l2", "--method", "truncated"]
    done = psilearn("compare", csv, "--target", "outcome", "--budget", 30, "--out", out, *methods)
    assert done.returncode == 0, done.stderr
    assert str(out) in done.stdout
    html = out.read_text()
    assert html.startswith("<!doctype html>")
    assert html.rstrip().endswith("</html>")
    assert "patients.csv" in html
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]


def test_rules_and_abstentions_are_printed(psilearn, csv):
    methods = ["--method", "l0-boost", "--method", "reject"]
    done = psilearn("compare", csv, "--target", "outcome", "--rules", "--reject", 0.1, *methods)
    assert done.returncode == 0, done.stderr
    assert "age" in done.stdout.split("L0-RBoost, test error")[1]
    assert "abstentions at d = 0.1" in done.stdout
    answered = done.stdout.split("an abstention costs 0.1")[1]
    assert "error among answered" in answered
    for label in ("L0-RBoost", "Reject option, l1"):
        coverage, error, cost = answered.split(label)[1].split()[:3]
        share, wrong = (float(cell.rstrip("%")) / 100 for cell in (coverage, error))
        assert 0 <= share <= 1
        assert float(cost) == pytest.approx(share * wrong + (1 - share) * 0.1, abs=1e-3)


def test_without_a_rule_method_there_are_no_rules_to_print(psilearn, csv):
    done = psilearn("compare", csv, "--target", "outcome", "--rules", "--method", "logistic")
    assert done.returncode == 0, done.stderr
    assert "No rules to print" in done.stdout


def test_audit_ranks_every_row(psilearn, csv, tmp_path):
    frame = pd.read_csv(csv)
    wrong = [3, 17, 40]
    frame.loc[wrong, "age"] += np.where(frame.loc[wrong, "outcome"] == "sick", 3.0, -3.0)
    frame.loc[wrong, "outcome"] = frame.loc[wrong, "outcome"].map({"sick": "well", "well": "sick"})
    frame.loc[10, "outcome"] = None  # row numbers must still be those of the file
    frame.to_csv(tmp_path / "in.csv", index=False)
    options = ["--out", tmp_path / "out.csv", "--repeats", 1]
    done = psilearn("audit", tmp_path / "in.csv", "--target", "outcome", *options)
    assert done.returncode == 0, done.stderr
    ranking = pd.read_csv(tmp_path / "out.csv")
    assert len(ranking) == 79
    assert set(ranking["row"].head(3)) == {4, 18, 41}
    assert {"row", "given", "suggested", "score", "margin", "agreement"} <= set(ranking.columns)


@pytest.mark.parametrize("method", ["truncated", "reject", "l0-boost"])
def test_fit_then_predict_streams(psilearn, csv, tmp_path, method):
    model = tmp_path / "model.psi"
    done = psilearn("fit", csv, "--target", "outcome", "--method", method, "--out", model)
    assert done.returncode == 0, done.stderr
    whole, parts = tmp_path / "whole.csv", tmp_path / "parts.csv"
    assert psilearn("predict", model, csv, "--out", whole).returncode == 0
    assert psilearn("predict", model, csv, "--out", parts, "--chunk", 7).returncode == 0
    assert whole.read_text() == parts.read_text()
    answers = pd.read_csv(whole)
    assert len(answers) == 80
    assert (answers["prediction"] == pd.read_csv(csv)["outcome"]).mean() > 0.85
    assert ("abstains" in answers) == (method == "reject")
    assert psilearn("predict", model, csv).stdout == whole.read_text()


def test_predict_names_what_does_not_fit(psilearn, csv, tmp_path):
    model = tmp_path / "model.psi"
    psilearn("fit", csv, "--target", "outcome", "--method", "svm-l1", "--out", model)
    frame = pd.read_csv(csv)
    frame.drop(columns="age").to_csv(tmp_path / "less.csv", index=False)
    done = psilearn("predict", model, tmp_path / "less.csv", "--out", tmp_path / "x.csv")
    assert done.returncode == 1
    assert "lacks columns" in done.stderr
    frame.assign(age="old").to_csv(tmp_path / "words.csv", index=False)
    done = psilearn("predict", model, tmp_path / "words.csv", "--out", tmp_path / "x.csv")
    assert done.returncode == 1
    assert "'age' held numbers" in done.stderr
    assert not (tmp_path / "x.csv").exists()
    done = psilearn("predict", csv, csv)
    assert done.returncode == 1
    assert "not a psilearn model" in done.stderr


def test_predict_flags_what_training_has_not_seen(psilearn, csv, tmp_path):
    model, new, out = tmp_path / "model.psi", tmp_path / "new.csv", tmp_path / "out.csv"
    frame = pd.read_csv(csv).assign(patient=[f"P{i:02}" for i in range(80)])
    frame.to_csv(tmp_path / "with ids.csv", index=False)
    assert psilearn("fit", tmp_path / "with ids.csv", "--target", "outcome", "--out", model).returncode == 0
    odd = frame.drop(columns="outcome").head(12).astype({"dose": object})
    odd.loc[2, "dose"], odd.loc[4, "group"], odd.loc[6, "age"], odd.loc[8, "dose"] = "<0.5", "w", 99.0, "lost"
    odd.to_csv(new, index=False)
    for chunk in (1, 100):
        done = psilearn("predict", model, new, "--out", out, "--chunk", chunk)
        assert done.returncode == 0, done.stderr
        assert "3 of 12 rows" in done.stderr
        answers = pd.read_csv(out, keep_default_na=False)
        assert answers["row"].tolist() == list(range(1, 13))
        assert answers["patient"].tolist() == odd["patient"].tolist()
        said = {at: words for at, words in enumerate(answers["unusual"]) if words}
        assert sorted(said) == [4, 6, 8]
        assert said[4] == "group: 'w' is not known from the training"
        assert said[6].startswith("age: 99 is far outside")
        assert said[8] == "dose: 'lost' is not a number"
    assert "age" in pd.read_csv(io.StringIO(psilearn("predict", model, new, "--id", "age").stdout)).columns
    done = psilearn("predict", model, new, "--id", "aeg")
    assert done.returncode == 1
    assert "did you mean 'age'" in done.stderr
    odd.head(0).to_csv(new, index=False)
    done = psilearn("predict", model, new)
    assert (done.returncode, done.stderr) == (1, "psilearn: The table has no rows to predict.\n")


@pytest.mark.parametrize("command", ["compare", "audit", "explore"])
def test_bad_places_are_refused_before_the_work(psilearn, tmp_path, command):
    done = psilearn(command, "--out", tmp_path / "no" / "where.html")
    assert done.returncode == 1
    assert "no folder" in done.stderr
    done = psilearn(command, "--out", tmp_path)
    assert done.returncode == 1
    assert "is a folder" in done.stderr


def test_explore_writes_a_page(psilearn, tmp_path):
    done = psilearn("explore", "--out", tmp_path / "e.html")
    assert done.returncode == 0
    assert "Drag a mislabelled point" in (tmp_path / "e.html").read_text()


def test_explore_a_table(psilearn, csv, tmp_path):
    done = psilearn("explore", csv, "--target", "outcome", "--out", tmp_path / "e.html")
    assert done.returncode == 0, done.stderr
    assert "component 1 (" in (tmp_path / "e.html").read_text()
    pd.DataFrame({"x": np.arange(20.0) ** 2, "target": np.resize(["a", "b"], 20)}).to_csv(
        tmp_path / "t.csv", index=False
    )
    done = psilearn("explore", tmp_path / "t.csv", "--out", tmp_path / "f.html")
    assert done.returncode == 1
    assert "at least two features" in done.stderr


def test_reproduce_lists_the_experiments(psilearn):
    assert psilearn("reproduce").returncode == 0
    assert psilearn("reproduce", "no-such-paper").returncode == 2


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_predict_leaves_no_file(psilearn, csv, tmp_path, how):
    model, out = tmp_path / "model.psi", tmp_path / "out.csv"
    psilearn("fit", csv, "--target", "outcome", "--method", "svm-l1", "--out", model)
    big = tmp_path / "big.csv"
    pd.concat([pd.read_csv(csv)] * 3000).to_csv(big, index=False)
    arguments = [*COMMAND, "predict", str(model), str(big), "--out", str(out), "--chunk", "100"]
    # A test run started in the background ignores SIGINT, and its children inherit that: listen again.
    listen = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    process = subprocess.Popen(arguments, stderr=subprocess.PIPE, text=True, preexec_fn=listen)
    started = time.monotonic()
    while not list(tmp_path.glob(".out.csv*.part")):  # it is writing
        assert time.monotonic() - started < 60
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(how)
    _, shown = process.communicate(timeout=60)
    assert process.returncode == 1
    assert shown == "psilearn: Interrupted; nothing was written.\n"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["big.csv", "model.psi"]


def test_interrupted_fit_does_not_let_the_comparison_go_on(psilearn, csv, tmp_path, monkeypatch):
    def fit(self, *arguments):
        STOPPED.append(signal.SIGINT)  # the solver takes the signal for the end of its fit
        return solve(self, *arguments)

    solve = SVMClassifier._solve
    monkeypatch.setattr(SVMClassifier, "_solve", fit)
    done = psilearn("compare", csv, "--target", "outcome", "--method", "svm-l2", "--out", tmp_path / "r.html")
    assert done.returncode == 1
    assert done.stderr == "psilearn: Interrupted; nothing was written.\n"
    assert list(tmp_path.iterdir()) == []


def test_closed_pipe_is_quiet(csv, tmp_path, psilearn):
    psilearn("fit", csv, "--target", "outcome", "--method", "svm-l1", "--out", tmp_path / "m")
    big = tmp_path / "big.csv"
    pd.concat([pd.read_csv(csv)] * 500).to_csv(big, index=False)
    command = [*COMMAND, "predict", str(tmp_path / "m"), str(big)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.read(10)
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(timeout=60) == 1


def test_large_table_within_the_budget(psilearn, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200_000, 4)).round(3)
    frame = pd.DataFrame(X, columns=list("abcd"))
    frame["target"] = np.where(X[:, 0] + 0.5 * rng.normal(size=len(X)) > 0, 1, 0)
    frame.to_csv(tmp_path / "large.csv", index=False)
    done = psilearn("compare", tmp_path / "large.csv", "--budget", 8, "--method", "svm-l2", "--method", "svc")
    assert done.returncode == 0, done.stderr
    assert "200000 rows" in done.stdout
    assert re.search(r"SVC, rbf kernel: trained on a random \d+ of 140000 rows", done.stdout)
    assert "SVM, l2: trained" not in done.stdout


def test_warmup_compiles_and_says_only_that(psilearn):
    done = psilearn("warmup")
    assert done.returncode in (0, None)
    assert done.stderr == ""
    assert re.fullmatch(r"Everything is compiled \(\d+ s\); first fits no longer wait\.\n", done.stdout)


def test_linear_algebra_runs_on_one_thread_unless_the_environment_says_otherwise(monkeypatch):
    for name in [name for name in os.environ if name.endswith("_NUM_THREADS")]:
        monkeypatch.delenv(name)
    seen = []

    def libraries(**options):
        seen.append({library["num_threads"] for library in threadpool_info()})

    monkeypatch.setattr("psilearn.app.cli.app", libraries)
    monkeypatch.setattr(sys, "argv", ["psilearn"])
    with threadpool_limits(2):
        for threads in (None, "2"):
            if threads:
                monkeypatch.setenv("OMP_NUM_THREADS", threads)
            with pytest.raises(SystemExit):
                main()
    assert seen == [{1}, {2}]
