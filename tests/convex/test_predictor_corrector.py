"""The step of an interior point, with the linear algebra of a small linear program handed in."""

import numpy as np
import pytest
from scipy.optimize import linprog

from psilearn.convex.interior.predictor_corrector import StepRules, longest, predictor_corrector


def test_the_longest_step_stops_short_of_the_boundary():
    x = np.array([1.0, 2.0, 4.0])
    assert longest(x, np.array([1.0, 0.0, 3.0]), 0.9) == 1.0
    assert longest(x, np.array([-0.5, 1.0, -1.0]), 1.0) == 1.0
    assert longest(x, np.array([-4.0, -1.0, 1.0]), 0.9) == pytest.approx(0.225)
    assert longest(np.zeros(0), np.zeros(0), 0.9) == 1.0


def linear_program(A, b, c, rules):
    """Minimise c'x, Ax = b, x >= 0 by dense Newton systems; return x, multipliers of the rows, and iterations."""
    m, n = A.shape
    x, y, u = np.ones(n), np.ones(n), np.zeros(m)
    iteration = 0
    while iteration < 60:
        if x @ y < 1e-10 and np.abs(A @ x - b).max() < 1e-8 and np.abs(A.T @ u + y - c).max() < 1e-8:
            break
        iteration += 1
        du = np.zeros(m)

        def newton(e, x=x, y=y, u=u, du=du):
            r_p, r_d = b - A @ x, c - A.T @ u - y
            du[:] = np.linalg.solve((A * (x / y)) @ A.T, r_p - A @ ((e - x * r_d) / y))
            dy = r_d - A.T @ du
            return (e - x * dy) / y, dy

        step = predictor_corrector(x, y, newton, rules)
        x, y, u = x + step.primal * step.dx, y + step.dual * step.dy, u + step.dual * du
    return x, u, iteration


@pytest.mark.parametrize("rules", [StepRules(), StepRules(together=True), StepRules(0.99, 1e-3, 0.8)])
def test_linear_programs_are_solved_in_few_steps(rules):
    for seed in range(20):
        rng = np.random.default_rng(seed)
        A = rng.normal(size=(4, 9))
        b, c = A @ rng.random(9), A.T @ rng.normal(size=4) + rng.random(9)
        x, u, iterations = linear_program(A, b, c, rules)
        truth = linprog(c, A_eq=A, b_eq=b, method="highs").fun
        assert c @ x == pytest.approx(truth, abs=1e-7)
        assert b @ u == pytest.approx(truth, abs=1e-7)
        assert iterations <= 40
