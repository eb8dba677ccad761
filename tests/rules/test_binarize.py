"""Binarization and rules in the original units."""

import itertools

import numpy as np
import pandas as pd
import pytest

from psilearn.rules.attributes import Attribute, Conjunction
from psilearn.rules.binarize import LogicalBinarizer, cut_points, exact_support, greedy_support
from psilearn.rules.rules import best_monomial

from oracles.frames import frame


def test_cut_points_lie_where_the_class_can_change():
    x = np.array([1.0, 2.0, 2.0, 3.0, 4.0, 6.0, np.nan])
    y = np.array([0, 0, 0, 1, 1, 1, 0])
    np.testing.assert_allclose(cut_points(x, y), [2.5])
    y[2] = 1
    np.testing.assert_allclose(cut_points(x, y), [1.5, 2.5])
    assert cut_points(np.array([1.0, 1.0]), np.array([0, 1])).size == 0
    assert cut_points(np.arange(100.0), np.arange(100) % 2, max_cuts=5).size == 5
    assert cut_points(np.arange(100.0), np.arange(100) % 2, max_cuts=1).size == 1
    crowded = np.r_[np.zeros(900), np.arange(1.0, 101)]
    some = cut_points(crowded, np.arange(1000) % 2, max_cuts=10)
    assert some.size == 10
    assert some.max() > 50


def test_neighbouring_floats_are_told_apart():
    x = np.array([1.0, np.nextafter(1.0, 2.0)])
    (cut,) = cut_points(x, np.array([0, 1]))
    assert (x > cut).tolist() == [False, True]


def test_types_names_and_missing_values():
    X, y = frame()
    binarizer = LogicalBinarizer(support=None).fit(X, y)
    names = binarizer.get_feature_names_out().tolist()
    assert {"sex = f", "sex = m", "smoker = True", "stage = III", "visits > 0.5"} <= set(names)
    A = binarizer.transform(X)
    assert A.shape == (80, len(names))
    assert A[4, names.index("sex = f")] == 0
    assert A[4, names.index("sex = m")] == 0
    median = X["age"].median()
    ages = [(k, a) for k, a in enumerate(binarizer.attributes_) if a.name == "age"]
    assert all(A[3, k] == (median > a.value) for k, a in ages)
    forced = LogicalBinarizer(support=None, categorical_features=["visits"]).fit(X, y)
    assert "visits = 2" in forced.get_feature_names_out().tolist()


def separated(A, y, times):
    """Whether all pairs of different classes differ in at least ``times`` attributes."""
    return all((A[i] != A[j]).sum() >= times for i, j in itertools.combinations(range(len(y)), 2) if y[i] != y[j])


@pytest.mark.parametrize("multiplicity", [1, 2, 3])
def test_support_sets_separate_and_exact_is_smallest(multiplicity):
    rng = np.random.default_rng(multiplicity)
    X = rng.integers(0, 4, (14, 3)).astype(float)
    y = (X[:, 0] + X[:, 1] > 3).astype(int)
    everything = LogicalBinarizer(support=None).fit(X, y)
    A = everything.transform(X)
    differ = np.array([A[i] ^ A[j] for i, j in itertools.combinations(range(14), 2) if y[i] != y[j]])
    need = np.minimum(differ.sum(axis=1), multiplicity)
    greedy = greedy_support(differ, multiplicity)
    exact = exact_support(differ, multiplicity, 10.0)
    for chosen in (greedy, exact):
        assert (differ[:, chosen].sum(axis=1) >= need).all()
    smaller = itertools.combinations(range(A.shape[1]), exact.size - 1)
    assert not any((differ[:, list(s)].sum(axis=1) >= need).all() for s in smaller)
    assert exact.size <= greedy.size


def test_the_support_set_keeps_classes_apart():
    X, y = frame(1)
    small = LogicalBinarizer().fit(X, y)
    A = small.transform(X)
    full = LogicalBinarizer(support=None).fit(X, y).transform(X)
    assert A.shape[1] < full.shape[1]
    for i, j in itertools.combinations(range(len(y)), 2):
        if y[i] != y[j] and (full[i] != full[j]).any():
            assert (A[i] != A[j]).any()


def test_large_data_are_judged_by_a_seeded_sample():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(6000, 3)), rng.integers(0, 2, 6000)
    a, b = (LogicalBinarizer(max_cuts=20).fit(X, y).get_feature_names_out() for _ in range(2))
    assert a.tolist() == b.tolist()
    assert LogicalBinarizer(max_cuts=20, support=None).fit(X, y).n_candidates_ <= 60


def test_unknown_support_is_refused():
    with pytest.raises(ValueError, match="support"):
        LogicalBinarizer(support="best").fit([[0.0], [1.0]], [0, 1])


def test_conditions_read_well():
    age = [Attribute(0, "age", "above", t, 50.0) for t in (40.0, 55.0, 60.5)]
    sex = Attribute(1, "sex", "equals", "m")
    rule = Conjunction(((sex, True), (age[0], True), (age[1], True), (age[2], False)))
    assert str(rule) == "55 < age <= 60.5 and sex = m"
    assert str(Conjunction(((age[0], False), (sex, False)))) == "age <= 40 and sex != m"
    assert str(Conjunction(())) == "always"
    table = [np.array([58.0, 61.0, np.nan, 56.0]), np.array(["m", "m", "m", None], dtype=object)]
    assert rule.holds(table).tolist() == [True, False, False, False]


def test_best_monomial_of_named_columns():
    rng = np.random.default_rng(2)
    A = pd.DataFrame(rng.integers(0, 2, (60, 6)), columns=list("abcdef"))
    y = np.where((A["b"] == 1) & (A["e"] == 0), "yes", "no")
    weight = np.where(y == "yes", 3.0, 1.0)
    found = best_monomial(A, y, weight)
    assert str(found.rule.condition) == "b = 1 and e = 0"
    assert found.rule.label == "yes"
    assert found.value == found.bound == 3 * (y == "yes").sum()
    assert found.rule.covers(A).tolist() == (y == "yes").tolist()
    assert found.rule.order == 2
    limited = best_monomial(A, y, max_order=1, sample_weight=weight)
    assert limited.rule.order <= 1
    assert limited.value < found.value


def test_best_monomial_stops_honestly():
    rng = np.random.default_rng(3)
    A, y, w = rng.integers(0, 2, (1500, 60)), rng.integers(0, 2, 1500), rng.random(1500)
    found = best_monomial(A, y, w, time_limit=0.2)
    assert not found.is_exact
    assert found.bound > found.value
    covered = found.rule.covers(A)
    assert abs((w * (2 * y - 1))[covered].sum()) == pytest.approx(found.value)


def test_best_monomial_refuses_what_it_cannot_read():
    with pytest.raises(ValueError, match="zeros and ones"):
        best_monomial([[0, 2]], [1])
    with pytest.raises(ValueError, match="two classes"):
        best_monomial([[0], [1], [1]], [0, 1, 2])
    with pytest.raises(ValueError, match="of one type, got int and str"):
        best_monomial([[0], [1]], np.array([0, "a"], dtype=object))
    with pytest.raises(ValueError, match="max_order"):
        best_monomial([[0], [1]], [0, 1], max_order=-1)
