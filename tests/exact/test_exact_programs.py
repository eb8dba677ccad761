"""The exact solver against the published mixed-integer formulation in SCIP and HiGHS, restrictions and label proofs."""

import sys

import numpy as np
import pytest

from psilearn.core.extras import MissingExtraError
from psilearn.core.losses import HardMargin, Psi, TruncatedHinge
from psilearn.core.penalties import Penalty
from psilearn.core.problem import Problem
from psilearn.core.result import Claim, Status
from psilearn.core.solving import Options
from psilearn.core.spaces import LinearSpace
from psilearn.exact.label_prices import price_labels
from psilearn.exact.two_class import portfolio
from psilearn.exact.two_class import solver as mip

pytest.importorskip("pyscipopt")


def make_problem(seed, n, d, loss, C, norm, flips=2):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, d))
    y = (X[:, 0] > 0).astype(int)
    y[:flips] = 1 - y[:flips]
    penalty = Penalty(l2=1.0) if norm == 2 else Penalty(l1=1.0)
    return Problem(LinearSpace(X), y, 2, loss, penalty, C, np.ones(n))


@pytest.mark.parametrize("formulation", ["paper", "tight"])
@pytest.mark.parametrize(("engine", "norm"), [("scip", 2), ("scip", 1), ("highs", 1)])
@pytest.mark.parametrize("loss", [Psi(0.5), Psi(2.0), TruncatedHinge(-0.5)], ids=str)
def test_equals_the_engines(loss, engine, norm, formulation):
    for seed, d in ((0, 2), (1, 5), (2, 10)):
        problem = make_problem(seed, 10, d, loss, 3.0, norm)
        ours = mip.solve(problem, Options(gap_tol=1e-8))
        settings = mip.Settings(engine=engine, formulation=formulation)
        theirs = mip.solve(problem, Options(gap_tol=1e-6, settings=(settings,)))
        assert ours.objective == pytest.approx(theirs.objective, rel=1e-5)
        assert ours.lower_bound <= theirs.objective * (1 + 1e-6)
        assert theirs.certificate.engine == engine


def test_equals_gurobi_where_it_is_installed():
    pytest.importorskip("gurobipy")
    for norm in (2, 1):
        problem = make_problem(0, 12, 3, Psi(0.5), 3.0, norm)
        ours = mip.solve(problem, Options(gap_tol=1e-8))
        theirs = mip.solve(problem, Options(gap_tol=1e-6, settings=(mip.Settings(engine="gurobi"),)))
        assert ours.objective == pytest.approx(theirs.objective, rel=1e-5)
        assert theirs.certificate.engine == "gurobi"


def test_a_missing_gurobi_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "gurobipy", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'psilearn\[gurobi\]'"):
        mip.solve(make_problem(0, 10, 2, Psi(1.0), 1.0, 2), Options(settings=(mip.Settings(engine="gurobi"),)))


def test_tight_formulation_takes_the_hard_margin():
    problem = make_problem(3, 14, 3, HardMargin(), 2.0, 2)
    ours = mip.solve(problem, Options(gap_tol=1e-8))
    theirs = mip.solve(problem, Options(gap_tol=1e-6, settings=(mip.Settings(engine="scip"),)))
    assert ours.objective == pytest.approx(theirs.objective, rel=1e-5)
    with pytest.raises(ValueError, match="one hinge"):
        mip.solve(problem, Options(settings=(mip.Settings(engine="scip", formulation="paper"),)))


def test_highs_refuses_a_quadratic():
    with pytest.raises(ValueError, match="scip"):
        mip.solve(make_problem(0, 10, 2, Psi(1.0), 1.0, 2), Options(settings=(mip.Settings(engine="highs"),)))


@pytest.mark.parametrize("norm", [1, 2])
def test_restriction_is_an_upper_bound_and_equals_the_paper(norm):
    for seed in range(3):
        problem = make_problem(seed, 20, 2, Psi(0.5), 5.0, norm)
        full = mip.solve(problem, Options(gap_tol=1e-8))
        restricted = mip.solve(problem, Options(gap_tol=1e-8, settings=(mip.Settings(restrict="svm"),)))
        assert restricted.objective >= full.objective * (1 - 1e-7)
        assert restricted.certificate.claim is Claim.RESTRICTED
        assert restricted.lower_bound == -np.inf
        assert restricted.status is Status.OPTIMAL
        assert restricted.extra["restricted_bound"] == pytest.approx(restricted.objective, rel=1e-6)
        settings = mip.Settings(restrict="svm", engine="scip", formulation="paper")
        paper = mip.solve(problem, Options(gap_tol=1e-6, settings=(settings,)))
        assert restricted.objective == pytest.approx(paper.objective, rel=1e-5)
        further = mip.Settings(restrict="svm", restrict_further=0.1, restrict_threshold=1.1)
        assert mip.solve(problem, Options(settings=(further,))).objective >= full.objective * (1 - 1e-7)


def test_unknown_restriction_is_refused():
    with pytest.raises(ValueError, match="restrict"):
        mip.solve(make_problem(0, 10, 2, Psi(1.0), 1.0, 2), Options(settings=(mip.Settings(restrict="ols"),)))


@pytest.mark.parametrize("norm", [1, 2])
def test_label_certificates_name_the_flipped_samples(norm):
    problem = make_problem(4, 40, 2, Psi(1.0), 10.0, norm)
    result = mip.solve(problem, Options(gap_tol=1e-8))
    certificates = price_labels(problem, result, Options(gap_tol=1e-8))
    suspects = np.flatnonzero(problem.loss.is_capped(problem.margins(result.coef, result.intercept)))
    assert sorted(c.index for c in certificates) == sorted(suspects)
    assert {0, 1} <= {c.index for c in certificates}
    for certificate in certificates:
        assert certificate.proved
        assert certificate.objective >= result.objective * (1 - 1e-7)
        assert certificate.bound == pytest.approx(certificate.objective, rel=1e-6)
        assert f"{certificate.index} is wrong" in str(certificate)
    assert [c.excess for c in certificates] == sorted((c.excess for c in certificates), reverse=True)


def test_believing_a_label_equals_a_huge_weight():
    """A sample that may not be left out is one that would cost too much to leave out."""
    problem = make_problem(5, 30, 2, HardMargin(), 10.0, 2)
    result = mip.solve(problem, Options(gap_tol=1e-8))
    for certificate in price_labels(problem, result, Options(gap_tol=1e-8)):
        weights = problem.weights.copy()
        weights[certificate.index] = 1e6
        heavy = Problem(problem.space, problem.y, 2, problem.loss, problem.penalty, problem.C, weights)
        assert mip.solve(heavy, Options(gap_tol=1e-9)).objective == pytest.approx(certificate.objective, rel=1e-6)


def test_a_bound_above_an_attained_value_is_withdrawn():
    assert portfolio.not_above(1.1, 1.0, Status.OPTIMAL) == (0.0, Status.STALLED)
    assert portfolio.not_above(1.0 + 1e-12, 1.0, Status.OPTIMAL) == (1.0, Status.OPTIMAL)
    assert portfolio.not_above(0.9, 1.0, Status.TIME_LIMIT) == (0.9, Status.TIME_LIMIT)
