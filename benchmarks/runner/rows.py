"""What a benchmark yields, and how it is told what to measure.

A benchmark is a module of this folder's parent with a function ``rows(plan)`` that yields a :class:`Row` for each
comparison: CPU seconds of ours and of theirs, both measured in this process on one thread, after whatever compiles has
been compiled. Long ones ask ``plan.wants(name)`` before each row, so that rows can be chosen by name and an interrupted
run be continued.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, TypeVar

T = TypeVar("T")


class LeftOutError(Exception):
    """A benchmark cannot run here; its message says what is missing."""


@dataclass(frozen=True)
class Row:
    """One comparison.

    Attributes
    ----------
    name : str
        Unique within the benchmark.
    ours, theirs : float
        CPU seconds (or what ``unit`` says; smaller is better); theirs is nan where nothing is compared.
    goals : dict of str to bool
        What we aim at, and whether it is reached; counted, and never an error.
    checks : dict of str to bool
        What must hold, such as equal objectives or a bound below every value found. One that fails fails the run.
    note : str
        Anything else worth reading.
    """

    name: str
    ours: float
    theirs: float = math.nan
    goals: dict[str, bool] = field(default_factory=dict)
    checks: dict[str, bool] = field(default_factory=dict)
    note: str = ""
    unit: str = "s"

    @property
    def ratio(self) -> float:
        """Ours over theirs: below 1 we are better."""
        return self.ours / self.theirs if self.theirs > 0 else math.nan


@dataclass(frozen=True)
class Plan:
    """What is asked of a benchmark.

    Attributes
    ----------
    quick : bool
        The short form: about a minute.
    only : str
        Rows whose name contains this.
    limit : float or None
        CPU seconds that one search may take, where the benchmark has such a limit.
    enough : float or None
        CPU seconds after which an open search may end once it is as good as the published bounds.
    done : frozenset of str
        Rows that are known from an earlier run and need not be measured again.
    """

    quick: bool = False
    only: str = ""
    limit: float | None = None
    enough: float | None = None
    done: frozenset[str] = frozenset()

    def wants(self, name: str) -> bool:
        """Whether the row of this name is to be measured."""
        return self.only in name and name not in self.done

    def seconds(self, full: float, quick: float) -> float:
        """The limit of one search: what the user says, or the benchmark's own."""
        return self.limit if self.limit is not None else (quick if self.quick else full)


def timed(task: Callable[[], T], repeats: int = 1) -> tuple[float, T]:
    """CPU seconds of the fastest of some runs, and the last answer."""
    best = math.inf
    for _ in range(repeats):
        began = time.process_time()
        answer = task()
        best = min(best, time.process_time() - began)
    return best, answer


def at_most(value: float, target: float, what: str = "ratio", holds: bool = True) -> dict[str, bool]:
    """A goal: a figure is at most its target (and what it rests on holds)."""
    return {f"{what} <= {target:.3g}": bool(value <= target and holds)}


@contextmanager
def cpu_clock() -> Iterator[None]:
    """Let psilearn's clock count CPU seconds, so that other work on the machine does not end its searches."""
    from psilearn.core import clock

    face: Any = clock
    plain, face.time = face.time, SimpleNamespace(perf_counter=time.process_time)
    try:
        yield
    finally:
        face.time = plain
