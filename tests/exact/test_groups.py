"""The bound by groups never exceeds the optimum, never falls, and is not empty."""

from dataclasses import replace

import numpy as np
import pytest

from psilearn.core.losses import HardMargin, Psi, TruncatedHinge
from psilearn.core.solving import Options
from psilearn.exact.sample_state_jit import FREE, IN
from psilearn.exact.search import Budget
from psilearn.exact.two_class import groups, multipliers
from psilearn.exact.two_class import solver as mip
from psilearn.exact.two_class.incumbent import given_incumbent
from psilearn.exact.two_class.model import make_model
from psilearn.exact.two_class.reduction import reduce
from psilearn.exact.two_class.tree.search import TreeSearch

from oracles.exact_reference import optimum_l1, optimum_l2
from oracles.samples import KINDS, two_class_problem

LOSSES = [Psi(1.0), TruncatedHinge(-0.5), Psi(2.0), HardMargin()]


@pytest.fixture
def tiny_groups(monkeypatch):
    monkeypatch.setattr(groups, "CONSTANTS", replace(groups.CONSTANTS, first_size=3, slice_nodes=16))


def without_incumbents(problem):
    """The search with the best constant as its only incumbent for good: a good one would hide a wrong bound."""
    model = make_model(reduce(problem), problem.loss)
    best, scratch = given_incumbent(model, [])
    search = groups.GroupSearch(model, best, scratch, Options())
    search._offer = lambda w, b: None
    return search


def bounds(search):
    """All bounds until the last two groups are solved, in slices of a few nodes."""
    found = [0.0]
    while not search.is_stuck and not search.done:
        search.run(Budget(work=5))
        assert search.bound >= found[-1]
        found.append(search.bound)
    return found


@pytest.mark.parametrize("norm", [2, 1])
@pytest.mark.parametrize("loss", LOSSES[:3], ids=repr)
def test_no_bound_exceeds_the_enumerated_optimum(tiny_groups, loss, norm):
    optimum_of = optimum_l2 if norm == 2 else optimum_l1
    useful = 0
    for seed in range(5):
        problem = two_class_problem([seed, 3], 6, 2, loss, norm=norm)
        optimum = optimum_of(problem.space.X, problem.signs, problem.costs, loss)
        bound = reduce(problem).unit * bounds(without_incumbents(problem))[-1]
        assert bound <= optimum * (1.0 + 1e-9)
        useful += bound > 0.3 * optimum
    assert useful >= 2


@pytest.mark.parametrize("norm", [2, 1])
@pytest.mark.parametrize("kind", KINDS)
def test_bounds_stay_below_the_optimum_of_the_tree(tiny_groups, kind, norm):
    useful = 0
    for seed, loss in enumerate(LOSSES):
        problem = two_class_problem([seed, 4], 24, 2, loss, kind, norm)
        optimum = mip.solve(problem, Options(gap_tol=1e-6, max_iter=100_000)).objective
        bound = reduce(problem).unit * bounds(without_incumbents(problem))[-1]
        assert bound <= optimum * (1.0 + 1e-6)
        useful += bound > 0.3 * optimum
    assert useful >= 1


@pytest.mark.parametrize("loss", LOSSES[:3], ids=repr)
def test_multipliers_never_lift_the_bound_above_the_enumerated_optimum(loss):
    """Any multipliers that sum to 0, also large ones; groups of one class and of one sample among them."""
    useful = 0
    for seed in range(8):
        problem = two_class_problem([seed, 7], 6, 2, loss)
        optimum = optimum_l2(problem.space.X, problem.signs, problem.costs, loss)
        reduction = reduce(problem)
        model, rng = make_model(reduction, loss), np.random.default_rng(seed)
        best, _ = given_incumbent(model, [])
        upper, points = float(best.value[0]), [(best.w.copy(), float(best.b[0]))]
        box, n = groups.box_of(model, upper), model.y.size
        rows = np.array_split(rng.permutation(n), 2) if seed % 2 else [np.arange(1), np.arange(1, n)]
        for size in (0.0, 0.03, 0.3, 3.0):
            tilts = multipliers.balanced(size * rng.normal(size=(2, model.a.shape[1] + 1)) + 1e-9)
            assert np.all(tilts.sum(axis=0) == 0.0)
            parts = [groups.Group(part, 0.5, tilt, -np.inf, points) for part, tilt in zip(rows, tilts)]
            for part in parts:
                while not part.done:
                    part.run(model, box, Options(), Budget(100))
            bound = min(reduction.unit * sum(part.bound for part in parts), reduction.unit * upper)
            assert bound <= optimum * (1.0 + 1e-9)
            useful += bound > 0.3 * optimum
    assert useful >= 4


@pytest.mark.parametrize("size", [0.1, 2.0])
def test_a_search_that_begins_with_any_multipliers_stays_below_the_optimum(tiny_groups, monkeypatch, size):
    def anything(self, parts):
        rng = np.random.default_rng(len(parts))
        return multipliers.balanced(size * rng.normal(size=(len(parts), self.model.a.shape[1] + 1)))

    monkeypatch.setattr(groups.GroupSearch, "_first_multipliers", anything)
    for seed in range(6):
        problem = two_class_problem([seed, 8], 6, 2, LOSSES[seed % 3])
        optimum = optimum_l2(problem.space.X, problem.signs, problem.costs, problem.loss)
        bound = reduce(problem).unit * bounds(without_incumbents(problem))[-1]
        assert 0.0 < bound <= optimum * (1.0 + 1e-9)


