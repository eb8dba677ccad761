"""From a relaxation to an integral model: an upper bound on the integer optimum, and what its code length promises."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ...core.result import Status
from ...engines.highs import HighsSession
from ..observations import Observations
from ..pricing.oracles import Column
from .exact import IntegerModel, evaluate


def refit(data: Observations, columns: list[Column], rho: float) -> NDArray[np.float64]:
    """Weights lambda that minimise sum_i m_i xi_i in (15) with continuous xi over the given classifiers."""
    m = data.y.size
    session = HighsSession()
    session.add_columns(np.zeros(len(columns)), 0.0, 1.0)
    session.add_columns(data.weight, 0.0, np.inf)
    H = np.column_stack([column.h for column in columns])
    session.add_rows(np.hstack([data.y[:, None] * H, (1.0 + rho) * np.eye(m)]), rho, np.inf)
    session.add_rows(np.r_[np.ones(len(columns)), np.zeros(m)], 1.0, 1.0)
    weights = np.clip(session.solve().x[: len(columns)], 0.0, None)
    weights[weights <= 1e-9] = 0.0
    return weights / weights.sum()


def round_relaxation(
    data: Observations, columns: list[Column], weights: NDArray, rho: float, lower_bound: float = -math.inf
) -> IntegerModel:
    """Round a relaxed solution of (18) to the best integral model found: the upper bound of (23).

    The classifiers are taken in the order of their weights; for each prefix the renormalised weights and, at the best
    prefix, the refitted ones are evaluated exactly in (15).
    """
    order = [int(k) for k in np.argsort(-weights, kind="stable") if weights[k] > 0]
    best_value, best = math.inf, np.zeros(len(columns))
    best_size = 1
    for size in range(1, len(order) + 1):
        kept = np.zeros(len(columns))
        kept[order[:size]] = weights[order[:size]]
        kept /= kept.sum()
        value = evaluate(data, columns, kept, rho)[0]
        if value < best_value:
            best_value, best, best_size = value, kept, size
    polished = np.zeros(len(columns))
    polished[order[:best_size]] = refit(data, [columns[k] for k in order[:best_size]], rho)
    if evaluate(data, columns, polished, rho)[0] < best_value:
        best = polished
    value, mistakes = evaluate(data, columns, best, rho)
    return IntegerModel(columns, best, mistakes, value, lower_bound, Status.ITERATION_LIMIT)


def code_length(orders: Sequence[int], n_mistakes: float, n_attributes: int, max_order: int, n: float) -> float:
    """Bits of the two-part code: (6) for monomials of these orders, plus log2 M for each mistake, all rounded up."""
    bits_of_index = math.ceil(math.log2(max(n, 2.0)))
    tables = math.ceil(math.log2(max(max_order, 1)))
    model = sum(tables + math.ceil(k + math.log2(math.comb(n_attributes, k))) for k in orders)
    return model + (len(orders) + 1) * bits_of_index + n_mistakes * bits_of_index


def risk_bound(bits: float, n: float, delta: float = 0.05) -> float:
    """Risk bound (5), with its sign corrected; 1 where it says nothing.

    With probability 1 - delta the error rate on as many new observations is at most (code length + ln(1 / delta)) / M.
    """
    if not 0 < delta < 1:
        raise ValueError(f"delta must lie in (0, 1), got {delta!r}.")
    return min(1.0, (bits + math.log(1.0 / delta)) / n)
