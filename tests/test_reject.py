"""The reject option: thresholds, costs, guarantees."""

import numpy as np
import pytest
from conftest import noisy_sample

from psilearn import RejectClassifier, SVMClassifier
from psilearn.metrics import chow_loss, chow_rule, information_criterion, risk_coverage_curve
from psilearn.selective import cheapest_threshold, confidence_of, guaranteed_threshold


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(1)
    X, y = noisy_sample(rng, 300, 4, 2, flip=0.2)
    return X[:150], y[:150], X[150:], y[150:]


def test_predict_always_answers_and_abstention_is_marked(data):
    X, y, X_new, _ = data
    model = RejectClassifier(threshold=0.5).fit(X, np.array(["no", "yes"])[y])
    assert set(model.predict(X_new)) <= {"no", "yes"}
    marked = model.predict_or_abstain(X_new, "ask a doctor")
    np.testing.assert_array_equal(marked == "ask a doctor", model.abstains(X_new))
    assert set(RejectClassifier(threshold=0.5).fit(X, y).predict_or_abstain(X_new, -1)) <= {-1, 0, 1}
    np.testing.assert_array_equal(model.abstains(X_new), np.abs(model.decision_function(X_new)) <= 0.5)


def test_score_is_one_minus_chow(data):
    X, y, X_new, y_new = data
    model = RejectClassifier(d=0.3).fit(X, y)
    abstains, wrong = model.abstains(X_new), model.predict(X_new) != y_new
    assert model.score(X_new, y_new) == pytest.approx(1 - np.mean(np.where(abstains, 0.3, wrong)))


def test_d_one_half_limit_is_the_svm(data):
    X, y, _, _ = data
    reject = RejectClassifier(d=0.4999999, penalty="l2", tol=1e-7).fit(X, y)
    svm = SVMClassifier(tol=1e-7).fit(X, y)
    assert reject.objective_ == pytest.approx(svm.objective_, rel=1e-5)


def test_auto_threshold_is_no_worse_than_extremes_on_its_folds(data):
    X, y, _, _ = data
    model = RejectClassifier(threshold="auto", d=0.2).fit(X, y)
    assert np.isfinite(model.threshold_)
    assert model.threshold_ >= 0


def test_cheapest_threshold_equals_search(rng):
    for _ in range(200):
        n = int(rng.integers(2, 30))
        confidence = np.round(rng.random(n), 1)
        correct = rng.random(n) < 0.4 + 0.6 * confidence
        d = float(rng.uniform(0.05, 0.5))

        def cost(threshold, confidence=confidence, correct=correct, d=d):
            return np.sum(np.where(confidence <= threshold, d, ~correct))

        best = min(cost(t) for t in np.r_[-1.0, np.unique(confidence)])
        chosen = cheapest_threshold(confidence, correct, d)
        assert cost(chosen) == pytest.approx(best) or (chosen == 0.0 and cost(-1.0) == pytest.approx(best))


def test_truncated_reject_is_robust_and_abstains(data):
    X, y, X_new, _ = data
    model = RejectClassifier(s=-1.0, solver="dca").fit(X, y)
    assert model.status_ == "critical"
    assert model.abstains(X_new).any()


def test_three_classes(rng):
    X, y = noisy_sample(rng, 90, 3, 3)
    model = RejectClassifier(penalty="l2").fit(X, y)
    F = np.sort(model.decision_function(X), axis=1)
    np.testing.assert_array_equal(model.abstains(X), F[:, -1] - F[:, -2] <= 0.5)


def test_risk_coverage_by_hand():
    curve = risk_coverage_curve([0, 0, 1, 1], [0, 1, 1, 0], [0.9, 0.1, 0.8, 0.1])
    np.testing.assert_allclose(curve.coverage, [0.25, 0.5, 1.0])
    np.testing.assert_allclose(curve.risk, [0.0, 0.0, 0.5])
    np.testing.assert_allclose(curve.thresholds, [0.9, 0.8, 0.1])
    assert curve.area == pytest.approx(0.125)
    with pytest.raises(ValueError, match="confidence"):
        risk_coverage_curve([0, 1], [0, 1], [0.5])


def test_chow():
    assert chow_loss([0, 1, 1], [0, 0, 1], [False, False, True], 0.2) == pytest.approx((0 + 1 + 0.2) / 3)
    np.testing.assert_array_equal(chow_rule([[0.1, 0.9], [0.3, 0.7]], 0.2), [False, True])


def test_guarantee_holds_its_level():
    """Over many calibration samples the true selective risk exceeds the promise in at most about 1 - level of them."""
    rng = np.random.default_rng(3)
    candidates = np.linspace(0, 0.98, 50)
    # P(error | confidence c) = (1 - c) / 2 with c uniform: selective risk above threshold t is (1 - t) / 4.
    broken = answered = 0
    for _ in range(400):
        confidence = rng.random(800)
        correct = rng.random(800) > (1 - confidence) / 2
        promise = guaranteed_threshold(confidence, correct, candidates, risk=0.1, level=0.9)
        if np.isfinite(promise.threshold):
            answered += 1
            broken += (1 - promise.threshold) / 4 > 0.1
    assert answered > 300
    assert broken / 400 <= 0.1 + 3 * np.sqrt(0.1 * 0.9 / 400)


def test_calibrate_sets_the_threshold(data):
    X, y, X_new, y_new = data
    model = RejectClassifier(C=0.3).fit(X, y)
    promise = model.calibrate(X_new, y_new, risk=0.25, level=0.9)
    assert model.threshold_ == promise.threshold
    assert "errors among answered" in str(promise)
    none = guaranteed_threshold(np.ones(5), np.zeros(5, dtype=bool), [0.0], 0.05)
    assert np.isinf(none.threshold)
    assert "no threshold" in str(none)


def test_confidence_shapes():
    np.testing.assert_allclose(confidence_of(np.array([-2.0, 1.0])), [2, 1])
    np.testing.assert_allclose(confidence_of(np.array([[1.0, 4.0, 2.0]])), [2.0])


def test_information_criterion_by_hand(data):
    X, y, _, _ = data
    model = RejectClassifier(C=0.05).fit(X, y)
    u = np.where(y == 1, 1, -1) * model.decision_function(X)
    phi = np.maximum(1 - u, 0) + 3.0 * np.maximum(-u, 0)
    expected = phi.mean() + np.log(150) / 300 * np.count_nonzero(model.coef_)
    assert information_criterion(model, X, y) == pytest.approx(expected)
