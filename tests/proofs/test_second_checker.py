"""Two checkers, one document: ours and one written from format.md accept and reject the same files."""

import random

import pytest
from proofs.test_attacks import PROOFS, folder, honest, mutate  # noqa: F401  the fixture

import psilearn
from psilearn import PsiClassifier, SVMClassifier
from psilearn.proofs import write
from psilearn.proofs.statement import as_lists

from oracles import second_checker

#: Mutations of each proof.
MUTATIONS = 40


@pytest.mark.parametrize("name", PROOFS)
def test_both_checkers_agree(name, folder):  # noqa: F811
    truth, X, y = honest(name, folder)
    data = as_lists(X, y)
    assert second_checker.accepts(folder / f"{name}.proof", *data)
    rng, path = random.Random(f"second {name}"), folder / "second.proof"
    accepted = 0
    for _ in range(MUTATIONS):
        write.write(path, mutate(truth, rng))
        ours = psilearn.check(path, X, y)
        accepted += ours.ok
        assert second_checker.accepts(path, *data) is ours.ok, ours.message
    assert 0 < accepted < MUTATIONS


def test_both_reject_other_data(folder):  # noqa: F811
    _, X, y = honest("psi", folder)
    X = X.copy()
    X[2, 1] += 1e-9
    assert not second_checker.accepts(folder / "psi.proof", *as_lists(X, y))


def test_both_accept_prices_and_other_kernels(folder):  # noqa: F811
    _, X, y = honest("psi", folder)
    path = folder / "other.proof"
    y = y.copy()
    y[:2] = 1 - y[:2]
    row = int(psilearn.certify_labels(PsiClassifier(solver="mip", C=2.0), X, y)["index"][0])
    cases = [
        (PsiClassifier(solver="mip", C=2.0), X, row),
        (SVMClassifier(kernel="poly", degree=2, coef0=1.0), X, None),
        (SVMClassifier(kernel="precomputed"), X @ X.T, None),
    ]
    for estimator, data, believed in cases:
        psilearn.prove(estimator, data, y, path, believed=believed)
        assert psilearn.check(path, data, y).ok
        assert second_checker.accepts(path, *as_lists(data, y))
