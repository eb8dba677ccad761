"""Every solver for l1 penalties against the whole program, to 1e-6, on the cases that break such solvers."""

from dataclasses import replace

import numpy as np
import pytest

from psilearn.convex.bundle import solver as bundle
from psilearn.core.losses import Hinge, RejectHinge, reject_by_class
from psilearn.core.penalties import Penalty
from psilearn.core.problem import Problem
from psilearn.core.result import Status
from psilearn.core.solving import Options
from psilearn.core.spaces import LinearSpace
from psilearn.solvers import solve

from oracles.l1_reference import optimum
from oracles.l1_threshold import l1_threshold

CASES = [
    "plain",
    "d tiny",
    "d = 1/2",
    "two costs",
    "p > n",
    "duplicated rows",
    "weights",
    "imbalanced",
    "above lambda_max",
]
NAMES = ["program", "l1", "columns", "smoothed", "bundle"]


def instance(case, seed):
    rng = np.random.default_rng([seed, CASES.index(case)])
    n, p = (25, 40) if case == "p > n" else (60, 5)
    y = (rng.random(n) < (0.05 if case == "imbalanced" else 0.5)).astype(np.intp)
    y[:2] = 0, 1
    X = rng.normal(size=(n, p)) + 0.5 * (2 * y[:, None] - 1) * (np.arange(p) < 2)
    weights = rng.random(n) * 3 + 0.01 if case == "weights" else np.ones(n)
    if case == "duplicated rows":
        X, y, weights = np.repeat(X[:20], 3, axis=0), np.repeat(y[:20], 3), weights[:60]
    losses = {"d tiny": RejectHinge(1e-3), "d = 1/2": RejectHinge(0.5), "two costs": reject_by_class((0.1, 0.4))}
    C = 1.0 / (10.0 ** rng.uniform(-2.5, -0.8) * n)
    problem = Problem(LinearSpace(X), y, 2, losses.get(case, RejectHinge(0.2)), Penalty(l1=1.0), C, weights)
    if case == "above lambda_max":
        problem = replace(problem, penalty=Penalty(l1=1.02 * l1_threshold(problem)))
    return problem


@pytest.mark.parametrize("solver", NAMES)
@pytest.mark.parametrize("case", CASES)
def test_the_whole_program_is_met(case, solver):
    for seed in range(2 if solver == "bundle" else 6):
        problem = instance(case, seed)
        truth = optimum(problem)
        result = solve(problem, solver, Options(tol=1e-7, max_iter=40 if solver == "bundle" else None))
        assert result.status is Status.OPTIMAL, (result.status, result.gap)
        assert abs(result.objective - truth) <= 1e-6 * truth
        assert result.lower_bound <= truth * (1 + 1e-9)
        if case == "above lambda_max" and solver != "program":
            assert np.all(result.coef == 0)
        if case == "d = 1/2":
            assert optimum(replace(problem, loss=Hinge())) == pytest.approx(truth, rel=1e-9)


@pytest.mark.parametrize("case", [case for case in CASES if case != "p > n"])
def test_the_paper_s_own_mode_agrees(case):
    problem = instance(case, 0)
    truth = optimum(problem)
    result = solve(problem, "bundle", Options(tol=1e-6, settings=(bundle.Settings(mode="paper"),)))
    assert result.status is Status.OPTIMAL
    assert abs(result.objective - truth) <= 1e-6 * truth
    assert result.lower_bound <= truth * (1 + 1e-9)
