"""The error that reading a table raises."""

from __future__ import annotations


class TableError(ValueError):
    """The table cannot be used; the message is one sentence for the person who brought it."""
