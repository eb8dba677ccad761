"""What a solver hands back: coefficients, a recomputed objective, a bound, and a certificate of what is proved."""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeGuard

import numpy as np
from numpy.typing import NDArray

from .relaxation import relaxed_bound

if TYPE_CHECKING:
    from .problem import Problem

#: Rounding of an objective relative to the objective of f = 0: an error of a few units in the last place of a margin
#: costs that much times C, also where the optimum itself is small against C.
ROUNDING = 1e-14


class Status(enum.StrEnum):
    """What stopped a solver; what is proved of its solution is said by the :class:`Certificate`."""

    OPTIMAL = "optimal"  # objective and bound agree within the asked tolerance
    CRITICAL = "critical"  # the d.c. algorithm has arrived at a stationary point, and no proof was asked for
    TIME_LIMIT = "time limit"
    ITERATION_LIMIT = "iteration limit"
    INTERRUPTED = "interrupted"
    HEURISTIC = "heuristic"  # a feasible solution of a loss that jumps; no claim at all
    STALLED = "stalled"  # numerical precision is exhausted above the asked tolerance


def go_on_after(status: Status | None) -> None:
    """Raise KeyboardInterrupt if Ctrl-C ended one of several solves: what is kept of it is not what was asked for."""
    if status is Status.INTERRUPTED:
        raise KeyboardInterrupt


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
    """Outcome of re-checking a certificate in plain numpy.

    Attributes
    ----------
    ok : bool
        True only if every claim was recomputed and holds.
    objective : float
        The objective as recomputed.
    bound : float
        The lower bound as recomputed, -inf if there is none.
    gap : float
        Their relative gap.
    message : str
        What was recomputed, or what was not.
    """

    ok: bool
    objective: float
    bound: float
    gap: float
    message: str


def relative_gap(objective: float, bound: float) -> float:
    """Return (objective - bound) / max(|objective|, eps), inf without a bound; negative would mean a false bound."""
    if not math.isfinite(bound) or not math.isfinite(objective):
        return math.inf
    return (objective - bound) / max(abs(objective), float(np.finfo(float).eps))


class InconsistentBoundError(ArithmeticError):
    """A lower bound lies above an objective that is attained, so it bounds nothing."""


class Proof(Protocol):
    """A proof of a global bound that can be replayed, up to a part of it, ``shortfall``, for rounding."""

    @property
    def shortfall(self) -> float:
        """Part of the bound that the proof may fall short of it."""

    def bound(self, problem: Problem) -> float:
        """Return the lower bound on the optimum of ``problem`` that the proof establishes; -inf if it fails."""


def agreed_bound(objective: float, bound: float, allowance: float) -> float:
    """Return a proved bound, or the attained objective if that lies below it by no more than rounding explains."""
    if bound - objective > allowance:
        raise InconsistentBoundError(
            f"The lower bound {bound!r} lies above the objective {objective!r} that is attained, by more than rounding "
            f"explains ({allowance:.2g}): nothing is proved. Please report this problem."
        )
    return min(bound, objective)


