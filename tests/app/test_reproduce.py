"""The harness: seeded tasks, a store that survives kill -9, sharing, failures, dask, comparison and pages."""

import json
import math
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from sklearn.svm import SVC

from psilearn import __version__
from psilearn.app.reproduce import (
    Ordering,
    Published,
    Ratio,
    Store,
    Summary,
    compare,
    execute,
    main,
    rebuild,
    run,
    summarise,
    verdict,
)
from psilearn.app.reproduce.compare import judge, printed_unit
from psilearn.app.reproduce.summary import Cell, Difference
from psilearn.app.reproduce.task import version
from psilearn.datasets import make_disk

from oracles import reproduce_toys as toys

TESTS = Path(__file__).parent.parent
SCRIPT = """
import sys
from oracles import reproduce_toys
from psilearn.app.reproduce import Store, run
run(reproduce_toys.slow.tasks(), Store(sys.argv[1]), n_jobs=1)
"""


def contents(path, experiment):
    """What a store holds, without times."""
    rows = Store(path).records(experiment.name)
    return [(r.key, r.settings, r.replicate, r.seed, r.status, r.result) for r in rows]


@pytest.fixture
def start():
    """Start a script on a store in a process of its own; none outlives the test, also when it fails."""
    processes = []

    def begin(path, script=SCRIPT, **environment):
        paths = os.pathsep.join([str(TESTS), str(TESTS.parent)])
        processes.append(
            subprocess.Popen(
                [sys.executable, "-c", script, str(path)], env=os.environ | {"PYTHONPATH": paths} | environment
            )
        )
        return processes[-1]

    yield begin
    for process in processes:
        process.kill()
        process.wait()


def wait_until(condition, seconds=40):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it took too long"
        time.sleep(0.01)


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    path = tmp_path_factory.mktemp("whole") / "store.sqlite"
    store = Store(path)
    for task in toys.slow.tasks():
        store.save(execute(task))
    return contents(path, toys.slow)


def test_tasks_are_seeded_and_balanced():
    tasks = toys.svm.tasks()
    assert len(tasks) == 16
    assert len({task.key for task in tasks}) == 16
    assert [task.replicate for task in tasks[:4]] == [0, 0, 1, 1]
    assert tasks[0].seed == tasks[1].seed != tasks[2].seed
    assert len(toys.svm.tasks(small=True)) == 6
    assert toys.svm.tasks(5)[:6] == toys.svm.tasks(small=True)
    assert toys.also.tasks() == tasks


def test_the_version_names_the_commit(tmp_path):
    def git(*words):
        author = ("-c", "user.name=A. Author", "-c", "user.email=author@example.org")
        return subprocess.run(["git", *author, *words], cwd=tmp_path, check=True, capture_output=True, text=True).stdout

    package = tmp_path / "package"
    package.mkdir()
    (package / "module.py").write_text("x = 1")
    assert version.__wrapped__(package) == __version__
    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "one")
    commit = git("log", "-1", "--format=%h").strip()
    (tmp_path / "beside.py").write_text("not in the package")
    assert version.__wrapped__(package) == f"{__version__} at {commit}"
    (package / "module.py").write_text("x = 2")
    assert version.__wrapped__(package) == f"{__version__} at {commit}+"


def test_results_do_not_depend_on_where_they_run(tmp_path):
    store = Store(tmp_path / "store.sqlite")
    run(toys.svm.tasks(2), store, n_jobs=2)
    for record in store.records("toy/svm"):
        X, y = make_disk(50, random_state=record.seed)
        model = SVC(kernel="linear", C=json.loads(record.settings)["C"]).fit(X, y)
        assert record.result["vectors"] == model.n_support_.sum()
        assert record.version
        assert record.seconds > 0


def test_kill_9_then_resume_equals_an_uninterrupted_run(tmp_path, uninterrupted, start):
    path = tmp_path / "store.sqlite"
    store = Store(path)
    process = start(path)
    wait_until(lambda: len(store.finished()) >= 7)
    process.send_signal(signal.SIGKILL)
    process.wait()
    stored = contents(path, toys.slow)
    assert 7 <= len(stored) < len(uninterrupted)
    assert [row for row in uninterrupted if row in stored] == stored
    kept = {r.key: r.finished for r in store.records("toy/slow")}
    run(toys.slow.tasks(), store, n_jobs=2)
    assert contents(path, toys.slow) == uninterrupted
    again = {r.key: r.finished for r in store.records("toy/slow")}
    assert all(again[key] == finished for key, finished in kept.items()), "a finished task was computed again"


