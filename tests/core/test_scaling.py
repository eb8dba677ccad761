"""Scaled coordinates are the same functions, with the same penalties and derivatives."""

import numpy as np
import pytest
import scipy.sparse as sp

from psilearn.core.penalties import Penalty
from psilearn.core.scaling import Scaling


def samples(rng, n=50, p=4):
    return rng.normal(size=(n, p)) * 10.0 ** rng.uniform(-3, 3, p) + 10.0 ** rng.uniform(-3, 3, p)


@pytest.mark.parametrize("m", [1, 3])
def test_there_and_back(m):
    rng = np.random.default_rng(m)
    X = samples(rng)
    scaling = Scaling.of(X)
    W, b = rng.normal(size=(m, 4)), rng.normal(size=m)
    V = scaling.from_coefficients(W, b)
    np.testing.assert_allclose(scaling.apply(X) @ V[:, :-1].T + V[:, -1], X @ W.T + b, rtol=1e-9)
    for again in (V, V.ravel()):
        back = scaling.coefficients(again)
        np.testing.assert_allclose(back[0], W, rtol=1e-12)
        np.testing.assert_allclose(back[1], b, rtol=1e-9, atol=1e-9 * np.abs(W @ scaling.mean).max())


def test_columns_have_mean_zero_and_variance_one_and_constants_are_left_finite():
    X = samples(np.random.default_rng(0))
    X[:, 2] = 7.0
    Z = Scaling.of(X).apply(X)
    np.testing.assert_allclose(Z.mean(axis=0), 0.0, atol=1e-9)
    np.testing.assert_allclose(Z.std(axis=0), [1.0, 1.0, 0.0, 1.0], atol=1e-9)


def test_sparse_columns_are_not_centred():
    X = sp.random(40, 5, 0.3, "csr", random_state=1)
    scaling = Scaling.of(X)
    assert not scaling.mean.any()
    used = X.getnnz(axis=0) > 0
    rms = np.sqrt((X.toarray() ** 2).mean(axis=0))
    np.testing.assert_allclose(scaling.scale[used], rms[used])


def test_gradients_and_penalties_are_those_of_the_same_function():
    rng = np.random.default_rng(3)
    scaling = Scaling.of(samples(rng))
    gW, gb = rng.normal(size=(2, 4)), rng.normal(size=2)
    V, step = rng.normal(size=(2, 5)), rng.normal(size=(2, 5))
    (W, b), (there, b_there) = scaling.coefficients(V), scaling.coefficients(V + step)
    change = np.sum(gW * (there - W)) + gb @ (b_there - b)
    assert np.sum(scaling.gradient(gW, gb) * step) == pytest.approx(change, rel=1e-9)
    penalty = Penalty(l2=0.7, l1=rng.random((2, 4)))
    q, l1 = scaling.penalty(penalty, 2)
    assert 0.5 * np.sum(q * V**2) + np.sum(l1 * np.abs(V)) == pytest.approx(penalty.value(W, float(np.sum(W**2))))
