"""The explorer as a part of a page and as a page of its own; the work is done by ``explorer.js`` in the browser."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..compare.tuning import thin
from ..pages import asset, data_script, page
from ..words import shown

#: More points than this make dragging slow and the picture crowded.
MAX_POINTS = 160
#: Rows from which principal components are computed.
SVD_ROWS = 2000

_INTRO = """
<p class="lead">Every line is a classifier. The <b class="ink-svm">SVM</b> pays for a mistake in proportion to how wrong
it is, so one far-off point with the wrong label can turn it. <b class="ink-psi">ψ-learning</b> counts the mistake once,
and stops caring. Drag a point and see.</p>
"""


def two_clouds(seed: int = 0, n: int = 40) -> dict[str, Any]:
    """Return the default data of the explorer: two clouds and one point on the wrong side."""
    rng = np.random.default_rng(seed)
    labels = np.resize([1, -1], n)
    Z = rng.normal(scale=0.55, size=(n, 2)) + labels[:, None] * np.array([1.05, 0.75])
    Z = np.vstack([Z, [[2.6, -0.6]]])
    return as_data(Z, np.r_[labels, -1], ("first measurement", "second measurement"), ("A", "B"), 1.0)


def as_data(
    Z: NDArray[np.float64], labels: NDArray, axes: Sequence[str], classes: Sequence[str], C: float
) -> dict[str, Any]:
    """Return what ``explorer.js`` reads: points (x, y, label in {-1, 1}), axis names, class names and C."""
    points = [[round(float(x), 4), round(float(y), 4), int(s)] for (x, y), s in zip(Z, labels)]
    return {"points": points, "axes": list(axes), "classes": list(classes), "C": C}


def as_plane(X: NDArray[np.float64], y: NDArray, names: NDArray, seed: int = 0) -> dict[str, Any] | None:
    """Return rows of the two largest classes in two dimensions: two features, or the first two principal components.

    At most :data:`MAX_POINTS` rows are kept, chosen at random; None if there is one feature only.
    """
    if X.shape[1] < 2:
        return None
    classes, counts = np.unique(y, return_counts=True)
    pair = np.sort(classes[np.argsort(-counts, kind="stable")[:2]])
    rows = np.flatnonzero(np.isin(y, pair))
    rows = rows[thin(y[rows], MAX_POINTS, seed)[0]]
    if X.shape[1] == 2:
        Z, axes = X[rows], [shown(n) for n in names]
    else:
        mean = X.mean(axis=0)
        _, spread, V = np.linalg.svd(X[thin(y, SVD_ROWS, seed)[0]] - mean, full_matrices=False)
        Z = (X[rows] - mean) @ V[:2].T
        share = 100 * spread[:2] ** 2 / np.sum(spread**2)
        axes = [f"component {i + 1} ({share[i]:.0f}% of the variance)" for i in range(2)]
    scale = np.maximum(Z.std(axis=0), 1e-12)
    return as_data(Z / scale, np.where(y[rows] == pair[1], 1, -1), axes, [shown(c, 30) for c in pair], 1.0)


def explorer_html(data: dict[str, Any], name: str = "explorer") -> str:
    """Return the explorer as a part of a page that also contains :func:`psilearn.app.pages.asset` explorer.js."""
    return f'<div class="explorer" data-from="{name}-data"></div>{data_script(f"{name}-data", data)}'


def explorer_page(data: dict[str, Any] | None = None) -> str:
    """Return the explorer as one self-contained HTML file."""
    body = (
        f"<header><h1>Drag a mislabelled point</h1>{_INTRO}</header><main>{explorer_html(data or two_clouds())}</main>"
    )
    return page("Drag a mislabelled point — psilearn", body, [asset("explore", "explorer.js")])
