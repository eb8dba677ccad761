"""Functions of a reproducing kernel Hilbert space, f_j(x) = sum_i v_ji K(x_i, x) + b_j, given by the Gram matrix."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cholesky

_CHUNK = 1 << 22  # entries of a float32 Gram matrix promoted to float64 at a time
#: Samples up to which K is checked: a Cholesky factor of 12,000 takes 1.2 GB and about 20 seconds of one core.
_CHECKED = 12_000
#: A negative eigenvalue below this part of the trace is rounding of a kernel, not a property of it.
_ROUNDING = 1e-9


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

    @property
    def kind(self) -> str:
        """The name under which solvers declare that they take this space."""
        return "kernel" if self.is_psd else "indefinite kernel"

    @property
    def is_psd(self) -> bool:
        """Whether K is proved positive semidefinite up to rounding, without which no dual bound holds."""
        return self.psd_shift < np.inf

    @cached_property
    def psd_shift(self) -> float:
        """A number s >= 0 such that K + s I is positive semidefinite, proved; inf if there is none of rounding size.

        Bounds are stated for the kernel K + s I. For a kernel that is positive semidefinite by construction s is 0;
        otherwise the least that a few Cholesky factorisations prove, and inf for more than 12,000 samples, where they
        are not tried.
        """
        if self.known_psd or not self.K.any():
            return 0.0
        if self.n > _CHECKED or self.squared_norms.min() < 0:
            return np.inf
        trace = float(self.squared_norms.sum())
        error = _cholesky_error(self.n, trace)
        largest = max(_ROUNDING, 4.0 * float(np.finfo(self.K.dtype).eps)) * trace
        if not _has_cholesky(self.K, largest):
            return np.inf
        shift = -error
        while shift < largest and not _has_cholesky(self.K, shift):
            shift = error if shift < 0 else 10.0 * shift
        return max(0.0, min(shift, largest) + error)

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


def _cholesky_error(n: int, trace: float) -> float:
    """Bound the spectral norm of R'R - A for a computed Cholesky factor R of A, and the rounding of a shift of A.

    Rump, Verification of positive definiteness, 2006: gamma / (1 - gamma) trace(A) with gamma = (n + 1) u / (1 - (n +
    1) u), and a term for underflow. Twice that also covers the shifts of :attr:`KernelSpace.psd_shift`, which are small
    against the trace, and the rounding of this very formula.
    """
    unit = 0.5 * float(np.finfo(np.float64).eps)
    return 2.0 * (n + 2) * unit * trace / (1.0 - 2.0 * (n + 2) * unit) + n**2 * float(np.finfo(np.float64).tiny)


def _has_cholesky(K: NDArray, shift: float) -> bool:
    """Whether the Cholesky factorisation of K + shift I runs to its end in float64."""
    A = K.astype(np.float64)
    A[np.diag_indices_from(A)] += shift
    try:
        cholesky(A, lower=True, overwrite_a=True, check_finite=False)
    except LinAlgError:
        return False
    return True
