"""The main job: every method side by side on one table, with the doubts about its labels taken seriously.

Tests: tests/app/test_compare.py.
"""

from .job import Comparison, Outcome, Settings, compare
from .methods import METHODS, Method

__all__ = ["METHODS", "Comparison", "Method", "Outcome", "Settings", "compare"]
