"""One object makes the claim: objective, bound, gap, status and certificate cannot disagree."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from psilearn import PsiClassifier, SVMClassifier, TruncatedHingeClassifier
from psilearn.core.losses import Hinge
from psilearn.core.penalties import Penalty
from psilearn.core.problem import Problem
from psilearn.core.result import Certificate, Claim, InconsistentBoundError, Result, Status
from psilearn.core.solving import Options
from psilearn.core.spaces import KernelSpace
from psilearn.solvers import run, solve, solve_nonconvex
from psilearn.solvers.run import _better, _consistent


def noisy_sample(n, d=5, seed=0, share=0.15):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = (X[:, 0] + 0.5 * X[:, 1] + 0.7 * rng.normal(size=n) > 0).astype(int)
    flips = rng.random(n) < share
    return X, np.where(flips, 1 - y, y)


def assert_one_claim(model):
    certificate = model.certificate_
    assert model.objective_ == certificate.objective
    assert model.lower_bound_ == certificate.bound
    assert model.gap_ == certificate.gap
    assert model.lower_bound_ <= model.objective_
    if model.status_ is Status.OPTIMAL and certificate.claim is not Claim.RESTRICTED:
        tolerance = model.tol if certificate.claim is Claim.CONVEX else model.gap_tol
        assert model.gap_ <= tolerance * (1 + 1e-6)


@pytest.fixture(scope="module")
def stopped():
    """A fit whose exact search was stopped by the time limit, far from a proof, and its warnings."""
    X, y = noisy_sample(150, d=12)
    model = TruncatedHingeClassifier(s=0.0, C=3.0, time_limit=0.5)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y)
    return model, caught


def test_a_stopped_proof_is_a_time_limit_with_a_warning(stopped):
    model, caught = stopped
    assert model.status_ is Status.TIME_LIMIT
    assert any(issubclass(w.category, ConvergenceWarning) and "time limit" in str(w.message) for w in caught)


def test_a_stopped_proof_states_one_bound(stopped):
    model, _ = stopped
    assert np.isfinite(model.lower_bound_)
    assert_one_claim(model)
    assert model.certificate_.claim is Claim.CRITICAL  # what is proved of the point, whatever stopped the search
    assert model.certificate_.residual < 1
    assert not model.certificate_.rechecked


@pytest.mark.parametrize(
    "model",
    [
        SVMClassifier(),
        SVMClassifier(kernel="rbf", gamma=0.5),
        TruncatedHingeClassifier(s=0.0),
        TruncatedHingeClassifier(s=0.0, solver="mip"),
        PsiClassifier(a=1.0),
        PsiClassifier(a=1.0, solver="mip", max_iter=2),
        PsiClassifier(a=1.0, restrict="svm"),
        TruncatedHingeClassifier(s=0.0, penalty="l1", max_iter=1),
    ],
    ids=str,
)
def test_no_two_claims_disagree(model):
    X, y = noisy_sample(24, d=2)
    assert_one_claim(model.fit(X, y))


def result_with(objective, bound, claim=Claim.GLOBAL):
    certificate = Certificate(claim, objective, bound)
    return Result(np.zeros((1, 2)), np.zeros(1), Status.TIME_LIMIT, certificate)


def test_a_result_reads_its_certificate():
    result = result_with(2.0, 1.0)
    assert (result.objective, result.lower_bound, result.gap) == (2.0, 1.0, 0.5)
    with pytest.raises(TypeError):
        replace(result, lower_bound=1.5)


@pytest.fixture(scope="module")
def problem():
    X, y = noisy_sample(24, d=2)
    return TruncatedHingeClassifier(s=0.0).problem(X, y)


def test_a_false_bound_is_an_error_and_is_not_clipped(problem):
    with pytest.raises(InconsistentBoundError, match="above the objective"):
        _better(problem, result_with(2.0, 1.9), result_with(1.5, 1.0))
    with pytest.raises(InconsistentBoundError):
        _consistent(problem, result_with(2.0, 2.1))
    assert _consistent(problem, result_with(2.0, 2.0 + 1e-9)).lower_bound == 2.0


def test_the_better_result_keeps_the_higher_bound(problem):
    best = _better(problem, result_with(2.0, 1.4), result_with(1.5, 1.0))
    assert (best.objective, best.lower_bound) == (1.5, 1.4)


def test_a_solver_with_a_false_bound_is_caught(problem, monkeypatch):
    false = result_with(1.0, 2.0)
    monkeypatch.setattr(run, "_solve", lambda *_: false)
    with pytest.raises(InconsistentBoundError):
        solve(problem, "mip", Options())


@pytest.mark.parametrize("steps", [1, 2])
@pytest.mark.parametrize("s", [0.0, -0.5])
def test_what_stopped_the_descent_states_the_residual_of_its_own_point(s, steps):
    """The point moves on with every step; the residual must speak of where it arrived."""
    for seed in range(6):
        X, y = noisy_sample(60, d=2, seed=seed, share=0.25)
        problem = TruncatedHingeClassifier(s=s, C=3.0).problem(X, y)
        result = solve(problem, "dca", Options(max_iter=steps, tol=1e-12))
        check = result.certificate.verify(problem)
        assert check.ok, check.message


def test_the_end_of_a_descent_verifies(problem):
    assert solve_nonconvex(problem, Options()).certificate.verify(problem).ok


def test_no_bound_of_an_indefinite_kernel_is_verified():
    """The objective is unbounded below along a negative eigenvalue, so whatever is stated is false."""
    K = np.diag([1.0, 1.0, 1.0, -0.5])
    problem = Problem(KernelSpace(K), np.array([0, 1, 0, 1]), 2, Hinge(), Penalty(l2=1.0), 1.0, np.ones(4))
    W, b = np.zeros((1, 4)), np.zeros(1)
    R = problem.spread(np.array([0.5, 0.5, 0.0, 0.0]), None)
    value = problem.value(W, b)
    certificate = Certificate(Claim.CONVEX, value, 0.5, evidence=R, point=(W, b))
    assert not certificate.verify(problem).ok
    lower = problem.value(np.array([[0.0, 0.0, 0.0, 100.0]]), b)
    assert lower < 0.5
