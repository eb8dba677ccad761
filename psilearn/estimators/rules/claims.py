"""Recomputing the claims of the boosters from the data and stored multipliers.

The bound of a linear program over all rules is proved by multipliers for which exact pricing finds no rule that
violates its constraint by more than is accounted for (Goldberg and Eckstein, Tightened L0-Relaxation Penalties for
Classification, 2009, programs (3) and (18)). So checking costs one or two calls of the pricing search.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.result import Verification, relative_gap
from ...rules import joint, lpboost
from ...rules.l0 import bounds, exact
from ...rules.l0.cuts import PairCuts
from ...rules.l0.result import L0BoostResult
from ...rules.large.cut_points import CutPointOracle
from ...rules.observations import Observations
from ...rules.pricing.data import CutPoint, Monomial
from ...rules.pricing.oracles import Column, LearnerOracle, MatrixOracle, MonomialOracle, Oracle

#: Allowance for rounding: edges and margins lie in [-1, 1], and the weights of the engine sum to one up to 1e-9.
ROUNDING = 1e-8


def check_lpboost(data: Observations, oracle: Oracle, nu: float, result: lpboost.LPBoostResult) -> Verification:
    """Recompute the soft margin of the weights, and its upper bound: the largest edge of any rule under stored w."""
    H, w = _answers(data, oracle, result), result.evidence
    if H is None or w is None or w.shape != data.y.shape:
        return _refused("the base learner, the data or the multipliers allow no proof")
    return _check_soft_margin(data, oracle, nu, result, data.y * (H @ result.weights), w)


def check_joint(oracle: joint.ClassOracle, nu: float, result: lpboost.LPBoostResult) -> Verification:
    """Recompute the soft margin against the best rivals, and its upper bound from the stored w_ir."""
    data, k, w = oracle.data, oracle.k, result.evidence
    keys = [column.key for column in result.columns]
    fits = all(isinstance(key, joint.Vote) and key.order <= oracle.max_order and 0 <= key.target < k for key in keys)
    if not fits or len(keys) != result.weights.size or w is None or w.shape != (data.y.size, k):
        return _refused("the data or the multipliers allow no proof")
    if np.any(w[np.arange(data.y.size), data.y] != 0):
        return _refused("the multipliers are not feasible")
    margins = joint.margins_of(joint.scores(result.columns, result.weights, data.X, k), data.y).min(axis=1)
    return _check_soft_margin(data, oracle, nu, result, margins, w)


def _check_soft_margin(
    data: Observations,
    oracle: Oracle,
    nu: float,
    result: lpboost.LPBoostResult,
    margins: NDArray[np.float64],
    w: NDArray[np.float64],
) -> Verification:
    """Compare what is stated with the soft margin of ``margins`` and with the largest edge under ``w``."""
    lam, D = result.weights, 1.0 / (nu * data.total)
    if not (np.all(lam >= 0) and abs(lam.sum() - 1.0) <= ROUNDING):
        return _refused("the weights of the rules are not those of a vote")
    objective = lpboost.soft_margin(margins, data.weight, D)[1]
    if not abs(objective - result.objective) <= ROUNDING:
        return _refused(f"the weights give the soft margin {objective!r}, {result.objective!r} is stated")
    loads = w.reshape(data.y.size, -1).sum(axis=1)
    if not (np.all(w >= 0) and np.all(loads <= D * data.weight + ROUNDING) and abs(w.sum() - 1.0) <= ROUNDING):
        return _refused("the multipliers are not feasible")
    bound = oracle.offer(w, None, -1.0, 1).bound
    if not bound <= result.upper_bound + ROUNDING:
        return _refused(f"the upper bound {result.upper_bound!r} is stated, but only {bound!r} is proved")
    return Verification(True, objective, bound, relative_gap(-objective, -bound), "")


def check_l0(
    data: Observations, oracle: Oracle, rho: float, order_costs: list[float], result: L0BoostResult
) -> Verification:
    """Recompute z of (18) from a feasible (lambda, mu, xi), all cuts, and the lower bounds of stored multipliers."""
    H = _answers(data, oracle, result)
    stated = result.certificate
    if H is None or result.xi.shape != data.y.shape:
        return _refused("the base learner or the data allow no proof")
    lam, mu, xi = result.weights, result.mu, result.xi
    costs = np.array([column.cost for column in _columns(oracle, result) or []])
    is_vote = np.all(lam >= 0) and abs(lam.sum() - 1.0) <= ROUNDING and np.all(mu >= lam - ROUNDING)
    missing = rho - data.y * (H @ lam) - (1.0 + rho) * xi
    if not (is_vote and np.all(xi >= 0) and np.all(missing <= ROUNDING)):
        return _refused("the stated solution is not feasible")
    objective = float(data.weight @ xi + costs @ mu)
    allowance = ROUNDING * max(1.0, abs(objective))
    if not abs(objective - stated.objective) <= allowance:
        return _refused(f"the solution gives {objective!r}, {stated.objective!r} is stated")
    bound = _proved_bound(data, oracle, rho, min(order_costs), result)
    if not stated.lower_bound <= bound + allowance:
        return _refused(f"the lower bound {stated.lower_bound!r} is stated, but only {bound!r} is proved")
    is_integer = all(cost.is_integer() for cost in order_costs) and bool(np.all(data.weight == np.round(data.weight)))
    if not stated.integer_bound <= bounds.integer_bound(bound, is_integer) + allowance:
        return _refused(f"the bound {stated.integer_bound!r} on the integer optimum is stated, but not proved")
    if not _violation(data, H, mu, xi) <= stated.violation + ROUNDING and stated.lower_bound > -math.inf:
        return _refused(f"cuts are violated by more than {stated.violation!r}")
    bound = min(bound, stated.lower_bound)
    return Verification(True, objective, bound, relative_gap(objective, bound), "")


def check_limited(
    data: Observations,
    costlier: Oracle,
    rho: float,
    costs: list[float],
    result: L0BoostResult,
    max_rules: int,
) -> Verification:
    """Recompute the value in (15) of a list of at most ``max_rules`` rules, and its bound with raised costs."""
    H = _answers(data, costlier, result)
    lam = result.weights
    if H is None or not (np.all(lam > 0) and abs(lam.sum() - 1.0) <= ROUNDING and lam.size <= max_rules):
        return _refused("the base learner, the data or the list allow no proof")
    orders = [getattr(column.key, "order", 0) for column in result.columns]
    objective, _ = exact.evaluate(data, [Column(None, h, costs[k]) for h, k in zip(H.T, orders)], lam, rho)
    allowance = ROUNDING * max(1.0, abs(objective))
    if not abs(objective - result.objective) <= allowance:
        return _refused(f"the list gives {objective!r}, {result.objective!r} is stated")
    bound = _proved_bound(data, costlier, rho, min(costs) + result.theta, result) - result.theta * max_rules
    if not result.lower_bound <= bound + allowance:
        return _refused(f"the lower bound {result.lower_bound!r} is stated, but only {bound!r} is proved")
    bound = min(bound, result.lower_bound)
    return Verification(True, objective, bound, relative_gap(objective, bound), "")


def _proved_bound(data: Observations, oracle: Oracle, rho: float, min_cost: float, result: L0BoostResult) -> float:
    if result.evidence is None:
        return -math.inf
    w, v, _, first, second = result.evidence
    ends = np.r_[first, second]
    fits = w.shape == data.y.shape and v.shape == first.shape == second.shape
    if not fits or (ends.size and not (ends.min() >= 0 and ends.max() < data.y.size)):
        return -math.inf
    if np.any(data.y[first] != 1) or np.any(data.y[second] != -1):  # a cut is about two observations of two classes
        return -math.inf
    return bounds.bound_of(data, oracle, rho, min_cost, result.evidence)


def _violation(data: Observations, H: NDArray[Any], mu: NDArray[Any], xi: NDArray[Any]) -> float:
    """Return the largest violation of a valid cut, over all pairs."""
    cuts = PairCuts(data, True, 1.5, 1)
    cuts.near = None
    return cuts.violated(H, mu, xi, 1e-6)[2]


def _columns(oracle: Oracle, result: lpboost.LPBoostResult | L0BoostResult) -> list[Column] | None:
    """Return the columns of a result, made again from their keys; None if a base learner cannot do that."""
    if isinstance(oracle, LearnerOracle):
        return None
    constants = {column.key: column for column in oracle.constants()}
    columns = []
    for key in (column.key for column in result.columns):
        column = constants.get(key) or _made_again(oracle, key)
        if column is None:
            return None
        columns.append(column)
    return columns


def _made_again(oracle: Oracle, key: Any) -> Column | None:
    if isinstance(oracle, MonomialOracle) and isinstance(key, Monomial) and key.order <= oracle.max_order:
        return oracle.column(key)
    if isinstance(oracle, CutPointOracle) and isinstance(key, CutPoint):
        is_known = 0 <= key.chain < len(oracle.sizes) and 0 <= key.place < oracle.sizes[key.chain]
        return oracle.column(key) if is_known else None
    if isinstance(oracle, MatrixOracle) and isinstance(key, int) and 0 <= key < oracle.H.shape[1]:
        return oracle.column(key)
    return None


def _answers(data: Observations, oracle: Oracle, result: lpboost.LPBoostResult | L0BoostResult) -> NDArray[Any] | None:
    """Return the answers of the rules on the observations, or None if the result is about other rules."""
    columns = _columns(oracle, result)
    if columns is None or not columns or len(columns) != len(result.weights):
        return None
    return np.column_stack([column.h for column in columns])


def _refused(message: str) -> Verification:
    return Verification(False, math.nan, -math.inf, math.inf, message)
