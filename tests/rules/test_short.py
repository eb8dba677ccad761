"""Short lists, whole points, and the error against the number of rules."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from psilearn.core.solving import Clock
from psilearn.estimators.rules import L0BoostClassifier, LPBoostClassifier
from psilearn.estimators.rules.path import rules_path
from psilearn.rules import frontier, joint, lpboost, short
from psilearn.rules.observations import Observations
from psilearn.rules.pricing.oracles import MonomialOracle
from psilearn.rules.tuning import Program

from oracles.rule_programs import all_columns


def noisy(seed, n=120, N=6):
    rng = np.random.default_rng(seed)
    A = rng.integers(0, 2, (n, N)).astype(np.uint8)
    score = A @ np.array([3.0, -2.0, 1.5, 0.0, 0.0, 0.0])[:N]
    return A, np.where((score > np.median(score)) ^ (rng.random(n) < 0.1), 1, -1)


def two_classes(seed, K=1):
    data = Observations.merge(*noisy(seed))
    return short.TwoClasses(data, MonomialOracle(data, K))


@pytest.mark.parametrize("seed", range(3))
def test_newton_finds_the_smallest_logistic_loss(seed):
    from scipy.optimize import minimize

    task = two_classes(seed)
    columns = [*task.constants(), *task.offers(np.ones((task.data.y.size, 1)), 4)]
    A = (task.data.y[:, None] * np.column_stack([c.h for c in columns])).astype(float)
    m = task.data.weight / task.data.total

    def loss(lam):
        return m @ np.logaddexp(0, -A @ lam) + 5e-5 * lam @ lam

    found = minimize(
        loss, np.ones(len(columns)), bounds=[(0, None)] * len(columns), options={"ftol": 1e-15, "gtol": 1e-9}
    )
    assert -short.fit(task, columns, 1e-4).objective == pytest.approx(found.fun, abs=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_lists_of_two_rules_are_close_to_the_best_pair(seed):
    task = two_classes(seed)
    data = task.data
    H = all_columns(data.X, 1)
    loss = min(
        -short.fit(task, [short.Column(k, H[:, k], 0.0) for k in pair], 1e-4).objective
        for pair in itertools.combinations(range(H.shape[1]), 2)
    )
    found = [f for f in short.grow(task, 2) if len(f.columns) == 2]
    assert -found[-1].objective <= loss + 0.01


def test_lists_grow_and_improve():
    found = list(short.grow(two_classes(1), 6))
    sizes = [len(f.columns) for f in found]
    assert sizes == sorted(sizes)
    assert sizes[-1] <= 6
    losses = [-f.objective for f in found]
    assert losses == sorted(losses, reverse=True)


@pytest.mark.parametrize("nu", [0.3, 0.8])
def test_softest_weights_solve_the_program_over_the_list(nu):
    from scipy.optimize import linprog

    task = two_classes(2)
    (*_, found) = short.grow(task, 5)
    data, D = task.data, 1 / (nu * task.data.total)
    A = (data.y[:, None] * np.column_stack([c.h for c in found.columns])).astype(float)
    m, c = A.shape
    cost = np.r_[np.zeros(c), D * data.weight, -1.0]
    rows = np.c_[-A, -np.eye(m), np.ones(m)]
    bounds = [(0, None)] * (c + m) + [(None, None)]
    best = -linprog(cost, A_ub=rows, b_ub=np.zeros(m), A_eq=[[1.0] * c + [0.0] * (m + 1)], b_eq=[1], bounds=bounds).fun
    assert short.softest(task, found, nu).objective == pytest.approx(best, abs=1e-8)


def test_points_are_whole_small_and_as_good_as_any_nearby():
    task = two_classes(0)
    (*_, found) = short.grow(task, 4)
    card = short.rounded(task, found, 5)
    assert np.array_equal(card.weights, card.weights.round())
    assert 1 <= card.weights.min() <= card.weights.max() <= 5
    loose = short.mistakes(task, card)
    assert loose <= short.mistakes(task, found) + 0.05 * task.data.total


@pytest.mark.parametrize("options", [{"max_rules": 3}, {"points": 4}, {"max_rules": 4, "points": 3, "nu": 0.6}])
def test_the_estimator_keeps_to_the_limits(options):
    A, y = noisy(3)
    model = LPBoostClassifier(**({"nu": "auto"} | options)).fit(A, y)
    assert model.n_rules_ <= options.get("max_rules", 8)
    if "points" in options:
        assert np.array_equal(model.weights_, model.weights_.round())
        assert model.weights_.max() <= options["points"]
        assert f"{model.weights_.max():.0f}  for" in model.export_text()
    assert model.objective_ <= model.upper_bound_
    votes = sum(w * rule.sign * rule.covers(A) for w, rule in zip(model.weights_, model.rules_)) * (2 * (y > 0) - 1)
    margins = votes / model.weights_.sum()
    nu = model.nu_[0]
    assert lpboost.soft_margin(margins, np.ones(len(y)), 1 / (nu * len(y)))[1] == pytest.approx(model.objective_)
    assert model.verify(A, y).ok
    assert model.score(A, y) > 0.75
    model.results_[0].weights[:] = model.results_[0].weights[::-1].copy() + np.arange(model.n_rules_)
    assert not model.verify(A, y).ok


def test_several_classes_have_short_lists_and_points_too():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 3))
    y = np.array(["a", "b", "c"])[(X[:, 0] > -0.4).astype(int) + (X[:, 0] + 0.3 * X[:, 1] > 0.5)]
    model = LPBoostClassifier(nu=0.3, max_rules=5, points=3, max_order=2).fit(X, y)
    assert model.n_rules_ <= 5
    assert set(model.weights_) <= {1.0, 2.0, 3.0}
    assert model.score(X, y) > 0.8
    assert model.verify(X, y).ok


def test_bad_limits_are_refused():
    A, y = noisy(3)
    for name in ("max_rules", "points"):
        with pytest.raises(ValueError, match=name):
            LPBoostClassifier(**{name: 0}).fit(A, y)
        with pytest.raises(ValueError, match="base_learner"):
            LPBoostClassifier(base_learner="precomputed", **{name: 3}).fit(A, y)


def program(seed, K=1):
    data = Observations.merge(*noisy(seed, n=40, N=4))
    return Program(data, lambda part, order: MonomialOracle(part, order))


@pytest.mark.parametrize("seed", range(4))
def test_no_list_of_a_length_makes_fewer_mistakes_than_its_bound(seed):
    task_program = program(seed)
    data = task_program.data
    bounds = frontier.bounds_on_mistakes(task_program, 1, 3, 60.0)
    H = all_columns(data.X, 1)
    levels = np.array(list(itertools.product(range(4), repeat=3)))[1:]
    for m in (1, 2, 3):
        fewest = math.inf
        for chosen in itertools.combinations(range(H.shape[1]), m):
            margins = data.y[:, None] * (H[:, chosen] @ levels[:, :m].T)
            fewest = min(fewest, float((data.weight @ (margins <= 0)).min()))
        assert bounds[m - 1] <= fewest + 1e-6
    assert bounds[0] > 0
    assert (np.diff(bounds) <= 1e-9).all()


def test_lengths_without_a_list_of_their_own_repeat_the_shorter_one():
    grown = frontier.lists(program(0), 1, 6, 60.0)
    assert len(grown) == 6
    assert all(len(f.columns) <= m for m, f in enumerate(grown, start=1))
    sizes = [len(f.columns) for f in grown]
    assert sizes == sorted(sizes)


def test_held_out_errors_have_a_row_for_each_fold():
    shares = frontier.held_out(program(1), 1, 3, 0, Clock(60.0), frontier.Tuning(folds=3, repeats=1))
    assert shares.shape == (3, 3)
    assert ((shares >= 0) & (shares <= 1)).all()


def test_margins_of_several_classes():
    data = Observations.of_classes(np.array([[0], [1], [1]], np.uint8), np.array([0, 1, 2]))
    task = short.SeveralClasses(data, joint.ClassOracle(data, 3, 1))
    column = task.oracle.column(joint.Vote((0,), 1))
    margins = task.margins([column])[:, :, 0]
    by_label = {int(y): row for y, row in zip(data.y, margins)}
    assert sorted(by_label[1]) == [1.0, 1.0]
    assert sorted(by_label[2]) == [-1.0, 0.0]
    assert sorted(by_label[0]) == [0.0, 0.0]


@pytest.mark.parametrize("options", [{"max_rules": 2}, {"max_rules": 3, "points": 3}, {"points": 5, "costs": 1.0}])
def test_l0_boost_keeps_to_the_limits_with_an_honest_bound(options):
    A, y = noisy(4, n=60)
    model = L0BoostClassifier(**options).fit(A, y)
    most = options.get("max_rules", 8)
    assert model.n_rules_ <= most
    assert model.lower_bound_ <= model.objective_
    verified = model.verify(A, y)
    assert verified.ok
    (result,) = model.results_
    worse = replace(result, certificate=replace(result.certificate, lower_bound=result.objective + 1))
    model.results_ = [worse]
    assert not model.verify(A, y).ok
    if "points" in options:
        assert set(model.weights_) <= set(range(1, options["points"] + 1))


@pytest.mark.parametrize("seed", range(3))
def test_the_bound_with_few_rules_is_below_every_list(seed):
    A, y = noisy(seed, n=30, N=3)
    model = L0BoostClassifier(max_rules=2, costs=1.0, rho=0.05).fit(A, y)
    data = Observations.merge(A, y)
    H = all_columns(data.X, 1)
    best = math.inf
    for pair in itertools.combinations(range(H.shape[1]), 2):
        for share in np.linspace(0, 1, 21):
            margins = data.y * (H[:, pair] @ [share, 1 - share])
            best = min(best, float(data.weight @ (margins < 0.05)) + (share > 0) + (share < 1))
    assert model.lower_bound_ <= best + 1e-6
    assert model.objective_ <= best + 2


def test_the_path_of_lists():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 3))
    y = np.where((X[:, 0] > 0) ^ (rng.random(150) < 0.1), "ill", "well")
    path = rules_path(LPBoostClassifier(nu="auto"), X, y, max_rules=4)
    assert path.n_rules.tolist() == [1, 2, 3, 4]
    assert (path.bounds <= path.train_errors + 1e-9).all()
    assert path.bounds[1] > 0
    assert ((path.errors >= 0) & (path.errors <= 0.6)).all()
    for m in path.n_rules:
        model = path.estimator(m)
        assert model.n_rules_ <= m
        assert 1 - model.score(X, y) == pytest.approx(path.train_errors[m - 1])
    assert 1 <= path.best <= 4
    assert len(str(path).splitlines()) == 5
    with pytest.raises(ValueError, match="n_rules"):
        path.estimator(9)
    with pytest.raises(ValueError, match="LPBoostClassifier"):
        rules_path(L0BoostClassifier(), X, y)
    assert path.plot() is not None
