"""Exact pricing against enumeration of all monomials."""

import numpy as np
import pytest

from psilearn.rules.pricing import search as pricing
from psilearn.rules.pricing import tree
from psilearn.rules.pricing.chains import Chains
from psilearn.rules.pricing.data import Attributes, Monomial, Pairs
from psilearn.rules.pricing.search import price, price_greedily

from oracles.rule_programs import all_monomials


def enumerate_values(A, y, w, pairs, K, cost):
    """{(literals, sign): value of (27)} for every monomial."""
    monomials = list(all_monomials(A.shape[1], K))
    cover = np.array([Monomial(l, 1).covers(A) for l in monomials])
    agreement = cover @ (w * y)
    out = {}
    for sign in (1, -1):
        value = sign * agreement - np.array([cost[len(l)] for l in monomials])
        if pairs is not None and (sign > 0 or pairs.symmetric):
            first, second = (pairs.positive, pairs.negative) if sign > 0 else (pairs.negative, pairs.positive)
            value = value + (cover[:, first] & ~cover[:, second]) @ pairs.value
        out.update({(l, sign): v for l, v in zip(monomials, value)})
    return out


def random_instance(rng):
    M, N = int(rng.integers(1, 25)), int(rng.integers(1, 6))
    A = (rng.random((M, N)) < rng.uniform(0.2, 0.8)).astype(int)
    y = rng.choice([-1, 1], M)
    w = rng.integers(0, 3, M).astype(float) if rng.random() < 0.3 else rng.random(M) * (rng.random(M) < 0.8)
    K = int(rng.integers(0, N + 1))
    cost = np.zeros(K + 1)
    if rng.random() < 0.5:
        cost = np.cumsum(rng.random(K + 1)) * rng.random()
    if rng.random() < 0.1:
        cost = rng.random(K + 1)
    positive, negative = np.flatnonzero(y > 0), np.flatnonzero(y < 0)
    pairs = None
    if rng.random() < 0.7 and positive.size and negative.size:
        n = int(rng.integers(0, 20))
        pairs = Pairs(rng.choice(positive, n), rng.choice(negative, n), rng.random(n), bool(rng.random() < 0.6))
    return A, y, w, pairs, K, cost


def distinct(values):
    """Values in descending order without repetitions."""
    out = []
    for v in sorted(values, reverse=True):
        if not out or v < out[-1] - 1e-9:
            out.append(v)
    return out


@pytest.mark.parametrize("first_chunk", [1, 512])
@pytest.mark.parametrize("seed", range(20))
def test_price_equals_enumeration(seed, first_chunk, monkeypatch):
    # after the first chunk of nodes the search reads gains and costs of pairs from a table
    monkeypatch.setattr(tree, "_FIRST_CHUNK", first_chunk)
    rng = np.random.default_rng(seed)
    for trial in range(100):
        # monomials of order 2 are valued outright or searched
        monkeypatch.setattr(pricing, "_ALL_PAIRS_WORK", 1e9 if trial % 2 else 0)
        A, y, w, pairs, K, cost = random_instance(rng)
        truth = enumerate_values(A, y, w, pairs, K, cost)
        n = int(rng.integers(1, 5))
        order = None if A.shape[1] == K and rng.random() < 0.7 else K
        data = Attributes(A, y)
        got = price(data, w, pairs, max_order=order, order_cost=cost, n_columns=n, n_proved=n)
        by_sign = [distinct(v for (_, s), v in truth.items() if s == sign) for sign in (1, -1)]
        expected = sorted(by_sign[0] + by_sign[1], reverse=True)[:n]
        np.testing.assert_allclose(got.values, expected, atol=1e-9)
        for monomial, value in zip(got.monomials, got.values):
            assert truth[monomial.literals, monomial.sign] == pytest.approx(value, abs=1e-9)
        assert got.is_exact
        assert got.bound == pytest.approx(expected[0], abs=1e-9)


@pytest.mark.parametrize("first_chunk", [1, 512])
@pytest.mark.parametrize("seed", range(5))
def test_limits_give_honest_bounds_and_thresholds_cut(seed, first_chunk, monkeypatch):
    monkeypatch.setattr(tree, "_FIRST_CHUNK", first_chunk)
    rng = np.random.default_rng(100 + seed)
    stopped = 0
    for _ in range(60):
        A, y, w, pairs, K, cost = random_instance(rng)
        best = max(enumerate_values(A, y, w, pairs, K, cost).values())
        data = Attributes(A, y)
        limited = price(data, w, pairs, max_order=K, order_cost=cost, max_nodes=int(rng.integers(1, 6)))
        stopped += not limited.is_exact
        assert limited.bound >= best - 1e-9
        assert limited.values.size == 0 or limited.values[0] <= best + 1e-9
        threshold = best + rng.uniform(-0.5, 0.5)
        cut = price(data, w, pairs, max_order=K, order_cost=cost, threshold=threshold)
        assert cut.values.size == (threshold < best - 1e-9)
        assert cut.bound == pytest.approx(max(best, threshold), abs=1e-9)
    assert stopped > 10


def test_extra_columns_are_true_and_the_first_is_the_best():
    rng = np.random.default_rng(7)
    A = rng.integers(0, 2, (40, 8))
    y, w = rng.choice([-1, 1], 40), rng.random(40)
    got = price(Attributes(A, y), w, max_order=3, n_columns=6)
    assert len(got.monomials) == 6
    for monomial, value in zip(got.monomials, got.values):
        assert monomial.sign * (w * y)[monomial.covers(A)].sum() == pytest.approx(value)
    assert got.values[0] == pytest.approx(price(Attributes(A, y), w, max_order=3, n_columns=6, n_proved=6).values[0])


