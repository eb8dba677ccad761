"""Costs of rules, and the bounds that multipliers of the relaxation (18) prove."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ..observations import Observations
from ..pricing.data import Pairs
from ..pricing.oracles import Oracle
from .master import Point

#: A bound this little above an integer is not rounded up to the next one.
_WHOLE = 1e-6


def mdl_costs(max_order: int, n_attributes: int, n_observations: float, kappa: float = 1.5) -> NDArray[np.float64]:
    """c(0), ..., c(K) of (28): (k + log2 binomial(N, k) + log2 K) / log2 M + kappa, base 2, without ceilings."""
    scale = math.log2(max(n_observations, 2.0))
    tables = math.log2(max(max_order, 1))
    sizes = [math.log2(math.comb(n_attributes, k)) if k <= n_attributes else math.inf for k in range(max_order + 1)]
    return np.array([(k + size + tables) / scale + kappa for k, size in enumerate(sizes)])


def dual_value(data: Observations, rho: float, point: Point, pairs: tuple[NDArray, NDArray]) -> float:
    """Objective rho sum w + sum v + alpha of the dual, less the total violation e of its first constraint.

    Lowering w_i by e_i / (1 + rho) costs rho e_i / (1 + rho), and classifiers' constraints rise by at most
    e_i / (1 + rho), which alpha takes back: e_i in all. Where w_i is too small, lowering some v_p by e_i does it.
    """
    used = np.zeros(data.y.size)
    np.add.at(used, pairs[0], point.v)
    np.add.at(used, pairs[1], point.v)
    excess = np.maximum((1.0 + rho) * point.w + used - data.weight, 0.0)
    value = rho * float(point.w.sum()) + float(point.v.sum()) + point.alpha
    return value - float(excess.sum())


def scaled_bound(value: float, vote: float, mark: float, min_cost: float) -> float:
    """Bound on z over all classifiers from multipliers of dual value ``value`` that some classifiers violate.

    Let alpha + sum_i y_i h_iu w_i + sum {v_p : u in S_p} <= c_u - vote and sum {v_p : u in S_p} <= c_u - mark for every
    u, vote, mark <= 0. With t = c_min / (c_min - mark), t v satisfies the second constraint of every u, and t w, t v
    with alpha' = t (alpha + vote) + (1 - t) c_min the first: so z >= t (value + vote) + (1 - t) c_min.
    """
    t = min_cost / (min_cost - mark) if mark < 0 else 1.0
    return t * (value + vote) + (1.0 - t) * min_cost


def integer_bound(bound: float, is_integer: bool) -> float:
    """Return the bound (23) on the integer optimum (15): rounded up if all weights and costs are integers."""
    return float(math.ceil(bound - _WHOLE)) if is_integer and bound > -math.inf else bound


def bound_of(
    data: Observations,
    oracle: Oracle,
    rho: float,
    min_cost: float,
    evidence: tuple[NDArray, NDArray, float, NDArray, NDArray],
) -> float:
    """Return the lower bound on (18) that multipliers (w, v, alpha) and their pairs prove, pricing all classifiers."""
    w, v, alpha, first, second = evidence
    if np.any(w < 0) or np.any(v < 0):
        return -math.inf
    point = Point(np.empty(0), np.empty(0), w, v, alpha, True)
    used = v > 0
    pairs = Pairs(first[used], second[used], v[used], True)
    vote = oracle.offer(w, pairs, -alpha, 1)
    mark = oracle.offer(np.zeros_like(w), pairs, 0.0, 1)
    r_vote, r_mark = min(0.0, -alpha - vote.bound), min(0.0, -mark.bound)
    return scaled_bound(dual_value(data, rho, point, (first, second)), r_vote, r_mark, min_cost)
