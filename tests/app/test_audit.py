"""find_label_issues: flips are found, the ranking is stable, and bad input is refused."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.metrics import average_precision_score

from psilearn.app.audit import find_label_issues
from psilearn.app.audit.issues import _kept
from psilearn.app.audit.noise import fit_noise
from psilearn.app.compare.job import flip_labels
from psilearn.app.compare.refusals import given_up


def noisy(loader, share, seed=0):
    X, y = loader(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    given, rows = flip_labels(y, share, seed)
    flipped = np.zeros(y.size, dtype=bool)
    flipped[rows] = True
    return X, given, y, flipped


@pytest.mark.parametrize(("loader", "least"), [(load_breast_cancer, 0.9), (load_iris, 0.8)])
def test_flips_come_first(loader, least):
    X, given, truth, flipped = noisy(loader, 0.1)
    table = find_label_issues(X, given)
    assert sorted(table["index"]) == list(range(len(given)))
    assert table["score"].is_monotonic_decreasing
    rank = np.empty(len(given))
    rank[table["index"]] = table["score"]
    assert average_precision_score(flipped, rank) > least
    first = table.head(flipped.sum())
    found = first[flipped[first["index"]]]
    assert np.mean(found["suggested"].to_numpy() == truth[found["index"]]) > 0.8
    assert np.array_equal(table["given"], given[table["index"]])
    assert abs(table.attrs["share"] - 0.1) < 0.04
    assert np.array_equal(table["suggested"] != table["given"], table["margin"] < 0)


def test_same_seed_same_ranking_and_order_of_classes_does_not_matter():
    X, given, _, _ = noisy(load_breast_cancer, 0.1)
    X, given = X[:150, :5], given[:150]
    one = find_label_issues(X, given)
    again = find_label_issues(X, given)
    assert one.equals(again)
    mirrored = find_label_issues(X, np.array(["z", "a"])[given])
    assert np.array_equal(mirrored["index"].head(10), one["index"].head(10))


@pytest.mark.parametrize("k", [2, 5])
def test_noise_model_recovers_slope_and_share(k):
    rng = np.random.default_rng(k)
    scores = 3.0 * rng.normal(size=(6000, k))
    p = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    truth = (p.cumsum(axis=1) < rng.random((len(p), 1))).sum(axis=1)
    given, rows = flip_labels(truth, 0.2, 1)
    found = fit_noise(scores / 7.0, given)  # the scale of the scores is not known
    assert found.share == pytest.approx(0.2, abs=0.03)
    # The link is not that of the data: what 6000 rows say exactly, it says up to half a point.
    assert found.interval[0] - 0.005 <= 0.2 <= found.interval[1] + 0.005
    assert found.interval[1] - found.interval[0] < 0.1
    assert found.clean < 1e-6
    off = np.full((k, k), 0.2 / (k - 1))
    np.fill_diagonal(off, 0.8)
    assert found.matrix == pytest.approx(off, abs=0.05)
    wrong = np.isin(np.arange(len(p)), rows)
    for low, high in ((0.0, 0.2), (0.2, 0.6), (0.6, 1.0)):  # calibrated
        here = (found.wrong >= low) & (found.wrong < high)
        assert found.wrong[here].mean() == pytest.approx(wrong[here].mean(), abs=0.06)


def test_clean_scores_have_no_wrong_labels():
    rng = np.random.default_rng(1)
    scores = 3.0 * rng.normal(size=(2000, 2))
    p = 1 / (1 + np.exp(scores[:, 0] - scores[:, 1]))
    found = fit_noise(scores, (rng.random(2000) < p).astype(int))
    assert found.share < 0.02
    assert found.interval[0] == 0.0
    assert found.clean > 0.01


def test_a_doubtful_class_keeps_half_of_its_samples():
    codes = np.repeat([0, 1], [10, 6])
    wrong = 1 - np.r_[np.linspace(0.4, 0.9, 10), np.linspace(0.0, 0.3, 6)]
    keep = _kept(wrong, codes)
    assert np.array_equal(keep[:10], wrong[:10] <= 0.5)
    assert np.array_equal(keep[10:], np.arange(6) >= 3)


def test_a_class_given_up_is_named():
    labels = np.repeat(["a", "b", "<c>"], [6, 4, 2])
    refused = np.array([0, 6, 7, 8, 10])
    (note,) = given_up(labels, refused)
    assert note.startswith("refuses 3 of the 4 labels 'b'")
    assert given_up(labels, np.isin(np.arange(12), refused)) == [note]
    assert given_up(labels, np.array([], dtype=int)) == []


def test_a_class_of_two_samples_survives():
    X, given, _, _ = noisy(load_iris, 0.1)
    given = given.copy()
    given[given == 2] = 1
    given[[0, 60]] = 2
    table = find_label_issues(X, given)
    assert set(table["suggested"]) <= {0, 1, 2}
    assert set(table["index"].head(20)) & {0, 60}


def test_progress_reaches_the_end():
    X, given, _, _ = noisy(load_iris, 0.1)
    seen = []
    find_label_issues(X[:, :2], given, progress=lambda text, done: seen.append(done))
    assert seen[-1] == 1.0
    assert seen == sorted(seen)


@pytest.mark.parametrize(
    ("X", "y", "says"),
    [
        (np.ones((4, 1)), [0, 0, 0, 0], "at least two classes"),
        (np.arange(4.0)[:, None], [0, 0, 0, 1], "at least two samples"),
        (np.full((4, 1), np.nan), [0, 1, 0, 1], "NaN"),
    ],
)
def test_bad_input(X, y, says):
    with pytest.raises(ValueError, match=says):
        find_label_issues(X, y)