def test_workers_of_a_killed_process_end(tmp_path, start):
    log = tmp_path / "log"
    process = start(tmp_path / "store.sqlite", script=SCRIPT.replace("n_jobs=1", "n_jobs=2"), TOY_LOG=str(log))
    wait_until(lambda: log.exists() and len(log.read_text().splitlines()) >= 4)
    workers = {int(line.split()[0]) for line in log.read_text().splitlines()}
    assert process.pid not in workers
    process.send_signal(signal.SIGKILL)
    process.wait()
    wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in workers))


def test_two_processes_share_a_store(tmp_path, uninterrupted, start):
    path, log = tmp_path / "store.sqlite", tmp_path / "log"
    processes = [start(path, TOY_LOG=str(log)) for _ in range(2)]
    assert [process.wait(timeout=60) for process in processes] == [0, 0]
    assert contents(path, toys.slow) == uninterrupted
    lines = [line.split() for line in log.read_text().splitlines()]
    assert len(lines) == len({tuple(line[1:]) for line in lines}) == len(uninterrupted), "work was done twice"


def test_claims(tmp_path):
    task = toys.slow.tasks()[0]
    first, second = (Store(tmp_path / "store.sqlite") for _ in range(2))
    assert first.claim(task)
    assert first.claim(task)
    assert not second.claim(task)
    first.release()
    assert second.claim(task)
    second.save(execute(task))
    assert not first.claim(task)
    assert not second.claim(task)


def test_claims_of_the_dead_are_void(tmp_path, monkeypatch):
    task, other = toys.slow.tasks()[:2]
    dead, living = (Store(tmp_path / "store.sqlite") for _ in range(2))
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    with monkeypatch.context() as patch:
        patch.setattr("psilearn.app.reproduce.store.os.getpid", lambda: gone.pid)
        assert dead.claim(task)
    assert living.claim(task)
    with monkeypatch.context() as patch:
        patch.setattr("psilearn.app.reproduce.store.socket.gethostname", lambda: "elsewhere")
        assert dead.claim(other)
    assert not living.claim(other)
    late = time.time() + 3600
    monkeypatch.setattr("psilearn.app.reproduce.store.time.time", lambda: late)
    assert living.claim(other)


def test_a_failing_task_is_recorded_and_shown(tmp_path, capsys):
    store, out = tmp_path / "store.sqlite", tmp_path / "out"
    arguments = {"store": store, "out": out, "known": toys.KNOWN, "n_jobs": 1}
    assert main(["toy/broken"], **arguments) == 1
    captured = capsys.readouterr()
    assert "2 tasks failed" in captured.err
    assert "1 is odd" in captured.out
    records = Store(store).records("toy/broken")
    assert [record.status for record in records] == ["done", "failed", "done", "failed"]
    assert "Traceback" in records[1].error
    assert "ArithmeticError: 3 is odd" in (out / "toy-broken.md").read_text()
    assert "2 of 4 tasks failed" in (out / "toy-broken.md").read_text()


def test_a_failed_task_is_tried_again_and_a_done_one_never_lost(tmp_path):
    store = Store(tmp_path / "store.sqlite")
    tasks = toys.broken.tasks()
    run(tasks, store, n_jobs=1)
    first = {r.settings: r.finished for r in store.records("toy/broken")}
    run(tasks, store, n_jobs=1)
    second = {r.settings: r.finished for r in store.records("toy/broken")}
    assert [second[s] > first[s] for s in sorted(first)] == [False, True, False, True]
    done = execute(tasks[0])
    store.save(done.__class__(tasks[0], None, "late and wrong", 0.0))
    assert store.records("toy/broken")[0].status == "done"


def test_a_task_that_kills_its_worker_is_recorded_and_the_others_are_done(tmp_path):
    store = Store(tmp_path / "store.sqlite")
    run(toys.crash.tasks(), store, n_jobs=2)
    records = store.records("toy/crash")
    assert [record.status for record in records] == ["done", "done", "failed", "done"]
    assert "worker was lost" in records[2].error


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
def test_dask_cluster_with_a_worker_killed_midway(tmp_path, uninterrupted, monkeypatch):
    distributed = pytest.importorskip("distributed")
    path, log = tmp_path / "store.sqlite", tmp_path / "log"
    monkeypatch.setenv("TOY_LOG", str(log))
    store = Store(path)

    def workers():
        return [int(line.split()[0]) for line in log.read_text().splitlines()] if log.exists() else []

    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
    with distributed.LocalCluster(**options) as cluster:
        pids = cluster.get_client().run(os.getpid)
        assert len(set(pids.values())) == 2
        runner = threading.Thread(
            target=run, args=(toys.slow.tasks(), store), kwargs={"cluster": cluster.scheduler_address}
        )
        runner.start()
        victim = next(iter(pids.values()))
        wait_until(lambda: len(store.finished()) >= 5 and victim in workers())
        os.kill(victim, signal.SIGKILL)
        assert len(store.finished()) < len(uninterrupted) - 5, "nothing was left to lose"
        runner.join(timeout=60)
        assert not runner.is_alive()
    assert contents(path, toys.slow) == uninterrupted
    assert set(workers()) - {victim}, "the other worker did nothing"


