"""Text from the data, made safe to show and short enough to read."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import Any


def shown(value: Any, limit: int = 60) -> str:
    """Return text that is safe to show: control and direction characters replaced, cut to ``limit`` characters."""
    text = "".join("\N{REPLACEMENT CHARACTER}" if unicodedata.category(c) in {"Cc", "Cf", "Cs"} else c
                   for c in str(value)[: 4 * limit])  # fmt: skip
    return text if len(text) <= limit else text[: limit - 1] + "…"


def listed(values: Sequence[Any], limit: int = 6) -> str:
    """Return the first values in quotes, and how many more there are."""
    head = ", ".join(f"'{shown(v, 40)}'" for v in list(values)[:limit])
    return head if len(values) <= limit else f"{head} and {len(values) - limit} more"
