"""Fits on data in blocks: the same objective as in memory whatever the blocks, bounds below it, nothing pulled in."""

import dataclasses
import itertools
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from psilearn import (
    L0BoostClassifier,
    LPBoostClassifier,
    MarginClassifier,
    PsiClassifier,
    RejectClassifier,
    SVMClassifier,
    TruncatedHingeClassifier,
    TunedClassifier,
    load,
    regularization_path,
    save,
)
from psilearn.core.chunks import opening
from psilearn.core.chunks.blocks import RowBlocks
from psilearn.core.chunks.proof import wanted_of
from psilearn.core.losses import RejectHinge

da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")


@pytest.fixture(autouse=True)
def no_memmap_is_small(monkeypatch):
    """Memory-mapped arrays as small as those of these tests are read as a whole otherwise."""
    monkeypatch.setattr(opening, "SMALL_MEMMAP", 0)


def sample(n=400, p=4, k=2, seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, k, n)
    X = rng.normal(size=(n, p)) * np.array([1.0, 5.0, 0.2, 1.0])[:p] + 1.5 * (y[:, None] == np.arange(p) % k) + 3.0
    y = np.where(rng.random(n) < 0.1, rng.integers(0, k, n), y)
    return X.astype(dtype), y


def in_memmap(X, folder):
    out = np.memmap(folder / "X.bin", dtype=X.dtype, mode="w+", shape=X.shape)
    out[:] = X
    return out


def by_rows(X, y, ends):
    ends = [0, *ends, len(y)]
    parts = list(itertools.pairwise(ends))
    return RowBlocks([X[a:b] for a, b in parts], X.shape[1]), RowBlocks([y[a:b] for a, b in parts])


CONVEX = [
    SVMClassifier(tol=1e-6),
    SVMClassifier(tol=1e-6, C=0.02, class_weight="balanced"),
    SVMClassifier(tol=1e-6, penalty="l1", C=0.1),
    SVMClassifier(tol=1e-6, penalty="elastic-net", C=0.1),
    RejectClassifier(tol=1e-6, C=0.1),
    MarginClassifier(RejectHinge(0.3), tol=1e-6, C=0.1),
]


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("estimator", CONVEX, ids=lambda e: f"{type(e).__name__}-{e.penalty}-{e.C}")
def test_convex_fits_agree_with_those_in_memory(estimator, k):
    X, y = sample(k=k)
    here = clone(estimator).fit(X, y)
    there = clone(estimator).fit(RowBlocks.split(X, 5), y)
    assert_allclose(there.objective_, here.objective_, rtol=2e-6)
    assert there.status_ == "optimal"
    assert there.lower_bound_ <= min(here.objective_, there.objective_)
    assert_allclose(there.objective_, here.problem(X, y).value(there.coef_, there.intercept_), rtol=1e-9)
    check = there.verify(RowBlocks.split(X, 5), y)
    assert check.ok, check.message


@pytest.mark.parametrize("blocks", [[1], [7, 8, 8, 90, 399], list(range(20, 400, 20))], ids=len)
@pytest.mark.parametrize("k", [2, 3])
def test_the_cut_does_not_matter(blocks, k):
    """Blocks of one row, empty ones, and blocks that lack a class."""
    X, y = sample(k=k)
    order = np.argsort(y, kind="stable")
    X, y = X[order], y[order]
    whole = SVMClassifier(C=0.5, tol=1e-6).fit(X, y)
    cut = SVMClassifier(C=0.5, tol=1e-6).fit(*by_rows(X, y, blocks))
    assert_allclose(cut.objective_, whole.objective_, rtol=2e-6)
    assert cut.lower_bound_ <= whole.objective_


