"""Pair cuts: which pairs of opposite observations the present relaxed solution fails to tell apart.

The cut (17) of Goldberg and Eckstein (2009) for a positive observation i and a negative one i' reads

    xi_i + xi_i' + sum {mu_u : u in S} >= 1.

As printed, S = {u : h_u(i) = y_i != h_u(i')}; that is not valid when classifiers may abstain. Valid is
S = {u : y_i h_u(i) + y_i' h_u(i') > 0}: if both margins are positive, so is their sum, so some used u has a positive
term in it. For answers in {-1, 0, 1} it is the union of the printed S of (i, i') and (i', i).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .observations import Observations

_CHUNK = 4_000_000
#: Cuts already in the programme are met to 1e-7 only; violations of this size would hide those of others.
_ENGINE_TOLERANCE = 2e-7
#: Above so many pairs the violations are computed in single precision.
_SINGLE = 2_000_000


class PairCuts:
    """Separation over all pairs of a positive and a negative observation.

    Parameters
    ----------
    data : Observations
    symmetric : bool
        Valid cuts, or those printed.
    per_observation : int
        At most so many cuts of one observation are returned by one call, the most violated first.
    max_cuts : int
        At most so many cuts are returned by one call.
    hamming_factor : float
        Of an observation's violated cuts, only those with a Hamming distance below this factor of the smallest one
        are admitted; inf admits all. (They return in later calls if they stay violated.)
    """

    def __init__(
        self,
        data: Observations,
        symmetric: bool = True,
        per_observation: int = 3,
        hamming_factor: float = np.inf,
        max_cuts: int = 300,
    ) -> None:
        self.positive = np.flatnonzero(data.y > 0)
        self.negative = np.flatnonzero(data.y < 0)
        self.symmetric = symmetric
        self.per_observation = per_observation
        self.hamming_factor = hamming_factor
        self.max_cuts = max_cuts
        self.rows = data.X.astype(np.float32)
        self.dtype = np.float64 if self.positive.size * self.negative.size <= _SINGLE else np.float32

    def violated(self, H: NDArray, mu: NDArray, xi: NDArray, tol: float) -> tuple[NDArray, NDArray, float]:
        """Return (positives, negatives) of cuts violated by more than ``tol``, and the largest violation of all."""
        tol = max(tol, _ENGINE_TOLERANCE, 64.0 * float(np.finfo(self.dtype).eps))
        if not (self.positive.size and self.negative.size):
            return np.empty(0, np.intp), np.empty(0, np.intp), 0.0
        answers = H[:, mu > 0]
        mu, xi = mu[mu > 0].astype(self.dtype), xi.astype(self.dtype)
        negative = answers[self.negative]
        missing_right = np.ascontiguousarray(((negative != 1) * mu).T)
        wrong_right = np.ascontiguousarray(((negative == -1) * mu).T)
        found, largest = [], 0.0
        step = max(1, _CHUNK // max(1, self.negative.size))
        for start in range(0, self.positive.size, step):
            block = self.positive[start : start + step]
            violation = 1 - xi[self.negative] - xi[block, None]
            violation -= (answers[block] == 1).astype(self.dtype) @ missing_right
            if self.symmetric:
                violation -= (answers[block] == 0).astype(self.dtype) @ wrong_right
            largest = max(largest, float(violation.max(initial=0.0)))
            found.append(self._select(block, violation, tol))
        i, j, amount = (np.concatenate(parts) for parts in zip(*found))
        most = np.argsort(-amount, kind="stable")[: self.max_cuts]
        return i[most], j[most], largest

    def _select(self, block: NDArray, violation: NDArray, tol: float) -> tuple[NDArray, NDArray, NDArray]:
        """The most violated cuts of each row and of each column of a block, as observation indices."""
        if np.isfinite(self.hamming_factor):
            distance = self._distances(block)
            distance = np.where(violation > tol, distance, np.inf)
            near = distance.min(axis=1, keepdims=True) * self.hamming_factor
            violation = np.where(distance <= near, violation, -1.0)
        chosen = np.zeros(violation.shape, dtype=bool)
        k = self.per_observation
        for axis in (0, 1):
            if violation.shape[axis] > k:
                top = np.argpartition(-violation, k, axis=axis).take(np.arange(k), axis=axis)
                np.put_along_axis(chosen, top, True, axis=axis)
            else:
                chosen[:] = True
        i, j = np.nonzero(chosen & (violation > tol))
        return block[i], self.negative[j], violation[i, j]

    def _distances(self, block: NDArray) -> NDArray:
        a, b = self.rows[block], self.rows[self.negative]
        return (a.sum(axis=1)[:, None] + b.sum(axis=1) - 2.0 * a @ b.T).astype(np.float32)
