"""The tree by several threads and processes: optimum and bounds of the serial search, whatever happens to them."""

import concurrent.futures as cf
import math
import os
import signal

import numpy as np
import pytest
from numpy.testing import assert_allclose

from psilearn import PsiClassifier
from psilearn.core.losses import HardMargin, Psi
from psilearn.core.solving import Clock, Options
from psilearn.exact.search import Budget
from psilearn.exact.two_class import solver as mip
from psilearn.exact.two_class.incumbent import given_incumbent
from psilearn.exact.two_class.model import make_model
from psilearn.exact.two_class.reduction import reduce
from psilearn.exact.two_class.tree.crews import ClusterCrew, ThreadCrew, make_crew
from psilearn.exact.two_class.tree.parallel import ParallelTree
from psilearn.exact.two_class.tree.search import TreeSearch

from oracles.samples import two_class_problem

GAP = 1e-7


def flipped(n, seed, share=0.1):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    y = (X[:, 0] + X[:, 1] ** 2 > 1).astype(int)
    return X, np.where(rng.random(n) < share, 1 - y, y)


def searches(loss, seed, n, crew):
    model = make_model(reduce(two_class_problem([seed, n], n, 2, loss)), loss)
    serial = TreeSearch(model, *given_incumbent(model, []), Options(gap_tol=1e-9))
    serial.run(Budget())
    return float(serial.best.value[0]), ParallelTree(model, *given_incumbent(model, []), Options(gap_tol=GAP), crew)


class OneByOne(ThreadCrew):
    """Parcels of a moment, so that a small tree is handed around a great deal."""

    seconds = 1e-4


@pytest.mark.parametrize("loss", [Psi(2.0), Psi(0.5), HardMargin()], ids=str)
@pytest.mark.parametrize("seed", range(3))
def test_bounds_rise_to_the_optimum(loss, seed):
    crew = OneByOne(3)
    truth, search = searches(loss, seed, 40, crew)
    bound, runs = 0.0, 0
    while not search.done:
        clock = Clock()
        search.run(Budget(clock=clock, until=0.01))
        assert not search.away
        assert bound * (1 - 1e-9) <= search.bound <= truth * (1 + 1e-7)
        bound, runs = search.bound, runs + 1
        assert runs < 1000
    crew.close()
    assert_allclose(search.shared.value[0], truth, rtol=1e-6)
    assert search.bound >= truth * (1 - 10 * GAP)


class Failing(OneByOne):
    """A crew that is interrupted after some parcels."""

    left = 4

    def finished(self, futures, seconds):
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt
        return super().finished(futures, seconds)


def test_an_interrupt_loses_no_node():
    """What is away is open again, so that the bound holds and the search can go on to the optimum."""
    crew = Failing(2)
    truth, search = searches(Psi(2.0), 1, 60, crew)
    with pytest.raises(KeyboardInterrupt):
        search.run(Budget())
    assert not search.away
    assert not search.done
    assert search.bound <= truth * (1 + 1e-9)
    search.run(Budget())
    crew.close()
    assert search.done
    assert_allclose(search.shared.value[0], truth, rtol=1e-6)


class Forgetful(OneByOne):
    """A crew that brings back an empty parcel: the test of this file that must notice."""

    def submit(self, function, model, parcel, *args):
        future = cf.Future()
        found = function(model, parcel, *args)
        found.nodes.sizes[0] = 0
        future.set_result(found._replace(floor=math.inf))
        return future


def test_a_node_that_is_lost_would_be_noticed():
    """A crew that forgets its nodes makes a bound above the optimum: the tests above can fail."""
    worst = 0.0
    for seed in range(3):
        crew = Forgetful(2)
        truth, search = searches(Psi(2.0), seed, 60, crew)
        if search.is_wide:
            break
        search.best.value[0] = search.shared.value[0] = 2.0 * truth
        search.run(Budget())
        worst = max(worst, search.bound / truth)
        crew.close()
    assert worst > 1.0


@pytest.mark.parametrize("penalty", ["l2", "l1"])
def test_fits_do_not_depend_on_the_number_of_threads(penalty):
    X, y = flipped(60, 3)
    one = PsiClassifier(a=2.0, solver="mip", penalty=penalty, gap_tol=1e-6, time_limit=60).fit(X, y)
    two = PsiClassifier(a=2.0, solver="mip", penalty=penalty, gap_tol=1e-6, time_limit=60, n_jobs=2).fit(X, y)
    assert two.status_ == "optimal"
    assert_allclose(two.objective_, one.objective_, rtol=2e-6)
    assert two.lower_bound_ <= one.objective_
    check = two.verify(X, y)
    assert check.ok, check.message


