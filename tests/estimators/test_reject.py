"""The reject option: thresholds, costs, guarantees."""

from dataclasses import replace

import numpy as np
import pytest

from psilearn import RejectClassifier, SVMClassifier
from psilearn.core.losses import ByClass, Hinge, Psi, RejectHinge, TruncatedHinge, reject_by_class
from psilearn.evaluation.metrics import chow_loss, chow_rule, information_criterion, risk_coverage_curve
from psilearn.evaluation.selective import cheapest_threshold, confidence_of, guaranteed_threshold

from oracles.samples import noisy_sample


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


COSTS = [(0.2, 0.2), (0.1, 0.3), (0.4, 0.05), (0.6, 0.2), (0.01, 0.9)]  # of abstaining on the classes 0 and 1


def chow_with_two_costs(eta, costs):
    """The cheapest of answering -1, abstaining (0) and answering +1, from the table of costs itself."""
    prices = np.array([eta, (1 - eta) * costs[0] + eta * costs[1], 1 - eta])
    return np.array([-1, 0, 1])[prices.argmin(axis=0)]


@pytest.mark.parametrize("costs", COSTS)
def test_the_population_minimiser_is_the_cheapest_rule(costs):
    eta = (np.arange(200) + 0.5) / 200
    f = np.linspace(-2, 2, 401)
    loss = reject_by_class(costs)
    negative, positive = (loss.value(sign * f, np.full(f.size, code)) for code, sign in enumerate((-1, 1)))
    risk = (1 - eta)[:, None] * negative + eta[:, None] * positive
    np.testing.assert_allclose(f[risk.argmin(axis=1)], chow_with_two_costs(eta, costs), atol=1e-12)


def test_equal_costs_are_the_symmetric_loss(data):
    X, y, X_new, y_new = data
    pair, number = (RejectClassifier(d=d, tol=1e-8).fit(X, y) for d in ((0.2, 0.2), 0.2))
    assert pair.objective_ == pytest.approx(number.objective_, rel=1e-7)
    assert pair.score(X_new, y_new) == pytest.approx(number.score(X_new, y_new))


@pytest.mark.parametrize("costs", COSTS)
@pytest.mark.parametrize("solver", ["l1", "bundle", "program"])
def test_a_fit_on_groups_is_the_cheapest_rule_of_each_group(costs, solver):
    """One indicator per group and hardly any penalty: the fit is the population minimiser of every group."""
    share = np.array([0.02, 0.13, 0.24, 0.35, 0.46, 0.57, 0.68, 0.79, 0.9, 0.98])
    group = np.repeat(np.arange(share.size), 100)
    y = np.where(np.arange(group.size) % 100 < 100 * share[group], "sick", "healthy")
    model = RejectClassifier(d=dict(zip(["healthy", "sick"], costs)), C=100.0, solver=solver, tol=1e-6)
    model.fit(np.eye(share.size)[group], y)
    marked = model.predict_or_abstain(np.eye(share.size), "?")
    expected = np.array(["healthy", "?", "sick"])[1 + chow_with_two_costs(share, costs)]
    np.testing.assert_array_equal(marked, expected)


def test_score_and_threshold_pay_the_cost_of_the_class(data):
    X, y, X_new, y_new = data
    model = RejectClassifier(d=(0.1, 0.4), threshold="auto").fit(X, y)
    abstains, wrong = model.abstains(X_new), model.predict(X_new) != y_new
    paid = np.where(abstains, np.array([0.1, 0.4])[y_new], wrong)
    assert model.score(X_new, y_new) == pytest.approx(1 - paid.mean())
    confidence, correct = np.array([0.1, 0.2, 0.3]), np.array([False, False, True])
    assert cheapest_threshold(confidence, correct, [0.5, 2.0, 0.5]) == pytest.approx(0.15)  # the second costs too much
    assert cheapest_threshold(confidence, correct, [0.5, 0.4, 0.5]) == pytest.approx(0.25)


def test_a_kernel_classifier_and_a_linear_one_agree_on_two_costs(data):
    X, y, _, _ = data
    linear, kernel = (
        RejectClassifier(d=(0.1, 0.3), penalty="l2", kernel=kind, tol=1e-7).fit(X, y) for kind in ("linear", "poly")
    )
    same = RejectClassifier(d=(0.1, 0.3), penalty="l2", kernel="poly", degree=1, gamma=1.0, tol=1e-7).fit(X, y)
    assert same.objective_ == pytest.approx(linear.objective_, rel=1e-5)
    assert kernel.gap_ <= 1e-7


def test_truncated_with_two_costs_descends_and_others_refuse(data):
    X, y, _, _ = data
    model = RejectClassifier(d=(0.1, 0.3), s=-1.0, C=0.3).fit(X, y)
    assert model.status_ == "critical"
    u = np.where(y == 1, 1, -1) * model.decision_function(X)
    slope = np.array([(1 - d) / d for d in (0.3 / 1.2, 0.1 / 0.8)])[y]  # of phi below 0
    paid = np.minimum(np.maximum.reduce([np.zeros(u.size), 1 - u, 1 - slope * u]), 1 + slope)
    assert model.objective_ == pytest.approx(np.abs(model.coef_).sum() + 0.3 * paid.sum())
    convex = RejectClassifier(d=(0.1, 0.3), C=0.3).fit(X, y)
    problem = model.problem(X, y)
    assert model.objective_ <= problem.value(convex.coef_, convex.intercept_) + 1e-9
    for solver in ("mip", "patterns", "outer", "cones"):
        with pytest.raises(ValueError, match="losses that differ by class"):
            RejectClassifier(d=(0.1, 0.3), s=-1.0, solver=solver).fit(X, y)


def test_dual_bounds_of_losses_by_class_hold(data):
    X, y, _, _ = data
    problem = RejectClassifier(d=(0.1, 0.3), penalty="l2").fit(X, y).problem(X, y)
    rng = np.random.default_rng(0)
    best = RejectClassifier(d=(0.1, 0.3), penalty="l2", tol=1e-9).fit(X, y).objective_
    for scale in 10.0 ** rng.uniform(-3, 1, 50):
        assert problem.dual_bound(scale * rng.normal(size=(problem.n, 1))) <= best * (1 + 1e-9)
    swapped = replace(problem, loss=ByClass((RejectHinge(0.2), Hinge())))
    assert swapped.zero_value == pytest.approx(problem.costs.sum())


@pytest.mark.parametrize(
    ("d", "message"),
    [((0.6, 0.5), "less than 1"), ((0.1, 0.0), "positive"), ((0.1, 0.2, 0.3), "pair"), ({0: 0.1, 2: 0.1}, "each of")],
)
def test_impossible_costs_are_refused(data, d, message):
    X, y, _, _ = data
    with pytest.raises(ValueError, match=message):
        RejectClassifier(d=d).fit(X, y)


def test_costs_per_class_are_for_two_classes_and_losses_must_fit_together(rng):
    X, y = noisy_sample(rng, 30, 2, 3)
    with pytest.raises(ValueError, match="two classes"):
        RejectClassifier(d={0: 0.1, 1: 0.2, 2: 0.1}).fit(X, y)
    for losses in ((Hinge(), TruncatedHinge(0.0)), (Psi(1.0), Psi(1.0))):
        with pytest.raises(ValueError, match="without a jump"):
            ByClass(losses)
    with pytest.raises(ValueError, match="classes of the samples"):
        reject_by_class((0.1, 0.2)).value(0.0)
