"""Bounds on margins: no good solution breaks them, some come close, and two derivations agree."""

import numpy as np
import pytest

from psilearn.core.losses import HardMargin, Psi, TruncatedHinge
from psilearn.exact.margin_floor import score_drop
from psilearn.exact.two_class.incumbent import given_incumbent
from psilearn.exact.two_class.incumbent_jit import true_value
from psilearn.exact.two_class.model import make_model, margin_bounds
from psilearn.exact.two_class.reduction import reduce

from oracles.samples import two_class_problem

LOSSES = [Psi(2.0), TruncatedHinge(-0.5), HardMargin()]


def good_points(rng, model, upper, count):
    """Random (w, b) with objective below ``upper``: near the label direction, in many lengths."""
    d = model.a.shape[1]
    for _ in range(count):
        w = rng.normal(size=d) * 10.0 ** rng.uniform(-1.5, 0.3) * np.sqrt(2.0 * upper)
        w[0] = abs(w[0])
        margin = model.a @ w
        b = float(rng.choice(-model.y * margin)) + rng.normal() * 0.1
        u = margin + model.y * b
        if true_value(model, w, u) < upper:
            yield u


@pytest.mark.parametrize("norm", [2, 1])
@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_no_better_solution_breaks_the_bounds(loss, norm):
    rng = np.random.default_rng([LOSSES.index(loss), norm])
    seen, closest = 0, np.inf
    for _ in range(15):
        problem = two_class_problem(rng, 12, 2, loss, norm=norm, noise=0.5, log_C=(-0.5, 1.5))
        model = make_model(reduce(problem), loss)
        upper = float(given_incumbent(model, [])[0].value[0])
        low, high = margin_bounds(model, upper)
        for u in good_points(rng, model, upper, 300):
            seen += 1
            assert np.all(u >= low - 1e-9)
            assert np.all(u <= high + 1e-9)
            closest = min(
                closest, float(np.min((u - low)[u < loss.t], initial=np.inf) / (1.0 + abs(loss.t - low).max()))
            )
    assert seen > 100
    assert closest < 0.5  # the bounds are not so wide that the test could not fail


def test_the_nearest_samples_pay_first():
    distance, cost = np.array([2.0, 0.0, 1.0]), np.full(3, 0.5)
    # Each pays 1. None at the cap: 0; the nearest is: sqrt(2.5 - 1) * 1; two are: sqrt(.5) * 2.
    drop = score_drop(distance, cost, 2.0, 2.5, np.sqrt(2.5), True)
    assert drop == pytest.approx(max(np.sqrt(1.5), 2.0 * np.sqrt(0.5)), rel=1e-6)
    assert score_drop(distance, cost, 2.0, 2.5, 2.5, False) == pytest.approx(1.5, rel=1e-6)
    assert score_drop(distance, cost, 2.0, 0.5, 1.0, True) == 0.0
    assert score_drop(distance[:0], cost[:0], 2.0, 1.0, 1.0, True) == 0.0
