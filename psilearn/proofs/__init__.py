"""Proof files: written by the library, checked in exact arithmetic by :mod:`.check`, which imports nothing of ours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .write import check, prove

__all__ = ["check", "prove"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        from . import write

        return getattr(write, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
