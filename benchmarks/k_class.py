"""Global k-class psi-learning: outer approximation, cones and patterns against the plain integer program in SCIP.

Example 1 of Liu, Shen and Doss (Multicategory psi-learning and support vector machine: computational tools, 2005):
n = 100, three classes, one feature with x | y from Beta(1, 5), Beta(2, 2), Beta(5, 1), psi with a = 2, C = 1000.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from benchmarks.runner.data import L2, linear_problem
from benchmarks.runner.rows import Plan, Row, at_most, timed
from benchmarks.runner.scip_multiclass import solve_multiclass_mip
from psilearn.core.losses import Psi
from psilearn.core.solving import Options
from psilearn.exact.k_class import cones, outer, patterns
from psilearn.exact.k_class import hinge_qp_jit as hinge_qp
from psilearn.exact.k_class.coordinates import Coordinates
from psilearn.exact.k_class.truncation import Truncation

#: Beta distributions of the features, class by class; those of three classes are the paper's.
SHAPES = {3: [(1, 5), (2, 2), (5, 1)], 4: [(1, 7), (3, 5), (5, 3), (7, 1)]}


def betas(k, d, seed, n=100, C=1000.0):
    """Example 1 with d independent features and k classes."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, k, n)
    shape = np.array(SHAPES[k])[y]
    return psi_problem(rng.beta(shape[:, :1], shape[:, 1:], size=(n, d)), y, k, C)


def example_1(seed, n=100, C=1000.0):
    return betas(3, 1, seed, n, C)


def flipped(k, d, seed, separation, n=100, C=1.0, share=0.1):
    """Gaussian classes, some labels of which are replaced by another one."""
    clean = gaussians(k, d, seed, separation, n, C)
    rng = np.random.default_rng([seed, 1])
    shift = np.where(rng.random(n) < share, rng.integers(1, k, n), 0)
    return psi_problem(clean.space.X, (clean.y + shift) % k, k, C)


def gaussians(k, d, seed, separation, n=100, C=1.0):
    """Unit Gaussians whose means lie on a circle (d >= 2) or on a line (d = 1)."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, k, n)
    X = rng.normal(size=(n, d))
    angle = 2 * np.pi * np.arange(k) / k
    line = (np.arange(k) - (k - 1) / 2)[:, None]
    means = separation * (line if d == 1 else np.column_stack([np.cos(angle), np.sin(angle)]))
    X[:, : means.shape[1]] += means[y]
    return psi_problem(X, y, k, C)


def psi_problem(X, y, k, C):
    return linear_problem(X, y, Psi(2.0), L2, C, k)


def svm_and_dca(problem):
    """Objectives of the paper's Algorithm 1: at its start, the convex hinge fit, and at its end."""
    at = Coordinates.of(problem)
    parts = Truncation(at)
    theta = parts.convex_minimum()[1]
    objective = [problem.value(*at.unpack(theta))]
    coef = problem.costs[:, None] * parts.slopes
    breakpoints = np.tile(parts.breakpoints, (problem.n, 1))
    nothing = np.empty((0, at.p)), np.empty(0), np.empty(0)
    A, tau, first, c = hinge_qp.assemble(parts.rows, breakpoints, coef, np.full(problem.n, -np.inf), *nothing)
    free = np.full(at.p, 1e30)
    for _ in range(100):
        scores = parts.rows @ theta
        rival = scores.argmin(axis=1)
        u = scores[np.arange(problem.n), rival]
        capped = problem.loss.convex_value(u) > problem.loss.cap
        steep = problem.costs * problem.loss.convex_slope(u) * capped
        tilt = steep @ parts.rows[np.arange(problem.n), rival]
        hinge_qp.solve_hinge_qp(A, tau, first, c, tilt, at.curvature, -free, free, theta, 1e-9, 0.0, np.inf, 0.0)
        objective.append(problem.value(*at.unpack(theta)))
        if objective[-1] >= objective[-2] - 1e-6 * objective[-2]:
            break
    return objective[0], min(objective)


def scip(problem, gap_tol, time_limit):
    """The plain MIP with big-M from the box of the best constant: (objective, bound, solved, nodes)."""
    at = Coordinates.of(problem)
    loss, box = problem.loss, at.box(problem.best_constant()[0])
    low = -np.abs(at.rows).max(axis=1) @ box[1]
    answer = solve_multiclass_mip(
        at.rows, problem.costs, loss.hinges, loss.t, loss.cap, not loss.is_continuous, at.curvature, box, low,
        gap_tol, time_limit,
    )  # fmt: skip
    return problem.value(*at.unpack(answer.theta)), answer.bound, answer.is_optimal, answer.n_nodes


def timed_fit(solver, problem, gap_tol, limit=np.inf):
    return timed(lambda: solver.solve(problem, Options(gap_tol=gap_tol, time_limit=limit)))


def against_scip(name, problem, ours, result, gap_tol, limit) -> Row:
    """SCIP's plain program; it counts with its limit where it does not finish."""
    theirs, (objective, bound, solved, n_nodes) = timed(lambda: scip(problem, gap_tol, limit))
    state = "solved" if solved else f"not solved, gap {100 * (objective - bound) / objective:.0f}%"
    checks = {"our bound below their value": result.lower_bound <= objective * (1 + 1e-6)}
    return Row(f"{name}, SCIP", ours, theirs, {}, checks, f"SCIP {state}, {n_nodes} nodes")


