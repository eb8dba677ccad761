"""The template of class docstrings: what a class inherits is documented once, and shown on every class.

A class states what is its own. :func:`completed` adds the entries of "Parameters" and "Attributes" that its bases
state, puts parameters into the order of the signature and sections into the order of numpydoc.
"""

from __future__ import annotations

import inspect
import re
from typing import TypeVar

T = TypeVar("T", bound=type)

#: Sections in the order in which they are shown; those of ENTRIES are lists that a class shares with its bases.
SECTIONS = ("Parameters", "Attributes", "See Also", "Notes", "References", "Examples")
ENTRIES = ("Parameters", "Attributes")

_HEADING = re.compile(r"^(\w[\w ]*)\n-{3,}\n", re.MULTILINE)
_ENTRY = re.compile(r"^(?=\S)", re.MULTILINE)


def completed(cls: T) -> T:
    """Give a class the docstring that also names inherited parameters and attributes; a class decorator."""
    if cls.__doc__ is None:  # python -OO
        return cls
    summary, sections = _parted(cls.__doc__)
    for name in ENTRIES:
        entries = _inherited(cls, name) | _entries(sections.get(name, ""))
        if name == "Parameters":
            entries = {key: entries[key] for key in inspect.signature(cls).parameters if key in entries}
        sections[name] = "\n".join(entries.values())
    shown = [f"{name}\n{'-' * len(name)}\n{sections[name]}" for name in SECTIONS if sections.get(name)]
    cls.__doc__ = "\n\n".join([summary, *shown]) + "\n"
    return cls


def _inherited(cls: type, section: str) -> dict[str, str]:
    """Return the entries of all bases, the nearest one's where several have one."""
    entries: dict[str, str] = {}
    for base in reversed(cls.__mro__[1:]):
        if base.__module__.startswith(f"{__package__}.") and base.__doc__ is not None:
            entries |= _entries(_parted(base.__doc__)[1].get(section, ""))
    return entries


def _parted(doc: str) -> tuple[str, dict[str, str]]:
    """Split a docstring into what stands before the first heading, and the sections."""
    summary, *rest = _HEADING.split(inspect.cleandoc(doc))
    return summary.strip(), {name: body.strip("\n") for name, body in zip(rest[::2], rest[1::2])}


def _entries(body: str) -> dict[str, str]:
    """Split a section into entries by name; a line that is not indented begins one."""
    entries = [entry.rstrip() for entry in _ENTRY.split(body) if entry.strip()]
    return {re.split(r"[ :\n]", entry, maxsplit=1)[0]: entry for entry in entries}
