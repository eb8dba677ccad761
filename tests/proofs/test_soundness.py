"""No rule of the checker proves too much: asked for more than the optimum, the evidence stops at the optimum."""

from fractions import Fraction

import numpy as np
import pytest

import psilearn
from psilearn import HardMargin, Hinge, MarginClassifier, Psi, RejectHinge, TruncatedHinge, TruncatedReject
from psilearn.core.solving import Clock
from psilearn.proofs.replay import tree_evidence
from psilearn.proofs.statement import Statement, records_of
from psilearn.proofs.table import rounded_up, table_of
from psilearn.proofs.write import _write

LOSSES = [Psi(0.5), Psi(2.0), TruncatedHinge(-0.5), TruncatedReject(0.2, -1.0), HardMargin()]


def random_fit(rng, loss, **parameters):
    """A small random problem with ties, weights and wrong labels, solved; returns (estimator, X, y, weights)."""
    n, d = int(rng.integers(8, 14)), int(rng.integers(1, 4))
    X = rng.normal(size=(n, d))
    X = np.round(X) if rng.random() < 0.3 else X
    y = (X[:, 0] + 0.8 * rng.normal(size=n) > 0).astype(int)
    y[:2] = 0, 1
    weights = rng.uniform(0.3, 2.0, n)
    estimator = MarginClassifier(loss, C=float(10.0 ** rng.uniform(-0.5, 1)), **parameters)
    return estimator.fit(X, y, weights), X, y, weights


@pytest.mark.parametrize("parameters", [{}, {"penalty": "l1"}, {"kernel": "rbf"}], ids=str)
@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_a_tree_asked_for_too_much_proves_at_most_the_optimum(loss, parameters, tmp_path):
    rng = np.random.default_rng(5)
    narrowed = 0
    for _ in range(6):
        estimator, X, y, weights = random_fit(rng, loss, solver="mip", **parameters)
        statement = Statement(estimator, table_of(X, y, weights, None), X, y, weights)
        reached = statement.exact.value(*statement.point)
        target = 1.05 * float(reached)
        bound, evidence = tree_evidence(statement, target, Clock(float("inf")))
        assert 0.99 * reached < bound <= reached
        narrowed += sum("tighten" in line for line in evidence)
        statement.claim["objective"] = rounded_up(reached)
        _write(tmp_path / "a", records_of(statement, float(reached * (1 - Fraction(1, 2**45))), evidence))
        if bound < reached * (1 - Fraction(1, 2**44)):
            assert not psilearn.check(tmp_path / "a", X, y, weights).ok
    assert narrowed > 0 or parameters == {"penalty": "l1"}


@pytest.mark.parametrize("parameters", [{}, {"penalty": "l1"}, {"penalty": "elastic-net"}, {"kernel": "rbf"}], ids=str)
@pytest.mark.parametrize("classes", [2, 3, 4])
def test_random_multipliers_prove_less_than_the_optimum(classes, parameters):
    """Whatever multipliers come in, what is repaired and evaluated exactly is a lower bound."""
    from psilearn.proofs.repair import best_leaf

    rng = np.random.default_rng(classes)
    for loss in (Hinge(), RejectHinge(0.2)):
        for _ in range(10):
            n = int(rng.integers(8, 20))
            X, y = rng.normal(size=(n, 2)), np.arange(n) % classes
            estimator = MarginClassifier(loss, C=float(10.0 ** rng.uniform(-1, 2)), **parameters).fit(X, y)
            statement = Statement(estimator, table_of(X, y, None, None), X, y, None)
            exact, reached = statement.exact, statement.exact.value(*statement.point)
            regions = [exact.region(i, None, None, 0) for i in range(exact.n)]
            for size in (0.0, 0.1, 1.0, 10.0):
                shape = exact.n if classes == 2 else (exact.n, classes)
                found = best_leaf(exact, size * estimator.C * rng.normal(size=shape), regions)
                assert found is not None
                assert found[0] <= reached
            multipliers = statement.carried(estimator.certificate_.evidence)
            values = multipliers[:, 0] * statement.problem.signs if classes == 2 else -multipliers
            found = best_leaf(exact, values, regions)
            assert found is not None
            assert found[0] >= reached * (1 - Fraction(2, 10**4))
