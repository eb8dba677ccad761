"""Packages that only some users need: loaded when they are needed, with a sentence that says how to install them."""

from __future__ import annotations

from importlib import import_module
from typing import Any


class MissingExtraError(ImportError):
    """An optional package is not installed; the message says which extra brings it."""


def optional(package: str, extra: str, what: str) -> Any:
    """Import a package that comes with an extra.

    Parameters
    ----------
    package : str
        What to import, maybe dotted.
    extra : str
        The extra of psilearn that installs it.
    what : str
        Who needs it, as the subject of the sentence.

    Examples
    --------
    >>> optional("json", "cli", "This example").dumps([1])
    '[1]'
    """
    try:
        return import_module(package)
    except ImportError as error:
        name = package.split(".")[0]
        message = f"{what} needs the package {name}, which is not installed; run: pip install 'psilearn[{extra}]'"
        raise MissingExtraError(message) from error
