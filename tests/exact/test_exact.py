"""The exact solver against exhaustive enumeration, other engines and its own promises."""

import importlib
import itertools

import numpy as np
import pytest

from psilearn.core.losses import HardMargin, Hinge, Psi, TruncatedHinge, TruncatedReject
from psilearn.core.penalties import Penalty
from psilearn.core.problem import Problem
from psilearn.core.result import Claim, Status
from psilearn.core.solving import Options
from psilearn.core.spaces import KernelSpace, LinearSpace
from psilearn.exact.two_class import solver as mip

registry = importlib.import_module("psilearn.solvers")

clarabel = pytest.importorskip("clarabel")
sp = pytest.importorskip("scipy.sparse")

LOSSES = [Psi(0.1), Psi(0.5), Psi(1.0), Psi(2.0), TruncatedHinge(-0.5), TruncatedHinge(0.3), HardMargin()]
LOSSES += [TruncatedReject(0.2, -1.0)]


def fixed_optimum(problem, kept):
    """Convex optimum (Clarabel) where ``kept`` samples pay g(u) and obey u >= t and the others pay cap."""
    X, signs = np.asarray(problem.space.X, dtype=float), problem.signs
    rows = np.flatnonzero(kept)
    loss, d, m = problem.loss, X.shape[1], len(problem.loss.hinges)
    paid = loss.cap * problem.costs[~kept].sum()
    if rows.size == 0:
        return paid
    scale = np.abs(X).max() or 1.0
    U = np.column_stack([X[rows] / scale, np.ones(rows.size)]) * signs[rows, None]
    k = rows.size
    quadratic = np.concatenate([np.full(d, 1.0), np.zeros(1 + k * m)])
    unit = problem.penalty.l2 / scale**2
    linear = np.concatenate([np.zeros(d + 1)] + [c * problem.costs[rows] / unit for c, _ in loss.hinges])
    blocks, right = [sp.hstack([-U, sp.csr_matrix((k, k * m))])], [np.full(k, -loss.t)]
    for h, (_, breakpoint) in enumerate(loss.hinges):
        slack = sp.lil_matrix((k, k * m))
        slack[np.arange(k), np.arange(h * k, (h + 1) * k)] = -1.0
        blocks += [sp.hstack([-U, slack]), sp.hstack([sp.csr_matrix((k, d + 1)), slack])]
        right += [np.full(k, -breakpoint), np.zeros(k)]
    A, b = sp.csc_matrix(sp.vstack(blocks)), np.concatenate(right)
    settings = clarabel.DefaultSettings()
    settings.verbose, settings.tol_gap_rel, settings.tol_gap_abs, settings.tol_feas = False, 1e-10, 1e-10, 1e-10
    cones = [clarabel.NonnegativeConeT(b.size)]
    answer = clarabel.DefaultSolver(sp.diags(quadratic).tocsc(), linear, A, b, cones, settings).solve()
    return paid + unit * answer.obj_val if "Solved" in str(answer.status) else np.inf


def enumerated_optimum(problem):
    """Minimum over all 2^n choices of the samples that are left out."""
    return min(fixed_optimum(problem, np.array(kept)) for kept in itertools.product([True, False], repeat=problem.n))


