"""One replication of one setting: an independent, seeded unit of work that any process can carry out."""

from __future__ import annotations

import hashlib
import json
import subprocess
import time
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from ... import __version__


def canonical(settings: Mapping[str, Any]) -> str:
    """Return the settings as JSON that is equal for equal settings."""
    return json.dumps(dict(settings), sort_keys=True, separators=(",", ":"))


def replicate_seed(experiment: str, replicate: int) -> int:
    """Return the seed of a replicate: one for all settings of an experiment, so that comparisons are paired."""
    digest = hashlib.sha256(f"{experiment}#{replicate}".encode()).digest()
    return int.from_bytes(digest[:4], "big")


PACKAGE = Path(__file__).parents[1]


@lru_cache(maxsize=4)
def version(package: Path = PACKAGE) -> str:
    """Return the version and, in a git checkout, the last commit that changed the package; '+' if it was edited since.

    Workers of one run may import different copies: what is stored is what each of them has computed with.
    """

    def git(*words: str) -> str:
        answer = subprocess.run(["git", "-C", str(package), *words, "--", "."], capture_output=True, text=True)
        return answer.stdout.strip() if answer.returncode == 0 else ""

    try:
        commit, edited = git("log", "-1", "--format=%h"), git("status", "--porcelain")
    except OSError:  # there is no git here
        return __version__
    return f"{__version__} at {commit}{'+' if edited else ''}" if commit else __version__


@dataclass(frozen=True)
class Task:
    """What to compute.

    Attributes
    ----------
    experiment : str
        Name of the experiment, for example ``psi-mip/table2``.
    function : str
        Where the experiment lives, ``module:attribute``; a worker imports it.
    settings : str
        Canonical JSON of the keyword arguments.
    replicate : int
    seed : int
    """

    experiment: str
    function: str
    settings: str
    replicate: int
    seed: int

    @property
    def key(self) -> str:
        """Identity in the store: experiment, settings, replicate and seed (not the place of the code)."""
        text = f"{self.experiment}|{self.settings}|{self.replicate}|{self.seed}"
        return hashlib.sha256(text.encode()).hexdigest()[:32]


@dataclass(frozen=True)
class Outcome:
    """What came of a task: a result (JSON) or an error (traceback), never neither.

    ``seconds`` is CPU time of the thread that ran it: fits are single-threaded, and the time on the wall depends on
    what else the machine does.
    """

    task: Task
    result: str | None
    error: str | None
    seconds: float
    version: str = field(default_factory=version)

    @property
    def status(self) -> str:
        """Return "done" or "failed"."""
        return "done" if self.error is None else "failed"


def plain(value: Any) -> Any:
    """Return the value with numpy scalars and arrays turned into numbers and lists."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value


def resolve(function: str) -> Any:
    """Import ``module:attribute``."""
    module, _, attribute = function.partition(":")
    return getattr(import_module(module), attribute)


def execute(task: Task) -> Outcome:
    """Carry out one task. An exception becomes a failed outcome with its traceback, so that nothing is lost."""
    started = time.thread_time()
    try:
        measures = resolve(task.function).run(task.seed, **json.loads(task.settings))
        result = json.dumps(plain(measures), sort_keys=True)
    except Exception:
        return Outcome(task, None, traceback.format_exc(), time.thread_time() - started)
    return Outcome(task, result, None, time.thread_time() - started)
