"""Speed and accuracy of the rule learners. Reads the data sets from the folder named by PSILEARN_DATA.

python benchmarks/rules.py [agreement] [pricing] [relaxation] [warm] [large] [accuracy]    (all without arguments)

Times are CPU seconds of one process, compiled code warmed up first.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.ensemble import AdaBoostClassifier
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline

from psilearn.boosting import l0boost
from psilearn.boosting.binarize import LogicalBinarizer
from psilearn.boosting.observations import Observations
from psilearn.boosting.oracles import MonomialOracle
from psilearn.boosting.pricing import Attributes, price
from psilearn.boosting.rules import best_monomial
from psilearn.estimators.rules import L0BoostClassifier, LPBoostClassifier, SlipperClassifier
from psilearn.programs.highs import HighsSession

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


def verdict(seconds, target):
    return f"{seconds:8.3f} s   target {target:.3g} s   {'met' if seconds <= target else 'MISSED'}"


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
        print(f"  {name:18s} {figures}  {ratio}  {verdict(seconds, target)}")


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
    print(
        f"  M=300 N=30 K=5, 50 best: {found.n_nodes} nodes, {found.n_nodes / seconds / 1e6:.2f}e6 nodes/s   target 1e6"
    )
    A, y = planted(10_000, 1000)
    weight = np.random.default_rng(2).uniform(0.5, 1.5, len(y))
    for label in (-1, 1):  # balanced, as the multipliers of a boosting programme are
        weight[y == label] /= 2 * weight[y == label].sum()
    seconds, found = seconds_of(lambda: best_monomial(A, y, weight, max_order=5))
    print(f"  M=1e4 N=1000 K=5: {found.n_nodes} nodes, exact {found.is_exact}, {found.rule}  {verdict(seconds, 10)}")


def relax(A, y, K, time_limit=np.inf):
    data = Observations.merge(A, y)
    cost = l0boost.mdl_costs(K, A.shape[1], data.total)
    oracle = MonomialOracle(data, K, cost)
    return l0boost.solve(data, oracle, 20 / data.total, min_cost=float(cost.min()), time_limit=time_limit)


def support(name, multiplicity=3):
    X, y = load(name)
    categories = [c for c in CATEGORIES if c in X]
    binarizer = LogicalBinarizer(multiplicity=multiplicity, categorical_features=categories).fit(X, y)
    return binarizer.transform(X), np.where(y == np.unique(y)[1], 1, -1)


def report(label, seconds, result, target):
    print(f"  {label}: z {result.objective:.5f}, bound {result.lower_bound:.5f}, {result.status}, "
          f"{result.n_iter} rounds  {verdict(seconds, target)}")  # fmt: skip


def relaxation():
    print("L0-RBoost to proved relaxation optimality, 3x support sets, K = 5")
    relax(*additive(60, 15), 2)
    for name in ("clvheart", "bcw", "huheart"):
        A, y = support(name)
        seconds, result = seconds_of(lambda: relax(A, y, 5))  # noqa: B023
        report(f"{name} (N={A.shape[1]})", seconds, result, 4)


def warm():
    print("Warm session against a cold solve of the same programme, same sequence")
    spent = {"warm": 0.0, "cold": 0.0}
    plain = HighsSession.solve

    def both(self, time_limit=np.inf):
        cold = HighsSession()
        cold.model.passModel(self.model.getLp())
        spent["cold"] += seconds_of(lambda: plain(cold))[0]
        seconds, answer = seconds_of(lambda: plain(self, time_limit))
        spent["warm"] += seconds
        return answer

    HighsSession.solve = both
    for name in ("clvheart", "bcw"):
        A, y = support(name)
        spent.update(warm=0.0, cold=0.0)
        relax(A, y, 5)
        print(f"  L0-RBoost {name}: {spent['cold'] / spent['warm']:.1f} x   target 5 x")
        spent.update(warm=0.0, cold=0.0)
        LPBoostClassifier(nu=0.2, max_order=3).fit(A, y)
        print(f"  LP-Boost  {name}: {spent['cold'] / spent['warm']:.1f} x   target 5 x")
    HighsSession.solve = plain


def large():
    print("Larger M")
    for M, N, K in ((10_000, 50, 1), (1000, 40, 2)):
        A, y = additive(M, N)
        seconds, result = seconds_of(lambda: relax(A, y, K, time_limit=300))  # noqa: B023
        report(f"M={M} N={N} K={K}", seconds, result, 20)


def rivals():
    models = {
        "L0-RBoost K=1": L0BoostClassifier(),
        "L0-RBoost K=2": L0BoostClassifier(max_order=2),
        "LP-Boost K=1 nu=.56": LPBoostClassifier(nu=0.56),
        "LP-Boost K=5 nu=.5": LPBoostClassifier(max_order=5),
        "SLIPPER": SlipperClassifier(),
        "AdaBoost, 50 stumps": make_pipeline(LogicalBinarizer(support=None), AdaBoostClassifier(random_state=0)),
    }
    if importlib.util.find_spec("imodels"):
        import imodels

        binarizer = LogicalBinarizer(support=None)
        models["imodels boosted rules"] = make_pipeline(binarizer, imodels.BoostedRulesClassifier())
        models["imodels RuleFit"] = make_pipeline(binarizer, imodels.RuleFitClassifier())
    return models


def size_of(model):
    last = model[-1] if hasattr(model, "steps") else model
    if hasattr(last, "n_rules_"):
        return last.n_rules_
    return len(last.estimators_) if hasattr(last, "estimators_") else len(last.rules_)


def accuracy():
    print("10-fold accuracy and number of rules, binarized in the fold; CPU seconds per fit")
    for name in SETS:
        X, y = load(name)
        codes = np.unique(y, return_inverse=True)[1]
        for label, model in rivals().items():
            right, rules, spent = [], [], 0.0
            for train, test in StratifiedKFold(10, shuffle=True, random_state=0).split(X, codes):
                seconds, fitted = seconds_of(lambda: model.fit(X.iloc[train], codes[train]))  # noqa: B023
                spent += seconds
                right.append(fitted.score(X.iloc[test], codes[test]))
                rules.append(size_of(fitted))
            print(f"  {name:9s} {label:22s} {np.mean(right):.3f}  rules {np.mean(rules):5.1f}  {spent / 10:6.2f} s")


if __name__ == "__main__":
    parts = {f.__name__: f for f in (agreement, pricing, relaxation, warm, large, accuracy)}
    for chosen in sys.argv[1:] or parts:
        parts[chosen]()
