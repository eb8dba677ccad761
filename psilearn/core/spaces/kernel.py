"""Functions of a reproducing kernel Hilbert space, f_j(x) = sum_i v_ji K(x_i, x) + b_j, given by the Gram matrix."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

_CHUNK = 1 << 22  # entries of a float32 Gram matrix promoted to float64 at a time
_EXACT_SPECTRUM = 1500  # up to this many samples all eigenvalues are computed
_ROUNDING = 1e-9  # a negative eigenvalue this small relative to the largest is rounding


@dataclass(frozen=True, eq=False)
class KernelSpace:
    """Samples known only through their Gram matrix.

    Parameters
    ----------
    K : ndarray of shape (n, n)
        Symmetric, float64 or float32 (half the memory; all sums are still taken in float64).
    known_psd : bool
        True if K is positive semidefinite by construction (linear, rbf, ...), so that nobody has to check.
    """

    K: NDArray
    known_psd: bool = False
    _last: dict[str, NDArray] = field(default_factory=dict, init=False, repr=False)

    @property
    def n(self) -> int:
        """Number of samples."""
        return self.K.shape[0]

    @property
    def dim(self) -> int:
        """Number of coefficients of one function: one per sample."""
        return self.K.shape[0]

    def scores(self, W: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return f_j(x_i) = (K v_j)_i + b_j as an (n, m) array.

        The last product is remembered: asking again is free, and after a change in few coefficients only those cost.
        """
        return self._product(W).T + b

    def combine(self, R: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the coefficients of sum_i R_ij K(x_i, .): the multipliers themselves. No inverse of K is needed."""
        return np.ascontiguousarray(R.T)

    def inner(self, W: NDArray[np.float64], V: NDArray[np.float64]) -> float:
        """Inner product sum_j v_j' K w_j."""
        return float(np.sum(W * self._product(V)))

    @cached_property
    def squared_norms(self) -> NDArray[np.float64]:
        """K(x_i, x_i) of every sample."""
        return np.ascontiguousarray(np.diagonal(self.K), dtype=np.float64)

    @cached_property
    def is_psd(self) -> bool:
        """Whether K is positive semidefinite up to rounding, without which no dual bound holds.

        Exact up to 1500 samples; beyond, a negative eigenvalue is looked for by a Krylov space, so True then
        means "none was found".
        """
        if self.known_psd or self.n == 0:
            return True
        if self.squared_norms.min() < 0:
            return False
        if self.n <= _EXACT_SPECTRUM:
            eigenvalues = np.linalg.eigvalsh(self.K.astype(np.float64, copy=False))
            return bool(eigenvalues[0] >= -_ROUNDING * max(eigenvalues[-1], 0.0))
        return self._smallest_ritz_value() >= -_ROUNDING * float(self.squared_norms.sum())

    def subset(self, rows: NDArray[np.intp]) -> KernelSpace:
        """Return the space of some of the samples."""
        return KernelSpace(np.ascontiguousarray(self.K[np.ix_(rows, rows)]), self.known_psd)

    def _product(self, W: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return K V for every row of W, an (m, n) array that must not be written to."""
        last_W, last_product = self._last.get("W"), self._last.get("KW")
        if last_W is not None and last_product is not None and last_W.shape == W.shape:
            changed = np.flatnonzero(np.any(last_W != W, axis=0))
            if changed.size == 0:
                return last_product
            if changed.size <= self.n // 4:
                step = W[:, changed] - last_W[:, changed]
                return self._remember(W, last_product + self._rows_product(step, changed))
        used = np.flatnonzero(np.any(W != 0, axis=0))
        return self._remember(W, self._rows_product(W[:, used], used))

    def _rows_product(self, V: NDArray[np.float64], rows: NDArray[np.intp]) -> NDArray[np.float64]:
        """Return V @ K[rows], by blocks of rows where a selection or a promotion would need a copy of K."""
        if rows.size == self.n and self.K.dtype == np.float64:
            return V @ self.K
        out = np.zeros((V.shape[0], self.n))
        step = max(1, _CHUNK // max(1, self.n))
        for start in range(0, rows.size, step):
            part = slice(start, start + step)
            out += V[:, part] @ self.K[rows[part]].astype(np.float64, copy=False)
        return out

    def _remember(self, W: NDArray[np.float64], product: NDArray[np.float64]) -> NDArray[np.float64]:
        product.setflags(write=False)
        self._last.update(W=W.copy(), KW=product)
        return product

    def _smallest_ritz_value(self, steps: int = 30) -> float:
        """Return an upper bound on the smallest eigenvalue: that of K on a Krylov space."""
        basis = np.zeros((steps, self.n))
        v = np.random.default_rng(0).standard_normal(self.n)
        for s in range(steps):
            v -= basis[:s].T @ (basis[:s] @ v)
            v -= basis[:s].T @ (basis[:s] @ v)  # twice is enough
            norm = float(np.linalg.norm(v))
            if norm == 0.0:
                basis = basis[:s]
                break
            basis[s] = v / norm
            v = self._rows_product(basis[s : s + 1], np.arange(self.n))[0]
        return float(np.linalg.eigvalsh(basis @ self._rows_product(basis, np.arange(self.n)).T)[0])