def test_main_from_names_to_pages(tmp_path, capsys):
    arguments = {"store": tmp_path / "store.sqlite", "out": tmp_path / "out", "known": toys.KNOWN, "n_jobs": 1}
    assert main(["toy/svm", "toy/also"], small=True, **arguments) == 0
    page = (tmp_path / "out" / "toy-svm.md").read_text()
    for expected in (
        "A. Author and B. Author, A toy, 2001",
        "Does not reproduce: 1 of 2 figures differ (error 1 of 2); the farthest is C 1000.0 error: 0.9 published",
        "Computed with 3 of 8 replications",
        "A known reason: the printed figure was made up.",
        "| C 1000.0 | vectors | not printed |",
        "a large C errs less: ",
        "toy-svm.png",
        "| setting | undefined | vectors |",
    ):
        assert expected in page, expected
    assert "must not be shown" not in page
    assert (tmp_path / "out" / "toy-svm.png").stat().st_size > 0
    index = (tmp_path / "out" / "index.md").read_text()
    assert "[toy/also](toy-also.md)" in index
    assert "Of 5 tables and figures 1 do not reproduce, 1 have no printed number to compare with, 3 are not" in index
    assert "without 3 experiments whose cost is not known yet" in index
    assert "| A. Author and B. Author, A toy, 2001 | 1 of 2 | none printed, or none judged | 0 of 1 |" in index
    assert "| [toy/svm](toy-svm.md) | error 1 of 2 | the printed figure was made up. |" in index
    assert "| Does not reproduce: 1 of 2 figures differ. | 3 of 8 |" in index
    assert f"(psilearn {__version__}" in index
    assert "1 of the 2 test errors and accuracies agree with the printed ones." in index
    assert "| toy/slow | takes a moment | Not computed yet. |" in index
    assert json.loads((tmp_path / "out" / "results" / "toy-svm.json").read_text())["replications"] == 3
    capsys.readouterr()


def test_pages_need_only_the_results(tmp_path):
    store, out = tmp_path / "store.sqlite", tmp_path / "out"
    main(["toy/svm"], reps=3, store=store, out=out, known=toys.KNOWN, n_jobs=1)
    summary = Summary.load(out / "results" / "toy-svm.json")
    assert summary == summarise(toys.svm, toys.svm.tasks(3), Store(store))


def test_pages_are_rebuilt_from_the_results(tmp_path):
    store, out = tmp_path / "store.sqlite", tmp_path / "out"
    main(["toy/svm"], reps=3, store=store, out=out, known=toys.KNOWN, n_jobs=1)
    pages = {path: path.read_bytes() for path in sorted(out.glob("*.*"))}
    assert {path.suffix for path in pages} == {".md", ".png"}
    for path in pages:
        path.unlink()
    rebuild(toys.KNOWN.values(), out)
    assert {path: path.read_bytes() for path in sorted(out.glob("*.*"))} == pages


def test_a_short_run_does_not_hide_a_longer_one(tmp_path):
    arguments = {"store": tmp_path / "store.sqlite", "out": tmp_path / "out", "known": toys.KNOWN, "n_jobs": 1}
    main(["toy/svm"], reps=5, **arguments)
    main(["toy/svm"], reps=1, **arguments)
    summary = Summary.load(tmp_path / "out" / "results" / "toy-svm.json")
    assert summary.replications == 5
    assert summary.n_tasks == 10


def test_usage(tmp_path, capsys):
    assert main([], known=toys.KNOWN) == 0
    assert "toy/slow" in capsys.readouterr().out
    assert main(["nothing"], known=toys.KNOWN) == 2
    assert "unknown experiment 'nothing'" in capsys.readouterr().err
    assert main(["toy"], reps=0, known=toys.KNOWN) == 2
    assert "at least 1" in capsys.readouterr().err


