"""The cutting-plane model of a penalised risk: its minimum (a lower bound) and its proximal points.

    J_model(v) = 1/2 v'diag(q)v + c'v + sum_d l1_d |v_d| + C max(0, max_r (a_r'v + b_r))

over v of shape (m, width), whose columns sum to zero if m > 1. When q = 0 the minimum is a linear program in HiGHS,
kept warm; otherwise, and for proximal points, it is the small interior point of :mod:`.master`.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ...engines.highs import HighsSession
from .master import solve_master

Array = NDArray[np.float64]

_ACCURACY = 1e-7  # of the interior point, relative to the objective
_BOX = 1e5  # bound on coefficients that keeps a model with few cuts bounded, far outside what good scaling needs
_RIDGE = 1e-9  # curvature of unpenalised coefficients that does the same for the interior point
FORBIDDEN = 1e290  # curvature that holds a coefficient at zero


class CuttingModel:
    """Cuts a_r'v + b_r <= risk(v) under a penalty.

    Parameters
    ----------
    q, c, l1 : ndarray of shape (D,)
        The penalty in the coordinates v; ``l1`` infinite forbids a coefficient.
    C : float
        Price of the risk.
    m : int
        Number of functions.
    """

    def __init__(self, q: Array, c: Array, l1: Array, C: float, m: int) -> None:
        self.c, self.C, self.m = c, C, m
        self.is_linear = not np.any(q > 0)
        self.forbidden = np.isinf(l1)
        self.l1 = np.where(self.forbidden, 0.0, l1)
        self.q = np.where(self.forbidden, FORBIDDEN, q)
        self.ridge = np.where((self.q == 0) & (self.l1 == 0), _RIDGE, 0.0)
        self.A = np.zeros((0, q.size))
        self.b = np.zeros(0)
        self.idle = np.zeros(0, dtype=np.intp)
        self.mu = 1.0
        if self.is_linear:
            self._start_session()

    def _start_session(self) -> None:
        """State the program over the risk, the positive and the negative parts; free coefficients are one column."""
        self.session = HighsSession()
        free = (self.l1 == 0) & ~self.forbidden
        top = np.where(self.forbidden, 0.0, _BOX)
        self.session.add_columns(self.C, 0.0, np.inf)
        self.session.add_columns(self.l1 + self.c, np.where(free, -_BOX, 0.0), top)
        self.session.add_columns(self.l1 - self.c, 0.0, np.where(free, 0.0, top))
        if self.m > 1:
            sums = sp.hstack([sp.identity(self.c.size // self.m)] * self.m)
            self.session.add_rows(sp.hstack([sp.csr_matrix((sums.shape[0], 1)), sums, -sums]), 0.0, 0.0)
        self.first = self.session.n_rows

    def add(self, A: Array, b: Array) -> None:
        """Add cuts."""
        A, b = np.atleast_2d(A), np.atleast_1d(b)
        self.A, self.b = np.vstack([self.A, A]), np.concatenate([self.b, b])
        self.idle = np.concatenate([self.idle, np.zeros(b.size, dtype=np.intp)])
        if self.is_linear:
            self.session.add_rows(np.hstack([np.ones((b.size, 1)), -A, A]), b, np.inf)

    def drop_idle(self, patience: int, keep: int) -> NDArray[np.bool_]:
        """Delete cuts that had no multiplier for ``patience`` minimisations; return which ones stayed."""
        stay = (self.idle < patience) | (np.arange(self.b.size) >= self.b.size - keep)
        if not stay.all():
            self.A, self.b, self.idle = self.A[stay], self.b[stay], self.idle[stay]
            if self.is_linear:
                self.session.delete_rows(self.first + np.flatnonzero(~stay))
        return stay

    def value(self, v: Array) -> float:
        """Evaluate J_model."""
        risk = max(0.0, float((self.A @ v + self.b).max(initial=0.0)))
        return self.penalty(v) + self.C * risk

    def penalty(self, v: Array) -> float:
        """Evaluate everything but the risk."""
        q = np.where(self.forbidden, 0.0, self.q)
        return 0.5 * float(q @ v**2) + float(self.c @ v) + float(self.l1 @ np.abs(v))

    def slope(self, v: Array, step: Array) -> float:
        """Return the derivative of the penalty from v in the direction of a step."""
        change = np.where(v != 0, np.sign(v) * step, np.abs(step))
        q = np.where(self.forbidden, 0.0, self.q)
        return float((q * v + self.c) @ step) + float(self.l1 @ change)

    def minimum(self, start: Array, scale: float) -> tuple[float, Array, Array]:
        """Return the minimum (a lower bound), its place and the cuts' shares, which sum to at most C."""
        if self.is_linear:
            answer = self.session.solve()
            D = self.c.size
            v = answer.x[1 : 1 + D] - answer.x[1 + D : 1 + 2 * D]
            shares, bound = np.maximum(answer.row_dual[self.first :], 0.0), answer.value
        else:
            v, shares, bound = self._interior(0.0, start, _ACCURACY * scale)
        self.idle = np.where(shares > 1e-9 * self.C, 0, self.idle + 1)
        return bound, v, shares

    def _interior(self, mu: float, centre: Array, tol: float) -> tuple[Array, Array, float]:
        # Near the end numbers overflow and vanish; the interior point notices and keeps its best iterate.
        with np.errstate(all="ignore"):
            v, shares, bound = solve_master(
                self.A, self.b, self.C, self.q + self.ridge, self.c, self.l1, self.m, mu, centre, tol
            )
        v[self.forbidden] = 0.0
        return v, shares, bound

    def level_point(self, centre: Array, level: float, width: float, scale: float) -> Array:
        """Return the point nearest to the centre among those with J_model <= level, the level met within ``width``.

        It is argmin J_model(v) + mu/2 ||v - centre||^2 for a mu that is searched from the last one.
        """
        if self.value(centre) <= level + width:
            return centre
        low, high = 0.0, np.inf
        for _ in range(30):
            v = self._interior(self.mu, centre, max(_ACCURACY * scale, 0.1 * width))[0]
            value = self.value(v)
            if abs(value - level) <= width:
                break
            if value > level:
                high = self.mu
            else:
                low = self.mu
            if low > 0 and np.isfinite(high):
                self.mu = float(np.sqrt(low * high))
            else:
                self.mu *= 0.2 if value > level else 5.0
        return v