@pytest.mark.parametrize("kind", ["memmap", "memmap32", "dask", "frame", "csr", "functions"])
def test_every_kind_of_blocks(kind, tmp_path):
    X, y = sample(dtype=np.float32 if kind == "memmap32" else np.float64)
    whole = SVMClassifier(C=0.5, tol=1e-6).fit(X, y)
    given, labels = X, y
    if kind.startswith("memmap"):
        given = in_memmap(X, tmp_path)
    elif kind == "dask":
        given, labels = da.from_array(X, chunks=(90, 2)), da.from_array(y, chunks=33)
    elif kind == "frame":
        pd = pytest.importorskip("pandas")
        frame = dd.from_pandas(pd.DataFrame(X, columns=list("abcd")).assign(y=y), npartitions=3)
        given, labels = frame[list("abcd")], frame["y"]
    elif kind == "csr":
        given = RowBlocks([sp.csr_matrix(X[:150]), sp.csr_matrix(X[150:])])
    else:
        given = RowBlocks([lambda i=i: X[i : i + 100] for i in range(0, 400, 100)])
    fit = SVMClassifier(C=0.5, tol=1e-6).fit(given, labels)
    assert_allclose(fit.objective_, whole.objective_, rtol=2e-6)
    assert fit.lower_bound_ <= whole.objective_
    assert fit.n_features_in_ == 4
    with pytest.raises(ValueError, match="2 features, but SVMClassifier is expecting 4"):
        fit.predict(RowBlocks([X[:, :2]]))
    answer = fit.predict(given)
    if kind in ("dask", "frame"):
        assert hasattr(answer, "__dask_graph__"), "predictions of dask data are lazy"
    assert_array_equal(np.asarray(answer), whole.predict(X))


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize(
    "estimator",
    [
        TruncatedHingeClassifier(C=0.1),
        PsiClassifier(a=2.0, C=0.1),
        TruncatedHingeClassifier(C=0.1, penalty="l1"),
        RejectClassifier(C=0.1, s=-0.5),
    ],
    ids=lambda e: f"{type(e).__name__}-{e.penalty}",
)
def test_truncated_fits_are_stationary_and_as_good(estimator, k):
    X, y = sample(k=k, n=300)
    here = clone(estimator).fit(X, y)
    there = clone(estimator).fit(RowBlocks.split(X, 3), y)
    assert there.status_ == "critical"
    assert_allclose(there.objective_, here.problem(X, y).value(there.coef_, there.intercept_), rtol=1e-9)
    assert there.objective_ <= here.objective_ * (1 + 1e-2)
    margins = here.problem(X, y)
    capped = margins.loss.is_capped(here.problem(X, y).margins(there.coef_, there.intercept_))
    assert there.suspects_.size == np.count_nonzero(capped) or k > 2
    check = there.verify(RowBlocks.split(X, 3), y)
    assert check.ok, check.message


def test_suspects_are_the_capped_rows_in_the_order_given():
    X, y = sample(n=300)
    fit = TruncatedHingeClassifier(C=0.1).fit(RowBlocks.split(X, 4), y)
    u = np.where(y == 1, 1.0, -1.0) * fit.decision_function(X)
    assert_array_equal(fit.suspects_, np.flatnonzero(u < -1.0))


def test_weights_count_rows():
    X, y = sample(n=200)
    times = np.random.default_rng(3).integers(0, 4, y.size)
    weighted = SVMClassifier(tol=1e-6).fit(RowBlocks.split(X, 3), y, times.astype(float))
    repeated = SVMClassifier(tol=1e-6).fit(RowBlocks.split(np.repeat(X, times, axis=0), 4), np.repeat(y, times))
    assert_allclose(weighted.objective_, repeated.objective_, rtol=2e-6)


@pytest.mark.parametrize("C", [1e-8, 1e4, 1e8])
def test_bounds_hold_at_extreme_costs(C):
    X, y = sample(n=150, p=2)
    best = SVMClassifier(C=C, tol=1e-7).fit(X, y).objective_
    fit = SVMClassifier(C=C, max_iter=60).fit(RowBlocks.split(X, 4), y)
    assert fit.lower_bound_ <= best * (1 + 1e-12)
    assert fit.lower_bound_ <= fit.objective_


def test_the_balance_is_checked_in_integers(monkeypatch):
    """Blocks that are not asked to balance the others are noticed: multipliers out of balance prove nothing."""
    X, y = sample(n=60, p=2)
    fit = SVMClassifier().fit(RowBlocks.split(X, 3), y)
    problem = fit.problem(RowBlocks.split(X, 3), y)
    R = fit.certificate_.evidence
    assert problem.dual_bound(R) > 0
    monkeypatch.setattr("psilearn.core.chunks.problem.wanted_of", lambda found: {})
    with pytest.raises(ArithmeticError, match="do not balance"):
        problem.dual_bound(R)


