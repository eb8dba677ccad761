"""Showing what the solvers log while a fit runs, in a terminal or a notebook."""

from __future__ import annotations

import logging
import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from ..core.solving import LOGGER

#: Seconds between two lines of one solver at ``verbose=1``: to be read while it runs.
PAUSE = 0.5


class _Pace(logging.Filter):
    """Lets a line of a solver through if the last one is old enough, and every line that sums up a fit."""

    def __init__(self) -> None:
        super().__init__()
        self.last = -math.inf

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the line is shown."""
        if "gap" in record.msg:
            return True
        if record.created - self.last < PAUSE:
            return False
        self.last = record.created
        return True


@contextmanager
def shown(verbose: int) -> Iterator[None]:
    """Write the lines of the logger "psilearn" to standard output while the context lasts."""
    if not verbose:
        yield
        return
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(logging.Formatter("[psilearn] %(message)s"))
    if verbose < 2:
        handler.addFilter(_Pace())
    level, wanted = LOGGER.level, logging.INFO if verbose < 2 else logging.DEBUG
    LOGGER.setLevel(wanted if level == logging.NOTSET else min(level, wanted))
    handler.setLevel(wanted)
    LOGGER.addHandler(handler)
    try:
        yield
    finally:
        LOGGER.removeHandler(handler)
        LOGGER.setLevel(level)
