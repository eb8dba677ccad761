"""Every kind of data in blocks against arrays in memory: losses, penalties, two and three classes, and odd cuts."""

import itertools
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from psilearn import PsiClassifier, RejectClassifier, SVMClassifier, TruncatedHingeClassifier, solve
from psilearn.core.chunks import opening
from psilearn.core.chunks.blocks import RowBlocks
from psilearn.core.solving import Options

da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
pd = pytest.importorskip("pandas")

TOL = 1e-7
#: To what two fits of the same problem agree.
SAME = 1e-6
NAMES = list("abcd")


@pytest.fixture(autouse=True)
def no_memmap_is_small(monkeypatch):
    monkeypatch.setattr(opening, "SMALL_MEMMAP", 0)


@cache
def sample(k, n=160):
    rng = np.random.default_rng(k)
    y = rng.integers(0, k, n)
    X = rng.normal(size=(n, 4)) * np.array([1.0, 5.0, 0.2, 1.0]) + 1.5 * (y[:, None] == np.arange(4) % k) + 3.0
    return X, np.where(rng.random(n) < 0.1, rng.integers(0, k, n), y)


def cut(X, y, kind, folder):
    if kind == "memmap":
        held = np.memmap(folder / "X.bin", dtype=X.dtype, mode="w+", shape=X.shape)
        held[:] = X
        return held, y
    if kind == "dask":
        return da.from_array(X, chunks=((37, 1, len(y) - 38), 2)), da.from_array(y, chunks=33)
    if kind == "frame":
        frame = dd.from_pandas(pd.DataFrame(X, columns=NAMES).assign(y=y), npartitions=2)
        return frame[NAMES], frame["y"]
    ends = [0, 10, 10, 100, 101, len(y)]
    return RowBlocks([sp.csr_matrix(X[a:b]) for a, b in itertools.pairwise(ends)], X.shape[1]), y


ESTIMATORS = {
    "SVM": SVMClassifier(),
    "Reject": RejectClassifier(),
    "TruncatedHinge": TruncatedHingeClassifier(),
    "Psi": PsiClassifier(a=2.0, solver="dca"),
}
PENALTIES = ("l2", "l1", "elastic-net")
CASES = [
    *itertools.product(("csr",), ESTIMATORS, (2, 3), PENALTIES),
    *itertools.product(("memmap",), ("SVM", "Reject"), (2, 3), PENALTIES),
    *[("memmap", *case) for case in (("TruncatedHinge", 3, "l2"), ("Psi", 2, "l1"))],
    # Tasks of dask cost milliseconds each: every estimator and penalty once.
    *[("dask", *case) for case in (("SVM", 3, "l1"), ("Reject", 2, "elastic-net"), ("Psi", 2, "l2"))],
    *[("frame", *case) for case in (("SVM", 2, "l2"), ("Reject", 3, "l1"), ("TruncatedHinge", 2, "elastic-net"))],
]


@cache
def in_memory(name, k, penalty):
    return estimator(name, penalty).fit(*sample(k))


def estimator(name, penalty):
    return clone(ESTIMATORS[name]).set_params(C=0.1, penalty=penalty, tol=TOL)


@pytest.mark.parametrize(("kind", "name", "k", "penalty"), CASES)
def test_a_fit_on_blocks_is_that_in_memory(kind, name, k, penalty, tmp_path):
    """The objective where it is convex; where it is not, a point that the algorithm in memory does not leave either."""
    X, y = sample(k)
    here, there = in_memory(name, k, penalty), estimator(name, penalty).fit(*cut(X, y, kind, tmp_path))
    assert there.certificate_.claim == here.certificate_.claim
    problem = here.problem(X, y)
    assert_allclose(there.objective_, problem.value(there.coef_, there.intercept_), rtol=1e-9)
    if problem.is_convex:
        assert_allclose(there.objective_, here.objective_, rtol=SAME)
        assert there.lower_bound_ <= here.objective_ * (1 + 1e-12)
        assert there.gap_ <= SAME
        return
    start = solve(replace(problem, loss=problem.loss.convex_part))
    start = replace(start, coef=there.coef_, intercept=there.intercept_, multipliers=None)
    again = solve(problem, "dca", Options(tol=TOL), start)
    assert again.objective >= there.objective_ * (1 - SAME)
    assert there.objective_ <= here.objective_ * 1.01


