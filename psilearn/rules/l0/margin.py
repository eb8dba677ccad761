"""Maximising the margin subject to a relaxed code length: a search that proves how good its margin is.

Goldberg and Eckstein (2009), (25): maximise rho - beta z(rho), with z(rho) the optimum of (18). Lemma 5.2 there
(z is convex) does not hold, but z is nondecreasing: a point feasible for rho with xi <= 1 is feasible for every smaller
margin, since rho (1 - xi_i) - xi_i falls with rho. So on an interval [a, b] the objective is at most b - beta z(a), and
splitting the interval with the largest such bound converges to the global maximum.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class MarginResult:
    """The best margin found, its objective rho - beta z(rho), a proved upper bound, and all (rho, z) evaluated."""

    rho: float
    objective: float
    upper_bound: float
    evaluations: tuple[tuple[float, float], ...]


def maximise_margin(
    relaxation: Callable[[float], tuple[float, float]],
    beta: float,
    *,
    lower: float = 1e-3,
    upper: float = 1.0,
    tol: float = 1e-2,
    max_evaluations: int = 100,
) -> MarginResult:
    """Maximise rho - beta z(rho) over [lower, upper].

    Parameters
    ----------
    relaxation : callable
        rho -> (z, lower bound on z), as solved by :func:`.boost.solve`.
    beta : float
        Price of code length, >= 0.
    tol : float
        Stop when bound and objective differ by at most this.
    """
    if beta < 0 or not 0 < lower < upper <= 1:
        raise ValueError("The margin search needs beta >= 0 and 0 < lower < upper <= 1.")
    evaluations: list[tuple[float, float]] = []
    best_rho, best = lower, -float("inf")

    def look(rho: float) -> float:
        nonlocal best_rho, best
        z, bound = relaxation(rho)
        evaluations.append((rho, z))
        if rho - beta * z > best:
            best_rho, best = rho, rho - beta * z
        return bound

    heap = [(-(upper - beta * look(lower)), lower, upper)]
    look(upper)
    while len(evaluations) < max_evaluations and -heap[0][0] > best + tol:
        bound, a, b = heapq.heappop(heap)
        middle = (a + b) / 2
        # the left half keeps z(a), which its parent's bound already contains
        heapq.heappush(heap, (bound + (b - middle), a, middle))
        heapq.heappush(heap, (-(b - beta * look(middle)), middle, b))
    return MarginResult(best_rho, best, max(best, -heap[0][0]), tuple(sorted(evaluations)))
