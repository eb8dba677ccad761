"""Linear functions f_j(x) = <w_j, x> + b_j on dense or CSR data, float32 or float64."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..bounds.rounding import TINY, UNIT, chunk_roundings, chunk_rows, gamma
from .sharp import sharp_product

_CHUNK = 1 << 22  # entries of float32 data promoted to float64 at a time
_WIDE = 64  # entries of a row from which columns of zero coefficients are left out
_FAR_OFF, _LOOKED_AT = 1e3, 64  # spreads between a feature and zero that cost digits, and samples that tell
_SPARSE = 0.1  # share of entries that are not zero up to which a product of sparse matrices beats one of dense ones
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

    def balanced_sums(self, D: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return V near sum_i D_ij x_i and a radius with |sum_i D_ij x_i - V_j| <= radius_j, both (m, dim).

        The columns of D must add up to zero exactly. Then sum_i D_ij x_i = sum_i D_ij (x_i - c) for every c, and no
        centre is added back. A rounded sum of n terms errs by gamma_n sum_i |D_ij| |x_il|
        (:mod:`psilearn.core.bounds.rounding`).
        Dense rows are added by chunks, with about 2 sqrt(n) roundings on the way of a term; sum_i |D_ij| |x_il| is
        bounded by the norms of column j and column l, or the sum of the one and the largest of the other. The sum over
        a sparse column is bounded as it is.
        """
        if self.is_sparse:
            rows: Any = self.X
            V = np.ascontiguousarray(np.asarray(rows.T @ D).T)
            sizes = sp.csr_matrix((np.abs(rows.data), rows.indices, rows.indptr), shape=rows.shape)
            reach = np.ascontiguousarray(np.asarray(sizes.T @ np.abs(D)).T)
            steps = np.bincount(rows.indices, minlength=self.dim) + 8.0
            # |D|'|X| is itself a rounded sum: 8 more roundings than terms cover it and the products below.
            return V, 2.0 * steps * np.finfo(float).eps * reach + steps * TINY
        X = self.X if self._centred is None else self._centred[0]  # x - c is rounded once more
        V = np.zeros((D.shape[1], self.dim))
        step = chunk_rows(self.n)
        for first in range(0, self.n, step):
            part = slice(first, first + step)
            V += D[part].T @ X[part].astype(np.float64, copy=False)
        peaks, norms = self._column_sizes
        reach = np.minimum(
            np.outer(np.abs(D).sum(axis=0), peaks), np.outer(np.sqrt(np.einsum("ij,ij->j", D, D)), norms)
        )
        return V, gamma(chunk_roundings(self.n) + 8) * (1.0 + 2.0 * gamma(self.n + 8)) * reach + self.n * TINY

    def sharp_sums(self, D: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Do what :meth:`balanced_sums` does with a radius of 2^-85 sum_i |D_ij| max_i |x_il| and V's own rounding."""
        found = sharp_product(D, self.X, None, self.column_peaks)
        if found is None:
            return self.balanced_sums(D)
        high, low, radius = found
        V = high + low
        return V, radius + UNIT * np.abs(V)

    @cached_property
    def _column_sizes(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Largest absolute value and Euclidean norm of every dense column, less the centre if there is one."""
        if self._centred is None:
            return self.column_peaks, np.sqrt(np.einsum("ij,ij->j", self.X, self.X, dtype=np.float64))
        X = self._centred[0]
        return np.abs(X).max(axis=0, initial=0.0), np.sqrt(np.einsum("ij,ij->j", X, X))

    def score_error(self, W: NDArray[np.float64], b: NDArray[np.float64]) -> float:
        """Return a bound on the rounding errors of all :meth:`scores` of these coefficients."""
        size = np.abs(W) @ self.column_peaks + np.abs(b)
        if self._centred is not None:  # x - c and <w, c> + b are rounded, too
            size += np.abs(W) @ (self._column_sizes[0] + np.abs(self._centred[1]))
        return 2.0 * gamma(self.dim + 8) * float(size.max(initial=0.0)) + self.dim * TINY

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

    def norm_size(self, W: NDArray[np.float64]) -> float:
        """Return the sum of the absolute values of the terms of ||W||^2."""
        return float(np.sum(W * W))

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
        if not isinstance(self.X, np.ndarray) and self.X.nnz <= _SPARSE * self.n * self.dim:
            return self._sparse_gram(rows, weights[rows])
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

    def _sparse_gram(self, rows: NDArray[np.intp], weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Multiply only what is not zero, and take the means off afterwards; a Newton step bears the rounding."""
        mean, scale = self.moments
        X = sp.csr_matrix(self.X[rows], dtype=np.float64)
        sums, total = np.asarray(X.T @ weights), float(weights.sum())
        weighted = sp.csr_matrix((X.data * np.repeat(weights, np.diff(X.indptr)), X.indices, X.indptr), shape=X.shape)
        gram = np.empty((self.dim + 1, self.dim + 1))
        inner = (X.T @ weighted).toarray()
        inner -= np.outer(mean, sums - total * mean)
        inner -= np.outer(sums, mean)
        inner /= scale
        inner /= scale[:, None]
        gram[:-1, :-1] = inner
        gram[-1, :-1] = gram[:-1, -1] = (sums - total * mean) / scale
        gram[-1, -1] = total
        return gram

    @cached_property
    def rotated(self) -> tuple[LinearSpace, NDArray[np.float64]]:
        """For dim > n: the samples in coordinates of their own span, and the basis Q (dim, n) with X = rotated.X Q'."""
        Q, upper = np.linalg.qr(_dense(self.X).T.astype(np.float64, copy=False))
        return LinearSpace(np.ascontiguousarray(upper.T)), Q

    def rows(self, samples: NDArray[np.intp]) -> NDArray[np.float64]:
        """Return some samples as a dense array."""
        return _dense(self.X[samples]).astype(np.float64, copy=False)

    def subset(self, rows: NDArray[np.intp]) -> LinearSpace:
        """Return the space of some of the samples."""
        return LinearSpace(self.X[rows] if self.is_sparse else self.X.take(rows, axis=0))

    def _chunks(self) -> list[slice]:
        step = max(1, _CHUNK // max(1, self.dim))
        return [slice(i, min(i + step, self.n)) for i in range(0, self.n, step)]


def _dense(X: NDArray | sp.csr_matrix) -> NDArray:
    return sp.csr_matrix(X).toarray() if sp.issparse(X) else np.asarray(X)
