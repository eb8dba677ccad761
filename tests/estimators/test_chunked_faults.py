"""What may go wrong in a fit on blocks: it is broken off, a worker dies, the cluster goes, the user has enough."""

import contextlib
import os
import signal
import threading
import time

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone

from psilearn import PsiClassifier, SVMClassifier, load, save
from psilearn.core.chunks.blocks import RowBlocks

distributed = pytest.importorskip("distributed")
da = pytest.importorskip("dask.array")


def sample(n=300, p=3, k=2, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, k, n)
    X = rng.normal(size=(n, p)) + 1.2 * (y[:, None] == np.arange(p) % k)
    return X, np.where(rng.random(n) < 0.1, rng.integers(0, k, n), y)


class PowerCutError(Exception):
    pass


class Blocks:
    """Blocks that count how often they are read, and fail at a given reading."""

    def __init__(self, X, cuts, fails_at=np.inf):
        self.parts, self.reads, self.fails_at = np.array_split(X, cuts), 0, fails_at

    def read(self, i):
        self.reads += 1
        if self.reads > self.fails_at:
            raise PowerCutError
        return self.parts[i]

    def blocks(self):
        return RowBlocks([lambda i=i: self.read(i) for i in range(len(self.parts))], 3)


FITS = [SVMClassifier(tol=1e-6), SVMClassifier(tol=1e-6, penalty="l1", C=0.1), PsiClassifier(a=2.0, C=0.1)]


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("estimator", FITS, ids=lambda e: f"{type(e).__name__}-{e.penalty}")
def test_a_fit_that_was_broken_off_ends_as_if_it_had_not_been(estimator, k, tmp_path):
    X, y = sample(k=k)
    labels = RowBlocks(np.array_split(y, 4))
    whole = Blocks(X, 4)
    expected = clone(estimator).fit(whole.blocks(), labels)
    model = clone(estimator).set_params(checkpoint=tmp_path / "fit.passes")
    broken = Blocks(X, 4, fails_at=3 * whole.reads // 4 + 1)
    with pytest.raises(PowerCutError):
        model.fit(broken.blocks(), labels)
    again = Blocks(X, 4)
    model.fit(again.blocks(), labels)
    assert_array_equal(model.coef_, expected.coef_)
    assert model.objective_ == expected.objective_
    assert model.lower_bound_ == expected.lower_bound_
    assert model.n_iter_ == expected.n_iter_
    assert again.reads < whole.reads / 2
    assert model.verify(again.blocks(), labels).ok


def test_a_checkpoint_that_was_cut_short_forgets_its_last_pass(tmp_path):
    X, y = sample()
    path = tmp_path / "fit.passes"
    model = SVMClassifier(tol=1e-6, checkpoint=str(path))
    expected = model.fit(RowBlocks.split(X, 3), y).coef_
    content = path.read_bytes()
    for size in (len(content) - 1, len(content) - 300, len(content) // 2):
        path.write_bytes(content[:size])
        model.fit(RowBlocks.split(X, 3), y)
        assert_array_equal(model.coef_, expected)
        assert path.read_bytes() == content


@pytest.mark.parametrize("change", [lambda X: X + 1.0, lambda X: X[:-1]], ids=["values", "rows"])
def test_a_checkpoint_of_other_data_is_refused(change, tmp_path):
    X, y = sample()
    model = SVMClassifier(checkpoint=tmp_path / "fit.passes").fit(RowBlocks.split(X, 3), y)
    X = change(X)
    with pytest.raises(ValueError, match="other data"):
        model.fit(RowBlocks.split(X, 3), y[: len(X)])
    (tmp_path / "text").write_text("not a checkpoint at all")
    with pytest.raises(ValueError, match="checkpoint"):
        model.set_params(checkpoint=tmp_path / "text").fit(RowBlocks.split(X, 3), y[: len(X)])


def test_another_fit_does_not_use_what_a_checkpoint_holds(tmp_path):
    """Answers are found by their question: another C, on the same data, shares the file and nothing else."""
    X, y = sample()
    blocks = RowBlocks.split(X, 3)
    shared = SVMClassifier(tol=1e-6, checkpoint=tmp_path / "fit.passes").fit(blocks, y)
    other = shared.set_params(C=0.01).fit(blocks, y)
    alone = SVMClassifier(tol=1e-6, C=0.01).fit(blocks, y)
    assert_array_equal(other.coef_, alone.coef_)
    assert other.lower_bound_ == alone.lower_bound_


def test_a_fit_tells_its_passes(capsys):
    X, y = sample()
    SVMClassifier(verbose=2).fit(RowBlocks.split(X, 3), y)
    told = capsys.readouterr().out
    assert "passes over the data" in told
    assert "above the optimum" in told
    assert "SVMClassifier: optimal" in told


def cluster(n_workers):
    return distributed.LocalCluster(
        n_workers=n_workers, threads_per_worker=1, dashboard_address=None, silence_logs=50
    )  # fmt: skip


def slowly(x):
    time.sleep(0.05)
    return x


def in_dask(X, y, seconds=True):
    rows = da.from_array(X, chunks=(60, X.shape[1]))
    return (rows.map_blocks(slowly, dtype=X.dtype) if seconds else rows), da.from_array(y, chunks=60)


def test_a_worker_that_is_killed_changes_nothing():
    X, y = sample()
    expected = SVMClassifier().fit(*in_dask(X, y, False))
    with cluster(2) as workers, distributed.Client(workers):
        pid = next(iter(workers.workers.values())).pid
        rows, labels = in_dask(X, y)
        killer = threading.Timer(0.6, lambda: os.kill(pid, signal.SIGKILL))
        killer.start()
        fit = SVMClassifier().fit(rows, labels)
        killer.join()
        assert pid not in {w.pid for w in workers.workers.values()}, "the worker was killed while the fit ran"
    assert_array_equal(fit.coef_, expected.coef_)
    assert fit.objective_ == expected.objective_


def test_a_cluster_that_goes_away_is_one_sentence_and_the_fit_can_be_resumed(tmp_path, monkeypatch):
    import dask

    X, y = sample()
    expected = SVMClassifier(tol=1e-6).fit(*in_dask(X, y, False))
    model = SVMClassifier(tol=1e-6, checkpoint=tmp_path / "fit.passes")
    calls = []

    def leaving(step):
        calls.append(step)
        if len(calls) == 4:
            workers.close()
        return step

    with dask.config.set({"distributed.comm.timeouts.connect": "2s"}):
        workers = cluster(1)
        client = distributed.Client(workers)
        rows, labels = in_dask(X, y)
        monkeypatch.setattr("psilearn.core.solving.report", leaving)
        with pytest.raises(ConnectionError, match="stopped answering"):
            model.fit(rows, labels)
        monkeypatch.undo()
        client.close()
    assert calls
    model.fit(*in_dask(X, y, False))
    assert_array_equal(model.coef_, expected.coef_)


def test_an_interrupt_leaves_nothing_running_on_the_cluster():
    X, y = sample()
    with cluster(1) as workers, distributed.Client(workers) as client:
        rows, labels = in_dask(X, y)

        def often():
            os.kill(os.getpid(), signal.SIGINT)

        timers = [threading.Timer(1.0 + 0.5 * i, often) for i in range(2)]
        for timer in timers:
            timer.start()
        with contextlib.suppress(KeyboardInterrupt):  # the first one ends the search, the second what comes after it
            SVMClassifier(tol=1e-9).fit(rows, labels)
        for timer in timers:
            timer.cancel()
        time.sleep(0.5)
        left = client.run_on_scheduler(lambda dask_scheduler: [str(key) for key in dask_scheduler.tasks])
        assert not [key for key in left if "psilearn" in key]


def test_a_grid_search_runs_on_a_cluster():
    """joblib's backend of dask: fits of the grid are tasks of the cluster, and the answer is that of one process."""
    import joblib
    from sklearn.model_selection import GridSearchCV

    X, y = sample()
    grid = GridSearchCV(SVMClassifier(), {"C": [0.01, 1.0]}, cv=2)
    expected = clone(grid).fit(X, y).cv_results_["mean_test_score"]
    with distributed.Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=None):
        with joblib.parallel_backend("dask"):
            found = clone(grid).fit(X, y)
        assert_array_equal(found.cv_results_["mean_test_score"], expected)


def test_a_model_with_a_checkpoint_is_saved(tmp_path):
    X, y = sample()
    model = SVMClassifier(checkpoint=tmp_path / "fit.passes").fit(RowBlocks.split(X, 3), y)
    save(model, tmp_path / "model.psi")
    again = load(tmp_path / "model.psi")
    assert again.checkpoint == str(tmp_path / "fit.passes")
    assert_array_equal(again.coef_, model.coef_)
