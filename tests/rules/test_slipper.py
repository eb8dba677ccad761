"""SLIPPER: its bound, its rules, its predictions."""

import numpy as np
import pytest
from sklearn.utils import check_random_state

from psilearn.estimators.rules import SlipperClassifier
from psilearn.rules import slipper
from psilearn.rules.observations import Observations

from oracles.frames import frame


def noisy_rule(seed, n=300):
    rng = np.random.default_rng(seed)
    A = rng.integers(0, 2, (n, 8))
    y = np.where((A[:, 0] & A[:, 3]) ^ (rng.random(n) < 0.05), 1, -1)
    return A, y


@pytest.mark.parametrize("seed", range(5))
def test_training_error_is_below_the_product_of_normalisers(seed):
    A, y = noisy_rule(seed)
    data = Observations.merge(A, y)
    result = slipper.fit(data, 12, 0, check_random_state(seed))
    score = sum(w * column.h for w, column in zip(result.weights, result.columns))
    wrong = data.weight[data.y * score <= 0].sum() / data.total
    exponential = data.weight @ np.exp(-data.y * score) / data.total
    assert result.n_iter == 12
    assert result.objective == pytest.approx(exponential)
    assert wrong <= result.objective


def test_it_finds_the_planted_rule():
    A, y = noisy_rule(7)
    model = SlipperClassifier(random_state=1).fit(A, y)
    assert model.score(*noisy_rule(8)) > 0.9
    conditions = [str(rule.condition) for rule in model.rules_]
    assert any("x0 = 1" in c and "x3 = 1" in c for c in conditions)
    assert all(rule.sign == 1 for rule in model.rules_ if rule.order > 0)


def test_it_is_reproducible_and_reads_frames():
    X, y = frame(9, n=150)
    a, b = (SlipperClassifier(max_rounds=20, random_state=3).fit(X, y) for _ in range(2))
    assert a.export_text() == b.export_text()
    assert a.score(X, y) > 0.9
    assert a.lower_bound_ == -np.inf
