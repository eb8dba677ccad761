"""The convex relaxation of a truncated problem: its bound never exceeds the optimum with any incumbent."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from psilearn import PsiClassifier, TruncatedHingeClassifier, solve
from psilearn.core import relaxation as module
from psilearn.core.losses import HardMargin, Psi, TruncatedHinge, TruncatedReject
from psilearn.core.penalties import Penalty
from psilearn.core.problem import Problem
from psilearn.core.relaxation import relaxation, relaxed_bound, rough_bound
from psilearn.core.result import Claim
from psilearn.core.solving import Options
from psilearn.core.spaces import KernelSpace, LinearSpace

from oracles.exact_reference import optimum_l1, optimum_l2
from oracles.one_feature import exact_optimum
from oracles.samples import KINDS, two_class_problem

LOSSES = [Psi(0.5), Psi(2.0), TruncatedHinge(0.0), TruncatedHinge(-0.5)]


def bounds(problem, upper, rng):
    """Bounds that good, rough and random multipliers of the relaxation prove below a value that is attained."""
    found = relaxation(problem, upper)
    if found is None:
        return []
    relaxed, rows, _ = found
    good = solve(relaxed, options=Options(tol=1e-6)).multipliers
    known = [rough_bound(relaxed, None)[1], rough_bound(relaxed, good)[1], good]
    known.append(rng.normal(size=(rows.size, problem.n_functions)) * float(relaxed.costs.max()))
    out = []
    for R in known:
        if R is not None:
            whole = np.zeros((problem.n, problem.n_functions))
            whole[rows] = R
            out.append(relaxed_bound(problem, upper, whole))
    return out


@pytest.mark.parametrize("norm", [2, 1])
@pytest.mark.parametrize("kind", KINDS)
def test_no_bound_exceeds_the_enumerated_optimum(kind, norm):
    rng = np.random.default_rng([norm, len(kind)])
    useful = 0
    for case in range(24):
        loss = LOSSES[case % 4]
        problem = two_class_problem(rng, 5, int(rng.integers(1, 3)), loss, kind, norm, log_C=(-2.0, 2.0))
        optimum_of = optimum_l2 if norm == 2 else optimum_l1
        optimum = optimum_of(problem.space.X, problem.signs, problem.costs, loss) if kind != "scale" else np.inf
        W = rng.normal(size=(1, problem.space.dim)) / max(np.abs(problem.space.X).max(), 1e-3)
        attained = [problem.best_constant()[0], problem.value(W, rng.normal(size=1))]
        optimum = min(optimum, *attained, solve(problem, "mip", Options(gap_tol=1e-7)).objective)
        for upper in [*attained, optimum]:
            for bound in bounds(problem, upper, rng):
                assert bound <= optimum * (1.0 + 1e-8)
                useful += bound > 0.2 * optimum
    assert useful >= 10


def test_no_bound_exceeds_the_optimum_in_exact_arithmetic():
    """Thousands of bounds with one feature, weights and scales over many orders of magnitude; the truth is rational."""
    rng = np.random.default_rng(3)
    count = useful = 0
    for case in range(250):
        n = int(rng.integers(3, 8))
        X = rng.normal(size=(n, 1)) * rng.choice([1e-3, 1.0, 1e3]) + rng.choice([0.0, 1.0, 1e4])
        y = (X[:, 0] > np.median(X)) ^ (rng.random(n) < 0.2)
        loss = [Psi(2.0), TruncatedHinge(0.0), TruncatedHinge(-0.5), TruncatedReject(0.2, 0.0)][case % 4]
        penalty = Penalty(l1=1.0) if case % 5 == 0 else Penalty(l2=1.0)
        weights = 10.0 ** rng.uniform(-rng.choice([0, 3, 6]), 0, n)
        C = 10.0 ** rng.uniform(-3, 5)
        problem = Problem(LinearSpace(X), y.astype(np.intp), 2, loss, penalty, C, weights)
        optimum = exact_optimum(problem)
        constant = problem.best_constant()[0]
        for upper in (constant, float(optimum) * (1.0 + 1e-12), 0.5 * (constant + float(optimum))):
            for bound in bounds(problem, upper, rng):
                count += 1
                assert Fraction(bound) <= optimum * (1 + Fraction(1, 2**50))
                useful += bound > 0.1 * upper
    assert count > 1000
    assert useful > 200


@pytest.mark.parametrize("loss", [Psi(1.0), HardMargin()], ids=repr)
def test_losses_that_jump_are_bounded_below_their_optimum(loss):
    rng = np.random.default_rng(8)
    useful = 0
    for kind in KINDS:
        problem = two_class_problem(rng, 12, 2, loss, kind, log_C=(-1.0, 1.0))
        optimum = solve(problem, "mip", Options(gap_tol=1e-7, max_iter=50_000)).objective
        for bound in bounds(problem, optimum, rng):
            assert bound <= optimum * (1.0 + 1e-7)
            useful += bound > 0.1 * optimum
    assert useful >= 3


@pytest.mark.parametrize("k", [3, 4])
def test_bounds_of_k_classes_stay_below_what_an_exact_search_finds(k):
    rng = np.random.default_rng(k)
    useful = 0
    for case in range(6):
        y = np.repeat(np.arange(k), 4)
        X = 4.0 * y[:, None] + rng.normal(size=(4 * k, 1))
        y[0] = case % 2  # one wrong label in half of the cases
        problem = Problem(
            LinearSpace(X), y, k, LOSSES[1 + case % 3], Penalty(l2=1.0), 10.0 ** rng.uniform(-1, 1), np.ones(4 * k)
        )
        optimum = solve(problem, options=Options(gap_tol=1e-3, max_iter=300, time_limit=5.0)).objective
        for bound in bounds(problem, optimum, rng):
            assert bound <= optimum * (1.0 + 1e-6)
            useful += bound > 0.1 * optimum
    assert useful >= 2


def test_the_lines_lie_below_the_loss_of_every_better_solution():
    """Points around a fit, each taken as the value that is attained: the relaxation never lies above."""
    rng = np.random.default_rng(5)
    count = 0
    for kind in KINDS:
        for loss in [*LOSSES, Psi(1.0), HardMargin(), TruncatedReject(0.2, -1.0)]:
            problem = two_class_problem(rng, 30, 3, loss, kind, log_C=(-2.0, 2.0))
            fit, constant = solve(problem, options=Options(max_iter=50)), problem.best_constant()[0]
            for _ in range(50):
                W = fit.coef * rng.uniform(0.0, 2.0) + np.linalg.norm(fit.coef) * rng.normal(size=(1, 3)) * rng.random()
                b = fit.intercept + rng.normal(size=1) * rng.choice([0.0, 0.1, 1.0])
                value = problem.value(W, b)
                found = relaxation(problem, value * (1.0 + 1e-8)) if value < constant * (1.0 - 1e-8) else None
                if found is not None:
                    count += 1
                    assert found[0].value(W, b) <= value * (1.0 + 1e-12)
    assert count > 300


def test_kernels_have_the_bound_of_the_same_samples_after_as_many_steps(monkeypatch):
    rng = np.random.default_rng(0)
    dense = two_class_problem(rng, 40, 4, TruncatedHinge(0.0), C=0.1)
    K = dense.space.X @ dense.space.X.T
    kernel = replace(dense, space=KernelSpace(K, known_psd=True))
    quick = solve(kernel).lower_bound
    monkeypatch.setattr(module, "_KERNEL_STEPS", module._STEPS)
    fits = [solve(problem) for problem in (dense, kernel)]
    assert fits[0].lower_bound > 0.05 * fits[0].objective
    assert 0.5 * fits[1].lower_bound < quick <= fits[1].lower_bound
    assert fits[1].lower_bound == pytest.approx(fits[0].lower_bound, rel=1e-3)


def test_every_robust_fit_states_a_bound_and_verifies_it():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 3))
    for k, C in ((2, 0.1), (3, 1.0)):
        y = np.argmax(X[:, :k] + 0.3 * rng.normal(size=(60, k)), axis=1)
        for model in (
            TruncatedHingeClassifier(C=C),
            TruncatedHingeClassifier(C=C, penalty="l1"),
            TruncatedHingeClassifier(C=C, penalty="elastic-net"),
            PsiClassifier(a=2.0, C=C, kernel="rbf"),
            PsiClassifier(a=2.0, C=C, solver="dca"),
        ):
            fit = model.fit(X, y)
            assert fit.certificate_.claim is Claim.CRITICAL
            assert 0.0 < fit.lower_bound_ <= fit.objective_
            check = fit.verify(X, y)
            assert check.ok
            assert check.bound == pytest.approx(fit.lower_bound_, rel=1e-9)
            fit.certificate_ = replace(fit.certificate_, bound=0.5 * (fit.lower_bound_ + fit.objective_))
            forged = fit.verify(X, y)
            assert not forged.ok
            assert "only" in forged.message


def test_a_bound_without_its_multipliers_is_not_verified():
    X = np.random.default_rng(2).normal(size=(40, 2))
    fit = TruncatedHingeClassifier(C=0.1).fit(X, X[:, 0] > 0.3 * X[:, 1])
    fit.certificate_ = replace(fit.certificate_, relaxed=None)
    assert not fit.verify(X, X[:, 0] > 0.3 * X[:, 1]).ok


def test_nothing_is_known_of_tilts_and_folded_penalties():
    problem = two_class_problem(0, 20, 2, TruncatedHinge(0.0))
    assert relaxation(replace(problem, tilt=np.zeros((20, 1))), 1.0) is None
    assert relaxation(replace(problem, penalty=Penalty(l1=1.0, scad=3.7)), 1.0) is None
    assert relaxation(replace(problem, loss=problem.loss.convex_part), 1.0) is None
