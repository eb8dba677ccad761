"""`verify` recomputes every claim: whatever is tampered with is noticed unless what is stated is still proved."""

import copy
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from psilearn import (
    HardMargin,
    MarginClassifier,
    PsiClassifier,
    RejectClassifier,
    SVMClassifier,
    TruncatedHingeClassifier,
)
from psilearn.core.result import Claim, Status
from psilearn.core.solving import Options
from psilearn.solvers import solve

from oracles.samples import noisy_sample

#: Random mutations of each fit below.
MUTATIONS = 60

CONVEX = [
    SVMClassifier(C=2.0),
    SVMClassifier(C=2.0, penalty="l1"),
    SVMClassifier(C=2.0, penalty="adaptive-l1"),
    SVMClassifier(kernel="rbf", gamma=0.7),
    RejectClassifier(penalty="elastic-net", class_weight="balanced"),
]
CRITICAL = [
    TruncatedHingeClassifier(solver="dca", C=2.0),
    TruncatedHingeClassifier(solver="dca", kernel="rbf", gamma=0.7),
    PsiClassifier(a=2.0, solver="dca", penalty="l1"),
    SVMClassifier(penalty="scad", C=2.0),
]
CASES = [(model, k) for model in CONVEX + CRITICAL for k in (2, 3)]
GLOBAL = [(TruncatedHingeClassifier(s=0.0, solver="mip"), 2), (PsiClassifier(a=1.0, solver="mip"), 2)]


def sample(k):
    return noisy_sample(np.random.default_rng(5), 24, 2, k)


def fitted(model, k):
    return clone(model).fit(*sample(k))


@pytest.mark.parametrize(("model", "k"), CASES, ids=str)
def test_an_honest_fit_verifies(model, k):
    X, y = sample(k)
    fit = fitted(model, k)
    check = fit.verify(X, y)
    assert check.ok, check.message
    assert check.objective == pytest.approx(fit.objective_, rel=1e-9)
    assert check.gap <= fit.gap_ * (1 + 1e-6) + 1e-9 or math.isinf(fit.gap_)


@pytest.mark.parametrize(("model", "k"), CASES, ids=str)
def test_other_data_are_noticed(model, k):
    X, y = sample(k)
    fit = fitted(model, k)
    changed, relabelled = X.copy(), y.copy()
    changed[3, 0] += 0.5
    relabelled[:4] = (relabelled[:4] + 1) % k
    assert not fit.verify(changed, y).ok
    assert not fit.verify(X, relabelled).ok
    assert not fit.verify(X, y, np.full(len(y), 3.0)).ok
    assert not fit.verify(X[:-3], y[:-3]).ok
    assert not fit.verify(X, y + 7).ok


@pytest.mark.parametrize(("model", "k"), GLOBAL, ids=str)
def test_a_global_bound_is_proved_again(model, k):
    X, y = sample(k)
    fit = fitted(model, k)
    assert fit.status_ is Status.OPTIMAL
    check = fit.verify(X, y)
    assert check.ok, check.message
    assert check.bound == pytest.approx(fit.lower_bound_, rel=1.1e-5)
    assert check.bound <= fit.objective_
    above = copy.copy(fit)
    above.certificate_ = replace(fit.certificate_, objective=fit.objective_, bound=fit.objective_ * 1.00003)
    assert not above.verify(X, y).ok
    without = copy.copy(fit)  # the record is a hint, nothing rests on it
    without.certificate_ = replace(fit.certificate_, record=None)
    assert without.verify(X, y).ok


def test_a_global_bound_without_a_proof_is_named():
    X, y = sample(3)
    fit = fitted(TruncatedHingeClassifier(s=0.0, penalty="l1", solver="patterns"), 3)
    check = fit.verify(X, y)
    assert not check.ok
    assert "not recomputed" in check.message
    assert check.bound <= 0


class Replay:
    """A proof that proves a given number."""

    shortfall = 0.0

    def __init__(self, value):
        self.value = value

    def bound(self, problem):
        return self.value


