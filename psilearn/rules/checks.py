"""Refusals shared by the rule learners: each names the parameter, what was given, and what to give instead."""

from __future__ import annotations

import math
from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray


def seconds(time_limit: Any) -> float:
    """The time limit in seconds, inf for None."""
    if time_limit is None:
        return math.inf
    if not isinstance(time_limit, Real) or not float(time_limit) > 0:
        raise ValueError(f"time_limit must be a positive number of seconds or None, got {time_limit!r}.")
    return float(time_limit)


def count(name: str, value: Any, least: int) -> int:
    """A whole number not below ``least``."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        kind = "non-negative" if least == 0 else f"at least {least}"
        raise ValueError(f"{name} must be a whole number, {kind}, got {value!r}.")
    return int(value)


def tolerance(value: Any) -> float:
    """A finite tolerance that is not negative."""
    if not isinstance(value, Real) or not 0 <= float(value) < math.inf:
        raise ValueError(f"tol must be a number that is not negative, such as 1e-6, got {value!r}.")
    return float(value)


def positive_costs(costs: Iterable[float]) -> list[float]:
    """Costs c(0), c(1), ... of rules, all positive and finite."""
    costs = [float(cost) for cost in costs]
    if not all(0 < cost < math.inf for cost in costs):
        raise ValueError(
            f"costs must give every rule a positive, finite cost (a mistake costs 1), got {costs} for the orders "
            f"0, 1, ...; use a small number such as 0.01 if rules are to be almost free."
        )
    return costs


def sample_weights(sample_weight: ArrayLike | None, n: int) -> NDArray[np.float64]:
    """Weights of n observations: finite, not negative, ones if None."""
    weight = np.ones(n) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    if weight.shape != (n,):
        raise ValueError(f"sample_weight must hold one number for each of the {n} rows, got shape {weight.shape}.")
    if not np.isfinite(weight).all() or (weight < 0).any():
        raise ValueError("sample_weight must be finite and non-negative; give weight 0 to rows that do not count.")
    return weight


def labels(y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """The different labels in order, and the place of each label among them."""
    try:
        return np.unique(y, return_inverse=True)
    except TypeError:
        kinds = sorted({type(label).__name__ for label in y.tolist()})
        raise ValueError(f"The labels in y must be of one type, got {' and '.join(kinds)}.") from None
