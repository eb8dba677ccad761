"""Rounded margin errors, the program near rho, and all cut points, against programs written out in full."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import linprog

from psilearn import prove
from psilearn.app import persist
from psilearn.core.result import Status
from psilearn.estimators.rules import LPBoostClassifier
from psilearn.proofs.statement import ProofError
from psilearn.rules import tuning
from psilearn.rules.binarize import LogicalBinarizer
from psilearn.rules.large import cut_points, near, rounded, simplex
from psilearn.rules.lpboost import soft_margin
from psilearn.rules.observations import Observations
from psilearn.rules.pricing.data import CutPoint
from psilearn.rules.pricing.oracles import MonomialOracle

from oracles.rule_programs import all_columns, random_data


def largest_soft_margin(data, H, D):
    """The linear program with a slack for each observation."""
    m, U = H.shape
    rows = np.c_[-data.y[:, None] * H, -np.eye(m), np.ones(m)]
    total = np.r_[np.ones(U), np.zeros(m + 1)]
    bounds = [(0, None)] * (U + m) + [(None, None)]
    cost = np.r_[np.zeros(U), D * data.weight, -1.0]
    return -linprog(cost, A_ub=rows, b_ub=np.zeros(m), A_eq=[total], b_eq=[1.0], bounds=bounds).fun


def planted(seed, m=60, N=6):
    rng = np.random.default_rng(seed)
    A = rng.integers(0, 2, (m, N))
    y = np.where((A[:, :3].sum(axis=1) > 1) ^ (rng.random(m) < 0.1), 1, -1)
    return Observations.merge(A, y, rng.integers(1, 4, m))


@pytest.mark.parametrize("seed", range(20))
def test_a_vote_and_its_bound_enclose_the_largest_soft_margin(seed):
    data, nu = planted(seed), np.random.default_rng(seed).uniform(0.3, 0.9)
    D = 1 / (nu * data.total)
    H = all_columns(data.X, 2)
    truth = largest_soft_margin(data, H, D)
    found = rounded.solve(data, MonomialOracle(data, 2), D, np.inf)
    margins = data.y * sum(weight * column.h for weight, column in zip(found.weights, found.columns))
    assert margins == pytest.approx(found.margins)
    w = found.multipliers
    assert w.sum() == pytest.approx(1, abs=1e-9)
    assert ((w >= 0) & (w <= D * data.weight + 1e-12)).all()
    reached, bound = soft_margin(margins, data.weight, D)[1], ((w * data.y) @ H).max()
    assert reached <= truth + 1e-9 <= bound + 2e-9
    assert bound - reached <= 0.05


@pytest.mark.parametrize("free", [1, 5, 1000])
@pytest.mark.parametrize("seed", range(12))
def test_few_free_observations_lead_to_the_same_optimum(seed, free, monkeypatch):
    monkeypatch.setattr(near, "_FREE", free)
    rng = np.random.default_rng(seed)
    data = planted(seed) if seed % 2 else Observations.merge(*random_data(rng))
    K, nu = min(2, data.X.shape[1]), rng.uniform(0.15, 1)
    result = near.solve(data, MonomialOracle(data, K), nu)
    truth = largest_soft_margin(data, all_columns(data.X, K), 1 / (nu * data.total))
    assert result.status is Status.OPTIMAL
    assert result.objective == pytest.approx(truth, abs=1e-7)
    assert result.upper_bound == pytest.approx(truth, abs=1e-7)


def test_a_stopped_solve_has_a_model_and_a_bound():
    data = planted(0)
    oracle = MonomialOracle(data, 2)
    done, stopped = near.solve(data, oracle, 0.5), near.solve(data, oracle, 0.5, time_limit=0.0)
    assert stopped.weights.sum() == pytest.approx(1)
    assert stopped.objective <= done.objective + 1e-9 <= stopped.upper_bound + 2e-9


@pytest.mark.parametrize("seed", range(30))
def test_quadratic_on_the_simplex_against_all_faces(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 7))
    root = rng.normal(size=(n, n))
    Q, linear, start = root @ root.T + 1e-6 * np.eye(n), rng.normal(size=n), rng.dirichlet(np.ones(n))

    def value(x):
        return linear @ x - x @ Q @ x / 2

    best = -np.inf
    for size in range(1, n + 1):
        for face in map(list, combinations(range(n), size)):
            system = np.block([[Q[np.ix_(face, face)], np.ones((size, 1))], [np.ones((1, size)), np.zeros((1, 1))]])
            x = np.zeros(n)
            x[face] = np.linalg.solve(system, np.r_[linear[face], 1.0])[:size]
            best = max(best, value(x)) if (x >= 0).all() else best
    x = simplex.maximise(linear, Q, start)
    assert (x >= 0).all()
    assert x.sum() == pytest.approx(1)
    gain = linear - Q @ start
    assert best + 1e-9 >= value(x) >= best - 0.02 * (gain.max() - gain @ start) - 1e-9


def mixed(seed, n=120):
    """Numbers, one with gaps and ties, and a category with gaps."""
    rng = np.random.default_rng(seed)
    b, c = rng.integers(0, 9, n).astype(float), rng.choice(list("uvw"), n)
    X = pd.DataFrame({"a": rng.normal(size=n), "b": b, "c": c})
    y = np.where((X.a > 0.2) ^ (X.b > 4) ^ (rng.random(n) < 0.1) ^ (X.c == "u"), "yes", "no")
    X.loc[rng.random(n) < 0.1, "b"] = np.nan
    X.loc[rng.random(n) < 0.1, "c"] = None
    return X, y


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("many", [10**9, 10])
def test_all_cut_points_are_those_of_the_full_matrix(seed, many, monkeypatch):
    monkeypatch.setattr(tuning, "MANY", many)
    X, y = mixed(seed)
    full = LPBoostClassifier(nu=0.6, binarizer=LogicalBinarizer(support=None, max_cuts=None, missing=True)).fit(X, y)
    model = LPBoostClassifier(nu=0.6, binarizer="all").fit(X, y)
    assert model.objective_ == pytest.approx(full.objective_, abs=1e-8)
    assert model.upper_bound_ == pytest.approx(full.upper_bound_, abs=1e-8)
    assert model.verify(X, y).ok
    assert set(model.attributes_) <= set(full.attributes_)
    assert {a for rule in model.rules_ for a, _ in rule.condition.parts} == set(model.attributes_)
    D = 1 / (0.6 * len(y))
    margins = np.where(y == "yes", 1, -1) * model.decision_function(X)
    assert soft_margin(margins, np.ones(len(y)), D)[1] == pytest.approx(model.objective_, abs=1e-8)


def test_every_cut_point_is_priced():
    rng = np.random.default_rng(0)
    codes, y = rng.integers(0, 5, (40, 3)), rng.choice([-1, 1], 40)
    data = Observations.merge(codes, y, rng.uniform(0.5, 2, 40))
    oracle, w = cut_points.CutPointOracle(data, [4, 4, 4]), rng.dirichlet(np.ones(data.y.size))
    keys = [CutPoint(g, k, a, s) for g in range(3) for k in range(4) for a in (True, False) for s in (1, -1)]
    edges = [w @ (data.y * oracle.column(key).h) for key in keys]
    offer = oracle.offer(w, None, -1.0, 10)
    assert offer.bound == pytest.approx(max(edges))
    assert offer.values == pytest.approx([w @ (data.y * column.h) for column in offer.columns])


def test_claims_about_all_cut_points_are_checked():
    X, y = mixed(0)
    model = LPBoostClassifier(nu=0.6, binarizer="all").fit(X, y)
    result = model.results_[0]
    model.results_[0] = replace(result, upper_bound=result.upper_bound - 1e-4)
    assert not model.verify(X, y).ok
    foreign = [column._replace(key=CutPoint(99, 0, True, 1)) for column in result.columns]
    model.results_[0] = replace(result, columns=foreign)
    assert not model.verify(X, y).ok
    with pytest.raises(ProofError, match="all cut points"):
        prove(LPBoostClassifier(nu=0.6, binarizer="all").fit(X[["a"]], y), X[["a"]], y, "unused.json")


@pytest.mark.parametrize("given", [{"max_order": 2}, {"max_rules": 3}, {"points": 5}])
def test_all_cut_points_are_for_single_conditions(given):
    X, y = mixed(0)
    with pytest.raises(ValueError, match="binarizer='all' is for max_order=1"):
        LPBoostClassifier(binarizer="all", **given).fit(X, y)


def test_several_classes_over_all_cut_points_are_fitted_one_by_one():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(90, 2)), rng.integers(0, 3, 90)
    with pytest.raises(ValueError, match="multiclass='one-vs-rest'"):
        LPBoostClassifier(binarizer="all").fit(X, y)
    model = LPBoostClassifier(binarizer="all", multiclass="one-vs-rest", nu="auto").fit(X, y)
    assert model.predict(X).shape == (90,)
    assert model.verify(X, y).ok


def test_a_model_over_all_cut_points_is_kept_in_a_file(tmp_path):
    X, y = mixed(1)
    model = LPBoostClassifier(nu=0.6, binarizer="all").fit(X, y)
    persist.save(model, tmp_path / "model.psi")
    again = persist.load(tmp_path / "model.psi")
    assert again.export_text() == model.export_text()
    assert again.verify(X, y).ok
