"""Functions of a reproducing kernel Hilbert space, f_j(x) = sum_i v_ji K(x_i, x) + b_j, given by the Gram matrix."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class KernelSpace:
    """Samples known only through their Gram matrix ``K`` (n, n), symmetric positive semidefinite."""

    K: NDArray

    @property
    def n(self) -> int:
        """Number of samples."""
        return self.K.shape[0]

    @property
    def dim(self) -> int:
        """Number of coefficients of one function: one per sample."""
        return self.K.shape[0]

    def scores(self, W: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return f_j(x_i) = (K v_j)_i + b_j as an (n, m) array; only the non-zero coefficients cost anything."""
        used = np.flatnonzero(np.any(W != 0, axis=0))
        if used.size < self.n // 2:
            return self.K[:, used].astype(np.float64, copy=False) @ W[:, used].T + b
        return self.K @ W.T + b

    def combine(self, R: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the coefficients of sum_i R_ij K(x_i, .): the multipliers themselves. No inverse of K is needed."""
        return np.ascontiguousarray(R.T)

    def inner(self, W: NDArray[np.float64], V: NDArray[np.float64]) -> float:
        """Inner product sum_j v_j' K w_j."""
        return float(np.sum(W * self.scores(V, np.zeros(V.shape[0])).T))

    @property
    def squared_norms(self) -> NDArray[np.float64]:
        """K(x_i, x_i) of every sample."""
        return np.ascontiguousarray(np.diagonal(self.K), dtype=np.float64)

    def subset(self, rows: NDArray[np.intp]) -> KernelSpace:
        """Return the space of some of the samples."""
        return KernelSpace(np.ascontiguousarray(self.K[np.ix_(rows, rows)]))
