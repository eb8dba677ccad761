"""Kernel functions and their Gram matrices, built by blocks: for training, and for prediction from support vectors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..bounds.rounding import gamma
from .kernel import KernelSpace

Samples = Any  # ndarray or CSR matrix

KERNELS = ("linear", "rbf", "poly", "sigmoid", "precomputed")
_CHUNK = 1 << 20  # entries of a kernel matrix computed at a time
_TILE = 512  # columns of a block that is computed, used and forgotten; with 256 rows it stays in a cache of 1 MiB
_STORED = 1 << 27  # bytes up to which the Gram matrix of a known kernel is stored; beyond, it is computed on demand
_LIMIT = 1 << 32  # bytes no Gram matrix may exceed


@dataclass(frozen=True)
class Kernel:
    """A kernel function with its numbers.

    Parameters
    ----------
    kind : str or callable
        "linear" <x, z>, "rbf" exp(-gamma ||x - z||^2), "poly" (gamma <x, z> + coef0)^degree,
        "sigmoid" tanh(gamma <x, z> + coef0), "precomputed", or a callable (X, Z) -> matrix.
    gamma, degree, coef0 : float
        As above; see :func:`scale_of` for gamma given by a word.
    """

    kind: str | Callable[[Samples, Samples], NDArray] = "rbf"
    gamma: float = 1.0
    degree: float = 3
    coef0: float = 0.0

    def __post_init__(self) -> None:
        if not callable(self.kind) and self.kind not in KERNELS:
            raise ValueError(f"kernel must be one of {', '.join(KERNELS)} or a callable, got {self.kind!r}.")

    @property
    def known_psd(self) -> bool:
        """True if every Gram matrix of this kernel is positive semidefinite."""
        if self.kind == "poly":
            return self.gamma >= 0 and self.coef0 >= 0 and float(self.degree).is_integer()
        return self.kind == "linear" or (self.kind == "rbf" and self.gamma >= 0)

    def space(self, X: Samples) -> KernelSpace:
        """Return the space spanned by the samples (for "precomputed" X is the Gram matrix itself)."""
        if self.kind == "precomputed":
            return KernelSpace(_checked_gram(X))
        error = self._entry_error(X)
        if self.known_psd and 8 * X.shape[0] ** 2 > _STORED:
            return KernelSpace(GramOnDemand(self, X), True, error)
        K = self.stored(X)
        return KernelSpace(K if self.known_psd else _checked_gram(K), self.known_psd, error)

    def stored(self, X: Samples) -> NDArray[np.float64]:
        """Return the Gram matrix of the samples."""
        needed = 8 * X.shape[0] ** 2
        if needed > _LIMIT:
            raise MemoryError(
                f"The Gram matrix of {X.shape[0]} samples would need {needed / 2**30:.1f} GiB, limit is "
                f'{_LIMIT / 2**30:.0f}; n_components="auto" needs much less.'
            )
        return self.matrix(X, X)

    def _entry_error(self, X: Samples) -> float:
        """Return e such that |K_ij - k(x_i, x_j)| <= e sqrt(K_ii K_jj) but for a factor 1 + O(u), for a known kernel.

        With d features <x, z> errs by gamma_d |x| |z|. For gamma, coef0 >= 0 the base of "poly" is at most
        sqrt(base_ii base_jj) by Cauchy's inequality, errs by (d + 4) u of that, and the power multiplies relative
        errors by the degree. The squared distance of "rbf" errs by (2 d + 8) u (|x|^2 + |z|^2), and exp(-t), t >= 0,
        is 1-Lipschitz. Powers and exponentials are taken to be good to 4 units in the last place. What is not known to
        be positive semidefinite is data as it stands.
        """
        if not self.known_psd:
            return 0.0
        roundings = X.shape[1] + 8.0
        if self.kind == "poly":
            roundings *= max(float(self.degree), 1.0)
        if self.kind == "rbf":
            X = _centred(_as_float(X), _as_float(X))[0]
            roundings = 8.0 + self.gamma * (2.0 * X.shape[1] + 8.0) * 2.0 * float(_squared_norms(X).max(initial=0.0))
        return gamma(roundings + 8.0)

    def scores(self, X: Samples, support: Samples, coef: NDArray, intercept: NDArray) -> NDArray[np.float64]:
        """Return f_j(x) = sum_i coef_ji K(support_i, x) + b_j as an (n, m) array, without the whole kernel matrix.

        For "precomputed" X holds the kernel values between the samples (rows) and the support vectors (columns).
        """
        out = np.empty((X.shape[0], coef.shape[0]))
        if self.kind == "precomputed":
            return np.asarray(X @ coef.T) + intercept
        for rows in _blocks(X.shape[0], support.shape[0]):
            out[rows] = self.matrix(X[rows], support) @ coef.T
        return out + intercept

    def matrix(self, X: Samples, Z: Samples) -> NDArray[np.float64]:
        """Return the kernel values between the rows of X and those of Z."""
        out = np.empty((X.shape[0], Z.shape[0]))
        self._fill(out, X, Z)
        return out

    def _fill(self, out: NDArray, X: Samples, Z: Samples) -> None:
        """Write the kernel matrix between X and Z into ``out``, rows by blocks."""
        if callable(self.kind):
            values = np.asarray(self.kind(X, Z))
            if values.shape != out.shape:
                raise ValueError(
                    f"kernel(X, Z) must return the kernel values of all pairs, an array of shape {out.shape}; "
                    f"the given function returned shape {values.shape}."
                )
            out[:] = values
            return
        X, Z = _as_float(X), _as_float(Z)
        if self.kind == "rbf":
            X, Z = _centred(X, Z)
        Zt = sp.csr_matrix(Z.T) if sp.issparse(Z) else np.ascontiguousarray(Z.T)
        norms = _squared_norms(Z)
        for rows in _blocks(X.shape[0], Z.shape[0]):
            part, block = X[rows], out[rows]
            if sp.issparse(part) or sp.issparse(Zt) or out.dtype != np.float64:
                block = part @ Zt
                block = block.toarray() if sp.issparse(block) else block
            else:
                np.matmul(part, Zt, out=block)
            self.apply(block, _squared_norms(part), norms)
            if block.base is not out:
                out[rows] = block

    def apply(self, block: NDArray, x2: NDArray, z2: NDArray) -> None:
        """Turn inner products <x, z> into kernel values, in place; x2 and z2 are the squared norms."""
        if self.kind == "rbf":
            _gaussian(block, x2, z2, self.gamma)
        elif self.kind in ("poly", "sigmoid"):
            block *= self.gamma
            block += self.coef0
            if self.kind == "poly":
                block **= self.degree
            else:
                np.tanh(block, out=block)


class GramOnDemand:
    """The Gram matrix of a kernel and samples, entries of which are computed whenever they are asked for.

    What a fit reads of a large matrix, the rows of samples that move, is computed again faster than it is stored.
    """

    dtype = np.dtype(np.float64)

    def __init__(self, kernel: Kernel, X: Samples) -> None:
        X = _as_float(X)
        self.kernel, self.X = kernel, _centred(X, X)[0] if kernel.kind == "rbf" else X
        self.columns = sp.csc_matrix(self.X.T) if sp.issparse(X) else np.ascontiguousarray(self.X.T)
        self.squares = _squared_norms(self.X)
        self.shape = X.shape[0], X.shape[0]
        self._rough = np.empty(0, dtype=np.float32)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray:
        """Return the whole matrix."""
        return self.kernel.stored(self.X).astype(dtype or self.dtype, copy=False)

    def __getitem__(self, rows: Any) -> NDArray[np.float64]:
        """Return whole rows."""
        return self.block(rows, slice(None))

    def block(self, rows: Any, columns: Any) -> NDArray[np.float64]:
        """Return the entries of some rows and columns."""
        block = self.X[rows] @ self.columns[:, columns]
        block = block.toarray() if sp.issparse(block) else block
        self.kernel.apply(block, self.squares[rows], self.squares[columns])
        return block

    def rough(self, members: NDArray) -> NDArray[np.float32]:
        """Return the entries of some samples in float32, in memory that the next call takes again."""
        n = members.size
        if self._rough.size < n * n:
            self._rough = np.empty(n * n, dtype=np.float32)
        block = self._rough[: n * n].reshape(n, n)
        few, squares = self.X[members].astype(np.float32), self.squares[members].astype(np.float32)
        columns = few.T.tocsc() if sp.issparse(few) else np.ascontiguousarray(few.T)
        for first in range(0, n, _TILE):
            rows, part = slice(first, first + _TILE), block[first : first + _TILE]
            product = few[rows] @ columns
            part[:] = product.toarray() if sp.issparse(product) else product
            self.kernel.apply(part, squares[rows], squares)
        return block

    def times(self, V: NDArray[np.float64], rows: NDArray, columns: NDArray | None, step: int) -> NDArray[np.float64]:
        """Return V @ K[rows], at some columns if asked, summed over ``step`` rows at a time."""
        width = self.shape[1] if columns is None else columns.size
        out = np.zeros((V.shape[0], width))
        for first in range(0, width, _TILE):
            where = slice(first, min(first + _TILE, width))
            at = where if columns is None else columns[where]
            for start in range(0, rows.size, step):
                part = slice(start, start + step)
                out[:, where] += V[:, part] @ self.block(rows[part], at)
        return out

    def diagonal(self) -> NDArray[np.float64]:
        """Return K(x_i, x_i) of every sample."""
        if self.kernel.kind == "rbf":
            return np.ones(self.shape[0])
        diagonal = self.squares[:, None].copy()
        self.kernel.apply(diagonal, self.squares, self.squares[:1])
        return diagonal[:, 0]

    def subset(self, rows: NDArray) -> GramOnDemand:
        """Return the matrix of some of the samples."""
        return GramOnDemand(self.kernel, self.X[rows])


def scale_of(gamma: float | str, X: Samples, weights: NDArray[np.float64] | None = None) -> float:
    """Return the number behind ``gamma``: "scale" is 1 / (d Var X), "auto" is 1 / d (both 1 for constant X).

    With weights the variance is weighted, so that a weight of 2 equals the row given twice.
    """
    if not isinstance(gamma, str):
        return float(gamma)
    if gamma == "auto":
        return 1.0 / X.shape[1]
    if gamma != "scale":
        raise ValueError(f'gamma must be "scale", "auto" or a number, got {gamma!r}.')
    rows = np.asarray(X.sum(axis=1, dtype=np.float64)).ravel() / X.shape[1]
    mean = np.average(rows, weights=weights)
    if sp.issparse(X):
        variance = np.average(_squared_norms(X) / X.shape[1], weights=weights) - mean**2
    else:  # deviations first: the difference of squares would cancel far from zero
        variance = np.average(_squared_norms(_as_float(X) - mean) / X.shape[1], weights=weights)
    return 1.0 / (X.shape[1] * float(variance)) if variance > 1e-15 * mean**2 else 1.0


def _centred(X: Samples, Z: Samples) -> tuple[Samples, Samples]:
    """Return both less the mean of Z: ||x - z||^2 = x'x + z'z - 2 x'z would cancel far from zero. Sparse data stay."""
    if sp.issparse(X) or sp.issparse(Z) or Z.shape[0] == 0:
        return X, Z
    centre = Z.mean(axis=0)
    return X - centre, Z - centre


