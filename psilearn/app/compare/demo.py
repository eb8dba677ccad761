"""The embedded default: Wisconsin diagnostic breast cancer data."""

from __future__ import annotations

from ..tables import Understanding, understand


def breast_cancer() -> Understanding:
    """Return scikit-learn's copy of the Wisconsin diagnostic breast cancer data (569 tumours, 30 measurements)."""
    from sklearn.datasets import load_breast_cancer

    bunch = load_breast_cancer(as_frame=True)
    frame = bunch.data.assign(diagnosis=bunch.target.map(dict(enumerate(map(str, bunch.target_names)))))
    return understand(frame, "diagnosis")
