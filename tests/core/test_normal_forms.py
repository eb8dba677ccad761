"""Losses, penalties, the objective and its dual: inequalities that must hold for every member of a list."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from psilearn.convex import program
from psilearn.core.losses import (
    JUMP_TOLERANCE,
    LOSSES,
    HardMargin,
    Hinge,
    Psi,
    RejectHinge,
    TruncatedHinge,
    TruncatedReject,
)
from psilearn.core.penalties import Penalty
from psilearn.core.result import Certificate, Claim
from psilearn.core.solving import Options

from oracles.samples import make_problem

GRID = np.linspace(-4, 4, 801)
PENALTIES = [Penalty(l2=1.0), Penalty(l1=0.7), Penalty(l2=0.5, l1=0.3)]


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
class TestEveryLoss:
    def test_non_increasing_and_not_negative(self, loss):
        values = loss.value(GRID)
        assert np.all(values >= 0)
        assert np.all(np.diff(values) <= 1e-12)

    def test_convex_part_is_convex_and_above(self, loss):
        g = loss.convex_value(GRID)
        assert np.all(g[2:] - 2 * g[1:-1] + g[:-2] >= -1e-9)
        if not loss.is_convex and loss.is_continuous:
            assert np.all(loss.value(GRID) <= g + 1e-12)

    def test_capped_below_t(self, loss):
        if not loss.is_convex:
            below = loss.t - 10 * JUMP_TOLERANCE
            assert loss.value(below) == loss.cap
            assert loss.is_capped(below)
            assert not loss.is_capped(loss.t)
            assert loss.value(loss.t) == pytest.approx(loss.cap - loss.jump)
            assert loss.value(loss.t - 0.5 * JUMP_TOLERANCE) == pytest.approx(loss.value(loss.t), abs=1e-5)

    def test_slope_is_a_subgradient(self, loss):
        u, v = GRID[:, None], GRID[None, :]
        tangent = loss.convex_value(u) - loss.convex_slope(u) * (v - u)
        assert np.all(loss.convex_value(v) >= tangent - 1e-9)

    def test_dual_gain_is_the_conjugate(self, loss):
        if not loss.hinges:
            return
        for share in np.linspace(0, 1, 7):
            alpha = share * 1.5 * loss.max_slope
            # -conjugate: min over u of cost g(u) + alpha u, attained at a breakpoint
            breakpoints = np.array([t for _, t in loss.hinges])
            best = np.min(1.5 * loss.convex_value(breakpoints) + alpha * breakpoints)
            assert loss.dual_gain(alpha, 1.5) == pytest.approx(best, abs=1e-12)


def test_named_values():
    assert Hinge().value(-1.0) == 2
    assert Psi(1.0).value(0.0) == 1
    assert Psi(1.0).value(-0.1) == 2
    assert not Psi(1.9).is_continuous
    assert Psi(2.0).is_continuous
    np.testing.assert_allclose(Psi(2.0).value(GRID), 2 * TruncatedHinge(0.0).value(GRID))
    assert RejectHinge(0.2).value(-1.0) == pytest.approx(1 + 0.8 / 0.2)
    np.testing.assert_allclose(RejectHinge(0.5).value(GRID), Hinge().value(GRID))
    assert TruncatedReject(0.2, -1.0).cap == RejectHinge(0.2).value(-1.0)
    np.testing.assert_array_equal(HardMargin().value([0.9, 1.0]), [1, 0])


@pytest.mark.parametrize(
    "make",
    [
        lambda: Psi(0.0),
        lambda: Psi(2.1),
        lambda: TruncatedHinge(1.0),
        lambda: RejectHinge(0.0),
        lambda: TruncatedReject(0.7),
    ],
)
def test_losses_refuse_bad_parameters(make):
    with pytest.raises(ValueError, match="must"):
        make()


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6), rows=st.integers(1, 4), l2=st.sampled_from([0.3, 1.0]), l1=st.sampled_from([0.0, 0.5])
)
def test_conjugate_bounds_every_point(seed, rows, l2, l1):
    """Fenchel: <V, W> <= P(W) + P*(V) for every W whose rows sum to zero, with near equality at the maximiser."""
    rng = np.random.default_rng(seed)
    V = 2 * rng.normal(size=(rows, 3))
    penalty = Penalty(l2=l2, l1=l1 * rng.random((rows, 3)) if l1 else 0.0)
    conjugate = penalty.conjugate(V)
    for _ in range(30):
        W = rng.normal(size=V.shape) * rng.exponential()
        if rows > 1:
            W -= W.mean(axis=0)
        assert np.sum(V * W) <= penalty.value(W, float(np.sum(W * W))) + conjugate + 1e-9


@pytest.mark.parametrize("k", [2, 3, 5])
@pytest.mark.parametrize("penalty", PENALTIES, ids=["l2", "l1", "elastic-net"])
def test_weak_duality_whatever_the_multipliers(rng, k, penalty):
    for loss in (Hinge(), RejectHinge(0.1)):
        problem = make_problem(rng, k=k, loss=loss, penalty=penalty, C=2.0)
        points = []
        for scale in (0.0, 0.1, 1.0):
            W = scale * rng.normal(size=(problem.n_functions, 3))
            b = rng.normal(size=problem.n_functions)
            if k > 2:
                W, b = W - W.mean(axis=0), b - b.mean()
            points.append(problem.value(W, b))
        points.append(problem.best_constant()[0])
        for _ in range(5):
            R = 3 * rng.normal(size=(problem.n, problem.n_functions))
            assert problem.dual_bound(R) <= min(points) + 1e-9


@pytest.mark.parametrize("k", [2, 3])
def test_repaired_multipliers_are_feasible(rng, k):
    problem = make_problem(rng, n=40, k=k)
    F = rng.normal(size=(40, problem.n_functions))
    W = 3 * rng.normal(size=(problem.n_functions, 3))
    tilted = make_problem(rng, n=40, k=k, loss=TruncatedHinge(-0.5)).majorant(W, np.zeros(problem.n_functions))
    for p in (problem, tilted):
        R = p.repaired_multipliers(rng.normal(size=F.shape))
        target = 0.0 if p.tilt is None else p.tilt.sum(axis=0)
        np.testing.assert_allclose(R.sum(axis=0), target, atol=1e-12)
        if k > 2:
            np.testing.assert_allclose(R.sum(axis=1), 0.0, atol=1e-12)


@pytest.mark.parametrize("k", [2, 3, 4])
@pytest.mark.parametrize("loss", [TruncatedHinge(-0.3), Psi(2.0), TruncatedReject(0.2, -1.0)], ids=repr)
def test_linearisation_is_a_touching_majorant(rng, k, loss):
    problem = make_problem(rng, k=k, loss=loss)
    shape = (problem.n_functions, 3)
    for _ in range(10):
        W, b = rng.normal(size=shape), rng.normal(size=shape[0])
        majorant = problem.majorant(W, b)
        assert majorant.is_convex
        assert majorant.value(W, b) == pytest.approx(problem.value(W, b), rel=1e-10)
        for _ in range(10):
            V, c = 2 * rng.normal(size=shape), rng.normal(size=shape[0])
            assert majorant.value(V, c) >= problem.value(V, c) - 1e-9


def subgradient(problem, W, b):
    R = -problem.loss_multipliers(problem.space.scores(W, b))
    l1 = np.sign(W) * problem.penalty.l1_array(W.shape)
    return problem.space.combine(R) + problem.penalty.l2 * W + l1, R.sum(axis=0)


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("penalty", PENALTIES, ids=["l2", "l1", "elastic-net"])
def test_subgradient_inequality(rng, k, penalty):
    problem = make_problem(rng, k=k, penalty=penalty)
    shape = (problem.n_functions, 3)
    for _ in range(20):
        W, b = rng.normal(size=shape), rng.normal(size=shape[0])
        gW, gb = subgradient(problem, W, b)
        V, c = rng.normal(size=shape), rng.normal(size=shape[0])
        assert problem.value(V, c) >= problem.value(W, b) + np.sum(gW * (V - W)) + gb @ (c - b) - 1e-9


def test_best_constant_is_best(rng):
    for loss in LOSSES:
        problem = make_problem(rng, loss=loss, weights=rng.random(30) + 0.1)
        value, _ = problem.best_constant()
        W = np.zeros((1, 3))
        for b in np.linspace(-3, 3, 121):
            assert value <= problem.value(W, np.array([b])) + 1e-9


def test_norm_bound_contains_good_points(rng):
    for penalty in PENALTIES:
        problem = make_problem(rng, penalty=penalty)
        W = rng.normal(size=(1, 3))
        upper = problem.value(W, np.zeros(1))
        norm = np.linalg.norm(W) if penalty.l2 else np.abs(W).sum()
        assert norm <= problem.norm_bound(upper) + 1e-12


def test_certificate_catches_lies(rng):
    problem = make_problem(rng)
    W, b = np.zeros((1, 3)), np.zeros(1)
    value = problem.value(W, b)
    R = problem.repaired_multipliers(problem.loss_multipliers(problem.space.scores(W, b)))
    bound = problem.dual_bound(R)
    assert Certificate(Claim.CONVEX, value, bound, True, evidence=R).verify(problem, W, b).ok
    assert not Certificate(Claim.CONVEX, value, value, True, evidence=R).verify(problem, W, b).ok
    assert not Certificate(Claim.CONVEX, value - 1, bound, True, evidence=R).verify(problem, W, b).ok
    assert not Certificate(Claim.GLOBAL, value, value + 1).verify(problem, W, b).ok


def test_scad_is_folded_and_majorised(rng):
    penalty = Penalty(l1=0.8, scad=3.7)
    w = np.linspace(-4, 4, 161)
    values = np.array([penalty.value(np.array([[x]]), 0.0) for x in w])
    np.testing.assert_allclose(values, values[::-1])
    assert np.all(np.diff(values[80:]) >= -1e-12)
    np.testing.assert_allclose(values[np.abs(w) >= 3.7 * 0.8], 0.5 * 4.7 * 0.64)
    for _ in range(20):
        at = rng.normal(size=(1, 3)) * 2
        above, offset = penalty.majorant(at)
        assert above.is_convex
        assert above.value(at, 0.0) + offset == pytest.approx(penalty.value(at, 0.0))
        for _ in range(20):
            other = rng.normal(size=(1, 3)) * 3
            assert above.value(other, 0.0) + offset >= penalty.value(other, 0.0) - 1e-12
    with pytest.raises(ValueError, match="scad"):
        Penalty(l1=1.0, scad=1.5)


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("loss", [Hinge(), RejectHinge(0.2)], ids=repr)
def test_strong_duality_at_an_optimum_found_elsewhere(rng, k, loss):
    """With the multipliers of a linear program in HiGHS the bound meets the optimum, and does not pass it."""
    for C in (0.1, 1.0, 10.0):
        problem = make_problem(rng, k=k, loss=loss, penalty=Penalty(l1=0.7), C=C)
        answer = program.solve(problem, Options())
        bound = problem.dual_bound(answer.multipliers)
        optimum = problem.value(answer.coef, answer.intercept)
        assert bound <= optimum * (1 + 1e-9)
        assert bound == pytest.approx(optimum, rel=1e-7)