@dataclass(frozen=True)
class Certificate:
    """The one object that makes a claim; objective, bound and gap of a fit are read from here.

    Attributes
    ----------
    claim : Claim
        What is claimed.
    objective, bound : float
        The recomputed objective and a lower bound on the global optimum (-inf if none is known).
    rechecked : bool
        True if we recomputed the bound from evidence ourselves, False if an engine or a search tree attests it.
    residual : float
        For :attr:`Claim.CRITICAL`, what the convex majorant at the point can still be lowered by, relative to the
        objective (0 is critical).
    evidence : ndarray or None
        Multipliers R of the scores, shape (n, m): of the problem itself if it is convex, else of its majorant.
    engine : str
        Who attests the bound ("psilearn", "HiGHS", "SCIP", ...).
    note : str
        A sentence for the reader.
    point : tuple of ndarray or None
        The coefficients and intercepts the claim is about; a :class:`Result` fills it in.
    proof : Proof or None
        What :meth:`verify` replays to recompute a global bound.
    record : object or None
        What a search remembers of its tree; it proves nothing, but makes a proof quick to find.
    relaxed : ndarray or None
        Multipliers of the convex relaxation (:mod:`.relaxation`) that prove the bound of a problem that is not convex.
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
    proof: Proof | None = field(default=None, repr=False, compare=False)
    record: Any = field(default=None, repr=False, compare=False)
    relaxed: NDArray[np.float64] | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        for name in ("objective", "bound", "residual"):  # numpy's numbers print and serialise differently
            object.__setattr__(self, name, float(getattr(self, name)))

    @property
    def gap(self) -> float:
        """Relative gap between objective and bound."""
        return relative_gap(self.objective, self.bound)

    def verify(
        self, problem: Problem, coef: NDArray | None = None, intercept: NDArray | None = None, tol: float = 1e-9
    ) -> Verification:
        """Recompute every number of the certificate, for the certified point or for other coefficients.

        * The objective is evaluated again.
        * A bound on a convex problem is recomputed from the multipliers by weak duality.
        * The residual of a critical point is recomputed: the problem's convex majorant at the point, and the dual bound
          of that majorant by the multipliers.
        * A bound on a problem that is not convex is recomputed from ``proof``, up to its ``shortfall``, or from the
          multipliers of its convex relaxation, which is made anew. Without either only bounds up to 0 are proved
          (penalty and loss are not negative); a higher one is named in the message, and ``ok`` is False.

        Parameters
        ----------
        problem : Problem
            What was solved.
        coef, intercept : ndarray, optional
            The point; by default the one that the certificate carries.
        tol : float, default=1e-9
            Allowance for rounding, relative to the objective.

        Returns
        -------
        Verification
            ``objective`` is the recomputed one, ``bound`` what is stated and proved again.
        """
        W, b = self._point(coef, intercept)
        shape = (problem.n_functions, problem.space.dim)
        if W.shape != shape or b.shape != shape[:1]:
            message = f"the coefficients have shape {W.shape}, the problem needs {shape}"
            return Verification(False, math.nan, -math.inf, math.inf, message)
        objective = problem.value(W, b)
        proved = self._proved_bound(problem, objective)
        allowance = tol * abs(objective) + ROUNDING * problem.zero_value
        faults = [
            self._objective_fault(objective, allowance),
            self._bound_fault(problem, min(proved, objective), allowance),
            self._residual_fault(problem, W, b, allowance / max(abs(objective), np.finfo(float).tiny)),
        ]
        message = "; ".join(fault for fault in faults if fault)
        bound = min(self.bound, proved) if self.bound > -math.inf else -math.inf
        return Verification(not message, objective, bound, relative_gap(objective, bound), message or self._summary())

    def _summary(self) -> str:
        """Say what was recomputed where nothing was at fault."""
        if self.claim is Claim.CRITICAL and self.residual < math.inf:
            what = "objective, bound" if self.bound > -math.inf else "objective"
            return f"{what} and residual of the convex majorant recomputed: a stationary point, maybe not the optimum"
        if self.bound == -math.inf:
            return "objective recomputed; nothing else is claimed"
        return "objective and bound recomputed"

    def _point(self, coef: NDArray | None, intercept: NDArray | None) -> tuple[NDArray, NDArray]:
        if coef is not None and intercept is not None:
            return coef, intercept
        if self.point is None:
            raise ValueError("This certificate carries no coefficients; hand in coef and intercept.")
        return self.point

    def _objective_fault(self, objective: float, allowance: float) -> str:
        if abs(objective - self.objective) <= allowance:
            return ""
        stated = f"the certificate states {float(self.objective)!r}"
        return f"the coefficients give the objective {float(objective)!r}, {stated}"

    def _bound_fault(self, problem: Problem, proved: float, allowance: float) -> str:
        if self.claim is Claim.CONVEX and not problem.is_convex:
            return "a duality gap is claimed of a problem that is not convex"
        shortfall = 0.0 if self.proof is None else self.proof.shortfall * abs(self.bound)
        if self.bound <= proved + allowance + shortfall:
            return ""
        is_evident = self.proof is not None or self.relaxed is not None
        if problem.is_convex or (is_evident and proved > -math.inf):
            return f"the bound {float(self.bound)!r} is stated, but only {float(proved)!r} is proved"
        stated = f"the global bound {float(self.bound)!r} is attested by {self.engine} and was not recomputed"
        return f"{stated}; psilearn.prove writes a proof of it that can be checked"

    def _proved_bound(self, problem: Problem, objective: float) -> float:
        """Return the best lower bound on the optimum that can be proved here and now, of a fit with this objective."""
        if not _is_psd(problem):
            return -math.inf
        # Penalty and loss are not negative; a tilt may be.
        bounds = [problem.offset if problem.tilt is None else -math.inf]
        if problem.is_convex and _fits(self.evidence, problem):
            bounds.append(problem.dual_bound(self.evidence))
        if self.relaxed is not None:
            bounds.append(relaxed_bound(problem, objective, self.relaxed))
        if self.proof is not None:
            bounds.append(self.proof.bound(problem))
        return max(bounds)

    def _residual_fault(self, problem: Problem, W: NDArray, b: NDArray, allowance: float) -> str:
        if self.claim is not Claim.CRITICAL or self.residual == math.inf:
            return ""
        residual = critical_residual(problem, W, b, self.evidence)
        if residual <= self.residual + allowance:
            return ""
        return f"the majorant can be lowered by {residual!r} of the objective, the certificate states {self.residual!r}"


def critical_residual(problem: Problem, W: NDArray, b: NDArray, R: NDArray[np.float64] | None) -> float:
    """Return what the convex majorant at (W, b) can still be lowered by as far as multipliers R can tell.

    Relative to the objective; inf if R proves nothing. The dual bound of the majorant lies below its minimum, so the
    true figure is at most what is returned, and a small one certifies a stationary point.
    """
    if not problem.loss.is_continuous or not _is_psd(problem) or not _fits(R, problem):
        return math.inf
    objective = problem.value(W, b)
    left = objective - problem.majorant(W, b).dual_bound(R)
    return max(0.0, left) / max(abs(objective), float(np.finfo(float).tiny))


def _is_psd(problem: Problem) -> bool:
    """Whether the penalty is not negative: no bound holds for a kernel matrix with a negative eigenvalue."""
    return getattr(problem.space, "is_psd", True)


def _fits(R: NDArray[np.float64] | None, problem: Problem) -> TypeGuard[NDArray[np.float64]]:
    return R is not None and problem.accepts(R)


@dataclass
class Result:
    """The outcome of a solve.

    Attributes
    ----------
    coef, intercept : ndarray
        W of shape (m, dim) and b of shape (m,), m = 1 for two classes, k otherwise.
    status, certificate, n_iter, history
        Why it stopped, what is proved, iterations, and (seconds, objective, bound) over time.
    multipliers : ndarray or None
        R of shape (n, m): the loss's subgradient is -R at the solution; a warm start for the next solve.
    extra : dict
        Solver-specific facts (nodes, cuts, inner gaps), for reports and tests.
    """

    coef: NDArray[np.float64]
    intercept: NDArray[np.float64]
    status: Status
    certificate: Certificate
    n_iter: int = 0
    history: Sequence[Step] = ()
    multipliers: NDArray[np.float64] | None = None
    extra: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.certificate = replace(self.certificate, point=(self.coef, self.intercept))
        self.history = [Step(*map(float, step)) for step in self.history]

    @property
    def objective(self) -> float:
        """``problem.value(coef, intercept)``, never an engine's own number."""
        return self.certificate.objective

    @property
    def lower_bound(self) -> float:
        """A valid bound on the global optimum, -inf if none is known."""
        return self.certificate.bound

    @property
    def gap(self) -> float:
        """Relative gap between objective and lower bound."""
        return self.certificate.gap

    def with_bound_of(self, other: Certificate) -> Result:
        """Return the result with the bound on the global optimum that another certificate states, and its evidence."""
        kept = {name: getattr(other, name) for name in ("bound", "engine", "proof", "record", "relaxed")}
        is_proved = other.relaxed is not None
        return replace(self, certificate=replace(self.certificate, rechecked=is_proved, **kept))

    def with_relaxation(self, bound: float, R: NDArray[np.float64] | None) -> Result:
        """Return the result with a bound that multipliers of its convex relaxation prove; 0 needs none."""
        return replace(self, certificate=replace(self.certificate, bound=bound, rechecked=True, relaxed=R))
