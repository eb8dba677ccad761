"""The search over violated sets against enumeration, the other searches, and its own promises."""

import itertools
import math

import numpy as np
import pytest

from psilearn.core import _jit as compiling
from psilearn.core.losses import HardMargin, Psi, TruncatedHinge
from psilearn.core.penalties import Penalty
from psilearn.core.problem import Problem
from psilearn.core.result import Status
from psilearn.core.solving import Options
from psilearn.exact.search import Budget
from psilearn.exact.two_class import solver as mip
from psilearn.exact.two_class.incumbent import first_incumbent
from psilearn.exact.two_class.model import make_model
from psilearn.exact.two_class.reduction import reduce
from psilearn.exact.two_class.tree.search import TreeSearch
from psilearn.exact.two_class.violations import lifted_jit as lifted
from psilearn.exact.two_class.violations.search import ViolationSearch, make_lifted, suits_violations

from oracles.exact_reference import least_penalty
from oracles.samples import two_class_problem


@compiling.kernel
def proved_with_signs(problem, iterate, w):
    """Dual value of the lifted problem with the signs of ``iterate``, and its s; (-1, 0) if it is not solved."""
    lifted.lift(problem, iterate)
    if not lifted.descend(problem, iterate, 1000):
        return -1.0, 0.0
    return lifted.proved_value(problem, iterate, w), iterate.x[iterate.x.size - 1]


KINDS = ["plain", "ties", "contradictions", "lonely class", "scale", "weights"]


def make_problem(rng, kind, n, d, loss=None):
    return two_class_problem(rng, n, d, loss or HardMargin(), kind, log_C=(-1.5, 3.5))


def enumerated_optimum(problem, forced=()):
    """Least objective over all sets of at most d + 1 support vectors, and over the constants.

    The optimum is the hard margin of the samples it satisfies, hence the shortest w whose margin is one on some set of
    independent support vectors. ``forced`` samples must be satisfied.
    """
    X, y, costs = np.asarray(problem.space.X), problem.signs, problem.costs
    scale = np.abs(X).max() or 1.0
    X = (X - X.mean(axis=0)) / scale
    n, d = X.shape
    points = [(np.zeros((2, d)), np.array([1.0, -1.0]))]
    for size in range(2, d + 2):
        sets = np.array(list(itertools.combinations(range(n), size)))
        A, s = X[sets] * y[sets][:, :, None], y[sets]
        system = np.zeros((len(sets), size + 1, size + 1))
        system[:, :size, :size] = A @ A.transpose(0, 2, 1)
        system[:, :size, size] = system[:, size, :size] = s
        right = np.append(np.ones(size), 0.0)
        solution = np.linalg.pinv(system, rcond=1e-11) @ right
        points.append((np.einsum("kif,ki->kf", A, solution[:, :size]), solution[:, size]))
    W, b = np.concatenate([w for w, _ in points]), np.concatenate([b for _, b in points])
    margins = (W @ X.T + b[:, None]) * y
    violated = margins < 1.0 - 1e-7
    values = 0.5 * np.sum(W * W, axis=1) / scale**2 + violated @ costs
    values[violated[:, list(forced)].any(axis=1)] = np.inf
    return float(values.min())


def start_search(problem, exclusive, given=None, points=(), **values):
    reduction = reduce(problem)
    model = make_model(reduction, problem.loss, given)
    best, _ = first_incumbent(model, points)
    options = Options(gap_tol=1e-7, settings=(mip.Settings(exclusive=exclusive, **values),))
    return reduction, best, ViolationSearch(model, best, options)


@pytest.mark.parametrize("exclusive", [True, False], ids=["exclusive", "proper"])
@pytest.mark.parametrize("kind", KINDS)
def test_equal_to_enumeration_and_honest_before_the_end(kind, exclusive):
    for seed in range(100):
        rng = np.random.default_rng([seed, KINDS.index(kind)])
        problem = make_problem(rng, kind, int(rng.integers(4, 10)), int(rng.integers(1, 4)))
        truth = enumerated_optimum(problem)
        reduction, best, search = start_search(problem, exclusive)
        for steps in (1, 4, math.inf):
            search.run(Budget(work=steps))
            assert reduction.unit * search.bound <= truth * (1 + 1e-9)
        assert search.done
        assert reduction.unit * best.value[0] == pytest.approx(truth, rel=1e-6)
        assert reduction.unit * search.bound >= truth * (1 - 1e-6)


@pytest.mark.parametrize("exclusive", [True, False], ids=["exclusive", "proper"])
def test_given_samples_are_kept(exclusive):
    for seed in range(30):
        rng = np.random.default_rng([seed, 77])
        problem = make_problem(rng, "plain", 8, 2)
        reduction = reduce(problem)
        given = np.zeros(reduction.n, np.int8)
        forced = [int(np.flatnonzero(problem.signs > 0)[0]), int(np.flatnonzero(problem.signs < 0)[0])]
        given[reduction.group[forced]] = 1
        truth = enumerated_optimum(problem, forced)
        right, wrong = reduction.z[reduction.group[forced]]
        v = 2.0 * (right - wrong) / np.sum((right - wrong) ** 2)
        point = (v, -0.5 * float(v @ (right + wrong)))
        _, best, search = start_search(problem, exclusive, given, [point])
        search.run(Budget())
        assert reduction.unit * best.value[0] == pytest.approx(truth, rel=1e-6)


