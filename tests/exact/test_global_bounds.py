"""Bounds of the global solvers on thousands of tiny instances: no bound may exceed anything that was ever found."""

import importlib
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from psilearn.core.losses import HardMargin, Psi, TruncatedHinge, TruncatedReject
from psilearn.core.penalties import Penalty
from psilearn.core.problem import Problem
from psilearn.core.result import Status
from psilearn.core.solving import Options
from psilearn.core.spaces import LinearSpace
from psilearn.exact.k_class import cones, outer, patterns
from psilearn.exact.sample_state_jit import TOP
from psilearn.exact.search import Budget
from psilearn.exact.two_class import solver as mip
from psilearn.exact.two_class.incumbent import given_incumbent
from psilearn.exact.two_class.model import make_model
from psilearn.exact.two_class.plane.search import LineSearch
from psilearn.exact.two_class.reduction import reduce
from psilearn.exact.two_class.tree.search import TreeSearch

from oracles.one_feature import exact_optimum
from oracles.samples import two_class_problem

registry = importlib.import_module("psilearn.solvers")

LOSSES = [Psi(2.0), TruncatedHinge(0.0), TruncatedHinge(-0.5), TruncatedReject(0.2, -1.0)]
GAP = 1e-3


def instance(rng, k, d, kind):
    """Random tiny data of one kind; C over five orders of magnitude."""
    n = int(rng.integers(3, 7))
    X = rng.normal(size=(n, d))
    if kind == "grid":  # duplicated and contradictory points, parallel cuts
        X = np.round(X)
    elif kind == "collinear":
        X = rng.normal(size=(n, 1)) * rng.normal(size=d) + rng.normal(size=d)
    elif kind == "huge":
        X *= 1e4
    elif kind == "tiny":
        X *= 1e-4
    y = rng.integers(0, k, n).astype(np.intp)
    weights = rng.choice([0.5, 1.0, 2.0], n)
    loss = LOSSES[int(rng.integers(len(LOSSES)))]
    return Problem(LinearSpace(X), y, k, loss, Penalty(l2=1.0), 10.0 ** rng.uniform(-2, 3), weights)


def sampled_minimum(problem, rng):
    """Best objective of random directions in many lengths."""
    m, d = problem.n_functions, problem.space.dim
    size = 1.0 / np.abs(problem.space.X).max(initial=1e-12)
    best = np.inf
    for length in 10.0 ** np.linspace(-2, 2, 5):
        W, b = rng.normal(size=(m, d)) * length * size, rng.normal(size=m) * length
        if m > 1:
            W, b = W - W.mean(axis=0), b - b.mean()
        best = min(best, problem.value(W, b))
    return best


@pytest.mark.parametrize("kind", ["plain", "grid", "collinear", "huge", "tiny"])
@pytest.mark.parametrize(("k", "d", "count"), [(2, 1, 250), (2, 2, 120), (3, 1, 30)])
def test_no_bound_exceeds_what_was_found(k, d, count, kind):
    rng = np.random.default_rng([k, d, len(kind)])
    for _ in range(count):
        problem = instance(rng, k, d, kind)
        solvers = [s for s in (outer, patterns, cones) if s.TAKES.refusal(problem) is None]
        results = [s.solve(problem, Options(gap_tol=GAP)) for s in solvers]
        least = min(sampled_minimum(problem, rng), *(result.objective for result in results))
        for result in results:
            assert result.status is Status.OPTIMAL
            assert result.lower_bound <= least + 1e-7 * problem.zero_value
            assert result.objective <= least + 2 * GAP * least + 1e-7 * problem.zero_value
            assert result.objective == problem.value(result.coef, result.intercept)


def deaf(kind):
    """Return the search without any incumbent but the best constant: an optimal incumbent hides a wrong bound."""
    return type(f"Deaf{kind.__name__}", (kind,), {"offer": lambda search, theta: None})


