"""The solvers by name, the choice among them, and what is handed from one to another.

Tests: tests/core/test_claims.py, tests/core/test_capabilities.py.
"""

from .choice import choose_convex, choose_exact
from .registry import SOLVERS, load, refusal, settings, takes
from .run import descend, solve, solve_convex, solve_nonconvex, solve_path

__all__ = [
    "SOLVERS", "choose_convex", "choose_exact", "descend", "load", "refusal", "settings", "solve", "solve_convex",
    "solve_nonconvex", "solve_path", "takes",
]  # fmt: skip
