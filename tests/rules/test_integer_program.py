"""The integer problem and rounding against enumeration, and how the relaxation changes with the margin."""

import itertools

import numpy as np
import pytest
from scipy.optimize import Bounds, LinearConstraint, linprog, milp

from psilearn.core.result import Status
from psilearn.rules.l0 import boost as l0boost
from psilearn.rules.l0 import exact
from psilearn.rules.l0.rounding import round_relaxation
from psilearn.rules.observations import Observations
from psilearn.rules.pricing.oracles import MatrixOracle

from oracles.rule_programs import integer_optimum


def instance(seed, m=6, U=5):
    rng = np.random.default_rng(seed)
    data = Observations(np.zeros((m, 1)), np.r_[[1, -1], rng.choice([-1, 1], m - 2)], rng.choice([1.0, 2.0], m))
    H = np.column_stack([np.ones(m), rng.choice([-1.0, 0.0, 1.0], (m, U))])
    return data, H, rng.uniform(0.1, 0.9, U + 1), float(rng.uniform(0.02, 0.5))


def enumerated_optimum(data, H, c, rho):
    """(15) by trying every set of classifiers and every set of observations that must have margin rho."""
    m, U = H.shape
    best = np.inf
    for support in itertools.chain.from_iterable(itertools.combinations(range(U), k) for k in range(1, U + 1)):
        price = c[list(support)].sum()
        for right in itertools.product((False, True), repeat=m):
            value = price + data.weight[~np.array(right)].sum()
            if value < best - 1e-12:
                rows = (data.y[:, None] * H)[list(right)][:, list(support)]
                k = len(support)
                feasible = linprog(
                    np.zeros(k), A_ub=-rows, b_ub=np.full(len(rows), -rho), A_eq=np.ones((1, k)), b_eq=[1]
                )
                if feasible.status == 0:
                    best = value
    return best


@pytest.mark.parametrize("seed", range(6))
def test_exact_equals_enumeration(seed):
    data, H, c, rho = instance(seed, m=5, U=3)
    columns = [MatrixOracle(data, H, c).column(u) for u in range(H.shape[1])]
    model = exact.solve(data, columns, rho)
    assert model.status is Status.OPTIMAL
    assert model.objective == pytest.approx(enumerated_optimum(data, H, c, rho), abs=1e-6)


@pytest.mark.parametrize("seed", range(40))
def test_relaxation_optimum_rounding_are_ordered(seed):
    data, H, c, rho = instance(seed)
    oracle = MatrixOracle(data, H, c)
    columns = [oracle.column(u) for u in range(H.shape[1])]
    relaxed = l0boost.solve(data, oracle, rho, min_cost=c.min())
    weights, value = round_relaxation(data, relaxed.columns, relaxed.weights, rho)
    model = exact.solve(data, columns, rho)
    assert model.objective == pytest.approx(integer_optimum(data, H, c, rho), abs=1e-5)
    assert model.lower_bound == pytest.approx(model.objective, abs=1e-5)
    assert relaxed.lower_bound <= model.objective + 1e-6
    assert model.objective <= value + 1e-6
    assert weights.sum() == pytest.approx(1)
    assert value == pytest.approx(exact.evaluate(data, relaxed.columns, weights, rho)[0])
    assert relaxed.certificate.integer_value == value


def printed_problem_9(data, H, C, K=60.0):
    """(9) as printed, any lambda in [0, K], lambda = 0 included."""
    m, U = H.shape
    margin = np.c_[(m * K + 1) * np.eye(m), np.zeros((m, U)), data.y[:, None] * H]
    link = np.c_[np.zeros((U, m)), K * np.eye(U), -np.eye(U)]
    constraints = [LinearConstraint(margin, 1, np.inf), LinearConstraint(link, 0, np.inf)]
    whole = np.r_[np.ones(m + U), np.zeros(U)]
    upper = np.r_[np.ones(m + U), np.full(U, K)]
    return milp(np.r_[data.weight, np.full(U, C), np.zeros(U)], constraints=constraints, integrality=whole,
                bounds=Bounds(0, upper)).fun  # fmt: skip


@pytest.mark.parametrize("seed", range(30))
def test_problem_9_is_the_smaller_of_M_and_problem_15(seed):
    data, H, _, _ = instance(300 + seed, m=4, U=3)
    H = H[:, 1:]
    C = float(np.random.default_rng(seed).uniform(0.2, 4))
    columns = [MatrixOracle(data, H, C).column(u) for u in range(H.shape[1])]
    fifteen = exact.solve(data, columns, 1 / 60).objective
    assert printed_problem_9(data, H, C) == pytest.approx(min(data.total, fifteen), abs=1e-5)


def test_some_instances_prefer_no_classifier_at_all():
    data = Observations(np.zeros((2, 1)), np.array([1, -1]), np.ones(2))
    column = MatrixOracle(data, np.zeros((2, 1)), 0.5).column(0)
    assert exact.solve(data, [column], 0.1).objective == pytest.approx(2.5)
    assert printed_problem_9(data, np.zeros((2, 1)), 0.5) == pytest.approx(2.0)


def test_the_relaxation_does_not_fall_as_the_margin_grows():
    data, H, c, _ = instance(3)
    oracle = MatrixOracle(data, H, c)
    values = [l0boost.solve(data, oracle, rho, min_cost=c.min()).objective for rho in np.linspace(0.02, 1, 15)]
    assert all(b >= a - 1e-6 for a, b in itertools.pairwise(values))
    assert values[-1] > values[0] + 0.1
