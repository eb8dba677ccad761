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

from ..observations import Observations

_CHUNK = 4_000_000
#: Cuts already in the program are met to 1e-7 only; violations of this size would hide those of others.
_ENGINE_TOLERANCE = 2e-7
#: Above so many pairs all violations are computed only when no pair of near observations (so many of each) is
#: violated, and in single precision.
_SINGLE = 2_000_000
_NEAR = 10


class PairCuts:
    """Separation over all pairs of a positive and a negative observation.

    Parameters
    ----------
    data : Observations
    symmetric : bool
        Valid cuts, or those printed.
    max_cuts : int
        At most so many cuts are returned by one call, the most violated ones of each observation first.
    hamming_factor : float
        Of an observation's violated cuts, only those with a Hamming distance below this factor of the smallest one
        are admitted; inf admits all. (They return in later calls if they stay violated.)
    """

    def __init__(
        self,
        data: Observations,
        symmetric: bool = True,
        hamming_factor: float = np.inf,
        max_cuts: int = 300,
    ) -> None:
        self.positive = np.flatnonzero(data.y > 0)
        self.negative = np.flatnonzero(data.y < 0)
        self.symmetric = symmetric
        self.hamming_factor = hamming_factor
        self.max_cuts = max_cuts
        self.rows = data.X.astype(np.float32)
        self.n_pairs = self.positive.size * self.negative.size
        self.dtype = np.float64 if self.n_pairs <= _SINGLE else np.float32
        self.near: tuple[NDArray, NDArray] | None = self._near_pairs(_NEAR) if self.n_pairs > _SINGLE else None

    def violated(self, H: NDArray, mu: NDArray, xi: NDArray, tol: float) -> tuple[NDArray, NDArray, float]:
        """Return (positives, negatives) of cuts violated by more than ``tol``, and the largest violation seen.

        Nothing is returned only after all pairs have been evaluated.
        """
        tol = max(tol, _ENGINE_TOLERANCE, 64.0 * float(np.finfo(self.dtype).eps))
        if not (self.positive.size and self.negative.size):
            return np.empty(0, np.intp), np.empty(0, np.intp), 0.0
        answers = H[:, mu > 0]
        mu, xi = mu[mu > 0].astype(self.dtype), xi.astype(self.dtype)
        if self.near is not None:
            i, j, amount = self._violated_near(self.near, answers, mu, xi, tol)
            if i.size:
                return *self._most(i, j, amount), float(amount.max())
        found, largest = [], 0.0
        step = max(1, _CHUNK // max(1, self.negative.size))
        for start in range(0, self.positive.size, step):
            block = self.positive[start : start + step]
            violation = self._violations(block, answers, mu, xi)
            largest = max(largest, float(violation.max(initial=0.0)))
            found.append(self._select(block, violation, tol))
        i, j, amount = (np.concatenate(parts) for parts in zip(*found))
        if self.near is not None:
            # what the evaluation of all pairs has found is evaluated first from now on
            self.near = np.r_[self.near[0], i], np.r_[self.near[1], j]
        return *self._most(i, j, amount), largest

    def _violations(self, block: NDArray, answers: NDArray, mu: NDArray, xi: NDArray) -> NDArray:
        """Violations of the cuts of a block of positives with all negatives."""
        left, right = answers[block], answers[self.negative]
        # a monomial never says -1 (or never +1); only those who do say it can be wrong (or right) there
        yes = (left == 1).any(axis=0)
        violation = 1 - xi[self.negative] - xi[block, None]
        violation -= (left[:, yes] == 1).astype(self.dtype) @ ((right[:, yes] != 1) * mu[yes]).T
        if self.symmetric:
            no = (right == -1).any(axis=0)
            violation -= (left[:, no] == 0).astype(self.dtype) @ ((right[:, no] == -1) * mu[no]).T
        return violation

    def near_tight(
        self, H: NDArray, mu: NDArray, xi: NDArray, taken: tuple[NDArray, NDArray], margin: float, limit: int
    ) -> tuple[NDArray, NDArray, NDArray]:
        """Pairs not taken whose cuts have a surplus below ``margin``: the least of each observation, ``limit`` at most.

        Returns positives, negatives and surpluses, the smallest first.
        """
        surplus = -self._violations(self.positive, H, mu.astype(self.dtype), xi.astype(self.dtype))
        place = np.zeros(H.shape[0], np.intp)
        place[self.positive], place[self.negative] = np.arange(self.positive.size), np.arange(self.negative.size)
        surplus[place[taken[0]], place[taken[1]]] = np.inf
        rows, columns = np.arange(self.positive.size), np.arange(self.negative.size)
        i, j = np.r_[rows, surplus.argmin(axis=0)], np.r_[surplus.argmin(axis=1), columns]
        key = np.unique(i * columns.size + j)
        i, j = key // columns.size, key % columns.size
        least = surplus[i, j]
        order = np.argsort(least, kind="stable")[:limit]
        order = order[least[order] < margin]
        return self.positive[i[order]], self.negative[j[order]], least[order].astype(np.float64)

    def nearest(self) -> tuple[NDArray, NDArray]:
        """Pairs of each observation with the nearest one of the other class."""
        return self._near_pairs(1)

    def _most(self, i: NDArray, j: NDArray, amount: NDArray) -> tuple[NDArray, NDArray]:
        most = np.argsort(-amount, kind="stable")[: self.max_cuts]
        return i[most], j[most]

    def _violated_near(
        self, near: tuple[NDArray, NDArray], answers: NDArray, mu: NDArray, xi: NDArray, tol: float
    ) -> tuple[NDArray, NDArray, NDArray]:
        """Violated cuts among the pairs of near observations: the worst one of each observation."""
        i, j = near
        violation = 1 - xi[i] - xi[j]
        for h, value in zip(answers.T, mu):
            separated = h[i] > h[j] if self.symmetric else (h[i] == 1) & (h[j] != 1)
            violation -= value * separated
        worst = np.argsort(-violation, kind="stable")
        worst = worst[violation[worst] > tol]
        first = np.union1d(np.unique(i[worst], return_index=True)[1], np.unique(j[worst], return_index=True)[1])
        chosen = worst[first]
        return i[chosen], j[chosen], violation[chosen]

    def _near_pairs(self, k: int) -> tuple[NDArray, NDArray]:
        """Pairs of each observation with its k nearest of the other class, by Hamming distance."""
        keys = []
        for mine, other in ((self.positive, self.negative), (self.negative, self.positive)):
            k = min(k, other.size - 1)
            step = max(1, _CHUNK // other.size)
            for start in range(0, mine.size, step):
                block = mine[start : start + step]
                nearest = other[np.argpartition(self._distances(block, other), k, axis=1)[:, :k]]
                ends = np.broadcast_to(block[:, None], nearest.shape), nearest
                positive, negative = ends if mine is self.positive else ends[::-1]
                keys.append((positive * self.rows.shape[0] + negative).ravel())
        unique = np.unique(np.concatenate(keys))
        return unique // self.rows.shape[0], unique % self.rows.shape[0]

    def _select(self, block: NDArray, violation: NDArray, tol: float) -> tuple[NDArray, NDArray, NDArray]:
        """The most violated cut of each row and of each column of a block, as observations, and its violation."""
        if np.isfinite(self.hamming_factor) and self.near is None:
            distance = self._distances(block, self.negative)
            distance = np.where(violation > tol, distance, np.inf)
            near = distance.min(axis=1, keepdims=True) * self.hamming_factor
            violation = np.where(distance <= near, violation, -1.0)
        rows, columns = np.arange(violation.shape[0]), np.arange(violation.shape[1])
        i = np.r_[rows, violation.argmax(axis=0)]
        j = np.r_[violation.argmax(axis=1), columns]
        key = np.unique(i * columns.size + j)
        i, j = key // columns.size, key % columns.size
        kept = violation[i, j] > tol
        return block[i[kept]], self.negative[j[kept]], violation[i[kept], j[kept]]

    def _distances(self, block: NDArray, others: NDArray) -> NDArray:
        a, b = self.rows[block], self.rows[others]
        return (a.sum(axis=1)[:, None] + b.sum(axis=1) - 2.0 * a @ b.T).astype(np.float32)
