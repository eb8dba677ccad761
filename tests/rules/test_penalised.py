"""Models for growing prices against the linear programs of LP-Boost at the nu that they state."""

import numpy as np
import pytest

from psilearn.core.result import Status
from psilearn.rules import joint, lpboost
from psilearn.rules.observations import Observations
from psilearn.rules.penalised import VotePath
from psilearn.rules.pricing.oracles import MonomialOracle
from psilearn.rules.tuning import Choice, Program, Settings, choose, model_of, solve

from oracles.rule_programs import random_data

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
    step = model_of(program, choice, 0, np.inf)
    truth = np.where(A[:, 0] + A[:, 1] + A[:, 2] > 1, 1, -1)
    clean = Observations.merge(A, truth)
    assert program.mistakes(step.columns, step.weights, clean) == 0


def test_without_time_or_folds_nu_is_a_half():
    program, _ = noisy(1, n=40)
    assert choose(program, [2, 1], None, 0, 0.0) == Choice(2, 0.5)
    one = Program(Observations.merge([[0], [1]], [1, -1]), program.oracle_of)
    assert choose(one, [1], None, 0, np.inf)[:2] == (1, 0.5)


@pytest.mark.parametrize("seed", range(10))
def test_a_start_is_a_model_with_a_bound_when_there_is_no_time(seed):
    data = Observations.merge(*random_data(np.random.default_rng(seed)))
    oracle = MonomialOracle(data, 1)
    step = VotePath(data, oracle, 1e-9, 5).step(20.0, np.inf)
    nu = min(1.0, 1.1 * step.nu)
    best = lpboost.solve(data, oracle, nu)
    stopped = lpboost.solve(data, oracle, nu, start=step.columns, start_weights=step.weights, time_limit=0.0)
    is_proved = stopped.upper_bound - stopped.objective <= 1e-9
    assert stopped.status is (Status.OPTIMAL if is_proved else Status.TIME_LIMIT)
    assert stopped.weights.sum() == pytest.approx(1)
    assert stopped.objective <= best.objective + 1e-9 <= stopped.upper_bound + 2e-9
    assert stopped.evidence.sum() == pytest.approx(1)
    assert (stopped.evidence <= data.weight / (nu * data.total) + 1e-12).all()
    again = lpboost.solve(data, oracle, nu, start=step.columns, start_weights=step.weights)
    assert again.objective == pytest.approx(best.objective, abs=1e-9)
    assert again.status is Status.OPTIMAL


@pytest.mark.parametrize("n_classes", [2, 3])
def test_many_rows_begin_with_the_rules_of_a_part(n_classes):
    rng = np.random.default_rng(0)
    A = rng.integers(0, 2, (2000, 12))
    score = A[:, :6].sum(axis=1)
    truth = np.digitize(score, [2.5, 3.5][: n_classes - 1])
    given = np.where(rng.random(2000) < 0.1, rng.integers(0, n_classes, 2000), truth)
    if n_classes == 2:
        program = Program(Observations.merge(A, given), lambda part, order: MonomialOracle(part, order))
    else:
        program = Program(Observations.of_classes(A, given), lambda part, order: joint.ClassOracle(part, 3, order), 3)
    few = Settings(rows=800)
    begun = solve(program, Choice(1, 0.6), 0, np.inf, few, max_iter=0)
    done = solve(program, Choice(1, 0.6), 0, np.inf, few)
    assert begun.n_iter == 0 < done.n_iter
    assert 0 < begun.objective <= done.objective <= begun.upper_bound
    assert done.status is Status.OPTIMAL
    assert done.objective == pytest.approx(program.solve(1, 0.6).objective, abs=1e-9)
    mistakes = [program.mistakes(found.columns, found.weights, program.data) for found in (begun, done)]
    assert mistakes[0] <= 1.3 * mistakes[1]
