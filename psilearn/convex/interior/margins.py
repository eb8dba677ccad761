"""Margins of two-class and k-class problems on dense data, as linear maps of the flat coefficients (w_j, b_j)_j.

The Newton equations of the interior point are solved by one Cholesky factor of the size of a basis of the coefficients
that may differ from zero and, for k > 2, sum to zero over the classes: n p^2 multiplications, times k^2.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from .method import LinearSolve, schur

Array = NDArray[np.float64]

#: Ridges that are tried, relative to a unit diagonal, until rounding leaves the normal matrix definite.
_RIDGES = 10.0 ** np.arange(-15, -3)


class ClassMargins:
    """z_i = y_i f(x_i) for two classes, z_ij = f_{y_i}(x_i) - f_j(x_i) over the rivals j for k > 2.

    Parameters
    ----------
    X : ndarray of float64, shape (n, p + 1)
        Samples with a column of ones for the intercept.
    y : ndarray of intp
        Class codes.
    n_classes : int
        k >= 2.
    allowed : ndarray of bool, shape (m, p + 1)
        Coefficients that may differ from zero.
    """

    def __init__(self, X: Array, y: NDArray[np.intp], n_classes: int, allowed: NDArray[np.bool_]) -> None:
        self.X, self.y, self.k = X, y, n_classes
        self.basis = sum_to_zero_basis(allowed)
        self.m = 1 if n_classes == 2 else n_classes
        self.signs = np.where(y == 1, 1.0, -1.0)
        if self.m > 1:
            every = np.arange(self.k)
            self.rivals = np.array([every[every != c] for c in range(self.k)])[y]
            self.index = np.arange(X.shape[0])[:, None]

    def apply(self, v: Array) -> Array:
        """Return the margins (n, J)."""
        F = self.X @ v.reshape(self.m, -1).T
        if self.m == 1:
            return self.signs[:, None] * F
        return np.take_along_axis(F, self.y[:, None], axis=1) - np.take_along_axis(F, self.rivals, axis=1)

    def scores(self, a: Array) -> Array:
        """Turn multipliers of the margins into multipliers R (n, m) of the scores."""
        if self.m == 1:
            return self.signs[:, None] * a
        R = np.empty((a.shape[0], self.k))
        np.put_along_axis(R, self.rivals, -a, axis=1)
        np.put_along_axis(R, self.y[:, None], a.sum(axis=1)[:, None], axis=1)
        return R

    def adjoint(self, a: Array) -> Array:
        """Return the transposed map of multipliers (n, J)."""
        return (self.scores(a).T @ self.X).ravel()

    def rows(self, index: NDArray[np.intp]) -> Array:
        """Return the rows of the map of some samples, (len(index) * J, m * (p + 1))."""
        X = self.X[index]
        if self.m == 1:
            return self.signs[index, None] * X
        every = np.eye(self.k)
        difference = every[self.y[index]][:, None, :] - every[self.rivals[index]]
        return np.einsum("ijc,id->ijcd", difference, X).reshape(index.size * (self.k - 1), -1)

    def factor(self, d: Array, D: Array, diagonal: Array) -> LinearSolve | None:
        """Factor B'(diag + sum_i Z_i'S_i Z_i)B, B the basis, with the least ridge that makes it definite."""
        B, N = self.basis, self.normal(schur(d, D))
        N[np.diag_indices_from(N)] += diagonal
        N = B.T @ (B.T @ N).T
        unit = 1.0 / np.sqrt(np.maximum(N.diagonal(), 1e-300))
        matrix = N * unit[:, None] * unit
        factors = _cholesky(matrix)
        if factors is None:
            return None

        def solve(rhs: Array, offset: Array) -> Array:
            scaled = unit * (B.T @ (rhs + self.adjoint(offset)))
            x = cho_solve(factors, scaled, check_finite=False)
            x += cho_solve(factors, scaled - matrix @ x, check_finite=False)  # takes back what the ridge distorts
            return B @ (unit * x)

        return solve

    def normal(self, S: Array) -> Array:
        """Return sum_i Z_i' S_i Z_i; for k > 2 by blocks, one weighted Gram matrix per pair of classes."""
        if self.m == 1:
            root = self.X * np.sqrt(np.maximum(S[:, 0], 0.0))
            return root.T @ root
        width = self.X.shape[1]
        M = np.zeros((self.X.shape[0], self.k, self.k))
        M[self.index[:, :, None], self.rivals[:, :, None], self.rivals[:, None, :]] = S
        column = S.sum(axis=2)
        M[self.index, self.y[:, None], self.rivals] = -column
        M[self.index, self.rivals, self.y[:, None]] = -column
        M[self.index[:, 0], self.y, self.y] = column.sum(axis=1)
        N = np.empty((self.k * width, self.k * width))
        for j in range(self.k):
            for h in range(j + 1):
                block = (self.X * M[:, j, h][:, None]).T @ self.X
                N[j * width : (j + 1) * width, h * width : (h + 1) * width] = block
                N[h * width : (h + 1) * width, j * width : (j + 1) * width] = block.T
        return N


def _cholesky(matrix: Array) -> tuple[Array, bool] | None:
    for ridge in _RIDGES:
        try:
            return cho_factor(matrix + ridge * np.eye(matrix.shape[0]), check_finite=False)
        except np.linalg.LinAlgError:
            continue
    return None


def sum_to_zero_basis(allowed: NDArray[np.bool_]) -> sp.csr_matrix:
    """Return a basis of {v : entries not ``allowed`` are 0, columns of v (m, width) sum to 0 if m > 1}.

    In each column the last allowed class carries minus the sum of the others.
    """
    m, width = allowed.shape
    index = np.arange(m * width).reshape(m, width)
    if m == 1:
        free = index[allowed]
        return sp.csr_matrix((np.ones(free.size), (free, np.arange(free.size))), shape=(width, free.size))
    rows, cols, signs = [], [], []
    count = 0
    for d in range(width):
        classes = np.flatnonzero(allowed[:, d])
        for j in classes[:-1]:
            rows += [index[j, d], index[classes[-1], d]]
            cols += [count, count]
            signs += [1.0, -1.0]
            count += 1
    return sp.csr_matrix((signs, (rows, cols)), shape=(m * width, count))


def cut_off(v: Array, m: int, penalised: NDArray[np.bool_], level: float) -> Array:
    """Set penalised coefficients of size at most ``level`` to zero, or relative to the largest if that is above one.

    Meant for scaled data, where a coefficient of one moves margins by about one. Functions still sum to zero if m > 1.
    """
    small = penalised & (np.abs(v) <= level * np.abs(v[penalised]).max(initial=1.0))
    V = np.where(small, 0.0, v).reshape(m, -1)
    if m > 1:
        V = np.where(V != 0, V - V.sum(axis=0) / np.maximum(np.count_nonzero(V, axis=0), 1), 0.0)
    return V.ravel()
