"""Global k-class psi-learning: outer approximation, cones and patterns against the plain MIP in SCIP.

Example 1 of Liu, Shen and Doss (Multicategory psi-learning and support vector machine: computational tools, 2005):
n = 100, three classes, one feature with x | y from Beta(1, 5), Beta(2, 2), Beta(5, 1), psi with a = 2, C = 1000.
All times are CPU seconds of one thread; everything is compiled before it is timed.
"""

from __future__ import annotations

import argparse
import itertools
import time

import numpy as np

from benchmarks.scip_multiclass import solve_multiclass_mip
from psilearn.core.losses import Psi
from psilearn.core.penalties import Penalty
from psilearn.core.problem import Problem
from psilearn.core.solving import Options
from psilearn.core.spaces import LinearSpace
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
    return Problem(LinearSpace(X), y.astype(np.intp), k, Psi(2.0), Penalty(l2=1.0), C, np.ones(len(y)))


def svm_and_dca(problem):
    """Objectives of the paper's Algorithm 1: at its start, the hinge machine, and at its end."""
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


def timed(function, *arguments):
    start = time.process_time()
    answer = function(*arguments)
    return time.process_time() - start, answer


def verdict(figure, target):
    return f"target {target:g}: {'met' if figure <= target else 'MISSED'}"


def against_scip(problem, spent, gap_tol, limit):
    """One line on SCIP's plain MIP, and how many times longer it took, at least."""
    rival, (objective, bound, solved, n_nodes) = timed(scip, problem, gap_tol, limit)
    gap = 100 * (objective - bound) / objective
    state = f"solved in {rival:.1f} s" if solved else f">= {limit:.0f} s, gap {gap:.0f}%"
    return f"SCIP {state}, {n_nodes} nodes", rival / spent


def run_example_1(n_seeds, scip_seeds, scip_limit):
    seconds, quick, rounds, gaps, svm_gaps, ratios = [], [], [], [], [], []
    for seed in range(n_seeds):
        problem = example_1(seed)
        spent, result = timed(outer.solve, problem, Options(gap_tol=1e-4))
        faster, other = timed(cones.solve, problem, Options(gap_tol=1e-4))
        assert max(result.gap, other.gap) <= 1e-4 * (1 + 1e-6), (seed, result.gap, other.gap)
        svm, dca = svm_and_dca(problem)
        assert max(result.lower_bound, other.lower_bound) <= min(svm, dca, result.objective, other.objective)
        seconds.append(spent)
        quick.append(faster)
        rounds.append(result.n_iter)
        gaps.append(100 * (dca / result.objective - 1))
        svm_gaps.append(100 * (svm / result.objective - 1))
        if seed < scip_seeds:
            line, ratio = against_scip(problem, spent, 1e-4, scip_limit)
            ratios.append(ratio)
            print(f"  seed {seed}: outer {spent:.2f} s, cones {faster:.2f} s; {line}", flush=True)
    print(f"Example 1, {n_seeds} seeds, relative gap 1e-4 (all proved)")
    median, most = np.median(seconds), np.median(rounds)
    print(f"  outer: median {median:.2f} s (worst {max(seconds):.2f}); {verdict(median, 3)}")
    print(f"  iterations: median {most:.0f} (worst {max(rounds)}); {verdict(most, 150)}")
    print(f"  cones: median {np.median(quick):.2f} s (worst {max(quick):.2f}); {verdict(np.median(quick), 3)}")
    quartiles = np.percentile(gaps, [0, 25, 50, 75, 100])
    print("  DCA above the global optimum, %: min, quartiles, max " + " ".join(f"{q:.2f}" for q in quartiles))
    print(f"  hinge machine above the global optimum: median {np.median(svm_gaps):.1f}%")
    if ratios:
        print(f"  SCIP / outer, CPU time, at least: geometric mean {np.exp(np.mean(np.log(ratios))):.0f}x", flush=True)


