"""The reference program ends by itself, or says why not."""

import numpy as np
import pytest

from psilearn.convex import program
from psilearn.core.losses import Hinge, RejectHinge
from psilearn.core.penalties import Penalty
from psilearn.core.problem import Problem
from psilearn.core.result import Status
from psilearn.core.solving import Options
from psilearn.core.spaces import LinearSpace
from psilearn.engines.highs import HighsSession, ProgramError
from psilearn.solvers import solve

PENALTIES = [Penalty(l2=1.0), Penalty(l1=1.0), Penalty(l2=0.5, l1=0.5)]


def large_cost(seed):
    """Twelve samples at C = 1e8, overlapping or separated, of sizes from 0.01 to 100."""
    rng = np.random.default_rng(seed)
    k = 2 + seed % 2
    X, y = rng.normal(size=(12, 2)) * 10.0 ** rng.uniform(-2, 2), np.arange(12) % k
    X[:, 0] += 3 * y * (seed % 3)
    loss = [Hinge(), RejectHinge(0.2)][(seed // 2) % 2]
    return Problem(LinearSpace(X), y, k, loss, PENALTIES[seed % 3], 1e8, np.ones(12))


@pytest.mark.parametrize("block", range(5))
def test_large_costs_are_solved_or_finished(block):
    for seed in range(30 * block, 30 * block + 30):
        problem = large_cost(seed)
        result = solve(problem, "program", Options(tol=1e-4))
        assert result.status is Status.OPTIMAL, (seed, result.status, result.gap)
        assert result.objective == problem.value(result.coef, result.intercept)


def test_an_engine_that_fails_is_one_sentence_or_another_solver(monkeypatch):
    def fails(session, time_limit):
        raise ProgramError("HiGHS stopped with status 'Solve error'.")

    monkeypatch.setattr(HighsSession, "solve", fails)
    problem = large_cost(0)
    with pytest.raises(ProgramError, match="solver='auto'"):
        program.solve(problem, Options())
    assert solve(problem, "program", Options(tol=1e-4)).status is Status.OPTIMAL


def test_iterations_are_limited():
    problem = large_cost(1)
    result = program.solve(problem, Options(tol=1e-4, max_iter=2))
    assert result.status is Status.ITERATION_LIMIT
