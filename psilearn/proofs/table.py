"""The data as the checker sees them, and numbers rounded in a known direction."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import scipy.sparse as sp

from . import check as checker


class ProofError(ValueError):
    """No proof of this fit can be written; the text says why."""


@dataclass
class Table:
    """The data as the checker sees them."""

    rows: list[list[float]]
    labels: list[str]
    weights: list[float]
    about: dict[str, Any]


def table_of(X: Any, y: Any, sample_weight: Any, columns: dict | None) -> Table:
    """Turn arrays, data frames or sparse matrices into the checker's rows, labels and weights."""
    X = X.toarray() if sp.issparse(X) else np.asarray(X)
    rows = np.asarray(X, dtype=np.float64)
    labels = [checker.label_text(label) for label in np.asarray(y).tolist()]
    weights = np.ones(len(labels)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    if rows.ndim != 2 or weights.shape != (len(labels),) or len(labels) != len(rows):
        raise ValueError(f"X of shape {rows.shape}, {len(labels)} labels and {weights.shape} weights do not agree.")
    about = {"features": None, "target": None, "weight": None} | (columns or {})
    table = Table(rows.tolist(), labels, weights.tolist(), about)
    about |= {"sha256": checker.data_hash(table.rows, labels, table.weights), "rows": len(rows)}
    return table


def rounded_down(value: Fraction) -> float:
    """Return the largest float that is at most ``value``."""
    near = float(value)
    return near if Fraction(near) <= value else math.nextafter(near, -math.inf)


def rounded_up(value: Fraction) -> float:
    """Return the smallest float that is at least ``value``."""
    return -rounded_down(-value)
