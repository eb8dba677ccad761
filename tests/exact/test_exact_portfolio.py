"""The two exact searches behind solver 'mip' agree with each other, alone and in turns."""

from types import SimpleNamespace

import numpy as np
import pytest

from psilearn.core.losses import HardMargin, Psi, TruncatedHinge
from psilearn.core.result import Status
from psilearn.core.solving import Clock, Options
from psilearn.exact.search import Budget
from psilearn.exact.two_class import portfolio
from psilearn.exact.two_class import solver as mip
from psilearn.exact.two_class.hitting.search import HittingSearch
from psilearn.exact.two_class.incumbent import first_incumbent
from psilearn.exact.two_class.model import make_model
from psilearn.exact.two_class.reduction import reduce
from psilearn.exact.two_class.tree.search import TreeSearch

from oracles.samples import two_class_problem

LOSSES = [HardMargin(), Psi(0.5), Psi(2.0), TruncatedHinge(-0.5)]


def make_problem(seed, loss, norm=2, n=14):
    return two_class_problem(seed, n, 2, loss, norm=norm, noise=0.6)


def run_alone(kind, problem):
    reduction, options = reduce(problem), Options(gap_tol=1e-7)
    model = make_model(reduction, problem.loss)
    best, scratch = first_incumbent(model, [])
    search = kind(model, best, scratch, options)
    search.run(Budget())
    assert search.done
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


SHORT = mip.Settings(first_slice_seconds=1e-4, slice_seconds=2e-3)


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_turns_in_small_slices_agree_with_the_tree(loss):
    for seed in range(2):
        problem = make_problem([7, seed], loss)
        truth, _ = run_alone(TreeSearch, problem)
        result = mip.solve(problem, Options(gap_tol=1e-7, settings=(SHORT,)))
        assert result.objective == pytest.approx(truth, rel=1e-6)
        assert result.status is Status.OPTIMAL


def record_of(*turns):
    record = portfolio.Progress()
    for seconds, bound in turns:
        record.note(seconds, bound)
    return record


def test_a_bound_that_rises_by_the_logarithm_of_time_is_extrapolated():
    record = record_of((1.0, 4.0), (1.0, 5.0), (2.0, 6.0))  # one more with every doubling
    assert record.expected_seconds(8.0) == pytest.approx(16.0 - 4.0)
    assert record.expected_seconds(6.0) == 0.0
    assert record_of((4.0, 7.0), (4.0, 7.0)).expected_seconds(8.0) > 1e100
    assert record_of((4.0, 0.0)).expected_seconds(8.0) == 4.0  # compiled, perhaps


class HandClock(Clock):
    """A clock that is moved by hand."""

    seconds = 0.0


class FakeSearch:
    """A search that proves nothing and spends whatever time it is given."""

    bound, done, work, is_stuck, is_outdated = 0.0, False, 0, False, False

    def __init__(self):
        self.ends = []

    def run(self, budget):
        self.ends.append(budget.until - budget.clock.seconds)
        budget.clock.seconds = budget.until


class NoLocalSearch:
    def run(self, budget):
        pass


def fake_portfolio(goal, *records):
    """A portfolio of fake searches with these records."""
    best = SimpleNamespace(value=np.array([goal]))
    members = [portfolio.Member(FakeSearch, progress=record_of(*turns)) for turns in records]
    return portfolio.Portfolio(best, NoLocalSearch(), members, members[0])


def test_the_search_expected_to_be_done_first_goes_on_and_none_is_forgotten():
    plan = fake_portfolio(1.0, [], [], [])
    slow, fast, idle = plan.members
    assert plan.next() is slow
    for member, bounds in ((slow, (0.8, 0.81)), (fast, (0.2, 0.7)), (idle, (0.0, 0.0))):
        for bound in bounds:
            member.progress.note(1.0, bound)
    assert plan.next() is fast
    assert plan.next(left=1e-3) is slow  # none will be done, and this bound is the best
    fast.progress.note(30.0, 0.9)
    assert plan.next() is slow


def test_the_turn_of_a_neglected_search_is_short():
    plan = fake_portfolio(1.0, [(95.0, 0.1)], [(5.0, 0.1)])
    clock = HandClock()
    clock.seconds = 100.0
    plan.run(Budget(clock=clock, until=130.0))
    neglected = plan.members[1]
    assert neglected.search.ends == [pytest.approx(8.0)]
    assert plan.members[0].search is None
    neglected.progress.note(20.0, 0.1)
    plan.run(Budget(clock=clock, until=clock.seconds + 30.0))
    assert 30.0 in (end for member in plan.members for end in (member.search.ends if member.search else []))


def test_a_stuck_search_is_passed_over_until_a_better_incumbent_revives_it():
    plan = fake_portfolio(1.0, [(1.0, 0.1), (1.0, 0.9)], [(1.0, 0.01), (1.0, 0.09)])
    stuck, other = plan.members
    stuck.search = FakeSearch()
    assert plan.next() is stuck
    stuck.search.is_stuck = True
    assert plan.next() is other
    stuck.search.is_outdated = True
    assert plan.next() is stuck


def test_a_search_that_begins_anew_has_a_new_record_and_its_old_seconds():
    plan = fake_portfolio(1.0, [(10.0, 0.9)])
    member = plan.members[0]
    member.search, clock = FakeSearch(), HandClock(100.0)
    member.search.is_outdated = True
    plan.run(Budget(clock=clock, until=5.0))
    assert member.progress.before == 10.0
    assert member.search.ends[0] > 5.0  # what goes to incumbents before a new beginning is added


def test_the_user_says_when_it_is_enough():
    problem = make_problem([5, 0], Psi(0.5), n=40)
    heard = []

    def enough(objective, bound):
        heard.append((objective, bound))
        return True

    settings = mip.Settings(enough=enough, first_slice_seconds=1e-4)
    result = mip.solve(problem, Options(settings=(settings,)))
    assert result.status is Status.INTERRUPTED
    assert len(heard) == 1
    assert result.objective <= heard[0][0] * (1 + 1e-12)
    assert result.lower_bound == pytest.approx(min(heard[0][1], result.objective))
