"""What tests of the exact searches share."""

import time
from types import SimpleNamespace

import pytest

from psilearn.core import clock


@pytest.fixture
def cpu_clock(monkeypatch):
    """Let the solver's clock count CPU seconds of this process: how busy the computer is decides nothing."""
    monkeypatch.setattr(clock, "time", SimpleNamespace(perf_counter=time.process_time))
    return time.process_time
