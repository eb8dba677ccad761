"""From a point near the optimum of a linear program with hinges to a vertex, with exact zeros and exact multipliers.

Samples far from every breakpoint stay on their linear piece and coefficients that are nearly zero become zero, so only
a small linear program is left. A sample that leaves its piece joins the program, which is solved again from its last
basis, until nobody leaves: then the point is optimal among the points with these zeros.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ...engines.highs import HighsSession, ProgramError
from .margins import ClassMargins
from .method import Program

Array = NDArray[np.float64]

_ROUNDS = 20
_BOX = 1e3  # bound on the basis coordinates, relative to the largest coefficient at the start
_OFF_PIECE = 1e-9  # loss above a linear piece that counts as having left it
_ZERO = 1e-5  # relative size below which a coefficient of an interior point counts as zero


def to_vertex(program: Program, v: Array, time_limit: float) -> tuple[Array, Array] | None:
    """Return a vertex near v and multipliers a (n, J) of its margins, None if the small program cannot be solved.

    The program must be linear (q = 0). Nothing is promised about the zeros chosen: the caller recomputes the value.
    """
    try:
        return _Crossover(program, v).run(time_limit)
    except ProgramError:
        return None


class _Crossover:
    """The small program: basis coordinates phi, parts of the kept coefficients, a slack per hinge near a breakpoint."""

    def __init__(self, program: Program, v: Array) -> None:
        P = self.P = program
        assert isinstance(program.margins, ClassMargins)
        self.margins = program.margins
        self.session = HighsSession()
        used = np.isfinite(P.l1)
        self.penalised = np.flatnonzero(used & (P.l1 > 0))
        size = np.abs(v[self.penalised])
        self.is_kept = size > _ZERO * float(size.max(initial=0.0))
        self.kept = self.penalised[self.is_kept]
        self._add_coefficients(float(np.abs(v).max(initial=1.0)))
        self.samples = np.zeros(0, dtype=np.intp)
        self.is_far = np.ones(P.C.shape, dtype=bool)
        z = self.margins.apply(v)
        self.piece, distance = _pieces(P, z), _distance_to_breakpoint(P, z)
        count = min(distance.size, 2 * (int(used.sum()) - self.penalised.size + self.kept.size) + 10)
        self._add_hinges(distance <= np.partition(distance.ravel(), count - 1)[count - 1])

    def _add_coefficients(self, size: float) -> None:
        """Add phi (boxed, so that nothing is unbounded) and p, n >= 0 with p - n = v_d where there is a penalty."""
        P = self.P
        self.phi = self.session.add_columns(np.zeros(self.margins.basis.shape[1]), -_BOX * size, _BOX * size)
        self.plus = self.session.add_columns(P.l1[self.kept])
        self.minus = self.session.add_columns(P.l1[self.kept])
        split = sp.identity(self.penalised.size, format="csc")[:, self.is_kept]
        self.session.add_rows(sp.hstack([self.margins.basis[self.penalised], -split, split]), 0.0, 0.0)

    def _add_hinges(self, new: NDArray[np.bool_]) -> None:
        """Give hinges their own slack and rows, and take them out of the linear part."""
        P, J = self.P, self.piece.shape[2]
        i, k = np.nonzero(new)
        t = np.broadcast_to(P.t, self.piece.shape)[i, k].ravel()
        self.session.add_columns(P.C[i, k])
        slack = sp.kron(sp.identity(i.size), np.ones((J, 1)))
        between = sp.csr_matrix((t.size, self.session.n_cols - i.size - self.phi.size))
        rows = sp.csr_matrix(self.margins.rows(i) @ self.margins.basis)
        self.session.add_rows(sp.hstack([rows, between, slack]), t, np.inf)
        self.piece[new] = 0.0
        self.samples = np.concatenate([self.samples, i])
        self.is_far &= ~new
        slope = P.c - self.margins.adjoint(self._far_multipliers())
        self.session.change_costs(self.phi, self.margins.basis.T @ slope)

    def _far_multipliers(self) -> Array:
        return np.einsum("ik,ikj->ij", self.P.C, self.piece)

    def run(self, time_limit: float) -> tuple[Array, Array]:
        """Solve, let leavers in, repeat."""
        P = self.P
        for _ in range(_ROUNDS):
            answer = self.session.solve(time_limit)
            v = self.margins.basis @ answer.x[self.phi]
            v[self.penalised] = 0.0
            v[self.kept] = answer.x[self.plus] - answer.x[self.minus]
            excess = P.t - self.margins.apply(v)[:, None, :]
            off = np.maximum(excess.max(axis=2), 0.0) - np.sum(self.piece * excess, axis=2)
            leavers = self.is_far & (off > _OFF_PIECE)
            if not leavers.any() or not answer.is_optimal:
                break
            self._add_hinges(leavers)
        a = self._far_multipliers()
        np.add.at(a, self.samples, np.maximum(answer.row_dual[self.penalised.size :], 0.0).reshape(-1, a.shape[1]))
        return v, a


def _pieces(P: Program, z: Array) -> Array:
    """Return 0/1 of shape (n, K, J): which row of each hinge is active at margins z (none above the breakpoint)."""
    excess = np.broadcast_to(P.t - z[:, None, :], (*P.C.shape, z.shape[1]))
    piece = np.zeros(excess.shape)
    np.put_along_axis(piece, excess.argmax(axis=2)[:, :, None], 1.0, axis=2)
    piece[excess.max(axis=2) <= 0] = 0.0
    return piece


def _distance_to_breakpoint(P: Program, z: Array) -> Array:
    """Return (n, K): how far the margins are from a change of piece; two tied rivals are a breakpoint, too."""
    excess = np.sort(P.t - z[:, None, :], axis=2)
    distance = np.abs(excess[:, :, -1])
    if z.shape[1] > 1:
        distance = np.where(excess[:, :, -1] > 0, np.minimum(distance, excess[:, :, -1] - excess[:, :, -2]), distance)
    return distance
