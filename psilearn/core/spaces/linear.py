"""Linear functions f_j(x) = <w_j, x> + b_j on dense or CSR data, float32 or float64."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

_CHUNK = 1 << 22  # entries of float32 data promoted to float64 at a time
_WIDE = 64  # entries of a row from which columns of zero coefficients are left out
_FAR_OFF, _LOOKED_AT = 1e3, 64  # spreads between a feature and zero that cost digits, and samples that tell
_GRAM_CHUNK = 1 << 17  # entries of standardised data at a time: they stay in the cache


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
    def kind(self) -> str:
        """The name under which solvers declare that they take this space."""
        return "CSR" if self.is_sparse else "dense"

    @property
    def is_sparse(self) -> bool:
        """True for CSR data."""
        return sp.issparse(self.X)

    def scores(self, W: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return f_j(x_i) as an (n, m) array."""
        if self._centred is not None:
            X, centre = self._centred
            shift = np.asarray(W, dtype=np.longdouble) @ centre + b
            return np.asarray(X @ W.T) + shift.astype(np.float64)
        if not self.is_sparse and self.dim >= _WIDE:
            used = np.flatnonzero(W.any(axis=0))
            if used.size <= self.dim // 16:  # a sparse solution needs little of the data
                return np.asarray(self.X[:, used] @ W[:, used].T, dtype=np.float64) + b
        if self.is_sparse or self.X.dtype == np.float64:
            return np.asarray(self.X @ W.T) + b
        out = np.empty((self.n, W.shape[0]))
        for rows in self._chunks():
            out[rows] = self.X[rows].astype(np.float64) @ W.T
        return out + b

    def scores_by_function(self, W: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return f_j(x_i) as an (m, n) array, for many functions."""
        if self.is_sparse or self.X.dtype != np.float64 or self._centred is not None:
            return np.ascontiguousarray(self.scores(W, b).T)
        out = W @ self.X.T
        out += b[:, None]
        return out

    def combine(self, R: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the coefficients of sum_i R_ij x_i, an (m, dim) array: the adjoint of :meth:`scores`."""
        if self.is_sparse:
            return np.ascontiguousarray(np.asarray(self.X.T @ R).T)
        if self._centred is not None:
            X, centre = self._centred
            total, size = R.sum(axis=0), np.abs(R).sum(axis=0)
            total[np.abs(total) <= 1e-14 * size] = 0.0  # balanced but for rounding, which the centre would magnify
            return np.asarray(R.T @ X) + np.outer(total, centre)
        if self.X.dtype == np.float64:
            return np.asarray(R.T @ self.X)
        out = np.zeros((R.shape[1], self.dim))
        for rows in self._chunks():
            out += R[rows].T @ self.X[rows].astype(np.float64)
        return out

    @cached_property
    def _centred(self) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
        """The samples less a centre, and that centre, where features lie so far from zero that <w, x> + b would cancel.

        With features near 1e6 and C = 1e7 rounding would otherwise lift a dual bound above the objective.
        """
        if self.is_sparse or self.X.dtype != np.float64 or self.n == 0:
            return None
        few = self.X[:: max(1, self.n // _LOOKED_AT)]
        centre, spread = few.mean(axis=0), few.std(axis=0)
        size = np.abs(centre)
        if not np.any((size > _FAR_OFF * spread) & (spread > 1e-13 * size)):  # constants may seem to vary by rounding
            return None
        return self.X - centre, centre

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

    @cached_property
    def moments(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Mean and standard deviation of every column (1 where it vanishes): well scaled coordinates."""
        mean = self.combine(np.full((self.n, 1), 1.0 / self.n))[0]
        if self.is_sparse:
            square = np.asarray(sp.csr_matrix(self.X).power(2).mean(axis=0, dtype=np.float64)).ravel()
        else:
            square = np.einsum("ij,ij->j", self.X, self.X, dtype=np.float64) / self.n
        scale = np.sqrt(np.maximum(square - mean**2, 1e-14 * square))  # the floor: rounding of a constant column
        return mean, np.where(scale > 0, scale, 1.0)

    def standardised_gram(self, rows: NDArray[np.intp], weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return sum_i weight_i z_i z_i' over some samples, z = ((x - mean)/scale, 1), a (dim + 1, dim + 1) array."""
        mean, scale = self.moments
        p = self.dim + 1
        gram = np.zeros((p, p))
        step = max(1, _GRAM_CHUNK // p)
        buffer = np.empty((min(step, rows.size), p))
        for first in range(0, rows.size, step):
            part = rows[first : first + step]
            Z = buffer[: part.size]
            np.subtract(_dense(self.X[part]), mean, out=Z[:, :-1])
            Z[:, :-1] /= scale
            Z[:, -1] = 1.0
            Z *= np.sqrt(weights[part])[:, None]
            gram += Z.T @ Z
        return gram

    @cached_property
    def rotated(self) -> tuple[LinearSpace, NDArray[np.float64]]:
        """For dim > n: the samples in coordinates of their own span, and the basis Q (dim, n) with X = rotated.X Q'."""
        Q, upper = np.linalg.qr(_dense(self.X).T.astype(np.float64, copy=False))
        return LinearSpace(np.ascontiguousarray(upper.T)), Q

    def subset(self, rows: NDArray[np.intp]) -> LinearSpace:
        """Return the space of some of the samples."""
        return LinearSpace(self.X[rows] if self.is_sparse else self.X.take(rows, axis=0))

    def _chunks(self) -> list[slice]:
        step = max(1, _CHUNK // max(1, self.dim))
        return [slice(i, min(i + step, self.n)) for i in range(0, self.n, step)]


def _dense(X: NDArray | sp.csr_matrix) -> NDArray:
    return sp.csr_matrix(X).toarray() if sp.issparse(X) else np.asarray(X)
