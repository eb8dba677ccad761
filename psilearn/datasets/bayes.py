"""Exact Bayes rules and Bayes errors of the simulated designs in `psilearn.datasets.generators`.

Every function returns a `BayesRule`: the class posteriors as a function of X and the error no classifier can beat.
The errors are closed forms, or integrals by deterministic quadrature where no closed form exists.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import integrate, optimize, special, stats

from . import generators as g
from ._labels import Flip


@dataclass(frozen=True)
class BayesRule:
    """The best possible classifier of a simulated design.

    Attributes
    ----------
    classes : array
        Labels, in the order of the posterior's columns.
    posterior : callable
        X -> P(Y = class | X), array of shape (n_samples, n_classes).
    error : float
        P(Y != rule(X)).
    """

    classes: NDArray
    posterior: Callable[[NDArray], NDArray]
    error: float

    def predict(self, X: NDArray) -> NDArray:
        """Return the most probable class of every row (the first of them on a tie)."""
        return self.classes[np.argmax(self.posterior(np.asarray(X, dtype=float)), axis=1)]


def _noisy(region: Callable[[NDArray], NDArray], classes: NDArray, keep: float) -> BayesRule:
    """Rule of a design whose clean label is a region of X, kept with probability keep, else one of the others."""
    other = (1.0 - keep) / (len(classes) - 1)

    def posterior(X: NDArray) -> NDArray:
        return np.where(region(X)[:, None] == classes[None, :], keep, other)

    return BayesRule(classes, posterior, 1.0 - max(keep, other))


def bayes_disk(flip: float = 0.0) -> BayesRule:
    """Rule of `make_disk` for test labels of which a share ``flip`` is changed."""
    return _noisy(lambda X: np.where(X[:, 0] >= 0.0, 1, -1), np.array([-1, 1]), 1.0 - flip)


def bayes_quadratic(flip: float = 0.05) -> BayesRule:
    """Rule of `make_quadratic`, for X of any of its cases (the first two columns are the squares)."""
    return _noisy(lambda X: np.where(X[:, 0] + X[:, 1] >= 2.8, 1, -1), np.array([-1, 1]), 1.0 - flip)


def bayes_sectors(n_classes: int = 3, flip: float = 0.1) -> BayesRule:
    """Rule of `make_sectors`."""
    return _noisy(lambda X: g.sector(X, n_classes), np.arange(1, n_classes + 1), 1.0 - flip)


def bayes_folded_sectors(flip: float = 0.1) -> BayesRule:
    """Rule of `make_folded_sectors`."""
    return _noisy(lambda X: g.FOLDED_SECTORS[g.sector(X, 6) - 1], np.arange(1, 4), 1.0 - flip)


def bayes_triangles(flip: float = 0.1, to: Flip = "others") -> BayesRule:
    """Rule of `make_triangles`: error ``flip`` for ``to="others"``, 3/4 ``flip`` for ``to="all"``."""
    keep = 1.0 - flip if to == "others" else 1.0 - 0.75 * flip
    return _noisy(g.triangle, np.arange(1, 5), keep)


def bayes_beta_mixture() -> BayesRule:
    """Rule of `make_beta_mixture`: classes 1, 2, 3 left of, between and right of x* and 1 - x*.

    5 (1 - x)^4 = 6 x (1 - x) at x*, hence error 1 - (2 F_1(x*) + F_2(1 - x*) - F_2(x*)) / 3.
    """
    cut = optimize.brentq(lambda x: 5.0 * (1.0 - x) ** 3 - 6.0 * x, 0.0, 1.0)
    first, middle = (special.betainc(a, b, np.array([cut, 1.0 - cut])) for a, b in g.BETA_SHAPES[:2])

    def posterior(X: NDArray) -> NDArray:
        density = np.column_stack([stats.beta.pdf(X[:, 0], a, b) for a, b in g.BETA_SHAPES])
        return density / density.sum(axis=1, keepdims=True)

    return BayesRule(np.arange(1, 4), posterior, float(1.0 - (2.0 * first[0] + middle[1] - middle[0]) / 3.0))


def _t_density(X: NDArray, df: float) -> NDArray:
    """Densities at X of the four t laws on the diamond, up to a common factor, shape (n_samples, 4)."""
    squared = ((X[:, None, :] - g.DIAMOND) ** 2).sum(axis=2) * g.T_SCALE**2
    return (1.0 + squared / df) ** (-(df + 2.0) / 2.0)


def bayes_t_diamond(df: float = 3) -> BayesRule:
    """Rule of `make_t_diamond`: the nearest centre.

    Its regions are quadrants, so with c = 4.5 sqrt(1/8) the error is 1 - P(t_1 < c, t_2 < c)
    = 1 - E[Phi(c S)^2], S^2 = chi^2_df / df: .301416 for df = 1 and .190415 for df = 3, correct to about 1e-9.
    """
    c = g.T_SCALE * np.sqrt(0.125)

    def integrand(p: float) -> float:
        return special.ndtr(c * np.sqrt(stats.chi2.ppf(p, df) / df)) ** 2

    correct, _ = integrate.quad(integrand, 0.0, 1.0, epsabs=1e-10)

    def posterior(X: NDArray) -> NDArray:
        density = _t_density(X, df)
        return density / density.sum(axis=1, keepdims=True)

    return BayesRule(np.arange(1, 5), posterior, float(1.0 - correct))


def _mixture_density(X: NDArray, df: float) -> NDArray:
    left, top, right, bottom = _t_density(X, df).T
    return np.column_stack([0.5 * (left + right), top, bottom])


@lru_cache(maxsize=16)
def _mixture_error(df: float, n_nodes: int = 1500) -> float:
    """1 - (1/3) integral of the largest class density, in polar coordinates about the centre of the diamond.

    Midpoint rule in r = tan(s) and the angle; all designs are symmetric in both axes, so one quadrant is enough.
    """
    midpoints = (np.arange(n_nodes) + 0.5) / n_nodes * (np.pi / 2.0)
    radius = np.tan(midpoints)
    weight = radius * (1.0 + radius**2) * (np.pi / 2.0 / n_nodes) ** 2
    constant = g.T_SCALE**2 / (2.0 * np.pi)
    total = 0.0
    for angle in midpoints:
        ray = 0.5 + np.outer(radius, [np.cos(angle), np.sin(angle)])
        total += weight @ _mixture_density(ray, df).max(axis=1)
    return 1.0 - 4.0 * constant * total / 3.0


def bayes_t_mixture(df: float = 3) -> BayesRule:
    """Rule of `make_t_mixture`; the error by quadrature, to about six digits."""

    def posterior(X: NDArray) -> NDArray:
        density = _mixture_density(X, df)
        return density / density.sum(axis=1, keepdims=True)

    return BayesRule(np.arange(1, 4), posterior, _mixture_error(float(df)))


def gaussian_ar_direction(n_features: int = 100, n_informative: int = 5, shift: float = 0.5, r: float = 0.0) -> NDArray:
    """Return Sigma^-1 mu, the Bayes coefficients of `make_gaussian_ar` up to a factor 2 (tridiagonal inverse)."""
    mu = np.zeros(n_features)
    mu[:n_informative] = shift
    diagonal = np.full(n_features, 1.0 + r * r)
    diagonal[[0, -1]] = 1.0
    product = diagonal * mu
    product[1:] -= r * mu[:-1]
    product[:-1] -= r * mu[1:]
    return mu if n_features == 1 else product / (1.0 - r * r)


def bayes_gaussian_ar(n_features: int = 100, n_informative: int = 5, shift: float = 0.5, r: float = 0.0) -> BayesRule:
    """Rule of `make_gaussian_ar`: sign(x' Sigma^-1 mu), error Phi(-sqrt(mu' Sigma^-1 mu))."""
    direction = gaussian_ar_direction(n_features, n_informative, shift, r)
    distance = np.sqrt(shift * direction[:n_informative].sum())

    def posterior(X: NDArray) -> NDArray:
        positive = special.expit(2.0 * (X @ direction))
        return np.column_stack([1.0 - positive, positive])

    return BayesRule(np.array([-1, 1]), posterior, float(special.ndtr(-distance)))
