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
_DOUBLE = 1 << 30  # bytes up to which a Gram matrix is kept in float64, above in float32
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
        n = X.shape[0]
        if self.kind == "precomputed":
            return KernelSpace(_checked_gram(X))
        if 4 * n * n > _LIMIT:
            raise MemoryError(
                f"The Gram matrix of {n} samples would need {4 * n * n / 2**30:.1f} GiB, limit is 4; "
                'n_components="auto" needs much less.'
            )
        K = np.empty((n, n), dtype=np.float64 if 8 * n * n <= _DOUBLE else np.float32)
        self._fill(K, X, X)
        if callable(self.kind) or self.kind == "sigmoid":
            K = _checked_gram(K)
        return KernelSpace(K, self.known_psd, self._entry_error(X, K.dtype))

    def _entry_error(self, X: Samples, dtype: Any) -> float:
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
        return gamma(roundings + 8.0) + (0.0 if dtype == np.float64 else 2.0**-23)

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
            if self.kind == "rbf":
                _gaussian(block, _squared_norms(part), norms, self.gamma)
            elif self.kind in ("poly", "sigmoid"):
                block *= self.gamma
                block += self.coef0
                if self.kind == "poly":
                    block **= self.degree
                else:
                    np.tanh(block, out=block)
            if block.base is not out:
                out[rows] = block


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
