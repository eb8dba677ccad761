"""Matrix products with a radius near 2^-85: slices of 21 bits, whose products add up in float64 without any rounding.

After Ozaki, Ogita, Oishi and Rump, Error-free transformations of matrix multiplication by using fast routines of matrix
multiplication and its applications (2012). Some twenty times the cost of the plain product; only for bounds that
rounding would make weak, as with C = 1e8 or features of size 1e8.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..bounds.rounding import UNIT, gamma, sum_error

Array = NDArray[np.float64]

_BITS = 21  # of a slice: two of them multiplied and added over _ROWS rows take 2 * 21 + 10 <= 53 bits
_ROWS = 1 << 10
_LEFT, _RIGHT = 3, 4  # slices of multipliers, which they hold exactly, and of samples
_RANGE = 400  # exponents of two within which no slice or product of slices over- or underflows


class _Total:
    """A sum of arrays as high + low, with a bound on its error: the exact roundings of high are added up in low."""

    def __init__(self, shape: tuple[int, int]) -> None:
        self.high, self.low, self.size = np.zeros(shape), np.zeros(shape), np.zeros(shape)
        self.count = 0

    def add(self, term: Array) -> None:
        total = self.high + term
        error = sum_error(self.high, term, total)
        self.high, self.low, self.size, self.count = total, self.low + error, self.size + np.abs(error), self.count + 1

    @property
    def radius(self) -> Array:
        return 2.0 * gamma(self.count + 4) * self.size


def sharp_product(
    D: Array, X: NDArray | sp.csr_matrix, rows: NDArray[np.intp] | None, peaks: Array
) -> tuple[Array, Array, Array] | None:
    """Return high, low, radius (m, p) with |sum_i D_ij x_i - high_j - low_j| <= radius_j; None beyond the safe range.

    Parameters
    ----------
    D : ndarray of shape (n, m)
        On the grid of :mod:`psilearn.core.bounds.duality`: three slices hold it exactly.
    X : ndarray or CSR matrix
        Its rows are x_i, or those of them that ``rows`` names in the order of D.
    peaks : ndarray of shape (p,)
        Upper bounds on the absolute values of the columns of X.
    """
    m, sizes = D.shape[1], np.abs(D).max(axis=0, initial=0.0)
    e_rows, e_columns = np.frexp(sizes)[1], np.frexp(peaks)[1]
    if max(np.abs(e_rows).max(initial=0), np.abs(e_columns).max(initial=0)) > _RANGE:
        return None
    total = _Total((m, peaks.size))
    for first in range(0, D.shape[0], _ROWS):
        part = slice(first, first + _ROWS)
        block = (X[part] if rows is None else X[rows[part]]).astype(np.float64)
        left = np.hstack(_slices(D[part], e_rows, _LEFT))
        for piece in _sliced(block, e_columns):
            product = np.asarray(piece.T @ left).T
            for j in range(_LEFT):
                total.add(product[j * m : (j + 1) * m])
    # Slices of x_i leave out at most 2^(e - 85).
    reach = np.outer(np.abs(D).sum(axis=0) * (1.0 + gamma(D.shape[0])), np.ldexp(1.0, e_columns - 85))
    return total.high, total.low, (total.radius + reach) * (1.0 + 8.0 * UNIT)


def _sliced(block: Any, exponent: NDArray[np.integer]) -> list[NDArray | sp.csr_matrix]:
    if not sp.issparse(block):
        return list(_slices(block, exponent, _RIGHT))
    parts = _slices(block.data, exponent[block.indices], _RIGHT)
    return [sp.csr_matrix((part, block.indices, block.indptr), shape=block.shape) for part in parts]


def _slices(x: Array, exponent: NDArray[np.integer], count: int) -> list[Array]:
    """Return arrays that add up to x but for 2^(exponent - 21 count - 1), multiples of 2^(exponent - 21 j), j = 1, 2...

    Needs |x| <= 2^exponent. Adding and subtracting 3/2 2^52 quanta rounds to a multiple of the quantum (Veltkamp,
    Dekker); what is left is a float64 without rounding.
    """
    parts = []
    for j in range(1, count + 1):
        anchor = np.ldexp(1.5, exponent - j * _BITS + 52)
        part = (x + anchor) - anchor
        parts.append(part)
        x = x - part
    return parts
