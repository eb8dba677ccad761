"""Draw docs/outer.png: bounds closing on Example 1, and how far the d.c. algorithm stays above the optimum."""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from benchmarks.k_class import example_1, svm_and_dca
from psilearn.core.solving import Options
from psilearn.exact.k_class import outer


def main() -> None:
    """Solve 30 seeds of Example 1 and draw both panels."""
    outer.solve(example_1(0, n=20), Options(gap_tol=0.1))  # compile before the clock starts
    results = [outer.solve(example_1(seed), Options(gap_tol=1e-4)) for seed in range(30)]
    objectives = np.array([svm_and_dca(example_1(seed)) for seed in range(30)])
    optimum = np.array([result.objective for result in results])
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), constrained_layout=True)
    history = np.array(results[1].history)
    left.plot(history[:, 0], history[:, 1] / 1e3, label="incumbent")
    left.plot(history[:, 0], history[:, 2] / 1e3, label="lower bound")
    left.set(xlabel="seconds", ylabel="objective / 1000", title="Example 1, seed 1: bounds closing")
    left.legend()
    right.hist(
        100 * (objectives[:, 1] / optimum - 1), bins=np.arange(0, 30, 2.5), color="tab:orange", edgecolor="white"
    )
    right.set(xlabel="% above the global optimum", ylabel="seeds", title="The d.c. algorithm on 30 seeds")
    figure.savefig(HERE / "outer.png", dpi=110)


if __name__ == "__main__":
    main()
