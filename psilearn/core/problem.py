"""THE objective, stated once:

    minimise  P(W) + C sum_i weight_i l(u_i) + sum_ij tilt_ij f_j(x_i) + offset      over W, b (intercepts are free)

* two classes: one function f, u_i = y_i f(x_i) with y in {-1, +1} (class code 1 is +1), W has one row;
* k > 2 classes: f_1..f_k with sum_j f_j = 0, u_i = min_{j != y_i} (f_{y_i} - f_j)(x_i), W has k rows, and penalties
  are summed over classes.

``tilt`` and ``offset`` are zero in every problem a user states. The d.c. algorithm linearises the concave part of a
loss, which adds exactly such terms, so the convex solvers solve tilted problems and need not know why; the offset
keeps the value of the linearised problem that of the original one, so that relative gaps mean the same in both.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from .bounds.rounding import UNIT, gamma
from .dual import Dual
from .losses import Loss
from .penalties import Penalty
from .spaces import KernelSpace, Space

#: Part of an objective that rounding of its scores may change before they are summed without it.
SHARP_VALUE = 1e-10


@dataclass(frozen=True, eq=False)
class Problem(Dual):
    """Data, loss, penalty and scaling of one learning problem.

    Parameters
    ----------
    space : Space
        The samples.
    y : ndarray of intp, shape (n,)
        Class codes 0..n_classes-1.
    n_classes : int
        Number of classes k, at least 2.
    loss : Loss
        The loss in normal form.
    penalty : Penalty
        The penalty in normal form.
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
        """Evaluate the objective; every reported number comes from here.

        Where large coefficients of a kernel cancel, rounding of the scores would show (and differ from one order of
        summation to the other); then they are taken as sums without rounding.
        """
        value = self.value_of_scores(W, self.space.scores(W, b))
        if isinstance(self.space, KernelSpace):
            rounding = UNIT * self.space.score_size(W) * float(self.costs.sum())
            if rounding > SHARP_VALUE * abs(value):
                exact = self.space.sharp_scores(W, b)
                value = value if exact is None else self.value_of_scores(W, *exact)
        return value

    def value_of_scores(self, W: NDArray[np.float64], F: NDArray[np.float64], norm2: float | None = None) -> float:
        """Evaluate the objective where the scores, and maybe ||W||^2, are known."""
        if norm2 is None:
            norm2 = self.space.inner(W, W) if self.penalty.l2 else 0.0
        total = self.penalty.value(W, norm2)
        total += float(self.costs @ self.loss.value(self.margins_of_scores(F), self.y))
        if self.tilt is not None:
            total += float(np.sum(self.tilt * F))
        return total + self.offset

    def loss_multipliers(self, F: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return R (n, m) such that -R is a subgradient, in the scores, of C sum_i weight_i g(u_i)."""
        slope = self._steepness(self.margins_of_scores(F))
        return self.spread(slope, None if self.n_classes == 2 else self.rivals(F))

    def _steepness(self, u: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return -cost_i g'(u_i), not rounded beyond the limits of the multipliers, of which these are some."""
        return np.minimum(self.costs * self.loss.convex_slope(u, self.y), self.limit_floors)

    def spread(self, alpha: NDArray[np.float64], rival: NDArray[np.intp] | None) -> NDArray[np.float64]:
        """Turn multipliers of the margins into multipliers R of the scores: R_i = alpha_i du_i/df."""
        if self.n_classes == 2:
            return (alpha * self.signs)[:, None]
        R = np.zeros((self.n, self.n_classes))
        rows = np.arange(self.n)
        R[rows, self.y] = alpha
        R[rows, rival] -= alpha
        return R

    def clipped(self, R: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return multipliers near R within the limits of each sample; their sums over the samples may be wrong."""
        if self.n_classes == 2:
            return self.spread(np.clip(R[:, 0] * self.signs, 0.0, self.dual_limits), None)
        own = np.arange(self.n_classes) == self.y[:, None]
        A = np.where(own, 0.0, np.maximum(-R, 0.0))
        total, upper = A.sum(axis=1), self.dual_limits
        A *= np.where(total > upper, upper / np.where(total > 0, total, 1.0), 1.0)[:, None]
        return np.where(own, A.sum(axis=1)[:, None], -A)

    def inner_intercept(self, W: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the intercept of a two-class problem moved to the nearest breakpoint if it lies beyond all of them.

        There the objective is linear in b, and where the problem is bounded it does not fall outwards. An intercept of
        1e10, as a tilt that cancels the losses of a whole class allows, costs ten digits of the objective.
        """
        if self.n_classes > 2 or not self.loss.hinges:
            return b
        F = self.space.scores(W, np.zeros(1))[:, 0]
        breakpoints = [self.signs * t - F for _, t in self.loss.hinges]
        return np.clip(b, np.min(breakpoints), np.max(breakpoints))

    def value_error(self, W: NDArray[np.float64], b: NDArray[np.float64]) -> float:
        """Return a bound on the rounding error of :meth:`value` at a point whose rows sum to zero but for rounding."""
        F = self.space.scores(W, b)
        score = self.space.score_error(W, b)
        u = np.abs(self.margins_of_scores(F))
        loss = self.loss.convex_value(-u, self.y)
        count = self.n + W.size + 4 * len(self.loss.hinges) + 16
        error = float(self.dual_limits.sum()) * 2.0 * score + gamma(count) * float(self.costs @ loss)
        norm2 = self.space.norm_size(W)
        error += gamma(count) * 0.5 * self.penalty.l2 * norm2
        if self.penalty.has_l1:
            l1 = np.where(W != 0, self.penalty.l1_array(W.shape), 0.0)
            error += gamma(count) * float(np.sum(l1 * np.abs(W)))
            if W.shape[0] > 1:
                error += W.shape[0] * float(np.sum(l1.max(axis=0) * np.abs(W.sum(axis=0))))
        if self.tilt is not None:
            error += float(np.sum(np.abs(self.tilt) * (gamma(count) * np.abs(F) + score)))
        return 2.0 * error + gamma(4) * abs(self.offset)

    @cached_property
    def zero_value(self) -> float:
        """Objective of f = 0: a-priori upper bound on the optimum."""
        return float(self.costs @ self.loss.value(np.zeros(self.n), self.y))

    def best_constant(self) -> tuple[float, NDArray[np.float64]]:
        """Return (objective, intercepts) of the best constant function tried: an a-priori upper bound on the optimum.

        Exact for two classes (the objective is piecewise linear in b, its breakpoints are tried); for k classes the
        candidates are f = 0 and "always class j" with margin t_k or t.
        """
        breakpoints = sorted(
            {0.0, *(abs(t) for _, t in self.loss.hinges), *([abs(self.loss.t)] * (not self.loss.is_convex))}
        )
        if self.n_classes == 2:
            candidates = [np.array([s * v]) for v in breakpoints for s in (1.0, -1.0)]
        else:
            push = np.eye(self.n_classes) - 1.0 / self.n_classes
            candidates = [v * row for v in breakpoints for row in push]
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

    def majorant(self, W: NDArray[np.float64], b: NDArray[np.float64], F: NDArray[np.float64] | None = None) -> Problem:
        """Return a convex problem whose objective touches this one at (W, b) and lies above it elsewhere (d.c. step).

        l = g - (g - cap)_+, and the convex (g - cap)_+ is replaced by its tangent: with steepness s_i = -g'(u_i) of the
        capped samples (u_i < t strictly) this adds cost_i s_i u to their objective. Where two classes tie for the
        margin the lowest index is taken, which keeps the tangent a subgradient. A folded penalty becomes a reweighted
        l1 norm. ``F`` are the scores if they are known.
        """
        tilt, excess = self.linearised(self.space.scores(W, b) if F is None else F)
        penalty, offset = self.penalty.majorant(W)
        offset += self.offset - excess
        return replace(self, loss=self.loss.convex_part, penalty=penalty, tilt=tilt, offset=offset)

    def linearised(self, F: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
        """Return the tilt (n, m) of :meth:`majorant` at the scores F, and what is taken off the offset."""
        u = self.margins_of_scores(F)
        capped = self.loss.is_capped(u)
        steepness = np.where(capped, self._steepness(u), 0.0)
        tilt = self.spread(steepness, None if self.n_classes == 2 else self.rivals(F))
        excess = np.zeros(self.n)
        if capped.any():
            excess = np.where(capped, self.loss.convex_value(u, self.y) - self.loss.cap_of(self.y), 0.0)
        return tilt, float(self.costs @ excess) + float(steepness @ u)

    def priced(self, loss: Loss, C: float) -> Problem:
        """Return the problem with another loss and C; itself if they are the same, with all that it remembers."""
        if C == self.C and loss == self.loss:
            return self
        other = replace(self, loss=loss, C=C)
        other.__dict__["signs"] = self.signs
        return other

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
