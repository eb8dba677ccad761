"""Enumeration of dichotomies in the plane against brute force and against the tree."""

import itertools

import numpy as np
import pytest

from psilearn.core.losses import HardMargin, Psi, TruncatedHinge
from psilearn.core.penalties import Penalty
from psilearn.core.problem import Problem
from psilearn.core.result import Status
from psilearn.core.solving import Options
from psilearn.core.spaces import LinearSpace
from psilearn.exact.search import Budget
from psilearn.exact.two_class import solver as mip
from psilearn.exact.two_class.incumbent import first_incumbent, given_incumbent
from psilearn.exact.two_class.model import make_model
from psilearn.exact.two_class.plane.search import LineSearch, suits_lines
from psilearn.exact.two_class.reduction import reduce
from psilearn.exact.two_class.tree.search import TreeSearch

from oracles.exact_reference import least_penalty, optimum_l2
from oracles.samples import two_class_problem

LOSSES = [Psi(0.1), Psi(0.5), Psi(2.0), TruncatedHinge(0.0)]


def make_problem(rng, kind, n, loss, norm=2):
    return two_class_problem(rng, n, 2, loss, kind, norm, log_C=(-2.0, 3.0))


@pytest.mark.parametrize("loss", LOSSES, ids=str)
@pytest.mark.parametrize("kind", ["plain", "ties", "collinear", "contradictions", "weights"])
def test_equal_to_brute_force_from_nothing_but_constants(kind, loss):
    rng = np.random.default_rng([len(kind), LOSSES.index(loss)])
    done = 0
    for _ in range(40):
        problem = make_problem(rng, kind, int(rng.integers(2, 6)), loss)
        reduction = reduce(problem)
        model = make_model(reduction, loss)
        best, _ = given_incumbent(model, [])
        search = LineSearch(model, best, Options(gap_tol=1e-8))
        search.run(Budget())
        assert search.done != search.is_stuck
        assert search.done or kind not in ("plain", "weights")
        truth = optimum_l2(np.asarray(problem.space.X), problem.signs, problem.costs, loss)
        assert reduction.unit * search.bound <= truth * (1 + 1e-7) + 1e-9
        if search.done:
            done += 1
            assert reduction.unit * search.bound == pytest.approx(truth, rel=1e-6, abs=1e-9)
            assert reduction.unit * best.value[0] == pytest.approx(truth, rel=1e-6, abs=1e-9)
    assert done >= 5


@pytest.mark.parametrize("norm", [2, 1])
@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_equal_to_the_tree(loss, norm):
    for seed in range(4):
        problem = make_problem(np.random.default_rng([seed, norm]), "plain", 25, loss, norm)
        reduction = reduce(problem)
        model = make_model(reduction, loss)
        assert suits_lines(model)
        best, _ = first_incumbent(model, [])
        search = LineSearch(model, best, Options(gap_tol=1e-7))
        search.run(Budget())
        other, scratch = first_incumbent(model, [])
        tree = TreeSearch(model, other, scratch, Options(gap_tol=1e-7))
        tree.run(Budget())
        assert search.done
        assert best.value[0] == pytest.approx(other.value[0], rel=1e-6)


def test_three_on_a_line_are_left_to_the_tree():
    X = np.array([[0.0, 0.0], [1.0, 0.0], [2.0, 0.0], [0.5, 1.0], [1.5, -1.0]])
    problem = Problem(LinearSpace(X), np.array([0, 1, 0, 1, 0]), 2, Psi(1.0), Penalty(l2=1.0), 5.0, np.ones(5))
    model = make_model(reduce(problem), problem.loss)
    search = LineSearch(model, given_incumbent(model, [])[0], Options())
    search.run(Budget())
    assert search.is_stuck
    assert mip.solve(problem, Options(gap_tol=1e-7)).status is Status.OPTIMAL


def test_other_truncation_points_do_not_suit():
    for loss, norm in ((TruncatedHinge(-0.5), 2), (HardMargin(), 1)):
        problem = make_problem(np.random.default_rng(0), "plain", 9, loss, norm)
        assert not suits_lines(make_model(reduce(problem), problem.loss))


