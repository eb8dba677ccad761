"""Proof files: what is written is accepted, on its own data only, and says what the fit says."""

import ast
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone

import psilearn
from psilearn import PsiClassifier, SVMClassifier
from psilearn.proofs import check as checker
from psilearn.proofs.table import ProofError

from oracles.proof_files import (
    CONVEX,
    TRUNCATED,
    name_of,
    read_records,
    stated_value,
    two_classes,
    write_csv,
    write_records,
)

CHECKER = Path(checker.__file__)


@pytest.mark.parametrize("case", [*CONVEX, *TRUNCATED], ids=name_of)
def test_a_proof_is_accepted_and_agrees_with_the_fit(case, tmp_path):
    estimator, (X, y, weights) = clone(case[0]), case[1]()
    path = tmp_path / "fit.proof"
    assert psilearn.prove(estimator, X, y, path, weights) is estimator
    answer = psilearn.check(path, X, y, weights)
    assert answer.ok, answer.message
    assert answer.objective == pytest.approx(estimator.objective_, rel=1e-6)
    assert answer.bound <= answer.objective
    assert answer.gap <= 1.01e-4
    assert answer.bound == pytest.approx(estimator.lower_bound_, rel=2e-4)


@pytest.mark.parametrize("case", [CONVEX[0], CONVEX[8], CONVEX[10], TRUNCATED[0], TRUNCATED[2]], ids=name_of)
def test_other_data_are_rejected(case, tmp_path):
    X, y, weights = case[1]()
    path = tmp_path / "fit.proof"
    psilearn.prove(clone(case[0]), X, y, path, weights)
    cell, label, weight = X.copy(), y.copy(), weights.copy()
    cell[4, 1] = np.nextafter(cell[4, 1], np.inf)
    label[7] = (label[7] + 1) % len(set(y))
    weight[9] = np.nextafter(weight[9], np.inf)
    for data in ((cell, y, weights), (X, label, weights), (X, y, weight), (X[::-1], y, weights), (X[1:], y[1:], None)):
        assert "other data" in psilearn.check(path, *data).message


def test_a_precomputed_kernel_is_the_data(tmp_path):
    X, y, weights = two_classes()
    K = X @ X.T + 1.0
    K = 0.5 * (K + K.T)
    psilearn.prove(SVMClassifier(kernel="precomputed"), K, y, tmp_path / "fit.proof", weights)
    assert psilearn.check(tmp_path / "fit.proof", K, y, weights).ok
    assert not any("gram" in record for record in read_records(tmp_path / "fit.proof"))


def test_an_indefinite_gram_matrix_is_not_accepted():
    K = [[1.0, 2.0], [2.0, 1.0]]
    with pytest.raises(checker.Rejected, match="semidefinite"):
        checker.Gram(K, 0, [[checker.Fraction(1), checker.Fraction(0)], [checker.Fraction(2), checker.Fraction(0)]], 1)


@pytest.mark.parametrize("case", [CONVEX[0], CONVEX[3], CONVEX[11], TRUNCATED[0], TRUNCATED[1]], ids=name_of)
def test_a_larger_bound_and_another_objective_are_rejected(case, tmp_path):
    X, y, weights = case[1]()
    path = tmp_path / "fit.proof"
    psilearn.prove(clone(case[0]), X, y, path, weights)
    claim, *evidence = read_records(path)
    higher = np.nextafter(claim["objective"], math.inf)
    for change in (
        {"bound": higher},
        {"bound": claim["objective"] * (1 - 1e-14)},
        {"objective": claim["objective"] * (1 + 1e-11)},
        {"objective": claim["objective"] * (1 - 1e-14), "bound": 0.0},
    ):
        write_records(path, [claim | change, *evidence])
        assert not psilearn.check(path, X, y, weights).ok, change


@pytest.mark.parametrize("case", [CONVEX[0], CONVEX[4], TRUNCATED[0], TRUNCATED[4]], ids=name_of)
def test_no_coefficients_reach_less_than_the_bound(case, tmp_path):
    """Truth from outside: many points near the optimum and far from it."""
    X, y, weights = case[1]()
    path = tmp_path / "fit.proof"
    psilearn.prove(clone(case[0]), X, y, path, weights)
    claim = read_records(path)[0]
    w, b = np.array(claim["coef"][0]), claim["intercept"][0]
    assert stated_value(claim, X, y, weights, w, b) == pytest.approx(claim["objective"], rel=1e-9)
    rng = np.random.default_rng(0)
    for size in 10.0 ** rng.uniform(-6, 1, 3000):
        move = size * rng.normal(size=w.size + 1)
        assert stated_value(claim, X, y, weights, w + move[1:], b + move[0]) >= claim["bound"]


def test_the_checker_needs_nothing_but_the_standard_library(tmp_path):
    for node in ast.walk(ast.parse(CHECKER.read_text())):
        names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        assert not (isinstance(node, ast.ImportFrom) and node.level)
        assert all(name.split(".")[0] in sys.stdlib_module_names for name in names), names
    X, y, weights = two_classes()
    columns = {"features": None, "target": "label", "weight": "weight"}
    from psilearn.proofs.write import prove

    prove(PsiClassifier(C=2.0, solver="mip"), X, y, tmp_path / "fit.proof", weights, columns=columns)
    write_csv(tmp_path / "data.csv", X, y, weights)
    write_csv(tmp_path / "other.csv", X + 1e-9, y, weights)
    for data, status in (("data.csv", 0), ("other.csv", 1), ("absent.csv", 2)):
        command = [sys.executable, "-I", "-S", str(CHECKER), str(tmp_path / "fit.proof"), str(tmp_path / data)]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        assert run.returncode == status, run.stdout + run.stderr
        assert "Traceback" not in run.stderr


def test_what_cannot_be_proved_is_refused(tmp_path):
    X, y, _ = two_classes()
    with pytest.raises(ProofError, match="folded"):
        psilearn.prove(SVMClassifier(penalty="scad"), X, y, tmp_path / "a")
    with pytest.raises(ProofError, match="restrict"):
        psilearn.prove(PsiClassifier(restrict="svm", solver="mip"), X, y, tmp_path / "a")
    with pytest.raises(ProofError, match="two classes"):
        psilearn.prove(psilearn.TruncatedHingeClassifier(), X, np.arange(24) % 3, tmp_path / "a")
    assert not (tmp_path / "a").exists()


def test_a_stopped_proof_still_proves_something(tmp_path):
    """With no time at all the root is the only case; its bound is claimed and accepted."""
    X, y, weights = two_classes(40, 3)
    estimator = PsiClassifier(C=5.0, solver="mip")
    psilearn.prove(estimator, X, y, tmp_path / "full.proof", weights)
    from psilearn.core.solving import Clock
    from psilearn.proofs.replay import tree_evidence
    from psilearn.proofs.statement import Statement, records_of
    from psilearn.proofs.table import rounded_down, table_of
    from psilearn.proofs.write import _write

    statement = Statement(estimator, table_of(X, y, weights, None), X, y, weights)
    bound, evidence = tree_evidence(statement, estimator.objective_ * 0.9999, Clock(0.0))
    assert bound < estimator.lower_bound_
    _write(tmp_path / "part.proof", records_of(statement, rounded_down(bound), evidence))
    assert psilearn.check(tmp_path / "part.proof", X, y, weights).ok
