"""The dual of the objective: what multipliers prove of it, in real arithmetic.

Every bound is a lower bound on the convex optimum, whatever multipliers come in;
:class:`psilearn.core.problem.Problem` inherits it.
"""

from __future__ import annotations

import math
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .bounds.correction import (
    Moves,
    approximate_inverse,
    chosen_moves,
    effects,
    equations_of,
    k_class_moves,
    moved_by,
    proved_sizes,
    residuals,
    roomiest,
    two_class_moves,
    without_dust,
)
from .bounds.duality import balanced_k_class, balanced_two_class, gain_below, l1_shrinkage
from .bounds.rounding import UNIT, difference_below, product_below, total_above
from .losses import Loss
from .penalties import Penalty
from .spaces import LinearSpace, Space

#: Part of a bound that the allowance for rounding may cost before sums are taken anew with more digits. It decides how
#: tight a bound is, never whether it holds; below every tolerance that is asked in practice (1e-4 by default).
SHARP = 1e-10


class Proof(NamedTuple):
    """A lower bound on a convex optimum and the feasible multipliers R (n, m) that prove it, rounded to float64.

    ``evidence`` are multipliers from which the same bound follows again. They are R before it was made smaller for the
    penalty, because R is rounded afterwards, which a penalty that is tiny beside the multipliers would notice.
    """

    bound: float
    multipliers: NDArray[np.float64]
    evidence: NDArray[np.float64] | None = None


@lru_cache(maxsize=1 << 10)
def _price_floor(C: float, weight: float, slope: float) -> float:
    return float(product_below(product_below(C, weight), slope))


