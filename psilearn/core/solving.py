"""What every solver shares: options, a clock that honours time limits, and the making of a Result."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from .clock import now
from .dual import SHARP, Proof
from .problem import Problem
from .result import Certificate, Claim, Result, Status, Step, agreed_bound
from .spaces import LinearSpace


class SolverSettings:
    """Base of the records that hold the options of one solver only; each is a frozen dataclass with defaults."""


S = TypeVar("S", bound=SolverSettings)


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
    certify : bool
        False if the caller needs coefficients and multipliers only, as a d.c. step does: a solver may then return its
        answer without objective (nan) and bound (-inf), at the accuracy that it believes to have reached.
    verbose : int
        0 is silent; who shows what the solvers log is the caller's affair.
    n_jobs : int
        Threads of a search that can use several.
    cluster : str or None
        Address of a dask scheduler whose workers search instead of threads; None: that of the active client, if there
        is one and ``n_jobs`` is 1.
    settings : tuple of SolverSettings
        Options of one solver only: records of the class ``Settings`` in that solver's module.
    """

    tol: float = 1e-4
    gap_tol: float = 1e-4
    time_limit: float = math.inf
    max_iter: int | None = None
    random_state: int = 0
    certify: bool = True
    verbose: int = 0
    n_jobs: int = 1
    cluster: str | None = None
    settings: tuple[SolverSettings, ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.settings, tuple) or not all(isinstance(s, SolverSettings) for s in self.settings):
            raise ValueError(f"settings must be a tuple of the solvers' Settings, got {self.settings!r}.")
        if len({type(record) for record in self.settings}) < len(self.settings):
            raise ValueError(f"settings holds two records for one solver: {self.settings!r}.")

    def of(self, kind: type[S]) -> S:
        """Return the settings of one solver, its defaults if there are none."""
        return next((record for record in self.settings if isinstance(record, kind)), None) or kind()


LOGGER = logging.getLogger("psilearn")
#: Names of the solvers at work, the outermost first.
_at_work: ContextVar[tuple[str, ...]] = ContextVar("_at_work", default=())


@contextmanager
def reporting_as(name: str) -> Iterator[None]:
    """Put a solver's name before what it reports."""
    token = _at_work.set((*_at_work.get(), name))
    try:
        yield
    finally:
        _at_work.reset(token)


def report(step: Step) -> None:
    """Log a line of history: at level INFO, or DEBUG if a solver inside another one speaks of a problem of its own."""
    names = _at_work.get()
    level = logging.INFO if len(names) <= 1 else logging.DEBUG
    if LOGGER.isEnabledFor(level):
        name = " > ".join(names) or "solver"
        LOGGER.log(level, "%s: %.2f s, objective %.6g, bound %.6g", name, step.seconds, step.objective, step.bound)


class Clock:
    """Seconds since the start without those of compiling, the time limit, and the history of a solve."""

    def __init__(self, limit: float = math.inf) -> None:
        self.start = now()
        self.limit = limit
        self.history: list[Step] = []

    @property
    def seconds(self) -> float:
        """Seconds since the start."""
        return now() - self.start

    @property
    def left(self) -> float:
        """Seconds left, inf without a limit."""
        return self.limit - self.seconds

    @property
    def is_over(self) -> bool:
        """Whether the time limit has passed."""
        return self.seconds >= self.limit

    def note(self, objective: float, bound: float) -> None:
        """Write a line of history, and tell the logger."""
        self.history.append(Step(self.seconds, objective, bound))
        report(self.history[-1])


#: What is said of a fit with a kernel that is not positive semidefinite: its objective has no lower bound.
NOTHING_PROVED = "the kernel matrix is not positive semidefinite (or too large to check): nothing can be proved"

#: A solver: (problem, options, start) -> Result. ``start`` is an earlier Result on the same samples, or None.
Solve = Callable[[Problem, Options, Result | None], Result]


#: Part of the tolerance that rounding may take from a bound.
ROUNDING_SHARE = 1e-3


class Answer(NamedTuple):
    """What a convex solver found, not yet certified: coefficients, multipliers R (n, m) of the scores, and how."""

    W: NDArray[np.float64]
    b: NDArray[np.float64]
    R: NDArray[np.float64] | None
    clock: Clock
    n_iter: int
    status: Status | None
    extra: dict[str, Any]


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
    proof = problem.proof(R, max(SHARP, ROUNDING_SHARE * options.tol)) if R is not None else None
    objective = problem.value(W, b)
    if proof is not None and proof.bound > objective:  # digits are lost, most often to an intercept that runs away
        b = problem.inner_intercept(W, b)
        objective = problem.value(W, b)
    if problem.tilt is None and not objective <= problem.zero_value:  # overflow or lost digits: f = 0 is better
        W, b = np.zeros_like(W), np.zeros_like(b)
        objective = problem.value(W, b)
    return _result(problem, Answer(W, b, R, clock, n_iter, status, extra), objective, proof, options)


def uncertified(answer: Answer) -> Result:
    """Return an answer of which nothing is claimed, for ``options.certify`` False."""
    W, b, R, clock, n_iter, status, extra = answer
    nothing = Certificate(Claim.NONE, math.nan)
    return Result(W, b, status or Status.OPTIMAL, nothing, n_iter, tuple(clock.history), R, dict(extra))


def convex_results(problems: Sequence[Problem], answers: Sequence[Answer], options: Options) -> list[Result]:
    """Do what :func:`convex_result` does for many problems on the same samples of a linear space, without tilts.

    One product of matrices gives all scores, and another one the sums of all multipliers.
    """
    space = problems[0].space
    assert isinstance(space, LinearSpace)
    steps = [p.balanced_step(a.R) for p, a in zip(problems, answers) if a.R is not None]
    feasible = [D for D in steps if D is not None]
    assert len(feasible) == len(problems), "without a tilt all multipliers can be balanced"
    sums, radii = space.balanced_sums(np.vstack([D.T for D in feasible]).T)
    scores = space.scores_by_function(np.vstack([a.W for a in answers]), np.concatenate([a.b for a in answers]))
    results, row = [], 0
    for problem, answer, D in zip(problems, answers, feasible):
        mine = slice(row, row + problem.n_functions)
        row = mine.stop
        objective = problem.value_of_scores(answer.W, scores[mine].T)
        proof = problem.proof_of_sums(D, sums[mine], radii[mine], max(SHARP, ROUNDING_SHARE * options.tol))
        results.append(_result(problem, answer, objective, proof, options))
    return results


def _result(problem: Problem, answer: Answer, objective: float, proof: Proof | None, options: Options) -> Result:
    W, b, _, clock, n_iter, status, extra = answer
    bound, R, evidence = (-math.inf, None, None) if proof is None else proof
    if bound > objective:  # the bound is proved, so the objective has been rounded down
        error = problem.value_error(W, b)
        # A Gram matrix that is not quite positive semidefinite proves nothing; elsewhere it is an error of ours.
        is_void = problem.is_kernel and bound - objective > error
        bound = -math.inf if is_void else agreed_bound(objective, bound, error)
    clock.note(objective, bound)
    certificate = Certificate(Claim.CONVEX, objective, bound, rechecked=True, evidence=evidence)
    done = certificate.gap <= options.tol
    final = Status.OPTIMAL if done else (status or Status.STALLED)
    return Result(W, b, final, certificate, n_iter, tuple(clock.history), R, dict(extra))
