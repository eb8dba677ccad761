"""Draw docs/certificates.png: the two ends of a proof meeting, and what it costs to believe each suspect."""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from psilearn.core.losses import Psi
from psilearn.core.penalties import Penalty
from psilearn.core.problem import Problem
from psilearn.core.result import Status
from psilearn.core.solving import Options
from psilearn.core.spaces import LinearSpace
from psilearn.datasets import make_quadratic
from psilearn.exact.label_prices import price_labels
from psilearn.exact.two_class import solver as mip


def main() -> None:
    """Solve one sample of Section 5.1 of Liu and Wu (2006) with growing node limits, then believe its suspects."""
    X, y = make_quadratic(100, case=3, random_state=1)
    problem = Problem(LinearSpace(X), (y > 0).astype(int), 2, Psi(2.0), Penalty(l2=1.0), 1.0, np.ones(100))
    nodes, objective, bound = [], [], []
    limit, result = 1, None
    while result is None or result.status is not Status.OPTIMAL:
        result = mip.solve(problem, Options(max_iter=limit))
        nodes.append(result.n_iter)
        objective.append(result.objective)
        bound.append(result.lower_bound)
        limit = int(1.5 * limit) + 1
    prices = price_labels(problem, result, Options(max_iter=40_000))
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), constrained_layout=True)
    left.step(nodes, objective, where="post", label="best fit found")
    left.step(nodes, bound, where="post", label="no fit is below")
    left.fill_between(nodes, bound, objective, step="post", alpha=0.15)
    left.set(xscale="log", xlabel="nodes of the search", ylabel="objective", title="100 samples, 8 features: proved")
    left.set_ylim(bottom=0)
    left.legend(loc="lower right")
    right.bar(range(len(prices)), [100 * price.excess for price in prices], color="tab:orange")
    right.set_xticks(range(len(prices)), [str(price.index) for price in prices])
    right.set(xlabel="sample given up by the optimum", ylabel="% above the optimum, at least")
    right.set_title("The price of believing its label")
    figure.savefig(Path(__file__).resolve().parent / "certificates.png", dpi=110)


if __name__ == "__main__":
    main()
