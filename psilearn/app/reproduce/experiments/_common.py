"""What the experiments share: random streams, tuning by a second sample, and measures of a fitted model."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

COSTS = tuple(float(C) for C in 10.0 ** np.arange(-3.0, 3.01, 0.5))
"""C from 1e-3 to 1e3 in half decades: the papers name the range, not the grid."""

COARSE_COSTS = COSTS[::2]
"""The same range in whole decades, for methods that solve an integer program at every C."""

ZERO = 1e-6
"""A coefficient below this, relative to the largest, counts as zero."""


class Sample(NamedTuple):
    """Features and labels."""

    X: NDArray
    y: NDArray


def streams(seed: int, n: int) -> list[np.random.Generator]:
    """Return n independent generators, the same ones for the same seed."""
    return [np.random.default_rng(child) for child in np.random.SeedSequence(seed).spawn(n)]


def samples(make: Callable[..., Any], sizes: Sequence[int], seed: int, **options: Any) -> list[Sample]:
    """Draw one independent sample per size (training, tuning, testing) from a generator."""
    return [Sample(*make(n, random_state=rng, **options)) for n, rng in zip(sizes, streams(seed, len(sizes)))]


def fit(model: Any, sample: Sample) -> Any:
    """Fit and return the model. Unfinished fits are counted by `is_proved`, so their warning would only be noise."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(sample.X, sample.y)


def error(model: Any, sample: Sample) -> float:
    """Share of wrong predictions."""
    return float(np.mean(model.predict(sample.X) != sample.y))


def fits(build: Callable[[float], Any], train: Sample, Cs: Iterable[float] = COSTS) -> list[Any]:
    """Fit one model per C."""
    return [fit(build(C), train) for C in Cs]


def best(models: Sequence[Any], judge: Sample, last: bool = False) -> Any:
    """Return the model with the smallest error on a sample; of equals the first (smallest C) or the last."""
    errors = np.array([error(model, judge) for model in models])
    ties = np.flatnonzero(errors == errors.min())
    return models[ties[-1 if last else 0]]


def margins(model: Any, sample: Sample) -> NDArray:
    """Functional margins: y f(x) for two classes, min_{j != y} (f_y - f_j) for more."""
    scores = np.asarray(model.decision_function(sample.X))
    position = np.searchsorted(model.classes_, sample.y)
    if scores.ndim == 1:
        return np.where(position == 1, scores, -scores)
    rows = np.arange(len(scores))
    own = scores[rows, position]
    others = scores.copy()
    others[rows, position] = -np.inf
    return own - others.max(axis=1)


def count_zeros(model: Any) -> int:
    """Number of zero coefficients."""
    size = np.abs(model.coef_)
    return int(np.sum(size <= ZERO * max(size.max(), ZERO)))


def is_zero(model: Any) -> float:
    """1 if every coefficient is zero: the fit is a constant."""
    return float(np.abs(model.coef_).max() <= ZERO)


def is_proved(model: Any, gap: float = 1e-3) -> float:
    """1 if the objective is within a relative gap of a valid lower bound."""
    return float(model.gap_ <= gap)


def standardized(train: Sample, *others: Sample) -> list[Sample]:
    """Scale all samples by the mean and standard deviation of the first."""
    centre, scale = train.X.mean(axis=0), train.X.std(axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    return [Sample((sample.X - centre) / scale, sample.y) for sample in (train, *others)]
