"""Global solvers for truncated losses against brute force over patterns, each other, and an engine."""

import itertools
import sys
from dataclasses import replace

import clarabel
import numpy as np
import pytest
import scipy.sparse as sp

from benchmarks.runner.scip_multiclass import solve_multiclass_mip
from psilearn.core.losses import HardMargin, Hinge, Psi, TruncatedHinge, TruncatedReject
from psilearn.core.penalties import Penalty
from psilearn.core.problem import Problem
from psilearn.core.result import Claim, Status
from psilearn.core.solving import Options
from psilearn.core.spaces import KernelSpace, LinearSpace
from psilearn.exact.k_class import cones, outer, patterns
from psilearn.exact.k_class.coordinates import Coordinates, sum_to_zero_basis
from psilearn.exact.k_class.polyhedron import Polyhedron

SEARCHES = {outer: outer.OuterSearch, patterns: patterns.PatternSearch, cones: cones.ConeSearch}
CONTINUOUS = [Psi(2.0), TruncatedHinge(0.0), TruncatedHinge(-0.5), TruncatedReject(0.2, -1.0)]


def tiny(seed, k, d, n, loss, C=1.0, scale=1.0):
    """Random labels and weights, some duplicated points, every kind of degeneracy small data has."""
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(n, d)), 1) * scale
    X[-1] = X[0]
    y = rng.integers(0, k, n)
    weights = rng.choice([0.5, 1.0, 2.0], n)
    return Problem(LinearSpace(X), y.astype(np.intp), k, loss, Penalty(l2=1.0), C, weights)


def best_for_pattern(problem, capped):
    """Convex optimum when ``capped`` samples pay the cap and the others g (inf: impossible), by Clarabel."""
    X, y, k, loss = problem.space.X, problem.y, problem.n_classes, problem.loss
    m, d = problem.n_functions, X.shape[1]
    n_coef = m * (d + 1)
    rows, rhs, groups = [], [], 0
    paid = [i for i in range(problem.n) if not capped[i]]
    cost = []
    for i in paid:
        x = np.append(X[i], 1.0)
        directions = []
        for j in [None] if k == 2 else [j for j in range(k) if j != y[i]]:
            a = np.zeros((m, d + 1))
            if k == 2:
                a[0] = problem.signs[i] * x
            else:
                a[y[i]], a[j] = x, -x
            directions.append(a.ravel())
        for c, t in loss.hinges:
            rows += [(a, groups) for a in directions]
            rhs += [t] * len(directions)
            groups += 1
            cost.append(problem.costs[i] * c)
        if not loss.is_continuous:  # believed samples must be on the good side of the jump
            rows += [(a, None) for a in directions]
            rhs += [loss.t] * len(directions)
    Q = np.zeros(n_coef + groups)
    Q[:n_coef] = np.tile(np.append(np.ones(d), 0.0), m) * problem.penalty.l2
    A, b, cones = [], [], []
    if k > 2:
        equal = np.zeros((d + 1, n_coef + groups))
        for j in range(k):
            equal[:, j * (d + 1) : (j + 1) * (d + 1)] = np.eye(d + 1)
        A.append(equal)
        b.append(np.zeros(d + 1))
        cones.append(clarabel.ZeroConeT(d + 1))
    hinge = np.zeros((len(rows), n_coef + groups))
    for r, (a, g) in enumerate(rows):
        hinge[r, :n_coef] = -a
        if g is not None:
            hinge[r, n_coef + g] = -1.0
    sign = np.zeros((groups, n_coef + groups))
    sign[:, n_coef:] = -np.eye(groups)
    A += [hinge, sign]
    b += [-np.array(rhs), np.zeros(groups)]
    cones.append(clarabel.NonnegativeConeT(len(rows) + groups))
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    c = np.append(np.zeros(n_coef), cost)
    solver = clarabel.DefaultSolver(
        sp.csc_matrix(np.diag(Q)), c, sp.csc_matrix(np.vstack(A)), np.concatenate(b), cones, settings
    )
    answer = solver.solve()
    if "Infeasible" in str(answer.status):
        return np.inf
    assert "Solved" in str(answer.status)
    return answer.obj_val + problem.costs[np.asarray(capped)].sum() * loss.cap


def brute_force(problem):
    patterns = itertools.product([False, True], repeat=problem.n)
    return min(best_for_pattern(problem, np.array(z)) for z in patterns)


