"""THE objective, stated once:

    minimise  P(W) + C sum_i weight_i l(u_i) + sum_ij tilt_ij f_j(x_i) + offset      over W, b (intercepts are free)

* two classes: one function f, u_i = y_i f(x_i) with y in {-1, +1} (class code 1 is +1), W has one row;
* k > 2 classes: f_1..f_k with sum_j f_j = 0, u_i = min_{j != y_i} (f_{y_i} - f_j)(x_i), W has k rows, and penalties
  are summed over classes.

``tilt`` and ``offset`` are zero in every problem a user states. The d.c. algorithm linearises the concave part of a
loss, which adds exactly such terms, so the convex machines solve tilted problems and need not know why; the offset
keeps the value of the linearised problem that of the original one, so that relative gaps mean the same in both.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from .duality import l1_shrinkage, repair_k_class, repair_two_class
from .losses import Loss
from .penalties import Penalty
from .spaces import KernelSpace, LinearSpace, Space


@dataclass(frozen=True, eq=False)
class Problem:
    """Data, loss, penalty and scaling of one learning problem.

    Parameters
    ----------
    space : Space
        The samples.
    y : ndarray of intp, shape (n,)
        Class codes 0..n_classes-1.
    n_classes : int
        k >= 2.
    loss, penalty
        The normal forms.
    C : float
        Price of a unit of loss.
    weights : ndarray of float64, shape (n,)
        Positive weights of the samples (sample weight times class weight).
    tilt : ndarray of shape (n, m) or None
        Linear term on the scores; for k > 2 its rows sum to zero.
    offset : float
        Constant term.
    """

    space: Space
    y: NDArray[np.intp]
    n_classes: int
    loss: Loss
    penalty: Penalty
    C: float
    weights: NDArray[np.float64]
    tilt: NDArray[np.float64] | None = None
    offset: float = 0.0

    @property
    def n(self) -> int:
        """Number of samples."""
        return self.space.n

    @property
    def n_functions(self) -> int:
        """Rows m of W: 1 for two classes, k otherwise."""
        return 1 if self.n_classes == 2 else self.n_classes

    @property
    def is_kernel(self) -> bool:
        """True if the space is given by a Gram matrix."""
        return isinstance(self.space, KernelSpace)

    @property
    def is_convex(self) -> bool:
        """True if loss and penalty are convex."""
        return self.loss.is_convex and self.penalty.is_convex

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

    def margins_of_scores(self, F: NDArray[np.float64]) -> NDArray[np.float64]:
        """Functional margins u_i from an (n, m) array of scores."""
        if self.n_classes == 2:
            return self.signs * F[:, 0]
        return _margin_and_rival(F, self.y)[0]

    def rivals(self, F: NDArray[np.float64]) -> NDArray[np.intp]:
        """For k > 2: the class that attains the minimum in the margin, ties to the lowest index."""
        return _margin_and_rival(F, self.y)[1]

    def margins(self, W: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
        """Functional margins u_i of coefficients."""
        return self.margins_of_scores(self.space.scores(W, b))

    def value(self, W: NDArray[np.float64], b: NDArray[np.float64]) -> float:
        """Evaluate the objective; every reported number comes from here."""
        return self.value_of_scores(W, self.space.scores(W, b))

    def value_of_scores(self, W: NDArray[np.float64], F: NDArray[np.float64]) -> float:
        """Evaluate the objective where the scores are known."""
        total = self.penalty.value(W, self.space.inner(W, W) if self.penalty.l2 else 0.0)
        total += float(self.costs @ self.loss.value(self.margins_of_scores(F), self.y))
        if self.tilt is not None:
            total += float(np.sum(self.tilt * F))
        return total + self.offset

    def loss_multipliers(self, F: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return R (n, m) such that -R is a subgradient, in the scores, of C sum_i weight_i g(u_i)."""
        slope = self.costs * self.loss.convex_slope(self.margins_of_scores(F), self.y)
        return self.spread(slope, None if self.n_classes == 2 else self.rivals(F))

    def spread(self, alpha: NDArray[np.float64], rival: NDArray[np.intp] | None) -> NDArray[np.float64]:
        """Turn multipliers of the margins into multipliers R of the scores: R_i = alpha_i du_i/df."""
        if self.n_classes == 2:
            return (alpha * self.signs)[:, None]
        R = np.zeros((self.n, self.n_classes))
        rows = np.arange(self.n)
        R[rows, self.y] = alpha
        R[rows, rival] -= alpha
        return R

    def subgradient(self, W: NDArray[np.float64], b: NDArray[np.float64]) -> tuple[NDArray, NDArray]:
        """Return a subgradient of the convex part (g in place of l) in W and b.

        Only for linear spaces is the first part Euclidean; for kernels it represents the RKHS subgradient.
        """
        R = self.loss_multipliers(self.space.scores(W, b))
        R = -R if self.tilt is None else self.tilt - R
        gW = self.space.combine(R) + self.penalty.l2 * W
        if self.penalty.has_l1:
            gW = gW + np.where(W != 0, np.sign(W) * self.penalty.l1_array(W.shape), 0.0)
        return gW, R.sum(axis=0)

    def dual_bound(self, R: NDArray[np.float64]) -> float:
        """Return a lower bound on the convex optimum (g in place of l) that any multipliers R prove, by weak duality.

            D(R) = sum_i gain_i(alpha_i) - P*(sum_i (R_i - tilt_i) x_i)

        over feasible R: two classes R_i = y_i alpha_i, 0 <= alpha_i <= cost_i sum_k c_k; k classes R_{i y_i} = alpha_i,
        R_ij <= 0 otherwise, rows summing to zero; and sum_i (R_i - tilt_i) = 0, because the intercepts are free. An
        infeasible R is first repaired, so the bound holds whatever comes in; a bad R only makes it weak.
        """
        feasible = self.repaired_multipliers(R)
        return -np.inf if feasible is None else self.bound_of(feasible)

    def bound_of(self, feasible: NDArray[np.float64], V: NDArray[np.float64] | None = None) -> float:
        """Evaluate D at what :meth:`repaired_multipliers` returned; V is sum_i (R_i - tilt_i) x_i if known."""
        alpha = feasible[:, 0] * self.signs if self.n_classes == 2 else feasible[np.arange(self.n), self.y]
        gain = float(np.sum(self.loss.dual_gain(alpha, self.costs, self.y)))
        if self.penalty.l2 > 0:  # otherwise the conjugate is zero by construction of shrunk, up to rounding
            gain -= self._conjugate(self.combined(feasible) if V is None else V)
        return gain + self.offset

    def repaired_multipliers(self, R: NDArray[np.float64]) -> NDArray[np.float64] | None:
        """Return dual feasible multipliers near R (see :meth:`dual_bound`), None if a tilt makes that impossible."""
        balanced = self.balanced_multipliers(R)
        if balanced is None or self.penalty.l2 > 0:
            return balanced
        return self.shrunk(balanced, self.combined(balanced))

    def combined(self, R: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return sum_i (R_i - tilt_i) x_i."""
        return self.space.combine(R if self.tilt is None else R - self.tilt)

    def balanced_multipliers(self, R: NDArray[np.float64]) -> NDArray[np.float64] | None:
        """Return multipliers near R that are feasible but for the penalty's conjugate; None as above."""
        upper = self.dual_limits
        target = np.zeros(self.n_functions) if self.tilt is None else self.tilt.sum(axis=0)
        if self.n_classes == 2:
            alpha = repair_two_class(R[:, 0] * self.signs, self.signs, upper, float(target[0]))
            if alpha is None:
                return self._tilt_as_multipliers(upper)
            R = self.spread(alpha, None)
        else:
            A = repair_k_class(-R, self.y, upper, target)
            if A is None:
                return self._tilt_as_multipliers(upper)
            R = -A
            R[np.arange(self.n), self.y] = A.sum(axis=1)
        return R

    def _tilt_as_multipliers(self, upper: NDArray[np.float64]) -> NDArray[np.float64] | None:
        """Return the tilt itself if its rows are feasible multipliers, as those of a majorant are; its columns balance.

        When a class is wholly truncated this is all the freedom there is, and rounding hides it from the repair.
        """
        if self.tilt is None:
            return None
        rows = np.arange(self.n)
        alpha = self.tilt[:, 0] * self.signs if self.n_classes == 2 else self.tilt[rows, self.y]
        others = np.zeros(self.n) if self.n_classes == 2 else np.where(self._own_class, 0.0, self.tilt).max(axis=1)
        feasible = np.all(alpha >= 0) and np.all(alpha <= upper * (1 + 1e-12)) and np.all(others <= 0)
        return self.tilt.copy() if feasible else None

    @cached_property
    def _own_class(self) -> NDArray[np.bool_]:
        return self.y[:, None] == np.arange(self.n_classes)

    def shrunk(self, R: NDArray[np.float64], V: NDArray[np.float64]) -> NDArray[np.float64]:
        """Pull R to the tilt until the conjugate of a pure l1 penalty is finite at V = sum_i (R_i - tilt_i) x_i."""
        l1 = self.penalty.l1_array(V.shape)
        if np.any(l1 == 0) and isinstance(self.space, LinearSpace):
            # An unpenalised coefficient asks for V = 0, which rounding denies: allow what rounding can make of the sum.
            l1 = np.maximum(l1, 1e-13 * self.dual_limits.sum() * self.space.column_peaks)
        theta = l1_shrinkage(V, l1)
        if theta < 1.0:
            theta *= 1.0 - 1e-14  # stay on the safe side of rounding
        return theta * R if self.tilt is None else self.tilt + theta * (R - self.tilt)

    def _conjugate(self, V: NDArray[np.float64]) -> float:
        """Evaluate P* at V = sum_i R_i x_i; for kernels (l2 only) in the RKHS norm (rows of R sum to zero)."""
        if self.is_kernel:
            V = V / self.penalty.l2
            return 0.5 * self.penalty.l2 * self.space.inner(V, V)
        return self.penalty.conjugate(V)

    @cached_property
    def zero_value(self) -> float:
        """Objective of f = 0: a-priori upper bound on the optimum."""
        return float(self.costs @ self.loss.value(np.zeros(self.n), self.y))

    def best_constant(self) -> tuple[float, NDArray[np.float64]]:
        """Return (objective, intercepts) of the best constant function tried: an a-priori upper bound on the optimum.

        Exact for two classes (the objective is piecewise linear in b, its breakpoints are tried); for k classes the
        candidates are f = 0 and "always class j" with margin t_k or t.
        """
        knots = sorted({0.0, *(abs(t) for _, t in self.loss.hinges), *([abs(self.loss.t)] * (not self.loss.is_convex))})
        if self.n_classes == 2:
            candidates = [np.array([s * v]) for v in knots for s in (1.0, -1.0)]
        else:
            push = np.eye(self.n_classes) - 1.0 / self.n_classes
            candidates = [v * row for v in knots for row in push]
        W = np.zeros((self.n_functions, self.space.dim))
        best = min(candidates, key=lambda b: self._constant_value(b))
        return self.value(W, best), best

    def _constant_value(self, b: NDArray[np.float64]) -> float:
        F = np.broadcast_to(b, (self.n, b.size))
        total = float(self.costs @ self.loss.value(self.margins_of_scores(F), self.y))
        return total if self.tilt is None else total + float(np.sum(self.tilt * F))

    def norm_bound(self, upper: float) -> float:
        """Radius of a ball that contains every W with objective <= ``upper``: losses are >= 0, so P(W) <= upper.

        Euclidean (or RKHS) norm if l2 > 0, else the l1 norm divided by the smallest l1 weight.
        """
        if self.tilt is not None:
            raise ValueError("norm_bound is defined for untilted problems only.")
        if self.penalty.l2 > 0:
            return float(np.sqrt(2.0 * max(upper, 0.0) / self.penalty.l2))
        smallest = float(np.min(np.asarray(self.penalty.l1)))
        return max(upper, 0.0) / smallest if smallest > 0 else np.inf

    def with_loss(self, loss: Loss, tilt: NDArray[np.float64] | None = None) -> Problem:
        """Return the same data and penalty with another loss and tilt."""
        return replace(self, loss=loss, tilt=tilt, offset=0.0)

    def majorant(self, W: NDArray[np.float64], b: NDArray[np.float64]) -> Problem:
        """Return a convex problem whose objective touches this one at (W, b) and lies above it elsewhere (d.c. step).

        l = g - (g - cap)_+, and the convex (g - cap)_+ is replaced by its tangent: with steepness s_i = -g'(u_i) of the
        capped samples (u_i < t strictly) this adds cost_i s_i u to their objective. Where two classes tie for the
        margin the lowest index is taken, which keeps the tangent a subgradient. A folded penalty becomes a reweighted
        l1 norm.
        """
        F = self.space.scores(W, b)
        u = self.margins_of_scores(F)
        capped = self.loss.is_capped(u)
        steepness = np.where(capped, self.costs * self.loss.convex_slope(u, self.y), 0.0)
        tilt = self.spread(steepness, None if self.n_classes == 2 else self.rivals(F))
        excess = np.zeros(self.n)
        if capped.any():
            excess = np.where(capped, self.loss.convex_value(u, self.y) - self.loss.cap_of(self.y), 0.0)
        penalty, offset = self.penalty.majorant(W)
        offset += self.offset - float(self.costs @ excess) - float(steepness @ u)
        return replace(self, loss=self.loss.convex_part, penalty=penalty, tilt=tilt, offset=offset)

    def subset(self, rows: NDArray[np.intp]) -> Problem:
        """Return the problem on some of the samples (same number of classes, same C)."""
        tilt = None if self.tilt is None else self.tilt[rows]
        return replace(self, space=self.space.subset(rows), y=self.y[rows], weights=self.weights[rows], tilt=tilt)


def _margin_and_rival(F: NDArray[np.float64], y: NDArray[np.intp]) -> tuple[NDArray, NDArray]:
    rows = np.arange(F.shape[0])
    others = F.copy()
    others[rows, y] = -np.inf
    rival = others.argmax(axis=1)
    return F[rows, y] - others[rows, rival], rival
