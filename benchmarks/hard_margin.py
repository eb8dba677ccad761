"""The field's public benchmark for the hard-margin loss: 40 instances x 5 costs with published exact results.

    minimise  1/2 ||w||^2 + C #{i : y_i (<w, x_i> + b) < 1}

Published: CPLEX with indicator constraints and combinatorial Benders cuts, 600 s each (Santana, Serrano, Schiffer and
Vidal, Support vector machines with the hard-margin loss, 2022), on the instances of Brooks (2011); data in
$PSILEARN_DATA/hardmargin. A pair counts as solved at a relative gap of 1e-6. Exit status 1 if a result contradicts a
published bound.

    python benchmarks/hard_margin.py --limit 5 --only n60        a small selection
    python benchmarks/hard_margin.py --limit 60                  the claim
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import numpy as np
import pandas as pd

from psilearn.losses import HardMargin
from psilearn.penalties import Penalty
from psilearn.problem import Problem
from psilearn.result import Result
from psilearn.solvers import mip
from psilearn.solvers.base import Options
from psilearn.spaces import LinearSpace


def load(folder: Path, name: str) -> tuple[np.ndarray, np.ndarray]:
    table = pd.read_csv(folder / f"{name}.csv.gz")
    return np.ascontiguousarray(table.drop(columns="target"), dtype=float), (table["target"] > 0).to_numpy().astype(int)


def solve(X: np.ndarray, y: np.ndarray, C: float, limit: float) -> Result:
    problem = Problem(LinearSpace(X), y, 2, HardMargin(), Penalty(l2=1.0), float(C), np.ones(y.size))
    return mip.solve(problem, Options(gap_tol=1e-6, time_limit=limit))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default=os.environ.get("PSILEARN_DATA", "data"))
    parser.add_argument("--limit", type=float, default=60.0, help="seconds per pair")
    parser.add_argument("--only", default="", help="instances whose name contains this")
    arguments = parser.parse_args()
    folder = Path(arguments.data) / "hardmargin"
    published = pd.read_csv(folder / "published.csv")
    published = published[published["name"].str.contains(arguments.only)]
    solve(*load(folder, "german5f1i1"), 1.0, 10.0)  # compiles
    solved = better = weaker = wrong = 0
    for row in published.itertuples():
        result = solve(*load(folder, row.name), row.C, arguments.limit)
        closed = result.gap <= 1e-6
        slack = 1e-4 * abs(result.objective)
        false = result.lower_bound > row.best_upper_any + slack or result.objective < row.best_lower_any - slack
        solved += closed
        better += result.objective <= row.best_upper_any * (1 + 1e-6)
        weaker += not closed and result.lower_bound < row.best_lower_any
        wrong += false
        print(
            f"{row.name:18s} C={row.C:<6g} ours [{result.lower_bound:13.5f}, {result.objective:13.5f}]",
            f"{result.history[-1].seconds:7.2f} s {result.n_iter:8d} nodes {'solved' if closed else 'open  '}",
            f"published [{row.best_lower_any:13.5f}, {row.best_upper_any:13.5f}] {'solved' if row.solved else 'open'}",
            "CONTRADICTION" if false else "",
            flush=True,
        )
    print(f"{len(published)} pairs: solved {solved} (published {int(published['solved'].sum())}),")
    print(f"upper bound as good {better}, open with a weaker lower bound {weaker}, contradictions {wrong}")
    raise SystemExit(1 if wrong else 0)


if __name__ == "__main__":
    main()
