"""The benchmark runner: what it measures is found, kept, continued, and compared."""

import math

import numpy as np
import pytest

from benchmarks.runner import command, record
from benchmarks.runner.rows import LeftOutError, Plan, Row


@pytest.fixture
def benchmark(monkeypatch):
    """Put a benchmark of some rows in the place of a real one; it knows which rows were measured."""

    def put(*found):
        measured = []

        def rows(plan):
            for row in found:
                if isinstance(row, Exception):
                    raise row
                if plan.wants(row.name):
                    measured.append(row.name)
                    yield row

        module = type("Module", (), {"rows": staticmethod(rows)})
        monkeypatch.setattr(command.importlib, "import_module", lambda name: module)
        return measured

    return put


def test_every_module_is_a_benchmark_and_imports_no_other():
    for path in command.HOME.glob("[a-z]*.py"):
        text = path.read_text()
        others = {name for name in command.names() if name != path.stem and f"benchmarks.{name}" in text}
        assert not others, (path.name, others)
    modules = {path.stem for path in command.HOME.glob("[a-z]*.py")}
    assert modules == set(command.names())
    assert {"everyday", "svm", "l1", "dca", "exact_psi", "hard_margin", "rules", "label_audit"} <= modules


def test_rows_survive_the_file(tmp_path, benchmark):
    benchmark(Row("a", 1.0, 4.0, {"ratio <= 1": np.True_}, {"equal": True}, "note"), Row("b", 2.0, unit="%"))
    assert command.main(["svm", "--json", str(tmp_path / "run.json")]) == 0
    a, b = record.read(tmp_path / "run.json")["svm"]
    assert (a.ratio, a.goals, a.checks, a.note) == (0.25, {"ratio <= 1": True}, {"equal": True}, "note")
    assert (b.ours, b.unit) == (2.0, "%")
    assert math.isnan(b.ratio)


def test_a_failed_check_fails_the_run_and_a_missed_goal_does_not(benchmark, capsys):
    benchmark(Row("a", 1.0, 1.0, goals={"fast": False}))
    assert command.main(["svm"]) == 0
    benchmark(Row("a", 1.0, 1.0, checks={"bound below the value": False}))
    assert command.main(["svm"]) == 1
    assert "FAILED svm: a: bound below the value" in capsys.readouterr().out


def test_what_breaks_is_told_and_the_others_still_run(benchmark, capsys):
    benchmark(Row("a", 1.0), ZeroDivisionError("broken"))
    assert command.main(["svm", "dca"]) == 1
    out = capsys.readouterr().out
    assert "FAILED svm: ZeroDivisionError: broken" in out
    assert "== dca" in out
    benchmark(LeftOutError("needs data"))
    assert command.main(["svm"]) == 0


def test_an_interrupted_run_is_continued(tmp_path, benchmark):
    file = str(tmp_path / "run.json")
    benchmark(Row("a", 1.0))
    command.main(["svm", "--json", file])
    measured = benchmark(Row("a", 9.0), Row("b", 2.0))
    command.main(["svm", "--json", file, "--resume"])
    assert measured == ["b"]
    assert [(row.name, row.ours) for row in record.read(tmp_path / "run.json")["svm"]] == [("a", 1.0), ("b", 2.0)]


def test_only_rows_of_a_name():
    plan = Plan(only="rbf", done=frozenset({"rbf, k=2"}))
    assert [plan.wants(name) for name in ("rbf, k=3", "rbf, k=2", "linear")] == [True, False, False]


@pytest.mark.parametrize(
    ("now", "then", "is_worse"),
    [
        (Row("a", 1.0), Row("a", 0.8), True),
        (Row("a", 1.0), Row("a", 0.95), False),
        (Row("a", 0.002), Row("a", 0.001), False),  # a millisecond is noise
        (Row("a", 2.0, 4.0), Row("a", 1.0, 2.0), False),  # the machine was slower, the ratio is the same
        (Row("a", 1.0, 1.0), Row("a", 1.0, 2.0), True),
        (Row("a", 1.0, goals={"proved": False}), Row("a", 1.0, goals={"proved": True}), True),
        (Row("b", 9.0), Row("a", 1.0), False),
    ],
)
def test_what_became_worse(now, then, is_worse):
    assert bool(list(record.worse({"svm": [now]}, {"svm": [then]}))) == is_worse


def test_an_unknown_name_is_said(capsys):
    assert command.main(["svn"]) == 2
    assert "There is no benchmark called 'svn'" in capsys.readouterr().err