class Dual:
    """Dual bounds of a problem; a base of ``Problem``, which states the attributes."""

    space: Space
    y: NDArray[np.intp]
    n_classes: int
    loss: Loss
    penalty: Penalty
    C: float
    weights: NDArray[np.float64]
    tilt: NDArray[np.float64] | None
    offset: float

    @property
    def n(self) -> int:
        """Number of samples."""
        return self.space.n

    @cached_property
    def costs(self) -> NDArray[np.float64]:
        """Price C * weight_i of a unit of sample i's loss."""
        return self.C * self.weights

    @cached_property
    def prices(self) -> NDArray[np.float64]:
        """Price cost_i c_k of a unit of sample i's hinge k, shape (n, number of hinges)."""
        slopes = np.broadcast_arrays(self.costs, *self.loss.slopes(self.y))[1:]
        return self.costs[:, None] * np.array(slopes).reshape(-1, self.n).T

    @cached_property
    def dual_limits(self) -> NDArray[np.float64]:
        """Upper ends of the multipliers alpha_i: cost_i times the steepest slope of sample i's loss."""
        return self.costs * sum(self.loss.slopes(self.y))

    @cached_property
    def signs(self) -> NDArray[np.float64]:
        """The labels -1 and +1 of a two-class problem."""
        return np.where(self.y == 1, 1.0, -1.0)

    @cached_property
    def price_floors(self) -> NDArray[np.float64]:
        """Numbers not above the true products C weight_i c_k, shape (n, number of hinges)."""
        slopes = self.loss.slopes(self.y)
        alike = self.n > 0 and self.weights.min() == self.weights.max() and not any(map(np.ndim, slopes))
        if alike:
            floors = np.array([_price_floor(self.C, float(self.weights[0]), float(slope)) for slope in slopes])
            return np.broadcast_to(floors, (self.n, len(slopes)))
        costs = product_below(np.float64(self.C), self.weights)
        return np.array([product_below(costs, slope) for slope in slopes]).reshape(len(slopes), -1).T

    @cached_property
    def limit_floors(self) -> NDArray[np.float64]:
        """Numbers not above the true limits C weight_i sum_k c_k of the multipliers."""
        floors = self.price_floors
        alike = self.n > 0 and floors.strides[0] == 0
        total = np.zeros(1 if alike else self.n)
        for price in floors[: total.size].T:
            total = difference_below(price, -total)
        return np.broadcast_to(total, self.n)

    def accepts(self, R: NDArray[np.float64]) -> bool:
        """Whether R are finite multipliers of the right shape."""
        return R.shape == (self.n, 1 if self.n_classes == 2 else self.n_classes) and bool(np.all(np.isfinite(R)))

    def dual_bound(self, R: NDArray[np.float64]) -> float:
        """Return a lower bound on the convex optimum (g in place of l) that any multipliers R prove, by weak duality.

            D(R) = sum_i gain_i(alpha_i) - P*(sum_i (R_i - tilt_i) x_i)

        over feasible R: two classes R_i = y_i alpha_i, 0 <= alpha_i <= cost_i sum_k c_k; k classes R_{i y_i} = alpha_i,
        R_ij <= 0 otherwise, rows summing to zero; and sum_i (R_i - tilt_i) = 0, because the intercepts are free. An
        infeasible R is first repaired, so the bound holds whatever comes in; a bad R only makes it weak.

        The bound is one of the problem with the stored numbers, in real arithmetic: the repair is exact
        (:mod:`psilearn.core.bounds.duality`), and gain and conjugate are rounded to the safe side
        (:mod:`psilearn.core.bounds.rounding`).
        """
        proof = self.proof(R)
        return -np.inf if proof is None else proof.bound

    def repaired_multipliers(self, R: NDArray[np.float64]) -> NDArray[np.float64] | None:
        """Return dual feasible multipliers near R (see :meth:`dual_bound`), None if a tilt makes that impossible."""
        proof = self.proof(R)
        return None if proof is None else proof.multipliers

    def proof(self, R: NDArray[np.float64], sharp: float = SHARP) -> Proof | None:
        """Return what the multipliers prove once they are repaired, None if a tilt makes repair impossible.

        Where the allowance for rounding costs more than the part ``sharp`` of the bound, sums are taken anew with more
        digits.
        """
        D = self.balanced_step(R)
        if D is None:
            return None
        if isinstance(self.space, LinearSpace):
            return self.proof_of_sums(D, *self.space.balanced_sums(D), sharp)
        value, error = self.space.quadratic(D)
        if value + error < 0:
            return None  # D'KD < 0: the Gram matrix is not positive semidefinite, and nothing is proved
        proof = self._proof(D, 1.0, self._kernel_conjugate(value, error))
        if error > 2.0 * self.penalty.l2 * sharp * abs(proof.bound):
            proof = self._proof(D, 1.0, self._kernel_conjugate(*self.space.sharp_quadratic(D)))
        return proof

    def proof_of_sums(
        self, D: NDArray[np.float64], V: NDArray[np.float64], radius: NDArray[np.float64], sharp: float = SHARP
    ) -> Proof | None:
        """Return what D of :meth:`balanced_step` proves; |sum_i D_i x_i - V| <= radius, in a linear space."""
        assert isinstance(self.space, LinearSpace)
        unpenalised = self.penalty.l1_array(V.shape) == 0
        if self.penalty.l2 == 0 and unpenalised.any():
            return self._proof_with_equations(D, unpenalised)
        proof, ideal = self._linear_proof(D, V, radius), self._linear_proof(D, V, np.zeros_like(V))
        if proof is None or ideal is None or ideal.bound - proof.bound <= sharp * abs(ideal.bound):
            return proof
        V, radius = self.space.sharp_sums(D)
        proof = self._linear_proof(D, V, radius)
        if proof is not None and self._is_noise(D, V, proof.bound):
            other = self._proof_with_equations(D, np.ones(V.shape, dtype=bool))
            proof = max(proof, other, key=lambda each: each.bound) if other is not None else proof
        return proof

    def _is_noise(self, D: NDArray[np.float64], V: NDArray[np.float64], bound: float) -> bool:
        """Whether V is no more than the rounding of multipliers makes of 0, and yet weakens the bound."""
        assert isinstance(self.space, LinearSpace)
        size = 4.0 * UNIT * float(np.abs(D).max(initial=0.0))
        noise = size * size * float(self.space.squared_norms.sum())  # a power would raise where a product is inf
        norm = float(np.sum(V * V))
        return self.penalty.l2 > 0 and norm <= noise * V.shape[0] and norm > 2.0 * self.penalty.l2 * SHARP * abs(bound)

    def _linear_proof(
        self,
        D: NDArray[np.float64],
        V: NDArray[np.float64],
        radius: NDArray[np.float64],
        moved: float = 0.0,
        met: NDArray[np.bool_] | None = None,
    ) -> Proof | None:
        """Return what D proves after moves of ``moved`` in all that meet the equations V = 0 of the entries ``met``."""
        assert isinstance(self.space, LinearSpace)
        if moved:
            radius = (radius + moved * self.space.column_peaks) * (1.0 + 4.0 * UNIT)
        if self.penalty.l2 > 0:
            if met is not None:
                V, radius = np.where(met, 0.0, V), np.where(met, 0.0, radius)
            return self._proof(D, 1.0, self.penalty.conjugate(V, radius), moved)
        l1 = self.penalty.l1_array(V.shape)
        if self._tilt_is_feasible:
            return self._proof(D, l1_shrinkage(V, radius, l1, met), 0.0, moved)
        return self._shrunk_proof(D, V, radius, l1) if met is None else None

    def _proof_with_equations(self, D: NDArray[np.float64], met: NDArray[np.bool_]) -> Proof | None:
        """Return what D proves after a correction for which sum_i D_i x_i = 0 in the entries ``met``, exactly.

        Entries of l1 weight zero need that (:mod:`psilearn.core.bounds.correction`). Where no correction is found, D is
        0.
        """
        assert isinstance(self.space, LinearSpace)
        D = self._rebalanced(without_dust(D, self.y))
        for is_last in (False, True):
            V, radius = self.space.sharp_sums(D)
            moves = roomiest(self._moves(D), 20 * (met.size + met.shape[0]) + 200)
            equations = equations_of(met, moves, D)
            M = effects(moves, equations, self.space.rows(moves.sample))
            chosen = chosen_moves(M, moves.room)
            Y = None if chosen is None else approximate_inverse(M[:, chosen])
            if chosen is None or Y is None:
                break
            left, error = residuals(equations, V, radius)
            if is_last:
                sizes = proved_sizes(M[:, chosen], Y, np.abs(left) + error)
                if sizes is None or np.any(sizes > moves.room[chosen]):
                    break
                return self._linear_proof(D, V, radius, total_above(sizes), met)
            sizes = -Y @ left
            if np.all(np.abs(sizes) <= moves.room[chosen]):
                D = self._rebalanced(moved_by(D, moves, chosen, sizes))
        return self._proof(np.zeros_like(D), 1.0, 0.0) if self._tilt_is_feasible else None

    def _rebalanced(self, D: NDArray[np.float64]) -> NDArray[np.float64]:
        step = self.balanced_step(D if self.tilt is None else self.tilt + D)
        assert step is not None, "there was a feasible step before"
        return step

    def _moves(self, D: NDArray[np.float64]) -> Moves:
        """Return moves of the multipliers tilt + D and their room, rounded down."""
        R, size = (D, np.abs(D)) if self.tilt is None else (self.tilt + D, np.abs(self.tilt) + np.abs(D))
        error = 4.0 * UNIT * (size + self.limit_floors[:, None])
        if self.n_classes == 2:
            alpha = R[:, 0] * self.signs
            return two_class_moves(alpha - error[:, 0], self.limit_floors - alpha - error[:, 0])
        own = np.arange(self.n), self.y
        return k_class_moves(np.maximum(-R - error, 0.0), self.limit_floors - R[own] - error[own], self.y)

    def _shrunk_proof(
        self, D: NDArray[np.float64], V: NDArray[np.float64], radius: NDArray[np.float64], l1: NDArray[np.float64]
    ) -> Proof | None:
        """Pull D to a feasible D0 with V0 = sum_i D0_i x_i nearly 0: |V0 + theta (V - V0)| <= l1 where the tilt is not.

        The mean of feasible multipliers is feasible, and |theta (V - V0)| <= l1 - |V0| is enough.
        """
        assert self.tilt is not None
        assert isinstance(self.space, LinearSpace)
        near = self.balanced_step(self.tilt)
        if near is None:
            return None
        start, error = self.space.balanced_sums(near)
        left = difference_below(l1, (np.abs(start) + error) * (1.0 + 4.0 * UNIT))
        if np.any(left < 0):
            return None
        apart = V - start
        theta = l1_shrinkage(apart, (radius + error) * (1.0 + 4.0 * UNIT) + UNIT * np.abs(apart), left)
        return self._proof(D, theta, 0.0, near=near)

    def balanced_step(self, R: NDArray[np.float64]) -> NDArray[np.float64] | None:
        """Return D near R - tilt such that tilt + D is feasible but for the penalty's conjugate; None as above."""
        if self.n_classes == 2:
            tilt = None if self.tilt is None else self.tilt[:, 0]
            D = balanced_two_class(R[:, 0] * self.signs, self.signs, self.limit_floors, tilt)
            return None if D is None else D[:, None]
        return balanced_k_class(-R, self.y, self.limit_floors, self.tilt)

    def _proof(
        self,
        D: NDArray[np.float64],
        theta: float,
        conjugate: float,
        moved: float = 0.0,
        near: NDArray[np.float64] | None = None,
    ) -> Proof:
        """Evaluate the dual at R = tilt + theta D (+ (1 - theta) near), rounded down; the conjugate is rounded up.

        ``moved`` allows for multipliers that differ from R by that much in all.
        """
        step = theta * D if near is None else theta * D + (1.0 - theta) * near
        R = step if self.tilt is None else self.tilt + step
        own = np.arange(self.n), self.y if self.n_classes > 2 else 0
        sign = 1.0 if self.n_classes > 2 else self.signs
        gain, error = gain_below(sign * R[own], self.price_floors, np.array([t for _, t in self.loss.hinges]))
        # R is rounded five times at most; the gain changes by no more than max |t_k| times that.
        terms = np.abs(R[own]) + np.abs(D[own]) + (0.0 if near is None else np.abs(near[own]))
        error += self._steepest_gain * (8.0 * UNIT * float(np.sum(terms)) + 2.0 * moved)
        parts = math.fsum([gain, -error, -conjugate, self.offset])
        evidence = D if near is None and self.tilt is None else R
        return Proof(math.nextafter(parts, -math.inf), R, evidence)

    @property
    def _steepest_gain(self) -> float:
        return max((abs(t) for _, t in self.loss.hinges), default=0.0)

    def _kernel_conjugate(self, quadratic: float, error: float) -> float:
        """Return an upper bound on sum_j d_j' K d_j / (2 l2), the conjugate in the RKHS norm."""
        return (quadratic + error) / (2.0 * self.penalty.l2) * (1.0 + 8.0 * UNIT)

    @cached_property
    def _tilt_is_feasible(self) -> bool:
        """Whether the tilt itself is a feasible R, as that of a majorant is, so that R may be pulled to it."""
        if self.tilt is None:
            return True
        if self.n_classes == 2:
            alpha, others = self.tilt[:, 0] * self.signs, np.zeros(1)
        else:
            own = self.y[:, None] == np.arange(self.n_classes)
            alpha, others = self.tilt[own], np.where(own, 0.0, self.tilt)
        return bool(np.all(alpha >= 0) and np.all(alpha <= self.limit_floors) and np.all(others <= 0))