@pytest.mark.parametrize("exclusive", [True, False], ids=["exclusive", "proper"])
@pytest.mark.parametrize("d", [2, 4, 7, 10])
def test_equal_to_the_tree(d, exclusive):
    for seed in range(6):
        rng = np.random.default_rng([seed, d])
        problem = make_problem(rng, KINDS[seed], 20 + 2 * (seed % 3), d)
        reduction, best, search = start_search(problem, exclusive)
        search.run(Budget())
        assert search.done
        model = make_model(reduction, problem.loss)
        other, scratch = first_incumbent(model, [])
        tree = TreeSearch(model, other, scratch, Options(gap_tol=1e-7))
        tree.run(Budget())
        assert search.bound <= other.value[0] * (1 + 1e-9)
        assert tree.bound <= best.value[0] * (1 + 1e-9)
        if tree.done:
            assert best.value[0] == pytest.approx(other.value[0], rel=1e-6)


def test_no_memory_means_an_honest_bound():
    problem = make_problem(np.random.default_rng(3), "plain", 40, 6)
    _, _, search = start_search(problem, True, memory=1.0)
    search.run(Budget())
    _, other, full = start_search(problem, True)
    full.run(Budget())
    assert full.done
    assert search.bound <= other.value[0] * (1 + 1e-9)


def test_the_normal_form_decides():
    rng = np.random.default_rng(0)
    for loss, norm, taken in [(HardMargin(), 2, True), (HardMargin(), 1, False), (Psi(1.0), 2, False)]:
        problem = make_problem(rng, "plain", 8, 2, loss)
        penalty = Penalty(l2=1.0) if norm == 2 else Penalty(l1=1.0)
        problem = Problem(problem.space, problem.y, 2, loss, penalty, 1.0, np.ones(8))
        assert suits_violations(make_model(reduce(problem), loss)) is taken


@pytest.mark.parametrize("loss", [HardMargin(), TruncatedHinge(-0.5)], ids=str)
def test_all_searches_in_small_slices(loss):
    short = mip.Settings(first_slice_seconds=1e-4, slice_seconds=2e-3)
    for seed in range(3):
        problem = make_problem(np.random.default_rng(seed), "weights", 14, 2, loss)
        result = mip.solve(problem, Options(gap_tol=1e-7, settings=(short,)))
        assert result.status is Status.OPTIMAL
        if isinstance(loss, HardMargin):
            assert result.objective == pytest.approx(enumerated_optimum(problem), rel=1e-6)


@pytest.mark.parametrize("exclusive", [True, False], ids=["exclusive", "proper"])
def test_the_optimum_is_found_even_where_the_ceiling_is_hardly_above_it(exclusive):
    """A good incumbent hides wrong bounds; here only its value is known, so one who prunes too much finds nothing."""
    for seed in range(150):
        rng = np.random.default_rng([seed, 5])
        kind, d = KINDS[seed % len(KINDS)], int(rng.integers(1, 5))
        problem = make_problem(rng, kind, int(rng.integers(8, 15)), d)
        truth = enumerated_optimum(problem)
        reduction, best, search = start_search(problem, exclusive)
        best.value[0] = truth / reduction.unit * (1.0 + 1e-5)
        best.u[:] = rng.normal(size=reduction.n)
        search.run(Budget())
        assert reduction.unit * best.value[0] == pytest.approx(truth, rel=1e-7)
        assert reduction.unit * search.bound == pytest.approx(truth, rel=1e-6)


@pytest.mark.parametrize("d", [2, 3, 5])
def test_samples_left_out_confine_the_others_rightly(d):
    """Deep states with reversed samples, against the proper search, which has none; again only a ceiling is known."""
    for seed in range(12):
        rng = np.random.default_rng([seed, d, 9])
        problem = make_problem(rng, KINDS[seed % 2 * 5], 34 - 2 * d, d)
        reduction, best, search = start_search(problem, False)
        search.run(Budget())
        assert search.done
        truth = float(best.value[0])
        _, best, search = start_search(problem, True)
        best.value[0] = truth * (1.0 + 1e-5)
        best.u[:] = rng.normal(size=reduction.n)
        search.run(Budget())
        assert best.value[0] == pytest.approx(truth, rel=1e-7)
        assert search.bound == pytest.approx(truth, rel=1e-6)


def test_reversed_rows_are_proved_by_weak_duality():
    used = 0
    for seed in range(120):
        rng = np.random.default_rng([seed, 13])
        problem = make_problem(rng, "plain", 7, int(rng.integers(2, 4)))
        model = make_model(reduce(problem), problem.loss)
        n, d = model.a.shape
        sign = np.append(np.where(rng.random(n) < 0.4, -1.0, 1.0), 1.0)
        truth = least_penalty(np.column_stack([model.a, model.y]) * sign[:n, None], sign[:n])
        iterate = lifted.make_iterate(n + 1, d + 2)
        iterate.sign[:] = sign
        value, s = proved_with_signs(make_lifted(model, np.full(n, 0.5), 1e6), iterate, np.zeros(d))
        assert value >= 0.0
        if truth is not None and 1e-9 < truth < np.inf:
            assert value <= truth * (1 + 1e-6)
            if s <= 1e-12:
                assert value == pytest.approx(truth, rel=1e-5)
                members, multiplier = iterate.members[: iterate.size[0]], iterate.multiplier[: iterate.size[0]]
                used += bool(np.any(multiplier[sign[members] < 0.0] > 1e-9))
    assert used >= 10
