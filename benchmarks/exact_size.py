"""How many samples exact psi-learning can prove: ladders of n for d = 2, 8 and 30, ten minutes each.

    minimise  1/2 ||w||^2 + C sum_i psi(u_i),   a = 2

d = 2: the unit disk, every tenth label flipped; d = 8: squares and coordinates of the quadratic case of Liu and Wu
(2006), one label in twenty flipped; d = 30: breast cancer (WDBC, n = 569 in all); d = 8 and 30: two Gaussian classes
that overlap, one label in twenty flipped. The published record for such losses (ramp, hard margin) by a mixed-integer
programme in a commercial solver is n = 500 (Brooks, 2011). CPU seconds of one thread, compilation excluded. A ladder
ends where a proof takes longer than ``--limit``.

    python benchmarks/exact_size.py --only disk --limit 60
"""

from __future__ import annotations

import argparse
import time
from types import SimpleNamespace

import numpy as np
from exact_psi import disk, make_problem, quadratic, wdbc

from psilearn.core import solving as base
from psilearn.core.solving import Options
from psilearn.exact.two_class import solver as mip


def gaussians(n: int, d: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    X = rng.normal(size=(n, d))
    X[:, :5] += np.where(y[:, None] > 0, 1.0, -1.0)
    flipped = rng.uniform(size=n) < 0.05
    return X, np.where(flipped, 1 - y, y)


LADDERS = {
    "disk, d = 2, C = 1": (lambda n: disk(n, n // 10, seed=1), 1.0, (500, 1000, 2000, 4000, 6000, 8000)),
    "quadratic, d = 8, C = 10": (lambda n: quadratic(n, seed=1), 10.0, (100, 150, 200, 250, 300, 400)),
    "quadratic, d = 8, C = 1": (lambda n: quadratic(n, seed=1), 1.0, (100, 150, 200, 250, 300, 400)),
    "Gaussians, d = 8, C = 1": (lambda n: gaussians(n, 8, seed=1), 1.0, (250, 500, 1000, 1500, 2000)),
    "WDBC, d = 30, C = 0.1": (lambda n: wdbc(n, seed=1), 0.1, (200, 400, 569)),
    "WDBC, d = 30, C = 1": (lambda n: wdbc(n, seed=1), 1.0, (200, 400, 569)),
    "Gaussians, d = 30, C = 1": (lambda n: gaussians(n, 30, seed=1), 1.0, (250, 500, 750, 1000)),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--limit", type=float, default=600.0)
    parser.add_argument("--only", default="", help="ladders whose name contains this")
    arguments = parser.parse_args()
    base.time = SimpleNamespace(perf_counter=time.process_time)  # the solver's clock counts CPU seconds
    for X, y in (disk(50, 2, seed=0), quadratic(200, seed=0)):
        mip.solve(make_problem(X, y, 1.0, 2.0, 2), Options(time_limit=30.0))
    for name, (draw, C, sizes) in LADDERS.items():
        if arguments.only not in name:
            continue
        for n in sizes:
            problem = make_problem(*draw(n), C, 2.0, 2)
            began = time.process_time()
            result = mip.solve(problem, Options(gap_tol=1e-6, time_limit=arguments.limit))
            took = time.process_time() - began
            print(f"{name:26s} n = {n:5d}  {took:8.2f} s  gap {result.gap:.1e}  {result.n_iter:8d} nodes", flush=True)
            if result.gap > 1e-6:
                break


if __name__ == "__main__":
    main()
