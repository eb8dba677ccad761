"""From a two-class problem to the scaled coordinates of the exact solvers, and back.

minimise  ||v||_p^p / p + sum_g cost_g l(u_g),     u_g = y_g (<z_g, v> + b),     p = 2 or 1

Equal samples with equal labels are merged (their costs add up), features are centred (which only moves b), divided by
their l1 weight (p = 1), and multiplied by one number so that samples have unit size. For p = 2 and more features than
samples, or a kernel, z are coordinates in the span of the samples: rotations keep the norm. So costs of 1e7 or
features of size 1e4 reach the solvers as a well-scaled problem with large costs, and every tolerance there is
relative to unit data.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ...core.penalties import Penalty
from ...core.problem import Problem
from ...core.spaces import KernelSpace

Array = NDArray[np.float64]

#: Directions of a kernel's feature space with less than this part of the largest eigenvalue are rounding errors.
RANK_TOLERANCE = 1e-13


@dataclass(frozen=True, eq=False)
class Reduction:
    """Scaled samples ``z`` (groups, r), labels, costs, and what is needed to go back.

    Attributes
    ----------
    z, y, cost : ndarray
        Samples, labels -1 and +1, and costs of the groups of equal samples.
    group : ndarray of intp
        Group of every original sample.
    norm : int
        2 or 1, the power p.
    unit : float
        Value of the scaled objective 1 in the original objective.
    """

    z: Array
    y: Array
    cost: Array
    group: NDArray[np.intp]
    norm: int
    unit: float
    _problem: Problem
    _centre: Array
    _basis: Array

    @property
    def n(self) -> int:
        """Number of groups."""
        return self.y.size

    def coefficients(self, v: Array, b: float, alpha: Array) -> tuple[Array, Array]:
        """Return W and b of the original problem; kernels are expanded in the multipliers ``alpha`` of the groups."""
        problem = self._problem
        v = self._basis @ v
        intercept = np.array([b - float(self._centre @ v)])
        if not isinstance(problem.space, KernelSpace):
            return v[None, :], intercept
        return problem.space.combine(self.multipliers(alpha)) / problem.penalty.l2, intercept

    def multipliers(self, alpha: Array) -> Array:
        """Spread multipliers of the groups over the original samples, in original units: R of shape (n, 1)."""
        problem = self._problem
        share = problem.costs / np.bincount(self.group, weights=problem.costs)[self.group]
        return (self.unit * alpha[self.group] * share * problem.signs)[:, None]

    def point(self, W: Array, b: Array) -> tuple[Array, float]:
        """Return scaled (v, b) of original coefficients (kernels: of the function's projection on the kept span)."""
        problem = self._problem
        if isinstance(problem.space, KernelSpace):
            scores = problem.space.scores(W, np.zeros(1))[:, 0]
            first = np.unique(self.group, return_index=True)[1]
            v, *_ = np.linalg.lstsq(self.z, scores[first] - scores[first].mean(), rcond=None)
            return v, float(b[0] + scores[first].mean() - (self.z @ v).mean())
        # The columns of the basis are orthogonal, so its pseudo-inverse is a scaled transpose.
        size = np.einsum("ij,ij->j", self._basis, self._basis)
        return (self._basis.T @ W[0]) / size, float(b[0] + self._centre @ W[0])


def reduce(problem: Problem) -> Reduction:
    """Scale a two-class problem with a pure l2 or a pure l1 penalty."""
    norm = 2 if problem.penalty.l2 > 0 else 1
    if isinstance(problem.space, KernelSpace):
        X = kernel_coordinates(np.asarray(problem.space.K))
    else:
        X = problem.space.X
        X = np.asarray(sp.csr_matrix(X).todense() if sp.issparse(X) else X, dtype=np.float64)
    rows, group = np.unique(np.column_stack([X, problem.signs]), axis=0, return_inverse=True)
    cost = np.bincount(group, weights=problem.costs)
    y, scaling = np.ascontiguousarray(rows[:, -1]), scale_samples(rows[:, :-1], problem.penalty)
    return Reduction(scaling.z, y, cost / scaling.unit, group.ravel(), norm, scaling.unit, problem, *scaling[2:])


class Scaling(NamedTuple):
    """Scaled samples z, the value of the scaled objective 1, and v = basis @ (scaled v), b = b - <centre, v>."""

    z: Array
    unit: float
    centre: Array
    basis: Array


def scale_samples(X: Array, penalty: Penalty) -> Scaling:
    """Centre and scale the rows of X for a pure l2 or a pure l1 penalty."""
    centre = X.mean(axis=0)
    Z = X - centre
    if penalty.l2 > 0:
        basis = np.eye(X.shape[1])
        if X.shape[1] > X.shape[0]:
            basis = np.linalg.qr(Z.T)[0]
            Z = Z @ basis
        scale = np.sqrt(np.mean(np.sum(Z * Z, axis=1))) or 1.0
        unit = penalty.l2 / scale**2
    else:
        weight = penalty.l1_array((1, X.shape[1]))[0]
        kept = np.isfinite(weight)
        basis = np.eye(X.shape[1])[:, kept] / np.where(kept, weight, 1.0)[kept]
        Z = Z @ basis
        scale = float(np.mean(np.max(np.abs(Z), axis=1, initial=0.0))) or 1.0
        unit = 1.0 / scale
    return Scaling(np.ascontiguousarray(Z / scale), unit, centre, basis / scale)


def kernel_coordinates(K: NDArray) -> Array:
    """Return F with K = F F' up to eigenvalues below :data:`RANK_TOLERANCE` of the largest."""
    value, vector = np.linalg.eigh(np.asarray(K, dtype=np.float64))
    keep = value > RANK_TOLERANCE * max(float(value[-1]), 0.0)
    return vector[:, keep] * np.sqrt(value[keep])
