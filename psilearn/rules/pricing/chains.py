"""Chains of attributes: each holds only where the one before it holds, as x > 1, x > 2, ... of one feature do.

See :mod:`.chains_jit` for what they are good for.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from . import chains_jit as kernel

Array = NDArray[np.float64]
#: A step of the histograms takes about as long as so many products of a matrix product.
_STEP = 10


class Chains:
    """The attributes of 0/1 rows as chains of neighbouring columns.

    Attributes
    ----------
    start : ndarray of shape (n_chains + 1,)
        The attributes of chain g are ``start[g], ..., start[g + 1] - 1``.
    codes : ndarray of shape (n_chains, n_points)
        How many attributes of each chain hold at each point.
    """

    def __init__(self, points: NDArray) -> None:
        N = points.shape[1]
        is_nested = (points[:, 1:] <= points[:, :-1]).all(axis=0)
        self.start = np.r_[0, np.flatnonzero(~is_nested) + 1, N].astype(np.int64) if N else np.zeros(1, np.int64)
        codes = np.add.reduceat(points, self.start[:-1], axis=1, dtype=np.int32) if N else np.empty((len(points), 0))
        self.codes = np.ascontiguousarray(codes.T.astype(np.int32))

    @property
    def size(self) -> int:
        """Number of chains."""
        return self.start.size - 1

    @property
    def pays(self) -> bool:
        """Whether histograms are quicker than products of matrices."""
        return _STEP * self.size**2 <= int(self.start[-1]) ** 2

    def work(self, order: int) -> float:
        """Steps that valuing all conjunctions of at most ``order`` (1 or 2) literals takes."""
        N, m = int(self.start[-1]), self.codes.shape[1]
        return float(m * self.size + N if order == 1 else m * self.size**2 / 2 + 4 * N**2)

    def sums_of_pairs(self, value: NDArray) -> Array:
        """Sums over the points that have both of two attributes, (N, N)."""
        N = int(self.start[-1])
        out = np.zeros((N, N))
        kernel.sums_of_pairs(self.codes, self.start, np.asarray(value, dtype=np.float64), out)
        return out

    def best(self, value: Array, redundant: NDArray | None, sign: int) -> tuple[Array, NDArray[np.int32]]:
        """Values and literals (-1 where there is none) of the best conjunctions, one of each chain or pair of chains.

        Of one literal if ``redundant`` is None, otherwise of two.
        """
        n = self.size if redundant is None else self.size**2
        best, which = np.full(n, -np.inf), np.full((n, 2), -1, np.int32)
        if redundant is None:
            kernel.best_singles(self.codes, self.start, value, sign, best, which)
        else:
            kernel.best_pairs(self.codes, self.start, value, redundant, sign, best, which)
        return best, which
