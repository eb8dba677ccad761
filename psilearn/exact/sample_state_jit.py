"""The state of a sample in an exact search: one vocabulary for all of them.

Read by compiled kernels, to which the members of an ``IntEnum`` are integer constants.
"""

from __future__ import annotations

from enum import IntEnum


class SampleState(IntEnum):
    """What a node has decided about a sample with margin u, and what the sample pays there (g is the convex part)."""

    FREE = 0  #: nothing is decided: it pays the convex envelope of its loss
    IN = 1  #: believed: u >= t, pays g(u)
    OUT = 2  #: left out and confined: u <= t, pays the cap
    GONE = 3  #: given up: pays the cap, whatever u is
    TOP = 4  #: u is at least the largest breakpoint, pays nothing
    TILTED = 5  #: given up, with a linear term in u added: only in bound tightening
    LINEAR = 6  #: no sample but a linear term: u + cost * cap
    FLOOR = 7  #: no sample but a constraint: u is at least its cost


FREE, IN, OUT, GONE, TOP, TILTED, LINEAR, FLOOR = SampleState
