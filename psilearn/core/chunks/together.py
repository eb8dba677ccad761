"""Many fits on the same blocks, one pass for all: every fit asks, and when all have asked, the data are read once.

Each fit runs as it would alone, in a thread of its own that waits for its answers; this thread makes the passes. So
what a fit finds does not depend on who runs beside it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextvars import copy_context
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from .blocks import Block
from .proof import collect
from .sums import evaluate
from .workers import Some, Workers

T = TypeVar("T")


@dataclass(eq=False)
class _Call:
    """What one fit asks for: a sum if it says how to ``add``, every block's answer otherwise; and what it was told."""

    function: Callable[..., Any]
    add: Callable[[Any, Any], Any] | None
    args: tuple[Any, ...]
    only: Some = None
    answer: Any = None
    error: BaseException | None = None
    done: threading.Event = field(default_factory=threading.Event)

    def told(self) -> Any:
        """Wait for the answer."""
        self.done.wait()
        if self.error is not None:
            raise self.error
        return self.answer


@dataclass(eq=False)
class _Seat:
    """The workers of one fit: it hands every question to those who make the passes."""

    table: _Table

    @property
    def n_blocks(self) -> int:
        """Number of blocks."""
        return self.table.workers.n_blocks

    def map(self, function: Callable[..., Any], *args: Any) -> list[Any]:
        """Return every block's answer."""
        return list(self.table.ask(_Call(function, None, args)))

    def sum(self, function: Callable[..., Any], add: Callable[[Any, Any], Any], *args: Any, only: Some = None) -> Any:
        """Return the sum of all answers, or of those of some blocks."""
        return self.table.ask(_Call(function, add, args, only))


class _Table:
    """Where the questions of all fits meet."""

    def __init__(self, workers: Workers, fits: int) -> None:
        self.workers, self.fits = workers, fits
        self.calls: list[_Call] = []
        self.all_asked = threading.Condition()

    def ask(self, call: _Call) -> Any:
        """Put a question and wait for the answer."""
        with self.all_asked:
            self.calls.append(call)
            self.all_asked.notify()
        return call.told()

    def leave(self) -> None:
        """End a fit."""
        with self.all_asked:
            self.fits -= 1
            self.all_asked.notify()

    def serve(self) -> None:
        """Make passes until every fit has ended."""
        calls: list[_Call] = []
        while True:
            try:
                with self.all_asked:
                    while len(self.calls) < self.fits:
                        self.all_asked.wait()
                    calls, self.calls = self.calls, []
                if not calls:
                    return
                for call, answer in zip(calls, _answers(self.workers, calls)):
                    call.answer = answer
            except BaseException as error:  # every fit that waits ends as if it had happened to it
                with self.all_asked:
                    calls, self.calls = calls + self.calls, []
                for call in calls:
                    call.error = error
            for call in calls:
                call.done.set()
            calls = []


def solve_together(workers: Workers, fits: Sequence[Callable[[Workers], T]]) -> list[T]:
    """Run fits side by side, with one pass over the blocks for all that they ask at a time.

    Parameters
    ----------
    workers : Workers
        The blocks, and who works on them.
    fits : sequence of callable
        Each is called with workers to use in place of these, and returns its result.
    """
    table, found = _Table(workers, len(fits)), [None] * len(fits)
    errors: list[BaseException] = []

    def run(at: int) -> None:
        try:
            found[at] = fits[at](_Seat(table))  # type: ignore[call-overload]
        except BaseException as error:
            errors.append(error)
        finally:
            table.leave()

    threads = [threading.Thread(target=partial(copy_context().run, run, at), daemon=True) for at in range(len(fits))]
    for thread in threads:
        thread.start()
    table.serve()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return found  # type: ignore[return-value]


def _answers(workers: Workers, calls: list[_Call]) -> list[Any]:
    """Answer all calls in one pass over all blocks, and one over those that some of them ask for alone."""
    told: dict[int, Any] = {}
    for is_whole in (True, False):
        mine = [call for call in calls if (call.only is None) == is_whole]
        if mine:
            only = None if is_whole else sorted({index for call in mine for index in call.only or ()})
            told.update(zip(map(id, mine), _pass(workers, mine, only)))
    return [told[id(call)] for call in calls]


def _pass(workers: Workers, calls: list[_Call], only: Some) -> list[Any]:
    """Answer calls in one pass; what all ask of :func:`evaluate` becomes one list, and so for :func:`collect`."""
    groups: dict[Any, list[_Call]] = {}
    for call in calls:
        groups.setdefault(call.function if _is_merged(call) else id(call), []).append(call)
    tasks: list[tuple[Callable[..., Any], Any, tuple[Any, ...]]] = []
    for members in groups.values():
        first = members[0]
        asked = [each for call in members for each in call.args[1]] if _is_merged(first) else None
        tasks.append((first.function, first.add, first.args if asked is None else (first.args[0], asked)))
    found = workers.sum(
        _answer_each, partial(_add_each, [add for _, add, _ in tasks]),
        [(function, args, add is None) for function, add, args in tasks], only=only,
    )  # fmt: skip
    told: dict[int, Any] = {}
    for members, answer in zip(groups.values(), found):
        at = 0
        for call in members:
            size = len(call.args[1]) if _is_merged(call) else 0
            told[id(call)] = answer[at : at + size] if size else answer
            at += size
    return [told[id(call)] for call in calls]


def _is_merged(call: _Call) -> bool:
    """Whether a call asks for a list of answers of which others may ask for more.

    Not for proofs with a tilt: its rounding, and with it what a block can change, depends on who asks at the same time.
    """
    if call.function is collect:
        return all(claim.query.anchor is None for claim in call.args[1])
    return call.function is evaluate


def _answer_each(index: int, block: Block, tasks: list[tuple[Callable[..., Any], tuple[Any, ...], bool]]) -> list[Any]:
    answers = [function(index, block, *args) for function, args, _ in tasks]
    return [[answer] if is_map else answer for answer, (_, _, is_map) in zip(answers, tasks)]


def _add_each(adds: list[Callable[[Any, Any], Any] | None], left: list[Any], right: list[Any]) -> list[Any]:
    return [a + b if add is None else add(a, b) for add, a, b in zip(adds, left, right)]
