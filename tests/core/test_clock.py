"""Clocks stand still while numba compiles, in whatever thread and however deep, and go on afterwards."""

import threading

import numba
import pytest
from numba.core import event

from psilearn.core import _jit, clock
from psilearn.core.clock import now
from psilearn.core.solving import Clock


class Hands:
    """A clock face that moves only when a test moves it."""

    seconds = 100.0

    def perf_counter(self):
        return self.seconds


assert _jit.kernel  # which makes clocks see what numba compiles


@pytest.fixture
def hands(monkeypatch):
    face = Hands()
    monkeypatch.setattr(clock, "time", face)
    return face


def test_compiling_takes_no_time(hands):
    class SlowCompiler(event.Listener):
        def on_start(self, _):
            hands.seconds += 30.0

        def on_end(self, _):
            pass

    limit = Clock(10.0)
    double = numba.njit(lambda x: 2 * x)
    slow = SlowCompiler()
    event.register("numba:compile", slow)
    try:
        assert double(2) == 4
    finally:
        event.unregister("numba:compile", slow)
    assert hands.seconds >= 130.0
    assert limit.seconds == 0.0
    hands.seconds += 4.0
    assert (limit.seconds, limit.left, limit.is_over) == (4.0, 6.0, False)
    assert double(2) == 4  # compiled already
    hands.seconds += 6.0
    assert limit.is_over


def test_kernels_within_kernels_count_once(hands):
    began = now()
    with event.trigger_event("numba:compile"):
        hands.seconds += 1.0
        with event.trigger_event("numba:compile"):
            hands.seconds += 2.0
            assert now() == began
        hands.seconds += 3.0
        assert now() == began
    hands.seconds += 0.5
    assert now() == began + 0.5


def test_the_last_of_two_threads_starts_the_clock_again(hands):
    began = now()
    with event.trigger_event("numba:compile"):
        other = event.trigger_event("numba:compile")
        thread = threading.Thread(target=other.__enter__)
        thread.start()
        thread.join()
        hands.seconds += 1.0
    hands.seconds += 2.0
    assert now() == began
    other.__exit__(None, None, None)
    hands.seconds += 4.0
    assert now() == began + 4.0


def test_a_compilation_that_fails_does_not_stop_the_clock(hands):
    began = now()
    with pytest.raises(numba.TypingError):
        numba.njit(lambda x: x.nothing)(1.0)
    hands.seconds += 2.0
    assert now() == began + 2.0
