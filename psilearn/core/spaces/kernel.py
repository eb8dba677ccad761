"""Functions of a reproducing kernel Hilbert space, f_j(x) = sum_i v_ji K(x_i, x) + b_j, given by the Gram matrix."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cholesky

from ..bounds.rounding import TINY, UNIT, chunk_roundings, chunk_rows, gamma, product_error, total_of
from .sharp import sharp_product

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
    K : ndarray or GramOnDemand of shape (n, n)
        Symmetric, float64 or float32 (half the memory; all sums are still taken in float64).
    known_psd : bool
        True if K is positive semidefinite by construction (linear, rbf, ...), so that nobody has to check.
    entry_error : float
        The matrix that is meant differs from K by at most ``entry_error`` sqrt(K_ii K_ll) in entry (i, l): the rounding
        of a kernel function. 0 if K itself is the data.
    """

    K: Any
    known_psd: bool = False
    entry_error: float = 0.0
    _last: dict[str, NDArray] = field(default_factory=dict, init=False, repr=False)

    @property
    def n(self) -> int:
        """Number of samples."""
        return self.K.shape[0]

    @property
    def is_stored(self) -> bool:
        """Whether K is an array, not computed on demand."""
        return isinstance(self.K, np.ndarray)

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

    def quadratic(self, D: NDArray[np.float64]) -> tuple[float, float]:
        """Return Q near sum_j d_j' K d_j over the columns d_j of D, and a bound on its error.

        |K_il| is at most the largest entry of row i and of row l, hence at most the root of their product s_i^2 s_l^2,
        and the sums, taken by chunks of rows, err by gamma (sum_i |d_i| s_i)^2 (:mod:`psilearn.core.bounds.rounding`).
        """
        V = np.ascontiguousarray(D.T)
        used = np.flatnonzero(V.any(axis=0))
        product = self.combination(V[:, used], used, chunk_rows(self.n), used)
        total, error = total_of(V[:, used] * product)
        reach = float(np.sum((np.abs(V) @ self.row_reach) ** 2)) * (1.0 + gamma(self.n + D.shape[1] + 8))
        underflow = self.n * TINY * (1.0 + float(np.abs(V).sum()))
        return total, error + (gamma(chunk_roundings(self.n) + 8) + self.entry_error) * reach + underflow

    def sharp_quadratic(self, D: NDArray[np.float64]) -> tuple[float, float]:
        """Do what :meth:`quadratic` does with an error of some 2^-85 (sum_i |d_i| s_i)^2."""
        used = np.flatnonzero(D.any(axis=1))
        found = sharp_product(D[used], self.K, used, self._peaks)
        if found is None:
            return self.quadratic(D)
        high, low, radius = found
        V = np.ascontiguousarray(D.T)
        product = V * high
        terms = np.concatenate([product.ravel(), product_error(V, high, product).ravel(), (V * low).ravel()])
        error = float(np.sum(np.abs(V) * (radius + 2.0 * UNIT * np.abs(low))))
        error = (error + self.entry_error * float(np.sum((np.abs(V) @ self.row_reach) ** 2))) * (
            1.0 + gamma(V.size + 8)
        )
        total = math.fsum(terms.tolist())
        return total, error * (1.0 + gamma(V.size + 8)) + UNIT * abs(total) + self.n * TINY

    def sharp_scores(self, W: NDArray[np.float64], b: NDArray[np.float64]) -> tuple[NDArray[np.float64], float] | None:
        """Return :meth:`scores` and ||W||^2 as if sums were exact, whatever was remembered; None beyond their range."""
        used = np.flatnonzero(np.any(W != 0, axis=0))
        found = sharp_product(np.ascontiguousarray(W[:, used].T), self.K, used, self._peaks)
        if found is None:
            return None
        high, low, _ = found
        product = W * high
        terms = np.concatenate([product.ravel(), product_error(W, high, product).ravel(), (W * low).ravel()])
        return (high + low).T + b, math.fsum(terms.tolist())

    def norm_size(self, W: NDArray[np.float64]) -> float:
        """Return an upper bound on the sum of the absolute values of the terms of ||W||^2, times four for _product."""
        return 4.0 * float(np.sum((np.abs(W) @ self.row_reach) ** 2))

    @cached_property
    def row_reach(self) -> NDArray[np.float64]:
        """A number s_i for every sample such that |K_il| is at most s_i s_l, rounded up.

        The root of the largest absolute value of its row; of a kernel on demand that of K_ii, by Cauchy's inequality.
        """
        if not self.is_stored:
            return np.sqrt(self.squared_norms * (1.0 + 4.0 * self.entry_error)) * (1.0 + 4.0 * UNIT)
        # Without a copy of K of its absolute values, which takes longer than some fits.
        largest = np.maximum(self.K.max(axis=1, initial=0.0), -self.K.min(axis=1, initial=0.0))
        return np.nextafter(np.sqrt(largest.astype(np.float64)), np.inf)

    @property
    def _peaks(self) -> NDArray[np.float64]:
        """Upper bounds on the absolute values of the entries of every column of K."""
        others = self.row_reach if self.is_stored else self.row_reach.max(initial=0.0)
        return self.row_reach * others * (1.0 + 4.0 * UNIT)

    def score_size(self, W: NDArray[np.float64]) -> float:
        """Return an upper bound on the sums of the absolute values of the terms of K v_j."""
        return float((np.abs(W) @ self.row_reach).max(initial=0.0)) * float(self.row_reach.max(initial=0.0))

    def score_error(self, W: NDArray[np.float64], b: NDArray[np.float64]) -> float:
        """Return a bound on the rounding errors of all :meth:`scores` of these coefficients."""
        size = self.score_size(W) + float(np.abs(b).max(initial=0.0))
        return 4.0 * (gamma(self.n + 8) + self.entry_error) * size + self.n * TINY

    @cached_property
    def squared_norms(self) -> NDArray[np.float64]:
        """K(x_i, x_i) of every sample."""
        return np.ascontiguousarray(self.K.diagonal(), dtype=np.float64)

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
        if not self.is_stored:
            return KernelSpace(self.K.subset(rows), self.known_psd, self.entry_error)
        return KernelSpace(np.ascontiguousarray(self.K[np.ix_(rows, rows)]), self.known_psd, self.entry_error)

    def block(self, rows: NDArray[np.intp], columns: NDArray[np.intp]) -> NDArray[np.float64]:
        """Return the entries of some rows and columns."""
        return self.K[np.ix_(rows, columns)].astype(np.float64) if self.is_stored else self.K.block(rows, columns)

    def _product(self, W: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return K V for every row of W, an (m, n) array that must not be written to."""
        last_W, last_product = self._last.get("W"), self._last.get("KW")
        if last_W is not None and last_product is not None and last_W.shape == W.shape:
            changed = np.flatnonzero(np.any(last_W != W, axis=0))
            if changed.size == 0:
                return last_product
            step = W[:, changed] - last_W[:, changed]
            moved = self._last["moved"] + np.abs(step).sum(axis=1)
            # Steps together no longer than the coefficients: then their rounding errors are no larger either.
            if changed.size <= self.n // 4 and np.all(moved <= np.abs(W).sum(axis=1)):
                return self._remember(W, last_product + self.combination(step, changed), moved)
        used = np.flatnonzero(np.any(W != 0, axis=0))
        return self._remember(W, self.combination(W[:, used], used), np.zeros(W.shape[0]))

    def combination(
        self,
        V: NDArray[np.float64],
        rows: NDArray[np.intp],
        step: int = 0,
        columns: NDArray[np.intp] | None = None,
    ) -> NDArray[np.float64]:
        """Return V @ K[rows], at some columns if asked.

        By blocks of ``step`` rows if given, and where a selection or a promotion would copy K.
        """
        if not self.is_stored:
            return self.K.times(V, rows, columns, step or chunk_rows(self.n))
        at = slice(None) if columns is None or columns.size == self.n else columns
        if rows.size == self.n and self.K.dtype == np.float64 and not step:
            return (V @ self.K)[:, at]
        out = np.zeros((V.shape[0], self.n))
        step = step or max(1, _CHUNK // max(1, self.n))
        for start in range(0, rows.size, step):
            part = slice(start, start + step)
            out += V[:, part] @ self.K[rows[part]].astype(np.float64, copy=False)
        return out[:, at]

    def _remember(
        self, W: NDArray[np.float64], product: NDArray[np.float64], moved: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        product.setflags(write=False)
        self._last.update(W=W.copy(), KW=product, moved=moved)
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
