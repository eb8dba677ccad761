"""Run tasks that are not stored yet, here on all cores or on a dask cluster, and store each the moment it ends."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import Any

from joblib.externals.loky import get_reusable_executor
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from .store import LEASE, Store
from .task import Outcome, Task, execute

_ONE_THREAD = {
    name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
}

CONNECT_SECONDS = 10


class ClusterError(RuntimeError):
    """The dask cluster cannot be used; the message says why."""


def run(
    tasks: Iterable[Task],
    store: Store,
    *,
    n_jobs: int | None = None,
    cluster: str | None = None,
    console: Console | None = None,
) -> None:
    """Bring every task into the store.

    Tasks that are done are skipped; tasks that failed in an earlier run are tried again; tasks that another living
    process has claimed are waited for. A failing task is stored with its traceback and does not stop the others.

    Parameters
    ----------
    tasks : iterable of Task
    store : Store
    n_jobs : int or None
        Local processes; None means one per core, 1 means this process itself.
    cluster : str or None
        Address of a dask scheduler; the same tasks then run there and come back to this process's store.
    console : rich Console or None
        Where the progress bar with its remaining time goes; None shows none.
    """
    began = time.time()
    unique = {task.key: task for task in tasks}
    with _workers(cluster, n_jobs) as (pool, width), _heartbeat(store), _progress(console, len(unique)) as show:
        while pending := _pending(unique, store, began):
            left = len(pending)
            show(len(unique) - left)
            for outcome in _drain((task for task in pending if store.claim(task)), pool, width):
                store.save(outcome)
                left -= 1
                show(len(unique) - left)
            if left == len(pending):  # all that is left is being done by another process
                time.sleep(0.2)
        show(len(unique))


def _pending(unique: dict[str, Task], store: Store, began: float) -> list[Task]:
    """Tasks neither done nor tried since this run began."""
    stored = store.finished()

    def settled(key: str) -> bool:
        status, finished = stored.get(key, ("", 0.0))
        return status == "done" or (status == "failed" and finished >= began)

    return [task for key, task in unique.items() if not settled(key)]


def _follow_parent(parent: int) -> None:
    """End this worker when its parent is gone: a parent that was killed cannot end it."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


class _LocalPool:
    """Worker processes on this machine; a broken pool (a worker died) is replaced by a new one."""

    def __init__(self, n_jobs: int):
        self.n_jobs = n_jobs

    def executor(self) -> Any:
        return get_reusable_executor(
            max_workers=self.n_jobs, env=_ONE_THREAD, initializer=_follow_parent, initargs=(os.getpid(),)
        )

    def submit(self, task: Task) -> Future:
        try:
            return self.executor().submit(execute, task)
        except BrokenProcessPool:  # a worker died since: the next executor is a new one
            return self.executor().submit(execute, task)


class _ThisProcess:
    """No workers: a task runs where it is submitted."""

    def submit(self, task: Task) -> Future:
        future: Future = Future()
        future.set_result(execute(task))
        return future


class _ClusterPool:
    """A dask cluster seen as an executor; dask itself reruns what a lost worker held."""

    def __init__(self, executor: Executor):
        self.executor = executor

    def submit(self, task: Task) -> Future:
        return self.executor.submit(execute, task)


def _drain(tasks: Iterator[Task], pool: Any, width: int) -> Iterator[Outcome]:
    """Keep ``width`` tasks in flight and yield outcomes as they come; a task is drawn, and so claimed, only then."""
    running: dict[Future, Task] = {}
    while True:
        while len(running) < width and (task := next(tasks, None)) is not None:
            running[pool.submit(task)] = task
        if not running:
            return
        ended, _ = wait(running, return_when=FIRST_COMPLETED)
        suspects = []
        for future in ended:
            task = running.pop(future)
            if isinstance(future.exception(), BrokenProcessPool):
                suspects.append(task)
            else:
                yield _outcome(future, task)
        if suspects:
            # one of those in flight killed its worker: run each alone to learn which
            suspects += running.values()
            running.clear()
            for task in suspects:
                future = pool.submit(task)
                wait([future])
                yield _outcome(future, task)


def _outcome(future: Future, task: Task) -> Outcome:
    error = future.exception()
    if error is None:
        return future.result()
    return Outcome(task, None, f"the worker was lost: {type(error).__name__}: {error}", 0.0)


@contextmanager
def _workers(cluster: str | None, n_jobs: int | None) -> Iterator[tuple[Any, int]]:
    jobs = n_jobs or os.cpu_count() or 1
    if cluster is None and jobs == 1:
        yield _ThisProcess(), 1
        return
    if cluster is None:
        pool = _LocalPool(jobs)
        try:
            yield pool, jobs
        finally:
            pool.executor().shutdown(kill_workers=True)
        return
    try:
        from distributed import Client
    except ImportError as error:
        raise ClusterError("a dask cluster needs the package 'distributed': pip install 'psilearn[dask]'.") from error
    try:
        client = Client(cluster, timeout=CONNECT_SECONDS)
    except (OSError, ValueError) as error:
        raise ClusterError(f"no dask scheduler answers at {cluster!r}: {error}") from error
    with client:
        threads = sum(client.nthreads().values())
        yield _ClusterPool(client.get_executor(pure=False)), 2 * max(threads, 1)


@contextmanager
def _heartbeat(store: Store) -> Iterator[None]:
    """Keep this process's claims alive, and give them back at the end."""
    over = threading.Event()

    def beat() -> None:
        while not over.wait(LEASE / 6.0):
            store.beat()

    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        store.release()


@contextmanager
def _progress(console: Console | None, total: int) -> Iterator[Callable[[int], None]]:
    """Yield a function that shows how many tasks are settled."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left:"),
        TimeRemainingColumn(),
    )
    # tasks differ much in length: the remaining time needs a long memory
    options: dict[str, Any] = {"speed_estimate_period": 3600.0, "disable": console is None}
    with Progress(*columns, console=console or Console(quiet=True), **options) as progress:
        bar = progress.add_task("tasks", total=total)
        yield lambda settled: progress.update(bar, completed=settled)
