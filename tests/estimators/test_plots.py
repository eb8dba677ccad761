"""Pictures: the numbers shown are those of the fit, and every display draws on given axes."""

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

mpl.use("Agg")

import matplotlib.pyplot as plt

import psilearn
from psilearn.estimators.plots import (
    BoundaryDisplay,
    BoundsDisplay,
    LossDisplay,
    PathDisplay,
    RiskCoverageDisplay,
    RulesDisplay,
)
from psilearn.estimators.rules import L0BoostClassifier


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def sample():
    rng = np.random.default_rng(8)
    X = rng.normal(size=(80, 2))
    y = np.where(X[:, 0] + X[:, 1] > 0, "yes", "no")
    y[:4] = np.where(y[:4] == "yes", "no", "yes")
    X[:4] *= 2
    return X, y


def test_losses_break_where_they_jump():
    losses = [psilearn.Hinge(), psilearn.Psi(1.0), psilearn.TruncatedHinge(-1.0)]
    display = LossDisplay.from_losses(losses)
    assert len(display.ax_.lines) == 3
    psi = display.values[str(losses[1])]
    shown = ~np.isnan(psi)
    np.testing.assert_allclose(psi[shown], losses[1].value(display.margins)[shown])
    assert np.isnan(psi).sum() == 1
    assert not np.isnan(display.values[str(losses[2])]).any()


def test_boundary_marks_support_and_suspects(sample):
    X, y = sample
    model = psilearn.TruncatedHingeClassifier(solver="dca").fit(X, y)
    display = BoundaryDisplay.from_estimator(model, X, y, resolution=30)
    assert np.array_equal(display.suspects, model.suspects_)
    assert {"yes", "no", "support", "suspect"} == {t.get_text() for t in display.ax_.get_legend().get_texts()}
    F = model.decision_function([[display.xx[3, 5], display.yy[3, 5]]])
    assert display.scores[3, 5] == pytest.approx(F[0])


def test_boundary_of_three_classes_with_names():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(60, 2)), columns=["age", "dose"])
    y = np.digitize(X["age"], [-0.4, 0.4])
    model = psilearn.SVMClassifier().fit(X, y)
    display = BoundaryDisplay.from_estimator(model, X, y, resolution=20)
    assert display.ax_.get_xlabel() == "age"
    assert display.scores.shape == (20, 20, 3)


def test_boundary_needs_two_features(sample):
    X, y = sample
    X3 = np.c_[X, X[:, :1]]
    with pytest.raises(ValueError, match="two features"):
        BoundaryDisplay.from_estimator(psilearn.SVMClassifier().fit(X3, y), X3, y)


def test_path(sample):
    X, y = sample
    display = PathDisplay.from_estimator(psilearn.SVMClassifier(penalty="l1"), X, y, Cs=[1.0, 0.01, 0.1], n_named=1)
    path = psilearn.regularization_path(psilearn.SVMClassifier(penalty="l1"), X, y, [0.01, 0.1, 1.0])
    drawn = {tuple(np.round(line.get_ydata(), 6)) for line in display.ax_.lines}
    assert drawn == {tuple(np.round(path.coefs[:, 0, j], 6)) for j in range(2)}
    assert len(display.ax_.get_legend().get_texts()) == 1


def test_risk_coverage(sample):
    X, y = sample
    model = psilearn.RejectClassifier(C=10.0).fit(X, y)
    display = RiskCoverageDisplay.from_estimator(model, X, y)
    assert display.risk[-1] == pytest.approx(np.mean(model.predict(X) != y))
    answers = ~model.abstains(X)
    assert display.answered == pytest.approx(answers.mean())
    at = round(display.answered * len(y)) - 1
    assert display.risk[at] == pytest.approx(display.error)
    assert np.isnan(RiskCoverageDisplay.from_estimator(psilearn.SVMClassifier().fit(X, y), X, y).answered)


def test_bounds(sample):
    X, y = sample
    model = psilearn.PsiClassifier(solver="mip", time_limit=5).fit(X[:30], y[:30])
    display = BoundsDisplay.from_estimator(model)
    assert display.objective[-1] == pytest.approx(model.objective_)
    known = ~np.isnan(display.bound)
    assert np.all(display.bound[known] <= display.objective[known] + 1e-6)


def test_rules(sample):
    X, y = sample
    model = L0BoostClassifier().fit(X, y)
    display = RulesDisplay.from_estimator(model, n_rules=3)
    assert len(display.ax_.patches) == min(3, model.n_rules_)
    np.testing.assert_allclose(np.abs(display.weights), np.sort(model.weights_)[::-1][: len(display.weights)])


def test_drawn_on_given_axes(sample):
    X, y = sample
    _, axes = plt.subplots(1, 2)
    display = RiskCoverageDisplay.from_estimator(psilearn.SVMClassifier().fit(X, y), X, y, ax=axes[1])
    assert display.ax_ is axes[1]
    assert display.plot(axes[0]) is axes[0]
