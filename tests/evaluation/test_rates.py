"""Intervals and tests against formulas of others, and by simulation."""

import numpy as np
import pytest
from scipy.stats import mannwhitneyu
from sklearn.metrics import roc_auc_score

from psilearn.evaluation.rates import area_under_roc, calibration, difference, paired, rate, wilson


def test_wilson_interval_against_its_equation():
    # Brown, Cai and DasGupta: the limits solve |p_hat - p| = z sqrt(p (1 - p) / n).
    low, high = wilson(7, 50)
    for p in (low, high):
        assert abs(7 / 50 - p) == pytest.approx(1.959964 * np.sqrt(p * (1 - p) / 50), rel=1e-6)
    assert wilson(0, 50)[0] == 0.0
    assert wilson(0, 0) == (0.0, 1.0)
    assert str(rate([True, False, False, False])).startswith("25.0% (4.6–69.9%")


def test_area_under_roc_is_that_of_others_and_its_interval_covers():
    rng = np.random.default_rng(0)
    y = rng.random(300) < 0.3
    scores = np.round(rng.normal(size=300) + y, 1)  # with ties
    found = area_under_roc(scores, y)
    assert found.value == pytest.approx(roc_auc_score(y, scores))
    assert found.value == pytest.approx(mannwhitneyu(scores[y], scores[~y]).statistic / (y.sum() * (~y).sum()))
    truth, inside = 0.76025, 0  # P(N(1, 1) > N(0, 1)) = Phi(1 / sqrt 2)
    for _ in range(400):
        y = rng.random(120) < 0.3
        found = area_under_roc(rng.normal(size=120) + y, y)
        inside += found.low <= truth <= found.high
    assert 0.92 < inside / 400 < 0.98


def test_areas_at_the_ends_keep_an_interval():
    found = area_under_roc([1, 2, 3, 4, 5, 6], [0, 0, 0, 1, 1, 1])
    assert found.value == 1.0
    assert found.low < 0.6
    assert np.isnan(area_under_roc([1, 2, 3], [0, 0, 1]).value)


def test_paired_differences():
    wrong, other = np.array([1, 0, 0, 0, 1], bool), np.array([1, 1, 1, 1, 0], bool)
    assert paired(wrong, other)[:2] == (3, 1)
    assert paired(wrong, wrong) == (0, 0, 1.0)
    assert not paired(wrong, other).is_clear
    assert paired(np.zeros(9, bool), np.ones(9, bool)).is_clear
    gain = difference(wrong, other)
    assert gain.value == pytest.approx(2 / 5)
    assert gain.low < 0 < gain.high


def test_calibration_counts_every_row_once():
    rng = np.random.default_rng(1)
    p = rng.random(1000)
    y = rng.random(1000) < p
    found = calibration(p, y)
    assert sum(n for _, _, n in found) == 1000
    assert all(abs(mean - share.value) < 0.15 for mean, share, _ in found)
    assert [mean for mean, _, _ in found] == sorted(mean for mean, _, _ in found)
