"""A clock that stands still while numba compiles: no time limit counts what the first call of a kernel costs."""

from __future__ import annotations

import gc
import threading
import time

# What the garbage collector calls may ask for the time, hence a lock that its holder may take again.
_lock = threading.RLock()


class _State:
    depth = 0  # kernels being compiled, one within another or in several threads
    began = 0.0
    before = 0.0


def now() -> float:
    """Return the seconds of the clock; only differences mean anything."""
    with _lock:
        return (_State.began if _State.depth else time.perf_counter()) - _State.before


def stand_still() -> None:
    """Stop the clock: a kernel is being compiled."""
    with _lock:
        if _State.depth == 0:
            _State.began = time.perf_counter()
        _State.depth += 1


def go_on() -> None:
    """Start it again when the last of several kernels is compiled."""
    with _lock:
        _State.depth -= 1
        if _State.depth == 0:
            gc.collect(0)  # numba leaves many new objects; Python would go through them right afterwards
            _State.before += time.perf_counter() - _State.began
