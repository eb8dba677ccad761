"""Draw docs/certificates.png: how bounds rise on the data of the demonstration, and what believing a suspect costs."""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from psilearn.core.losses import Psi, TruncatedHinge
from psilearn.core.penalties import Penalty
from psilearn.core.problem import Problem
from psilearn.core.result import Result
from psilearn.core.solving import Options
from psilearn.core.spaces import LinearSpace
from psilearn.datasets import make_quadratic
from psilearn.exact.label_prices import price_labels
from psilearn.exact.two_class import solver as mip

LOSSES = {"psi": Psi(1.0), "truncated hinge": TruncatedHinge(0.0)}
SECONDS = 30.0


def proof(loss: Psi | TruncatedHinge, C: float) -> Result:
    """Search on breast cancer data, 40 of 398 training labels flipped."""
    X, y = load_breast_cancer(return_X_y=True)
    X, _, y, _ = train_test_split(X, y, test_size=0.3, stratify=y, random_state=0)
    flipped = np.random.default_rng(0).choice(y.size, 40, replace=False)
    y[flipped] = 1 - y[flipped]
    space = LinearSpace(StandardScaler().fit_transform(X))
    problem = Problem(space, y, 2, loss, Penalty(l2=1.0), C, np.ones(y.size))
    return mip.solve(problem, Options(time_limit=SECONDS))


def main() -> None:
    """Draw four searches, and the suspects of one sample of Section 5.1 of Liu and Wu (2006)."""
    proof(Psi(1.0), 1.0)  # compile
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), constrained_layout=True)
    for C, style in ((0.1, "-"), (1.0, "--")):
        for (name, loss), colour in zip(LOSSES.items(), ("tab:blue", "tab:green")):
            result = proof(loss, C)
            seconds, _, bound = np.array(result.history).T
            share = 100.0 * bound / result.objective
            left.step(seconds, share, style, where="post", color=colour, label=f"{name}, C = {C:g}")
            print(name, C, result.status.value, f"{seconds[-1]:.1f} s, gap {100.0 * result.gap:.1f}%")
    left.set(xscale="log", ylim=(0, 102), xlabel="seconds", ylabel="bound, % of the best fit")
    left.set_title("398 samples, 30 features, 40 labels flipped")
    left.legend(loc="lower right", fontsize="small")
    X, y = make_quadratic(100, case=3, random_state=1)
    problem = Problem(LinearSpace(X), (y > 0).astype(int), 2, Psi(2.0), Penalty(l2=1.0), 1.0, np.ones(100))
    prices = price_labels(problem, mip.solve(problem, Options(max_iter=40_000)), Options(max_iter=40_000))
    right.bar(range(len(prices)), [100 * price.excess for price in prices], color="tab:orange")
    right.set_xticks(range(len(prices)), [str(price.index) for price in prices])
    right.set(xlabel="sample given up by the optimum", ylabel="% above the optimum, at least")
    right.set_title("The price of believing its label (100 samples)", fontsize="medium")
    figure.savefig(Path(__file__).resolve().parent / "certificates.png", dpi=110)


if __name__ == "__main__":
    main()
