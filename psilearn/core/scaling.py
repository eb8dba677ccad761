"""Centred and scaled coordinates of linear functions, in which solvers are well conditioned.

    f_j(x) = <w_j, x> + b_j = <v_j, (x - mean) / scale> + v_j0,      v_j = w_j * scale,   v_j0 = b_j + <w_j, mean>

Any mean and any positive scale are a valid change of coordinates: estimates from some of the samples will do.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .penalties import Penalty

Array = NDArray[np.float64]

#: Standard deviation below which a column is constant but for rounding, relative to its mean.
_CONSTANT = 1e-12


@dataclass(frozen=True, eq=False)
class Scaling:
    """The change of coordinates (W, b) <-> V, V of shape (m, p + 1) with the intercepts last.

    Parameters
    ----------
    mean, scale : ndarray of float64, shape (p,)
        What is subtracted from, and divides, every feature; scales are positive.
    """

    mean: Array
    scale: Array

    @classmethod
    def of(cls, X: NDArray | sp.csr_matrix, rows: int | None = None) -> Scaling:
        """Estimate means and standard deviations, on about ``rows`` dense samples (default: on all).

        Sparse columns are divided by their root mean square and not centred, which would fill them.
        """
        if not isinstance(X, np.ndarray):
            square = np.bincount(X.indices, weights=X.data.astype(np.float64) ** 2, minlength=X.shape[1])
            mean, scale = np.zeros(X.shape[1]), np.sqrt(square / X.shape[0])
        else:
            some = X[:: max(1, X.shape[0] // (rows or X.shape[0]))].astype(np.float64)
            mean, scale = some.mean(axis=0), some.std(axis=0)
        scale = np.where(scale > _CONSTANT * np.abs(mean), scale, 0.0)
        return cls(mean, np.where(scale > 0, scale, np.maximum(np.abs(mean), 1.0)))

    def apply(self, X: NDArray) -> Array:
        """Return (X - mean) / scale."""
        return (X - self.mean) / self.scale

    def coefficients(self, V: Array) -> tuple[Array, Array]:
        """Return W (m, p) and b (m,) of V, which may be flat."""
        V = V.reshape(-1, self.mean.size + 1)
        W = V[:, :-1] / self.scale
        return W, V[:, -1] - W @ self.mean

    def from_coefficients(self, W: Array, b: Array) -> Array:
        """Return V of W and b."""
        return np.column_stack([W * self.scale, b + W @ self.mean])

    def gradient(self, gW: Array, gb: Array) -> Array:
        """Turn a gradient in (W, b) into one in V."""
        return np.column_stack([(gW - np.outer(gb, self.mean)) / self.scale, gb])

    def penalty(self, penalty: Penalty, m: int) -> tuple[Array, Array]:
        """Return q and l1, (m, p + 1), with 1/2 sum q V^2 + sum l1 |V| = P(W); intercepts are free."""
        shape, free = (m, self.scale.size), np.zeros((m, 1))
        q = np.broadcast_to(penalty.l2 / self.scale**2, shape)
        return np.hstack([q, free]), np.hstack([penalty.l1_array(shape) / self.scale, free])
