"""The comparison itself: splits, flips, tuning, budget, and the words for its outcomes."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator

from psilearn.app.compare import METHODS, Method, Settings, compare
from psilearn.app.compare.costs import Cost, plan
from psilearn.app.compare.job import flip_labels, make_splits
from psilearn.app.compare.single import fit_table
from psilearn.app.compare.splits import folds
from psilearn.app.compare.summary import n_nonzero, promise, proof, standing, story
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
        assert np.array_equal(outcome.wrong, outcome.predicted != comparison.y_test)
        assert comparison.is_useful(outcome)
    l1 = comparison.outcome("svm-l1")
    assert l1.tuning.best["C"] == l1.model.C
    assert l1.tuning.error == min(error for _, error in l1.tuning.tried)
    assert standing(comparison, l1) == proof(l1.model)
    assert proof(l1.model).startswith("proved, gap")
    assert n_nonzero(l1.model) == np.sum(l1.model.coef_[0] != 0)
    assert proof(comparison.outcome("logistic").model) == "no claim"
    assert comparison.recommended is l1
    words = " ".join(story(comparison).values())
    assert "Use SVM, l1 (psilearn fit --method svm-l1)" in words
    assert "Gradient boosting is wrong in" in words


def test_what_is_no_better_than_chance_is_called_that():
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(rng.normal(size=(200, 3)), columns=list("abc"))
    noise = understand(frame.assign(target=np.where(rng.random(200) < 0.7, "x", "y")))
    found = compare(noise, Settings(budget=30, methods=("majority", "svm-l2", "truncated", "logistic")))
    assert found.outcome("majority").error == pytest.approx(found.chance.value)
    for outcome in found.outcomes:
        assert not found.is_useful(outcome)
        assert "proved" not in standing(found, outcome)
        assert "optimum" not in standing(found, outcome)
    words = " ".join(story(found).values())
    assert "No method predicts 'target' clearly better than chance" in words
    assert "Use none of these models" in words
    assert "fit --method" not in words


def test_promise_is_kept_on_new_rows():
    rng = np.random.default_rng(7)

    def rows(n):
        X = rng.normal(size=(n, 3))
        frame = pd.DataFrame(X, columns=list("abc"))
        return frame.assign(target=np.where(X[:, 0] + 0.4 * rng.normal(size=n) > 0, "x", "y"))

    found = compare(understand(rows(900)), Settings(budget=30, methods=("svm-l2",)))
    words, made = promise(found, found.outcomes[0])
    assert 0.5 < made.coverage < 1.0
    assert f"it answers {100 * made.coverage:.0f}%; at most 5% of answers wrong, with 95% confidence" in words
    fresh, split = rows(20_000), found.splits[0]
    scores = found.outcomes[0].model.decision_function(split.encoder.transform(fresh))
    answered = np.abs(scores) > made.threshold
    wrong = np.where(scores > 0, "y", "x") != fresh["target"]
    assert wrong[answered].mean() < 0.05
    assert wrong.mean() > 0.05


def test_a_table_that_is_not_linear_is_fitted_with_a_kernel():
    rng = np.random.default_rng(11)
    X = rng.uniform(-1, 1, size=(300, 2))
    labels = np.where(X[:, 0] * X[:, 1] > 0, "x", "y")
    labels[::10] = np.where(labels[::10] == "x", "y", "x")
    data = understand(pd.DataFrame(X, columns=["u", "v"]).assign(target=labels))
    for family in ("psi", "truncated"):
        model = fit_table(data, [m for m in METHODS if m.family == family], budget=30)
        assert model.method == f"{family}-rbf"
        assert model.about["held-out error"] < 0.2
        assert not model.is_no_better_than_chance
    Z = rng.normal(size=(200, 20))
    labels = np.where(Z.sum(axis=1) + 2.0 * rng.normal(size=200) > 0, "x", "y")
    line = understand(pd.DataFrame(Z).assign(target=labels))
    assert fit_table(line, [m for m in METHODS if m.family == "psi"], budget=30).method == "psi"


def test_same_seed_same_outcome(data, comparison):
    again = compare(data, Settings(budget=20, flip=0.1, methods=QUICK[:1]))
    assert np.array_equal(again.outcomes[0].wrong, comparison.outcomes[0].wrong)
    np.testing.assert_array_equal(again.outcomes[0].model.coef_, comparison.outcomes[0].model.coef_)


def test_what_fails_is_said_and_does_not_stop_the_rest(data):
    def broken(context):
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
    methods = [Method(f"slow{i}", "Slow", "", lambda context: Slow(), grid={}) for i in range(4)]
    comparison = compare(data, Settings(budget=4.0), methods=methods)
    assert len(comparison.outcomes) == 2
    assert all(why == "no time was left." for _, why in comparison.not_run)
    assert len(comparison.not_run) == 2


def test_time_is_divided_by_counting():
    cheap, costly = Cost(1e-6, fits=3), Cost(1e-3, fits=3)
    first, second = plan([cheap, costly], 20_000, 2, 2, 10.0)
    assert first.tune_rows == first.fit_rows == 20_000
    assert second.fit_rows < 20_000
    assert first.seconds + second.seconds <= 10.0
    assert plan([cheap, costly], 20_000, 2, 2, 1e6)[1].tune_rows == 20_000  # nothing is thinned while there is time
    assert plan([costly], 500, 2, 2, 0.1)[0].fit_rows == 500  # nor a small table
    less = plan([costly], 20_000, 2, 2, 60.0)[0]
    assert less.tune_rows < less.fit_rows == 20_000  # tuning is thinned before the fit


def test_thinning_does_not_depend_on_the_clock():
    fitted = []

    class Slow(BaseEstimator):
        def fit(self, X, y):
            fitted.append(X)
            self.answer = y[0]
            return self

        def predict(self, X):
            return np.full(len(X), self.answer)

    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(20_000, 2)), columns=["a", "b"])
    table = understand(frame.assign(target=np.where(frame["a"] > 0, "x", "y")))
    method = Method("slow", "Slow", "", lambda context: Slow(), grid={}, is_ours=False, cost=Cost(1e-3))
    for _ in range(2):
        comparison = compare(table, Settings(budget=10.0), methods=[method])
    assert np.array_equal(*fitted)
    assert 2000 < len(fitted[0]) < 14_000
    assert comparison.outcomes[0].notes == [f"trained on a random {len(fitted[0])} of 14000 rows"]


def test_thin_keeps_every_class():
    y = np.array(["a"] * 500 + ["b"] * 2)
    rows, notes = thin(y, 50, seed=0)
    assert len(rows) == 50
    assert set(y[rows]) == {"a", "b"}
    assert notes == ["trained on a random 50 of 502 rows"]
