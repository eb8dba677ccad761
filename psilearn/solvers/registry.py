"""The solvers by name, and the choice among them.

This is the one room that knows all solvers, so it hands starts, inner machines and polishers from one to another; the
solvers themselves do not know each other.
"""

from __future__ import annotations

import importlib
from types import ModuleType

from ..problem import Problem
from ..result import Result
from .base import Options

#: Name -> (module, one line for the user). Modules load when first used: numba and HiGHS cost import time.
SOLVERS: dict[str, tuple[str, str]] = {
    "program": ("program", "one LP or QP in HiGHS; the reference for small convex problems"),
    "newton": ("newton", "dual proximal point by semismooth Newton; linear machines with penalty l2"),
    "l1": ("l1", "interior point and crossover to a vertex; linear machines with an l1 part, exact zeros"),
    "bundle": ("bundle", "level-stabilised bundle method; linear machines with many samples or features"),
    "smo": ("smo", "decomposition along cycles of the class graph; kernel machines"),
    "outer": ("outer", "outer approximation by vertex enumeration; global optima in few dimensions"),
    "dca": ("dca", "d.c. algorithm; a critical point of any continuous loss"),
}


#: Multiplications per iteration up to which the interior point is the machine for l1 penalties.
INTERIOR_WORK = 3e8


def load(name: str) -> ModuleType:
    """Import a solver by name; an unknown name raises ValueError and lists the known ones."""
    if name not in SOLVERS:
        raise ValueError(f"solver must be 'auto' or one of {sorted(SOLVERS)}, got {name!r}.")
    return importlib.import_module(f".{SOLVERS[name][0]}", __package__)


def solve(problem: Problem, solver: str, options: Options, start: Result | None = None) -> Result:
    """Solve with the named solver, or with the one :func:`choose` picks for "auto"."""
    name = choose(problem, options) if solver == "auto" else solver
    module = load(name)
    reason = module.refuses(problem)
    if reason is not None:
        raise ValueError(reason)
    if name == "dca":
        return module.solve(problem, options, start, solve_convex)
    if name == "bundle" and options.extra.get("mode") != "paper":
        return module.solve(problem, options, start, finish=load("l1").solve)
    return module.solve(problem, options, start)


def solve_convex(problem: Problem, options: Options, start: Result | None = None) -> Result:
    """Solve a convex, possibly tilted problem with the machine that suits it best."""
    return solve(problem, choose_convex(problem, options), options, start)


def choose(problem: Problem, options: Options) -> str:
    """Return the name of the solver for "auto"."""
    if problem.is_convex:
        return choose_convex(problem, options)
    return "dca"


def choose_convex(problem: Problem, options: Options) -> str:
    """Return the name of the convex machine for a problem."""
    if problem.is_kernel:
        return "smo"
    if problem.penalty.l2 > 0 and not problem.penalty.has_l1:
        return "newton"
    # An iteration of the interior point costs n p^2; beyond this the bundle's two products per pass win.
    work = problem.n * (problem.n_functions * (problem.space.dim + 1)) ** 2
    return "l1" if work <= INTERIOR_WORK else "bundle"


__all__ = ["SOLVERS", "choose", "choose_convex", "load", "solve", "solve_convex"]
