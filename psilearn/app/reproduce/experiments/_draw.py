"""Drawing shared by the figures: no global state, nothing imported before a figure is drawn."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import binary_dilation, zoom

from ..summary import Summary

MARKERS = "osD^v*"

FINE = 400
"""Points per axis to which a coarse lattice of scores is interpolated before a boundary is drawn."""


def panels(n_rows: int = 1, n_columns: int = 1, size: float = 3.6, ratio: float = 1.2) -> tuple[Any, NDArray]:
    """Return a figure and a two-dimensional array of its axes."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(ratio * size * n_columns, size * n_rows), layout="constrained")
    return figure, figure.subplots(n_rows, n_columns, squeeze=False)


def curves(summary: Summary, x: str, lines: Mapping[str, str], styles: Sequence[str], **words: Any) -> Any:
    """Return a figure of measures over ``x``; ``lines`` are their labels by measure, ``words`` those of the axes."""
    figure, axes = panels()
    for (measure, label), style in zip(lines.items(), styles):
        axes[0, 0].plot(summary.mean({}, x), summary.mean({}, measure), style, label=label)
    axes[0, 0].set(**words)
    axes[0, 0].legend()
    return figure


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
    """Draw where the leading class changes, from class scores on a square lattice.

    Every pair of classes has its own line, drawn once and only where these two lead: a dashed line drawn from both
    sides would look solid.
    """
    n = round(len(scores) ** 0.5)
    fine = max(1, FINE // n)
    table = zoom(scores.reshape(n, n, -1), (fine, fine, 1), order=1, grid_mode=False)
    first, second, _ = lattice(low, high, len(table))
    for i, j in combinations(range(table.shape[2]), 2):
        leading = np.maximum(table[..., i], table[..., j]) >= table.max(axis=2)
        near = binary_dilation(leading, iterations=2)
        gap = np.ma.array(table[..., i] - table[..., j], mask=~near)
        if gap.min() < 0.0 < gap.max():
            axis.contour(first, second, gap, levels=[0.0], **style)


def legend_below(figure: Any, axis: Any, n_columns: int = 4) -> None:
    """Put an axis's legend under the picture, where it hides no point."""
    figure.legend(*axis.get_legend_handles_labels(), loc="outside lower center", ncols=n_columns, fontsize=8)


def linear_scores(coef: NDArray, intercept: NDArray) -> Callable[[NDArray], NDArray]:
    """Return points -> class scores of a linear model, two columns for a two-class model."""

    def scores(points: NDArray) -> NDArray:
        f = points @ np.atleast_2d(coef).T + np.atleast_1d(intercept)
        return np.hstack([-f, f]) if f.shape[1] == 1 else f

    return scores
