"""Speed of the rule learners: the best rule, exact pricing, proved relaxations, programs kept in one session.

* **Agreement**: maximum monomial agreement, any order, proved; the goal is a twentieth of the seconds that the serial
  PEBBL code needs on a like core, or a time of our own where that code does not end within a minute.
* **Pricing**: the 50 best rules, the best one at random weights, and every call of LP-Boost with its multipliers.
* **Relaxation**: L0-RBoost to proved relaxation optimality, order 5, on support sets of multiplicity 3; then more rows.
* **One session**: the linear programs of a boosting run in one session, against a cold solve of each of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.runner.data import additive, folder, table
from benchmarks.runner.rows import Plan, Row, at_most, cpu_clock, timed
from psilearn.core.result import Status
from psilearn.engines.highs import HighsSession
from psilearn.estimators.rules import LPBoostClassifier
from psilearn.rules import lpboost
from psilearn.rules.binarize import LogicalBinarizer
from psilearn.rules.l0 import boost as l0boost
from psilearn.rules.l0 import bounds
from psilearn.rules.observations import Observations
from psilearn.rules.pricing.data import Attributes
from psilearn.rules.pricing.oracles import MonomialOracle
from psilearn.rules.pricing.search import price
from psilearn.rules.rules import best_monomial

#: Seconds of the serial PEBBL code on a like core (None: not closed within 100 s or 60 s), and our target.
AGREEMENT = {
    "cleveland_ss35": (0.59, 0.59 / 20),
    "pima_ss33": (1.3, 1.3 / 20),
    "hungheart72": (3.6, 3.6 / 20),
    "cmc_ss": (21.0, 21.0 / 20),
    "spambase_ss75": (None, 1.0),
    "hungheart72_w23": (None, 2.0),
    "hungheart72_w110": (None, 8.0),
    "spambase_ss75_w4": (None, 60.0),
}
CATEGORIES = ["cp", "thal", "restecg", "slope"]
SETS = ("clvheart", "bcw", "huheart")


def agreement_rows(plan: Plan) -> Iterator[Row]:
    best_monomial(np.eye(3, dtype=int), [0, 1, 1])  # compile, for any order
    for instance in list(AGREEMENT)[:4] if plan.quick else AGREEMENT:
        if plan.wants(name := f"agreement, {instance}"):
            yield agreement(name, instance)


def agreement(name: str, instance: str) -> Row:
    frame = pd.read_csv(folder("monomial") / f"{instance}.csv.gz")
    A, y = frame.filter(regex="^a").to_numpy(), frame["target"].to_numpy()
    weight = frame["weight"].to_numpy() if "weight" in frame else np.full(len(y), 1 / len(y))
    seconds, found = timed(lambda: best_monomial(A, y, weight))
    pebbl, target = AGREEMENT[instance]
    published = f"PEBBL {pebbl:g} s elsewhere" if pebbl else "not closed by PEBBL"
    note = f"value {found.value:.6f}, {found.n_nodes} nodes; {published}"
    return Row(name, seconds, goals=at_most(seconds, target, "seconds", found.is_exact), note=note)


def planted(n: int, d: int, seed: int = 0, noise: float = 0.1) -> tuple[Any, Any]:
    """Binary data with a planted rule of order 3 and label noise."""
    rng = np.random.default_rng(seed)
    A = (rng.random((n, d)) < rng.uniform(0.3, 0.7, d)).astype(np.uint8)
    y = np.where((A[:, 0] & A[:, 1] & (1 - A[:, 2])) ^ (rng.random(n) < noise), 1, -1)
    return A, y


def pricing_rows(plan: Plan) -> Iterator[Row]:
    compile_search()
    if plan.wants(name := "pricing, n=300 d=30 K=5, 50 best"):
        yield fifty_best(name)
    A, y = planted(*((1000, 100) if plan.quick else (10_000, 1000)))
    size = f"n={A.shape[0]} d={A.shape[1]} K=5"
    if plan.wants(name := f"pricing, {size}, random weights"):
        yield random_weights(name, A, y)
    for nu in (0.5, 0.3):
        if plan.wants(name := f"pricing, {size}, LP-Boost's calls, nu={nu}"):
            yield boosted_pricing(name, A, y, nu)


def compile_search() -> None:
    A, y = additive(60, 15)
    price(Attributes(A, y), np.full(60, 1 / 60), max_order=5, n_columns=5, n_proved=5)
    best_monomial(A, y, max_order=5)


def fifty_best(name: str) -> Row:
    data, weight = Attributes(*additive(300, 30)), np.random.default_rng(1).dirichlet(np.ones(300))
    seconds, found = timed(lambda: price(data, weight, max_order=5, n_columns=50, n_proved=50))
    rate = found.n_nodes / seconds / 1e6
    note = f"{found.n_nodes} nodes, {rate:.2f}e6 nodes/s"
    return Row(name, seconds, goals={"1e6 nodes/s": rate >= 1}, note=note)


def random_weights(name: str, A: Any, y: Any) -> Row:
    weight = np.random.default_rng(2).uniform(0.5, 1.5, len(y))
    for label in (-1, 1):  # balanced, as the multipliers of a boosting program are
        weight[y == label] /= 2 * weight[y == label].sum()
    seconds, found = timed(lambda: best_monomial(A, y, weight, max_order=5))
    goals = at_most(seconds, 10, "seconds", found.is_exact)
    return Row(name, seconds, goals=goals, note=f"{found.n_nodes} nodes, exact {found.is_exact}")


class Stopwatch(MonomialOracle):
    """The oracle with CPU seconds, values and bounds of its calls; exact where LP-Boost tries a quick rule first."""

    def offer(self, weight, pairs, threshold, n_columns, time_limit=np.inf, proof=True):
        """See :class:`MonomialOracle`."""
        seconds, offer = timed(lambda: super(Stopwatch, self).offer(weight, pairs, threshold, n_columns, 10.0))
        best = max(threshold, offer.values[0]) if len(offer.values) else threshold
        self.calls = [*getattr(self, "calls", []), (seconds, best, offer.bound)]
        return offer


def boosted_pricing(name: str, A: Any, y: Any, nu: float) -> Row:
    """The slowest pricing call of an LP-Boost run, with the multipliers as they come, at most 10 CPU seconds each."""
    data = Observations.merge(A, y)
    oracle = Stopwatch(data, 5)
    with cpu_clock():
        result = lpboost.solve(data, oracle, nu, max_iter=6)
    open_ = [(bound - best) / best if bound > best + 1e-8 else 0.0 for _, best, bound in oracle.calls]
    calls = ", ".join(f"{c[0]:.2g} s{f' (open by {part:.0%})' if part else ''}" for c, part in zip(oracle.calls, open_))
    slowest = max(call[0] for call in oracle.calls)
    goals = at_most(slowest, 10, "seconds", not any(open_)) | at_most(max(open_), 0.05, "open part")
    return Row(name, slowest, goals=goals, note=f"slowest of {calls}; status {result.status}")


def relax(A: Any, y: Any, K: int, time_limit: float = np.inf) -> Any:
    data = Observations.merge(A, y)
    cost = bounds.mdl_costs(K, A.shape[1], data.total)
    oracle = MonomialOracle(data, K, cost)
    return l0boost.solve(data, oracle, 20 / data.total, min_cost=float(cost.min()), time_limit=time_limit)


def support(name: str) -> tuple[Any, Any]:
    """A support set of multiplicity 3, and labels -1 and 1."""
    X, y = table(name)
    categories = [c for c in CATEGORIES if c in X]
    binarizer = LogicalBinarizer(multiplicity=3, categorical_features=categories).fit(X, y)
    return binarizer.transform(X), np.where(y == np.unique(y)[1], 1, -1)


def relaxation(name: str, A: Any, y: Any, K: int, target: float, limit: float) -> Row:
    seconds, result = timed(lambda: relax(A, y, K, limit))
    goals = at_most(seconds, target, "seconds", result.status is Status.OPTIMAL)
    note = f"z {result.objective:.5f}, bound {result.lower_bound:.5f}, {result.status}, {result.n_iter} rounds"
    checks = {"bound below the value": result.lower_bound <= result.objective * (1.0 + 1e-9)}
    return Row(name, seconds, goals=goals, checks=checks, note=f"d={A.shape[1]}, {note}")


def relaxation_rows(plan: Plan) -> Iterator[Row]:
    relax(*additive(60, 15), 2)  # compile
    for data in SETS:
        if plan.wants(name := f"relaxation, {data}, K=5"):
            yield relaxation(name, *support(data), 5, 4, plan.seconds(np.inf, 30.0))
    for n, d, K in ((2000, 50, 1), (200, 40, 2)) if plan.quick else ((10_000, 50, 1), (1000, 40, 2)):
        if plan.wants(name := f"relaxation, n={n} d={d} K={K}"):
            yield relaxation(name, *additive(n, d), K, 20, plan.seconds(120.0, 20.0))


@contextmanager
def counting_cold_solves() -> Iterator[dict[str, float]]:
    """Solve every program of the sessions twice: warm, and in a new session."""
    spent, plain = {"warm": 0.0, "cold": 0.0}, HighsSession.solve

    def both(self, time_limit=np.inf, primal=False):
        cold = HighsSession()
        cold.model.passModel(self.model.getLp())
        spent["cold"] += timed(lambda: plain(cold))[0]
        seconds, answer = timed(lambda: plain(self, time_limit, primal))
        spent["warm"] += seconds
        return answer

    HighsSession.solve = both
    try:
        yield spent
    finally:
        HighsSession.solve = plain


def warm_rows(plan: Plan) -> Iterator[Row]:
    runs = {
        "L0-RBoost": lambda A, y: relax(A, y, 5, plan.seconds(np.inf, 30.0)),
        "LP-Boost": lambda A, y: LPBoostClassifier(nu=0.2, max_order=3).fit(A, y),
    }
    for data in SETS[:1] if plan.quick else SETS:
        for method, run in runs.items():
            if plan.wants(name := f"one session, {method}, {data}"):
                A, y = support(data)
                with counting_cold_solves() as spent:
                    run(A, y)
                yield Row(name, spent["warm"], spent["cold"], at_most(spent["warm"] / spent["cold"], 0.2))


def rows(plan: Plan) -> Iterator[Row]:
    """Pricing first, which needs no real data."""
    yield from pricing_rows(plan)
    yield from agreement_rows(plan)
    yield from relaxation_rows(plan)
    yield from warm_rows(plan)
