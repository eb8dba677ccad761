"""Options of the exact two-class search, read by the solver and by the searches it runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...core.solving import SolverSettings

Array = NDArray[np.float64]


def never_enough(objective: float, bound: float) -> bool:
    """Go on until the gap is closed."""
    return False


@dataclass(frozen=True)
class Settings(SolverSettings):
    """Options of the exact two-class search only.

    Attributes
    ----------
    incumbents : tuple of (W, b)
        Points to start from, besides ``start``.
    restrict : None or "svm"
        Section 3.3 of Liu and Wu (2006): samples that a support vector machine puts beyond ``restrict_threshold`` are
        bound to u >= 1. Another problem, so its optimum is an upper bound only, and is labelled so.
    restrict_threshold : float
        The paper uses 1 on simulated and 1.1 on real data.
    restrict_further : float or None
        Section 5.1: samples with SVM margin in (this, 1) are bound to u >= t as well.
    svm : (W, b) or None
        The support vector machine to restrict by; by default the one with the same penalty and C.
    memory : float
        Bytes of open nodes.
    exclusive : bool or None
        Whether the search over violated sets branches exclusively; by default where the dimension is large.
    first_slice_seconds, slice_seconds : float
        Seconds of the first search before another is tried, and the shortest slice thereafter.
    steps_per_node : float
        Steps of the local search per node where nodes are limited.
    enough : callable (objective, bound) -> bool
        Asked after every slice of time; the search ends as interrupted when it says True.
    engine : "psilearn", "scip", "gurobi" or "highs"
        Our own search, or a mixed-integer program in an engine ("highs" for l1 penalties only; "gurobi" if it is
        installed).
    formulation : "tight" or "paper"
        The program an engine gets, see :mod:`.formulations`.
    """

    incumbents: tuple[tuple[Array, Array], ...] = ()
    restrict: str | None = None
    restrict_threshold: float = 1.0
    restrict_further: float | None = None
    svm: tuple[Array, Array] | None = None
    memory: float = 2e9
    exclusive: bool | None = None
    first_slice_seconds: float = 1.0
    slice_seconds: float = 0.5
    steps_per_node: float = 0.25
    enough: Callable[[float, float], bool] = never_enough
    engine: str = "psilearn"
    formulation: str = "tight"

    def __post_init__(self) -> None:
        if self.restrict not in (None, "svm"):
            raise ValueError(f"restrict must be None or 'svm', got {self.restrict!r}.")
        if self.formulation not in ("tight", "paper"):
            raise ValueError(f"formulation must be 'tight' or 'paper', got {self.formulation!r}.")