def random_problem(rng, n, d, loss, kind):
    X = rng.normal(size=(n, d))
    if kind in ("ties", "duplicates"):
        X = np.round(X)
    if kind == "duplicates":
        X[n // 2 :] = X[: n - n // 2]
    y = rng.integers(0, 2, n)
    y[0], y[1] = 1, 0
    if kind == "lonely":
        y[1:] = 0
    C, scale = 10.0 ** rng.uniform(-2, 3), 1.0
    if kind == "large":
        scale = 1e4
    weights = rng.uniform(0.5, 2.0, n) if kind == "weights" else np.ones(n)
    return Problem(LinearSpace(X * scale), y, 2, loss, Penalty(l2=1.0), C / scale**2, weights)


KINDS = ["plain", "ties", "duplicates", "lonely", "large", "weights"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_equals_exhaustive_enumeration(loss, kind):
    rng = np.random.default_rng([KINDS.index(kind), LOSSES.index(loss)])
    for _ in range(4):
        problem = random_problem(rng, int(rng.integers(2, 7)), int(rng.integers(1, 5)), loss, kind)
        result = mip.solve(problem, Options(gap_tol=1e-7))
        truth = enumerated_optimum(problem)
        assert result.objective == pytest.approx(truth, rel=2e-6)
        assert result.lower_bound <= truth * (1 + 1e-7)
        assert result.lower_bound >= truth * (1 - 1e-5)
        assert result.status is Status.OPTIMAL
        assert result.certificate.claim is Claim.GLOBAL
        assert result.objective == problem.value(result.coef, result.intercept)


def test_kernel_equals_linear():
    rng = np.random.default_rng(3)
    for loss in LOSSES:
        problem = random_problem(rng, 30, 4, loss, "plain")
        K = problem.space.X @ problem.space.X.T
        kernel = Problem(KernelSpace(K), problem.y, 2, loss, problem.penalty, problem.C, problem.weights)
        a = mip.solve(problem, Options(gap_tol=1e-8))
        b = mip.solve(kernel, Options(gap_tol=1e-8))
        assert b.objective == pytest.approx(a.objective, rel=1e-6)


def test_more_features_than_samples():
    rng = np.random.default_rng(4)
    problem = random_problem(rng, 12, 50, Psi(1.0), "plain")
    result = mip.solve(problem, Options(gap_tol=1e-8))
    K = problem.space.X @ problem.space.X.T
    kernel = Problem(KernelSpace(K), problem.y, 2, problem.loss, problem.penalty, problem.C, problem.weights)
    assert result.objective == pytest.approx(mip.solve(kernel, Options(gap_tol=1e-8)).objective, rel=1e-6)


def test_duplicated_rows_equal_weights():
    rng = np.random.default_rng(5)
    for loss in LOSSES:
        X, y = rng.normal(size=(15, 3)), rng.integers(0, 2, 15)
        times = rng.integers(1, 4, 15)
        weighted = Problem(LinearSpace(X), y, 2, loss, Penalty(l2=1.0), 2.0, times.astype(float))
        rows = np.repeat(np.arange(15), times)
        repeated = Problem(LinearSpace(X[rows]), y[rows], 2, loss, Penalty(l2=1.0), 2.0, np.ones(rows.size))
        a, b = mip.solve(weighted, Options(gap_tol=1e-8)), mip.solve(repeated, Options(gap_tol=1e-8))
        assert a.objective == pytest.approx(b.objective, rel=1e-7)


def test_constant_function_can_be_the_optimum():
    X = np.array([[0.0], [1.0], [0.0], [1.0]])
    y = np.array([0, 0, 1, 1])
    problem = Problem(LinearSpace(X), y, 2, Psi(0.1), Penalty(l2=1.0), 1.0, np.ones(4))
    result = mip.solve(problem, Options())
    assert result.objective == pytest.approx(0.4)
    assert np.all(result.coef == 0)
    assert "constant" in result.certificate.note


def test_huge_cost_does_not_hide_the_penalty():
    rng = np.random.default_rng(6)
    X = rng.uniform(-1, 1, (40, 2))
    y = (X[:, 0] > 0).astype(int)
    y[:2] = 1 - y[:2]
    results = []
    for C in (1e3, 1e7):
        problem = Problem(LinearSpace(X), y, 2, Psi(1.0), Penalty(l2=1.0), C, np.ones(40))
        result = mip.solve(problem, Options())
        assert result.status is Status.OPTIMAL
        results.append(0.5 * np.sum(result.coef**2))
    assert results[1] >= results[0] * (1 - 1e-6)


def test_limits_return_an_honest_bound(cpu_clock):
    rng = np.random.default_rng(7)
    X = rng.normal(size=(150, 8))
    y = rng.integers(0, 2, 150)
    problem = Problem(LinearSpace(X), y, 2, Psi(2.0), Penalty(l2=1.0), 0.5, np.ones(150))
    by_time = mip.solve(problem, Options(time_limit=0.5))
    assert by_time.status is Status.TIME_LIMIT
    assert by_time.history[-1].seconds < 1.6
    by_nodes = mip.solve(problem, Options(max_iter=50))
    assert by_nodes.status is Status.ITERATION_LIMIT
    for result in (by_time, by_nodes):
        assert 0 < result.lower_bound < result.objective
        assert np.all(np.diff([step.bound for step in result.history]) >= -1e-9)


def test_start_is_never_worsened():
    rng = np.random.default_rng(8)
    problem = random_problem(rng, 20, 3, Psi(1.0), "plain")
    best = mip.solve(problem, Options())
    again = mip.solve(problem, Options(max_iter=1), best)
    assert again.objective <= best.objective * (1 + 1e-9)
    handed = Options(max_iter=1, settings=(mip.Settings(incumbents=((best.coef, best.intercept),)),))
    assert mip.solve(problem, handed).objective <= best.objective * (1 + 1e-9)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"loss": Hinge()}, "convex"),
        ({"n_classes": 3}, "two classes"),
        ({"penalty": Penalty(l2=1.0, l0=1.0)}, "non-zero"),
        ({"penalty": Penalty(l2=1.0, l1=1.0)}, "not both"),
    ],
)
def test_refusals_say_why(change, words):
    facts = dict(space=LinearSpace(np.eye(3)), y=np.array([0, 1, 1]), n_classes=2, loss=Psi(1.0))
    facts |= dict(penalty=Penalty(l2=1.0), C=1.0, weights=np.ones(3)) | change
    problem = Problem(**facts)
    assert words in mip.TAKES.refusal(problem)
    with pytest.raises(ValueError, match=words):
        mip.solve(problem, Options())


@pytest.mark.parametrize("norm", [2, 1])
@pytest.mark.parametrize("C", [1e3, 1e5, 1e7])
def test_the_jump_is_safe_at_extreme_costs(C, norm):
    """f = 0 puts every sample on the jump, where C times the tolerance of the jump is worth more than the penalty."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        angle, radius = 2 * np.pi * rng.random(50), np.sqrt(rng.random(50))
        X = np.c_[radius * np.cos(angle), radius * np.sin(angle)]
        y = (X[:, 0] >= 0).astype(np.intp)
        y[:5] = 1 - y[:5]
        penalty = Penalty(l2=1.0) if norm == 2 else Penalty(l1=1.0)
        problem = Problem(LinearSpace(X), y, 2, Psi(0.1), penalty, C, np.ones(50))
        result = mip.solve(problem, Options())
        assert result.status is Status.OPTIMAL
        assert result.objective <= problem.zero_value * (1 + 1e-12)
        assert result.objective * (1 - 1e-6) <= result.lower_bound <= result.objective
        if result.objective >= problem.zero_value * (1 - 1e-6):
            assert not np.any(registry.solve(problem, "mip", Options(), result).coef)
