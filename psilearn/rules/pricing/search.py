"""Exact pricing: the monomials of largest reward, with an honest bound when a limit stops the search."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...core.clock import now
from .data import RELATIVE_TOLERANCE, Attributes, Monomial, Pairs, Priced
from .tree import MonomialTree

#: Products of rows and pairs of literals up to which all monomials of order 2 are valued outright, and the same in
#: steps of the histograms over chains: some seconds.
_ALL_PAIRS_WORK, _CHAINS_WORK = 1e9, 4e9
#: Conjunctions that the quick search lengthens.
_BEAM = 40


def price(
    data: Attributes,
    weight: ArrayLike,
    pairs: Pairs | None = None,
    *,
    max_order: int | None = None,
    order_cost: Sequence[float] | None = None,
    n_columns: int = 1,
    n_proved: int = 1,
    threshold: float = -math.inf,
    signs: Sequence[int] = (1, -1),
    max_nodes: int | None = None,
    time_limit: float = math.inf,
) -> Priced:
    """Maximise f(J, C) = max(f+, f-) - c(|J| + |C|), equation (27), over all monomials of order at most ``max_order``.

    Parameters
    ----------
    data : Attributes
        The 0/1 observations and their labels.
    weight : array-like of shape (M,)
        Non-negative w.
    pairs : Pairs, optional
        Pair rewards v.
    max_order : int, optional
        K; any order if None.
    order_cost : sequence of K + 1 floats, optional
        c(0), ..., c(K); zero if None.
    n_columns : int
        At most so many monomials, of different values within a sign, are returned.
    n_proved : int
        The first ``n_proved`` of them are proved to be the best; the others are good ones met on the way.
    threshold : float
        Only monomials of value above it are sought.
    signs : sequence of {1, -1}
        Which of f+ and f- are admitted.
    max_nodes, time_limit
        Limits; when they stop the search, ``bound`` covers what was not searched.
    """
    weight = np.asarray(weight, dtype=np.float64)
    if weight.size and weight.min() < 0:
        raise ValueError("Pricing needs non-negative weights.")
    order = data.n_attributes if max_order is None else min(max_order, data.n_attributes)
    costs = np.zeros(order + 1) if order_cost is None else np.asarray(order_cost, dtype=np.float64)[: order + 1]
    deadline = now() + time_limit
    closes = order == data.n_attributes and n_proved == 1 and not np.ptp(costs)
    shortest = n_proved == 1 and not closes and bool((np.diff(costs) >= 0).all())
    if order <= 2 and not closes and max_nodes is None:
        has_pairs = pairs is not None and pairs.value.size > 0
        if shortest and not has_pairs and data.chains.work(order) <= _CHAINS_WORK:
            return _best_of_chains(data, weight, costs, signs, threshold, n_columns)
        if _work(data, pairs, order) <= _ALL_PAIRS_WORK:
            return _value_all(data, weight, pairs, costs, signs, shortest, threshold, n_columns)
    bound, floor, nodes, exact = threshold, -math.inf, 0, True
    found: list[tuple[float, Monomial]] = []
    tables: tuple[NDArray, NDArray] | None = None
    for sign in signs:
        literals, value, n_gain = data.rows(sign, weight, pairs)
        conflict = data.redundant if shortest else data.opposite
        is_closing, least = closes and n_gain > 0, max(threshold, floor)
        tree = MonomialTree(literals, value, n_gain, conflict, costs, is_closing, least, n_columns)
        if tables is not None and pairs is None:
            tree.tables = tables[::-1]
        tree.search(n_proved, math.inf if max_nodes is None else max_nodes - nodes, deadline)
        nodes, tables = nodes + tree.n_nodes, tree.tables
        exact &= tree.is_exhausted
        bound = max(bound, tree.open_bound)
        found = _first(found + tree.found(sign), n_columns)
        floor = found[n_proved - 1][0] if len(found) >= n_proved else -math.inf
    return _priced(found, bound, nodes, exact)


def _different(values: NDArray, threshold: float, tolerance: float, n_columns: int) -> list[int]:
    """Places of the largest values above the threshold, of equal ones the first."""
    better = np.flatnonzero(values > threshold + tolerance)
    better = better[np.argsort(-values[better], kind="stable")]
    return better[np.diff(values[better], prepend=np.inf) < -tolerance][:n_columns].tolist()


def _first(found: list[tuple[float, Monomial]], n_columns: int) -> list[tuple[float, Monomial]]:
    """The best monomials, of equal ones the shortest."""
    return sorted(found, key=lambda item: (-item[0], item[1].order, item[1]))[:n_columns]


def _priced(found: list[tuple[float, Monomial]], bound: float, n_nodes: int, is_exact: bool) -> Priced:
    """What was found, best first; ``bound`` holds for all others."""
    bound = max(bound, found[0][0]) if found else bound
    return Priced(tuple(m for _, m in found), np.array([f for f, _ in found]), bound, n_nodes, is_exact)


def _work(data: Attributes, pairs: Pairs | None, order: int) -> float:
    """Products of rows and conjunctions to be summed when all monomials are valued."""
    rows = data.n_points + (0 if pairs is None else 4 * pairs.value.size)
    return float(rows) * data.n_attributes ** max(order, 1)


def _value_all(
    data: Attributes,
    weight: NDArray,
    pairs: Pairs | None,
    costs: NDArray,
    signs: Sequence[int],
    shortest: bool,
    threshold: float,
    n_columns: int,
) -> Priced:
    """Value every monomial of order at most 2; of equal values within a sign the first, which is the shortest."""
    K = costs.size - 1
    net = np.bincount(data.point, data.y * weight, minlength=data.n_points).astype(np.float64)
    of_points = data.sums.over_points(net, max(K, 1)) if net.any() else 0.0
    rewards = data.rewards(pairs, max(K, 1))
    first, second = data.admitted(shortest) if K == 2 else (np.empty(0, np.intp),) * 2
    scale = float(np.abs(net).sum()) + (0.0 if pairs is None else float(pairs.value.sum()))
    tolerance = RELATIVE_TOLERANCE * max(scale, np.finfo(float).tiny)
    found: list[tuple[float, Monomial]] = []
    for sign in signs:
        table = np.zeros((2 * data.n_attributes,) * max(K, 1)) + sign * of_points + rewards[sign]
        single = table if K <= 1 else np.diag(table)
        # a literal and its negation do not cover a pair of points that differ in it: the empty conjunction does
        whole = sign * float(net.sum())
        values = [np.array([whole]), single, table[first, second] if K == 2 else single][: K + 1]
        worth = np.concatenate([value - costs[k] for k, value in enumerate(values)])
        for k in _different(worth, threshold, tolerance, n_columns):
            pair = k - 1 - single.size
            conjunction = () if k == 0 else (k - 1,) if pair < 0 else (int(first[pair]), int(second[pair]))
            found.append((float(worth[k]), Monomial(conjunction, sign)))
    return _priced(_first(found, n_columns), threshold, len(signs), True)


def price_greedily(
    data: Attributes,
    weight: NDArray,
    max_order: int,
    order_cost: Sequence[float] | None,
    n_columns: int,
    threshold: float,
    signs: Sequence[int] = (1, -1),
) -> Priced:
    """Find good monomials of any order quickly and without a proof (the bound is inf unless two literals are enough).

    The best conjunctions of two literals are lengthened, each by the literal that helps it most, as often as allowed.
    """
    order = min(max_order, data.n_attributes)
    costs = np.zeros(order + 1) if order_cost is None else np.asarray(order_cost, dtype=np.float64)[: order + 1]
    short = _best_of_chains(data, weight, costs[:3], signs, -math.inf, _BEAM)
    points = data.A[data.representative]
    net = np.bincount(data.point, data.y * weight, minlength=data.n_points).astype(np.float64)
    found = dict(zip(short.monomials, short.values.tolist()))
    for monomial in short.monomials if order > 2 else ():
        while monomial.order < order:
            value, which = data.chains.best(net * monomial.covers(points), None, monomial.sign)
            literal = int(which[np.argmax(value), 0])
            if literal in monomial.literals:
                break
            monomial = Monomial(tuple(sorted((*monomial.literals, literal))), monomial.sign)
            found[monomial] = float(value.max()) - costs[monomial.order]
    best = sorted(found.items(), key=lambda item: (-item[1], item[0].order, item[0]))[:n_columns]
    best = [item for item in best if item[1] > threshold]
    return Priced(tuple(m for m, _ in best), np.array([v for _, v in best]), math.inf, len(found), False)


def _best_of_chains(
    data: Attributes, weight: NDArray, costs: NDArray, signs: Sequence[int], threshold: float, n_columns: int
) -> Priced:
    """Value every monomial of order at most 2 without pair rewards; offer the best of different (pairs of) chains.

    Rules about different features serve a program better than the best cut point with its neighbours.
    """
    net = np.bincount(data.point, data.y * weight, minlength=data.n_points).astype(np.float64)
    tolerance = RELATIVE_TOLERANCE * max(float(np.abs(net).sum()), np.finfo(float).tiny)
    found: list[tuple[float, Monomial]] = []
    for sign in signs:
        worth, literals = [np.array([sign * float(net.sum()) - costs[0]])], [np.full((1, 2), -1, np.int32)]
        for order in range(1, costs.size):
            value, which = data.chains.best(net, data.redundant if order == 2 else None, sign)
            worth.append(value - costs[order])
            literals.append(which)
        values, conjunctions = np.concatenate(worth), np.vstack(literals)
        for k in _different(values, threshold, tolerance, n_columns):
            found.append((float(values[k]), Monomial(tuple(sorted(int(l) for l in conjunctions[k] if l >= 0)), sign)))
    return _priced(_first(found, n_columns), threshold, len(signs), True)
