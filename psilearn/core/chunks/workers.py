"""Who maps a function over the blocks and adds up what comes back: this process, its threads, or a dask cluster."""

from __future__ import annotations

import sys
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any, Protocol

from .blocks import Sample, as_block

#: Results that are added at a time on a cluster: a tree of this width keeps the scheduler's inbox small.
_WIDTH = 8
#: Some of the blocks; None: all.
Some = Sequence[int] | None


class Workers(Protocol):
    """A map over blocks. ``function(index, block, *args)``; results are added in the order of the blocks."""

    @property
    def n_blocks(self) -> int:
        """Number of blocks."""

    def map(self, function: Callable[..., Any], *args: Any) -> list[Any]:
        """Return every block's answer."""

    def sum(self, function: Callable[..., Any], add: Callable[[Any, Any], Any], *args: Any, only: Some = None) -> Any:
        """Return the sum of all answers, or of those of some blocks."""


@dataclass(frozen=True, eq=False)
class Threads:
    """Threads of this process; the loops of numpy and numba let them run side by side."""

    sample: Sample
    n_threads: int = 1

    @property
    def n_blocks(self) -> int:
        """Number of blocks."""
        return self.sample.X.n_blocks

    def map(self, function: Callable[..., Any], *args: Any) -> list[Any]:
        """Return every block's answer."""
        return list(self._answers(range(self.n_blocks), function, *args))

    def sum(self, function: Callable[..., Any], add: Callable[[Any, Any], Any], *args: Any, only: Some = None) -> Any:
        """Return the sum of all answers, or of those of some blocks."""
        return reduce(add, self._answers(range(self.n_blocks) if only is None else only, function, *args))

    def _answers(self, blocks: Sequence[int], function: Callable[..., Any], *args: Any) -> Any:
        def answer(i: int) -> Any:
            return function(i, self.sample.load(i), *args)

        if self.n_threads == 1:
            yield from map(answer, blocks)
            return
        with ThreadPoolExecutor(self.n_threads) as pool:
            try:
                yield from pool.map(answer, blocks)
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise


@dataclass(frozen=True, eq=False)
class Dask:
    """Tasks of dask: of the active cluster if there is one, else of dask's threads.

    Blocks are delayed objects; a worker reads one, works on it and drops it. What is added up goes through a tree.
    """

    blocks: list[Any]
    client: Any = None

    @property
    def n_blocks(self) -> int:
        """Number of blocks."""
        return len(self.blocks)

    def map(self, function: Callable[..., Any], *args: Any) -> list[Any]:
        """Return every block's answer."""
        return list(self._computed(*self._tasks(range(self.n_blocks), function, *args)))

    def sum(self, function: Callable[..., Any], add: Callable[[Any, Any], Any], *args: Any, only: Some = None) -> Any:
        """Return the sum of all answers, or of those of some blocks."""
        dask = _dask()

        level = self._tasks(range(self.n_blocks) if only is None else only, function, *args)
        together = dask.delayed(partial(_add_up, add), name="psilearn-add", pure=False)
        while len(level) > 1:
            level = [together(level[i : i + _WIDTH]) for i in range(0, len(level), _WIDTH)]
        return self._computed(level[0])[0]

    def _computed(self, *tasks: Any) -> Any:
        """Run tasks; a cluster that is gone gets a sentence, and nobody takes over in silence."""
        if self.client is None:
            return _dask().compute(*tasks)
        try:
            if self.client.status == "running":
                return _dask().compute(*tasks, scheduler=self.client)
        except Exception:
            if self.client.status == "running":
                raise
        raise ConnectionError(
            "The dask cluster stopped answering. Start it again and fit again; with checkpoint=PATH the fit goes on "
            "where it was."
        )

    def _tasks(self, blocks: Sequence[int], function: Callable[..., Any], *args: Any) -> list[Any]:
        dask = _dask()

        name, once = f"psilearn-{function.__name__}", uuid.uuid4().hex
        work = dask.delayed(partial(_on_block, function), pure=False)
        shared = dask.delayed(args, name=f"{name}-arguments-{once}", traverse=False)
        return [work(i, self.blocks[i], shared, dask_key_name=f"{name}-{once}-{i}") for i in blocks]


def _dask() -> Any:
    import dask

    return dask


def _add_up(add: Callable[[Any, Any], Any], answers: list[Any]) -> Any:
    return reduce(add, answers)


def _on_block(function: Callable[..., Any], index: int, parts: tuple[Any, ...], args: tuple[Any, ...]) -> Any:
    return function(index, as_block(*parts), *args)


def active_client() -> Any:
    """Return the client of the cluster that is active, None if there is none."""
    if "distributed" not in sys.modules:
        return None
    try:
        return sys.modules["distributed"].default_client()
    except ValueError:
        return None