@pytest.mark.parametrize("kind", [cones.ConeSearch, patterns.PatternSearch, outer.OuterSearch])
def test_bounds_hold_without_good_incumbents(kind):
    rng = np.random.default_rng(7)
    tight = 0
    for _ in range(25):
        problem = replace(instance(rng, 2, 1, "plain"), loss=Psi(2.0))
        optimum = float(exact_optimum(problem))
        bound = deaf(kind)(problem, Options(gap_tol=GAP, max_iter=400)).run().lower_bound
        assert bound <= optimum * (1 + 1e-15)
        tight += problem.best_constant()[0] > 1.1 * optimum and bound >= 0.97 * optimum
    assert tight >= 3


def extreme(rng):
    """One feature, perhaps far from 0 or in odd units, weights over up to 14 decades, C up to 1e8."""
    n = int(rng.integers(3, 8))
    X = rng.normal(size=(n, 1)) * rng.choice([1e-4, 1.0, 1e4]) + rng.choice([0.0, 1.0, 1e3, 1e6, 1e8])
    y = rng.integers(0, 2, n) if rng.random() < 0.5 else X[:, 0] > np.median(X)
    weights = 10.0 ** rng.uniform(-rng.choice([0, 3, 8, 14]), 0, n)
    loss = [Psi(2.0), TruncatedHinge(0.0), TruncatedHinge(-0.5), TruncatedReject(0.2, 0.0)][int(rng.integers(4))]
    penalty = Penalty(l1=1.0) if rng.random() < 0.2 else Penalty(l2=1.0)
    return Problem(LinearSpace(X), y.astype(np.intp), 2, loss, penalty, 10.0 ** rng.choice([0, 2, 4, 6, 8]), weights)


@pytest.mark.parametrize("kind", [cones.ConeSearch, patterns.PatternSearch, outer.OuterSearch])
def test_no_bound_exceeds_the_exact_optimum_of_extreme_data(kind):
    """The truth is a rational number; with and without incumbents no bound lies above it by more than an ulp or two."""
    rng = np.random.default_rng(5)
    proved = 0
    for _ in range(80):
        problem = extreme(rng)
        if kind.takes.refusal(problem) is not None:
            continue
        optimum = exact_optimum(problem)
        for search in (kind, deaf(kind)):
            result = search(problem, Options(gap_tol=1e-6, max_iter=300)).run()
            assert Fraction(result.lower_bound) <= optimum * (1 + Fraction(1, 2**51))
            proved += result.status is Status.OPTIMAL
    assert proved >= 60


@pytest.mark.parametrize("tightened", [False, True])
@pytest.mark.parametrize("kind", ["plain", "grid", "collinear", "huge", "tiny"])
def test_bounds_of_the_tree_hold_without_any_incumbent(kind, tightened):
    """Every offer is refused (all samples must pay nothing, which is impossible), so the bounds stand alone.

    Nothing is ever cut off by a good incumbent then, and the smallest bound left behind is the optimum itself.
    """
    losses = [Psi(0.5), Psi(2.0), TruncatedHinge(-0.5), HardMargin()]
    rng = np.random.default_rng(11 + tightened)
    for case in range(120):
        problem = replace(instance(rng, 2, 2, kind), loss=losses[case % 4])
        X = np.vstack([problem.space.X, problem.space.X[:1]])  # a contradiction
        y, weights = np.append(problem.y, 1 - problem.y[0]), np.append(problem.weights, 1.0)
        size = float(np.abs(X).max()) ** 2 or 1.0
        problem = replace(problem, space=LinearSpace(X), y=y, weights=weights, C=problem.C / size)
        reduction = reduce(problem)
        model = make_model(reduction, problem.loss)
        constant, scratch = given_incumbent(model, [])
        search = TreeSearch(model, constant, scratch, Options(gap_tol=0.0))
        if tightened:
            search.tighten_root(Budget())
        search.tightened_at = 0.0
        search.model = model._replace(given=np.full_like(model.given, TOP))
        search.run(Budget())
        optimum = mip.solve(problem, Options(gap_tol=1e-8, time_limit=20.0)).objective
        assert constant.value[0] == given_incumbent(model, [])[0].value[0]
        assert reduction.unit * search.bound == pytest.approx(optimum, rel=1e-6)


