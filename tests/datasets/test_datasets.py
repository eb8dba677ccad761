"""Generators, exact Bayes rules and loaders against the facts printed in the papers and against other algorithms."""

import os

import numpy as np
import pandas as pd
import pytest
from scipy import integrate, stats
from sklearn.svm import SVC
from sklearn.utils import Bunch

from psilearn import datasets
from psilearn.datasets import _sources
from psilearn.datasets.generators import quadratic_features, sector, triangle

DESIGNS = [
    (datasets.make_disk, {}, datasets.bayes_disk, {}),
    (datasets.make_quadratic, {"case": 3}, datasets.bayes_quadratic, {}),
    (
        datasets.make_sectors,
        {"n_classes": 4, "n_features": 6, "flip": 0.2},
        datasets.bayes_sectors,
        {"n_classes": 4, "flip": 0.2},
    ),
    (datasets.make_folded_sectors, {"flip": 0.1}, datasets.bayes_folded_sectors, {"flip": 0.1}),
    (datasets.make_beta_mixture, {}, datasets.bayes_beta_mixture, {}),
    (datasets.make_t_diamond, {"df": 1}, datasets.bayes_t_diamond, {"df": 1}),
    (datasets.make_t_diamond, {"df": 3}, datasets.bayes_t_diamond, {"df": 3}),
    (datasets.make_triangles, {"flip": 0.2}, datasets.bayes_triangles, {"flip": 0.2}),
    (datasets.make_triangles, {"flip": 0.2, "to": "all"}, datasets.bayes_triangles, {"flip": 0.2, "to": "all"}),
    (datasets.make_t_mixture, {"df": 3}, datasets.bayes_t_mixture, {"df": 3}),
    (datasets.make_t_mixture, {"df": 1}, datasets.bayes_t_mixture, {"df": 1}),
    (datasets.make_gaussian_ar, {"r": 0.6}, datasets.bayes_gaussian_ar, {"r": 0.6}),
]
IDS = [f"{make.__name__}{options}" for make, options, _, _ in DESIGNS]
N = 40_000

needs_folder = pytest.mark.skipif(not os.environ.get("PSILEARN_DATA"), reason="PSILEARN_DATA is not set")


@pytest.mark.parametrize(("make", "options", "bayes", "arguments"), DESIGNS, ids=IDS)
def test_bayes_rule_meets_its_error_on_a_large_sample(make, options, bayes, arguments):
    X, y = make(N, **options, random_state=0)
    rule = bayes(**arguments)
    error = np.mean(rule.predict(X) != y)
    assert error == pytest.approx(rule.error, abs=4 * np.sqrt(0.25 / N))
    posterior = rule.posterior(X)
    np.testing.assert_allclose(posterior.sum(axis=1), 1.0, atol=1e-12)
    # the expected loss given X has a smaller variance than the 0-1 loss: a second estimate of the same number
    assert 1.0 - posterior.max(axis=1).mean() == pytest.approx(rule.error, abs=2.5 / np.sqrt(N))


@pytest.mark.parametrize(("make", "options", "bayes", "arguments"), DESIGNS, ids=IDS)
def test_posterior_is_calibrated(make, options, bayes, arguments):
    X, y = make(N, **options, random_state=1)
    rule = bayes(**arguments)
    posterior = rule.posterior(X)
    for code, label in enumerate(rule.classes):
        p = posterior[:, code]
        for low, high in ((0.0, 0.2), (0.2, 0.5), (0.5, 0.8), (0.8, 1.0)):
            inside = (p >= low) & (p <= high)
            if inside.sum() >= 100:
                assert np.mean(y[inside] == label) == pytest.approx(p[inside].mean(), abs=2.5 / np.sqrt(inside.sum()))


@pytest.mark.parametrize(("make", "options", "bayes", "arguments"), DESIGNS, ids=IDS)
def test_seeds(make, options, bayes, arguments):
    X, y, clean = make(60, **options, random_state=3, return_clean=True)
    again = make(60, **options, random_state=np.random.default_rng(3))
    other = make(60, **options, random_state=4)
    np.testing.assert_array_equal(X, again[0])
    np.testing.assert_array_equal(y, again[1])
    assert not np.array_equal(X, other[0])
    assert X.shape[0] == len(y) == len(clean) == 60
    assert X.dtype == np.float64


