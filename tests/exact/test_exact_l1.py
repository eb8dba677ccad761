"""The exact solver with 1-norm penalties against exhaustive enumeration by linear programs."""

import itertools

import numpy as np
import pytest
from scipy.optimize import linprog

from psilearn.core.losses import HardMargin, Psi, TruncatedHinge, TruncatedReject
from psilearn.core.penalties import Penalty
from psilearn.core.problem import Problem
from psilearn.core.result import Status
from psilearn.core.solving import Options
from psilearn.core.spaces import LinearSpace
from psilearn.exact.two_class import solver as mip

LOSSES = [Psi(0.1), Psi(0.5), Psi(1.0), Psi(2.0), TruncatedHinge(-0.5), TruncatedHinge(0.3), HardMargin()]
LOSSES += [TruncatedReject(0.2, -1.0)]


def fixed_optimum(problem, kept):
    """Optimum of the linear program where ``kept`` samples pay g(u) and obey u >= t and the others pay cap."""
    X, signs, loss = problem.space.X, problem.signs, problem.loss
    rows, m = np.flatnonzero(kept), len(loss.hinges)
    n, d = rows.size, X.shape[1]
    paid = loss.cap * problem.costs[~kept].sum()
    if n == 0:
        return paid
    U = np.column_stack([X[rows], -X[rows], np.ones(n)]) * signs[rows, None]
    weight = np.tile(problem.penalty.l1_array((1, d))[0], 2)
    cost = np.concatenate([weight, [0.0]] + [c * problem.costs[rows] for c, _ in loss.hinges])
    blocks, right = [np.hstack([-U, np.zeros((n, n * m))])], [np.full(n, -loss.t)]
    for h, (_, breakpoint) in enumerate(loss.hinges):
        slack = np.zeros((n, n * m))
        slack[np.arange(n), h * n + np.arange(n)] = -1.0
        blocks.append(np.hstack([-U, slack]))
        right.append(np.full(n, -breakpoint))
    bounds = [(0, None)] * (2 * d) + [(None, None)] + [(0, None)] * (n * m)
    answer = linprog(cost, A_ub=np.vstack(blocks), b_ub=np.concatenate(right), bounds=bounds, method="highs")
    return paid + answer.fun if answer.status == 0 else np.inf


def enumerated_optimum(problem):
    return min(fixed_optimum(problem, np.array(kept)) for kept in itertools.product([True, False], repeat=problem.n))


@pytest.mark.parametrize("adaptive", [False, True])
@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_equals_exhaustive_enumeration(loss, adaptive):
    rng = np.random.default_rng([LOSSES.index(loss), adaptive])
    for trial in range(6):
        n, d = int(rng.integers(2, 6)), int(rng.integers(1, 5))
        X = rng.normal(size=(n, d))
        if trial % 2:
            X = np.round(X)
        y = rng.integers(0, 2, n)
        y[:2] = 1, 0
        l1 = rng.uniform(0.5, 2.0, (1, d)) if adaptive else 1.0
        weights = rng.uniform(0.5, 2.0, n)
        problem = Problem(LinearSpace(X), y, 2, loss, Penalty(l1=l1), 10.0 ** rng.uniform(-2, 3), weights)
        result = mip.solve(problem, Options(gap_tol=1e-7))
        truth = enumerated_optimum(problem)
        assert result.objective == pytest.approx(truth, rel=1e-6)
        assert truth * (1 - 1e-5) <= result.lower_bound <= truth * (1 + 1e-9)
        assert result.status is Status.OPTIMAL


def test_a_banned_coefficient_is_zero():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(20, 3))
    y = (X[:, 0] > 0).astype(int)
    banned = Problem(LinearSpace(X), y, 2, Psi(1.0), Penalty(l1=np.array([[1.0, np.inf, 2.0]])), 5.0, np.ones(20))
    without = Problem(LinearSpace(X[:, [0, 2]]), y, 2, Psi(1.0), Penalty(l1=np.array([[1.0, 2.0]])), 5.0, np.ones(20))
    a, b = mip.solve(banned, Options(gap_tol=1e-8)), mip.solve(without, Options(gap_tol=1e-8))
    assert a.coef[0, 1] == 0.0
    assert a.objective == pytest.approx(b.objective, rel=1e-8)


def test_scaling_invariance():
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(25, 4)), rng.integers(0, 2, 25)
    small = Problem(LinearSpace(X), y, 2, Psi(0.5), Penalty(l1=1.0), 1.0, np.ones(25))
    large = Problem(LinearSpace(1e4 * X), y, 2, Psi(0.5), Penalty(l1=1.0), 1e-4, np.ones(25))
    a, b = mip.solve(small, Options(gap_tol=1e-8)), mip.solve(large, Options(gap_tol=1e-8))
    assert b.objective * 1e4 == pytest.approx(a.objective, rel=1e-7)
