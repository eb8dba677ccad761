"""Proof files: written, checked in exact arithmetic, and compared with truth from elsewhere."""

import ast
import gzip
import json
import math
import os
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics.pairwise import rbf_kernel

import psilearn
from psilearn import (
    HardMargin,
    MarginClassifier,
    Psi,
    PsiClassifier,
    RejectClassifier,
    SlipperClassifier,
    SVMClassifier,
    TruncatedHinge,
    TruncatedHingeClassifier,
    TruncatedReject,
)
from psilearn.proofs import check as checker
from psilearn.proofs import integers, write

from oracles import exact_reference
from oracles.proof_files import write_csv

CHECKER = Path(checker.__file__)


def sample(n=30, d=3, k=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    score = X[:, 0] + 0.5 * X[:, 1] + 0.6 * rng.standard_normal(n)
    return X, np.digitize(score, np.linspace(-0.6, 0.6, k - 1) if k > 2 else [0.0]), rng.uniform(0.1, 3.0, n)


def read(path):
    with gzip.open(path) as file:
        return [json.loads(line) for line in file]


def rewrite(path, records):
    write.write(path, records)
    return path


CONVEX = {
    "hinge": (SVMClassifier(C=2.0), 2),
    "class weights": (SVMClassifier(class_weight="balanced"), 2),
    "l1": (SVMClassifier(penalty="l1"), 2),
    "adaptive l1": (SVMClassifier(penalty="adaptive-l1"), 2),
    "elastic net": (SVMClassifier(penalty="elastic-net", l1_ratio=0.3), 2),
    "reject": (RejectClassifier(d=0.2), 2),
    "reject by class": (RejectClassifier(d=(0.1, 0.3), penalty="l2"), 2),
    "rbf": (SVMClassifier(kernel="rbf"), 2),
    "poly": (SVMClassifier(kernel="poly", coef0=1.0, degree=2), 2),
    "3 classes": (SVMClassifier(), 3),
    "3 classes l1": (SVMClassifier(penalty="l1"), 3),
    "3 classes elastic net": (SVMClassifier(penalty="elastic-net"), 3),
    "4 classes rbf": (SVMClassifier(kernel="rbf"), 4),
    "reject, 3 classes": (RejectClassifier(d=0.2), 3),
}


@pytest.mark.parametrize("name", CONVEX)
def test_convex_fits_are_proved(name, tmp_path):
    estimator, k = CONVEX[name]
    X, y, weights = sample(k=k)
    fitted = psilearn.prove(estimator, X, y, tmp_path / "fit.proof", sample_weight=weights)
    found = psilearn.check(tmp_path / "fit.proof", X, y, weights)
    assert found.ok, found.message
    assert found.bound <= found.objective
    assert found.objective == pytest.approx(fitted.objective_, rel=1e-9)
    assert found.bound == pytest.approx(fitted.lower_bound_, rel=1e-9)
    # the bound is what the multipliers prove, to the last digit: nothing above it is accepted
    records = read(tmp_path / "fit.proof")
    records[0]["bound"] = math.nextafter(found.bound, math.inf)
    assert not psilearn.check(rewrite(tmp_path / "raised", records), X, y, weights).ok


def test_precomputed_kernels_are_proved_with_their_ridge(tmp_path):
    X, y, _ = sample()
    for gram, has_ridge in ((rbf_kernel(X), False), (X @ X.T, True)):
        psilearn.prove(SVMClassifier(kernel="precomputed"), gram, y, tmp_path / "fit.proof")
        found = psilearn.check(tmp_path / "fit.proof", gram, y)
        assert found.ok, found.message
        assert found.gap < 2e-4
        ridge = float(read(tmp_path / "fit.proof")[0]["problem"]["kernel"]["ridge"])
        assert (ridge > 0) is has_ridge
        assert ridge < 1e-8 * gram.max()


def test_positive_definite_is_decided_exactly(rng):
    for size in (1, 2, 5, 12):
        for shift in (-1e-9, 1e-9):
            A = rng.standard_normal((size, size))
            A = A @ A.T
            A += (shift - np.linalg.eigvalsh(A)[0]) * np.eye(size)
            half = [[int(Fraction(A[i, j]) * 2**60) for j in range(i + 1)] for i in range(size)]
            assert checker.is_positive_definite(half) is (shift > 0)


TREES = {
    "psi": PsiClassifier(solver="mip", C=2.0),
    "psi a=2": PsiClassifier(solver="mip", a=2.0),
    "truncated hinge": TruncatedHingeClassifier(solver="mip", s=0.1),
    "hard margin": MarginClassifier(HardMargin(), solver="mip"),
    "truncated reject": RejectClassifier(solver="mip", s=-1.0, penalty="l2"),
    "psi l1": PsiClassifier(solver="mip", penalty="l1"),
    "truncated hinge l1": TruncatedHingeClassifier(solver="mip", penalty="l1"),
    "psi rbf": PsiClassifier(solver="mip", kernel="rbf"),
}


@pytest.mark.parametrize("name", TREES)
def test_truncated_fits_are_proved(name, tmp_path):
    estimator = TREES[name]
    X, y, weights = sample(24, 2)
    y[:3] = 1 - y[:3]
    fitted = psilearn.prove(estimator, X, y, tmp_path / "fit.proof", sample_weight=weights)
    found = psilearn.check(tmp_path / "fit.proof", X, y, weights)
    assert found.ok, found.message
    assert found.gap <= 1.1e-4
    assert found.objective == pytest.approx(fitted.objective_, rel=2e-6)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("penalty", ["l2", "l1"])
def test_bounds_of_trees_are_below_the_enumerated_optimum(seed, penalty, tmp_path):
    rng = np.random.default_rng(seed)
    n, loss, C = 6, Psi(1.0), float(10.0 ** rng.uniform(-1, 2))
    X, y = rng.standard_normal((n, 2)), np.array([0, 1] * 3)
    truth = {"l2": exact_reference.optimum_l2, "l1": exact_reference.optimum_l1}[penalty]
    optimum = truth(X, 2.0 * y - 1.0, np.full(n, C), loss)
    psilearn.prove(PsiClassifier(C=C, penalty=penalty, solver="mip"), X, y, tmp_path / "fit.proof")
    found = psilearn.check(tmp_path / "fit.proof", X, y)
    assert found.ok, found.message
    assert found.bound <= optimum * (1 + 1e-9)
    assert found.objective >= optimum * (1 - 1e-9)
    assert found.gap <= 1.1e-4


HARD = {
    "features of all sizes": (PsiClassifier(solver="mip", penalty="l1"), lambda X, w: (X * [1e-5, 1e5], w)),
    "far from zero": (PsiClassifier(solver="mip"), lambda X, w: (X + 1e6, w)),
    "weights over 12 decades": (TruncatedHingeClassifier(solver="mip"), lambda X, w: (X, 10.0 ** (4 * w - 12))),
    "large C": (PsiClassifier(solver="mip", C=1e7), lambda X, w: (X, w)),
    "large C, l1": (MarginClassifier(HardMargin(), solver="mip", penalty="l1", C=1e5), lambda X, w: (X, w)),
    "convex, large C": (SVMClassifier(C=1e9), lambda X, w: (X, 10.0 ** (4 * w - 12))),
    "3 classes, far": (SVMClassifier(C=1e5), lambda X, w: (X + 1e6, w)),
}


@pytest.mark.parametrize("name", HARD)
def test_data_of_awkward_sizes_are_proved(name, tmp_path):
    estimator, change = HARD[name]
    X, y, weights = sample(20, 2, k=3 if "3 classes" in name else 2, seed=2)
    X, weights = change(X, weights)
    psilearn.prove(estimator, X, y, tmp_path / "fit.proof", sample_weight=weights)
    found = psilearn.check(tmp_path / "fit.proof", X, y, weights)
    assert found.ok, found.message
    assert found.gap <= 2e-4


def test_proof_of_a_search_without_time_holds_with_a_smaller_bound(tmp_path):
    X, y, _ = sample(40, 4, seed=3)
    y[:4] = 1 - y[:4]
    psilearn.prove(PsiClassifier(solver="mip"), X, y, tmp_path / "fit.proof", time_limit=0.0)
    found = psilearn.check(tmp_path / "fit.proof", X, y)
    assert found.ok, found.message
    assert 0 <= found.bound < found.objective
    assert found.gap > 1e-3


def test_a_jump_is_crossed_or_its_tolerance_is_stated(tmp_path):
    """Pairs of equal samples with different labels hold f = 0 at them, where the loss jumps for both at once."""
    direction = np.array([0.3, 0.1])
    pairs = np.array([[s * direction[0], s * direction[1]] for s in (-3.1, -1.7, 0.9, 2.3) for _ in (0, 1)])
    away = np.array([[-1.0, 3.0], [1.0, 3.2], [-1.1, -3.0], [1.0, -3.3]])
    X, y = np.vstack([pairs, away]), np.array([0, 1] * 4 + [1, 1, 0, 0])
    psilearn.prove(PsiClassifier(a=0.5, C=10.0, solver="mip"), X, y, tmp_path / "fit.proof")
    found = psilearn.check(tmp_path / "fit.proof", X, y)
    assert found.ok, found.message
    assert found.gap <= 1.1e-4
    records = read(tmp_path / "fit.proof")
    assert float(records[0]["problem"]["loss"]["tolerance"]) > 0
    records[0]["problem"]["loss"]["tolerance"] = 0.0  # the plain loss is larger: the point does not attain it
    assert not psilearn.check(rewrite(tmp_path / "plain", records), X, y).ok


@pytest.fixture(scope="module")
def proved(tmp_path_factory):
    X, y, weights = sample(16, 2, seed=5)
    path = tmp_path_factory.mktemp("proof") / "fit.proof"
    columns = {"features": None, "target": "label", "weight": "weight"}
    psilearn.prove(PsiClassifier(solver="mip"), X, y, path, weights, columns=columns)
    return path, X, y, weights


def test_a_proof_is_bound_to_its_data(proved):
    path, X, y, weights = proved
    assert psilearn.check(path, X, y, weights).ok
    other = X.copy()
    other[3, 1] = np.nextafter(other[3, 1], np.inf)
    flipped, heavier = y.copy(), weights.copy()
    flipped[0], heavier[2] = 1 - y[0], np.nextafter(weights[2], np.inf)
    order = np.arange(16)[::-1]
    shorter, reversed_rows = (X[:-1], y[:-1], weights[:-1]), (X[order], y[order], weights[order])
    one_cell = [(other, y, weights), (X, flipped, weights), (X, y, heavier)]
    for changed in (*one_cell, (X, y, None), shorter, reversed_rows, (X[:, :1], y, weights)):
        found = psilearn.check(path, *changed)
        assert not found.ok
        assert "other data" in found.message


def test_labels_have_one_text_whatever_their_type(proved, tmp_path):
    path, X, y, weights = proved
    for labels in (y.astype(float), y.astype(bool), y.astype(str), [f"{label}.0" for label in y]):
        assert psilearn.check(path, X, labels, weights).ok
    words = np.array(["no", "yes"])[y]
    psilearn.prove(SVMClassifier(), X, words, tmp_path / "words.proof")
    assert psilearn.check(tmp_path / "words.proof", X, words).ok
    assert not psilearn.check(tmp_path / "words.proof", X, y).ok


def test_equal_rows_are_one_sample_and_rows_without_weight_are_none(tmp_path):
    X, y, _ = sample(20, 2)
    X, y = np.vstack([X, X[:7], X[:2]]), np.r_[y, y[:7], y[:2]]
    weights = np.r_[np.ones(20), np.full(7, 0.5), np.zeros(2)]
    for estimator in (SVMClassifier(), PsiClassifier(solver="mip"), SVMClassifier(kernel="rbf")):
        psilearn.prove(estimator, X, y, tmp_path / "fit.proof", sample_weight=weights)
        found = psilearn.check(tmp_path / "fit.proof", X, y, weights)
        assert found.ok, found.message
        assert found.objective == pytest.approx(estimator.objective_, rel=2e-6)


def test_the_checker_runs_alone(proved, tmp_path):
    """Without an environment, without site-packages, as a plain script: no numpy, nothing of ours."""
    path, X, y, weights = proved
    write_csv(tmp_path / "data.csv", X, y, weights)
    run = [sys.executable, "-I", "-S", str(CHECKER)]

    def status(*arguments):
        done = subprocess.run([*run, *map(str, arguments)], env={}, capture_output=True, text=True, check=False)
        assert "Traceback" not in done.stderr
        return done.returncode, done.stdout

    code, text = status(path, tmp_path / "data.csv")
    assert code == 0
    found = psilearn.check(path, X, y, weights)
    assert repr(found.bound) in text
    assert repr(found.objective) in text
    lines = (tmp_path / "data.csv").read_text().splitlines()
    lines[4] = "7.5" + lines[4][lines[4].index(",") :]
    (tmp_path / "changed.csv").write_text("\n".join(lines) + "\n")
    assert status(path, tmp_path / "changed.csv")[0] == 1
    assert status(tmp_path / "data.csv", tmp_path / "data.csv")[0] == 1
    assert status(path, tmp_path / "nowhere.csv")[0] == 2
    assert status(path)[0] == 2


def test_the_checker_runs_as_a_module(proved, tmp_path):
    path, X, y, weights = proved
    write_csv(tmp_path / "data.csv", X, y, weights)
    command = [sys.executable, "-m", "psilearn.proofs.check", str(path), str(tmp_path / "data.csv")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=dict(os.environ))
    assert done.returncode == 0, done.stderr
    assert "proved" in done.stdout


def test_the_checker_imports_the_standard_library_alone():
    for node in ast.walk(ast.parse(CHECKER.read_text())):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0
            assert node.module.split(".")[0] in sys.stdlib_module_names
        elif isinstance(node, ast.Import):
            assert all(alias.name.split(".")[0] in sys.stdlib_module_names for alias in node.names)


@pytest.mark.parametrize(
    ("estimator", "k", "reason"),
    [
        (SVMClassifier(kernel="sigmoid", gamma=0.1, coef0=-2.0), 2, "kernel='precomputed'"),
        (TruncatedHingeClassifier(solver="dca", kernel="rbf"), 3, "one class against the others"),
        (TruncatedHingeClassifier(solver="dca", penalty="l1"), 3, "one class against the others"),
        (TruncatedHingeClassifier(penalty="scad", solver="dca"), 2, "proved is the fit with l1"),
        (TruncatedHingeClassifier(penalty="elastic-net", solver="dca"), 2, "with both the convex one"),
        (RejectClassifier(d=(0.2, 0.3), s=-0.5, penalty="l2", solver="dca"), 2, "fit with equal d"),
        (PsiClassifier(restrict="svm", solver="mip"), 2, "restrict=None"),
        (SVMClassifier(kernel="rbf", n_components=5), 2, "n_components=None"),
        (SVMClassifier(penalty="adaptive-l1", adaptive_weights=[0.0, 1.0]), 2, "without a penalty"),
        (SlipperClassifier(folds=0), 2, "no multipliers"),
        (LogisticRegression(), 2, "margin classifiers"),
    ],
)
def test_what_cannot_be_proved_is_refused(estimator, k, reason, tmp_path):
    X, y, _ = sample(30, 2, k=k)
    with pytest.raises(ValueError, match=reason):
        psilearn.prove(estimator, X, y, tmp_path / "fit.proof")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("seed", range(20))
def test_integers_are_balanced_exactly(seed):
    rng = np.random.default_rng(seed)
    n, k = int(rng.integers(2, 30)), int(rng.integers(3, 6))
    limits = [int(x) for x in rng.integers(0, 1000, n)]
    signs = [int(s) for s in rng.choice([-1, 1], n)]
    a = integers.balance_two_class([int(x) for x in rng.integers(-200, 1200, n)], signs, limits)
    assert sum(s * x for s, x in zip(signs, a)) == 0
    assert all(0 <= x <= limit for x, limit in zip(a, limits))
    code = [int(c) for c in rng.integers(0, k, n)]
    A = integers.balance_k_class(rng.integers(-100, 400, (n, k)).tolist(), code, limits, k)
    columns = [sum(sum(A[i]) for i in range(n) if code[i] == j) - sum(row[j] for row in A) for j in range(k)]
    assert columns == [0] * k
    assert all(x >= 0 for row in A for x in row)
    assert all(sum(row) <= limit and row[c] == 0 for row, limit, c in zip(A, limits, code))


@pytest.mark.parametrize("name", ["psi", "truncated hinge", "psi l1", "psi rbf"])
def test_the_price_of_a_label_is_proved(name, tmp_path):
    X, y, weights = sample(24, 2)
    y[:3] = 1 - y[:3]
    estimator = clone(TREES[name]).fit(X, y, weights)
    prices = psilearn.certify_labels(estimator, X, y, sample_weight=weights)
    row, price = int(prices["index"][0]), float(prices["price"][0])
    psilearn.prove(clone(estimator), X, y, tmp_path / "price.proof", weights, believed=row)
    found = psilearn.check(tmp_path / "price.proof", X, y, weights)
    assert found.ok, found.message
    assert f"at the rows {row}" in found.message
    assert found.bound / found.objective - 1 == pytest.approx(price, abs=2e-4 * (1 + price))
    records = read(tmp_path / "price.proof")
    del records[0]["problem"]["believed"]  # believing nobody is cheaper
    assert price > 1e-3
    assert not psilearn.check(rewrite(tmp_path / "free", records), X, y, weights).ok
    with pytest.raises(ValueError, match="no row of X"):
        psilearn.prove(clone(estimator), X, y, tmp_path / "b", weights, believed=99)


@pytest.mark.parametrize("solver", ["patterns", "cones", "outer", "dca"])
def test_fits_of_three_classes_are_proved_whatever_found_them(solver, tmp_path):
    """Searches for k classes hand their incumbent to a branch and bound that can write."""
    X, y, weights = sample(14, 2, seed=2, k=3)
    estimator = TruncatedHingeClassifier(s=0.0, C=2.0, solver=solver)
    fitted = psilearn.prove(estimator, X, y, tmp_path / "fit.proof", sample_weight=weights, time_limit=30)
    found = psilearn.check(tmp_path / "fit.proof", X, y, weights)
    assert found.ok, found.message
    best = TruncatedHingeClassifier(s=0.0, C=2.0, solver="patterns").fit(X, y, weights)
    assert found.bound <= best.objective_ * (1 + 1e-9)
    assert found.objective == pytest.approx(fitted.objective_, rel=2e-6)
    if solver != "dca":
        assert found.gap <= 1.1e-4


@pytest.mark.parametrize(
    "loss", [Psi(1.0), Psi(2.0), TruncatedHinge(-0.5), HardMargin(), TruncatedReject(0.2, -0.5)], ids=repr
)
def test_bounds_of_three_classes_are_below_every_point(loss, tmp_path):
    """Jumps, too; the least value is found by descents from many random starts."""
    X, y, _ = sample(12, 2, seed=5, k=3)
    estimator = MarginClassifier(loss, C=1.5, solver="patterns")
    psilearn.prove(estimator, X, y, tmp_path / "fit.proof", time_limit=30)
    found = psilearn.check(tmp_path / "fit.proof", X, y)
    assert found.ok, found.message
    assert found.gap <= 1.2e-4
    problem, rng = estimator.problem(X, y), np.random.default_rng(0)
    assert problem.value(estimator.coef_, estimator.intercept_) >= found.bound
    for _ in range(400):
        size = 10.0 ** rng.uniform(-2, 1)
        W, b = size * rng.standard_normal((3, 2)), size * rng.standard_normal(3)
        near = estimator.coef_ + 0.1 * (W - W.mean(axis=0)), estimator.intercept_ + 0.1 * (b - b.mean())
        assert min(problem.value(W - W.mean(axis=0), b - b.mean()), problem.value(*near)) >= found.bound


def test_a_search_for_three_classes_without_time_holds_with_a_smaller_bound(tmp_path):
    X, y, _ = sample(30, 2, seed=1, k=3)
    estimator = TruncatedHingeClassifier(s=0.0, solver="dca")
    psilearn.prove(estimator, X, y, tmp_path / "fit.proof", time_limit=1e-3)
    found = psilearn.check(tmp_path / "fit.proof", X, y)
    assert found.ok, found.message
    assert 0 < found.bound < found.objective


def test_global_bounds_of_three_classes_are_verified():
    X, y, _ = sample(14, 2, seed=2, k=3)
    model = TruncatedHingeClassifier(s=0.0, C=2.0, solver="patterns").fit(X, y)
    assert model.certificate_.claim == "global bound"
    answer = model.verify(X, y)
    assert answer.ok, answer.message
    model.certificate_ = replace(model.certificate_, bound=model.objective_ * (1 + 1e-4))
    assert not model.verify(X, y).ok
