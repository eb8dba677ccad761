"""Linear functions f_j(x) = <w_j, x> + b_j on dense or CSR data, float32 or float64."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

_CHUNK = 1 << 22  # entries of float32 data promoted to float64 at a time


@dataclass(frozen=True, eq=False)
class LinearSpace:
    """Samples as rows of ``X`` (C-contiguous ndarray or CSR)."""

    X: NDArray | sp.csr_matrix

    @property
    def n(self) -> int:
        """Number of samples."""
        return self.X.shape[0]

    @property
    def dim(self) -> int:
        """Number of coefficients of one function."""
        return self.X.shape[1]

    @property
    def is_sparse(self) -> bool:
        """True for CSR data."""
        return sp.issparse(self.X)

    def scores(self, W: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return f_j(x_i) as an (n, m) array."""
        if self.is_sparse or self.X.dtype == np.float64:
            return np.asarray(self.X @ W.T) + b
        out = np.empty((self.n, W.shape[0]))
        for rows in self._chunks():
            out[rows] = self.X[rows].astype(np.float64) @ W.T
        return out + b

    def combine(self, R: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the coefficients of sum_i R_ij x_i, an (m, dim) array: the adjoint of :meth:`scores`."""
        if self.is_sparse or self.X.dtype == np.float64:
            return np.ascontiguousarray(np.asarray(self.X.T @ R).T)
        out = np.zeros((R.shape[1], self.dim))
        for rows in self._chunks():
            out += R[rows].T @ self.X[rows].astype(np.float64)
        return out

    @cached_property
    def column_peaks(self) -> NDArray[np.float64]:
        """The largest absolute value of every feature."""
        low, high = self.X.min(axis=0), self.X.max(axis=0)
        if self.is_sparse:
            low, high = low.toarray().ravel(), high.toarray().ravel()
        return np.maximum(np.abs(low), np.abs(high)).astype(np.float64)

    def inner(self, W: NDArray[np.float64], V: NDArray[np.float64]) -> float:
        """Inner product of two sets of functions, intercepts left out."""
        return float(np.sum(W * V))

    @cached_property
    def squared_norms(self) -> NDArray[np.float64]:
        """||x_i||^2 of every sample."""
        if self.is_sparse:
            return np.asarray(sp.csr_matrix(self.X).multiply(self.X).sum(axis=1, dtype=np.float64)).ravel()
        return np.einsum("ij,ij->i", self.X, self.X, dtype=np.float64)

    def subset(self, rows: NDArray[np.intp]) -> LinearSpace:
        """Return the space of some of the samples."""
        return LinearSpace(self.X[rows])

    def _chunks(self) -> list[slice]:
        step = max(1, _CHUNK // max(1, self.dim))
        return [slice(i, min(i + step, self.n)) for i in range(0, self.n, step)]