def test_what_cannot_be_run_is_one_sentence(tmp_path, capsys, monkeypatch):
    arguments = {"out": tmp_path / "out", "known": toys.KNOWN, "n_jobs": 1}
    (tmp_path / "file").write_text("no folder")
    assert main(["toy/svm"], store=tmp_path / "file" / "store.sqlite", **arguments) == 1
    assert capsys.readouterr().err.startswith("cannot reproduce: ")
    (tmp_path / "no.sqlite").write_text("no database, but long enough to be taken for one" * 99)
    assert main(["toy/svm"], store=tmp_path / "no.sqlite", **arguments) == 1
    assert "not a database" in capsys.readouterr().err
    monkeypatch.setattr("psilearn.app.reproduce.runner.CONNECT_SECONDS", 0.2)
    assert main(["toy/svm"], store=tmp_path / "s.sqlite", cluster="tcp://127.0.0.1:9", **arguments) == 1
    assert "no dask scheduler answers" in capsys.readouterr().err


def test_an_interrupt_keeps_what_is_finished(tmp_path, capsys, monkeypatch):
    done = []

    def execute_two(task):
        if len(done) == 2:
            raise KeyboardInterrupt
        done.append(task)
        return execute(task)

    monkeypatch.setattr("psilearn.app.reproduce.runner.execute", execute_two)
    path = tmp_path / "store.sqlite"
    assert main(["toy/svm"], store=path, out=tmp_path, known=toys.KNOWN, n_jobs=1) == 1
    assert "interrupted" in capsys.readouterr().err
    assert len(Store(path).finished()) == 2
    assert Store(path).claim(toys.svm.tasks()[5]), "an interrupted process must give its claims back"


def test_ratio_of_averages(tmp_path):
    ratio = Ratio("quotient", "error", "vectors")
    experiment = toys.svm.__class__(**{**vars(toys.svm), "ratios": [ratio]})
    store = Store(tmp_path / "store.sqlite")
    run(toys.svm.tasks(6), store, n_jobs=1)
    cell = summarise(experiment, toys.svm.tasks(6), store).get({"C": 1.0}, "quotient")
    rows = [r.result for r in store.records("toy/svm") if r.settings == '{"C":1.0}']
    top, bottom = (np.array([row[name] for row in rows]) for name in ("error", "vectors"))
    assert cell.mean == pytest.approx(top.mean() / bottom.mean())
    jackknife = [np.delete(top, i).mean() / np.delete(bottom, i).mean() for i in range(6)]
    assert cell.sd / np.sqrt(6) == pytest.approx(np.sqrt(5 * np.var(jackknife)), rel=0.2)


def test_a_deterministic_figure_must_equal_the_printed_one():
    for printed, words in ((0.25, "Reproduces: all 1 figures equal"), (0.26, "Does not reproduce")):
        figure = Published({"C": 1.0}, "error", printed)
        fields = {**vars(toys.svm), "published": [figure], "deterministic": True, "reasons": ()}
        experiment = toys.svm.__class__(**fields)
        summary = Summary("toy/svm", [Cell({"C": 1.0}, "error", 1, 0.25, None)], replications=1)
        assert verdict(experiment, summary, compare(experiment, summary))[0].startswith(words)


def z_of(figure, values, **fields):
    """The z-score of a printed figure against these replicates."""
    cell = Cell({"C": 1.0}, "error", len(values), float(np.mean(values)), float(np.std(values, ddof=1)))
    experiment = toys.svm.__class__(**{**vars(toys.svm), "published": [figure], **fields})
    (row,) = compare(experiment, Summary("toy/svm", [cell], replications=len(values)))
    return row.z


def test_z_scores_against_two_sample_t_tests():
    values, theirs = [0.1, 0.2, 0.3, 0.5], [0.05, 0.1, 0.02, 0.21, 0.16, 0.11, 0.04, 0.13]
    mean, sd = float(np.mean(theirs)), np.std(theirs, ddof=1)
    expected = stats.norm.isf(stats.ttest_ind(values, theirs).pvalue / 2)
    assert z_of(Published({"C": 1.0}, "error", mean, sd=sd), values) == pytest.approx(expected, rel=1e-4)
    assert z_of(Published({"C": 1.0}, "error", mean, se=sd / np.sqrt(8)), values) == pytest.approx(expected, rel=1e-4)
    # without a printed spread: ours at the paper's eight replications, three degrees of freedom
    printed = Published({"C": 1.0}, "error", 0.90001)
    t = (np.mean(values) - 0.90001) / (np.std(values, ddof=1) * np.sqrt(1 / 4 + 1 / 8))
    assert z_of(printed, values) == pytest.approx(stats.norm.ppf(stats.t.cdf(t, 3)), rel=1e-4)
    t = (np.mean(values) - 0.90001) / (np.std(values, ddof=1) * np.sqrt(1 / 4 + 1))
    assert z_of(printed, values, printed_from=1) == pytest.approx(stats.norm.ppf(stats.t.cdf(t, 3)), rel=1e-4)


