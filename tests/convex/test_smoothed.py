"""Newton's method on smoothed hinges against the whole programs, on dense and sparse data, cold and along paths."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from psilearn.convex import newton
from psilearn.convex.interior import solver as l1
from psilearn.convex.smoothed import iterate as rounded
from psilearn.convex.smoothed import solver as smoothed
from psilearn.core.losses import ByClass, Hinge, RejectHinge, TruncatedHinge
from psilearn.core.penalties import Penalty
from psilearn.core.problem import Problem
from psilearn.core.result import Status
from psilearn.core.solving import Options
from psilearn.core.spaces import LinearSpace
from psilearn.solvers import choose_convex, solve_path
from psilearn.solvers.choice import choose_convex_path

from oracles.l1_reference import LOSSES, optimum


def l1_problem(seed, n=200, p=5, sparse=False, l2=0.0, lam=None):
    """Overlapping classes, uneven scales, weights, sometimes a ban, sometimes a loss that differs by class."""
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < rng.uniform(0.1, 0.9)).astype(np.intp)
    y[:2] = 0, 1
    X = rng.normal(size=(n, p)) + 0.7 * (2 * y[:, None] - 1) * (rng.random(p) < 0.6)
    if sparse:
        X *= rng.random((n, p)) < 0.3
    else:
        X = X * 10.0 ** rng.integers(-1, 2, p) + rng.normal(size=p)
    lam = 10.0 ** rng.uniform(-3, -0.5) if lam is None else lam
    weights = rng.random(n) + 0.2
    loss = LOSSES[seed % len(LOSSES)] if seed % 3 else ByClass((RejectHinge(0.1), LOSSES[seed % len(LOSSES)]))
    weight = rng.random((1, p)) + 0.5
    if seed % 5 == 0:
        weight[0, 0] = np.inf
    data = sp.csr_matrix(X) if sparse else X
    C = 1.0 / (lam * weights.sum())
    return Problem(LinearSpace(data), y, 2, loss, Penalty(l2, weight), C, weights)


def check(problem, result, truth, tol, rounding=0.0):
    scale = max(abs(truth), 1e-12)
    assert result.status is Status.OPTIMAL, (result.status, result.gap)
    assert abs(result.objective - problem.value(result.coef, result.intercept)) <= rounding * scale
    assert -1e-7 * scale <= result.objective - truth <= 1.01 * tol * scale
    assert result.lower_bound <= truth + 1e-7 * scale
    assert result.certificate.verify(problem).ok


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("block", range(4))
def test_brackets_the_optimum(sparse, block):
    for seed in range(15 * block, 15 * block + 15):
        problem = l1_problem(seed, sparse=sparse, l2=0.0 if seed % 2 else 0.3)
        check(problem, smoothed.solve(problem, Options(tol=1e-3)), optimum(problem), 1e-3)


def test_a_finisher_makes_it_tight():
    for seed in range(10):
        problem = l1_problem(seed, sparse=bool(seed % 2))
        check(problem, smoothed.solve(problem, Options(tol=1e-8), None, l1.solve), optimum(problem), 1e-7)


@pytest.mark.parametrize("sparse", [False, True])
def test_along_a_path_every_point_is_certified(sparse):
    problem, warm = l1_problem(1, n=3000, p=8, sparse=sparse, lam=1.0), None
    for lam in np.geomspace(0.3, 0.003, 8):
        here = replace(problem, C=problem.C / lam)
        truth = l1.solve(here, Options(tol=1e-8)).objective
        warm, cold = smoothed.solve(here, Options(tol=1e-4), warm), smoothed.solve(here, Options(tol=1e-4))
        check(here, warm, truth, 1e-4)
        check(here, cold, truth, 1e-4)
    other = replace(here, weights=here.weights[::-1].copy())  # what was known does not fit and is not used
    check(other, smoothed.solve(other, Options(tol=1e-4), warm), l1.solve(other, Options(tol=1e-8)).objective, 1e-4)


@pytest.mark.parametrize("seed", range(6))
def test_a_path_solved_ahead_is_certified_at_every_point(seed):
    problem = l1_problem(seed, n=3000, p=6, l2=0.1 if seed % 2 else 0.0, lam=1.0)
    problems = [replace(problem, C=problem.C / lam) for lam in np.geomspace(3.0, 0.003, 9)]
    assert smoothed.takes_path(problem)
    for here, result in zip(problems, solve_path(problems, "smoothed", Options(tol=1e-3))):
        check(here, result, l1.solve(here, Options(tol=1e-8)).objective, 1e-3, 1e-14)


@pytest.mark.parametrize("seed", range(4))
def test_a_path_of_ridges_is_certified_at_every_point(seed):
    problem = replace(l1_problem(seed, n=3000, p=6, lam=1.0), penalty=Penalty(l2=1.0))
    problems = [replace(problem, C=problem.C / lam) for lam in (50.0, *np.geomspace(3.0, 1e-6, 9))]
    results = solve_path(problems, "smoothed", Options(tol=1e-3))
    for here, result in zip(problems, results):
        check(here, result, newton.solve(here, Options(tol=1e-8)).objective, 1e-3, 1e-14)
    found = solve_path(problems, "smoothed", Options(tol=1e-3, certify=False))
    for here, result, bare in zip(problems, results, found):
        assert bare.certificate.bound == -np.inf
        assert here.value(bare.coef, bare.intercept) <= result.lower_bound * (1 + 3e-3)


def test_a_path_with_leaps_and_repetitions_is_certified():
    problem = l1_problem(4, n=3000, p=6, lam=1.0)
    problems = [replace(problem, C=problem.C / lam) for lam in (50.0, 0.2, 0.2, 0.19, 0.001)]
    results = solve_path(problems, "smoothed", Options(tol=1e-3))
    assert np.all(results[0].coef == 0)
    for here, result in zip(problems, results):
        check(here, result, l1.solve(here, Options(tol=1e-8)).objective, 1e-3, 1e-14)


def test_points_that_too_few_samples_led_astray_are_solved_again(monkeypatch):
    problem = l1_problem(1, n=3000, p=6, lam=1.0)
    problems = [replace(problem, C=problem.C / lam) for lam in np.geomspace(0.5, 0.005, 8)]
    attempts = []

    def short_sighted(iterate, trail, ahead, caution, honest=smoothed._next_group):
        group, near = honest(iterate, trail, ahead, caution)
        attempts.append(caution)
        return group, near if caution > 1 else near[::50]

    monkeypatch.setattr(smoothed, "_next_group", short_sighted)
    for here, result in zip(problems, smoothed.solve_path(problems, Options(tol=1e-3))):
        check(here, result, l1.solve(here, Options(tol=1e-8)).objective, 1e-3, 1e-14)
    assert max(attempts) > 1


def test_a_path_reads_less_than_its_points_alone():
    problem = l1_problem(1, n=20_000, p=6, lam=1.0)
    problems = [replace(problem, C=problem.C / lam) for lam in np.geomspace(0.3, 0.03, 8)]
    path = solve_path(problems, "auto", Options(tol=1e-3))
    alone = [smoothed.solve(here, Options(tol=1e-3)) for here in problems]
    assert sum(r.extra["passes"] for r in path) < 0.5 * sum(r.extra["passes"] for r in alone)
    for one, other in zip(path, alone):
        assert one.objective == pytest.approx(other.objective, rel=1.1e-3)


def test_above_the_threshold_all_coefficients_are_exactly_zero():
    problem = l1_problem(1, n=2000, p=4, lam=50.0)
    assert np.all(smoothed.solve(problem, Options(tol=1e-4)).coef == 0)


def test_an_offset_counts_in_the_gap():
    problem = replace(l1_problem(2, n=1000), offset=-0.5 * l1_problem(2, n=1000).best_constant()[0])
    result = smoothed.solve(problem, Options(tol=1e-4))
    assert result.status is Status.OPTIMAL
    assert result.gap <= 1e-4


def test_limits_return_an_honest_incumbent(monkeypatch):
    problem = l1_problem(3, n=1000)
    late = smoothed.solve(problem, Options(tol=1e-9, time_limit=0.0))
    few = smoothed.solve(problem, Options(tol=1e-9, max_iter=2))
    assert (late.status, few.status) == (Status.TIME_LIMIT, Status.ITERATION_LIMIT)
    calls = []

    def interrupted(iterate, *arguments, evaluate=rounded.Iterate.evaluate):
        calls.append(0)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return evaluate(iterate, *arguments)

    monkeypatch.setattr(rounded.Iterate, "evaluate", interrupted)
    stopped = smoothed.solve(problem, Options(tol=1e-9))
    assert stopped.status is Status.INTERRUPTED
    best = l1.solve(problem, Options(tol=1e-8)).objective
    for result in (late, few, stopped):
        assert result.lower_bound <= best <= result.objective * (1 + 1e-9)


def test_refusals_say_why_and_auto_knows_where_it_belongs():
    problem = l1_problem(1)
    assert smoothed.TAKES.refusal(problem) is None
    assert smoothed.TAKES.refusal(replace(problem, penalty=Penalty(l2=1.0))) is None
    assert "convex" in smoothed.TAKES.refusal(replace(problem, loss=TruncatedHinge(0.0)))
    assert "two classes" in smoothed.TAKES.refusal(replace(problem, n_classes=3))
    assert choose_convex(problem) == "l1"
    many = l1_problem(1, n=10_000)
    assert choose_convex(many) == "smoothed"
    assert choose_convex(replace(many, tilt=np.zeros((many.n, 1)))) == "l1"
    assert choose_convex(replace(many, loss=Hinge())) == "smoothed"
    ridge = replace(many, penalty=Penalty(l2=1.0))
    assert (choose_convex(ridge), choose_convex_path(ridge)) == ("newton", "smoothed")
    assert choose_convex_path(replace(ridge, n_classes=3)) == "newton"


def test_long_rows_read_in_part_along_a_path(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 80))
    y = (X[:, 0] - X[:, 1] + rng.normal(size=4000) > 0).astype(np.intp)
    problem = Problem(LinearSpace(X), y, 2, RejectHinge(0.2), Penalty(l1=1.0), 1.0 / 4000, np.ones(4000))
    in_part, warm = [], None

    def adjoint(rows, r, features=None, adjoint=rounded.Rows.adjoint):
        in_part.append(features is not None)
        return adjoint(rows, r, features)

    monkeypatch.setattr(rounded.Rows, "adjoint", adjoint)
    for lam in np.geomspace(0.3, 0.05, 4):
        here = replace(problem, C=problem.C / lam)
        warm = smoothed.solve(here, Options(tol=1e-4), warm)
        check(here, warm, l1.solve(here, Options(tol=1e-8)).objective, 1e-4)
    assert any(in_part)
