"""The explorer as a part of a page and as a page of its own; the work is done by ``explorer.js`` in the browser."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..pages import asset, data_script, page

#: More points than this make dragging slow and the picture crowded.
MAX_POINTS = 160

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


def explorer_html(data: dict[str, Any], name: str = "explorer") -> str:
    """Return the explorer as a part of a page that also contains :func:`psilearn.pages.asset` explorer.js."""
    return f'<div class="explorer" data-from="{name}-data"></div>{data_script(f"{name}-data", data)}'


def explorer_page(data: dict[str, Any] | None = None) -> str:
    """Return the explorer as one self-contained HTML file."""
    body = (
        f"<header><h1>Drag a mislabelled point</h1>{_INTRO}</header><main>{explorer_html(data or two_clouds())}</main>"
    )
    return page("Drag a mislabelled point — psilearn", body, [asset("explore", "explorer.js")])