def test_rounding_of_the_printed_figure_counts():
    values = [0.9563, 0.9563, 0.9564, 0.9563]
    assert abs(z_of(Published({"C": 1.0}, "error", 0.957, sd=1e-5), values)) < 3.0
    assert abs(z_of(Published({"C": 1.0}, "error", 0.9570001, sd=1e-5), values)) > 3.0
    figures = [Published({"C": C}, "error", value) for C, value in ((1.0, 0.95), (2.0, 0.963), (3.0, None))]
    experiment = toys.svm.__class__(**{**vars(toys.svm), "published": figures})
    assert printed_unit(experiment, "error") == pytest.approx(0.001)
    assert printed_unit(toys.svm, "error") == pytest.approx(0.0001)


def test_two_replications_prove_little():
    assert abs(z_of(Published({"C": 1.0}, "error", 0.5), [0.10, 0.11])) < 3.0
    assert z_of(Published({"C": 1.0}, "error", 0.5), [0.1, 0.1]) is None
    assert z_of(Published({"C": 1.0}, "error", 0.1), [0.1, 0.1]) == 0.0
    assert z_of(Published({"C": 1.0}, "error", 0.5), [0.1] * 20) == -math.inf
    assert z_of(Published({"C": 1.0}, "error", 0.5), [0.1] * 10) is None  # too few to exclude rare deviations of one
    assert z_of(Published({"C": 1.0}, "error", 0.04), [0.0] * 50) is None


def test_verdict_follows_the_figures():
    figures = [Published({"C": 1.0}, f"m{i}", 0.5, sd=0.1) for i in range(20)]
    experiment = toys.svm.__class__(**{**vars(toys.svm), "published": figures, "reasons": ()})

    def words(values):
        cells = [Cell({"C": 1.0}, f"m{i}", 8, value, 0.1) for i, value in enumerate(values)]
        summary = Summary("toy/svm", cells, replications=8)
        return verdict(experiment, summary, compare(experiment, summary))[0]

    assert words([0.5] * 20).startswith("Reproduces: all 20 figures lie within")
    assert words([0.5] * 3).startswith("Reproduces: all 3 figures computed, of 20 printed, lie within")
    assert words([0.5] * 18 + [0.9, 0.5]).startswith("Reproduces with exceptions: 1 of 20")
    assert words([0.5] * 15 + [0.9] * 5).startswith("Does not reproduce: 5 of 20")
    assert words([]).startswith("Not computed")


def test_large_standard_errors_give_no_verdict():
    figures = [Published({"C": 1.0}, f"m{i}", 0.5) for i in range(20)]
    experiment = toys.svm.__class__(**{**vars(toys.svm), "published": figures, "reasons": ()})

    def words(n, sd, part=0.5):
        means = [part, *([0.5] * 19)]
        cells = [Cell({"C": 1.0}, f"m{i}", n, mean, sd) for i, mean in enumerate(means)]
        summary = Summary("toy/svm", cells, replications=n)
        rows = compare(experiment, summary)
        return verdict(experiment, summary, rows)[0], rows[0]

    said, row = words(2, 0.01)
    assert said.startswith("No verdict: too few replications, half of the figures could differ by")
    # the difference that is called unseen is the one at which z reaches three
    assert abs(words(2, 0.01, 0.5 + 1.001 * row.unseen)[1].z) > 3.0 > abs(words(2, 0.01, 0.5 + 0.999 * row.unseen)[1].z)
    assert words(8, 0.01)[0].startswith("Reproduces: all 20")


@pytest.mark.parametrize(
    ("mean", "se", "word"),
    [(0.1, 0.01, "holds"), (-0.1, 0.01, "the opposite"), (0.01, 0.01, "not decided"), (0.1, None, "not judged")],
)
def test_orderings(mean, se, word):
    assert judge(Difference("", 5, mean, se)).startswith(word)


def test_paired_difference(tmp_path):
    store = Store(tmp_path / "store.sqlite")
    run(toys.svm.tasks(4), store, n_jobs=1)
    (difference,) = summarise(toys.svm, toys.svm.tasks(4), store).differences
    errors = {(r.settings, r.replicate): r.result["error"] for r in store.records("toy/svm")}
    gaps = [errors['{"C":1.0}', i] - errors['{"C":1000.0}', i] for i in range(4)]
    assert difference.mean == pytest.approx(np.mean(gaps))
    assert difference.se == pytest.approx(np.std(gaps, ddof=1) / 2)
    assert isinstance(toys.svm.orderings[0], Ordering)