def solved_to_truth(solver, problem, gap, rel, abs_):
    """Solve, and hold the result against brute force."""
    truth = brute_force(problem)
    result = solver.solve(problem, Options(gap_tol=gap))
    assert result.status is Status.OPTIMAL
    assert result.certificate.claim is Claim.GLOBAL
    assert result.lower_bound <= truth + abs_ * max(1.0, truth)
    assert result.objective == pytest.approx(truth, rel=rel, abs=abs_)
    assert result.objective == problem.value(result.coef, result.intercept)
    return result


@pytest.mark.parametrize("loss", CONTINUOUS, ids=repr)
@pytest.mark.parametrize(("k", "d", "n"), [(2, 1, 6), (2, 2, 6), (3, 1, 6), (4, 1, 5)])
def test_outer_equals_brute_force(k, d, n, loss):
    for seed, C in [(0, 1.0), (1, 10.0)]:
        result = solved_to_truth(outer, tiny(seed, k, d, n, loss, C), 1e-4, 2e-4, 1e-7)
        assert result.certificate.rechecked


@pytest.mark.parametrize("loss", [Psi(2.0), TruncatedHinge(0.0), TruncatedReject(0.2, 0.0)], ids=repr)
@pytest.mark.parametrize(("k", "d", "n"), [(2, 1, 6), (2, 2, 6), (3, 1, 6), (4, 1, 5)])
def test_cones_equal_brute_force(k, d, n, loss):
    for seed, C in [(0, 1.0), (1, 10.0)]:
        solved_to_truth(cones, tiny(seed, k, d, n, loss, C), 1e-4, 2e-4, 1e-7)


@pytest.mark.parametrize("loss", [*CONTINUOUS, Psi(1.0), Psi(0.3), HardMargin()], ids=repr)
@pytest.mark.parametrize(("k", "d", "n"), [(2, 2, 6), (3, 1, 6), (3, 2, 5), (4, 1, 5)])
def test_patterns_equal_brute_force(k, d, n, loss):
    for seed, C in [(0, 1.0), (1, 10.0), (2, 0.1)]:
        solved_to_truth(patterns, tiny(seed, k, d, n, loss, C), 1e-5, 3e-5, 1e-6)


@pytest.mark.parametrize("loss", [Psi(2.0), Psi(1.0), HardMargin()], ids=repr)
@pytest.mark.parametrize("k", [2, 3])
def test_repeated_and_contradictory_points(k, loss):
    """Points on a coarse grid: the same point twice in one class, and in two classes."""
    for seed in range(4):
        problem = tiny(seed, k, 1, 6, loss, C=10.0)
        problem = replace(problem, space=LinearSpace(np.round(problem.space.X)))
        solved_to_truth(patterns, problem, 1e-5, 3e-5, 1e-6)


def test_outer_where_the_convex_relaxation_is_already_tight():
    """The set that the relaxation leaves is a single point; it must not be lost to rounding."""
    problem = tiny(5791, 2, 3, 6, TruncatedReject(0.2, -1.0), C=0.2069, scale=0.001)
    result = outer.solve(problem, Options(gap_tol=1e-3))
    assert result.status is Status.OPTIMAL
    assert result.lower_bound <= patterns.solve(problem, Options(gap_tol=1e-5)).objective


@pytest.mark.parametrize("solver", [outer, patterns, cones])
@pytest.mark.parametrize("k", [2, 3])
def test_one_class_only_costs_nothing(solver, k):
    X = 1200.0 * np.array([[1.0], [-0.6], [-0.4], [1.0]])
    problem = Problem(LinearSpace(X), np.zeros(4, dtype=np.intp), k, Psi(2.0), Penalty(l2=1.0), 0.004, np.ones(4))
    result = solver.solve(problem, Options())
    assert result.status is Status.OPTIMAL
    assert result.objective < 1e-16


@pytest.mark.parametrize("loss", [Psi(2.0), TruncatedHinge(-0.5)], ids=repr)
@pytest.mark.parametrize(("k", "d"), [(2, 1), (2, 2), (3, 1)])
def test_bounds_hold_on_many_random_instances(k, d, loss):
    """Three independent searches: no bound may exceed any objective."""
    for seed in range(60 if k == 2 else 12):
        rng = np.random.default_rng(seed)
        problem = tiny(
            seed, k, d, int(rng.integers(4, 14)), loss, C=10.0 ** rng.uniform(-2, 3), scale=10.0 ** (seed % 3)
        )
        first = outer.solve(problem, Options(gap_tol=1e-3))
        results = [first, patterns.solve(problem, Options(gap_tol=1e-3))]
        if cones.TAKES.refusal(problem) is None:
            results.append(cones.solve(problem, Options(gap_tol=1e-3)))
        least = min(result.objective for result in results)
        for result in results:
            assert result.status is Status.OPTIMAL
            assert result.lower_bound <= least + 1e-6 * max(least, 1e-6)


