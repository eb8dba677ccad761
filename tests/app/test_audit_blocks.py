"""The audit of labels in blocks against the audit of the same rows in memory, and what it refuses."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import roc_auc_score

from psilearn import L0BoostClassifier, SVMClassifier, find_label_issues
from psilearn.app.audit.noise import fit_noise, reader_of
from psilearn.core.chunks.blocks import RowBlocks

pytest.importorskip("pandas")


def flipped(n, seed, round_classes=False, k=2):
    """Rows, labels of which a tenth were changed, and which."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    if round_classes:
        y = (np.sum(X[:, :2] ** 2, axis=1) > 1.4).astype(int)
    else:
        y = (X[:, :k] + 0.2 * rng.normal(size=(n, k))).argmax(axis=1)
    wrong = rng.random(n) < 0.1
    return X, np.where(wrong, (y + rng.integers(1, k, n)) % k, y), wrong


def full(table, n):
    """Scores of all rows, 0 of those that are not contradicted."""
    scores = np.zeros(n)
    scores[table["index"]] = table["score"] * (table["given"] != table["suggested"])
    return scores


@pytest.mark.parametrize("k", [2, 3])
def test_finds_what_the_audit_in_memory_finds(k):
    X, y, wrong = flipped(3000, k, k=k)
    names = np.array(["ash", "elm", "oak"])[y]
    judge = SVMClassifier(C=0.01, tol=1e-4)
    here = find_label_issues(X, names, judge)
    there = find_label_issues(RowBlocks.split(X, 5), names, judge)
    assert np.all(there["given"] != there["suggested"])
    assert_array_equal(there["given"], names[there["index"]])
    assert_array_equal(np.sort(there["score"])[::-1], there["score"])
    auc = [roc_auc_score(wrong, full(table, y.size)) for table in (here, there)]
    assert auc[1] > auc[0] - 0.02
    assert abs(there.attrs["share"] - here.attrs["share"]) < 0.03
    assert there.attrs["share_interval"][0] <= 0.1 <= there.attrs["share_interval"][1] + 0.02
    assert abs(there.attrs["held_out_error"] - here.attrs["held_out_error"]) < 0.01
    assert_allclose(there.attrs["noise_matrix"].to_numpy().sum(axis=1), 1.0)
    scores = np.array([full(table, y.size) for table in (here, there)])
    both = np.all(scores > 0, axis=0)
    assert both.sum() > 0.9 * np.any(scores > 0, axis=0).sum()
    assert np.corrcoef(scores[:, both])[0, 1] > 0.9


def test_a_curved_boundary_is_found_out():
    X, y, wrong = flipped(4000, 1, round_classes=True)
    table = find_label_issues(RowBlocks.split(100.0 * X + 7.0, 6), y)
    assert "rbf" in table.attrs["model"]
    assert roc_auc_score(wrong, full(table, y.size)) > 0.93


@pytest.mark.parametrize("kind", ["dask", "frame"])
def test_dask(kind):
    da = pytest.importorskip("dask.array")
    X, y, _ = flipped(1200, 2)
    judge = SVMClassifier(C=0.01)
    expected = find_label_issues(RowBlocks.split(X, 3), y, judge)
    rows, labels = da.from_array(X, chunks=(400, 2)), da.from_array(y, chunks=500)
    if kind == "frame":
        dd, pd = pytest.importorskip("dask.dataframe"), pytest.importorskip("pandas")
        frame = dd.from_pandas(pd.DataFrame(X, columns=list("abcd")).assign(y=y), npartitions=3)
        rows, labels = frame[list("abcd")], frame["y"]
    found = find_label_issues(rows, labels, judge)
    assert_array_equal(found["index"], expected["index"])
    assert_allclose(found["score"], expected["score"], atol=1e-3)


def test_the_noise_model_reads_its_own_rows_as_it_was_fitted():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, 500)
    scores = rng.normal(size=(500, 3)) + 2.0 * np.eye(3)[codes]
    assert_allclose(reader_of(scores, codes)(scores, codes), fit_noise(scores, codes).wrong, rtol=1e-9)


def test_rows_of_a_fold_do_not_judge_themselves():
    """A label that is memorised would never be doubted: with a free kernel on noise about half are contradicted."""
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(600, 2)), rng.integers(0, 2, 600)
    judge = SVMClassifier(kernel="rbf", gamma=50.0, C=100.0, n_components=300, tol=1e-2)
    assert judge.fit(RowBlocks.split(X, 3), y).score(X, y) > 0.7
    assert find_label_issues(RowBlocks.split(X, 3), y, judge).attrs["held_out_error"] > 0.4


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"estimator": L0BoostClassifier()}, "L0BoostClassifier needs its data in memory; for data in blocks give"),
        ({"groups": np.zeros(60)}, "groups does not go with data in blocks"),
        ({"repeats": 2}, "repeats does not go with data in blocks"),
    ],
)
def test_what_blocks_cannot_do_is_refused(arguments, sentence):
    X, y, _ = flipped(60, 0)
    with pytest.raises(ValueError, match=sentence):
        find_label_issues(RowBlocks.split(X, 2), y, **arguments)


def test_a_class_of_one_row_is_refused():
    X, y, _ = flipped(60, 0)
    y[0] = 5
    with pytest.raises(ValueError, match="two samples"):
        find_label_issues(RowBlocks.split(X, 2), y)