def test_printed_bayes_errors():
    # printed estimates come from 100,000 test points: standard error at most .0015
    assert datasets.bayes_beta_mixture().error == pytest.approx(0.2553, abs=0.003)
    assert datasets.bayes_t_diamond(df=1).error == pytest.approx(0.3015, abs=0.003)
    assert datasets.bayes_t_mixture(df=3).error == pytest.approx(0.176, abs=0.0005)
    assert datasets.bayes_triangles(0.1).error == pytest.approx(0.1)
    assert datasets.bayes_quadratic().error == pytest.approx(0.05)


@pytest.mark.parametrize(("df", "digits"), [(1, 0.301416339), (3, 0.190415057)])
def test_t_error_by_another_quadrature(df, digits):
    """Given t_1 = x, the other coordinate of a bivariate t is a t with df + 1 degrees of freedom, rescaled."""
    corner = 4.5 * np.sqrt(0.125)

    def conditional(x):
        scaled = corner * np.sqrt((df + 1) / (df + x * x))
        return stats.t.pdf(x, df) * stats.t.cdf(scaled, df + 1)

    second = 1.0 - integrate.quad(conditional, -np.inf, corner, epsabs=1e-12, limit=200)[0]
    assert datasets.bayes_t_diamond(df).error == pytest.approx(second, abs=1e-9)
    assert second == pytest.approx(digits, abs=1e-9)


def test_printed_bayes_error_of_df_3_is_not_the_exact_one():
    exact = datasets.bayes_t_diamond(df=3).error
    # .1937 is printed; two and a half standard errors of their sample away
    assert 0.1937 - exact > 2.5 * np.sqrt(exact * (1 - exact) / 100_000)


def test_beta_error_by_quadrature():
    x = (np.arange(200_000) + 0.5) / 200_000
    largest = np.max([stats.beta.pdf(x, a, b) for a, b in ((1, 5), (2, 2), (5, 1))], axis=0)
    assert datasets.bayes_beta_mixture().error == pytest.approx(1.0 - largest.mean() / 3.0, abs=1e-7)