def _gaussian(block: NDArray, x2: NDArray, z2: NDArray, gamma: float) -> None:
    """Turn inner products into exp(-gamma ||x - z||^2), in place."""
    block *= 2.0 * gamma
    block -= gamma * z2
    block -= gamma * x2[:, None]
    np.minimum(block, 0.0, out=block)
    np.exp(block, out=block)


def _blocks(n: int, width: int) -> list[slice]:
    step = max(1, _CHUNK // max(1, width))
    return [slice(i, min(i + step, n)) for i in range(0, n, step)]


def _as_float(X: Samples) -> Samples:
    return X if X.dtype == np.float64 else X.astype(np.float64)


def _squared_norms(X: Samples) -> NDArray[np.float64]:
    if sp.issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1)).ravel()
    return np.einsum("ij,ij->i", X, X)


def _checked_gram(K: Samples) -> NDArray:
    """Return K as a dense symmetric float matrix, or say what is wrong with it."""
    K = K.toarray() if sp.issparse(K) else np.asarray(K)
    if K.ndim != 2 or K.shape[0] != K.shape[1]:
        raise ValueError(f"A precomputed kernel must be a square matrix, got shape {K.shape}.")
    if K.dtype not in (np.float64, np.float32):
        K = K.astype(np.float64)
    if not np.isfinite(K).all():
        raise ValueError("The kernel matrix contains NaN or infinity.")
    scale = float(np.abs(K).max(initial=0.0))
    if not np.allclose(K, K.T, rtol=0.0, atol=1e-8 * scale if K.dtype == np.float64 else 1e-5 * scale):
        raise ValueError("The kernel matrix is not symmetric.")
    return np.ascontiguousarray(0.5 * (K + K.T))
