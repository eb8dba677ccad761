"""The l1 support vector machine, n = 1e5, p = 200, certified gap 1e-3, against the plain linear programme in HiGHS.

The programme is timed with interior point (without crossover) and with simplex on fewer samples of the same data, where
it ends within minutes; both grow faster than linearly in n, so scaling the better of the two by n is in its favour and
the printed ratio is a lower bound. CPU seconds, one thread, one process.
"""

import time

import highspy
import numpy as np
import scipy.sparse as sp
from reject import simulate

from psilearn.convex.bundle import solver as bundle
from psilearn.core.losses import Hinge
from psilearn.core.penalties import Penalty
from psilearn.core.problem import Problem
from psilearn.core.solving import Options
from psilearn.core.spaces import LinearSpace

N, P, LAM = 100_000, 200, 0.01
SMALL = 4_000  # samples on which the plain programme is timed
LIMIT = 150.0


def machine(X, y):
    return Problem(LinearSpace(X), y, 2, Hinge(), Penalty(l1=1.0), 1.0 / (LAM * y.size), np.ones(y.size))


def ours(problem):
    start = time.process_time()
    result = bundle.solve(problem, Options(tol=1e-3))
    assert result.gap <= 1e-3, (result.status, result.gap)
    return time.process_time() - start, result


def plain_programme(problem, engine):
    """Return CPU seconds and value of min sum |w| + C sum xi, y f + xi >= 1, over (w+, w-, b, xi)."""
    X, s, n, p = problem.space.X, problem.signs, problem.n, problem.space.dim
    A = sp.hstack([sp.csr_matrix(s[:, None] * X), sp.csr_matrix(-s[:, None] * X), s[:, None], sp.identity(n)]).tocsr()
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = A.shape[1], n
    lp.col_cost_ = np.concatenate([np.ones(2 * p), [0.0], problem.costs])
    lp.col_lower_ = np.concatenate([np.zeros(2 * p), [-highspy.kHighsInf], np.zeros(n)])
    lp.col_upper_ = np.full(A.shape[1], highspy.kHighsInf)
    lp.row_lower_, lp.row_upper_ = np.ones(n), np.full(n, highspy.kHighsInf)
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_, lp.a_matrix_.index_, lp.a_matrix_.value_ = A.indptr, A.indices, A.data
    model = highspy.Highs()
    for name, value in (("output_flag", False), ("threads", 1), ("solver", engine), ("run_crossover", "off")):
        model.setOptionValue(name, value)
    model.setOptionValue("time_limit", LIMIT)
    model.passModel(lp)
    start = time.process_time()
    model.run()
    is_done = model.getModelStatus() == highspy.HighsModelStatus.kOptimal
    return time.process_time() - start, model.getInfo().objective_function_value if is_done else np.nan


def main():
    X, y = simulate(30_000, 6)
    ours(machine(X, y))  # compile before timing
    X, y = simulate(N, P)
    taken, result = ours(machine(X, y))
    rows = np.random.default_rng(0).permutation(N)[:SMALL]
    small = machine(np.ascontiguousarray(X[rows]), y[rows])
    times = {}
    for engine in ("ipm", "simplex"):
        times[engine], value = plain_programme(small, engine)
        print(f"plain programme, n = {SMALL}: {engine:8s} {times[engine]:8.2f} s, value {value:.6f}", flush=True)
    print(f"bundle,          n = {N}: {taken:8.3f} s, gap {result.gap:.1e}, {result.extra['passes']:.1f} passes")
    print(f"at least {min(times.values()) * N / SMALL / taken:.0f}x faster (target 20x)")


if __name__ == "__main__":
    main()