@pytest.mark.parametrize("r", [0.0, 0.3, 0.6])
def test_gaussian_design_against_dense_algebra(r):
    p, q = 12, 5
    sigma = r ** np.abs(np.subtract.outer(np.arange(p), np.arange(p)))
    mu = np.r_[np.full(q, 0.5), np.zeros(p - q)]
    direction = np.linalg.solve(sigma, mu)
    np.testing.assert_allclose(datasets.gaussian_ar_direction(p, q, 0.5, r), direction, atol=1e-12)
    assert datasets.bayes_gaussian_ar(p, q, 0.5, r).error == pytest.approx(stats.norm.cdf(-np.sqrt(mu @ direction)))
    X, y = datasets.make_gaussian_ar(N, n_features=p, n_informative=q, r=r, random_state=5)
    np.testing.assert_allclose(np.cov((X - np.outer(y, mu)).T), sigma, atol=0.04)
    np.testing.assert_array_equal(y, np.r_[np.ones(N // 2), -np.ones(N // 2)])


def test_variable_6_is_not_noise_when_correlated():
    assert datasets.gaussian_ar_direction(r=0.3)[5] == pytest.approx(-0.165, abs=5e-4)
    assert datasets.gaussian_ar_direction(r=0.6)[5] == pytest.approx(-0.469, abs=5e-4)


def test_class_shares():
    _, y = datasets.make_disk(N, random_state=0)
    assert np.mean(y == 1) == pytest.approx(0.5, abs=0.01)
    _, y = datasets.make_quadratic(N, flip=0.0, random_state=0)
    assert np.mean(y == -1) == pytest.approx(np.pi * 2.8 / 16.0, abs=0.01)
    for make in (
        datasets.make_beta_mixture,
        datasets.make_folded_sectors,
        datasets.make_t_mixture,
        datasets.make_sectors,
    ):
        _, y = make(N, random_state=0)
        np.testing.assert_allclose(np.bincount(y)[1:] / N, 1 / 3, atol=0.01)
    for make in (datasets.make_t_diamond, datasets.make_triangles):
        _, y = make(N, random_state=0)
        np.testing.assert_allclose(np.bincount(y)[1:] / N, 1 / 4, atol=0.01)


def test_flips_are_counted_exactly():
    _, y, clean = datasets.make_disk(50, n_flips=5, random_state=0, return_clean=True)
    assert np.sum(y != clean) == 5
    _, y, clean = datasets.make_sectors(100, n_classes=4, flip=0.2, random_state=0, return_clean=True)
    assert np.sum(y != clean) == 20
    _, y, clean = datasets.make_triangles(N, flip=0.2, to="all", random_state=0, return_clean=True)
    assert np.mean(y != clean) == pytest.approx(0.15, abs=0.01)
    moved = y[y != clean] - clean[y != clean]
    assert set(np.unique(moved)) == {-3, -2, -1, 1, 2, 3}


@pytest.mark.parametrize("to", ["others", "all"])
def test_flips_go_everywhere_equally(to):
    classes = np.arange(1, 5)
    y = np.full(N, 2)
    noisy = datasets.flip_labels(y, N, classes, np.random.default_rng(0), to)
    share = np.bincount(noisy, minlength=5)[1:] / N
    expected = [1 / 3, 0, 1 / 3, 1 / 3] if to == "others" else [0.25] * 4
    np.testing.assert_allclose(share, expected, atol=0.01)


def test_disk_is_uniform():
    X, _ = datasets.make_disk(N, random_state=0)
    squared = (X**2).sum(axis=1)
    assert stats.kstest(squared, "uniform").pvalue > 1e-3
    assert np.all(squared <= 1.0)


def test_quadratic_features():
    U = np.array([[1.0, 2.0, 3.0, 5.0]])
    assert quadratic_features(U, 1).tolist() == [[1, 4]]
    assert quadratic_features(U, 2).tolist() == [[1, 4, 9, 25]]
    assert quadratic_features(U, 3).tolist() == [[1, 4, 9, 25, 1, 2, 3, 5]]
    assert quadratic_features(U, 4).tolist() == [[1, 4, 9, 25, 1, 2, 3, 5, 2, 3, 5, 6, 10, 15]]
    X, y = datasets.make_quadratic(500, case=4, flip=0.0, random_state=0)
    np.testing.assert_array_equal(y, np.where(X[:, 0] + X[:, 1] >= 2.8, 1, -1))


def test_regions_and_sectors():
    assert triangle(np.array([[0.1, 0.5], [0.5, 0.9], [0.9, 0.5], [0.5, 0.1]])).tolist() == [1, 2, 3, 4]
    angles = np.deg2rad([1, 89, 91, 181, 271, 359])
    points = np.column_stack([np.cos(angles), np.sin(angles)])
    assert sector(points, 4).tolist() == [1, 1, 2, 3, 4, 4]
    assert sector(np.array([[1.0, -1e-300]]), 3).tolist() == [3]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: datasets.make_disk(5, n_flips=6), "n_flips"),
        (lambda: datasets.make_sectors(5, flip=1.5), "share"),
        (lambda: datasets.make_sectors(5, n_features=1), "n_features"),
        (lambda: datasets.make_quadratic(5, case=5), "case"),
        (lambda: datasets.make_gaussian_ar(5, r=1.0), "r must"),
        (lambda: datasets.make_triangles(5, to="none"), "others"),
        (lambda: datasets.load_dataset("iris"), "unknown data set 'iris'"),
    ],
)
def test_bad_arguments_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_wdbc_is_scikit_learns():
    bunch = datasets.load_wdbc()
    assert bunch.data.shape == (569, 30)
    assert np.bincount(bunch.target).tolist() == [212, 357]
    assert bunch.frame["target"].value_counts().to_dict() == {"benign": 357, "malignant": 212}
    X, y = datasets.load_wdbc(return_X_y=True, as_frame=True)
    assert isinstance(X, pd.DataFrame)
    assert isinstance(y, pd.Series)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("PSILEARN_DATA", str(tmp_path))
    return tmp_path


def test_missing_data_says_what_to_do(folder, monkeypatch):
    with pytest.raises(datasets.DataNotFoundError, match=r"Put thyroid\.csv\.gz .* PSILEARN_DATA .* load_colon"):
        datasets.load_thyroid()
    with pytest.raises(datasets.DataNotFoundError, match=str(folder)):
        datasets.load_colon()
    with pytest.raises(datasets.DataNotFoundError, match="hardmargin/NAME"):
        datasets.load_hardmargin("n60d2ATj0")
    monkeypatch.delenv("PSILEARN_DATA")
    with pytest.raises(datasets.DataNotFoundError, match="PSILEARN_DATA is not set"):
        datasets.load_clvheart()
    with pytest.raises(datasets.DataNotFoundError, match="PSILEARN_DATA is not set"):
        datasets.list_monomial()