def test_a_proof_is_replayed():
    X, y = sample(2)
    fit = fitted(TruncatedHingeClassifier(s=0.0, solver="mip"), 2)
    problem = fit.problem(X, y)
    for share, is_proved in ((1.0, True), (0.9, False)):
        certificate = replace(fit.certificate_, proof=Replay(share * fit.lower_bound_))
        assert certificate.verify(problem).ok is is_proved


def test_a_stored_proof_is_not_believed():
    X, y = sample(3)
    fit = fitted(TruncatedHingeClassifier(s=0.0, penalty="l1", solver="patterns"), 3)
    fit.certificate_ = replace(fit.certificate_, proof=Replay(fit.lower_bound_))
    assert not fit.verify(X, y).ok


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_the_certificate_is_about_the_coefficients_of_the_model(kernel):
    X, y = sample(2)
    fit = SVMClassifier(kernel=kernel).fit(X, y)
    assert fit.verify(X, y).ok
    W, b = fit.certificate_.point
    for point in ((W, b + 1e-9), (np.nextafter(W, np.inf), b), (np.full_like(W, np.nan), b), (W[:, :-1], b)):
        other = copy.copy(fit)
        other.certificate_ = replace(fit.certificate_, point=point)
        assert not other.verify(X, y).ok


@pytest.mark.parametrize("solver", ["auto", "mip", "dca"])
def test_claims_are_plain_numbers(solver):
    robust = MarginClassifier(HardMargin(), solver=solver) if solver != "dca" else SVMClassifier(solver=solver)
    for model in (robust, TruncatedHingeClassifier(s=0.0, penalty="l1", solver=solver)):
        fit = fitted(model, 2)
        assert {type(v) for v in (fit.objective_, fit.lower_bound_, fit.gap_, fit.certificate_.residual)} == {float}


def test_problem_leaves_the_estimator_alone():
    X, y = sample(2)
    model = SVMClassifier(kernel="rbf")
    before = dict(vars(model))
    problem = model.problem(X, y)
    assert vars(model) == before
    assert (problem.n, problem.n_classes, problem.C) == (24, 2, 1.0)
    with pytest.raises(NotFittedError):
        model.verify(X, y)


def test_weights_and_order_do_not_matter():
    X, y = sample(2)
    rng = np.random.default_rng(0)
    weight, order = rng.integers(0, 3, len(y)).astype(float), rng.permutation(len(y))
    fit = SVMClassifier().fit(X, y, weight)
    assert fit.verify(X, y, weight).ok
    assert fit.verify(X[order], y[order], weight[order]).ok
    assert fit.verify(np.repeat(X, weight.astype(int), 0), np.repeat(y, weight.astype(int))).ok


# -- tampering --------------------------------------------------------------------------------------------------------


def tampered(fit, problem, rng):
    """Return a copy of the fit with one thing changed: a number of the certificate, the multipliers or the function."""
    fit = copy.deepcopy(fit)
    certificate = fit.certificate_
    number = rng.choice([math.nan, math.inf, -math.inf, 0.0, -1.0, 1e-300, 1e300])
    factor = rng.choice([0.5, 0.9, 0.999, 0.999999, 1.000001, 1.001, 1.1, 2.0])
    change = rng.choice(["objective", "bound", "bound up", "residual", "evidence", "one", "function", "point", "claim"])
    if change in ("objective", "bound", "residual"):
        value = number if rng.random() < 0.4 else getattr(certificate, change) * factor
        fit.certificate_ = replace(certificate, **{change: float(value)})
    elif change == "bound up":
        fit.certificate_ = replace(certificate, bound=certificate.objective)
    elif change == "evidence" and certificate.evidence is not None:
        fit.certificate_ = replace(certificate, evidence=certificate.evidence * factor)
    elif change == "one" and certificate.evidence is not None:
        evidence = certificate.evidence.copy()
        evidence[rng.integers(len(evidence))] = rng.choice([number, rng.normal()])
        fit.certificate_ = replace(certificate, evidence=evidence)
    elif change == "claim":
        fit.certificate_ = replace(certificate, claim=rng.choice(list(Claim)), objective=certificate.objective * factor)
    else:  # another function, with its own objective if "point"
        name = "coef_" if hasattr(fit, "coef_") else "dual_coef_"
        setattr(fit, name, getattr(fit, name) * factor)
        fit.intercept_ = fit.intercept_ * factor
        if change == "point":
            value = problem.value(coefficients(fit, problem), fit.intercept_)
            fit.certificate_ = replace(certificate, objective=value)
    return fit, change


