"""What every solver shares: options, a clock that honours time limits, and the making of a Result."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..problem import Problem
from ..result import Certificate, Claim, Result, Status, Step


@dataclass(frozen=True)
class Options:
    """How well, how long, and how loudly to solve.

    Attributes
    ----------
    tol : float
        Relative duality gap of convex solves, and criticality residual of d.c. solves.
    gap_tol : float
        Relative gap between incumbent and bound at which a global solve is proved.
    time_limit : float
        Seconds; inf for none. Every solver returns its incumbent when it is over.
    max_iter : int or None
        Iteration (or node) limit of the solver's own outer loop; None for the solver's default.
    random_state : int
        Seed.
    verbose : int
        0 is silent.
    extra : dict
        Options of one solver only, each documented in that solver.
    """

    tol: float = 1e-4
    gap_tol: float = 1e-4
    time_limit: float = math.inf
    max_iter: int | None = None
    random_state: int = 0
    verbose: int = 0
    extra: dict[str, Any] = field(default_factory=dict)


class Clock:
    """Seconds since the start, the time limit, and the history of a solve."""

    def __init__(self, limit: float = math.inf) -> None:
        self.start = time.perf_counter()
        self.limit = limit
        self.history: list[Step] = []

    @property
    def seconds(self) -> float:
        """Seconds since the start."""
        return time.perf_counter() - self.start

    @property
    def left(self) -> float:
        """Seconds left, inf without a limit."""
        return self.limit - self.seconds

    @property
    def is_over(self) -> bool:
        """Whether the time limit has passed."""
        return self.seconds >= self.limit

    def note(self, objective: float, bound: float) -> None:
        """Write a line of history."""
        self.history.append(Step(self.seconds, objective, bound))


#: A solver: (problem, options, start) -> Result. ``start`` is an earlier Result on the same samples, or None.
Solve = Callable[[Problem, Options, Result | None], Result]


def convex_result(
    problem: Problem,
    W: NDArray[np.float64],
    b: NDArray[np.float64],
    R: NDArray[np.float64] | None,
    options: Options,
    clock: Clock,
    n_iter: int,
    status: Status | None = None,
    **extra: Any,
) -> Result:
    """Recompute objective and dual bound of a convex solve and certify them.

    ``R`` (n, m) are the multipliers of the scores. The status is OPTIMAL iff the recomputed gap is within ``tol``;
    otherwise it is ``status``, or STALLED if none is given.
    """
    R = problem.repaired_multipliers(R) if R is not None else None
    objective = problem.value(W, b)
    bound = problem.bound_of(R) if R is not None else -math.inf
    clock.note(objective, bound)
    certificate = Certificate(Claim.CONVEX, objective, bound, rechecked=True, evidence=R)
    done = certificate.gap <= options.tol
    final = Status.OPTIMAL if done else (status or Status.STALLED)
    return Result(W, b, objective, bound, final, certificate, n_iter, tuple(clock.history), R, dict(extra))
