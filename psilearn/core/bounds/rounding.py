"""Rounding of float64, bounded: sums, products and matrix products with proved errors, and steps to the safe side.

A correctly rounded operation returns (a op b)(1 + d), |d| <= u = 2^-53. A sum of n products, in any order and with or
without fused operations, differs from the true one by at most gamma_n sum |a_i b_i|, gamma_n = n u / (1 - n u)
(Higham, Accuracy and Stability of Numerical Algorithms, 2002, sections 3.1 and 4.2). Underflow adds at most half the
smallest subnormal number per product.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]

UNIT = 2.0**-53
TINY = 5e-324  # the smallest subnormal number, twice what one product can lose by underflow
_SAFE = 1e-270, 1e270  # products in this range, of factors in this range, split without underflow or overflow
_SPLITTER = 2.0**27 + 1.0
_EXACT_SUM = 1 << 12  # terms up to which a sum is taken exactly: some 0.1 ms
_ROW_BITS = 30


def gamma(n: float) -> float:
    """Return gamma_n = n u / (1 - n u), rounded up."""
    return n * UNIT / (1.0 - n * UNIT) * (1.0 + 8.0 * UNIT)


def sum_error(a: Array, b: Array, total: Array) -> Array:
    """Return (a + b) - total, exactly, where total is the rounded a + b (Knuth's TwoSum)."""
    shadow = total - a
    return (a - (total - shadow)) + (b - shadow)


def difference_below(a: Array, b: Array) -> Array:
    """Return the largest float64 not above a - b, or its lower neighbour; a may be infinite."""
    total = a - b
    with np.errstate(invalid="ignore"):
        return np.where(sum_error(a, -b, total) < 0, np.nextafter(total, -np.inf), total)


def product_below(a: ArrayLike, b: ArrayLike) -> Array:
    """Return a float64 not above a b for a, b >= 0: the rounded product or its lower neighbour, 0 near underflow."""
    a, b = np.broadcast_arrays(np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64))
    product = a * b
    low, high = _SAFE
    safe = (product > low) & (product < high) & (np.maximum(a, b) < high) & (np.minimum(a, b) > low)
    with np.errstate(over="ignore", invalid="ignore"):
        error = product_error(a, b, product)
    below = np.where(error < 0, np.nextafter(product, 0.0), product)
    # Elsewhere the relative error u of the rounded product is taken off, and what might be subnormal is dropped.
    with np.errstate(over="ignore", invalid="ignore"):
        rough = np.where((product > np.finfo(float).tiny) & np.isfinite(product), product * (1.0 - 4.0 * UNIT), 0.0)
    return np.where(safe, below, rough)


def product_error(a: Array, b: Array, product: Array) -> Array:
    """Return a b - product, exactly, where product is the rounded a b (Dekker's TwoProduct, Veltkamp's split)."""
    a_high, b_high = _high_half(a), _high_half(b)
    a_low, b_low = a - a_high, b - b_high
    return ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low


def _high_half(x: Array) -> Array:
    scaled = _SPLITTER * x
    return scaled - (scaled - x)


def integer_sum(x: NDArray[Any]) -> int:
    """Return the exact sum of an array of integers of at most 2^53 in absolute value (held as float64 or int64)."""
    whole = np.asarray(x).astype(np.int64)
    high = whole >> _ROW_BITS
    return (int(high.sum()) << _ROW_BITS) + int((whole - (high << _ROW_BITS)).sum())


def total_of(x: Array) -> tuple[float, float]:
    """Return the sum of all entries and a bound on its error; short sums are exact but for one rounding."""
    x = np.ravel(x)
    if x.size <= _EXACT_SUM:
        total = math.fsum(x.tolist())
        return total, UNIT * abs(total) + TINY
    width = math.isqrt(x.size)
    whole = x.size // width * width
    total = float(x[:whole].reshape(-1, width).sum(axis=1).sum()) + float(x[whole:].sum())
    steps = 2 * width + 8  # additions on the way of one term
    return total, gamma(steps + 4) * float(np.abs(x).sum()) * (1.0 + gamma(x.size))


def total_above(x: Array) -> float:
    """Return a number not below the sum of all entries."""
    total, error = total_of(x)
    return math.nextafter(total + error, math.inf)


def chunk_rows(n: int) -> int:
    """Rows per chunk of a sum over n rows that is taken by chunks: it makes 2 sqrt(n) roundings of n."""
    return max(256, math.isqrt(n))


def chunk_roundings(n: int) -> int:
    """Additions on the way of one term of a sum over n rows taken by chunks, counted generously."""
    rows = chunk_rows(n)
    return min(n, rows) + -(-n // rows) + 4