@pytest.mark.parametrize(("name", "k", "blocks"), [("SVM", 2, 1000), ("SVM", 3, 60), ("Psi", 2, 60)])
def test_blocks_of_one_row_and_a_thousand_blocks_most_of_them_empty(name, k, blocks):
    X, y = (part[: 60 if blocks == 60 else None] for part in sample(k))
    ends = np.linspace(0, len(y), blocks + 1).astype(int)
    tol = 1e-4 if name == "Psi" else SAME
    whole = estimator(name, "l2").set_params(tol=tol).fit(RowBlocks([X], 4), y)
    cut = RowBlocks([X[a:b] for a, b in itertools.pairwise(ends)], 4)
    fit = estimator(name, "l2").set_params(tol=tol).fit(cut, y)
    assert_allclose(fit.objective_, whole.objective_, rtol=2 * tol)
    assert_array_equal(fit.suspects_, whole.suspects_)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_weights_count_rows_and_one_cut_has_one_result(name):
    X, y = sample(3)
    times = np.random.default_rng(0).integers(0, 3, len(y))
    weighted = estimator(name, "l2").fit(RowBlocks.split(X, 3), y, times.astype(float))
    again = estimator(name, "l2").fit(RowBlocks.split(X, 3), y, times.astype(float))
    assert_array_equal(weighted.coef_, again.coef_)
    repeated = estimator(name, "l2").fit(RowBlocks.split(np.repeat(X, times, axis=0), 4), np.repeat(y, times))
    assert_allclose(weighted.objective_, repeated.objective_, rtol=1e-5 if name in ("SVM", "Reject") else 1e-2)
    if name in ("SVM", "Reject"):
        assert_allclose(weighted.objective_, repeated.objective_, rtol=SAME)


@pytest.mark.parametrize("k", [2, 3])
def test_a_path_on_blocks_is_its_fits(k):
    """One pass for all values of C: each fit ends where it would alone."""
    from psilearn import regularization_path

    X, y = sample(k)
    Cs = [0.01, 0.1, 1.0]
    for name in ("SVM", "TruncatedHinge"):
        path = regularization_path(estimator(name, "l2"), RowBlocks.split(X, 4), y, Cs)
        for C, objective, coef in zip(Cs, path.objectives, path.coefs):
            alone = estimator(name, "l2").set_params(C=C).fit(RowBlocks.split(X, 4), y)
            if name == "SVM":
                assert_allclose(objective, alone.objective_, rtol=SAME)
            assert objective <= alone.objective_ * (1 + SAME)
            assert coef.shape == alone.coef_.shape


def test_the_passes_of_a_path_are_shared():
    """The blocks are read as often as for the longest of its fits, not as for all of them."""
    from psilearn import regularization_path

    X, y = sample(2)
    reads = []

    def read(i):
        reads.append(i)
        return X[40 * i : 40 * i + 40]

    blocks = RowBlocks([lambda i=i: read(i) for i in range(4)], 4)
    path = regularization_path(
        estimator("SVM", "l2"), blocks, RowBlocks(np.array_split(y, 4)), np.geomspace(0.01, 1, 20)
    )
    assert np.all(path.gaps <= TOL)
    assert len(reads) / 4 <= path.n_iters.max() + 8
    assert len(reads) / 4 < path.n_iters.sum() / 4


def test_an_error_in_a_shared_pass_ends_the_path():
    from psilearn import regularization_path

    X, y = sample(2)
    calls = []

    def read(i):
        calls.append(i)
        if len(calls) > 30:
            raise OSError("the disk is gone")
        return X[40 * i : 40 * i + 40]

    blocks = RowBlocks([lambda i=i: read(i) for i in range(4)], 4)
    with pytest.raises(OSError, match="the disk is gone"):
        regularization_path(estimator("SVM", "l2"), blocks, RowBlocks(np.array_split(y, 4)), [0.1, 1.0])