def test_both_searches_equal_the_mip():
    for seed, (k, d) in enumerate([(2, 2), (3, 1), (4, 1)]):
        problem = tiny(seed, k, d, 8, Psi(2.0))
        at = Coordinates.of(problem)
        found = patterns.solve(problem, Options(gap_tol=1e-4))
        box = at.box(found.objective)
        low = -np.abs(at.rows).max(axis=1) @ box[1]
        loss = problem.loss
        answer = solve_multiclass_mip(
            at.rows, problem.costs, loss.hinges, loss.t, loss.cap, False, at.curvature, box, low, 1e-6, 60.0
        )
        assert answer.is_optimal
        assert problem.value(*at.unpack(answer.theta)) == pytest.approx(found.objective, rel=2e-4)
        assert found.lower_bound <= problem.value(*at.unpack(answer.theta)) * (1 + 1e-9)
        assert outer.solve(problem, Options(gap_tol=1e-4)).objective == pytest.approx(found.objective, rel=2e-4)


@pytest.mark.parametrize("solver", [outer, patterns, cones])
def test_l1_penalty(solver):
    """One class, two coefficients: the optimum of l1 + psi by a fine grid."""
    from dataclasses import replace

    problem = replace(tiny(3, 2, 1, 8, Psi(2.0)), penalty=Penalty(l1=1.0))
    result = solver.solve(problem, Options(gap_tol=1e-4))
    w, b = np.meshgrid(np.linspace(-8, 8, 641), np.linspace(-8, 8, 641))
    margins = problem.signs[:, None, None] * (problem.space.X[:, 0][:, None, None] * w + b)
    grid = np.abs(w) + np.tensordot(problem.costs, problem.loss.value(margins), 1)
    assert result.lower_bound <= grid.min()
    assert result.objective <= grid.min() + 1e-9
    assert grid.min() <= result.objective + 0.3


@pytest.mark.parametrize("solver", [outer, patterns, cones])
def test_limits_return_an_honest_incumbent(solver):
    problem = tiny(5, 3, 1, 14, Psi(2.0))
    full = solver.solve(problem, Options(gap_tol=1e-3))
    cut = solver.solve(problem, Options(gap_tol=1e-3, max_iter=2))
    assert cut.status is Status.ITERATION_LIMIT
    assert cut.lower_bound <= full.objective
    assert cut.objective >= full.lower_bound
    late = solver.solve(problem, Options(time_limit=0.0))
    assert late.status is Status.TIME_LIMIT
    assert late.n_iter == 0
    handed = solver.solve(problem, Options(gap_tol=1e-3), start=full)
    assert handed.objective <= full.objective


@pytest.mark.parametrize("calls", [1, 2, 3, 5, 9, 14])
@pytest.mark.parametrize("solver", [outer, patterns, cones])
def test_an_interrupt_returns_the_incumbent_and_what_is_proved(solver, calls):
    """Ctrl-C in the preamble, in the first parts, and later: never an exception, never a bound above the optimum."""
    problem = tiny(5, 3, 1, 14, Psi(2.0))
    optimum = patterns.solve(problem, Options(gap_tol=1e-6)).objective
    left = iter(range(calls - 1))

    def polish(same, W, b):
        if next(left, None) is None:
            raise KeyboardInterrupt
        return W, b

    result = solver.solve(problem, Options(gap_tol=1e-3, settings=(solver.Settings(polish=polish),)))
    assert result.status is Status.INTERRUPTED
    assert result.objective == problem.value(result.coef, result.intercept)
    assert result.lower_bound <= optimum * (1 + 1e-9)
    if calls >= 9 and solver is not outer:
        assert result.lower_bound > 0


def interrupted_at(line, search):
    """Run a search, interrupted at this line of its own Python code; returns (result, lines that were run)."""
    count = 0

    def trace(frame, event, arg):
        nonlocal count
        if "k_class" not in frame.f_code.co_filename or frame.f_code.co_name in ("run", "_result", "_proof"):
            return None
        count += event == "line"
        if count == line:
            sys.settrace(None)
            raise KeyboardInterrupt
        return trace

    sys.settrace(trace)
    try:
        return search.run(), count
    finally:
        sys.settrace(None)


