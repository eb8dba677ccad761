"""The two exact searches behind solver 'mip' agree with each other, alone and in turns."""

import math

import numpy as np
import pytest

from psilearn.core.losses import HardMargin, Psi, TruncatedHinge
from psilearn.core.penalties import Penalty
from psilearn.core.problem import Problem
from psilearn.core.result import Status
from psilearn.core.solving import Clock, Options
from psilearn.core.spaces import LinearSpace
from psilearn.exact.two_class import portfolio
from psilearn.exact.two_class import solver as mip
from psilearn.exact.two_class.hitting.search import HittingSearch
from psilearn.exact.two_class.reduction import reduce
from psilearn.exact.two_class.tree.search import TreeSearch, first_incumbent, make_model

LOSSES = [HardMargin(), Psi(0.5), Psi(2.0), TruncatedHinge(-0.5)]


def make_problem(seed, loss, norm=2, weighted=False, n=14):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    y = (X[:, 0] + 0.6 * rng.normal(size=n) > 0).astype(int)
    y[:2] = 0, 1
    penalty = Penalty(l2=1.0) if norm == 2 else Penalty(l1=1.0)
    weights = rng.uniform(0.5, 2.0, n) if weighted else np.ones(n)
    return Problem(LinearSpace(X), y, 2, loss, penalty, 10.0 ** rng.uniform(-1, 2), weights)


def run_alone(kind, problem):
    reduction, options = reduce(problem), Options(gap_tol=1e-7)
    model = make_model(reduction, problem.loss)
    best, scratch = first_incumbent(model, [])
    search = kind(model, best, scratch, options)
    search.run(Clock(), 20.0, math.inf)
    assert search.is_done
    return reduction.unit * best.value[0], reduction.unit * search.bound


@pytest.mark.parametrize(
    ("loss", "norm", "n"), [(HardMargin(), 2, 14), (HardMargin(), 1, 14), (Psi(0.5), 2, 9), (Psi(2.0), 2, 9)]
)
@pytest.mark.parametrize("seed", [0, 1])
def test_both_searches_agree(seed, loss, norm, n):
    problem = make_problem([0, seed], loss, norm, n=n)
    value, bound = run_alone(TreeSearch, problem)
    other, _ = run_alone(HittingSearch, problem)
    assert other == pytest.approx(value, rel=1e-6)
    assert bound <= other * (1 + 1e-7)


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_turns_in_small_slices_agree_with_the_tree(loss, monkeypatch):
    for seed in range(2):
        problem = make_problem([7, seed], loss)
        truth, _ = run_alone(TreeSearch, problem)
        monkeypatch.setattr(portfolio, "FIRST_SLICE", 1e-4)
        monkeypatch.setattr(portfolio, "SLICE", 2e-3)
        result = mip.solve(problem, Options(gap_tol=1e-7))
        monkeypatch.undo()
        assert result.objective == pytest.approx(truth, rel=1e-6)
        assert result.status is Status.OPTIMAL


def record_of(*turns):
    record = portfolio.Record()
    for seconds, bound in turns:
        record.note(seconds, bound)
    return record


def test_a_bound_that_rises_by_the_logarithm_of_time_is_extrapolated():
    record = record_of((1.0, 4.0), (1.0, 5.0), (2.0, 6.0))  # one more with every doubling
    assert record.promise(8.0) == pytest.approx(16.0 - 4.0)
    assert record.promise(6.0) == 0.0
    assert record_of((4.0, 7.0), (4.0, 7.0)).promise(8.0) > 1e100
    assert record_of((4.0, 0.0)).promise(8.0) == 4.0  # compiled, perhaps


def test_whoever_promises_most_goes_on_and_nobody_is_forgotten():
    problem = make_problem([3, 0], HardMargin())
    model = make_model(reduce(problem), problem.loss)
    best, scratch = first_incumbent(model, [])
    plan = portfolio.Plan(model, best, scratch, Options())
    goal = float(best.value[0])
    slow, fast, idle = plan.turns
    assert plan.next() == slow
    for run, bounds in ((slow, (0.8, 0.81)), (fast, (0.2, 0.6)), (idle, (0.0, 0.0))):
        for part in bounds:
            plan.turns[run].note(1.0, part * goal)
    assert plan.next() == fast
    assert plan.next(left=1e-3) == slow  # nobody will be done, and this bound is the best
    plan.turns[fast].note(30.0, 0.9 * goal)
    assert plan.next() == slow


def test_the_turn_of_a_neglected_search_is_short():
    problem = make_problem([3, 0], Psi(2.0))
    model = make_model(reduce(problem), problem.loss)
    best, scratch = first_incumbent(model, [])
    plan = portfolio.Plan(model, best, scratch, Options())
    plan.lines = None
    _, neglected = plan.turns
    ends = []
    plan.turns = {
        (lambda clock, until, run=run: ends.append((run, until - clock.seconds))): record
        for run, record in plan.turns.items()
    }
    for record, seconds in zip(plan.turns.values(), (95.0, 5.0)):
        record.note(seconds, 0.1)
    clock = Clock()
    clock.start -= 100.0
    plan.run(clock, clock.seconds + 30.0, math.inf)
    assert ends[0][0] == neglected
    assert ends[0][1] == pytest.approx(8.0, abs=0.5)
    list(plan.turns.values())[1].note(20.0, 0.1)
    plan.run(clock, clock.seconds + 30.0, math.inf)
    assert ends[1][1] == pytest.approx(30.0, abs=0.5)


def test_a_search_without_memory_is_passed_over():
    problem = make_problem([3, 0], HardMargin(), n=30)
    model = make_model(reduce(problem), problem.loss)
    best, scratch = first_incumbent(model, [])
    plan = portfolio.Plan(model, best, scratch, Options())
    plan.run(Clock(), 0.0, math.inf)
    goal = float(best.value[0])
    stuck, *others = plan.turns
    for part in (0.1, 0.9):
        plan.turns[stuck].note(1.0, part * goal)
        for other in others:
            plan.turns[other].note(1.0, 0.1 * part * goal)
    assert plan.next() == stuck
    plan.violations.is_full = True
    assert plan.next() in others


def test_the_user_says_when_it_is_enough(monkeypatch):
    problem = make_problem([5, 0], Psi(0.5), n=40)
    monkeypatch.setattr(portfolio, "FIRST_SLICE", 1e-4)
    heard = []

    def enough(objective, bound):
        heard.append((objective, bound))
        return True

    result = mip.solve(problem, Options(settings=(mip.Settings(enough=enough),)))
    assert result.status is Status.INTERRUPTED
    assert len(heard) == 1
    assert result.objective <= heard[0][0] * (1 + 1e-12)
    assert result.lower_bound == pytest.approx(min(heard[0][1], result.objective))
