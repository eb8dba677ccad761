"""Speed and accuracy of the rule learners. Reads the data sets from the folder named by PSILEARN_DATA.

python benchmarks/rules.py [agreement] [pricing] [relaxation] [warm] [large] [accuracy]    (all without arguments)

Times are CPU seconds of one process, compiled code warmed up first.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import time
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import AdaBoostClassifier
from sklearn.impute import SimpleImputer
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from psilearn.core.result import Status
from psilearn.engines.highs import HighsSession
from psilearn.estimators.rules import L0BoostClassifier, LPBoostClassifier, SlipperClassifier
from psilearn.rules import lpboost
from psilearn.rules.binarize import LogicalBinarizer
from psilearn.rules.l0 import boost as l0boost
from psilearn.rules.l0 import bounds
from psilearn.rules.observations import Observations
from psilearn.rules.pricing import search as pricing_search
from psilearn.rules.pricing import tree as pricing_tree
from psilearn.rules.pricing.data import Attributes
from psilearn.rules.pricing.oracles import MonomialOracle
from psilearn.rules.pricing.search import price
from psilearn.rules.rules import best_monomial

DATA = Path(os.environ.get("PSILEARN_DATA", "data"))
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
SETS = ("bcw", "vote", "clvheart", "huheart", "sonar")


def seconds_of(action):
    start = time.process_time()
    result = action()
    return time.process_time() - start, result


def load(name):
    frame = pd.read_csv(DATA / f"{name}.csv.gz", keep_default_na=False, na_values=[""])
    target = frame.pop("target")
    y = (target > 0).to_numpy() if name == "clvheart" else target.to_numpy()
    return frame[[c for c in frame if not c.startswith("meta_")]], y


def met(is_met):
    return "met" if is_met else "MISSED"


def verdict(seconds, target, is_proved=True):
    return f"{seconds:8.3f} s   target {target:.3g} s   {met(is_proved and seconds <= target)}"


def agreement():
    print("Maximum monomial agreement, any order, proved (value, nodes, seconds; PEBBL's serial seconds)")
    best_monomial(np.eye(3, dtype=int), [0, 1, 1])
    for name, (pebbl, target) in AGREEMENT.items():
        frame = pd.read_csv(DATA / "monomial" / f"{name}.csv.gz")
        A, y = frame.filter(regex="^a").to_numpy(), frame["target"].to_numpy()
        weight = frame["weight"].to_numpy() if "weight" in frame else np.full(len(y), 1 / len(y))
        seconds, found = seconds_of(lambda: best_monomial(A, y, weight))  # noqa: B023
        ratio = f"{pebbl / seconds:6.0f} x" if pebbl else "   not closed"
        figures = f"{found.value:.6f} {found.is_exact!s:5s} {found.n_nodes:7d}"
        print(f"  {name:18s} {figures}  {ratio}  {verdict(seconds, target, found.is_exact)}")


def planted(M, N, seed=0, noise=0.1):
    """Binary data with a planted rule of order 3 and label noise."""
    rng = np.random.default_rng(seed)
    A = (rng.random((M, N)) < rng.uniform(0.3, 0.7, N)).astype(np.uint8)
    y = np.where((A[:, 0] & A[:, 1] & (1 - A[:, 2])) ^ (rng.random(M) < noise), 1, -1)
    return A, y


def additive(M, N, seed=0, noise=0.1):
    """Binary data whose label is a noisy linear threshold with two interactions."""
    rng = np.random.default_rng(seed)
    A = (rng.random((M, N)) < rng.uniform(0.2, 0.8, N)).astype(np.uint8)
    score = A[:, :10] @ rng.normal(size=10) + 1.5 * (A[:, 0] & A[:, 11]) - 1.5 * (A[:, 3] & A[:, 12])
    return A, np.where((score > np.median(score)) ^ (rng.random(M) < noise), 1, -1)


def pricing():
    print("Exact pricing")
    A, y = additive(300, 30)
    data, weight = Attributes(A, y), np.random.default_rng(1).dirichlet(np.ones(300))
    price(data, weight, max_order=2)
    seconds, found = seconds_of(lambda: price(data, weight, max_order=5, n_columns=50, n_proved=50))
    rate = found.n_nodes / seconds / 1e6
    print(f"  M=300 N=30 K=5, 50 best: {found.n_nodes} nodes, {rate:.2f}e6 nodes/s   target 1e6   {met(rate >= 1)}")
    A, y = planted(10_000, 1000)
    weight = np.random.default_rng(2).uniform(0.5, 1.5, len(y))
    for label in (-1, 1):  # balanced, as the multipliers of a boosting program are
        weight[y == label] /= 2 * weight[y == label].sum()
    seconds, found = seconds_of(lambda: best_monomial(A, y, weight, max_order=5))
    print(f"  M=1e4 N=1000 K=5, random weights: {found.n_nodes} nodes, exact {found.is_exact}  "
          f"{verdict(seconds, 10, found.is_exact)}")  # fmt: skip
    for nu in (0.5, 0.3):
        boosted_pricing(A, y, nu)


class Stopwatch(MonomialOracle):
    """The exact oracle with the CPU seconds, values and bounds of its calls."""

    def offer(self, weight, pairs, threshold, n_columns, time_limit=np.inf):
        """See :class:`MonomialOracle`."""
        seconds, offer = seconds_of(lambda: super(Stopwatch, self).offer(weight, pairs, threshold, n_columns, 10.0))
        best = max(threshold, offer.values[0]) if len(offer.values) else threshold
        self.calls = [*getattr(self, "calls", []), (seconds, best, offer.bound)]
        return offer


def boosted_pricing(A, y, nu):
    """Every pricing call of an LP-Boost run, with the multipliers as they come."""
    data = Observations.merge(A, y)
    oracle = Stopwatch(data, 5)
    clock = pricing_search.time
    pricing_search.time = pricing_tree.time = SimpleNamespace(perf_counter=time.process_time)
    result = lpboost.solve(data, oracle, nu, max_iter=6)
    pricing_search.time = pricing_tree.time = clock
    print(f"  M=1e4 N=1000 K=5, the calls of LP-Boost with nu = {nu} (status {result.status}), at most 10 CPU s each:")
    for k, (seconds, best, bound) in enumerate(oracle.calls, 1):
        is_proved = bound <= best + 1e-8
        proof = "proved" if is_proved else f"not proved, bound {bound:.4f}"
        print(f"    round {k}: best {best:.4f}, {proof}  {verdict(seconds, 10, is_proved)}")


def relax(A, y, K, time_limit=np.inf):
    data = Observations.merge(A, y)
    cost = bounds.mdl_costs(K, A.shape[1], data.total)
    oracle = MonomialOracle(data, K, cost)
    return l0boost.solve(data, oracle, 20 / data.total, min_cost=float(cost.min()), time_limit=time_limit)


def support(name, multiplicity=3):
    X, y = load(name)
    categories = [c for c in CATEGORIES if c in X]
    binarizer = LogicalBinarizer(multiplicity=multiplicity, categorical_features=categories).fit(X, y)
    return binarizer.transform(X), np.where(y == np.unique(y)[1], 1, -1)


def report(label, seconds, result, target):
    print(f"  {label}: z {result.objective:.5f}, bound {result.lower_bound:.5f}, {result.status}, "
          f"{result.n_iter} rounds  {verdict(seconds, target, result.status is Status.OPTIMAL)}")  # fmt: skip


def relaxation():
    print("L0-RBoost to proved relaxation optimality, 3x support sets, K = 5")
    relax(*additive(60, 15), 2)
    for name in ("clvheart", "bcw", "huheart"):
        A, y = support(name)
        seconds, result = seconds_of(lambda: relax(A, y, 5))  # noqa: B023
        report(f"{name} (N={A.shape[1]})", seconds, result, 4)


def ratio(method, name, spent):
    gain = spent["cold"] / spent["warm"]
    seconds = f"cold {spent['cold']:.2f} s, warm {spent['warm']:.2f} s"
    print(f"  {method} {name}: {seconds}: {gain:.1f} x   target 5 x   {met(gain >= 5)}")


def warm():
    print("Warm session against a cold solve of the same program, same sequence")
    spent = {"warm": 0.0, "cold": 0.0}
    plain = HighsSession.solve

    def both(self, time_limit=np.inf, primal=False):
        cold = HighsSession()
        cold.model.passModel(self.model.getLp())
        spent["cold"] += seconds_of(lambda: plain(cold))[0]
        seconds, answer = seconds_of(lambda: plain(self, time_limit, primal))
        spent["warm"] += seconds
        return answer

    HighsSession.solve = both
    for name in ("clvheart", "bcw", "huheart"):
        A, y = support(name)
        spent.update(warm=0.0, cold=0.0)
        relax(A, y, 5)
        ratio("L0-RBoost", name, spent)
        spent.update(warm=0.0, cold=0.0)
        LPBoostClassifier(nu=0.2, max_order=3).fit(A, y)
        ratio("LP-Boost ", name, spent)
    HighsSession.solve = plain


def large():
    print("Larger M")
    for M, N, K in ((10_000, 50, 1), (1000, 40, 2)):
        A, y = additive(M, N)
        seconds, result = seconds_of(lambda: relax(A, y, K, time_limit=120))  # noqa: B023
        report(f"M={M} N={N} K={K}", seconds, result, 20)


def as_numbers():
    """What a user of the other packages does first: medians for gaps, one column per category."""
    categories = make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder(handle_unknown="ignore"))
    return make_column_transformer(
        (categories, make_column_selector(dtype_exclude=np.number)),
        (SimpleImputer(strategy="median"), make_column_selector(dtype_include=np.number)),
        sparse_threshold=0,
    )


def rivals():
    models = {
        "L0-RBoost": L0BoostClassifier(),
        'L0-RBoost, rho="cv"': L0BoostClassifier(rho="cv"),
        'LP-Boost, nu="auto"': LPBoostClassifier(nu="auto"),
        'LP-Boost, nu and order "auto"': LPBoostClassifier(nu="auto", max_order="auto"),
        "SLIPPER": SlipperClassifier(),
        "AdaBoost, 50 stumps": make_pipeline(as_numbers(), AdaBoostClassifier(random_state=0)),
    }
    if importlib.util.find_spec("imodels"):
        import imodels

        models["imodels BoostedRules"] = make_pipeline(as_numbers(), imodels.BoostedRulesClassifier(random_state=0))
        models["imodels RuleFit"] = make_pipeline(as_numbers(), imodels.RuleFitClassifier(random_state=0))
    else:
        print("  (imodels is not installed: pip install -e '.[bench]')")
    return models


def size_of(model):
    """Rules with a weight: stumps of an ensemble, and for RuleFit its linear terms, too."""
    last = model[-1] if hasattr(model, "steps") else model
    if hasattr(last, "n_rules_"):
        return last.n_rules_
    return len(last.estimators_) if hasattr(last, "estimators_") else int(np.count_nonzero(last.coef))


def accuracy():
    """Print a table in Markdown: accuracy (standard error), rules, seconds per fit."""
    print("10-fold accuracy (standard error), number of rules, CPU seconds per fit; binarized in the fold\n")
    print(f"| | {' | '.join(SETS)} |\n|---|{'---|' * len(SETS)}")
    models, sets = rivals(), {name: load(name) for name in SETS}
    warnings.filterwarnings("ignore", module="sklearn|imodels")  # RuleFit's use of scikit-learn is dated
    for label, model in models.items():
        cells = []
        for X, y in sets.values():
            codes = np.unique(y, return_inverse=True)[1]
            right, rules, spent = [], [], 0.0
            for train, test in StratifiedKFold(10, shuffle=True, random_state=0).split(X, codes):
                seconds, fitted = seconds_of(lambda: model.fit(X.iloc[train], codes[train]))  # noqa: B023
                spent += seconds
                right.append(fitted.score(X.iloc[test], codes[test]))
                rules.append(size_of(fitted))
            error = np.std(right, ddof=1) / np.sqrt(10)
            cells.append(f"{np.mean(right):.3f} ({error:.3f}), {np.mean(rules):.0f} rules, {spent / 10:.2f} s")
        print(f"| {label} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    parts = {f.__name__: f for f in (agreement, pricing, relaxation, warm, large, accuracy)}
    for chosen in sys.argv[1:] or parts:
        parts[chosen]()
