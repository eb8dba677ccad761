"""Every table and figure of the five papers, regenerated and set beside the published figures.

An `Experiment` is a seeded function over a grid of settings; each replication of each setting is a task. `run` brings
tasks into a `Store`, `summarise` averages them, `compare` and `verdict` judge them, `write_page` shows them. `main`
does all of it for ``psilearn reproduce``.

Tests: tests/app/test_reproduce.py.
"""

from .catalogue import catalogue
from .command import main
from .compare import compare, verdict
from .experiment import Experiment, Ordering, Paper, Published, Ratio, Reason, experiment, grid, view
from .index import rebuild, write_index
from .report import write_page
from .runner import run
from .store import Store
from .summary import Summary, summarise
from .task import Task, execute

__all__ = [
    "Experiment",
    "Ordering",
    "Paper",
    "Published",
    "Ratio",
    "Reason",
    "Store",
    "Summary",
    "Task",
    "catalogue",
    "compare",
    "execute",
    "experiment",
    "grid",
    "main",
    "rebuild",
    "run",
    "summarise",
    "verdict",
    "view",
    "write_index",
    "write_page",
]
