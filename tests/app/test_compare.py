"""The comparison itself: splits, flips, tuning, budget, and the words for its outcomes."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator

from psilearn.app.compare import METHODS, Method, Settings, compare
from psilearn.app.compare.job import flip_labels, make_splits, wilson
from psilearn.app.compare.splits import folds
from psilearn.app.compare.summary import against, certified, n_nonzero, verdict
from psilearn.app.compare.tuning import thin
from psilearn.app.tables import TableError, understand

QUICK = ("svm-l1", "logistic", "boosting")


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(120, 4))
    target = np.where(X[:, 0] + X[:, 1] > 0, "sick", "well")
    return understand(
        pd.DataFrame(X, columns=list("abcd")).assign(colour=np.resize(["r", "g", "b"], 120), target=target)
    )


@pytest.fixture(scope="module")
def comparison(data):
    return compare(data, Settings(budget=20, flip=0.1, methods=QUICK))


def test_flips_exactly_the_share_to_other_classes():
    y = np.repeat(["a", "b", "c"], 40)
    flipped, rows = flip_labels(y, 0.1, seed=1)
    assert len(rows) == 12
    assert np.array_equal(np.flatnonzero(flipped != y), rows)
    again, _ = flip_labels(y, 0.1, seed=1)
    assert np.array_equal(flipped, again)


def test_only_training_labels_are_flipped(data):
    (split,) = make_splits(data, Settings(flip=0.2))
    truth = data.labels.to_numpy(dtype=str)
    assert np.array_equal(split.y_test, truth[split.test])
    assert np.array_equal(np.flatnonzero(split.y_train != truth[split.train]), split.flipped)
    assert len(split.flipped) == round(0.2 * len(split.train))


def test_encoding_is_learnt_on_training_rows_only(data):
    (split,) = make_splits(data, Settings())
    np.testing.assert_allclose(split.X_train.mean(axis=0), 0, atol=1e-12)
    assert np.abs(split.X_test.mean(axis=0)).max() > 1e-6


def test_folds_test_every_row_once(data):
    splits = make_splits(data, Settings(outer_folds=4))
    assert np.array_equal(np.sort(np.concatenate([s.test for s in splits])), np.arange(120))


def test_groups_are_never_divided():
    rng = np.random.default_rng(0)
    patient = np.repeat(np.arange(60), 3)[:150]
    frame = pd.DataFrame({"x": rng.normal(size=150), "patient": patient, "target": np.resize(["a", "b", "b"], 150)})
    table = understand(frame, group="patient")
    assert table.features == ["x"]
    for settings in (Settings(), Settings(outer_folds=3)):
        for split in make_splits(table, settings):
            assert not set(patient[split.train]) & set(patient[split.test])
            assert 0.2 < len(split.test) / 150 < 0.4
            for train, test in folds(split.y_train, split.groups, 3, seed=1):
                assert not set(split.groups[train]) & set(split.groups[test])
    with pytest.raises(TableError, match="in one group of 'patient'"):
        understand(frame.assign(patient=np.where(frame["target"] == "a", 0, patient + 1)), group="patient")


def test_outcomes(comparison):
    assert [o.method.key for o in comparison.outcomes] == list(QUICK)
    assert comparison.not_run == []
    for outcome in comparison.outcomes:
        assert outcome.error < 0.25
        assert outcome.interval[0] <= outcome.error <= outcome.interval[1]
    l1 = comparison.outcome("svm-l1")
    assert l1.tuning.best in METHODS[1].grid
    assert certified(l1.model).startswith("optimum, gap")
    assert n_nonzero(l1.model) == np.sum(l1.model.coef_[0] != 0)
    assert certified(comparison.outcome("logistic").model) == "no claim"
    assert verdict(comparison).startswith("Smallest test error: " + comparison.best.method.label)


def test_same_seed_same_outcome(data, comparison):
    again = compare(data, Settings(budget=20, flip=0.1, methods=QUICK[:1]))
    assert np.array_equal(again.outcomes[0].wrong, comparison.outcomes[0].wrong)
    np.testing.assert_array_equal(again.outcomes[0].model.coef_, comparison.outcomes[0].model.coef_)


def test_what_fails_is_said_and_does_not_stop_the_rest(data):
    def broken(value, context):
        raise ValueError("this method needs more classes.")

    methods = (Method("broken", "Broken", "", broken), *[m for m in METHODS if m.key == "logistic"])
    comparison = compare(data, Settings(budget=20), methods=methods)
    assert [(m.key, why) for m, why in comparison.not_run] == [("broken", "this method needs more classes.")]
    assert [o.method.key for o in comparison.outcomes] == ["logistic"]


def test_budget_used_up_is_said(data, monkeypatch):
    class Clock:
        now = 0.0

        def perf_counter(self):
            return self.now

    class Slow(BaseEstimator):
        def __init__(self, time_limit=None):
            self.time_limit = time_limit

        def fit(self, X, y):
            clock.now += 3.0
            self.answer = y[0]
            return self

        def predict(self, X):
            return np.full(len(X), self.answer)

    clock = Clock()
    monkeypatch.setattr("psilearn.app.compare.job.time", clock)
    methods = [Method(f"slow{i}", "Slow", "", lambda *a: Slow(), grid=(1.0,)) for i in range(4)]
    comparison = compare(data, Settings(budget=4.0), methods=methods)
    assert len(comparison.outcomes) == 2
    assert all(why == "no time was left." for _, why in comparison.not_run)
    assert len(comparison.not_run) == 2


def test_a_slow_outside_method_is_given_fewer_rows(monkeypatch):
    class Slow(BaseEstimator):
        def fit(self, X, y):
            clock.now += len(y) / 1000  # a second for a thousand rows
            fitted.append(len(y))
            self.answer = y[0]
            return self

        def predict(self, X):
            return np.full(len(X), self.answer)

    class Clock:
        now = 0.0

        def perf_counter(self):
            return self.now

    clock, fitted = Clock(), []
    monkeypatch.setattr("psilearn.app.compare.job.time", clock)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(20_000, 2)), columns=["a", "b"])
    table = understand(frame.assign(target=np.where(frame["a"] > 0, "x", "y")))
    method = Method("slow", "Slow", "", lambda *a: Slow(), grid=(1.0,), is_ours=False)
    comparison = compare(table, Settings(budget=6.0), methods=[method])
    assert fitted == [2000, 6000]
    assert comparison.outcomes[0].notes == ["trained on a random 6000 of 14000 rows"]
    assert comparison.seconds <= 6.0 + 2.0  # the small fit comes on top


def test_mcnemar_counts(comparison):
    one, other = comparison.outcomes[0], comparison.outcomes[1]
    gained, lost, p = against(one, other)
    assert gained - lost == other.wrong.sum() - one.wrong.sum()
    assert 0 < p <= 1
    assert against(one, one) == (0, 0, 1.0)


def test_wilson_interval_against_statsmodels_formula():
    # Brown, Cai and DasGupta: the limits solve |p_hat - p| = z sqrt(p (1 - p) / n).
    low, high = wilson(7, 50)
    for p in (low, high):
        assert abs(7 / 50 - p) == pytest.approx(1.959964 * np.sqrt(p * (1 - p) / 50), rel=1e-6)
    assert wilson(0, 50)[0] == 0.0


def test_thin_keeps_every_class():
    y = np.array(["a"] * 500 + ["b"] * 2)
    rows, notes = thin(y, 50, seed=0)
    assert len(rows) == 50
    assert set(y[rows]) == {"a", "b"}
    assert notes == ["trained on a random 50 of 502 rows"]