def run_dimensions(n_seeds, scip_limit):
    print(f"Dimensions 4 and 6, n = 100, relative gap 1e-3, cones, {n_seeds} seeds each")
    for (k, d), C in itertools.product([(3, 1), (3, 2), (4, 1)], [1.0, 10.0, 1000.0]):
        seconds, gaps, counts = [], [], []
        for seed in range(n_seeds):
            spent, result = timed(cones.solve, betas(k, d, seed, C=C), Options(gap_tol=1e-3, time_limit=900.0))
            seconds.append(spent)
            gaps.append(result.gap)
            counts.append(result.n_iter)
        worst = max(seconds) if max(gaps) <= 1e-3 * (1 + 1e-6) else np.inf
        spread = " ".join(f"{spent:.1f}" for spent in seconds)
        print(
            f"  k={k} d={d} C={C:g}: {spread} s, {max(counts)} cones at most, worst gap {max(gaps):.1e}; "
            f"{verdict(worst, 60)}",
            flush=True,
        )
        if C == 1000.0 and scip_limit > 0:
            line, ratio = against_scip(betas(k, d, 0, C=C), seconds[0], 1e-3, scip_limit)
            print(f"    seed 0: {line}, at least {ratio:.0f}x", flush=True)


def run_patterns(limit):
    print(f"Dimension 12, n = 100, relative gap 1e-3, search over patterns, at most {limit:.0f} s of wall time")
    clean = [(2, 11, 1.0, 1.5), (3, 5, 1.0, 2.0), (4, 3, 1.0, 2.5)]
    cases = [(f"separation={s:g}", gaussians(k, d, 0, s, C=C)) for k, d, C, s in clean]
    cases += [("separation=2, 10% flips", flipped(3, 5, 0, 2.0, C=C)) for C in (0.1, 1.0, 10.0)]
    for name, problem in cases:
        spent, result = timed(patterns.solve, problem, Options(gap_tol=1e-3, time_limit=limit))
        capped = int(problem.loss.is_capped(problem.margins(result.coef, result.intercept)).sum())
        print(
            f"  k={problem.n_classes} d={problem.space.dim} C={problem.C:g} {name}: {spent:.1f} s, "
            f"gap {100 * result.gap:.2f}%, {result.n_iter} nodes, {capped} capped",
            flush=True,
        )


def run_growth():
    """How the cost grows: one thing changed at a time, around Example 1 (k = 3, d = 1, n = 100, C = 1000), seed 0."""
    print("Growth, relative gap 1e-3: p, n, C; half the largest side of the box; outer s, vertices; cones s, cones")
    cases = [(3, 1, 100, C) for C in (1.0, 10.0, 100.0, 1e3, 1e4)] + [(3, 1, n, 1e3) for n in (25, 50, 200, 400)]
    cases += [(3, 2, 50, 1.0), (4, 1, 50, 1.0)]
    for k, d, n, C in cases:
        problem = betas(k, d, 0, n, C)
        spent, result = timed(outer.solve, problem, Options(gap_tol=1e-3, time_limit=120.0))
        faster, other = timed(cones.solve, problem, Options(gap_tol=1e-3, time_limit=120.0))
        side = float(result.extra["box"].max())
        print(
            f"  | {(k - 1) * (d + 1)} | {n} | {C:g} | {side:.0f} | {spent:.2f} | {result.extra['vertices']} "
            f"| {faster:.2f} | {other.n_iter} |",
            flush=True,
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=30)
    parser.add_argument("--dimension-seeds", type=int, default=3)
    parser.add_argument("--scip-seeds", type=int, default=3)
    parser.add_argument("--scip-limit", type=float, default=60.0)
    parser.add_argument("--patterns-limit", type=float, default=60.0)
    asked = parser.parse_args()
    for warm in (example_1(0, n=20), gaussians(3, 2, 0, 3.0, n=20)):
        outer.solve(warm, Options(gap_tol=0.1))
        cones.solve(warm, Options(gap_tol=0.1))
        patterns.solve(warm, Options(gap_tol=0.1, max_iter=50))
    svm_and_dca(example_1(0, n=20))
    run_example_1(asked.seeds, asked.scip_seeds, asked.scip_limit)
    run_dimensions(asked.dimension_seeds, asked.scip_limit)
    run_growth()
    run_patterns(asked.patterns_limit)