@pytest.mark.parametrize("solver", [outer, patterns, cones])
def test_an_interrupt_at_any_line_leaves_a_valid_bound(solver):
    problem, options = tiny(1, 3, 1, 9, Psi(2.0)), Options(gap_tol=1e-3)
    optimum = patterns.solve(problem, Options(gap_tol=1e-6)).objective
    lines = interrupted_at(-1, SEARCHES[solver](problem, options))[1]
    bounds = []
    for line in np.linspace(1, lines, 50).astype(int):
        result, _ = interrupted_at(line, SEARCHES[solver](problem, options))
        assert result.status is Status.INTERRUPTED
        assert result.lower_bound <= optimum * (1 + 1e-9)
        bounds.append(result.lower_bound)
    assert max(bounds) > 0.9 * optimum


@pytest.mark.parametrize("solver", [outer, patterns, cones])
def test_a_polish_that_is_handed_in_is_used(solver):
    problem, calls = tiny(5, 3, 1, 10, Psi(2.0)), []

    def polish(same, W, b):
        calls.append(same is problem)
        return W, b

    result = solver.solve(problem, Options(gap_tol=1e-2, settings=(solver.Settings(polish=polish),)))
    assert result.status is Status.OPTIMAL
    assert calls
    assert all(calls)


@pytest.mark.parametrize("p", [1, 2, 3, 4])
def test_vertices_equal_qhull(p):
    from scipy.spatial import HalfspaceIntersection

    rng = np.random.default_rng(p)
    polyhedron = Polyhedron(-np.ones(p), np.ones(p), -5.0)
    for i in range(30):
        x = rng.normal(size=p)
        h, h0 = np.append(1.0, -x), -0.5 * x @ x
        if i % 7 == 6:
            h, h0 = np.append(0.0, x), -0.9 * np.linalg.norm(x)
        assert polyhedron.cut(h, h0, 1e-9) is not None
    facets = np.column_stack([-polyhedron.H, polyhedron.h0])[: polyhedron.n_facets]
    lid = np.append(np.eye(1, p + 1), -100.0)
    inside = np.append(50.0, np.zeros(p))
    found = HalfspaceIntersection(np.vstack([facets, lid]), inside).intersections
    found = np.unique(np.round(found[found[:, 0] < 99], 6), axis=0)
    alive = polyhedron.alive[: polyhedron.top]
    ours = np.unique(np.round(polyhedron.points[: polyhedron.top][alive], 6), axis=0)
    assert ours.shape == found.shape
    np.testing.assert_allclose(ours, found, atol=2e-6)
    assert polyhedron.check(1.0)[2]


def test_degenerate_cuts_keep_the_polyhedron_simple():
    """Cuts through vertices, repeated cuts and parallel cuts are relaxed, never wrong."""
    polyhedron = Polyhedron(-np.ones(3), np.ones(3), 0.0)
    for h0 in (0.0, 0.0, 1e-12, 0.5, 0.5):
        assert polyhedron.cut(np.array([1.0, 1.0, 1.0, 1.0]), h0, 1e-9) is not None
        assert polyhedron.cut(np.array([1.0, -1.0, -1.0, 1.0]), h0, 1e-9) is not None
        assert polyhedron.cut(np.array([0.0, 1.0, 0.0, 0.0]), -1.0 + h0, 1e-9) is not None
    broken, off, closed = polyhedron.check(1.0)
    assert closed
    assert max(broken, off) < 1e-12


def test_coordinates_round_trip():
    problem = tiny(0, 4, 3, 12, Psi(2.0), scale=100.0)
    at = Coordinates.of(problem)
    theta = np.random.default_rng(1).normal(size=at.p)
    W, b = at.unpack(theta)
    np.testing.assert_allclose(W.sum(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(at.pack(W, b), theta, atol=1e-10)
    np.testing.assert_allclose(at.margins(theta), problem.margins(W, b), atol=1e-9)
    assert 0.5 * at.curvature @ theta**2 == pytest.approx(0.5 * np.sum(W**2))
    E = sum_to_zero_basis(5)
    np.testing.assert_allclose(E.T @ E, np.eye(4), atol=1e-12)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"loss": Psi(1.0)}, "jumps"),
        ({"loss": HardMargin()}, "jumps"),
        ({"loss": Hinge()}, "convex"),
        ({"space": KernelSpace(np.eye(6))}, "linear"),
        ({"space": LinearSpace(np.zeros((6, 9)))}, "patterns"),
        ({"penalty": Penalty(l2=1.0, l0=1.0)}, "non-zero"),
    ],
)
def test_refusals_say_why(change, word):
    from dataclasses import replace

    problem = replace(tiny(0, 2, 1, 6, Psi(2.0)), **change)
    for solver in (outer, cones):
        assert word in solver.TAKES.refusal(problem)
        with pytest.raises(ValueError, match=word):
            solver.solve(problem, Options())
