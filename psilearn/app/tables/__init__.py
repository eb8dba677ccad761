"""From a file to a table one can learn from: reading, saying what was understood, and clear sentences when it fails.

Tests: tests/app/test_tables.py, tests/app/test_hostile_files.py.
"""

from .cells import Numbers, as_numbers
from .error import TableError
from .reading import read_chunks, read_table, table_with
from .understanding import Understanding, understand

__all__ = [
    "Numbers",
    "TableError",
    "Understanding",
    "as_numbers",
    "read_chunks",
    "read_table",
    "table_with",
    "understand",
]