def coefficients(fit, problem):
    if hasattr(fit, "coef_"):
        return fit.coef_
    X, y = sample(problem.n_classes)
    W = np.zeros((problem.n_functions, problem.n))
    W[:, fit._state(X, y, None)[2].position[fit.dual_support_]] = fit.dual_coef_
    return W


def is_true(fit, problem, optimum):
    """Whether what the tampered fit states is true, judged without its certificate's evidence."""
    stated, W = fit.certificate_, coefficients(fit, problem)
    value = problem.value(W, fit.intercept_)
    if not abs(stated.objective - value) <= 2e-9 * value or not stated.bound <= optimum * (1 + 2e-9):
        return False
    if stated.claim is Claim.CRITICAL and stated.residual < math.inf:
        least = solve(problem.majorant(W, fit.intercept_), "auto", Options(tol=1e-9)).objective
        return (value - least) / value <= stated.residual + 1e-8
    return stated.claim is not Claim.CONVEX or problem.is_convex


def exact_value(problem, W, b):
    """The objective of two classes in rational arithmetic, nothing rounded; margins within 1e-6 of a jump are there."""
    loss, total = problem.loss, Fraction(problem.penalty.l2) / 2 * sum(Fraction(w) ** 2 for w in W[0].tolist())
    t, tolerance = Fraction(loss.t), Fraction(0 if loss.is_continuous else 1e-6)
    for x, y, weight in zip(problem.space.X.tolist(), problem.y.tolist(), problem.weights.tolist()):
        u = (2 * y - 1) * (sum(Fraction(a) * Fraction(w) for a, w in zip(x, W[0].tolist())) + Fraction(float(b[0])))
        paid = sum(Fraction(c) * max(Fraction(k) - max(u, t), 0) for c, k in loss.hinges)
        total += Fraction(problem.C) * Fraction(weight) * (paid if u >= t - tolerance else Fraction(loss.cap))
    return total


@pytest.mark.parametrize(("model", "k"), CASES + GLOBAL, ids=str)
def test_tampering_is_noticed(model, k):
    X, y = sample(k)
    fit, rng = fitted(model, k), np.random.default_rng(11)
    problem = fit.problem(X, y)
    optimum = solve(problem, "auto", Options(tol=1e-10)).objective if problem.is_convex else fit.lower_bound_
    is_global = (model, k) in GLOBAL
    attained = exact_value(problem, fit.coef_, fit.intercept_) if is_global else math.inf
    noticed = 0
    for _ in range(MUTATIONS):
        forged, change = tampered(fit, problem, rng)
        check = forged.verify(X, y)
        noticed += not check.ok
        if is_global:  # what is proved lies below a value that is attained; what is stated may exceed it by rounding
            assert not check.ok or check.bound <= attained
            optimum = float(attained) * (1 + 1.1e-5)
        assert not check.ok or is_true(forged, problem, optimum), (change, forged.certificate_, check)
    assert noticed >= MUTATIONS // 2


@pytest.mark.parametrize(("model", "k"), [case for case in CASES if case[0] in CRITICAL], ids=str)
def test_halved_coefficients_with_a_matching_objective_are_noticed(model, k):
    X, y = sample(k)
    fit = fitted(model, k)
    problem = fit.problem(X, y)
    name = "coef_" if hasattr(fit, "coef_") else "dual_coef_"
    setattr(fit, name, 0.5 * getattr(fit, name))
    value = problem.value(coefficients(fit, problem), fit.intercept_)
    fit.certificate_ = replace(fit.certificate_, objective=value)
    assert not fit.verify(X, y).ok


def test_a_hinge_of_a_user_verifies():
    X, y = sample(2)
    assert MarginClassifier().fit(X, y).verify(X, y).ok
