"""Results in SQLite: written the moment a task ends, shared by any number of processes, safe against kill -9.

The write-ahead log makes every `save` atomic: after a kill the file holds exactly the tasks that ended. A process
*claims* a task before it runs it, so that two processes divide the work; the claims of a process that died are void as
soon as its process id is gone (same machine) or its heartbeat is older than `LEASE` seconds.
"""

from __future__ import annotations

import json
import os
import socket
import sqlite3
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .task import Outcome, Task

LEASE = 60.0

_SCHEMA = """
CREATE TABLE IF NOT EXISTS results (
    key TEXT PRIMARY KEY, experiment TEXT NOT NULL, settings TEXT NOT NULL, replicate INTEGER NOT NULL,
    seed INTEGER NOT NULL, status TEXT NOT NULL CHECK (status IN ('done', 'failed')), result TEXT, error TEXT,
    seconds REAL NOT NULL, version TEXT NOT NULL, finished REAL NOT NULL);
CREATE INDEX IF NOT EXISTS results_by_experiment ON results (experiment);
CREATE TABLE IF NOT EXISTS claims (
    key TEXT PRIMARY KEY, owner TEXT NOT NULL, host TEXT NOT NULL, pid INTEGER NOT NULL, beat REAL NOT NULL);
"""

_SAVE = """
INSERT INTO results VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (key) DO UPDATE SET status = excluded.status, result = excluded.result, error = excluded.error,
    seconds = excluded.seconds, version = excluded.version, finished = excluded.finished
WHERE results.status <> 'done'
"""


@dataclass(frozen=True)
class Record:
    """One stored row."""

    key: str
    settings: str
    replicate: int
    seed: int
    status: str
    result: dict[str, Any] | None
    error: str | None
    seconds: float
    version: str
    finished: float


class Store:
    """The results file.

    Parameters
    ----------
    path : path
        Created when missing, with its folder. It must lie on a local file system (SQLite's write-ahead log does not
        work over a network share).
    """

    def __init__(self, path: str | os.PathLike[str]):
        self.path = Path(path)
        self.owner = uuid.uuid4().hex
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self._connect() as connection:
            connection.execute("PRAGMA journal_mode=WAL")
            connection.executescript(_SCHEMA)

    @contextmanager
    def _connect(self) -> Iterator[sqlite3.Connection]:
        # one short connection per operation: nothing to share between threads or to inherit over a fork
        connection = sqlite3.connect(self.path, timeout=60.0, isolation_level=None)
        try:
            yield connection
        finally:
            connection.close()

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._connect() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
            except BaseException:
                connection.execute("ROLLBACK")
                raise
            connection.execute("COMMIT")

    def save(self, outcome: Outcome) -> None:
        """Store an outcome and drop the claim on its task. A done task is never overwritten."""
        task = outcome.task
        row = (
            task.key,
            task.experiment,
            task.settings,
            task.replicate,
            task.seed,
            outcome.status,
            outcome.result,
            outcome.error,
            outcome.seconds,
            outcome.version,
            time.time(),
        )
        with self._transaction() as connection:
            connection.execute(_SAVE, row)
            connection.execute("DELETE FROM claims WHERE key = ?", (task.key,))

    def claim(self, task: Task) -> bool:
        """Return True if the task is now this process's to run: not done, and claimed by no living process."""
        with self._transaction() as connection:
            done = connection.execute("SELECT 1 FROM results WHERE key = ? AND status = 'done'", (task.key,))
            if done.fetchone():
                return False
            held = connection.execute("SELECT owner, host, pid, beat FROM claims WHERE key = ?", (task.key,)).fetchone()
            if held and held[0] != self.owner and _alive(*held[1:]):
                return False
            connection.execute(
                "INSERT OR REPLACE INTO claims VALUES (?, ?, ?, ?, ?)",
                (task.key, self.owner, socket.gethostname(), os.getpid(), time.time()),
            )
        return True

    def beat(self) -> None:
        """Say that this process still lives."""
        with self._transaction() as connection:
            connection.execute("UPDATE claims SET beat = ? WHERE owner = ?", (time.time(), self.owner))

    def release(self) -> None:
        """Give back every claim of this process."""
        with self._transaction() as connection:
            connection.execute("DELETE FROM claims WHERE owner = ?", (self.owner,))

    def finished(self) -> dict[str, tuple[str, float]]:
        """Return key -> (status, time it was stored) of everything stored."""
        with self._connect() as connection:
            rows = connection.execute("SELECT key, status, finished FROM results").fetchall()
        return {key: (status, finished) for key, status, finished in rows}

    def records(self, experiment: str) -> list[Record]:
        """Return the rows of an experiment, ordered by settings and replicate."""
        query = (
            "SELECT key, settings, replicate, seed, status, result, error, seconds, version, finished FROM results "
            "WHERE experiment = ? ORDER BY settings, replicate"
        )
        with self._connect() as connection:
            rows = connection.execute(query, (experiment,)).fetchall()
        return [_record(row) for row in rows]


def _record(row: tuple[Any, ...]) -> Record:
    key, settings, replicate, seed, status, result, error, seconds, version, finished = row
    measures = json.loads(result) if result is not None else None
    return Record(key, settings, replicate, seed, status, measures, error, seconds, version, finished)


def _alive(host: str, pid: int, beat: float) -> bool:
    if time.time() - beat > LEASE:
        return False
    if host != socket.gethostname():
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # it exists and belongs to someone else
        return True
    return True
