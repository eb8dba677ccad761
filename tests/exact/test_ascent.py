"""The dual ascent of a search node: where it begins must not matter, and its value is that of a dual feasible point."""

import numpy as np
import pytest

from psilearn.core.losses import HardMargin, Psi, TruncatedHinge, TruncatedReject
from psilearn.core.penalties import Penalty
from psilearn.core.problem import Problem
from psilearn.core.spaces import LinearSpace
from psilearn.exact.sample_state_jit import FREE, IN, OUT
from psilearn.exact.two_class.model import make_model, make_workspace
from psilearn.exact.two_class.node.ascent_jit import SOLVED
from psilearn.exact.two_class.node.node_jit import solve_node
from psilearn.exact.two_class.reduction import reduce

LOSSES = [HardMargin(), Psi(0.5), Psi(2.0), TruncatedHinge(-0.5), TruncatedReject(0.2, -1.0)]

CUTOFF = 1e6


def random_model(rng, loss, norm=2):
    n, d = int(rng.integers(6, 40)), int(rng.integers(1, 7))
    X = rng.normal(size=(n, d))
    X = np.round(X) if rng.random() < 0.3 else X  # ties
    y = (X[:, 0] + rng.normal(size=n) > 0).astype(int)
    y[:2] = 0, 1
    weights = rng.uniform(0.5, 2.0, n)
    penalty = Penalty(l2=1.0) if norm == 2 else Penalty(l1=1.0)
    problem = Problem(LinearSpace(X), y, 2, loss, penalty, 10.0 ** rng.uniform(-1, 2), weights)
    return make_model(reduce(problem), loss)


def draw_node(rng, model, work):
    """Some samples fixed, the others with bounds on their margins."""
    n = model.y.size
    work.state[:] = rng.choice([FREE, IN, OUT], n, p=[0.8, 0.1, 0.1])
    work.low[:] = model.t - rng.exponential(3.0, n)
    work.high[:] = model.t + rng.exponential(5.0, n)


def dual_value(model, work):
    """Value of the multipliers in ``work``, by numpy alone; -inf if they are not feasible."""
    tau, vert, number, const = work.terms
    size = max(1.0, np.abs(work.alpha).max())
    total = const.sum() - 0.5 * np.sum((work.alpha @ model.a) ** 2)
    for i, alpha in enumerate(work.alpha):
        ends = vert[i, : number[i] + 1]
        if not ends[0] <= alpha <= ends[-1]:
            return -np.inf
        for k in range(number[i]):  # the integral of the slopes from 0 to alpha
            total += tau[i, k] * (np.clip(alpha, ends[k], ends[k + 1]) - np.clip(0.0, ends[k], ends[k + 1]))
    return total if abs(model.y @ work.alpha) <= 1e-9 * size else -np.inf


def assert_same(model, cold, warm, norm):
    """Solve one node from zero and from what ``warm`` holds; whether both say that they solved it."""
    for name in ("state", "low", "high"):
        getattr(cold, name)[:] = getattr(warm, name)
    (value, flag), (again, warm_flag) = (solve_node(model, work, CUTOFF) for work in (cold, warm))
    if norm == 2:
        for work, reported in ((cold, value), (warm, again)):
            assert reported == pytest.approx(dual_value(model, work), rel=1e-9, abs=1e-9)
    if flag == SOLVED and value < CUTOFF:
        assert again <= value * (1.0 + 1e-8) + 1e-8
        if warm_flag == SOLVED:
            assert again == pytest.approx(value, rel=1e-8, abs=1e-8)
            return True
    return False


@pytest.mark.parametrize("norm", [1, 2])
@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_a_child_has_the_same_value_from_its_parent_s_multipliers(loss, norm):
    """Some samples are fixed and all bounds on margins tightened, so that nearly every vertex moves."""
    rng = np.random.default_rng(3)
    solved = 0
    for _ in range(100):
        model = random_model(rng, loss, norm)
        cold, warm = make_workspace(model), make_workspace(model)
        draw_node(rng, model, warm)
        _, flag = solve_node(model, warm, CUTOFF)
        if flag != SOLVED:
            continue
        changed = (rng.random(model.y.size) < rng.choice([0.05, 0.2])) & (warm.state == FREE)
        warm.state[changed] = rng.choice([IN, OUT], np.count_nonzero(changed))
        warm.low[:] += 0.3 * rng.random() * (model.t - warm.low)
        warm.high[:] -= 0.3 * rng.random() * (warm.high - model.t)
        solved += assert_same(model, cold, warm, norm)
    assert solved >= 60


@pytest.mark.parametrize("norm", [1, 2])
@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_a_node_has_the_same_value_from_anywhere(loss, norm):
    """Where many multipliers are outside their range at first, they must stay in balance on their way back."""
    rng = np.random.default_rng(3)
    solved = 0
    for _ in range(120):
        model = random_model(rng, loss, norm)
        cold, warm = make_workspace(model), make_workspace(model)
        draw_node(rng, model, warm)
        solve_node(model, warm, CUTOFF)
        draw_node(rng, model, warm)
        solved += assert_same(model, cold, warm, norm)
    assert solved >= 60
