"""The d.c. algorithm: descent, criticality, and its place between the hinge start and the global optimum."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from psilearn.convex import dca
from psilearn.core.losses import Psi, TruncatedHinge, TruncatedReject
from psilearn.core.penalties import Penalty
from psilearn.core.problem import Problem
from psilearn.core.result import Claim, Status
from psilearn.core.solving import Options
from psilearn.core.spaces import KernelSpace, LinearSpace
from psilearn.solvers import refusal, solve, solve_convex

from oracles.samples import make_problem, noisy_sample

LOSSES = [TruncatedHinge(0.0), TruncatedHinge(-0.5), Psi(2.0), TruncatedReject(0.2, -1.0)]
PENALTIES = {
    "l2": Penalty(l2=1.0),
    "l1": Penalty(l1=1.0),
    "net": Penalty(l2=0.5, l1=0.5),
    "scad": Penalty(l1=1.0, scad=3.7),
}


def brute_force(problem):
    """Global optimum over all choices of the samples that pay the cap."""
    best, everyone = np.inf, np.arange(problem.n)
    convex = replace(problem, loss=problem.loss.convex_part)
    for pattern in itertools.product([False, True], repeat=problem.n):
        capped = np.array(pattern)
        price = problem.loss.cap * problem.costs[capped].sum()
        if price >= best:
            continue
        value = 0.0
        if not capped.all():
            value = solve_convex(convex.subset(everyone[~capped]), Options(tol=1e-7)).objective
        best = min(best, price + value)
    return best


def criticality(problem, result):
    """The certified residual, recomputed: how far the majorant at the end point can still be lowered."""
    majorant = problem.majorant(result.coef, result.intercept)
    bound = solve_convex(majorant, Options(tol=1e-8)).lower_bound
    return (result.objective - bound) / abs(result.objective)


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("k", [2, 3])
def test_descent_and_criticality_on_many_problems(penalty, k):
    rng = np.random.default_rng(k)
    for trial in range(260):
        loss = LOSSES[trial % len(LOSSES)]
        C = float(10 ** rng.uniform(-2, 2))
        problem = make_problem(rng, n=25, d=2, k=k, loss=loss, penalty=PENALTIES[penalty], C=C)
        convex = replace(problem, loss=loss.convex_part, penalty=problem.penalty.convex_part)
        start = solve_convex(convex, Options(tol=1e-6))
        result = solve(problem, "dca", Options(tol=1e-5), start)
        values = [step.objective for step in result.history]
        assert all(b <= a * (1 + 1e-12) for a, b in itertools.pairwise(values))
        assert result.objective <= problem.value(start.coef, start.intercept) * (1 + 1e-12)
        assert result.objective == pytest.approx(problem.value(result.coef, result.intercept), rel=1e-12)
        assert result.status is Status.CRITICAL
        assert result.certificate.claim is Claim.CRITICAL
        assert criticality(problem, result) <= 1.1e-5


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("loss", [TruncatedHinge(0.0), Psi(2.0)], ids=repr)
def test_never_below_the_global_optimum_and_often_equal(k, loss):
    rng = np.random.default_rng(100 + k)
    hits = 0
    for _ in range(5):
        problem = make_problem(rng, n=7, d=1, k=k, loss=loss, C=2.0)
        optimum = brute_force(problem)
        many = solve(problem, "dca", Options(tol=1e-6, settings=(dca.Settings(n_starts=20),)))
        assert many.objective >= optimum * (1 - 1e-6)
        hits += many.objective <= optimum * (1 + 1e-4)
    assert hits >= 3


def test_kernel_with_linear_gram_descends_as_linear(rng):
    X, y = noisy_sample(rng, 40, 3, 3)
    for loss in LOSSES:
        linear = Problem(LinearSpace(X), y, 3, loss, Penalty(l2=1.0), 0.5, np.ones(40))
        gram = replace(linear, space=KernelSpace(X @ X.T))
        a, b = solve(linear, "dca", Options(tol=1e-7)), solve(gram, "dca", Options(tol=1e-7))
        assert a.status is b.status is Status.CRITICAL
        as_kernel = gram.value(b.coef, b.intercept)
        assert linear.value(b.coef @ X, b.intercept) == pytest.approx(as_kernel, rel=1e-9)


def test_duplicates_are_weights(rng):
    X, y = noisy_sample(rng, 20, 2, 2)
    loss = TruncatedHinge(-0.5)
    weighted = Problem(LinearSpace(X), y, 2, loss, Penalty(l2=1.0), 1.0, np.full(20, 2.0))
    doubled = Problem(LinearSpace(np.vstack([X, X])), np.r_[y, y], 2, loss, Penalty(l2=1.0), 1.0, np.ones(40))
    a, b = solve(weighted, "dca", Options(tol=1e-7)), solve(doubled, "dca", Options(tol=1e-7))
    assert doubled.value(a.coef, a.intercept) == pytest.approx(a.objective, rel=1e-12)
    assert a.objective == pytest.approx(b.objective, rel=1e-4)


@pytest.mark.parametrize("case", ["conflict", "wide", "single", "cauchy", "zero"])
@pytest.mark.parametrize("k", [2, 3])
def test_hard_cases_neither_cycle_nor_stall(case, k):
    rng = np.random.default_rng(7)
    X, y = noisy_sample(rng, 30, 3, k)
    if case == "conflict":
        X, y = np.vstack([X, X]), np.r_[y, (y + 1) % k]
    elif case == "wide":
        X = rng.normal(size=(30, 80))
    elif case == "single":
        y = np.where(np.arange(30) < k, np.arange(30), 0)
    elif case == "cauchy":
        X = rng.standard_cauchy(size=(30, 3))
    problem = Problem(LinearSpace(X), y.astype(np.intp), k, TruncatedHinge(0.0), Penalty(l2=1.0), 1.0, np.ones(len(y)))
    start = None
    if case == "zero":
        start = solve_convex(replace(problem, loss=problem.loss.convex_part), Options())
        start = replace(start, coef=0 * start.coef, intercept=0 * start.intercept, multipliers=None)
    result = solve(problem, "dca", Options(tol=1e-5), start)
    assert result.status is Status.CRITICAL
    assert criticality(problem, result) <= 1.1e-5


def test_refuses_a_jump_and_says_what_to_use(rng):
    problem = make_problem(rng, loss=Psi(1.0))
    assert "mip" in refusal("dca", problem)
    with pytest.raises(ValueError, match="mip"):
        solve(problem, "dca", Options())


def test_time_limit_returns_the_incumbent(rng):
    problem = make_problem(rng, n=200, d=5, k=3, loss=TruncatedHinge(-0.5))
    result = solve(problem, "dca", Options(tol=1e-12, time_limit=1e-9))
    assert result.status is Status.TIME_LIMIT
    assert np.isfinite(result.objective)


@pytest.mark.parametrize("call", range(1, 12))
@pytest.mark.parametrize("raises", [False, True])
def test_one_interrupt_ends_many_starts_with_the_incumbent(call, raises):
    """Whether the inner solver reports the interrupt or lets it through, no further solve is begun."""
    problem = make_problem(np.random.default_rng(0), 60, 2, loss=TruncatedHinge(0.0))
    calls = []

    def inner(*arguments):
        calls.append(arguments)
        result = solve_convex(*arguments)
        if len(calls) < call:
            return result
        if raises:
            raise KeyboardInterrupt
        return replace(result, status=Status.INTERRUPTED)

    options = Options(tol=1e-4, settings=(dca.Settings(n_starts=50),))
    try:
        result = dca.solve(problem, options, None, inner)
    except KeyboardInterrupt:
        assert raises
        assert call <= first_descent(problem)  # there was no incumbent yet
    else:
        assert result.status is Status.INTERRUPTED
        assert result.objective == problem.value(result.coef, result.intercept)
    assert len(calls) == call


def first_descent(problem):
    """Number of inner solves before the first descent has ended."""
    calls = []

    def inner(*arguments):
        calls.append(arguments)
        return solve_convex(*arguments)

    dca.solve(problem, Options(tol=1e-4), None, inner)
    return len(calls)
