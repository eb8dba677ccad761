"""The solvers by name: where each lives, what it needs handed in, what it takes, and its options."""

from __future__ import annotations

import importlib
import math
from dataclasses import dataclass, fields, replace
from types import ModuleType
from typing import Any

from ..core.problem import Problem
from ..core.solving import SolverSettings

#: Multiplications per iteration of the interior point up to which it may finish what another solver began.
FINISHING_WORK = 1e10


@dataclass(frozen=True)
class Solver:
    """An entry of the registry.

    Attributes
    ----------
    module : str
        Its module within psilearn, which holds ``TAKES``, ``solve`` and, if it has options of its own, ``Settings``.
        Modules load when first used: numba and HiGHS cost import time.
    line : str
        One line for the user.
    needs : tuple of str
        What it is handed: "inner" (a solver for convex problems), "finish" (one that takes over from its result) or
        "start" (the end point of a descent; for exact solvers).
    finish_work : float
        Multiplications per iteration of the finishing solver up to which it is handed.
    preparation : float
        Seconds before a search begins, per n^2 (min(n, dim) + SORTING): distances of all samples, sorted, and
        coordinates of kernels.
    """

    module: str
    line: str
    needs: tuple[str, ...] = ()
    finish_work: float = math.inf
    preparation: float = 0.0


SOLVERS: dict[str, Solver] = {
    "program": Solver("convex.program", "one LP or QP in HiGHS; the reference for small convex problems", ("finish",)),
    "newton": Solver("convex.newton", "dual proximal point by semismooth Newton; linear functions with penalty l2"),
    "l1": Solver(
        "convex.interior.solver",
        "interior point and crossover to a vertex; linear functions with an l1 part, exact zeros",
    ),
    "bundle": Solver(
        "convex.bundle.solver",
        "level-stabilised bundle method; linear functions with many samples or features",
        ("finish",),
    ),
    "smoothed": Solver(
        "convex.smoothed.solver",
        "Newton's method on smoothed hinges; two-class linear problems with many samples, and their paths",
        ("finish",),
        FINISHING_WORK,
    ),
    "columns": Solver(
        "convex.columns",
        "feature column generation around the other solvers; l1 penalties on many features",
        ("inner",),
    ),
    "smo": Solver("convex.smo.solver", "decomposition along cycles of the class graph; kernels"),
    "passes": Solver("convex.passes.solver", "proximal points in a few passes; data in blocks (dask, memory-mapped)"),
    "dca": Solver("convex.dca", "d.c. algorithm; a critical point of any continuous loss", ("inner",)),
    "mip": Solver(
        "exact.two_class.solver",
        "branch and bound; the proved global optimum of two-class problems",
        ("start",),
        preparation=1e-9,  # one core: 1 s for 1,600 samples of 20 features, 16 to 70 s for an rbf kernel and 3,000
    ),
    "patterns": Solver(
        "exact.k_class.patterns",
        "branch and bound over who pays the cap; the proved global optimum of k-class problems",
        ("start",),
    ),
    "outer": Solver(
        "exact.k_class.outer", "outer approximation by vertex enumeration; global optima in few dimensions", ("start",)
    ),
    "cones": Solver(
        "exact.k_class.cones",
        "branch and bound over cones of coefficients; global optima in few dimensions",
        ("start",),
    ),
}


def load(name: str) -> ModuleType:
    """Import a solver by name; an unknown name raises ValueError and lists the known ones."""
    if name not in SOLVERS:
        raise ValueError(f"solver must be 'auto' or one of {sorted(SOLVERS)}, got {name!r}.")
    return importlib.import_module(f"psilearn.{SOLVERS[name].module}")


def takes(name: str, problem: Problem) -> bool:
    """Whether the named solver takes a problem."""
    return load(name).TAKES.refusal(problem) is None


def refusal(name: str, problem: Problem) -> str | None:
    """Say why the named solver does not take a problem, and who does; None if it takes it."""
    reason = load(name).TAKES.refusal(problem)
    if reason is None:
        return None
    others = [f"'{other}'" for other in SOLVERS if takes(other, problem)]
    if others:
        return f"{reason} Solvers that take this problem: {', '.join(others)}."
    if takes("dca", surrogate(problem)):
        return f"{reason} No solver takes this problem exactly; solver='auto' fits it without a proof."
    return f"{reason} No solver takes this problem."


def settings(name: str, **values: Any) -> SolverSettings:
    """Return the options of the named solver only, for ``Options.settings``; an unknown option raises ValueError."""
    kind = getattr(load(name), "Settings", None)
    known = [] if kind is None else [field.name for field in fields(kind)]
    unknown = [repr(key) for key in values if key not in known]
    if kind is None or unknown:
        raise ValueError(
            f"solver={name!r} has no option {', '.join(unknown)}; its options: {', '.join(known) or 'none'}."
        )
    return kind(**values)


def surrogate(problem: Problem) -> Problem:
    """Return the problem with a continuous loss of the same cap."""
    return replace(problem, loss=problem.loss.continuous_surrogate)
