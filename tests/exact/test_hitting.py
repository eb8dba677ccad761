"""The search by hitting sets: its conflicts are conflicts, its bounds are proved by any multipliers, and it agrees."""

import math

import numpy as np
import pytest
from scipy.optimize import linprog

from psilearn.core.losses import HardMargin, Psi, TruncatedHinge
from psilearn.core.solving import Clock, Options
from psilearn.engines.highs import ProgramError
from psilearn.exact.sample_state_jit import FREE, GONE, IN
from psilearn.exact.search import Budget
from psilearn.exact.two_class.hitting.conflicts import Conflicts
from psilearn.exact.two_class.hitting.master import Master
from psilearn.exact.two_class.hitting.search import HittingSearch
from psilearn.exact.two_class.incumbent import first_incumbent, given_incumbent
from psilearn.exact.two_class.model import make_model
from psilearn.exact.two_class.portfolio import make_portfolio
from psilearn.exact.two_class.reduction import reduce
from psilearn.exact.two_class.tree.search import TreeSearch

from oracles.exact_reference import least_penalty
from oracles.samples import two_class_problem


def make_problem(rng, n, d, loss, weighted=False):
    return two_class_problem(rng, n, d, loss, "weights" if weighted else "plain", log_C=(-0.5, 3.0))


def start(problem, kind, given=None):
    model = make_model(reduce(problem), problem.loss, given)
    best, scratch = first_incumbent(model, [])
    return model, best, kind(model, best, scratch, Options(gap_tol=1e-7))


@pytest.mark.parametrize("d", [1, 3, 6])
def test_light_conflicts_are_conflicts_and_violated(d):
    rng = np.random.default_rng([1, d])
    seen, inseparable = 0, 0
    for _ in range(6):
        problem = make_problem(rng, 30, d, HardMargin())
        model = make_model(reduce(problem), problem.loss)
        best, scratch = first_incumbent(model, [])
        conflicts = Conflicts(model, best, scratch)
        z, cutoff = rng.uniform(0.0, 1.5 / (d + 2), 30), 0.7 * float(best.value[0])
        for conflict in conflicts.violated(z, cutoff, 5, Clock()):
            seen += 1
            assert z[conflict].sum() < 1.0
            rows = np.column_stack([model.a[conflict], model.y[conflict]])
            value = least_penalty(rows, np.ones(conflict.size))
            assert value is not None
            assert value >= cutoff * (1.0 - 1e-6)
            inseparable += value == np.inf
    assert seen > 10
    assert 0 < inseparable < seen


def test_conflicts_of_given_samples_name_the_others_alone():
    rng = np.random.default_rng(2)
    problem = make_problem(rng, 40, 2, HardMargin())
    given = np.full(40, FREE, np.int8)
    given[rng.choice(40, 5, replace=False)] = IN
    model = make_model(reduce(problem), problem.loss, given)
    best, scratch = first_incumbent(model, [])
    found = Conflicts(model, best, scratch).violated(np.full(40, 0.05), 0.5 * float(best.value[0]), 5, Clock())
    assert found
    assert all(np.all(given[conflict] == FREE) for conflict in found)


def test_any_multipliers_give_a_lower_bound_and_the_engine_s_the_best():
    rng = np.random.default_rng(3)
    for _ in range(20):
        n = 12
        conflicts = [rng.choice(n, rng.integers(1, 5), replace=False) for _ in range(15)]
        fates = rng.choice([IN, GONE, FREE], n, p=[0.15, 0.15, 0.7]).astype(np.int8)
        master = Master(rng.uniform(1.0, 3.0, n))
        master.add(conflicts)
        rows = np.array([[1.0 if i in conflict else 0.0 for i in range(n)] for conflict in conflicts])
        bounds = [{IN: (0, 0), GONE: (1, 1), FREE: (0, 1)}[fate] for fate in fates]
        truth = linprog(master.cost, -rows, -np.ones(15), bounds=bounds)
        assert master.is_impossible(fates) == (truth.status == 2)
        if truth.status == 2:
            continue
        bound, z = master.solve(fates, math.inf)
        assert bound == pytest.approx(truth.fun)
        assert master.cost @ z == pytest.approx(truth.fun)
        for _ in range(20):
            assert master.dual_bound(rng.exponential(size=15)) <= truth.fun + 1e-9


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("loss", "d"), [(HardMargin(), 2), (HardMargin(), 5), (Psi(1.0), 2)])
def test_equal_to_the_tree_and_honest_before_the_end(loss, d, weighted):
    rng = np.random.default_rng([4, d, weighted])
    for _ in range(4):
        problem = make_problem(rng, 25 if isinstance(loss, HardMargin) else 12, d, loss, weighted)
        given = np.full(problem.n, FREE, np.int8)
        given[0] = IN
        _, truth, tree = start(problem, TreeSearch, given)
        tree.run(Budget())
        assert tree.done
        _, best, search = start(problem, HittingSearch, given)
        while not search.done:
            search.run(Budget(work=3))
            assert search.bound <= truth.value[0] * (1.0 + 1e-9)
        assert best.value[0] == pytest.approx(truth.value[0], rel=1e-6)


def test_the_optimum_as_incumbent_is_proved():
    rng = np.random.default_rng(5)
    for _ in range(5):
        problem = make_problem(rng, 30, 3, HardMargin())
        _, truth, tree = start(problem, TreeSearch)
        tree.run(Budget())
        _, other, search = start(problem, HittingSearch)
        for mine, optimal in zip(other, truth):
            mine[...] = optimal
        search.run(Budget())
        assert search.done
        assert search.bound <= truth.value[0]


@pytest.mark.parametrize("in_trials", [False, True])
def test_a_failure_of_the_engine_ends_this_search_only(monkeypatch, in_trials):
    """The bound before it stands, and the portfolio proves the optimum without it."""
    problem = two_class_problem(3, 30, 2, TruncatedHinge(-0.5))
    model = make_model(reduce(problem), problem.loss)
    best, scratch = given_incumbent(model, [])
    search = HittingSearch(model, best, scratch, Options(gap_tol=1e-6))
    search.run(Budget(work=3))
    bound, solve, calls = search.bound, Master.solve, []

    def fails(master, fates, seconds, iterations=None):
        calls.append((iterations is not None) is in_trials)
        if sum(calls) > 1:
            raise ProgramError("HiGHS stopped with status 'kSolveError'.")
        return solve(master, fates, seconds, iterations)

    monkeypatch.setattr(Master, "solve", fails)
    search.run(Budget())
    assert search.is_stuck
    assert not search.done
    assert sum(calls) == 2
    assert bound <= search.bound <= best.value[0]
    portfolio, clock = make_portfolio(model, best, scratch, Options(gap_tol=1e-6)), Clock()
    while not portfolio.run(Budget(clock=clock).for_seconds(0.05)):
        pass
    assert portfolio.bound >= best.value[0] * (1.0 - 1e-5)
