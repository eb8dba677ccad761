"""What solvers take and refuse: no claim where there is no proof."""

import importlib
import re
from dataclasses import dataclass, replace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from psilearn import PsiClassifier, SVMClassifier, TruncatedHingeClassifier
from psilearn.core.losses import (
    JUMP_TOLERANCE,
    LOSSES,
    ByClass,
    ConvexHinges,
    Hinge,
    Psi,
    TruncatedHinge,
    reject_by_class,
)
from psilearn.core.penalties import Penalty
from psilearn.core.problem import Problem
from psilearn.core.result import Claim, Status
from psilearn.core.solving import Options
from psilearn.core.spaces import KernelSpace, LinearSpace
from psilearn.core.spaces.gram import Kernel
from psilearn.exact.label_prices import price_labels

from oracles.blocks import in_blocks


def one_feature(n=20, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 1))
    return X, (X[:, 0] + 0.5 * rng.normal(size=n) > 0).astype(int)


def ring(n=30, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    return X, (X[:, 0] * X[:, 1] > 0).astype(int)


# -- SCAD -------------------------------------------------------------------------------------------------------------


def test_scad_with_a_jump_is_fitted_and_only_claimed_not_to_be_negative():
    X, y = one_feature()
    model = PsiClassifier(a=1, C=3, penalty="scad")
    with pytest.warns(ConvergenceWarning, match="without a proof.*scad"):
        model.fit(X, y)
    steeper = PsiClassifier(a=2, C=3, penalty="scad").fit(X, y)
    assert model.objective_ <= steeper.objective_ * (1 + 1e-9)  # psi with a = 1 is never larger than with a = 2
    assert model.lower_bound_ == 0.0
    assert model.status_ is Status.HEURISTIC
    assert model.certificate_.claim is Claim.NONE


@pytest.mark.parametrize("name", ["mip", "patterns", "outer", "cones"])
@pytest.mark.parametrize("a", [1.0, 2.0])
def test_exact_solvers_refuse_scad(name, a):
    X, y = one_feature()
    problem = Problem(LinearSpace(X), y, 2, Psi(a), Penalty(l1=1.0, scad=3.7), 3.0, np.ones(20))
    with pytest.raises(ValueError, match="scad"):
        registry.solve(problem, name, Options())


# -- kernels that are not positive semidefinite -----------------------------------------------------------------------

INDEFINITE = {"kernel": "sigmoid", "gamma": 2.0, "coef0": 1.0}


@pytest.mark.parametrize(
    "estimator", [PsiClassifier(a=1), PsiClassifier(a=2), SVMClassifier(), TruncatedHingeClassifier()]
)
@pytest.mark.parametrize("time_limit", [None, 2.0])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_nothing_is_claimed_of_an_indefinite_kernel(estimator, time_limit):
    X, y = ring()
    model = estimator.set_params(**INDEFINITE, time_limit=time_limit).fit(X, y)
    problem = model.problem(X, y)
    lowest = np.linalg.eigh(problem.space.K)[1][:, 0]
    assert problem.value(1e4 * lowest[None], np.zeros(1)) < -1e6  # unbounded below: any bound would be false
    assert model.lower_bound_ == -np.inf
    assert model.certificate_.bound == -np.inf
    assert model.certificate_.claim is Claim.NONE
    assert "positive semidefinite" in model.certificate_.note
    assert np.isfinite(model.decision_function(X)).all()


def test_an_exact_solver_refuses_an_indefinite_kernel():
    X, y = ring()
    with pytest.raises(ValueError, match="positive semidefinite"):
        PsiClassifier(solver="mip", **INDEFINITE).fit(X, y)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_matrix_is_called_psd_only_with_a_proof(dtype):
    """Rank-deficient Gram matrices are so up to rounding; one with an eigenvalue below rounding is not."""
    rng = np.random.default_rng(0)
    for n, rank in ((5, 2), (40, 3), (40, 40), (200, 5)):
        A = rng.normal(size=(n, rank))
        K = (A @ A.T).astype(dtype)
        space = KernelSpace(0.5 * (K + K.T))
        assert space.is_psd
        lowest = np.linalg.eigvalsh(space.K.astype(np.longdouble).astype(np.float64))[0]
        rounding = n * np.finfo(float).eps * np.trace(K)
        assert lowest + space.psd_shift >= -rounding
        assert space.psd_shift <= 1e-6 * np.trace(K)
        Q = np.linalg.qr(rng.normal(size=(n, n)))[0]
        bent = Q * np.append(-1e-5 * n, np.linspace(0.0, 1.0, n - 1)) @ Q.T
        assert not KernelSpace((0.5 * (bent + bent.T)).astype(dtype)).is_psd


def test_the_bound_of_a_singular_kernel_is_one_of_the_shifted_kernel():
    """Rounding leaves eigenvalues below zero; the bound must hold for the matrix that is said to be semidefinite."""
    X, y = ring(40)
    K = X @ X.T
    problem = Problem(KernelSpace(0.5 * (K + K.T)), y, 2, Hinge(), Penalty(l2=1.0), 100.0, np.ones(40))
    shift = problem.space.psd_shift
    assert shift > 0
    result = registry.solve(problem, "smo", Options(tol=1e-6))
    assert result.certificate.claim is Claim.CONVEX
    shifted = Problem(
        KernelSpace(problem.space.K + shift * np.eye(40)), y, 2, Hinge(), Penalty(l2=1.0), 100.0, np.ones(40)
    )
    assert result.lower_bound <= shifted.dual_bound(result.multipliers) + 1e-12 * result.objective
    assert result.certificate.verify(problem).ok


def test_definite_kernels_keep_their_claims():
    X, y = ring()
    for space in (KernelSpace(np.exp(-((X[:, None] - X) ** 2).sum(-1))), KernelSpace(np.eye(30))):
        assert space.psd_shift == 0.0
        problem = Problem(space, y, 2, TruncatedHinge(0.0), Penalty(l2=1.0), 1.0, np.ones(30))
        assert registry.solve(problem, "mip", Options(max_iter=5)).certificate.claim is Claim.GLOBAL
        assert registry.solve(problem, "dca", Options()).certificate.claim is Claim.CRITICAL


# -- every solver on every kind of problem ----------------------------------------------------------------------------

registry = importlib.import_module("psilearn.solvers")

PENALTIES = {
    "l2": Penalty(l2=1.0),
    "l1": Penalty(l1=1.0),
    "adaptive l1": Penalty(l1=np.array([0.5, 2.0])),
    "one feature banned": Penalty(l1=np.array([1.0, np.inf])),
    "one feature free": Penalty(l1=np.array([1.0, 0.0])),
    "elastic net": Penalty(l2=0.5, l1=0.5),
    "scad": Penalty(l1=1.0, scad=3.7),
    "scad and l2": Penalty(l2=0.5, l1=1.0, scad=3.7),
    "l0": Penalty(l2=1.0, l0=0.5),
    "none": Penalty(),
}
SPACES = ("dense", "CSR", "rbf", "indefinite")
ALL_LOSSES = (*LOSSES, reject_by_class((0.1, 0.3)), reject_by_class((0.1, 0.3), -1.0), ConvexHinges(()))
#: Nodes are counted, not timed; enough of them for bounds that are tight with two classes.
FEW = Options(tol=1e-6, gap_tol=1e-4, max_iter=200)


def problem_of(loss, penalty, k, kind, weighted, n=9):
    rng = np.random.default_rng([k, n])
    X = np.round(rng.normal(size=(n, 2)), 2)
    X[np.abs(X) < 0.2] = 0.0
    y = np.arange(n) % k
    X[:, 0] += y
    spaces = {
        "dense": lambda: LinearSpace(0.2 * X),  # small data, large coefficients: beyond the fold of SCAD at 1
        "CSR": lambda: LinearSpace(sp.csr_matrix(0.2 * X)),
        "rbf": lambda: Kernel("rbf", 0.5).space(X),
        "indefinite": lambda: Kernel("sigmoid", 2.0, coef0=1.0).space(X),
    }
    weights, space = rng.uniform(0.2, 3.0, n) if weighted else np.ones(n), spaces[kind]()
    if np.ndim(penalty.l1):
        penalty = Penalty(l1=np.resize(penalty.l1, space.dim))
    return Problem(space, y, k, loss, penalty, 8.0, weights)


def strict_value(problem, W, b):
    """The objective without the tolerance at a jump, which a search could otherwise sell for a better solution."""
    loss, u = problem.loss, problem.margins(W, b)
    forgiven = (u < loss.t) & (u >= loss.t - JUMP_TOLERANCE) & (not loss.is_continuous)
    return problem.value(W, b) + problem.costs[forgiven] @ (loss.cap - loss.value(u[forgiven], problem.y[forgiven]))


def least_found(problem, results, rng, count=100):
    """The least value that the solvers, and a random descent from each of their two best solutions, have found."""
    m, d = problem.n_functions, problem.space.dim
    banned = np.isinf(problem.penalty.l1_array((m, d)))
    starts = [(r.objective, r.coef, r.intercept) for r in results]
    constant, b = problem.best_constant()
    starts.append((constant, np.zeros((m, d)), b))
    starts = sorted(starts, key=lambda start: start[0])[:2]
    for at, (value, W, b) in enumerate(starts):
        for _ in range(count):
            size = 10.0 ** rng.uniform(-4, 0.5) * max(1.0, np.abs(W).max())
            factor = rng.choice([1.0, 0.0, 0.7, 1.5], size=d if rng.random() < 0.5 else 1, p=[0.7, 0.1, 0.1, 0.1])
            V, c = W * factor + rng.integers(0, 2) * size * rng.normal(size=(m, d)), b + 0.3 * size * rng.normal(size=m)
            V = np.where(banned, 0.0, V)
            if m > 1:
                V, c = np.where(banned, 0.0, V - V.mean(axis=0)), c - c.mean()
            if (smaller := strict_value(problem, V, c)) < value:
                value, W, b = smaller, V, c
        starts[at] = (value, W, b)
    return min(value for value, _, _ in starts)


def solved_by_all(problem):
    """Name -> result of every solver that takes the problem; the others refuse with a sentence."""
    results = {}
    for name in (*registry.SOLVERS, "auto"):
        try:
            results[name] = registry.solve(problem, name, FEW)
        except ValueError as error:
            if not re.fullmatch(r"solver='\w+' (does not take|needs a penalty with) .*\.", str(error)):
                raise
    if isinstance(problem.space, LinearSpace) and problem.is_convex:
        blocks = in_blocks(problem, [2, 2, 7])
        if registry.takes("passes", blocks):
            results["passes"] = registry.solve(blocks, "passes", FEW)
    return results


@pytest.mark.parametrize("loss", ALL_LOSSES, ids=repr)
@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("kind", SPACES)
def test_refused_or_bounded_by_truth(loss, k, kind):
    if k == 3 and loss.varies_by_class:
        loss = ByClass((*loss.losses, loss.losses[0]))
    rng = np.random.default_rng(k)
    for at, penalty in enumerate(PENALTIES.values()):
        problem = problem_of(loss, penalty, k, kind, weighted=bool((at + k) % 2))
        results = solved_by_all(problem)
        if kind == "indefinite":
            assert set(results) <= {"smo", "dca", "auto"}
        least = least_found(problem, list(results.values()), rng)
        for name, result in results.items():
            assert result.objective == pytest.approx(problem.value(result.coef, result.intercept), rel=1e-12), name
            assert result.certificate.bound <= result.lower_bound, name
            assert result.lower_bound <= least + 1e-9 * problem.zero_value, (name, penalty)
            if kind == "indefinite":
                assert result.certificate.bound == -np.inf, name
            elif result.certificate.claim in (Claim.NONE, Claim.CRITICAL) and result.certificate.bound > 0:
                proved = result.certificate.verify(problem).bound
                assert proved >= result.certificate.bound - 1e-9 * problem.zero_value, (name, penalty)
            assert kind != "indefinite" or result.certificate.claim is Claim.NONE, name


def test_the_table_reaches_every_solver():
    """The table above is worth nothing if a solver refuses everything in it."""
    reached = set()
    for loss in ALL_LOSSES:
        for penalty in PENALTIES.values():
            for kind in ("dense", "rbf"):
                problem = problem_of(loss, penalty, 2, kind, False)
                stated = [problem, in_blocks(problem, [4])] if kind == "dense" else [problem]
                reached |= {name for name in registry.SOLVERS for each in stated if registry.takes(name, each)}
    assert reached == set(registry.SOLVERS)


# -- what nobody has declared is refused by everybody -----------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class GroupPenalty(Penalty):
    group: float = 0.0


@dataclass(frozen=True)
class SmoothHinge(Hinge):
    @property
    def traits(self):
        return super().traits | {"smooth"}


class StrangeSpace(LinearSpace):
    kind = "strange"


@pytest.mark.parametrize("name", registry.SOLVERS)
@pytest.mark.parametrize("base", [Hinge(), Psi(2.0)], ids=repr)
def test_strangers_are_refused_by_every_solver(name, base):
    plain = problem_of(base, Penalty(l2=1.0), 2, "dense", False)
    strangers = {
        "group": replace(plain, penalty=GroupPenalty(l2=1.0, group=1.0)),
        "smooth": replace(plain, loss=SmoothHinge()),
        "strange": replace(plain, space=StrangeSpace(plain.space.X)),
    }
    for word, problem in strangers.items():
        with pytest.raises(ValueError, match=f"does not take.*{word}.*No solver takes this problem"):
            registry.solve(problem, name, Options())
        with pytest.raises(ValueError, match=word):
            registry.load(name).TAKES.check(problem)
    trivial = replace(plain, penalty=GroupPenalty(l2=1.0, group=0.0))
    assert registry.takes(name, trivial) == registry.takes(name, plain)


def test_a_declaration_of_something_unknown_is_an_error():
    with pytest.raises(ValueError, match=r"unknown penalties: \['l3'\]"):
        replace(registry.load("newton").TAKES, penalties=frozenset({"l2", "l3"}))


def test_a_refusal_names_those_who_take_the_problem():
    problem = problem_of(Psi(1.0), Penalty(l2=1.0), 2, "dense", False)
    assert registry.refusal("dca", problem).endswith("Solvers that take this problem: 'mip', 'patterns'.")
    assert "'dca'" in registry.refusal("mip", replace(problem, loss=Psi(2.0), penalty=Penalty(l1=1.0, scad=3.7)))
    nobody = replace(problem, penalty=Penalty(l2=1.0, l0=1.0))
    assert registry.refusal("mip", nobody).endswith("No solver takes this problem.")


def test_label_prices_are_refused_where_the_search_is():
    problem = problem_of(Psi(1.0), PENALTIES["scad"], 2, "dense", False)
    result = registry.solve(problem, "auto", FEW)
    with pytest.raises(ValueError, match="scad"):
        price_labels(problem, result, FEW, [0])


# -- options of single solvers ----------------------------------------------------------------------------------------


def test_an_unknown_option_is_named():
    with pytest.raises(ValueError, match="'mip' has no option 'engin'; its options: incumbents, restrict"):
        registry.settings("mip", engin="scip")
    with pytest.raises(ValueError, match="'newton' has no option 'mode'; its options: none"):
        registry.settings("newton", mode="paper")
    for wrong in ({"mode": "paper"}, ("paper",), (registry.settings("dca"), registry.settings("dca", n_starts=2))):
        with pytest.raises(ValueError, match="settings"):
            Options(settings=wrong)


@pytest.mark.parametrize(
    ("name", "value"), [("bundle", {"mode": "papr"}), ("mip", {"restrict": "x"}), ("mip", {"formulation": "loose"})]
)
def test_a_wrong_value_is_named(name, value):
    with pytest.raises(ValueError, match=next(iter(value))):
        registry.settings(name, **value)


def test_settings_of_several_solvers_live_side_by_side():
    options = Options(settings=(registry.settings("dca", n_starts=3), registry.settings("mip", memory=1e6)))
    assert options.of(registry.load("dca").Settings).n_starts == 3
    assert options.of(registry.load("mip").Settings).memory == 1e6
    assert options.of(registry.load("smo").Settings).working_set == 6144