def test_a_search_counted_in_nodes_is_the_serial_one():
    """Bit for bit, whatever ``n_jobs``."""
    X, y = flipped(80, 5)
    one, two = (PsiClassifier(a=2.0, solver="mip", max_iter=300, n_jobs=j).fit(X, y) for j in (None, 2))
    assert one.n_iter_ == two.n_iter_
    assert one.lower_bound_ == two.lower_bound_
    assert np.array_equal(one.coef_, two.coef_)


def test_workers_of_a_cluster_search_and_may_die():
    distributed = pytest.importorskip("distributed")
    X, y = flipped(90, 7)
    problem = PsiClassifier(a=2.0, C=10.0).problem(X, y)
    one = mip.solve(problem, Options(gap_tol=1e-6))
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50
    ) as cluster:  # fmt: skip
        killed = []

        def kill(objective, bound):
            if not killed:
                killed.append(next(iter(cluster.workers.values())).pid)
                os.kill(killed[0], signal.SIGKILL)
            return False

        quick = mip.Settings(first_slice_seconds=0.1, slice_seconds=0.5, enough=kill)
        two = mip.solve(problem, Options(gap_tol=1e-6, cluster=cluster.scheduler_address, settings=(quick,)))
    assert killed
    assert two.status == "optimal"
    assert_allclose(two.objective, one.objective, rtol=2e-6)
    assert two.lower_bound <= one.objective


def test_the_active_cluster_searches_unless_threads_are_asked_for(monkeypatch):
    distributed = pytest.importorskip("distributed")
    X, y = flipped(90, 7)
    problem = PsiClassifier(a=2.0, C=10.0).problem(X, y)
    one = mip.solve(problem, Options(gap_tol=1e-6))
    sent = []
    submit = ClusterCrew.submit
    monkeypatch.setattr(ClusterCrew, "submit", lambda *given: sent.append(given) or submit(*given))
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=2, processes=False, dashboard_address=None, silence_logs=50
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        quick = mip.Settings(first_slice_seconds=0.1, slice_seconds=0.5)
        mip.solve(problem, Options(gap_tol=1e-6, n_jobs=2, settings=(quick,)))
        assert not sent
        two = mip.solve(problem, Options(gap_tol=1e-6, settings=(quick,)))
        assert sent
        assert client.status == "running", "the client is the user's"
        assert client.submit(_crew_of_a_task).result(30) is None, "a task does not wait for others"
    assert two.status == "optimal"
    assert_allclose(two.objective, one.objective, rtol=2e-6)
    assert two.lower_bound <= one.objective


def _crew_of_a_task():
    return make_crew(Options())


def test_a_cluster_that_is_not_there_gets_a_sentence(monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr("psilearn.exact.two_class.tree.crews.PATIENCE", 1)
    X, y = flipped(30, 1)
    with pytest.raises(ConnectionError, match="no dask scheduler"):
        PsiClassifier(solver="mip", cluster="tcp://127.0.0.1:9").fit(X, y)


def test_a_cluster_that_goes_away_gets_a_sentence():
    distributed = pytest.importorskip("distributed")
    import dask

    X, y = flipped(300, 11, 0.2)
    problem = PsiClassifier(a=2.0).problem(X, y)
    with dask.config.set({"distributed.comm.timeouts.connect": "2s"}):
        cluster = distributed.LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None, silence_logs=50)

        def leave(objective, bound):
            cluster.close()
            return False

        quick = mip.Settings(first_slice_seconds=0.5, slice_seconds=0.5, enough=leave)
        options = Options(gap_tol=1e-9, time_limit=60, cluster=cluster.scheduler_address, settings=(quick,))
        with pytest.raises(ConnectionError, match="stopped answering"):
            mip.solve(problem, options)


class Silent(OneByOne):
    """A crew that never answers."""

    def finished(self, futures, seconds):
        return []


def test_a_crew_that_never_answers_does_not_hold_the_search(monkeypatch):
    monkeypatch.setattr("psilearn.exact.two_class.tree.parallel.GRACE", 0.2)
    monkeypatch.setattr("psilearn.exact.two_class.tree.parallel.LEAST_SHARED", 10**9)
    crew = Silent(2)
    truth, search = searches(Psi(2.0), 1, 60, crew)
    clock = Clock()
    search.run(Budget(clock=clock, until=0.5))
    crew.close()
    assert not search.away
    assert search.bound <= truth * (1 + 1e-9)