def test_any_order_equals_largest_order_on_wider_data():
    rng = np.random.default_rng(3)
    for _ in range(20):
        A = (rng.random((60, 9)) < 0.5).astype(int)
        y, w = rng.choice([-1, 1], 60), rng.random(60)
        closed = price(Attributes(A, y), w)
        plain = price(Attributes(A, y), w, max_order=9, n_columns=2, n_proved=2)
        assert closed.values[0] == pytest.approx(plain.values[0], abs=1e-12)


def test_the_table_of_pairs_changes_nothing_on_wider_data(monkeypatch):
    rng = np.random.default_rng(5)
    for trial in range(30):
        A = (rng.random((80, 12)) < rng.uniform(0.3, 0.8, 12)).astype(int)
        y, w = np.where(A[:, 0] & A[:, 1] ^ (rng.random(80) < 0.2), 1, -1), rng.random(80)
        positive, negative = np.flatnonzero(y > 0), np.flatnonzero(y < 0)
        pairs = Pairs(rng.choice(positive, 15), rng.choice(negative, 15), rng.random(15)) if trial % 2 else None
        values = []
        for first_chunk in (1, 10**9):
            monkeypatch.setattr(tree, "_FIRST_CHUNK", first_chunk)
            found = price(Attributes(A, y), w, pairs, max_order=2 + trial % 4, n_columns=3, n_proved=3)
            values.append(found.values)
        np.testing.assert_allclose(*values, atol=1e-9)


def test_order_of_rows_and_columns_does_not_matter():
    rng = np.random.default_rng(4)
    A, y, w = rng.integers(0, 2, (50, 7)), rng.choice([-1, 1], 50), rng.random(50)
    rows, cols = rng.permutation(50), rng.permutation(7)
    a = price(Attributes(A, y), w, max_order=3).values
    b = price(Attributes(A[rows][:, cols], y[rows]), w[rows], max_order=3).values
    np.testing.assert_allclose(a, b, atol=1e-12)


def test_negative_weights_are_refused():
    with pytest.raises(ValueError, match="non-negative"):
        price(Attributes(np.eye(2, dtype=int), [1, -1]), [-1.0, 1.0])


def test_chains_are_found():
    x = np.array([0.5, 1.5, 2.5, 3.5, 2.2])
    A = np.column_stack([x > 1, x > 2, x > 3, [1, 0, 1, 1, 0], [0, 1, 0, 1, 1]]).astype(np.uint8)
    chains = Chains(A)
    assert chains.start.tolist() == [0, 3, 4, 5]
    assert chains.codes.tolist() == [[0, 1, 2, 3, 2], A[:, 3].tolist(), A[:, 4].tolist()]


@pytest.mark.parametrize("seed", range(6))
def test_histograms_over_chains_equal_enumeration(seed):
    rng = np.random.default_rng(seed)
    for _ in range(20):
        M = int(rng.integers(2, 40))
        features = rng.normal(size=(M, int(rng.integers(1, 4)))).round(1)
        A = np.hstack([x[:, None] > np.sort(rng.normal(size=int(rng.integers(1, 5)))) for x in features.T])
        A = np.hstack([A, rng.integers(0, 2, (M, 1))]).astype(np.uint8)
        y, w = rng.choice([-1, 1], M), rng.random(M)
        K, cost = int(rng.integers(1, 3)), np.cumsum(rng.random(3)) * rng.choice([0.0, 0.1])
        truth = enumerate_values(A, y, w, None, K, cost[: K + 1])
        data = Attributes(A, y)
        got = price(data, w, max_order=K, order_cost=cost[: K + 1], n_columns=5)
        assert got.bound == pytest.approx(max(truth.values()), abs=1e-9)
        assert got.values[0] == pytest.approx(max(truth.values()), abs=1e-9)
        for monomial, value in zip(got.monomials, got.values):
            assert truth[monomial.literals, monomial.sign] == pytest.approx(value, abs=1e-9)
        sums = data.chains.sums_of_pairs(rng.random(data.n_points))
        assert sums.shape == (A.shape[1],) * 2
        net = rng.normal(size=data.n_points)
        points = A[data.representative].astype(float)
        np.testing.assert_allclose(data.chains.sums_of_pairs(net), (points * net[:, None]).T @ points, atol=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_quick_search_finds_true_values_and_proves_nothing(seed):
    rng = np.random.default_rng(seed)
    A = rng.integers(0, 2, (60, 6))
    y = np.where((A[:, 0] & A[:, 1] & A[:, 2]) ^ (rng.random(60) < 0.05), 1, -1)
    w = rng.random(60)
    truth = enumerate_values(A, y, w, None, 4, np.zeros(5))
    found = price_greedily(Attributes(A, y), w, 4, None, 10, -np.inf, signs=(1,))
    assert found.bound == np.inf
    assert found.monomials[0].order > 2
    for monomial, value in zip(found.monomials, found.values):
        assert truth[monomial.literals, monomial.sign] == pytest.approx(value, abs=1e-9)
    pairs_only = max(v for (l, s), v in truth.items() if len(l) <= 2 and s == 1)
    assert found.values[0] >= pairs_only - 1e-9
