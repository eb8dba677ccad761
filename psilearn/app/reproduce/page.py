"""A page is a list of blocks; one writer makes markdown of it, one self-contained HTML."""

from __future__ import annotations

import base64
import html
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Heading:
    """A section title."""

    text: str


@dataclass(frozen=True)
class Text:
    """A paragraph."""

    text: str


@dataclass(frozen=True)
class Items:
    """A bullet list."""

    items: Sequence[str]


@dataclass(frozen=True)
class Link:
    """A table cell that leads to another page, named without its ending."""

    text: str
    page: str


@dataclass(frozen=True)
class Table:
    """A table; cells are text or links."""

    header: Sequence[str]
    rows: Sequence[Sequence[str | Link]]


@dataclass(frozen=True)
class Image:
    """A PNG next to the page."""

    path: Path
    caption: str


Block = Heading | Text | Items | Table | Image

_STYLE = """
body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#1b1b1b;background:#fff}
table{border-collapse:collapse;margin:1rem 0;font-size:.9rem}th,td{border-bottom:1px solid #ccc;padding:.25rem .6rem;
text-align:left}th{background:#f4f4f4}img{max-width:100%}@media(prefers-color-scheme:dark){body{background:#16181c;
color:#e6e6e6}th{background:#24272d}a{color:#8ab4f8}img{background:#fff}}
"""


def to_markdown(title: str, blocks: Sequence[Block]) -> str:
    """Render a page as markdown."""
    return f"# {title}\n\n" + "\n\n".join(_markdown(block) for block in blocks) + "\n"


def _markdown(block: Block) -> str:
    match block:
        case Heading(text):
            return f"## {text}"
        case Text(text):
            return text
        case Items(items):
            return "\n".join(f"- {item}" for item in items)
        case Image(path, caption):
            return f"![{caption}]({path.name})"
        case Table(header, rows):
            lines = [header, ["---"] * len(header), *rows]
            return "\n".join("| " + " | ".join(_markdown_cell(cell) for cell in line) + " |" for line in lines)


def _markdown_cell(cell: str | Link) -> str:
    if isinstance(cell, Link):
        return f"[{cell.text}]({cell.page}.md)"
    return cell.replace("|", "\\|")


def to_html(title: str, blocks: Sequence[Block]) -> str:
    """Render a page as one HTML file that needs no other."""
    body = "\n".join(_html(block) for block in blocks)
    name = html.escape(title)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{name}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style></head>\n'
        f"<body><h1>{name}</h1>\n{body}\n</body></html>\n"
    )


def _html(block: Block) -> str:
    match block:
        case Heading(text):
            return f"<h2>{html.escape(text)}</h2>"
        case Text(text):
            return f"<p>{_code(html.escape(text))}</p>"
        case Items(items):
            return "<ul>" + "".join(f"<li>{html.escape(item)}</li>" for item in items) + "</ul>"
        case Image(path, caption):
            data = base64.b64encode(path.read_bytes()).decode()
            return f'<img alt="{html.escape(caption)}" src="data:image/png;base64,{data}">'
        case Table(header, rows):
            head = "".join(f"<th>{html.escape(cell)}</th>" for cell in header)
            lines = ["".join(f"<td>{_html_cell(cell)}</td>" for cell in row) for row in rows]
            return f"<table><tr>{head}</tr>" + "".join(f"<tr>{line}</tr>" for line in lines) + "</table>"


def _code(escaped: str) -> str:
    """Turn `code` between backticks into an element."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escaped)


def _html_cell(cell: str | Link) -> str:
    if isinstance(cell, Link):
        return f'<a href="{html.escape(cell.page)}.html">{html.escape(cell.text)}</a>'
    return html.escape(cell)
