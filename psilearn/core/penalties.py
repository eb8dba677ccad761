"""Penalties: one record, P(W) = l2/2 ||W||^2 + sum_jl l1_jl |w_jl| + l0 #{w_jl != 0}, the l1 part maybe folded."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from .bounds.rounding import UNIT, total_above


@dataclass(frozen=True, eq=False)
class Penalty:
    """The penalty ``l2/2 ||W||^2 + sum_jl l1_jl |w_jl| + l0 #{w_jl != 0}``; intercepts are never penalised.

    Parameters
    ----------
    l2 : float
        Weight of half the squared norm (the norm of the space: Euclidean, or the RKHS norm of a kernel).
    l1 : float or ndarray
        Weight of the absolute values, one number or one per coefficient (broadcast against W). ``inf`` forces a zero.
    l0 : float
        Price of a non-zero coefficient.
    scad : float
        If positive (> 2, usually 3.7), every lambda |w| with lambda = l1 is folded to the smoothly clipped absolute
        deviation of Fan and Li (2001): slope lambda up to lambda, falling linearly to 0 at ``scad`` lambda, flat above.
    """

    l2: float = 0.0
    l1: float | NDArray[np.float64] = 0.0
    l0: float = 0.0
    scad: float = 0.0

    def __post_init__(self) -> None:
        if self.scad and not self.scad > 2:
            raise ValueError(f"scad must be 0 (off) or larger than 2, got {self.scad!r}.")
        if self.l2 < 0 or np.any(np.asarray(self.l1) < 0) or self.l0 < 0:
            raise ValueError("Penalty weights l2, l1 and l0 must not be negative.")

    @property
    def has_l1(self) -> bool:
        """True iff some absolute value is penalised."""
        return bool(np.any(np.asarray(self.l1) > 0))

    @property
    def parts(self) -> frozenset[str]:
        """Names of the parts that are not zero, and what is special about them; solvers declare which they take.

        A field added to this record is a part of its own name, so no solver takes it before it is declared.
        """
        parts = {part.name for part in fields(self) if np.any(np.asarray(getattr(self, part.name)) != 0)}
        l1 = np.asarray(self.l1)
        special = {
            "no penalty": not parts,
            "elastic net": {"l1", "l2"} <= parts,
            "zero l1 weights": "l1" in parts and bool(np.any(l1 == 0)),
            "free coefficients": "l1" in parts and "l2" not in parts and bool(np.any(l1 == 0)),
            "infinite l1 weights": bool(np.any(np.isinf(l1))),
            "l1 weights": "l1" in parts and bool(np.any(l1 != l1.flat[0])),
        }
        return frozenset(parts | {name for name, holds in special.items() if holds})

    @property
    def is_convex(self) -> bool:
        """True iff non-zeros are not counted and nothing is folded."""
        return self.l0 == 0 and not self.scad

    @property
    def convex_part(self) -> Penalty:
        """The same penalty unfolded."""
        return replace(self, scad=0.0)

    def l1_array(self, shape: tuple[int, int]) -> NDArray[np.float64]:
        """Return the l1 weights broadcast to the shape of W."""
        return np.broadcast_to(np.asarray(self.l1, dtype=np.float64), shape)

    def value(self, W: NDArray[np.float64], norm2: float) -> float:
        """Evaluate P; ``norm2`` is ||W||^2 in the norm of the space."""
        total = 0.5 * self.l2 * norm2
        if self.has_l1:
            mask = W != 0  # inf * 0 counts as 0: the coefficient obeys the ban
            total += float(np.sum(self._folded(np.abs(W[mask]), self.l1_array(W.shape)[mask])))
        if self.l0:
            total += self.l0 * int(np.count_nonzero(W))
        return total

    def _folded(self, w: NDArray[np.float64], l1: NDArray[np.float64]) -> NDArray[np.float64]:
        """The l1 part, coefficient by coefficient, of absolute values w."""
        if not self.scad:
            return l1 * w
        a = self.scad
        middle = (2.0 * a * l1 * w - w**2 - l1**2) / (2.0 * (a - 1.0))
        return np.where(w <= l1, l1 * w, np.where(w <= a * l1, middle, 0.5 * (a + 1.0) * l1**2))

    def majorant(self, W: NDArray[np.float64]) -> tuple[Penalty, float]:
        """Return a convex penalty and an offset that together touch this one at W and lie above it elsewhere.

        The folded l1 part is concave in the absolute value, so its tangent there majorises it: a reweighted l1 norm
        (the local linear approximation of Zou and Li, 2008).
        """
        if not self.scad:
            return self, 0.0
        w, l1 = np.abs(W), self.l1_array(W.shape)
        slope = np.where(w <= l1, l1, np.maximum(self.scad * l1 - w, 0.0) / (self.scad - 1.0))
        return replace(self, l1=slope, scad=0.0), float(np.sum(self._folded(w, l1) - slope * w))

    def conjugate(self, V: NDArray[np.float64], radius: NDArray[np.float64] | float = 0.0) -> float:
        """Return an upper bound, tight but for rounding, on P*(V') = sup_W <V', W> - P(W) for all |V' - V| <= radius.

        For convex P in Euclidean coordinates. For more than one row the supremum is over rows that sum to zero, so
        P*(V) = min_nu sum_j P_j*(v_j - nu); the shift nu minimises over each column separately. Any nu gives an upper
        bound, so a numerically found one is safe. Every step is rounded up: 8 u covers its three roundings.
        """
        l1 = self.l1_array(V.shape)
        up = 1.0 + 8.0 * UNIT
        if V.shape[0] > 1:
            V = V - best_shift(V, l1)
        excess = np.maximum((np.abs(V) + radius) * up - l1, 0.0) * up
        if self.l2 > 0:
            return total_above(excess**2 * up) / (2.0 * self.l2) * up
        return 0.0 if float(excess.max(initial=0.0)) == 0.0 else np.inf


def best_shift(V: NDArray[np.float64], l1: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return per column the nu that minimises sum_j ((|v_j - nu| - l1_j)_+)^2, by bisection on its derivative."""
    if not np.any(l1 > 0):
        return V.mean(axis=0)
    lo, hi = V.min(axis=0), V.max(axis=0)
    for _ in range(100):
        nu = 0.5 * (lo + hi)
        z = V - nu
        slope = np.sum(np.sign(z) * np.maximum(np.abs(z) - l1, 0.0), axis=0)
        lo, hi = np.where(slope > 0, nu, lo), np.where(slope > 0, hi, nu)
    feasible_lo, feasible_hi = np.max(V - l1, axis=0), np.min(V + l1, axis=0)
    # The middle of the interval where nothing is paid; an unbounded end is cut at the range of the column.
    middle = 0.5 * (np.maximum(feasible_lo, V.min(axis=0)) + np.minimum(feasible_hi, V.max(axis=0)))
    return np.where(feasible_lo <= feasible_hi, middle, 0.5 * (lo + hi))