@pytest.mark.parametrize("loss", [Psi(1.0), TruncatedHinge(0.0)], ids=repr)
def test_tightened_nodes_hold_the_optimum_of_the_plane(loss):
    """A value a little above the optimum, but no solution of it: what confines a margin too much cuts off the optimum.

    The truth is found by lines.
    """
    for seed in range(12):
        model = make_model(reduce(two_class_problem([seed, 5], 40, 2, loss)), loss)
        best, scratch = given_incumbent(model, [])
        LineSearch(model, best, Options(gap_tol=1e-9)).run(Budget())
        optimum = float(best.value[0])
        best.value[0], best.u[:] = 1.02 * optimum, -np.inf  # margins that are in no node
        search = TreeSearch(model, best, scratch, Options(gap_tol=0.0))
        search.tighten_root(Budget())
        search.tightened_at = 0.0  # not again: the states given would mislead it
        search.model = model._replace(given=np.full_like(model.given, TOP))
        search.run(Budget(work=20_000))
        assert search.done
        assert best.value[0] == 1.02 * optimum
        assert search.bound == pytest.approx(optimum, rel=1e-6)


@pytest.mark.parametrize(
    ("k", "d", "loss", "name"),
    [
        (2, 3, Psi(2.0), "mip"),
        (3, 1, Psi(2.0), "cones"),
        (4, 1, Psi(2.0), "cones"),
        (3, 5, Psi(2.0), "patterns"),
        (3, 1, TruncatedHinge(-0.5), "outer"),
        (3, 2, TruncatedHinge(-0.5), "patterns"),
        (3, 1, Psi(1.0), "patterns"),
    ],
)
def test_auto_takes_the_fastest_that_certifies(k, d, loss, name):
    problem = nine_points(k, d, loss)
    assert registry.choose_exact(problem) == name
    assert registry.takes(name, problem)


@pytest.mark.parametrize("loss", [Psi(2.0), TruncatedHinge(-0.5)], ids=repr)
def test_auto_with_a_time_limit_proves_small_problems(loss):
    problem = nine_points(3, 1, loss)
    result = registry.solve(problem, "auto", Options(gap_tol=GAP, time_limit=1000.0))
    assert result.status is Status.OPTIMAL
    assert result.gap <= GAP * (1 + 1e-6)
    assert result.lower_bound <= patterns.solve(problem, Options(gap_tol=GAP)).objective


def nine_points(k, d, loss):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(9, d)), np.arange(9, dtype=np.intp) % k
    return Problem(LinearSpace(X), y, k, loss, Penalty(l2=1.0), 1.0, np.ones(9))


@pytest.mark.parametrize("d", [1, 5])
def test_elastic_nets_are_searched_where_there_is_time(d):
    rng = np.random.default_rng(d)
    X = rng.normal(size=(10, d))
    y = (X[:, 0] + rng.normal(size=10) > 0).astype(np.intp)
    problem = Problem(LinearSpace(X), y, 2, TruncatedHinge(0.0), Penalty(l2=0.7, l1=0.3), 1.0, np.ones(10))
    result = registry.solve(problem, "auto", Options(gap_tol=GAP, time_limit=60.0))
    assert result.status is Status.OPTIMAL
    if d == 1:
        assert Fraction(result.lower_bound) <= exact_optimum(problem) * (1 + Fraction(1, 10**9))
        assert result.objective <= float(exact_optimum(problem)) * (1.0 + 2 * GAP)
    assert result.lower_bound <= sampled_minimum(problem, rng)
