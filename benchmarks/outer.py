"""Global k-class psi-learning: outer approximation and the search over patterns against the plain MIP in SCIP.

Example 1 of Liu, Shen and Doss (Multicategory psi-learning and support vector machine: computational tools, 2005):
n = 100, three classes, one feature with x | y from Beta(1, 5), Beta(2, 2), Beta(5, 1), psi with a = 2, C = 1000.
All times are CPU seconds of one thread; everything is compiled before it is timed.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from psilearn.coordinates import Coordinates
from psilearn.kernels import hinge_qp
from psilearn.losses import Psi
from psilearn.penalties import Penalty
from psilearn.problem import Problem
from psilearn.programs.scip_multiclass import solve_multiclass_mip
from psilearn.solvers import outer, patterns
from psilearn.solvers.base import Options
from psilearn.spaces import LinearSpace
from psilearn.truncation import Truncation


def example_1(seed, n=100, C=1000.0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    shape = np.array([(1, 5), (2, 2), (5, 1)])[y]
    return psi_problem(rng.beta(shape[:, 0], shape[:, 1])[:, None], y, 3, C)


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
    kinks = np.tile(parts.kinks, (problem.n, 1))
    nothing = np.empty((0, at.p)), np.empty(0), np.empty(0)
    A, tau, first, c = hinge_qp.assemble(parts.rows, kinks, coef, np.full(problem.n, -np.inf), *nothing)
    free = np.full(at.p, 1e30)
    for _ in range(100):
        scores = parts.rows @ theta
        rival = scores.argmin(axis=1)
        u = scores[np.arange(problem.n), rival]
        capped = problem.loss.convex_value(u) > problem.loss.cap
        steep = problem.costs * problem.loss.convex_slope(u) * capped
        tilt = steep @ parts.rows[np.arange(problem.n), rival]
        hinge_qp.solve_hinge_qp(A, tau, first, c, tilt, at.curvature, -free, free, theta, 1e-9, 0.0, np.inf)
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


def run_example_1(n_seeds, scip_seeds, scip_limit):
    seconds, rounds, gaps, svm_gaps, ratios = [], [], [], [], []
    for seed in range(n_seeds):
        problem = example_1(seed)
        spent, result = timed(outer.solve, problem, Options(gap_tol=1e-4, time_limit=60.0))
        assert result.gap <= 1e-4, (seed, result.gap)
        svm, dca = svm_and_dca(problem)
        assert result.lower_bound <= min(svm, dca)
        seconds.append(spent)
        rounds.append(result.n_iter)
        gaps.append(100 * (dca / result.objective - 1))
        svm_gaps.append(100 * (svm / result.objective - 1))
        if seed < scip_seeds:
            rival, (objective, bound, solved, n_nodes) = timed(scip, problem, 1e-4, scip_limit)
            ratios.append(rival / spent)
            print(
                f"  seed {seed}: outer {spent:.2f} s; SCIP {rival:.1f} s {'solved' if solved else 'NOT solved'}, "
                f"gap {100 * (objective - bound) / objective:.1f}%, {n_nodes} nodes"
            )
    print(f"Example 1, {n_seeds} seeds, relative gap 1e-4 (all proved)")
    print(f"  outer: median {np.median(seconds):.2f} s (worst {max(seconds):.2f}); target 3 s")
    print(f"  iterations: median {np.median(rounds):.0f} (worst {max(rounds)}); target 150")
    quartiles = np.percentile(gaps, [0, 25, 50, 75, 100])
    print("  DCA above the global optimum, %: min, quartiles, max " + " ".join(f"{q:.2f}" for q in quartiles))
    print(f"  hinge machine above the global optimum: median {np.median(svm_gaps):.1f}%")
    if ratios:
        print(f"  SCIP / outer, CPU time, at least: geometric mean {np.exp(np.mean(np.log(ratios))):.0f}x")


def run_sizes():
    print("Dimension (k - 1)(d + 1) = 6, n = 100, relative gap 1e-3, target 60 s")
    for k, d, C in [(3, 2, 1.0), (4, 1, 1.0)]:
        spent, result = timed(outer.solve, gaussians(k, d, 0, 1.5, C=C), Options(gap_tol=1e-3, time_limit=240.0))
        print(f"  outer k={k} d={d} C={C}: {spent:.1f} s, gap {result.gap:.1e}, {result.extra['vertices']} vertices")
    print("Dimension 12, n = 100, relative gap 1e-3, search over patterns (30 s at most)")
    for k, d, C, separation in [(2, 11, 1.0, 1.5), (3, 5, 1.0, 2.0), (4, 3, 1.0, 2.5), (4, 3, 0.1, 3.0)]:
        problem = gaussians(k, d, 0, separation, C=C)
        spent, result = timed(patterns.solve, problem, Options(gap_tol=1e-3, time_limit=30.0))
        capped = int(problem.loss.is_capped(problem.margins(result.coef, result.intercept)).sum())
        print(
            f"  patterns k={k} d={d} C={C} separation={separation}: {spent:.1f} s, gap {result.gap:.1e}, "
            f"{result.n_iter} nodes, {capped} capped"
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=30)
    parser.add_argument("--scip-seeds", type=int, default=3)
    parser.add_argument("--scip-limit", type=float, default=20.0)
    parser.add_argument("--sizes", action=argparse.BooleanOptionalAction, default=True)
    asked = parser.parse_args()
    for warm in (example_1(0, n=20), gaussians(3, 2, 0, 3.0, n=20)):
        outer.solve(warm, Options(gap_tol=0.1))
        patterns.solve(warm, Options(gap_tol=0.1, max_iter=50))
    svm_and_dca(example_1(0, n=20))
    run_example_1(asked.seeds, asked.scip_seeds, asked.scip_limit)
    if asked.sizes:
        run_sizes()
