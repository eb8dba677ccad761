"""Two thousand tiny instances against exhaustive enumeration, and hundreds against (3.14) in the engines."""

import numpy as np
import pytest

from psilearn.core.losses import Psi, TruncatedHinge
from psilearn.core.penalties import Penalty
from psilearn.core.problem import Problem
from psilearn.core.result import Status
from psilearn.core.solving import Options
from psilearn.core.spaces import LinearSpace
from psilearn.exact.two_class import solver as mip

from oracles.exact_reference import optimum_l1, optimum_l2

LOSSES = [Psi(0.1), Psi(0.5), Psi(1.0), Psi(2.0), TruncatedHinge(-0.5)]
KINDS = ["plain", "ties", "duplicates", "lonely", "large", "line", "weights"]
PER_CASE = {2: 60, 1: 6}


def tiny_instance(rng, kind, largest):
    """Samples, labels, weights and the scale of the features."""
    n, d = int(rng.integers(2, largest + 1)), 1 if kind == "line" else int(rng.integers(1, 5))
    X = rng.normal(size=(n, d))
    if kind in ("ties", "duplicates", "line"):
        X = np.round(2 * X) / 2
    if kind == "duplicates":
        X[n // 2 :] = X[: n - n // 2]
    y = rng.integers(0, 2, n)
    y[:2] = 1, 0
    if kind == "lonely":
        y[1:] = 0
    weights = rng.uniform(0.5, 2.0, n) if kind == "weights" else np.ones(n)
    return X, y, weights, 1e4 if kind == "large" else 1.0


@pytest.mark.parametrize("norm", [2, 1])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_equals_exhaustive_enumeration(loss, kind, norm):
    rng = np.random.default_rng([LOSSES.index(loss), KINDS.index(kind), norm])
    for trial in range(PER_CASE[norm]):
        X, y, weights, scale = tiny_instance(rng, kind, 5 if trial % 20 == 0 else 4)
        C = 10.0 ** rng.uniform(-2, 3)
        penalty, unit = (Penalty(l2=1.0), scale**2) if norm == 2 else (Penalty(l1=1.0), scale)
        problem = Problem(LinearSpace(scale * X), y, 2, loss, penalty, C / unit, weights)
        truth = (optimum_l2 if norm == 2 else optimum_l1)(X, problem.signs, C * weights, loss) / unit
        result = mip.solve(problem, Options(gap_tol=1e-7))
        assert result.objective == pytest.approx(truth, rel=2e-6)
        assert truth * (1 - 1e-5) <= result.lower_bound <= truth * (1 + 1e-7)
        assert result.status is Status.OPTIMAL


@pytest.mark.parametrize(("engine", "norm", "n", "count"), [("highs", 1, 9, 40), ("scip", 2, 6, 5)])
@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_equals_the_published_formulation(loss, engine, norm, n, count):
    pytest.importorskip("pyscipopt" if engine == "scip" else "highspy")
    rng = np.random.default_rng([LOSSES.index(loss), norm, 7])
    for _ in range(count):
        X = rng.normal(size=(n, int(rng.integers(1, 11))))
        y = rng.integers(0, 2, n)
        y[:2] = 1, 0
        penalty = Penalty(l2=1.0) if norm == 2 else Penalty(l1=1.0)
        problem = Problem(LinearSpace(X), y, 2, loss, penalty, 10.0 ** rng.uniform(-1.5, 1), np.ones(n))
        # The engine's own value leaks through M = 1000 times its integrality tolerance: its regions are refitted.
        settings = mip.Settings(engine=engine, formulation="paper")
        theirs = mip.solve(problem, Options(gap_tol=1e-6, settings=(settings,)))
        ours = mip.solve(problem, Options(gap_tol=1e-7))
        assert theirs.certificate.engine == engine
        assert ours.objective == pytest.approx(theirs.objective, rel=1e-5)
        assert ours.lower_bound <= theirs.objective * (1 + 1e-6)