def paper_example(plan: Plan) -> Iterator[Row]:
    """Example 1 over seeds: both searches agree, and how far the d.c. algorithm and the SVM stay above the optimum."""
    seeds, times, rounds, excess = 5 if plan.quick else 30, [], [], []
    for seed in range(seeds):
        problem = example_1(seed)
        spent, result = timed_fit(outer, problem, 1e-4)
        faster, other = timed_fit(cones, problem, 1e-4)
        svm, dca = svm_and_dca(problem)
        best = min(svm, dca, result.objective, other.objective)
        checks = {"both proved": max(result.gap, other.gap) <= 1e-4 * (1 + 1e-6)}
        checks["bounds below every value found"] = max(result.lower_bound, other.lower_bound) <= best
        times.append(spent)
        rounds.append(result.n_iter)
        excess.append([100 * (svm / result.objective - 1), 100 * (dca / result.objective - 1)])
        yield Row(f"Example 1, seed {seed}, cones / outer", faster, spent, {}, checks)
        if seed < (1 if plan.quick else 3):
            yield against_scip(f"Example 1, seed {seed}", problem, spent, result, 1e-4, plan.seconds(60.0, 10.0))
    goals = at_most(np.median(times), 3, "median s") | at_most(np.median(rounds), 150, "median iterations")
    yield Row("Example 1, outer, median", np.median(times), goals=goals, note=f"worst {max(times):.2f} s")
    svm, dca = np.median(excess, axis=0)
    note = f"worst {np.max(excess, axis=0)[1]:.1f}%; hinge fit, median {svm:.1f}%"
    yield Row("d.c. algorithm above the optimum, median", dca, unit="%", note=note)


def dimensions(plan: Plan) -> Iterator[Row]:
    """Dimensions 4 and 6, n = 100, relative gap 1e-3, cones."""
    shapes, Cs = ([(3, 1)], [1.0, 1000.0]) if plan.quick else ([(3, 1), (3, 2), (4, 1)], [1.0, 10.0, 1000.0])
    for (k, d), C, seed in itertools.product(shapes, Cs, range(1 if plan.quick else 3)):
        name = f"k={k} d={d} C={C:g} seed {seed}, cones"
        if plan.wants(name):
            problem = betas(k, d, seed, C=C)
            spent, result = timed_fit(cones, problem, 1e-3, plan.seconds(900.0, 30.0))
            goals = at_most(spent, 60, "s", holds=result.gap <= 1e-3 * (1 + 1e-6))
            yield Row(name, spent, goals=goals, note=f"{result.n_iter} cones, gap {result.gap:.1e}")
            if C == 1000.0 and seed == 0 and not plan.quick:
                yield against_scip(name, problem, spent, result, 1e-3, plan.seconds(60.0, 10.0))


def growth(plan: Plan) -> Iterator[Row]:
    """How the cost grows: one thing changed at a time, around Example 1 (k = 3, d = 1, n = 100, C = 1000), seed 0."""
    cases = [(3, 1, 100, C) for C in (1.0, 10.0, 100.0, 1e3, 1e4)] + [(3, 1, n, 1e3) for n in (25, 50, 200, 400)]
    cases += [(3, 2, 50, 1.0), (4, 1, 50, 1.0)]
    for k, d, n, C in cases[:2] if plan.quick else cases:
        name = f"growth, p={(k - 1) * (d + 1)} n={n} C={C:g}, cones / outer"
        if plan.wants(name):
            problem = betas(k, d, 0, n, C)
            spent, result = timed_fit(outer, problem, 1e-3, 120.0)
            faster, other = timed_fit(cones, problem, 1e-3, 120.0)
            note = (
                f"{result.extra['vertices']} vertices, {other.n_iter} cones, half side {result.extra['box'].max():.0f}"
            )
            yield Row(name, faster, spent, note=note)


def twelve_dimensions(plan: Plan) -> Iterator[Row]:
    """Dimension 12, n = 100, relative gap 1e-3, the search over patterns."""
    limit = plan.seconds(60.0, 10.0)
    clean = [(2, 11, 1.0, 1.5), (3, 5, 1.0, 2.0), (4, 3, 1.0, 2.5)]
    cases = [(f"k={k} d={d} C={C:g} separation {s:g}", gaussians(k, d, 0, s, C=C)) for k, d, C, s in clean]
    cases += [(f"k=3 d=5 C={C:g} separation 2, 10% flips", flipped(3, 5, 0, 2.0, C=C)) for C in (0.1, 1.0, 10.0)]
    for name, problem in cases[:2] if plan.quick else cases:
        if plan.wants(f"patterns, {name}"):
            spent, result = timed_fit(patterns, problem, 1e-3, limit)
            note = f"gap {100 * result.gap:.2f}%, {result.n_iter} nodes"
            yield Row(f"patterns, {name}", spent, goals={"proved": result.gap <= 1e-3}, note=note)


def rows(plan: Plan) -> Iterator[Row]:
    """The paper's example, other dimensions, growth, and twelve dimensions."""
    for warm in (example_1(0, n=20), gaussians(3, 2, 0, 3.0, n=20)):  # compile
        outer.solve(warm, Options(gap_tol=0.1))
        cones.solve(warm, Options(gap_tol=0.1))
        patterns.solve(warm, Options(gap_tol=0.1, max_iter=50))
    svm_and_dca(example_1(0, n=20))
    for part in (paper_example, dimensions, growth, twelve_dimensions):
        yield from part(plan)
