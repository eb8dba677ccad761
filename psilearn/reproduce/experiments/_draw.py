"""Drawing shared by the figures: no global state, nothing imported before a figure is drawn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

MARKERS = "osD^v*"


def panels(n_rows: int = 1, n_columns: int = 1, size: float = 3.6, ratio: float = 1.2) -> tuple[Any, NDArray]:
    """Return a figure and a two-dimensional array of its axes."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(ratio * size * n_columns, size * n_rows), layout="constrained")
    return figure, figure.subplots(n_rows, n_columns, squeeze=False)


def scatter(axis: Any, X: NDArray, y: NDArray, size: float = 18.0) -> None:
    """Plot the points of each class with a marker of its own."""
    for i, label in enumerate(np.unique(y)):
        chosen = y == label
        axis.scatter(*X[chosen, :2].T, s=size, marker=MARKERS[i % len(MARKERS)], alpha=0.7, label=f"class {label:g}")


def lattice(low: Sequence[float], high: Sequence[float], n: int = 200) -> tuple[NDArray, NDArray, NDArray]:
    """Return the two coordinate arrays of a grid and its points as rows."""
    first, second = np.meshgrid(np.linspace(low[0], high[0], n), np.linspace(low[1], high[1], n))
    return first, second, np.column_stack([first.ravel(), second.ravel()])


def boundary(
    axis: Any, rule: Callable[[NDArray], NDArray], low: Sequence[float], high: Sequence[float], **style: Any
) -> None:
    """Draw where a rule (points -> class scores of shape (n, k)) changes its mind."""
    contours(axis, rule(lattice(low, high)[2]), low, high, **style)


def contours(axis: Any, scores: NDArray, low: Sequence[float], high: Sequence[float], **style: Any) -> None:
    """Draw where the leading class changes, from class scores on a square lattice."""
    n = round(len(scores) ** 0.5)
    first, second, _ = lattice(low, high, n)
    for j in range(scores.shape[1]):
        lead = scores[:, j] - np.delete(scores, j, axis=1).max(axis=1)
        axis.contour(first, second, lead.reshape(n, n), levels=[0.0], **style)


def linear_scores(coef: NDArray, intercept: NDArray) -> Callable[[NDArray], NDArray]:
    """Return points -> class scores of a linear model, two columns for a two-class model."""

    def scores(points: NDArray) -> NDArray:
        f = points @ np.atleast_2d(coef).T + np.atleast_1d(intercept)
        return np.hstack([-f, f]) if f.shape[1] == 1 else f

    return scores
