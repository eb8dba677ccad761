"""Boxes of coefficients: proofs against enumeration, rational arithmetic and the tree, bounds without any incumbent."""

from fractions import Fraction

import numpy as np
import pytest

from psilearn.core.losses import HardMargin, Psi, TruncatedHinge, TruncatedReject
from psilearn.core.penalties import Penalty
from psilearn.core.problem import Problem
from psilearn.core.result import Status
from psilearn.core.solving import Options
from psilearn.core.spaces import LinearSpace
from psilearn.exact.sample_state_jit import TOP
from psilearn.exact.search import Budget
from psilearn.exact.two_class import solver as mip
from psilearn.exact.two_class.incumbent import first_incumbent, given_incumbent
from psilearn.exact.two_class.model import make_model
from psilearn.exact.two_class.plane.search import BoxSearch, plane_search, suits_boxes
from psilearn.exact.two_class.reduction import reduce
from psilearn.exact.two_class.tree.search import TreeSearch

from oracles.exact_reference import optimum_l1, optimum_l2
from oracles.one_feature import exact_optimum
from oracles.samples import KINDS, two_class_problem

LOSSES = [TruncatedHinge(-1.0), TruncatedHinge(-0.5), TruncatedHinge(0.5), Psi(2.0)]


def box_search(problem, gap_tol=1e-7):
    """The search with the best constant as its only incumbent."""
    reduction = reduce(problem)
    model = make_model(reduction, problem.loss)
    best, _ = given_incumbent(model, [])
    return reduction, BoxSearch(model, best, Options(gap_tol=gap_tol))


@pytest.mark.parametrize("norm", [2, 1])
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "scale"])
def test_proofs_are_those_of_enumeration(kind, norm):
    rng = np.random.default_rng([norm, len(kind), 3])
    optimum_of = optimum_l2 if norm == 2 else optimum_l1
    for case in range(40 if norm == 2 else 12):
        loss = LOSSES[case % 4]
        problem = two_class_problem(rng, int(rng.integers(3, 6)), 2, loss, kind, norm, log_C=(-2.0, 3.0))
        truth = optimum_of(problem.space.X, problem.signs, problem.costs, loss)
        reduction, search = box_search(problem)
        search.run(Budget(work=500_000))
        assert search.done
        assert reduction.unit * search.bound <= truth * (1.0 + 1e-7) + 1e-9
        assert reduction.unit * search.best.value[0] == pytest.approx(truth, rel=1e-6, abs=1e-9)


def test_no_bound_exceeds_the_optimum_in_exact_arithmetic():
    """One feature, weights over many orders of magnitude, the truth as a rational number; bounds at any time."""
    rng = np.random.default_rng(2)
    done = 0
    for case in range(200):
        n = int(rng.integers(3, 8))
        X = rng.normal(size=(n, 1)) * rng.choice([1e-4, 1.0, 1e4]) + rng.choice([0.0, 1.0, 1e3])
        y = rng.integers(0, 2, n) if rng.random() < 0.5 else X[:, 0] > np.median(X)
        if len(np.unique(y)) == 1:
            continue
        loss = [Psi(2.0), TruncatedHinge(-0.5), TruncatedHinge(0.5), TruncatedReject(0.2, -0.5)][case % 4]
        penalty = Penalty(l1=1.0) if case % 5 == 0 else Penalty(l2=1.0)
        weights = 10.0 ** rng.uniform(-rng.choice([0, 3, 6]), 0, n)
        problem = Problem(
            LinearSpace(X), np.asarray(y).astype(np.intp), 2, loss, penalty, 10.0 ** rng.uniform(-2, 4), weights
        )
        truth = exact_optimum(problem)
        reduction, search = box_search(problem, 1e-6)
        for _ in range(40):
            search.run(Budget(work=200))
            assert Fraction(reduction.unit * search.bound) <= truth * (1 + Fraction(1, 10**9))
        done += search.done
    assert done >= 150


@pytest.mark.parametrize("kind", ["plain", "ties", "collinear"])
def test_bounds_hold_without_any_incumbent(kind):
    """Every offer is refused (all samples would have to pay nothing), so nothing but the boxes makes the bound."""
    useful = 0
    for seed in range(24):
        loss = LOSSES[seed % 4]
        problem = two_class_problem([seed, 9], 6, 2, loss, kind, 2, log_C=(-1.0, 2.0))
        truth = optimum_l2(problem.space.X, problem.signs, problem.costs, loss)
        reduction, search = box_search(problem, 0.0)
        search.model = search.model._replace(given=np.full_like(search.model.given, TOP))
        constant = float(search.best.value[0])
        before = 0.0
        for _ in range(20):
            search.run(Budget(work=100))
            bound = reduction.unit * search.bound
            assert before <= bound <= truth * (1.0 + 1e-8)
            before = bound
        assert search.best.value[0] <= constant
        useful += truth < 0.95 * reduction.unit * constant and before >= 0.98 * truth
    assert useful >= 4


@pytest.mark.parametrize("norm", [2, 1])
def test_dense_samples_leave_no_room_for_a_near_miss(norm):
    """Only the value of the optimum is known beforehand: what confines a margin too much would cut the optimum off."""
    for seed, loss in enumerate([*LOSSES, TruncatedReject(0.2, -1.0)]):
        problem = two_class_problem([seed, norm], 40, 2, loss, "plain", norm, log_C=(-1.0, 1.5))
        model = make_model(reduce(problem), loss)
        other, scratch = first_incumbent(model, [])
        tree = TreeSearch(model, other, scratch, Options(gap_tol=1e-8))
        tree.run(Budget(work=200_000))
        best, _ = given_incumbent(model, [])
        best.value[0] = min(best.value[0], other.value[0] * (1.0 + 1e-6))
        search = BoxSearch(model, best, Options(gap_tol=1e-8))
        search.run(Budget(work=500_000))
        assert search.done
        assert best.value[0] <= other.value[0] * (1.0 + 1e-8)
        assert best.value[0] >= tree.bound * (1.0 - 1e-8)


def test_the_plane_is_proved_through_the_front_door():
    problem = two_class_problem(4, 150, 2, TruncatedHinge(-0.5), C=3.0)
    result = mip.solve(problem, Options(gap_tol=1e-6, time_limit=60.0))
    assert result.status is Status.OPTIMAL
    assert result.certificate.engine == "psilearn"


def test_who_is_enumerated_how():
    for loss, d, suits in (
        (TruncatedHinge(-0.5), 2, True),
        (TruncatedHinge(-0.5), 1, True),
        (TruncatedHinge(-0.5), 4, False),
        (Psi(1.0), 1, False),
        (HardMargin(), 1, False),
    ):
        model = make_model(reduce(two_class_problem(0, 9, d, loss)), loss)
        assert suits_boxes(model) is suits
        assert plane_search(model) is (BoxSearch if suits else None)
