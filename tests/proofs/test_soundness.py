"""No rule of the checker proves too much: asked for more than the optimum, the evidence stops at the optimum."""

import math
from fractions import Fraction

import numpy as np
import pytest

import psilearn
from psilearn import HardMargin, Hinge, MarginClassifier, Psi, RejectHinge, TruncatedHinge, TruncatedReject
from psilearn.proofs import check as checker
from psilearn.proofs import write
from psilearn.proofs.convex import convex_leaf
from psilearn.proofs.statement import state
from psilearn.proofs.two_class.scaled import make_model
from psilearn.proofs.two_class.search import by_conflicts
from psilearn.proofs.two_class.tree import MARGIN_UNIT, Replay

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
        statement, (W, b) = state(estimator, X, y, weights), estimator.certificate_.point
        W = statement.collect(W.T).T if statement.problem.is_kernel else W
        model = make_model(statement)
        unit, point, reached = write._settled_point(statement, model, estimator.objective_, W, b)
        replay = Replay(model, 1.05 * float(reached))
        bound = replay.run(math.inf)
        assert 0.99 * reached < bound <= reached
        units = {"coef": unit, "multiplier": replay.unit, "margin": MARGIN_UNIT}
        evidence = list(replay.records())
        narrowed += sum("cuts" in line for line in evidence)
        asked = reached * (1 + Fraction(1, 2**45))
        write.write(tmp_path / "a", write._records(statement, 2 * reached, asked, units, point, evidence))
        assert not psilearn.check(tmp_path / "a", X, y, weights).ok
    assert narrowed > 0 or parameters == {"kernel": "rbf"}


@pytest.mark.parametrize("parameters", [{}, {"penalty": "l1"}, {"kernel": "rbf"}], ids=str)
@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_conflicts_prove_the_optimum_and_nothing_above(loss, parameters, tmp_path):
    rng = np.random.default_rng(6)
    for _ in range(4):
        estimator, X, y, weights = random_fit(rng, loss, solver="mip", **parameters)
        statement, (W, b) = state(estimator, X, y, weights), estimator.certificate_.point
        W = statement.collect(W.T).T if statement.problem.is_kernel else W
        model = make_model(statement)
        unit, point, reached = write._settled_point(statement, model, estimator.objective_, W, b)
        for share, is_true in ((0.999, True), (1.001, False), (1.2, False)):
            goal = share * float(reached)
            evidence = by_conflicts(statement, Replay(model, goal), math.inf)
            assert (evidence is not None) is is_true
            if evidence is None:
                continue
            units = {"coef": unit, "multiplier": evidence.unit, "margin": MARGIN_UNIT}
            records = list(evidence.records)
            write.write(tmp_path / "a", write._records(statement, reached, Fraction(goal), units, point, records))
            assert psilearn.check(tmp_path / "a", X, y, weights).ok
            asked = reached * (1 + Fraction(1, 2**45))
            write.write(tmp_path / "a", write._records(statement, 2 * reached, asked, units, point, records))
            assert not psilearn.check(tmp_path / "a", X, y, weights).ok


@pytest.mark.parametrize("parameters", [{}, {"penalty": "l1"}, {"penalty": "elastic-net"}, {"kernel": "rbf"}], ids=str)
@pytest.mark.parametrize("classes", [2, 3, 4])
def test_random_multipliers_prove_less_than_the_optimum(classes, parameters):
    """Whatever multipliers come in, what is repaired and evaluated exactly is a lower bound."""
    rng = np.random.default_rng(classes)
    for loss in (Hinge(), RejectHinge(0.2)):
        for _ in range(10):
            n = int(rng.integers(8, 20))
            X, y = rng.normal(size=(n, 2)), np.arange(n) % classes
            estimator = MarginClassifier(loss, C=float(10.0 ** rng.uniform(-1, 2)), **parameters).fit(X, y)
            statement, certificate = state(estimator, X, y), estimator.certificate_
            W, b = certificate.point
            unit, point = write.point_record(statement.collect(W.T).T if statement.problem.is_kernel else W, b)
            reached = statement.exact.objective(point, unit)
            scales = [*(s * rng.normal(size=certificate.evidence.shape) for s in (0.0, 0.1, 10.0)), 0.0]
            for k, noise in enumerate(scales):
                start = certificate.evidence if k == 3 else estimator.C * noise
                multiplier, leaf = convex_leaf(statement, start)
                proved = checker.Search(statement.exact, Fraction(0), multiplier, 0).dual_value(leaf)
                assert proved <= reached
                assert k < 3 or proved >= reached * (1 - Fraction(2, 10**4))
