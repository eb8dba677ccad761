"""What a solver hands back: coefficients, a recomputed objective, a bound, and a certificate of what is proved."""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from .problem import Problem


class Status(enum.StrEnum):
    """Why a solver stopped."""

    OPTIMAL = "optimal"  # objective and bound agree within the asked tolerance
    CRITICAL = "critical"  # a critical point of the d.c. programme; no claim on the global optimum
    TIME_LIMIT = "time limit"
    ITERATION_LIMIT = "iteration limit"
    INTERRUPTED = "interrupted"
    HEURISTIC = "heuristic"  # a feasible solution of a loss that jumps; no claim at all
    STALLED = "stalled"  # numerical precision is exhausted above the asked tolerance


class Claim(enum.StrEnum):
    """What a certificate claims."""

    CONVEX = "convex duality gap"
    CRITICAL = "d.c.-critical point"
    GLOBAL = "global bound"
    RESTRICTED = "upper bound only: optimum of a restricted problem"
    NONE = "nothing"


class Step(NamedTuple):
    """One line of the history of a solve."""

    seconds: float
    objective: float
    bound: float


class Verification(NamedTuple):
    """Outcome of re-checking a certificate in plain numpy."""

    ok: bool
    objective: float
    bound: float
    gap: float
    message: str


def relative_gap(objective: float, bound: float) -> float:
    """Return (objective - bound) / max(|objective|, eps), inf without a bound; negative would mean a false bound."""
    if not math.isfinite(bound):
        return math.inf
    return (objective - bound) / max(abs(objective), float(np.finfo(float).eps))


@dataclass(frozen=True)
class Certificate:
    """A claim, its size, and the evidence.

    Attributes
    ----------
    claim : Claim
        What is claimed.
    objective, bound : float
        The recomputed objective and a lower bound on the optimum the claim speaks of.
    rechecked : bool
        True if we recomputed the bound from evidence ourselves, False if an engine or a search tree attests it.
    residual : float
        For :attr:`Claim.CRITICAL`, the relative duality gap of the linearised problem at the end point (0 is critical).
    evidence : ndarray or None
        Multipliers R of the scores, shape (n, m), with which :meth:`verify` recomputes the bound.
    engine : str
        Who attests the bound ("psilearn", "HiGHS", "SCIP", ...).
    note : str
        A sentence for the reader.
    point : tuple of ndarray or None
        The coefficients and intercepts the claim is about; a :class:`Result` fills it in.
    """

    claim: Claim
    objective: float
    bound: float = -math.inf
    rechecked: bool = False
    residual: float = math.nan
    evidence: NDArray[np.float64] | None = field(default=None, repr=False)
    engine: str = "psilearn"
    note: str = ""
    point: tuple[NDArray[np.float64], NDArray[np.float64]] | None = field(default=None, repr=False, compare=False)

    @property
    def gap(self) -> float:
        """Relative gap between objective and bound."""
        return relative_gap(self.objective, self.bound)

    def verify(
        self, problem: Problem, coef: NDArray | None = None, intercept: NDArray | None = None, tol: float = 1e-9
    ) -> Verification:
        """Re-check in plain numpy what can be re-checked, for the certified point or for other coefficients.

        The objective is always recomputed. A convex bound is recomputed from the multipliers by weak duality; the
        bound of a search tree cannot be replayed here, and the message says so.
        """
        if coef is None or intercept is None:
            if self.point is None:
                raise ValueError("This certificate carries no coefficients; hand in coef and intercept.")
            coef, intercept = self.point
        objective = problem.value(coef, intercept)
        scale = max(1.0, abs(objective))
        if abs(objective - self.objective) > 1e-7 * scale:
            message = f"the coefficients give {objective!r}, the certificate states {self.objective!r}"
            return Verification(False, objective, -math.inf, math.inf, message)
        if self.claim is Claim.CONVEX and self.evidence is not None:
            bound = problem.dual_bound(self.evidence)
            ok = bound >= self.bound - tol * scale and bound <= objective + tol * scale
            message = "bound recomputed by weak duality" if ok else f"the multipliers prove only {bound!r}"
            return Verification(ok, objective, bound, relative_gap(objective, bound), message)
        ok = self.bound <= objective + tol * scale
        message = f"objective recomputed; the bound is attested by {self.engine}, not recomputed"
        return Verification(ok, objective, self.bound, relative_gap(objective, self.bound), message)


@dataclass
class Result:
    """The outcome of a solve.

    Attributes
    ----------
    coef, intercept : ndarray
        W of shape (m, dim) and b of shape (m,), m = 1 for two classes, k otherwise.
    objective : float
        ``problem.value(coef, intercept)``, never an engine's own number.
    lower_bound : float
        A valid bound on the global optimum, -inf if none is known.
    status, certificate, n_iter, history
        Why it stopped, what is proved, iterations, and (seconds, objective, bound) over time.
    multipliers : ndarray or None
        R of shape (n, m): the loss's subgradient is -R at the solution; a warm start for the next solve.
    extra : dict
        Solver-specific facts (nodes, cuts, inner gaps), for reports and tests.
    """

    coef: NDArray[np.float64]
    intercept: NDArray[np.float64]
    objective: float
    lower_bound: float
    status: Status
    certificate: Certificate
    n_iter: int = 0
    history: Sequence[Step] = ()
    multipliers: NDArray[np.float64] | None = None
    extra: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.certificate = replace(self.certificate, point=(self.coef, self.intercept))

    @property
    def gap(self) -> float:
        """Relative gap between objective and lower bound."""
        return relative_gap(self.objective, self.lower_bound)
