"""Who searches the parcels of a tree: threads of this process (the kernels release the GIL), or a dask cluster."""

from __future__ import annotations

import concurrent.futures as cf
import threading
import uuid
from collections.abc import Callable, Collection
from typing import Any, Protocol

from ....core.chunks.workers import active_client
from ....core.solving import Options

#: Seconds that a scheduler has to answer.
PATIENCE = 10
#: Sentence for a cluster that is gone.
GONE = (
    "The dask cluster stopped answering during the exact search. Start it again and fit again, or search in this "
    "process: leave out cluster=, and close the client."
)


class Crew(Protocol):
    """Runs functions elsewhere. ``width`` at a time, each for about ``seconds``."""

    width: int
    seconds: float

    def submit(self, function: Callable[..., Any], *args: Any) -> Any:
        """Hand over one call; returns its future."""

    def share(self, value: Any) -> Any:
        """Bring a value that all calls need to where they run; returns what stands for it among their arguments."""

    def finished(self, futures: Collection[Any], seconds: float) -> list[Any]:
        """Wait until one is finished, at most so many seconds; returns those that are."""

    def result(self, future: Any) -> Any:
        """Return what a finished call returned."""

    def close(self) -> None:
        """Let go of everybody."""


class ThreadCrew:
    """Threads of this process."""

    seconds = 0.2

    def __init__(self, width: int) -> None:
        self.width, self.pool = width, cf.ThreadPoolExecutor(width, "psilearn-search")

    def submit(self, function: Callable[..., Any], *args: Any) -> cf.Future[Any]:
        """Hand over one call."""
        return self.pool.submit(function, *args)

    def share(self, value: Any) -> Any:
        """Return the value itself."""
        return value

    def finished(self, futures: Collection[Any], seconds: float) -> list[Any]:
        """Return the calls that are finished."""
        return list(cf.wait(futures, seconds, cf.FIRST_COMPLETED).done)

    def result(self, future: cf.Future[Any]) -> Any:
        """Return what a finished call returned."""
        return future.result()

    def close(self) -> None:
        """End the threads."""
        self.pool.shutdown(cancel_futures=True)


class ClusterCrew:
    """Workers of a dask cluster; a call whose worker dies is made again by another one."""

    seconds = 1.0

    def __init__(self, client: Any, is_borrowed: bool = False) -> None:
        self.client, self.is_borrowed = client, is_borrowed
        self.width = max(1, sum(client.nthreads().values()))
        self.shared: list[Any] = []
        self.news = threading.Event()  # some call is finished

    def submit(self, function: Callable[..., Any], *args: Any) -> Any:
        """Hand over one call."""
        future = self._sent(function, *args, key=f"psilearn-{function.__name__}-{uuid.uuid4().hex}")
        future.add_done_callback(lambda _: self.news.set())
        return future

    def share(self, value: Any) -> Any:
        """Make the value a result of the cluster, which makes it again where it is lost with a worker."""
        self.shared.append(self._sent(_itself, value, key=f"psilearn-model-{uuid.uuid4().hex}"))
        return self.shared[-1]

    def _sent(self, function: Callable[..., Any], *args: Any, key: str) -> Any:
        try:
            return self.client.submit(function, *args, key=key)
        except Exception as error:
            if self.client.status == "running":
                raise
            raise ConnectionError(GONE) from error

    def finished(self, futures: Collection[Any], seconds: float) -> list[Any]:
        """Return the calls that are finished."""
        self.news.wait(seconds)
        self.news.clear()
        if self.client.status != "running":
            raise ConnectionError(GONE)
        return [future for future in futures if future.done()]

    def result(self, future: Any) -> Any:
        """Return what a finished call returned."""
        try:
            return future.result()
        except cf.CancelledError as error:
            raise ConnectionError(GONE) from error

    def close(self) -> None:
        """Drop what is running and leave the cluster."""
        self.shared.clear()
        if not self.is_borrowed:
            self.client.close()


def _itself(value: Any) -> Any:
    return value


def make_crew(options: Options) -> Crew | None:
    """Return who searches besides this thread: the cluster that is named, threads, the active cluster, or nobody."""
    if options.cluster is not None:
        return ClusterCrew(_connected(options.cluster))
    if options.n_jobs > 1:
        return ThreadCrew(options.n_jobs)
    client = active_client()
    if client is None or client.asynchronous or _is_worker() or not client.nthreads():
        return None
    return ClusterCrew(client, is_borrowed=True)


def _connected(address: str) -> Any:
    import distributed

    try:
        client = distributed.Client(address, timeout=PATIENCE, set_as_default=False)
    except (OSError, TimeoutError) as error:
        raise ConnectionError(f"cluster={address!r}: no dask scheduler answers there.") from error
    client.wait_for_workers(1)
    return client


def _is_worker() -> bool:
    """Whether this is a task of a cluster: it would wait for others like it, which may all be waiting."""
    import distributed

    try:
        distributed.get_worker()
    except ValueError:
        return False
    return True
