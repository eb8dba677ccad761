"""How far proofs get on the data of the demonstration: breast cancer, a tenth of the training labels flipped.

398 training rows of 30 features, standardised, 40 labels flipped; the seed draws both the split and the flips. The
counts of goals say how many seeds reach them; limits are CPU seconds of one thread, from the data to the bound.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

from benchmarks.runner.data import L2, linear_problem, standardized
from benchmarks.runner.rows import Plan, Row, cpu_clock, timed
from psilearn.core.losses import Loss, Psi, TruncatedHinge
from psilearn.core.problem import Problem
from psilearn.core.solving import Options
from psilearn.exact.two_class import solver as mip

LOSSES: dict[str, Loss] = {"psi": Psi(1.0), "truncated hinge": TruncatedHinge(0.0)}
#: Seconds and the largest gap that we aim at, by C.
LIMITS = {0.1: (10.0, 1e-4), 1.0: (30.0, 0.25)}


def flipped(seed: int, loss: Loss, C: float) -> Problem:
    X, y = load_breast_cancer(return_X_y=True)
    X, _, y, _ = train_test_split(X, y, test_size=0.3, stratify=y, random_state=seed)
    who = np.random.default_rng(seed).choice(y.size, y.size // 10 + 1, replace=False)
    y[who] = 1 - y[who]
    return linear_problem(standardized(X), y, loss, L2, C)


def rows(plan: Plan) -> Iterator[Row]:
    """Both losses, two costs, ten seeds (four where it must be quick)."""
    mip.solve(flipped(99, Psi(1.0), 1.0), Options(time_limit=6.0))  # compile
    with cpu_clock():
        for C, (limit, gap) in LIMITS.items():
            for kind, loss in LOSSES.items():
                for seed in range(2 if plan.quick else 10):
                    name = f"{kind}, C={C:g}, seed {seed}"
                    if plan.wants(name):
                        problem = flipped(seed, loss, C)
                        options = Options(time_limit=plan.seconds(limit, 2.0))
                        seconds, result = timed(lambda: mip.solve(problem, options))  # noqa: B023
                        note = f"objective {result.objective:.5g}, gap {100 * result.gap:.2f}%, {result.n_iter} nodes"
                        yield Row(name, seconds, goals={f"gap <= {100 * gap:g}%": result.gap <= gap}, note=note)
