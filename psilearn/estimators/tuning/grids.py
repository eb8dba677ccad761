"""Which values are tried, and which of two candidates is the simpler model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import ParameterGrid

from ...core.spaces.gram import scale_of
from ..base import MarginEstimator
from ..margin import TruncatedHingeClassifier
from ..rules import L0BoostClassifier, LPBoostClassifier

#: C of linear functions, for features of variance 1, and C of kernels, whose Gram matrix has 1 on its diagonal. A step
#: of 10 finds the right order of magnitude; held-out errors differ little within it.
LINEAR_CS = (0.001, 0.01, 0.1, 1.0, 10.0, 100.0)
KERNEL_CS = (0.1, 1.0, 10.0, 100.0)
#: gamma in units of 1 / (d Var X).
GAMMAS = (0.1, 0.3, 1.0, 3.0)
#: nu of LP-Boost, largest and so shortest model first; orders of both boosters.
NUS = (0.7, 0.5, 0.4, 0.3, 0.2, 0.1, 0.05)
ORDERS = (1, 2)

#: Parameters that measure how complex a model is: +1 where a smaller value is the simpler model, -1 where a larger one
#: is. The first that differs decides.
COMPLEXITY = {"max_order": 1, "max_rules": 1, "nu": -1, "kappa": -1, "gamma": 1, "degree": 1, "C": 1}

Grid = Mapping[str, Sequence[Any]]


def default_grid(estimator: Any, X: Any, sample_weight: NDArray[np.float64] | None) -> Grid:
    """Return the values that ``param_grid="auto"`` tries for one of our classifiers on these samples."""
    if isinstance(estimator, LPBoostClassifier):
        return {"max_order": ORDERS, "nu": NUS}
    if isinstance(estimator, L0BoostClassifier):
        return {"max_order": ORDERS}
    if not isinstance(estimator, MarginEstimator):
        raise ValueError(
            f"param_grid='auto' knows no values for {type(estimator).__name__}; give a dict of lists, for instance "
            "param_grid={'C': [0.1, 1, 10]}."
        )
    grid: dict[str, Sequence[Any]] = {}
    if isinstance(estimator, TruncatedHingeClassifier) and isinstance(estimator.s, str):
        grid["s"] = ("auto", 0.0)
    is_linear = isinstance(estimator.kernel, str) and estimator.kernel == "linear"
    scale = scale_of("scale", _as_matrix(X), sample_weight) if estimator.kernel != "precomputed" else 1.0
    if estimator.kernel in ("rbf", "poly", "sigmoid") and isinstance(estimator.gamma, str):
        grid["gamma"] = tuple(factor * scale for factor in GAMMAS)
    if is_linear:
        variance = 1.0 / (scale * X.shape[1])
        # ||w||^2 scales with 1 / variance, ||w||_1 with its root; sum_j |w_j| / |w0_j| does not, but w0 must not be 0.
        power = {"l2": 1.0, "adaptive-l1": float(variance < 1)}.get(estimator.penalty, 0.5)
        unit = 10.0 ** -np.round(power * np.log10(variance))
        grid["C"] = tuple(float(C * unit) for C in LINEAR_CS)
    else:
        grid["C"] = KERNEL_CS
    return grid


def _as_matrix(X: Any) -> Any:
    return X if hasattr(X, "dtype") else np.asarray(X, dtype=np.float64)


def candidates_of(param_grid: Any) -> list[dict[str, Any]]:
    """Return all combinations of a grid (or a list of grids), the simplest model first."""
    try:
        candidates = list(ParameterGrid(param_grid))
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"param_grid must be 'auto' or a dict from parameters to lists of values, got {param_grid!r}."
        ) from error
    if not candidates:
        raise ValueError("param_grid holds no combination of values.")
    return sorted(candidates, key=complexity)  # stable: what is equally complex stays in the order given


def complexity(candidate: dict[str, Any]) -> tuple[float, ...]:
    """Return a sort key that is smaller for the simpler model."""
    values = {name.rpartition("__")[2]: value for name, value in candidate.items()}
    return tuple(sign * _number(values.get(name)) for name, sign in COMPLEXITY.items())


def _number(value: Any) -> float:
    return float(value) if isinstance(value, (int, float, np.number)) else 0.0