def test_a_claim_that_was_tampered_with_is_noticed():
    X, y = sample(n=100)
    fit = SVMClassifier().fit(RowBlocks.split(X, 3), y)
    true = fit.certificate_
    fit.certificate_ = dataclasses.replace(true, bound=true.objective)
    assert not fit.verify(RowBlocks.split(X, 3), y).ok
    fit.certificate_ = dataclasses.replace(true, objective=true.objective * 1.001)
    assert not fit.verify(RowBlocks.split(X, 3), y).ok


def test_low_rank_kernels():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 2))
    y = (np.sum(X**2, axis=1) > 1.4).astype(int)
    fit = SVMClassifier(kernel="rbf", n_components=40).fit(RowBlocks.split(X, 4), y)
    assert fit.score(X, y) > 0.95
    assert fit.gap_ <= 1e-4
    assert fit.verify(RowBlocks.split(X, 4), y).ok


def test_a_fit_can_be_saved(tmp_path):
    X, y = sample(n=100)
    fit = SVMClassifier().fit(RowBlocks.split(X, 3), y)
    save(fit, tmp_path / "fit.psi")
    again = load(tmp_path / "fit.psi")
    assert_array_equal(again.predict(X), fit.predict(X))
    assert again.verify(RowBlocks.split(X, 3), y).ok


