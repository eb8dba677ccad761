"""The one error of this room."""

from __future__ import annotations


class TableError(ValueError):
    """The table cannot be used; the message is one sentence for the person who brought it."""
