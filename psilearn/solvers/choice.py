"""Which solver "auto" takes, by measurement."""

from __future__ import annotations

import numpy as np

from ..core.problem import Problem
from ..core.spaces import LinearSpace
from .registry import load, takes

#: Multiplications per iteration up to which the interior point is the solver for l1 penalties: at 4e8 to 6e8 it took
#: 0.3 to 1 times the time of the bundle, on two- and four-class Gaussian samples.
INTERIOR_WORK = 1e9
#: Samples, and samples per feature of dense data, from which smoothed hinges suit Newton's method: 1.3 to 10 times
#: faster than the interior point at 2,000 samples and more, and no faster at three per feature.
MANY_SAMPLES, MANY_PER_FEATURE = 1000, 10
#: Samples from which paths of problems without an l1 part are solved with smoothed hinges, too.
MANY_ON_PATH = 10_000
#: Features from which an l1 problem is solved through a working set of them.
MANY_FEATURES = 500
#: Largest (k - 1)(d + 1) for which "auto" takes the search over cones, and the one over vertices.
CONES_DIMENSION, VERTICES_DIMENSION = 6, 4


def choose_convex(problem: Problem) -> str:
    """Return the name of the convex solver for a problem."""
    if problem.space.kind == "chunked":
        return "passes"
    if problem.is_kernel:
        return "smo"
    if problem.penalty.l2 > 0 and not problem.penalty.has_l1:
        return "newton"
    assert isinstance(problem.space, LinearSpace)
    is_tall = problem.space.is_sparse or problem.n >= MANY_PER_FEATURE * problem.space.dim
    if problem.n >= MANY_SAMPLES and is_tall and takes("smoothed", problem):
        return "smoothed"
    if problem.space.dim > MANY_FEATURES and np.all(np.asarray(problem.penalty.l1) > 0):
        return "columns"
    # An iteration of the interior point costs n p^2, one of the bundle two passes over the data.
    return "l1" if interior_work(problem) <= INTERIOR_WORK else "bundle"


def choose_convex_path(problem: Problem) -> str:
    """Return the name of the convex solver for problems that differ from this one in C.

    On dense samples, many of them, smoothed hinges solve a path of 20 in a fifth of the time that Newton steps in the
    dual take (n = 200,000, p = 50: 0.9 against 4.1 s; n = 8,000: about the same).
    """
    if problem.n >= MANY_ON_PATH and problem.space.kind == "dense" and load("smoothed").takes_path(problem):
        return "smoothed"
    return choose_convex(problem)


def interior_work(problem: Problem) -> float:
    """Return the multiplications of an iteration of the interior point."""
    return float(problem.n * (problem.n_functions * (problem.space.dim + 1)) ** 2)


def choose_exact(problem: Problem) -> str:
    """Return the name of the exact solver for a truncated problem: by measurement the fastest to a proof.

    Up to their limit cones are the safe choice: patterns are faster only where few samples are worth disbelieving.
    Vertices beat patterns in the fewest dimensions only (docs/outer.md has the figures). The search for two classes
    does not take elastic nets; the others do.
    """
    if problem.n_classes == 2 and ("elastic net" not in problem.penalty.parts or problem.is_kernel):
        return "mip"
    dimension = (problem.n_classes - 1) * (problem.space.dim + 1)
    for name, most in (("cones", CONES_DIMENSION), ("outer", VERTICES_DIMENSION)):
        if dimension <= most and takes(name, problem):
            return name
    return "patterns"
