"""The pieces of a page in markdown, which the documentation renders and any editor shows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path


def items(texts: Iterable[str]) -> str:
    """Return a bullet list."""
    return "\n".join(f"- {text}" for text in texts)


def cell(text: str) -> str:
    """Return text that may stand in a table."""
    return text.replace("|", "\\|")


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; its cells are markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def write(stem: Path, title: str, blocks: Iterable[str]) -> None:
    """Write a page: a title and its blocks."""
    stem.with_suffix(".md").write_text("\n\n".join([f"# {title}", *blocks]) + "\n", encoding="utf-8")