def test_multipliers_raise_the_bound():
    problem = two_class_problem([3, 3], 120, 6, Psi(1.0), C=1.0, noise=2.0)
    model = make_model(reduce(problem), problem.loss)
    best, scratch = given_incumbent(model, [])
    search = groups.GroupSearch(model, best, scratch, Options())
    first = search.groups
    while search.groups[0] is first[0]:
        search.run(Budget(work=20))
    before = search.bound
    while len(search.groups) == len(first):
        search.run(Budget(work=20))
    assert search.bound > 1.05 * before
    assert all(np.sum([group.tilt for group in search.groups], axis=0) == 0.0)


def test_a_group_with_multipliers_has_its_optimum_where_a_fine_grid_finds_it():
    """One feature, so that (w, b) can be enumerated."""
    problem = two_class_problem([9, 9], 5, 1, TruncatedHinge(-0.5), C=2.0)
    model = make_model(reduce(problem), problem.loss)
    best, _ = given_incumbent(model, [])
    box = groups.box_of(model, float(best.value[0]))
    tilt = np.array([0.2, 0.1])
    group = groups.Group(np.arange(5), 0.5, tilt, -np.inf, [(best.w.copy(), float(best.b[0]))])
    while not group.done:
        group.run(model, box, Options(), Budget(100))
    w, b = np.meshgrid(np.linspace(-4, 4, 1601), np.linspace(box.least, box.most, 801))
    u = model.y * (w[..., None] * model.a[:, 0] * model.y + b[..., None])
    value = 0.25 * w**2 + tilt[0] * w + tilt[1] * b
    value += np.where(u < -0.5, 1.5, np.maximum(1.0 - u, 0.0)) @ model.cost
    is_inside = np.all((u >= box.low - 1e-9) & (u <= box.high + 1e-9), axis=-1)
    assert group.bound <= value[is_inside].min() * (1.0 + 1e-9)
    assert group.bound >= 0.98 * value.min()


def test_two_groups_far_from_each_other_are_bounded_exactly(tiny_groups):
    """Copies of one problem, each with half of the penalty: the bound is the optimum of all copies together."""
    problem = two_class_problem([5, 5], 3, 1, Psi(2.0), C=3.0)
    single = mip.solve(problem, Options(gap_tol=1e-9, max_iter=10_000)).objective
    model = make_model(reduce(problem), problem.loss)
    n = model.y.size
    twice = model._replace(
        a=np.vstack([model.a] * 2), y=np.tile(model.y, 2), cost=np.tile(model.cost / 2, 2),
        dist=np.tile(model.dist, (2, 2)), given=np.tile(model.given, 2),
    )  # fmt: skip
    best, _ = given_incumbent(model, [])
    points = [(best.w.copy(), float(best.b[0]))]
    tilts = np.zeros((2, model.a.shape[1] + 1))
    parts = [groups.Group(np.arange(n) + n * k, 0.5, tilt, 0.0, points) for k, tilt in enumerate(tilts)]
    for part in parts:
        while not part.done:
            part.run(twice, groups.box_of(twice, float(best.value[0])), Options(), Budget())
    assert reduce(problem).unit * sum(part.bound for part in parts) == pytest.approx(single, rel=2e-3)


def test_samples_bound_to_their_side_stay_so_in_their_group(tiny_groups):
    problem = two_class_problem([1, 1], 24, 2, Psi(1.0))
    model = make_model(reduce(problem), problem.loss)
    best, _ = given_incumbent(model, [])
    given = np.where(best.u >= model.t, IN, FREE).astype(np.int8)
    free = without_incumbents(problem)
    bound_to = without_incumbents(problem)
    bound_to.model = model._replace(given=given)
    assert bounds(bound_to)[-1] >= bounds(free)[-1] * (1.0 - 2e-3)


def test_groups_hold_every_sample_once_and_are_small():
    X = np.vstack([np.zeros((30, 2)), np.random.default_rng(0).normal(size=(70, 2))])
    parts = groups.divide(X, 12)
    assert np.array_equal(np.sort(np.concatenate(parts)), np.arange(100))
    assert {part.size for part in parts} <= {6, 7}


def test_a_number_of_nodes_is_shared_and_the_outcome_can_be_repeated():
    problem = two_class_problem([2, 2], 160, 6, Psi(1.0), C=1.0, noise=2.0)
    first, second = (mip.solve(problem, Options(gap_tol=1e-6, max_iter=1500)) for _ in range(2))
    assert first.lower_bound == second.lower_bound
    assert np.array_equal(first.coef, second.coef)
    assert first.n_iter <= 1500 + 300  # the tree ends its dive
    alone = mip.solve(problem, Options(gap_tol=1e-6, max_iter=750)).lower_bound
    assert first.lower_bound >= alone
    model = make_model(reduce(problem), problem.loss)
    best, scratch = given_incumbent(model, [])
    tree = TreeSearch(model, best, scratch, Options(gap_tol=1e-6))
    tree.run(Budget(work=1500))
    assert first.lower_bound > 1.2 * reduce(problem).unit * tree.bound