def test_folder_format(folder):
    frame = pd.DataFrame(
        {"a": [1.5, None, 2.0], "meta_id": ["NA", "q", ""], "colour": ["red", "NA", ""], "target": ["1", "0", "1"]}
    )
    frame.to_csv(folder / "thyroid.csv.gz", index=False)
    bunch = datasets.load_thyroid()
    assert bunch.feature_names == ["a", "colour"]
    assert bunch.target_names.tolist() == ["0", "1"]
    assert bunch.target.tolist() == [1, 0, 1]
    assert np.isnan(bunch.data[1, 0])
    assert bunch.data[1, 1] == "NA"
    assert pd.isna(bunch.data[2, 1])
    assert bunch.meta.columns.tolist() == ["meta_id"]
    assert datasets.list_datasets().set_index("name").loc["thyroid", "place"] == "$PSILEARN_DATA"


def test_openml_labels_are_recognised_by_their_sizes(folder, monkeypatch):
    labels = pd.Series(["Rock"] * 97 + ["Mine"] * 111, dtype="category")
    features = pd.DataFrame(np.arange(208.0)[:, None], columns=["V1"])
    monkeypatch.setattr(_sources, "fetch_openml", lambda *a, **k: Bunch(data=features, target=labels))
    bunch = datasets.load_sonar()
    assert bunch.target_names[bunch.target].tolist() == ["R"] * 97 + ["M"] * 111
    monkeypatch.setattr(_sources, "fetch_openml", lambda *a, **k: Bunch(data=features[:9], target=labels[:9]))
    with pytest.raises(ValueError, match="class sizes"):
        datasets.load_sonar()


def test_openml_out_of_reach(folder, monkeypatch):
    def offline(*args, **options):
        raise OSError("no route to host")

    monkeypatch.setattr(_sources, "fetch_openml", offline)
    with pytest.raises(datasets.DataNotFoundError, match=r"sonar\.csv\.gz.*no route to host"):
        datasets.load_sonar()


def test_gene_screen_against_anova():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 6)), rng.integers(0, 3, 40)
    X[:, 2] += y
    ratio = datasets.between_within_ratio(X, y)
    groups = [X[y == k] for k in range(3)]
    np.testing.assert_allclose(ratio * (40 - 3) / (3 - 1), stats.f_oneway(*groups).statistic)
    X[:, 3], X[:, 4] = 1.0, y
    ratio = datasets.between_within_ratio(X, y)
    assert ratio[3] == 0.0
    assert ratio[4] == np.inf


@needs_folder
@pytest.mark.parametrize(
    ("load", "shape", "counts", "missing"),
    [
        (datasets.load_bcw, (699, 9), [458, 241], 16),
        (datasets.load_vote, (435, 16), [267, 168], 392),
        (datasets.load_clvheart, (303, 13), [164, 139], 6),
        (datasets.load_huheart, (294, 13), [188, 106], 782),
        (datasets.load_sonar, (208, 60), [111, 97], 0),
        (datasets.load_colon, (62, 2000), [22, 40], 0),
    ],
)
def test_real_data(load, shape, counts, missing):
    bunch = load()
    assert bunch.data.shape == shape
    assert np.bincount(bunch.target).tolist() == counts
    assert pd.isna(bunch.data).sum() == missing
    assert len(bunch.feature_names) == shape[1]


@needs_folder
def test_leukemia_as_in_the_paper():
    bunch = datasets.load_leukemia()
    assert bunch.data.shape == (72, 50)
    assert np.bincount(bunch.target[bunch.train]).tolist() == [19, 8, 11]
    assert np.bincount(bunch.target[bunch.test]).tolist() == [19, 1, 14]
    # a one-vs-one linear SVM on these genes makes exactly the two errors the paper names
    model = SVC(kernel="linear", C=0.1).fit(bunch.data[bunch.train], bunch.target[bunch.train])
    wrong = model.predict(bunch.data[bunch.test]) != bunch.target[bunch.test]
    assert sorted(bunch.sample[bunch.test][wrong].astype(int)) == [66, 67]


@needs_folder
def test_benchmark_instances():
    assert len(datasets.list_hardmargin()) == 40
    bunch = datasets.load_hardmargin("n60d2ATj0")
    assert bunch.data.shape == (60, 2)
    assert set(bunch.target) == {-1, 1}
    assert bunch.published["C"].tolist() == [1, 10, 100, 1000, 10000]
    weighted = datasets.load_monomial("hungheart72_w23")
    plain = datasets.load_monomial("hungheart72")
    np.testing.assert_array_equal(weighted.data, plain.data)
    assert set(np.unique(plain.data)) == {0.0, 1.0}
    assert weighted.sample_weight.sum() == pytest.approx(1.0)
    assert plain.sample_weight.sum() == pytest.approx(1.0)
    assert plain.target_names[plain.target].tolist().count("1") == 106
