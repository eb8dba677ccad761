"""From a point near the optimum of a linear programme with hinges to a vertex, with exact zeros and exact multipliers.

Samples far from every kink stay on their linear piece and coefficients that are nearly zero become zero, so only a
small linear programme is left. A sample that leaves its piece joins the programme, which is solved again from its last
basis, until nobody leaves: then the point is optimal among the points with these zeros.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ...engines.highs import HighsSession, ProgramError
from .method import Programme

Array = NDArray[np.float64]

_ROUNDS = 20
_BOX = 1e3  # bound on the basis coordinates, relative to the largest coefficient at the start
_OFF_PIECE = 1e-9  # loss above a linear piece that counts as having left it
_ZERO = 1e-5  # relative size below which a coefficient of an interior point counts as zero


def to_vertex(programme: Programme, v: Array, time_limit: float) -> tuple[Array, Array] | None:
    """Return a vertex near v and multipliers a (n, J) of its margins, None if the small programme cannot be solved.

    The programme must be linear (q = 0). Nothing is promised about the zeros chosen: the caller recomputes the value.
    """
    try:
        return _Crossover(programme, v).run(time_limit)
    except ProgramError:
        return None


class _Crossover:
    """The small programme: basis coordinates phi, parts of the kept coefficients, one slack per hinge near its kink."""

    def __init__(self, programme: Programme, v: Array) -> None:
        P = self.P = programme
        self.session = HighsSession()
        used = np.diff(P.basis.indptr) > 0
        self.kinked = np.flatnonzero(used & (P.l1 > 0))
        size = np.abs(v[self.kinked])
        self.is_kept = size > _ZERO * float(size.max(initial=0.0))
        self.kept = self.kinked[self.is_kept]
        self._add_coefficients(float(np.abs(v).max(initial=1.0)))
        self.samples = np.zeros(0, dtype=np.intp)
        self.is_far = np.ones(P.C.shape, dtype=bool)
        z = P.margins.apply(v)
        self.piece, distance = _pieces(P, z), _distance_to_kink(P, z)
        count = min(distance.size, 2 * (int(used.sum()) - self.kinked.size + self.kept.size) + 10)
        self._add_hinges(distance <= np.partition(distance.ravel(), count - 1)[count - 1])

    def _add_coefficients(self, size: float) -> None:
        """Add phi (boxed, so that nothing is unbounded) and p, n >= 0 with p - n = v_d at every kink."""
        P = self.P
        self.phi = self.session.add_columns(np.zeros(P.basis.shape[1]), -_BOX * size, _BOX * size)
        self.plus = self.session.add_columns(P.l1[self.kept])
        self.minus = self.session.add_columns(P.l1[self.kept])
        split = sp.identity(self.kinked.size, format="csc")[:, self.is_kept]
        self.session.add_rows(sp.hstack([P.basis[self.kinked], -split, split]), 0.0, 0.0)

    def _add_hinges(self, new: NDArray[np.bool_]) -> None:
        """Give hinges their own slack and rows, and take them out of the linear part."""
        P, J = self.P, self.piece.shape[2]
        i, k = np.nonzero(new)
        t = np.broadcast_to(P.t, self.piece.shape)[i, k].ravel()
        self.session.add_columns(P.C[i, k])
        slack = sp.kron(sp.identity(i.size), np.ones((J, 1)))
        between = sp.csr_matrix((t.size, self.session.n_cols - i.size - self.phi.size))
        self.session.add_rows(sp.hstack([sp.csr_matrix(P.margins.rows(i) @ P.basis), between, slack]), t, np.inf)
        self.piece[new] = 0.0
        self.samples = np.concatenate([self.samples, i])
        self.is_far &= ~new
        self.session.change_costs(self.phi, P.basis.T @ (P.c - P.margins.adjoint(self._far_multipliers())))

    def _far_multipliers(self) -> Array:
        return np.einsum("ik,ikj->ij", self.P.C, self.piece)

    def run(self, time_limit: float) -> tuple[Array, Array]:
        """Solve, let leavers in, repeat."""
        P = self.P
        for _ in range(_ROUNDS):
            answer = self.session.solve(time_limit)
            v = P.basis @ answer.x[self.phi]
            v[self.kinked] = 0.0
            v[self.kept] = answer.x[self.plus] - answer.x[self.minus]
            excess = P.t - P.margins.apply(v)[:, None, :]
            off = np.maximum(excess.max(axis=2), 0.0) - np.sum(self.piece * excess, axis=2)
            leavers = self.is_far & (off > _OFF_PIECE)
            if not leavers.any() or not answer.is_optimal:
                break
            self._add_hinges(leavers)
        a = self._far_multipliers()
        np.add.at(a, self.samples, np.maximum(answer.row_dual[self.kinked.size :], 0.0).reshape(-1, a.shape[1]))
        return v, a


def _pieces(P: Programme, z: Array) -> Array:
    """Return 0/1 of shape (n, K, J): which row of each hinge is active at margins z (none above the kink)."""
    excess = np.broadcast_to(P.t - z[:, None, :], (*P.C.shape, z.shape[1]))
    piece = np.zeros(excess.shape)
    np.put_along_axis(piece, excess.argmax(axis=2)[:, :, None], 1.0, axis=2)
    piece[excess.max(axis=2) <= 0] = 0.0
    return piece


def _distance_to_kink(P: Programme, z: Array) -> Array:
    """Return (n, K): how far the margins are from a change of piece; two tied rivals are a kink, too."""
    excess = np.sort(P.t - z[:, None, :], axis=2)
    distance = np.abs(excess[:, :, -1])
    if z.shape[1] > 1:
        distance = np.where(excess[:, :, -1] > 0, np.minimum(distance, excess[:, :, -1] - excess[:, :, -2]), distance)
    return distance
