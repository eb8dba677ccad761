"""Local search over the samples given up: what it finds is real, good, and respects the given states."""

from dataclasses import replace

import numpy as np
import pytest

from psilearn.core.losses import HardMargin, Psi, TruncatedHinge
from psilearn.core.penalties import Penalty
from psilearn.core.problem import Problem
from psilearn.core.solving import Options
from psilearn.core.spaces import LinearSpace
from psilearn.exact.sample_state_jit import FREE, IN, TOP
from psilearn.exact.search import Budget
from psilearn.exact.two_class import solver as mip
from psilearn.exact.two_class.incumbent import first_incumbent, given_incumbent
from psilearn.exact.two_class.local_search import LocalSearch
from psilearn.exact.two_class.model import make_model
from psilearn.exact.two_class.reduction import reduce

from oracles.samples import two_class_problem

LOSSES = [HardMargin(), Psi(0.5), Psi(2.0), TruncatedHinge(-0.5)]


def make_problem(seed, loss, norm, n=30, d=3, outliers=0):
    problem = two_class_problem(seed, n, d, loss, "weights", norm, noise=0.5, log_C=(-0.5, 2.0))
    X, y, rng = problem.space.X.copy(), problem.y.copy(), np.random.default_rng(seed)
    X[:outliers] = np.array([-20.0] + [10.0] * (d - 1)) + rng.normal(size=(outliers, d))
    y[:outliers] = 1
    return replace(problem, space=LinearSpace(X), y=y)


@pytest.mark.parametrize("norm", [2, 1])
@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_local_search_reaches_the_optimum_of_small_problems_and_never_passes_it(loss, norm):
    missed = 0
    for seed in range(6):
        problem = make_problem([seed, norm], loss, norm, n=20)
        optimum = mip.solve(problem, Options(gap_tol=1e-7)).objective
        reduction = reduce(problem)
        model = make_model(reduction, loss)
        best, _ = given_incumbent(model, [])
        LocalSearch(model, best, seed).run(Budget(work=1500))
        found = problem.value(*reduction.coefficients(best.w, best.b[0], np.zeros(reduction.n)))
        assert found == pytest.approx(reduction.unit * best.value[0], rel=1e-6)
        assert found >= optimum * (1 - 1e-6)
        missed += found > optimum * (1 + 1e-6)
    assert missed <= 1


def test_outliers_that_draw_every_svm_away_do_not_hide_the_optimum():
    problem = make_problem(3, HardMargin(), 2, n=80, d=4, outliers=20)
    reduction = reduce(problem)
    model = make_model(reduction, problem.loss)
    best, _ = first_incumbent(model, [])
    before = float(best.value[0])
    LocalSearch(model, best, 0).run(Budget(work=4000))
    optimum = mip.solve(problem, Options(gap_tol=1e-6, time_limit=30.0))
    assert best.value[0] < 0.9 * before
    assert reduction.unit * best.value[0] <= 1.02 * optimum.objective


@pytest.mark.parametrize("state", [IN, TOP])
@pytest.mark.parametrize("norm", [2, 1])
@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_given_states_hold_and_a_first_incumbent_needs_no_point(loss, norm, state):
    for seed in range(5):
        problem = make_problem([seed, 5], loss, norm, n=15)
        reduction = reduce(problem)
        given = np.full(reduction.n, FREE, np.int8)
        given[np.flatnonzero(reduction.y > 0)[0]] = state
        given[np.flatnonzero(reduction.y < 0)[0]] = state
        model = make_model(reduction, loss, given)
        best, _ = first_incumbent(model, [])
        first = float(best.value[0])
        assert np.isfinite(first)
        LocalSearch(model, best, seed).run(Budget(work=100))
        floor = loss.t if state == IN else max(loss.t, *(breakpoint for _, breakpoint in loss.hinges), -np.inf)
        margins = model.a @ best.w + model.y * best.b[0]
        np.testing.assert_allclose(margins, best.u, atol=1e-6)
        assert np.all(margins[given == state] >= floor - 1e-6)
        assert best.value[0] <= first


@pytest.mark.parametrize("norm", [2, 1])
def test_states_that_contradict_each_other_are_refused(norm):
    X = np.array([[0.0, 0.0], [0.0, 0.0], [1.0, 2.0], [2.0, -1.0]])
    penalty = Penalty(l2=1.0) if norm == 2 else Penalty(l1=1.0)
    problem = Problem(LinearSpace(X), np.array([0, 1, 0, 1]), 2, HardMargin(), penalty, 1.0, np.ones(4))
    reduction = reduce(problem)
    given = np.where(np.all(np.isclose(reduction.z, reduction.z[reduction.group[0]]), axis=1), IN, FREE).astype(np.int8)
    with pytest.raises(ValueError, match="No solution respects"):
        first_incumbent(make_model(reduction, problem.loss, given), [])


def test_counted_steps_can_be_repeated_and_end_with_the_clock():
    problem = make_problem(5, Psi(1.0), 2, n=80, d=4, outliers=10)
    model = make_model(reduce(problem), problem.loss)
    found = []
    for budget in (Budget(work=250), Budget(work=250), Budget(work=250, until=0.0)):
        best, _ = given_incumbent(model, [])
        before = float(best.value[0])
        LocalSearch(model, best, 0).run(budget)
        found.append(best)
    assert found[0].value[0] < before
    np.testing.assert_array_equal(found[0].w, found[1].w)
    assert found[2].value[0] == before


def test_a_limit_on_nodes_leaves_room_for_good_incumbents():
    """What "auto" does without a time limit: few nodes, but local search first."""
    for seed in (3, 4, 6):
        problem = make_problem(seed, HardMargin(), 2, n=80, d=4, outliers=20)
        found = mip.solve(problem, Options(max_iter=800)).objective
        none = Options(max_iter=800, settings=(mip.Settings(steps_per_node=0.0),))
        assert found < 0.9 * mip.solve(problem, none).objective
