"""From a file to a table one can learn from: reading, saying what was understood, and clear sentences when it fails."""

from .cells import Numbers, as_numbers
from .error import TableError
from .reading import cells_as_written, read_chunks, read_table
from .understanding import Understanding, understand

__all__ = [
    "Numbers",
    "TableError",
    "Understanding",
    "as_numbers",
    "cells_as_written",
    "read_chunks",
    "read_table",
    "understand",
]