@pytest.mark.parametrize("norm", [2, 1])
def test_dense_samples_leave_no_room_for_a_near_miss(norm):
    """Sixty samples in a disk: every line has others close by. Only the value of the optimum is known beforehand."""
    for seed, loss in enumerate([Psi(0.5), Psi(2.0), TruncatedHinge(0.0)] * 2):
        rng = np.random.default_rng([seed, norm, 60])
        radius, angle = np.sqrt(rng.random(60)), rng.uniform(0.0, 2.0 * np.pi, 60)
        X = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
        y = ((X[:, 0] > 0.0) ^ (rng.random(60) < 0.1)).astype(int)
        penalty = Penalty(l2=1.0) if norm == 2 else Penalty(l1=1.0)
        problem = Problem(LinearSpace(X), y, 2, loss, penalty, [1.0, 30.0, 1000.0][seed % 3], np.ones(60))
        model = make_model(reduce(problem), loss)
        other, scratch = first_incumbent(model, [])
        tree = TreeSearch(model, other, scratch, Options(gap_tol=1e-8))
        tree.run(Budget())
        assert tree.done
        best, _ = given_incumbent(model, [])
        best.value[0] = other.value[0] * (1.0 + 1e-6)
        search = LineSearch(model, best, Options(gap_tol=1e-8))
        search.run(Budget())
        assert search.done
        assert best.value[0] == pytest.approx(other.value[0], rel=1e-8)


def hard_margin_optimum(problem):
    """By a general solver for every set of kept samples."""
    signs, costs = problem.signs, problem.costs
    rows = np.column_stack([problem.space.X, np.ones(signs.size)]) * signs[:, None]
    best = min(costs[signs > 0].sum(), costs[signs < 0].sum())
    for kept in itertools.product([True, False], repeat=signs.size):
        kept = np.array(kept)
        paid = costs[~kept].sum()
        if paid < best and np.ptp(signs[kept]) > 0:
            value = least_penalty(rows[kept], np.ones(kept.sum()))
            best = best if value is None else min(best, paid + value)
    return best


@pytest.mark.parametrize("kind", ["plain", "ties", "collinear", "contradictions", "weights"])
def test_support_sets_are_equal_to_brute_force_from_nothing_but_constants(kind):
    interesting = 0
    for seed in range(8):
        problem = make_problem(np.random.default_rng([seed, len(kind)]), kind, 6, HardMargin())
        truth = hard_margin_optimum(problem)
        search, best, unit = enumeration(problem)
        assert search.done
        assert unit * search.bound == pytest.approx(truth, rel=1e-6, abs=1e-9)
        assert unit * best.value[0] == pytest.approx(truth, rel=1e-6, abs=1e-9)
        interesting += np.any(best.w != 0.0)
    assert interesting >= 1 or kind == "contradictions"


def enumeration(problem):
    """The enumeration from constants, its incumbent, and the unit of its values."""
    reduction = reduce(problem)
    model = make_model(reduction, problem.loss)
    assert suits_lines(model)
    best, _ = given_incumbent(model, [])
    search = LineSearch(model, best, Options(gap_tol=1e-8))
    search.run(Budget())
    return search, best, reduction.unit


@pytest.mark.parametrize("kind", ["plain", "ties", "collinear", "weights", "scale", "lonely class"])
def test_support_sets_are_equal_to_the_tree(kind):
    for seed in range(5):
        problem = make_problem(np.random.default_rng([seed, 9]), kind, 25, HardMargin())
        search, best, unit = enumeration(problem)
        model = make_model(reduce(problem), problem.loss)
        tree_best, scratch = given_incumbent(model, [])
        tree = TreeSearch(model, tree_best, scratch, Options(gap_tol=1e-8))
        tree.run(Budget())
        assert search.done
        assert unit * search.bound == pytest.approx(unit * tree_best.value[0], rel=1e-6)
        assert best.value[0] == pytest.approx(tree_best.value[0], rel=1e-6)