def test_nothing_of_the_data_is_pulled_in():
    """The largest array that a fit holds at a time is a block, not the sample."""
    n, p, block = 200_000, 5, 5_000
    rng = np.random.default_rng(0)
    w = rng.normal(size=p)

    def rows(i):
        X = np.random.default_rng(i).normal(size=(block, p))
        return X, (X @ w + np.random.default_rng(-i - 1 + 10**6).normal(size=block) > 0).astype(int)

    X = RowBlocks([lambda i=i: rows(i)[0] for i in range(n // block)], p)
    y = RowBlocks([lambda i=i: rows(i)[1] for i in range(n // block)])
    SVMClassifier(C=1e-4).fit(RowBlocks.split(*sample()[:1], 2), sample()[1])  # compile
    tracemalloc.start()
    fit = SVMClassifier(C=1e-4, tol=1e-3).fit(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert fit.gap_ <= 1e-3
    assert peak < 0.8 * n * p * 8 + 20 * n, f"{peak / 2**20:.0f} MB"


BAD = {
    "one class": (lambda X, y: (X, np.zeros_like(y)), "at least two classes"),
    "nan": (lambda X, y: (np.where(X > 4, np.nan, X), y), "NaN or infinity"),
    "lengths": (lambda X, y: (X, y[:-1]), "rows"),
    "continuous": (lambda X, y: (X, y + 0.5 * np.random.default_rng(0).random(y.size)), "Unknown label type"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_data_get_a_sentence(case):
    X, y = sample(n=50)
    change, sentence = BAD[case]
    X, y = change(X, y)
    with pytest.raises(ValueError, match=sentence):
        SVMClassifier().fit(RowBlocks.split(X, 3), y)


def test_who_needs_memory_says_so():
    """A dask array is never pulled in without a word."""
    X, y = sample(n=50)
    given = da.from_array(X, chunks=(20, 4))
    for estimator in (LPBoostClassifier(), L0BoostClassifier(), TunedClassifier(SVMClassifier())):
        with pytest.raises(ValueError, match="in memory"):
            estimator.fit(given, y)


def test_a_path_on_blocks():
    X, y = sample(n=200)
    here = regularization_path(SVMClassifier(tol=1e-6), X, y, [0.01, 0.1, 1.0])
    there = regularization_path(SVMClassifier(tol=1e-6), RowBlocks.split(X, 3), y, [0.01, 0.1, 1.0])
    assert_allclose(there.objectives, here.objectives, rtol=2e-6)


@pytest.mark.parametrize("tol", [1e-3, 1e-5])
@pytest.mark.parametrize("k", [2, 3])
def test_a_long_path_on_blocks_is_certified_between_its_knots(k, tol):
    X, y = sample(n=3000, k=k)
    Cs = np.geomspace(1e-3, 1e-2, 14)[np.random.default_rng(k).permutation(14)]
    there = regularization_path(SVMClassifier(tol=tol), RowBlocks.split(X, 4), y, Cs)
    best = regularization_path(SVMClassifier(tol=1e-7), X, y, Cs).objectives
    assert np.all(there.gaps <= tol)
    assert np.all(there.lower_bounds <= best * (1 + 1e-12))
    assert_allclose(there.objectives, best, rtol=tol)


def test_between_the_knots_of_a_path_of_many_rows_a_proof_is_enough():
    X, y = sample(n=60_000)
    Cs = np.geomspace(1e-4, 1e-3, 14)
    there = regularization_path(SVMClassifier(tol=1e-3), RowBlocks.split(X, 4), y, Cs)
    assert np.all(there.gaps <= 1e-3)
    assert np.count_nonzero(there.n_iters == 1) > 4
    for at in np.flatnonzero(there.n_iters == 1)[::3]:
        problem = SVMClassifier(C=Cs[at]).problem(X, y)
        assert_allclose(problem.value(there.coefs[at], there.intercepts[at]), there.objectives[at], rtol=1e-9)


def test_a_long_l1_path_on_blocks_keeps_its_zeros():
    X, y = sample(n=2000)
    X = np.hstack([X, np.random.default_rng(0).normal(size=(2000, 6))])
    Cs = np.geomspace(1e-4, 1e-2, 14)
    model = SVMClassifier(penalty="l1", tol=1e-6)
    here, there = (regularization_path(model, given, y, Cs).coefs for given in (X, RowBlocks.split(X, 4)))
    assert np.count_nonzero(here == 0) > 40
    assert np.count_nonzero((here == 0) != (there == 0)) <= 2


def test_blocks_of_one_class_can_not_balance_the_others_alone(monkeypatch):
    """Then all blocks stand ready: the bound is that of the same blocks with a reserve that is large enough."""
    X, y = sample(n=300, p=2)
    order = np.argsort(-y, kind="stable")
    X, y = X[order], y[order]
    fit = SVMClassifier().fit(RowBlocks.split(X, 10), y)
    problem, R = fit.problem(RowBlocks.split(X, 10), y), fit.certificate_.evidence
    bound = problem.dual_bound(R)
    assert bound >= fit.objective_ * (1 - 1e-3)
    monkeypatch.setattr("psilearn.core.chunks.problem._RESERVE", 1)
    asked = []
    monkeypatch.setattr(
        "psilearn.core.chunks.problem.wanted_of", lambda found: asked.append(len(found.kept)) or wanted_of(found)
    )
    least = R._replace(at=R.at._replace(V=R.at.V + np.array([[0.0, 0.0, -0.5]])))  # too few multipliers of class 0
    assert problem.dual_bound(least) <= fit.objective_
    assert asked[-1] == 10
    assert_allclose(problem.dual_bound(R), bound, rtol=1e-6)


@pytest.mark.parametrize(
    ("estimator", "sentence"),
    [
        (SVMClassifier(kernel="rbf"), "n_components"),
        (SVMClassifier(solver="newton"), "data in blocks"),
        (RejectClassifier(threshold="auto"), "calibrate"),
    ],
)
def test_what_blocks_cannot_do_is_refused(estimator, sentence):
    X, y = sample(n=50)
    with pytest.raises(ValueError, match=sentence):
        estimator.fit(RowBlocks.split(X, 3), y)


def test_a_small_or_indivisible_memmap_is_an_array(tmp_path, monkeypatch):
    """joblib hands memory-mapped arrays to its workers; an exact kernel needs all samples at once in any case."""
    X, y = sample()
    given = in_memmap(X, tmp_path)
    for model in (SVMClassifier(kernel="rbf"), PsiClassifier(solver="mip", max_iter=20)):
        here, there = clone(model).fit(X, y), clone(model).fit(given, y)
        assert_array_equal(here.predict(X), there.predict(given))
        assert here.objective_ == there.objective_
    monkeypatch.setattr(opening, "SMALL_MEMMAP", X.size)
    assert not opening.is_chunked(given)
    assert opening.is_chunked(np.memmap(tmp_path / "Z.bin", dtype=X.dtype, mode="w+", shape=(401, 4)))
