"""The field's public benchmark for the hard-margin loss: 40 instances x 5 costs with published exact results.

    minimise  1/2 ||w||^2 + C #{i : y_i (<w, x_i> + b) < 1}

Published: CPLEX with indicator constraints and combinatorial Benders cuts, 600 s each (Santana, Serrano, Schiffer and
Vidal, Support vector machines with the hard-margin loss, 2022), on the instances of Brooks (2011); data in
$PSILEARN_DATA/hardmargin. A pair counts as solved at a relative gap of 1e-6. A result that contradicts a published
bound fails the run.

    python -m benchmarks hard_margin --limit 60                                       the claim
    python -m benchmarks hard_margin --limit 600 --enough 60 --json runs.json --resume

With ``--enough S`` a pair that nobody has solved ends after S seconds as soon as both bounds are at least as good as
the published ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pandas as pd

from benchmarks.runner.data import L2, folder, linear_problem
from benchmarks.runner.rows import Plan, Row, cpu_clock, timed
from psilearn.core import clock
from psilearn.core.losses import HardMargin
from psilearn.core.result import Result
from psilearn.core.solving import Options
from psilearn.exact.two_class import solver as mip

QUICK = ("n60", "australian5f1i1", "bupa")


def load(name: str) -> tuple[np.ndarray, np.ndarray]:
    table = pd.read_csv(folder("hardmargin") / f"{name}.csv.gz")
    return np.ascontiguousarray(table.drop(columns="target"), dtype=float), (table["target"] > 0).to_numpy().astype(int)


def solve(name: str, C: float, limit: float, **values: object) -> Result:
    problem = linear_problem(*load(name), HardMargin(), L2, C)
    return mip.solve(problem, Options(gap_tol=1e-6, time_limit=limit, settings=(mip.Settings(**values),)))


def as_good_as(pair: pd.Series, seconds: float) -> Callable[[float, float], bool]:
    """Whether both bounds are at least as good as the published ones, and that many CPU seconds are spent."""
    began = clock.now()

    def enough(upper: float, lower: float) -> bool:
        is_good = upper <= pair.best_upper_any * (1.0 + 1e-6) and lower >= pair.best_lower_any
        return bool(is_good and clock.now() - began >= seconds)

    return enough


def measure(name: str, pair: pd.Series, plan: Plan) -> Row:
    """One pair, and how it compares with what is published."""
    values = {"enough": as_good_as(pair, plan.enough)} if plan.enough is not None and not pair.solved else {}
    limit = plan.seconds(60.0, 3.0)
    seconds, result = timed(lambda: solve(pair["name"], pair.C, limit, **values))
    lower, upper = result.lower_bound, result.objective
    slack = 1e-4 * abs(upper)
    is_solved = upper - lower <= 1e-6 * abs(upper)
    goals = {
        f"solved in {limit:g} s": is_solved,
        "upper bound as good as published": upper <= pair.best_upper_any * (1.0 + 1e-6),
        "solved, or lower bound as good as published": is_solved or lower >= pair.best_lower_any,
    }
    checks = {"no contradiction": lower <= pair.best_upper_any + slack and upper >= pair.best_lower_any - slack}
    note = f"ours [{lower:.5f}, {upper:.5f}], published [{pair.best_lower_any:.5f}, {pair.best_upper_any:.5f}]"
    return Row(name, seconds, goals=goals, checks=checks, note=note)


def rows(plan: Plan) -> Iterator[Row]:
    """Every pair, those with the smallest published gap first."""
    published = pd.read_csv(folder("hardmargin") / "published.csv").sort_values("gap_percent", kind="stable")
    if plan.quick:
        published = published[published["name"].str.startswith(QUICK) & published.C.isin((1.0, 100.0))][:16]
    for name in ("german5f1i1", "n60d2ATj0"):
        solve(name, 1.0, 2.0 if plan.quick else 10.0)  # compile
    with cpu_clock():
        for _, pair in published.iterrows():
            name = f"{pair['name']} C={pair.C:g}"
            if plan.wants(name):
                yield measure(name, pair, plan)
