"""Compiling before the clock starts: the first call of a solver waits for numba, which is no part of a time limit."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from ..core.problem import Problem
from ..core.solving import Clock, Options, reporting_as
from ..core.spaces import KernelSpace, LinearSpace
from ..core.spaces.gram import GramOnDemand, Kernel
from ..solvers import choose_convex, choose_exact, solve, takes

#: Samples and features of the tiny problems: small enough to be solved at once, with classes that overlap, so that
#: searches do search.
ROWS, FEATURES = 12, 2
#: Nodes of a search on a tiny problem of k classes; the searches for two classes need no limit.
NODES = 20

_warm: set[tuple[Any, ...]] = set()


def warm_up(problem: Problem, solver: str, clock: Clock) -> None:
    """Run the solvers that a problem needs on a tiny one of its kind, once in a process; the clock does not count it.

    Without a time limit nothing is done.
    """
    if math.isinf(clock.limit):
        return
    began = clock.seconds
    convex = replace(problem, loss=problem.loss.convex_part, penalty=problem.penalty.convex_part)
    needed = [(choose_convex(convex), convex)]
    if solver != "auto":
        needed.append((solver, problem))
    elif not problem.is_convex:
        needed.append((choose_exact(problem), problem))
    for name, kind in needed:
        tiny = _tiny(kind)
        is_stored = getattr(tiny.space, "is_stored", True)
        key = (name, repr(tiny.loss), repr(tiny.penalty), tiny.n_classes, tiny.space.kind, is_stored)
        if key not in _warm and takes(name, tiny):
            with reporting_as("compiling"):
                solve(tiny, name, Options(max_iter=None if tiny.n_classes == 2 else NODES))
        _warm.add(key)
    clock.start += clock.seconds - began


def _tiny(problem: Problem) -> Problem:
    """Return a problem of the same kind on a few samples."""
    rng = np.random.default_rng(0)
    k = problem.n_classes
    y = np.resize(np.arange(k), max(ROWS, 3 * k)).astype(np.intp)
    X = rng.normal(size=(y.size, FEATURES)) + 0.3 * y[:, None]
    space: Any
    if isinstance(problem.space, LinearSpace):
        given = problem.space.X
        space = LinearSpace(type(given)(X) if problem.space.is_sparse else X.astype(given.dtype))
    elif not problem.space.is_stored:
        space = KernelSpace(GramOnDemand(Kernel("linear"), X), known_psd=True)
    else:
        space = KernelSpace((X @ X.T).astype(problem.space.K.dtype), known_psd=True)
    penalty = problem.penalty
    if penalty.has_l1:
        penalty = replace(penalty, l1=np.ones((problem.n_functions, FEATURES)) if np.ndim(penalty.l1) else penalty.l1)
    return Problem(space, y, k, problem.loss, penalty, 1.0, np.ones(y.size))
