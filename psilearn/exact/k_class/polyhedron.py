"""A growing list of vertices: the arrays that :mod:`.vertices_jit` works on, and their capacity."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from . import vertices_jit as vertices

Array = NDArray[np.float64]


class Polyhedron:
    """{(z_0, theta) : theta in a box, z_0 >= floor} with cuts h'z >= h_0, h[0] in {0, 1}, added one by one.

    Parameters
    ----------
    lower, upper : ndarray of shape (p,)
        The box.
    floor : float
        First inequality z_0 >= floor.
    """

    def __init__(self, lower: Array, upper: Array, floor: float) -> None:
        p = lower.size
        self.dim = p + 1
        count = 1 << p
        corner = (np.arange(count)[:, None] >> np.arange(p)) & 1
        self.points = np.empty((2 * count, self.dim))
        self.points[:count, 0] = floor
        self.points[:count, 1:] = np.where(corner, upper, lower)
        self.tight = np.zeros((2 * count, self.dim), dtype=np.int32)
        self.tight[:count, :p] = 2 * np.arange(p) + corner
        self.tight[:count, p] = 2 * p
        self.neighbour = np.full((2 * count, self.dim), -1, dtype=np.int32)
        self.neighbour[:count, :p] = np.arange(count)[:, None] ^ (1 << np.arange(p))
        self.alive = np.zeros(2 * count, dtype=bool)
        self.alive[:count] = True
        self.top, self.n_free = count, 0
        self.free = np.empty(2 * count, dtype=np.int64)
        self.slack = np.empty(2 * count)
        eye = np.eye(p)
        sides = np.stack([eye, -eye], axis=1).reshape(2 * p, p)
        limits = np.stack([lower, -upper], axis=1).ravel()
        self.H = np.vstack([np.column_stack([np.zeros(2 * p), sides]), np.eye(1, self.dim)])
        self.h0 = np.append(limits, floor)
        self.n_facets = 2 * p + 1
        self.reach = np.maximum(np.abs(lower), np.abs(upper))
        self._rng = np.random.default_rng(0)
        self.codes = self._rng.integers(1, 2**63, size=self.n_facets, dtype=np.uint64)

    @property
    def n_vertices(self) -> int:
        """Number of vertices."""
        return self.top - self.n_free

    def cut(self, h: Array, h0: float, step: float) -> NDArray[np.int64] | None:
        """Add h'z >= h_0 - delta with the least delta >= step that keeps the polyhedron simple.

        Relaxing only enlarges the polyhedron, so bounds computed over it stay valid. Returns the new vertices (empty if
        the cut is redundant), None if no small delta will do or the update contradicts itself.
        """
        vertices.slacks(self.points, self.alive, self.top, h, h0, self.slack)
        delta = vertices.safe_relaxation(self.points, self.slack, self.top, h, h0, step, 64)
        if delta < 0:
            return None
        self.slack[: self.top] += delta
        count = vertices.count_crossings(self.neighbour, self.alive, self.slack, self.top)
        if count == 0:
            return np.empty(0, dtype=np.int64) if self.slack[: self.top].min() >= 0 else None
        self._reserve(count)
        facet = self._add_facet(h, h0 - delta)
        vertical = self.H[: self.n_facets, 0] == 0.0
        table = np.empty(1 << int(np.ceil(np.log2(2.0 * count * self.dim + 2))), dtype=np.int64)
        fresh = np.empty(count, dtype=np.int64)
        self.top, self.n_free, n_fresh, ok = vertices.apply_cut(
            self.points, self.tight, self.neighbour, self.alive, self.slack, self.top, self.free, self.n_free,
            facet, vertical, self.codes, table, fresh,
        )  # fmt: skip
        return fresh[:n_fresh] if ok else None

    def check(self, height: float) -> tuple[float, float, bool]:
        """Re-check the list, z_0 measured in units of ``height``: see :func:`.vertices_jit.is_complete`."""
        scale = np.append(height, self.reach)
        used = np.unique(self.tight[: self.top][self.alive[: self.top]])
        return vertices.is_complete(
            self.points, self.tight, self.neighbour, self.alive, self.top, self.H, self.h0, used, scale
        )

    def _add_facet(self, h: Array, h0: float) -> int:
        if self.n_facets == self.h0.size:
            self.H = np.vstack([self.H, np.empty_like(self.H)])
            self.h0 = np.concatenate([self.h0, np.empty_like(self.h0)])
            more = self._rng.integers(1, 2**63, size=self.codes.size, dtype=np.uint64)
            self.codes = np.concatenate([self.codes, more])
        self.H[self.n_facets], self.h0[self.n_facets] = h, h0
        self.n_facets += 1
        return self.n_facets - 1

    def _reserve(self, count: int) -> None:
        """Make room for ``count`` new vertices (the removed ones are freed only afterwards)."""
        missing = count - self.n_free - (self.alive.size - self.top)
        if missing <= 0:
            return
        size = max(2 * self.alive.size, self.alive.size + missing)
        for name in ("points", "tight", "neighbour", "alive", "free", "slack"):
            old = getattr(self, name)
            new = np.zeros((size, *old.shape[1:]), dtype=old.dtype)
            new[: old.shape[0]] = old
            setattr(self, name, new)
