"""`certify_labels`: prices of labels, against the best fit that believes them found by an outside method."""

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize

from psilearn import LPBoostClassifier, PsiClassifier, SVMClassifier, TruncatedHingeClassifier, certify_labels


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(3)
    X = np.r_[rng.normal(-1.5, 0.6, (10, 2)), rng.normal(1.5, 0.6, (10, 2))]
    y = np.repeat(["no", "yes"], 10)
    y[[2, 17]] = ["yes", "no"]
    return X, y


MODEL = TruncatedHingeClassifier(s=0.0, C=2.0, solver="mip")


def test_prices_are_sorted_and_positive(data):
    X, y = data
    prices = certify_labels(MODEL, X, y)
    assert list(prices.columns) == ["index", "given", "price", "proved"]
    assert set(prices["index"]) == {2, 17}
    assert prices["given"].tolist() == y[prices["index"]].tolist()
    assert prices["proved"].all()
    assert prices["price"].is_monotonic_decreasing
    assert (prices["price"] > 0).all()


def test_no_function_that_believes_a_label_is_cheaper_than_its_price(data):
    """Local searches from many starts over the functions with u_i >= 0: none may undercut the price."""
    X, y = data
    fit = TruncatedHingeClassifier(s=0.0, C=2.0, solver="mip").fit(X, y)
    signs, rng = np.where(y == "yes", 1.0, -1.0), np.random.default_rng(0)

    def value(p):
        u = signs * (X @ p[:2] + p[2])
        return 0.5 * p[:2] @ p[:2] + 2.0 * np.minimum(np.maximum(1 - u, 0), 1).sum()

    for row in certify_labels(fit, X, y).itertuples():
        believed = {"type": "ineq", "fun": lambda p, i=row.index: signs[i] * (X[i] @ p[:2] + p[2])}
        starts = rng.normal(size=(60, 3))
        found = [minimize(value, p, constraints=[believed], method="COBYLA") for p in starts]
        cheapest = min(f.fun for f in found if believed["fun"](f.x) >= 0)
        assert cheapest >= fit.objective_ * (1 + row.price) * (1 - 1e-6)
        assert cheapest <= fit.objective_ * (1 + row.price) * 1.05  # and the price is no understatement


def test_a_fitted_estimator_a_frame_and_repeated_rows_give_the_same(data):
    X, y = data
    fit = TruncatedHingeClassifier(s=0.0, C=2.0, solver="mip").fit(X, y)
    plain = certify_labels(fit, X, y)
    pd.testing.assert_frame_equal(plain, certify_labels(MODEL, X, y))
    framed = pd.DataFrame(X, columns=["a", "b"])
    pd.testing.assert_frame_equal(plain, certify_labels(MODEL, framed, pd.Series(y)))
    weighted = certify_labels(MODEL, X, y, sample_weight=np.full(20, 1.0), suspects=[17, 2, 17])
    assert sorted(weighted["index"]) == [2, 17, 17]
    assert weighted.loc[weighted["index"] == 17, "price"].nunique() == 1


def test_a_believed_label_costs_nothing(data):
    X, y = data
    prices = certify_labels(MODEL, X, y, suspects=[0])
    assert prices["price"].tolist() == [0.0]


def test_a_time_limit_covers_all_suspects(data):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(120, 10))
    y = (X[:, 0] + rng.normal(size=120) > 0).astype(int)
    prices = certify_labels(PsiClassifier(C=5.0), X, y, suspects=np.arange(12), time_limit=2.0)
    assert len(prices) == 12
    assert not prices["proved"].all()


@pytest.mark.parametrize(
    ("model", "options", "words"),
    [
        (SVMClassifier(), {}, "does not take"),
        (LPBoostClassifier(), {}, "margin classifiers"),
        (MODEL, {"suspects": [20]}, "20 rows"),
        (MODEL, {"suspects": [0.5]}, "row numbers"),
        (MODEL, {"suspects": [-1]}, "row numbers"),
        (MODEL, {"suspects": [0], "sample_weight": np.r_[0.0, np.ones(19)]}, "weight zero"),
        (MODEL, {"time_limit": -1}, "time_limit"),
    ],
    ids=str,
)
def test_bad_requests_get_a_sentence(data, model, options, words):
    with pytest.raises(ValueError, match=words):
        certify_labels(model, *data, **options)


def test_three_classes_are_refused(data):
    X, y = data
    y = np.array(y, dtype=object)
    y[:3] = "maybe"
    with pytest.raises(ValueError, match="two classes, y holds 3"):
        certify_labels(TruncatedHingeClassifier(), X, y)
