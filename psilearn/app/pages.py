"""Making pages that stand alone: escaping, embedding of data and assets, and the frame around a body."""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from typing import Any

from .words import shown

#: Nothing may be fetched, framed or sent; the styles and scripts are in the page itself.
_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
    "form-action 'none'"
)

_FRAME = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<link rel="icon" href="data:,">
<style>
{style}
</style>
</head>
<body>
{body}
{scripts}
</body>
</html>
"""


def asset(room: str, name: str) -> str:
    """Return the text of a file that comes with the package."""
    return files("psilearn").joinpath("app", room, name).read_text(encoding="utf-8")


def text(value: Any, limit: int = 60) -> str:
    """Return a text from the data, inert in HTML: control characters replaced, shortened, escaped."""
    return escape(shown(value, limit), quote=True)


def inert_json(data: Any) -> str:
    """Return JSON in which no text can end the element it stands in."""
    tree = json.dumps(data, ensure_ascii=False, allow_nan=False)
    for character in "<>&\u2028\u2029":
        tree = tree.replace(character, f"\\u{ord(character):04x}")
    return tree


def data_script(name: str, data: Any) -> str:
    """Return data for the page's scripts."""
    return f'<script type="application/json" id="{escape(name, quote=True)}">{inert_json(data)}</script>'


def table(
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    caption: str,
    numeric: Sequence[int] = (),
    whole: Sequence[int] = (),
) -> str:
    """Return a table of cells that are HTML already; ``numeric`` columns are set right, ``whole`` ones not broken."""
    right = [' class="n"' if at in numeric else ' class="w"' if at in whole else "" for at in range(len(head))]
    top = "".join(f'<th scope="col"{r}>{h}</th>' for h, r in zip(head, right))
    body = "".join(
        "<tr>" + f'<th scope="row"{right[0]}>{row[0]}</th>'
        + "".join(f"<td{r}>{cell}</td>" for cell, r in zip(row[1:], right[1:])) + "</tr>"
        for row in rows
    )  # fmt: skip
    frame = f'<div class="scroll" tabindex="0" role="region" aria-label="{caption}">'
    title = f"<caption><span>{caption}</span></caption>"
    return f"{frame}<table>{title}<thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>"


def page(title: str, body: str, scripts: Sequence[str] = (), style: str = "") -> str:
    """Return a whole page in one file; ``style`` is added to the style that all pages share."""
    parts = "\n".join(f"<script>\n{script}\n</script>" for script in scripts)
    style = asset("report", "style.css") + style
    return _FRAME.format(policy=_POLICY, title=escape(title), style=style, body=body, scripts=parts)
