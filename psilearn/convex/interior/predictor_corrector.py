"""One step of a primal-dual interior point, but for its linear algebra.

Complementary variables x, y > 0 (slacks and multipliers) are driven to x_i y_i = 0 along the central path, after
Mehrotra (On the implementation of a primal-dual interior point method, 1992): a predictor aims at products of zero;
how far it gets sets the centring of the corrector, which also takes account of the predictor's second order.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

#: e -> (dx, dy): the step with x dy + y dx = e that also removes the residuals of all other equations to first order.
Newton = Callable[[Array], tuple[Array, Array]]


@dataclass(frozen=True)
class StepRules:
    """Numbers of the step, all without unit.

    Attributes
    ----------
    to_boundary : float
        Share of the way to the boundary that a step goes: the whole way would leave no room for the next one.
    least_centring, most_centring : float
        Limits of the products aimed at, relative to their present mean.
    together : bool
        Whether primal and dual steps have one length, as a quadratic objective (which couples them) asks for.
    """

    to_boundary: float = 0.995
    least_centring: float = 1e-8
    most_centring: float = np.inf
    together: bool = False


class Step(NamedTuple):
    """Directions of x and y, and how far to go along each."""

    dx: Array
    dy: Array
    primal: float
    dual: float


def longest(x: Array, dx: Array, share: float) -> float:
    """Return the longest step in [0, 1] that goes at most ``share`` of the way to where an entry of x vanishes."""
    fastest = float(np.min(dx / x, initial=0.0))
    return min(1.0, -share / fastest) if fastest < 0.0 else 1.0


def predictor_corrector(x: Array, y: Array, newton: Newton, rules: StepRules) -> Step:
    """Return the corrected step; ``newton`` is called twice, with one matrix.

    Parameters
    ----------
    x, y : ndarray of float64, shape (N,)
        Positive slacks and their multipliers.
    newton : callable
        Solves the Newton equations at (x, y) for given changes of the products x_i y_i.
    rules : StepRules
        How far, and how central.
    """
    products = x * y
    gap = float(products.sum())
    predictor = _measured(x, y, *newton(-products), rules)
    after = np.vdot(x + predictor.primal * predictor.dx, y + predictor.dual * predictor.dy)
    centring = min(max((float(after) / gap) ** 3, rules.least_centring), rules.most_centring)
    return _measured(x, y, *newton(centring * gap / x.size - products - predictor.dx * predictor.dy), rules)


def _measured(x: Array, y: Array, dx: Array, dy: Array, rules: StepRules) -> Step:
    primal, dual = longest(x, dx, rules.to_boundary), longest(y, dy, rules.to_boundary)
    if rules.together:
        primal = dual = min(primal, dual)
    return Step(dx, dy, primal, dual)
