"""Newton steps along the central path of the tightened relaxation (18), over the classifiers and pairs at hand.

In the notation of :mod:`.master`, with slacks t_u of the classifiers' rows and r_i of those of the
observations, the dual

    max  rho sum_i w_i + sum_p v_p + alpha
    s.t. (1 + rho) w_i + sum {v_p : i in p} + r_i = m_i,
         [u votes] (alpha + sum_i y_i h_iu w_i) + sum {v_p : u in S_p} + t_u = c_u,      w, v, r, t >= 0

has the multipliers xi_i of its first rows, mu_u of the classifiers' (lambda_u if u votes, s_u if it only marks pairs),
and q of w, v >= 0. A Newton step for the complementarity products t mu, r xi, w q_w and v q_v is taken after the
predictor and corrector of Mehrotra (On the implementation of a primal-dual interior point method, 1992). Eliminating w
(a diagonal block) and v leaves one dense system with a row per classifier.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpotrf, dpotrs

Array = NDArray[np.float64]
#: Complementary variables, those of the primal first.
COMPLEMENTARY = (("mu", "t"), ("xi", "r"), ("q_w", "w"), ("q_v", "v"))
_LEAST_CENTRING, _MOST_CENTRING = 1e-3, 0.8
_RIDGES = (0.0, *10.0 ** np.arange(-15.0, -3.0))


def load_of(positive: NDArray, negative: NDArray, v: Array, m: int) -> Array:
    """Sums of v over the pairs of each of m observations."""
    total = np.bincount(positive, v, minlength=m) + np.bincount(negative, v, minlength=m)
    return np.asarray(total, dtype=np.float64)


@dataclass
class Iterate:
    """A program and a point with all variables positive.

    ``answers`` holds y_i h_iu (classifiers x observations), ``reach`` whether u is in S_p (classifiers x pairs).
    """

    weight: Array
    rho: float
    alpha: float
    w: Array
    q_w: Array
    xi: Array
    r: Array
    votes: NDArray[np.bool_] = field(default_factory=lambda: np.empty(0, dtype=bool))
    costs: Array = field(default_factory=lambda: np.empty(0))
    mu: Array = field(default_factory=lambda: np.empty(0))
    t: Array = field(default_factory=lambda: np.empty(0))
    answers: Array = field(default_factory=lambda: np.empty((0, 0)))
    reach: Array = field(default_factory=lambda: np.empty((0, 0)))
    positive: NDArray[np.intp] = field(default_factory=lambda: np.empty(0, np.intp))
    negative: NDArray[np.intp] = field(default_factory=lambda: np.empty(0, np.intp))
    v: Array = field(default_factory=lambda: np.empty(0))
    q_v: Array = field(default_factory=lambda: np.empty(0))

    @property
    def gap(self) -> float:
        """Sum of the complementarity products; of a feasible point, the duality gap."""
        return float(sum(getattr(self, a) @ getattr(self, b) for a, b in COMPLEMENTARY))

    @property
    def target(self) -> float:
        """Mean of the products."""
        return self.gap / (self.mu.size + 2 * self.weight.size + self.v.size)

    @property
    def objective(self) -> float:
        """Objective of (18) at xi, mu."""
        return float(self.weight @ self.xi + self.costs @ self.mu)

    def load(self, v: Array) -> Array:
        """Sums of v over the present pairs of each observation."""
        return load_of(self.positive, self.negative, v, self.weight.size)

    def ends(self, x: Array) -> Array:
        """Sums of x over the two observations of each pair."""
        return x[self.positive] + x[self.negative]

    def slacks(self, answers: Array, reach: Array, votes: NDArray[np.bool_], costs: Array) -> Array:
        """Slacks of classifiers, present or not, at the point."""
        return costs - np.where(votes, self.alpha + answers @ self.w, 0.0) - reach @ self.v

    def surpluses(self, positive: NDArray, negative: NDArray, reach: Array) -> Array:
        """How much more than 1 the cuts of pairs, present or not, have at the point."""
        return self.xi[positive] + self.xi[negative] + self.mu @ reach - 1.0

    def residuals(self) -> dict[str, Array]:
        """What the equations lack, by the variable that could mend it."""
        voting = np.where(self.votes, self.mu, 0.0)
        return {
            "t": self.slacks(self.answers, self.reach, self.votes, self.costs) - self.t,
            "r": self.weight - (1.0 + self.rho) * self.w - self.load(self.v) - self.r,
            "q_w": self.rho - voting @ self.answers - (1.0 + self.rho) * self.xi + self.q_w,
            "q_v": self.q_v - self.surpluses(self.positive, self.negative, self.reach),
            "alpha": np.array([1.0 - voting.sum()]),
        }

    def direction(self) -> dict[str, Array]:
        """The steps of all variables."""
        system = _System(self)
        lacking = self.residuals()
        products = {a: getattr(self, a) * getattr(self, b) for a, b in COMPLEMENTARY}
        step = system.solve(lacking, {a: -product for a, product in products.items()})
        primal, dual = self.longest(step, 1.0)
        after = sum(
            (getattr(self, a) + primal * step[a]) @ (getattr(self, b) + dual * step[b]) for a, b in COMPLEMENTARY
        )
        centring = min(max((after / self.gap) ** 3, _LEAST_CENTRING), _MOST_CENTRING) * self.target
        return system.solve(lacking, {a: centring - products[a] - step[a] * step[b] for a, b in COMPLEMENTARY})

    def longest(self, step: dict[str, Array], share: float) -> tuple[float, float]:
        """Longest primal and dual steps, at most 1, that go ``share`` of the way to the boundary."""
        lengths = []
        for names in zip(*COMPLEMENTARY):
            length = 1.0
            for name in names:
                falling = step[name] < 0
                ratio = -getattr(self, name)[falling] / step[name][falling]
                length = min(length, share * float(ratio.min(initial=np.inf)))
            lengths.append(length)
        return lengths[0], lengths[1]

    def move(self, step: dict[str, Array], primal: float, dual: float) -> None:
        """Take the step."""
        for a, b in COMPLEMENTARY:
            setattr(self, a, getattr(self, a) + primal * step[a])
            setattr(self, b, getattr(self, b) + dual * step[b])
        self.alpha += dual * float(step["alpha"][0])


class _System:
    """The Newton equations at an iterate, factored once for several right-hand sides.

    With D = xi / r, d = q_w / w and K = d + (1 + rho)^2 D, eliminating r, xi, q and w leaves, for the pairs, the matrix
    diag(q_v / v) + E' diag(D d / K) E with E the incidence of observations and pairs, and in the row of a voting
    classifier y_i h_iu (1 + rho) D_i / K_i is taken from the entries of the pairs of observation i.
    """

    def __init__(self, point: Iterate) -> None:
        p = self.p = point
        m, n_pairs = p.weight.size, p.v.size
        self.D = p.xi / p.r
        own = p.q_w / p.w
        self.K = own + (1.0 + p.rho) ** 2 * self.D
        self.share = (1.0 + p.rho) * self.D / self.K
        voting = np.flatnonzero(p.votes)
        shared = p.answers[voting] * self.share
        self.pairs = p.reach.copy()
        self.pairs[voting] -= shared[:, p.positive] + shared[:, p.negative]
        place = np.arange(n_pairs)
        ends = np.r_[p.positive, p.negative], np.r_[place, place]
        incidence = sp.csr_matrix((np.ones(2 * n_pairs), ends), shape=(m, n_pairs))
        common = (incidence.T @ sp.diags(self.D * own / self.K) @ incidence).toarray()
        common[place, place] += p.q_v / p.v
        self.common = _cholesky(common)
        scaled = p.answers[voting] / np.sqrt(self.K)
        matrix = np.zeros((p.mu.size, p.mu.size))
        matrix[np.ix_(voting, voting)] = scaled @ scaled.T
        if n_pairs:
            half = solve_triangular(self.common, self.pairs.T, lower=True, check_finite=False)
            matrix += half.T @ half
        matrix[np.diag_indices_from(matrix)] += p.t / p.mu
        self.unit = 1.0 / np.sqrt(matrix.diagonal())
        matrix *= self.unit
        matrix *= self.unit[:, None]
        self.matrix, self.factor = matrix, _cholesky(matrix)
        self.ones = self._classifiers(p.votes.astype(np.float64))

    def _classifiers(self, rhs: Array) -> Array:
        """Solve the dense system; one step of refinement takes back what a ridge distorts."""
        rhs = self.unit * rhs
        x = dpotrs(self.factor, rhs, lower=1)[0]
        x += dpotrs(self.factor, rhs - self.matrix @ x, lower=1)[0]
        return self.unit * x

    def _pairs(self, rhs: Array) -> Array:
        return dpotrs(self.common, rhs, lower=1)[0] if rhs.size else rhs

    def solve(self, lacking: dict[str, Array], aims: dict[str, Array]) -> dict[str, Array]:
        """Steps that mend what is lacking and change the products by ``aims``, to first order."""
        p, rho = self.p, self.p.rho
        of_mu = (aims["mu"] - p.mu * lacking["t"]) / p.t
        of_xi = (aims["xi"] - p.xi * lacking["r"]) / p.r
        of_w = lacking["q_w"] + aims["q_w"] / p.w - (1.0 + rho) * of_xi
        of_v = lacking["q_v"] + aims["q_v"] / p.v - p.ends(of_xi) - p.ends(self.share * of_w)
        rhs = of_mu * p.t / p.mu + np.where(p.votes, p.answers @ (of_w / self.K), 0.0) + self.pairs @ self._pairs(of_v)
        mu = self._classifiers(rhs)
        alpha = (lacking["alpha"][0] - mu[p.votes].sum()) / self.ones[p.votes].sum()
        mu = mu + alpha * self.ones
        v = self._pairs(of_v - mu @ self.pairs)
        load = p.load(v)
        w = (of_w - np.where(p.votes, mu, 0.0) @ p.answers - (1.0 + rho) * self.D * load) / self.K
        t = lacking["t"] - np.where(p.votes, alpha + p.answers @ w, 0.0) - p.reach @ v
        r = lacking["r"] - (1.0 + rho) * w - load
        return {
            "alpha": np.array([alpha]), "w": w, "v": v, "t": t, "r": r, "mu": mu,
            "xi": (aims["xi"] - p.xi * r) / p.r,
            "q_w": (aims["q_w"] - p.q_w * w) / p.w, "q_v": (aims["q_v"] - p.q_v * v) / p.v,
        }  # fmt: skip


def _cholesky(matrix: Array) -> Array:
    """Lower factor, with the least ridge that makes the matrix definite; LinAlgError if none does."""
    if not matrix.size:
        return matrix
    diagonal = matrix.diagonal()
    for ridge in _RIDGES:
        factor, info = dpotrf(matrix + np.diag(ridge * diagonal) if ridge else matrix, lower=1)
        if info == 0:
            return factor
    raise np.linalg.LinAlgError("No ridge makes the normal matrix definite.")
