"""Models for growing prices against the linear programs of LP-Boost at the nu that they state."""

import numpy as np
import pytest

from psilearn.core.result import Status
from psilearn.rules import joint, lpboost
from psilearn.rules.observations import Observations
from psilearn.rules.penalised import VotePath
from psilearn.rules.pricing.oracles import MonomialOracle
from psilearn.rules.tuning import Choice, Program, Settings, choose, model_of

from oracles.rule_programmes import random_data

STRENGTHS = (2.0, 4.0, 9.0, 30.0, 100.0)


@pytest.mark.parametrize("seed", range(30))
def test_every_step_is_optimal_in_lp_boost_with_its_nu(seed):
    data = Observations.merge(*random_data(np.random.default_rng(seed)))
    oracle = MonomialOracle(data, min(2, data.X.shape[1]))
    path, margins = VotePath(data, oracle, 1e-9, 5), []
    for strength in STRENGTHS:
        step = path.step(strength, np.inf)
        if step is None:
            continue
        votes = data.y * sum(l * c.h for l, c in zip(step.weights, step.columns))
        reached = lpboost.soft_margin(votes, data.weight, 1 / (step.nu * data.total))[1]
        proved = lpboost.solve(data, oracle, step.nu)
        assert proved.status is Status.OPTIMAL
        assert reached == pytest.approx(proved.upper_bound, abs=1e-7)
        assert step.weights.sum() == pytest.approx(1)
        margins.append(step.margin)
    assert margins == sorted(margins, reverse=True)  # the larger the price, the larger the votes


@pytest.mark.parametrize("seed", range(15))
def test_every_step_is_optimal_for_several_classes(seed):
    rng = np.random.default_rng(seed)
    A = rng.integers(0, 2, (60, 5))
    y = (A[:, 0] + A[:, 1] + (rng.random(60) < 0.2)) % 3
    data = Observations.of_classes(A, y, rng.uniform(0.5, 2, 60))
    oracle = joint.ClassOracle(data, 3, 2)
    path = VotePath(data, oracle, 1e-9, 5)
    used = 0
    for strength in STRENGTHS:
        step = path.step(strength, np.inf)
        if step is None:
            continue
        votes = joint.margins_of(joint.scores_of(step.columns, step.weights, 3), data.y).min(axis=1)
        reached = lpboost.soft_margin(votes, data.weight, 1 / (step.nu * data.total))[1]
        assert reached == pytest.approx(joint.solve(oracle, step.nu).upper_bound, abs=1e-7)
        used += 1
    assert used >= 3


def noisy(seed, n=250, flips=0.2):
    rng = np.random.default_rng(seed)
    A = rng.integers(0, 2, (n, 8))
    y = np.where((A[:, 0] + A[:, 1] + A[:, 2] > 1) ^ (rng.random(n) < flips), 1, -1)
    data = Observations.merge(A, y)
    return Program(data, lambda part, order: MonomialOracle(part, order)), A


def test_the_chosen_price_is_between_silence_and_belief_in_wrong_labels():
    program, A = noisy(0)
    choice = choose(program, [1], None, 0, np.inf)
    assert Settings().strengths[0] < choice.strength < Settings().strengths[-1]
    assert choice.error < 0.3
    step = model_of(program, choice, np.inf)
    truth = np.where(A[:, 0] + A[:, 1] + A[:, 2] > 1, 1, -1)
    clean = Observations.merge(A, truth)
    assert program.mistakes(step.columns, step.weights, clean) == 0


def test_without_time_or_folds_nu_is_a_half():
    program, _ = noisy(1, n=40)
    assert choose(program, [2, 1], None, 0, 0.0) == Choice(2, 0.5)
    one = Program(Observations.merge([[0], [1]], [1, -1]), program.oracle_of)
    assert choose(one, [1], None, 0, np.inf)[:2] == (1, 0.5)
