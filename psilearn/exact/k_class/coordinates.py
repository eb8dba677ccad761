"""Euclidean coordinates in which the functions sum to zero by construction, and a region that contains a minimiser.

One class is eliminated: for k > 2 classes W = E T and b' = E beta with E (k, k - 1) orthonormal and orthogonal to
the vector of ones, so ||W|| = ||T||; two classes have one function and E = (1). Features are centred and scaled,

    f_j(x) = sum_a E_ja (sum_l theta_al (x_l - centre_l) / scale_l + beta_a),   theta_al = scale_l T_al,

which keeps the coordinates comparable whatever the units of the data. A point theta of R^p, p = (k - 1)(d + 1), lists
(theta_a1 .. theta_ad, beta_a) function by function.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ...core.problem import Problem
from ..margin_floor import score_drop

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Coordinates:
    """The samples of a linear problem in the coordinates above.

    Attributes
    ----------
    problem : Problem
        The problem, linear.
    E : ndarray of shape (m, m')
        Orthonormal basis of the admissible function vectors.
    X : ndarray of shape (n, d + 1)
        Centred and scaled samples with a column of ones.
    centre, scale : ndarray of shape (d,)
        How they were centred and scaled.
    """

    problem: Problem
    E: Array
    X: Array
    centre: Array
    scale: Array

    @classmethod
    def of(cls, problem: Problem) -> Coordinates:
        """Centre at the middle of the range of every feature and scale by half of it."""
        raw = problem.space.X  # type: ignore[union-attr]
        X = np.asarray(raw.toarray() if hasattr(raw, "toarray") else raw, dtype=np.float64)
        low, high = X.min(axis=0), X.max(axis=0)
        centre = 0.5 * (low + high)
        scale = np.where(high > low, 0.5 * (high - low), 1.0)
        padded = np.column_stack([(X - centre) / scale, np.ones(X.shape[0])])
        return cls(problem, sum_to_zero_basis(problem.n_classes), np.ascontiguousarray(padded), centre, scale)

    @property
    def p(self) -> int:
        """Number of coordinates (k - 1)(d + 1)."""
        return self.E.shape[1] * self.X.shape[1]

    @cached_property
    def curvature(self) -> Array:
        """Diagonal q of the penalty 1/2 sum_l q_l theta_l^2: l2 / scale_l^2, zero for intercepts."""
        row = np.append(self.problem.penalty.l2 / self.scale**2, 0.0)
        return np.tile(row, self.E.shape[1])

    @cached_property
    def is_intercept(self) -> NDArray[np.bool_]:
        """Which coordinates belong to intercepts."""
        row = np.zeros(self.X.shape[1], dtype=bool)
        row[-1] = True
        return np.tile(row, self.E.shape[1])

    @cached_property
    def rows(self) -> Array:
        """Margins against every rival: u_i = min_r rows[i, r] @ theta; shape (n, max(k - 1, 1), p)."""
        k, y = self.problem.n_classes, self.problem.y
        if k == 2:
            return (self.problem.signs[:, None] * self.X)[:, None, :]
        rivals = np.array([[j for j in range(k) if j != c] for c in range(k)])[y]
        directions = self.E[y][:, None, :] - self.E[rivals]
        return np.einsum("ira,il->iral", directions, self.X).reshape(len(y), k - 1, -1)

    def margins(self, theta: Array) -> Array:
        """Functional margins u_i(theta)."""
        return (self.rows @ theta).min(axis=1)

    def unpack(self, theta: Array) -> tuple[Array, Array]:
        """Return (W, b) in the user's units."""
        T = theta.reshape(self.E.shape[1], -1)
        W = self.E @ (T[:, :-1] / self.scale)
        return W, self.E @ T[:, -1] - W @ self.centre

    def pack(self, W: Array, b: Array) -> Array:
        """Return theta of coefficients whose functions sum to zero."""
        T = np.column_stack([(self.E.T @ W) * self.scale, self.E.T @ (b + W @ self.centre)])
        return T.ravel()

    def margin_floor(self, upper: float) -> Array:
        """Return per sample a number below which its margin does not fall at any point with objective <= ``upper``.

        It is t less the drop of :mod:`psilearn.exact.margin_floor` within i's class, where u_i >= t - ||w_y - w_r||
        ||x_i - x_(j+1)|| for the rival r of i; -inf if ``upper`` pays for giving up the whole class.
        """
        out = np.empty(self.problem.n)
        Z = self._raw
        for rows in self._members:
            costs = self.problem.costs[rows]
            if self._can_lose(costs, upper):
                out[rows] = -np.inf
            else:
                out[rows] = [self.problem.loss.t - self._drop(self._size(Z[rows] - Z[i]), costs, upper) for i in rows]
        return out

    def neighbours(self) -> tuple[NDArray[np.int64], Array]:
        """Return (order, distance): per sample those of its class by distance, itself first, -1 where there is none."""
        width = max(rows.size for rows in self._members)
        order, distance = np.full((self.problem.n, width), -1, dtype=np.int64), np.zeros((self.problem.n, width))
        for rows in self._members:
            for i in rows:
                away = self._size(self._raw[rows] - self._raw[i])
                nearest = np.lexsort((rows != i, away))
                order[i, : rows.size], distance[i, : rows.size] = rows[nearest], away[nearest]
        return order, distance

    @property
    def radius(self) -> float:
        """||w_y - w_j|| <= radius * sqrt(P(W)), or radius * P(W) in the l1 norm for a pure l1 penalty."""
        return self.problem.norm_bound(1.0) * self._factor * (1 + 1e-9)

    def box(self, upper: float) -> tuple[Array, Array]:
        """Return (lower, upper) of a box that contains a global minimiser, given that the optimum is <= ``upper``.

        Slopes: losses are non-negative, so P(W) <= upper and every |T_al| <= ||T|| = ||W|| <= rho (see
        :meth:`Problem.norm_bound`; for a pure l1 penalty rho bounds the l1 norm of W, hence |T_al| too).

        Intercepts, measured at ``centre``: suppose the minimiser gives up no class. The argument of
        :meth:`margin_floor`, applied to the distances from ``centre``, gives b'_a - b'_j >= t - drop_a for every class
        a and all j, so all differences are at most max_a drop_a - t.

        Giving up class a (all its samples at the cap) costs cap * the sum of its costs; ``upper`` allows this for at
        most m classes at once, those with the smallest prices. Let S >= |(w_y - w_j)'(x_i - centre)| over all samples
        and pairs and let tau be the largest |t_k| or |t| of the loss. For fixed W the objective is piecewise linear in
        b' and its kinks (including jumps) lie on hyperplanes b'_a - b'_c = const with |const| <= D = S + tau (ties
        between two rivals of a sample have |const| <= S). Sort b'. If two neighbours are more than D apart, move the
        upper group down until they are D apart: no kink lies on the way, nor beyond in the opposite direction, so the
        objective is linear on a whole ray; it is bounded (losses are capped), hence constant; at the end of the move
        it is lower semicontinuous. So a minimiser exists whose neighbours are at most D apart: f_j of a class that is
        given up is merely kept from running to minus infinity. Classes not given up lie within max_a drop_a - t of the
        top, and each of the m others below them adds at most D; and k - 1 gaps of D are a bound as well. For two
        classes the same holds for b' itself.
        """
        problem, k = self.problem, self.problem.n_classes
        loss, rho = problem.loss, problem.norm_bound(upper) * (1 + 1e-9)
        sizes = self._size(self._raw)
        knots = [abs(t) for _, t in loss.hinges] + [abs(loss.t)]
        D = self._factor * rho * float(sizes.max(initial=0.0)) + max(knots)
        drops = [self._drop(sizes[rows], problem.costs[rows], upper) for rows in self._members]
        price = np.sort([problem.costs[rows].sum() * loss.cap for rows in self._members])
        lost = int(np.sum(np.cumsum(price) <= upper * (1 + 1e-9)))
        reach = max(max(drops) - loss.t, 0.0) + lost * D
        if lost > 0:
            reach = min(reach, (k - 1) * D)
        side = np.tile(np.append(rho * self.scale, 0.0), self.E.shape[1])
        side[self.is_intercept] = reach * (1.0 if k == 2 else np.maximum(self.E, 0.0).sum(axis=0)) * (1 + 1e-9)
        return -side, side

    @cached_property
    def _raw(self) -> Array:
        return self.X[:, :-1] * self.scale

    @cached_property
    def _members(self) -> list[NDArray[np.intp]]:
        return [np.flatnonzero(self.problem.y == a) for a in range(self.problem.n_classes)]

    @property
    def _factor(self) -> float:
        """||w_y - w_j|| <= factor * ||W|| (Euclidean), or the same in the l1 norm of a pure l1 penalty."""
        return float(np.sqrt(2.0)) if self.problem.n_classes > 2 and self.problem.penalty.l2 > 0 else 1.0

    def _size(self, Z: Array) -> Array:
        """Norms of rows, dual to the norm in which ``norm_bound`` bounds W."""
        return np.sqrt((Z**2).sum(axis=1)) if self.problem.penalty.l2 > 0 else np.abs(Z).max(axis=1, initial=0.0)

    def _drop(self, distance: Array, cost: Array, upper: float) -> float:
        """max_j ||w_y - w_r|| distance_(j+1), given that P(W) <= upper - cap * (costs of the j nearest)."""
        radius = self.problem.norm_bound(upper) * self._factor
        return float(score_drop(distance, cost, self.problem.loss.cap, upper, radius, self.problem.penalty.l2 > 0))

    def _can_lose(self, cost: Array, upper: float) -> bool:
        return float(cost.sum()) * self.problem.loss.cap <= upper * (1 + 1e-9)


def sum_to_zero_basis(n_classes: int) -> Array:
    """Return E: (1) for two classes, else k - 1 orthonormal columns orthogonal to the vector of ones (Helmert)."""
    if n_classes == 2:
        return np.ones((1, 1))
    E = np.zeros((n_classes, n_classes - 1))
    for a in range(1, n_classes):
        E[:a, a - 1] = 1.0
        E[a, a - 1] = -a
    return np.ascontiguousarray(E / np.linalg.norm(E, axis=0))
