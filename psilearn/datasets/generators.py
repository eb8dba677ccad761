"""Generators of every simulation in the five papers.

All take the number of samples first, are seeded by ``random_state`` (an int, a `numpy.random.Generator` or None) and
return ``(X, y)``, or ``(X, y, clean)`` with ``return_clean=True``, where ``clean`` holds the labels before any flip
(equal to ``y`` where a simulation flips none). The exact Bayes rules are in `psilearn.datasets.bayes`.

References
----------
- Y. Liu and Y. Wu, Optimizing psi-learning via mixed integer programming, Statistica Sinica, 2006.
- Y. Liu and Y. Wu, Robust truncated-hinge-loss SVM (slides), 2006.
- Y. Liu, X. Shen and H. Doss, Multicategory psi-learning and support vector machine: computational tools,
  Journal of Computational and Graphical Statistics 14, 2005.
- H. Choi, Y. Kim, S.-T. Han and H. Kang, An algorithm for support vector machines with a reject option using
  bundle method, 2009.
- X. Shen, G. C. Tseng, X. Zhang and W. H. Wong, On psi-learning, Journal of the American Statistical
  Association 98, 2003.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ._labels import Flip, flip_labels, flip_share

Seed = int | np.random.Generator | None

DIAMOND = np.array([[0.0, 0.5], [0.5, 1.0], [1.0, 0.5], [0.5, 0.0]])
"""The four centres (a_1, a_2) of Examples 2 and 4 of Liu, Shen and Doss (2005)."""

T_SCALE = 4.5
"""The t-vectors of Examples 2 and 4 of Liu, Shen and Doss (2005) are divided by this."""

BETA_SHAPES = ((1, 5), (2, 2), (5, 1))
"""The Beta(alpha, beta) laws of the classes 1, 2, 3 in Example 1 of Liu, Shen and Doss (2005)."""

FOLDED_SECTORS = np.array([1, 2, 2, 1, 3, 3])
"""Class of each of the six sectors: {1, 4}, {2, 3}, {5, 6}."""

Sample = tuple[NDArray, ...]


def _deal(X: NDArray, y: NDArray, clean: NDArray, return_clean: bool) -> Sample:
    return (X, y, clean) if return_clean else (X, y)


def _unit_disk(n_samples: int, rng: np.random.Generator) -> NDArray:
    angle = rng.uniform(0.0, 2.0 * np.pi, n_samples)
    radius = np.sqrt(rng.uniform(0.0, 1.0, n_samples))
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])


def _angle(X: NDArray) -> NDArray:
    """Angle of the first two coordinates in [0, 2 pi)."""
    return np.mod(np.arctan2(X[:, 1], X[:, 0]), 2.0 * np.pi)


def sector(X: NDArray, n_sectors: int) -> NDArray:
    """Return floor(k theta / 2 pi) + 1, the sector 1..k of the first two coordinates."""
    # the angle of a point just below the axis may round up to 2 pi itself
    return np.minimum(np.floor(n_sectors * _angle(X) / (2.0 * np.pi)).astype(int), n_sectors - 1) + 1


def triangle(X: NDArray) -> NDArray:
    """Return the region 1..4 of the unit square cut by its two diagonals (Example 3 of Liu, Shen and Doss (2005))."""
    x1, x2 = X[:, 0], X[:, 1]
    left, top, right = (
        (x2 >= x1) & (x2 <= 1 - x1),
        (x2 > x1) & (x2 > 1 - x1),
        (x2 <= x1) & (x2 >= 1 - x1),
    )
    return np.select([left, top, right], [1, 2, 3], default=4)


def make_disk(
    n_samples: int = 50, *, n_flips: int = 0, random_state: Seed = None, return_clean: bool = False
) -> Sample:
    """Uniform points in the unit disk, y = +1 where x_1 >= 0 and -1 elsewhere, n_flips labels changed.

    Section 3.4 of Liu and Wu (2006, psi-learning), after Shen, Tseng, Zhang and Wong (2003). The Bayes error of
    unflipped labels is 0.

    Parameters
    ----------
    n_samples : int
    n_flips : int
        Number of labels changed to the other class.
    random_state : int, Generator or None
    return_clean : bool
        Also return the labels before the flips.

    Returns
    -------
    X : array of shape (n_samples, 2)
    y : array of -1 and +1
    clean : array, only with ``return_clean``
    """
    rng = np.random.default_rng(random_state)
    X = _unit_disk(n_samples, rng)
    clean = np.where(X[:, 0] >= 0.0, 1, -1)
    y = flip_labels(clean, n_flips, np.array([-1, 1]), rng)
    return _deal(X, y, clean, return_clean)


def quadratic_features(U: NDArray, case: int) -> NDArray:
    """Return 2, 4, 8 or 14 columns made from x_1..x_4: Case 1-4 of Section 5.1 of Liu and Wu (2006, psi-learning).

    Squares of x_1, x_2; squares of all; squares and the variables; squares, variables and the six products.
    """
    if case not in (1, 2, 3, 4):
        raise ValueError(f"case must be 1, 2, 3 or 4, got {case!r}.")
    squares = U**2
    if case == 1:
        return squares[:, :2]
    if case == 2:
        return squares
    if case == 3:
        return np.hstack([squares, U])
    first, second = np.triu_indices(4, k=1)
    return np.hstack([squares, U, U[:, first] * U[:, second]])


def make_quadratic(
    n_samples: int = 100, *, case: int = 1, flip: float = 0.05, random_state: Seed = None, return_clean: bool = False
) -> Sample:
    """Labels sign(x_1^2 + x_2^2 - 2.8), each changed with probability ``flip``; x uniform on [-2, 2]^4.

    Section 5.1 of Liu and Wu (2006, psi-learning); the Bayes error is ``flip``. The columns of X depend on
    ``case``, see `quadratic_features`; only the first two matter.

    Parameters
    ----------
    n_samples : int
    case : {1, 2, 3, 4}
    flip : float
        Probability of a changed label, independently for every sample.
    random_state : int, Generator or None
    return_clean : bool
        Also return the labels before the flips.

    Returns
    -------
    X : array of shape (n_samples, 2 or 4 or 8 or 14)
    y : array of -1 and +1
    clean : array, only with ``return_clean``
    """
    rng = np.random.default_rng(random_state)
    U = rng.uniform(-2.0, 2.0, (n_samples, 4))
    clean = np.where(U[:, 0] ** 2 + U[:, 1] ** 2 >= 2.8, 1, -1)
    y = np.where(rng.uniform(size=n_samples) < flip, -clean, clean)
    return _deal(quadratic_features(U, case), y, clean, return_clean)


def _with_noise(X: NDArray, n_features: int, rng: np.random.Generator) -> NDArray:
    if n_features < 2:
        raise ValueError(f"n_features must be at least 2, got {n_features}.")
    return np.hstack([X, rng.uniform(-1.0, 1.0, (len(X), n_features - 2))])


def make_sectors(
    n_samples: int = 100,
    *,
    n_classes: int = 3,
    n_features: int = 2,
    flip: float = 0.1,
    random_state: Seed = None,
    return_clean: bool = False,
) -> Sample:
    """k equal sectors of the unit disk as classes 1..k, a share of labels flipped, uniform noise variables added.

    The linear example of Liu and Wu (2006, truncated hinge): y = floor(k theta / 2 pi) + 1, then ``flip`` of the
    points move to the remaining k - 1 classes with equal probabilities, then n_features - 2 variables uniform on
    [-1, 1] are appended. The Bayes error is ``flip``.

    Parameters
    ----------
    n_samples : int
    n_classes : int
    n_features : int
        Two informative variables and n_features - 2 noise variables.
    flip : float
        Share of changed labels; exactly round(flip * n_samples) change.
    random_state : int, Generator or None
    return_clean : bool
        Also return the labels before the flips.

    Returns
    -------
    X : array of shape (n_samples, n_features)
    y : array of 1..n_classes
    clean : array, only with ``return_clean``
    """
    rng = np.random.default_rng(random_state)
    disk = _unit_disk(n_samples, rng)
    clean = sector(disk, n_classes)
    y = flip_labels(clean, flip_share(n_samples, flip), np.arange(1, n_classes + 1), rng)
    return _deal(_with_noise(disk, n_features, rng), y, clean, return_clean)


def make_folded_sectors(
    n_samples: int = 100, *, flip: float = 0.1, random_state: Seed = None, return_clean: bool = False
) -> Sample:
    """Six sectors of the unit disk folded into three classes {1, 4}, {2, 3}, {5, 6}, a share of labels flipped.

    A design for the nonlinear example of Liu and Wu (2006, truncated hinge) (Table 3), which does not state its
    own: this one fits the published figures, three plain sectors do not. The Bayes error is ``flip``.

    Parameters
    ----------
    n_samples : int
    flip : float
        Share of labels changed to one of the other two classes; exactly round(flip * n_samples) change.
    random_state : int, Generator or None
    return_clean : bool
        Also return the labels before the flips.

    Returns
    -------
    X : array of shape (n_samples, 2)
    y : array of 1, 2, 3
    clean : array, only with ``return_clean``
    """
    rng = np.random.default_rng(random_state)
    X = _unit_disk(n_samples, rng)
    clean = FOLDED_SECTORS[sector(X, 6) - 1]
    y = flip_labels(clean, flip_share(n_samples, flip), np.arange(1, 4), rng)
    return _deal(X, y, clean, return_clean)


def make_beta_mixture(n_samples: int = 100, *, random_state: Seed = None, return_clean: bool = False) -> Sample:
    """Three classes on [0, 1] with laws Beta(1, 5), Beta(2, 2), Beta(5, 1) and equal probabilities.

    Example 1 of Liu, Shen and Doss (2005), whose estimate of the Bayes error is .2553.

    Parameters
    ----------
    n_samples : int
    random_state : int, Generator or None
    return_clean : bool
        Also return the labels again (nothing is flipped here).

    Returns
    -------
    X : array of shape (n_samples, 1)
    y : array of 1, 2, 3
    clean : array, only with ``return_clean``
    """
    rng = np.random.default_rng(random_state)
    y = rng.integers(1, 4, n_samples)
    alpha, beta = np.array(BETA_SHAPES, dtype=float)[y - 1].T
    return _deal(rng.beta(alpha, beta)[:, None], y, y.copy(), return_clean)


def _bivariate_t(n_samples: int, df: float, rng: np.random.Generator) -> NDArray:
    """Standard bivariate t: one chi-square divides both coordinates, so they are uncorrelated but dependent."""
    normal = rng.standard_normal((n_samples, 2))
    return normal / np.sqrt(rng.chisquare(df, n_samples) / df)[:, None]


def make_t_diamond(
    n_samples: int = 100, *, df: float = 3, random_state: Seed = None, return_clean: bool = False
) -> Sample:
    """Four classes centred on a diamond with bivariate t noise: x = t / 4.5 + a_y.

    Example 2 of Liu, Shen and Doss (2005): df = 1 in Case 1 and 3 in Case 2, centres (0, .5), (.5, 1), (1, .5),
    (.5, 0). The exact Bayes errors are .3014 and .1904 (printed, from samples of 100,000: .3015 and .1937).

    Parameters
    ----------
    n_samples : int
    df : float
        Degrees of freedom.
    random_state : int, Generator or None
    return_clean : bool
        Also return the labels again (nothing is flipped here).

    Returns
    -------
    X : array of shape (n_samples, 2)
    y : array of 1..4
    clean : array, only with ``return_clean``
    """
    rng = np.random.default_rng(random_state)
    y = rng.integers(1, 5, n_samples)
    X = _bivariate_t(n_samples, df, rng) / T_SCALE + DIAMOND[y - 1]
    return _deal(X, y, y.copy(), return_clean)


def make_triangles(
    n_samples: int = 100,
    *,
    flip: float = 0.1,
    to: Flip = "others",
    random_state: Seed = None,
    return_clean: bool = False,
) -> Sample:
    """The unit square cut by its diagonals into four classes, a share of labels flipped.

    Example 3 of Liu, Shen and Doss (2005). Its text moves flipped labels to the remaining three classes
    (``to="others"``, Bayes error ``flip``); its Table 2 matches labels redrawn among all four (``to="all"``, Bayes
    error 3/4 ``flip``).

    Parameters
    ----------
    n_samples : int
    flip : float
        Share of chosen labels; exactly round(flip * n_samples) are chosen.
    to : {"others", "all"}
    random_state : int, Generator or None
    return_clean : bool
        Also return the labels before the flips.

    Returns
    -------
    X : array of shape (n_samples, 2)
    y : array of 1..4
    clean : array, only with ``return_clean``
    """
    rng = np.random.default_rng(random_state)
    X = rng.uniform(0.0, 1.0, (n_samples, 2))
    clean = triangle(X)
    y = flip_labels(clean, flip_share(n_samples, flip), np.arange(1, 5), rng, to)
    return _deal(X, y, clean, return_clean)


def make_t_mixture(
    n_samples: int = 100, *, df: float = 3, random_state: Seed = None, return_clean: bool = False
) -> Sample:
    """Three classes with bivariate t noise, the first a mixture of two: a nonlinear problem.

    Example 4 of Liu, Shen and Doss (2005): class 1 is centred at (0, .5) or (1, .5) with probability 1/2 each,
    class 2 at (.5, 1), class 3 at (.5, 0). The degrees of freedom are those "of Example 2"; the printed Bayes error
    .176 is that of df = 3.

    Parameters
    ----------
    n_samples : int
    df : float
        Degrees of freedom.
    random_state : int, Generator or None
    return_clean : bool
        Also return the labels again (nothing is flipped here).

    Returns
    -------
    X : array of shape (n_samples, 2)
    y : array of 1, 2, 3
    clean : array, only with ``return_clean``
    """
    rng = np.random.default_rng(random_state)
    y = rng.integers(1, 4, n_samples)
    sides = rng.integers(0, 2, n_samples)
    centre = np.select([y == 2, y == 3], [1, 3], default=2 * sides)
    X = _bivariate_t(n_samples, df, rng) / T_SCALE + DIAMOND[centre]
    return _deal(X, y, y.copy(), return_clean)


def make_gaussian_ar(
    n_samples: int = 100,
    *,
    n_features: int = 100,
    n_informative: int = 5,
    shift: float = 0.5,
    r: float = 0.0,
    random_state: Seed = None,
    return_clean: bool = False,
) -> Sample:
    """Two Gaussian classes N(+-mu, Sigma) with Sigma_kl = r^|k-l|, mu = shift on the first variables and 0 after.

    Section 3.1 of Choi, Kim, Han and Kang (2009) with p = 100, q = 5, D = 0.5 and r = 0, 0.3, 0.6: the first half
    of the rows has y = +1, the second y = -1. Variable q + 1 is *not* noise when r > 0: its Bayes coefficient is
    proportional to -r / (1 - r^2).

    Parameters
    ----------
    n_samples : int
        Rows; the first ceil(n / 2) are +1.
    n_features, n_informative : int
        p and q of the paper.
    shift : float
        D of the paper.
    r : float
        Correlation of neighbouring variables, in [0, 1).
    random_state : int, Generator or None
    return_clean : bool
        Also return the labels again (nothing is flipped here).

    Returns
    -------
    X : array of shape (n_samples, n_features)
    y : array of -1 and +1
    clean : array, only with ``return_clean``
    """
    if not 0.0 <= r < 1.0:
        raise ValueError(f"r must lie in [0, 1), got {r}.")
    rng = np.random.default_rng(random_state)
    y = np.where(np.arange(n_samples) < (n_samples + 1) // 2, 1, -1)
    X = rng.standard_normal((n_samples, n_features))
    # the AR(1) recursion has exactly this covariance and needs no p x p factor
    for j in range(1, n_features):
        X[:, j] = r * X[:, j - 1] + np.sqrt(1.0 - r * r) * X[:, j]
    X[:, :n_informative] += shift * y[:, None]
    return _deal(X, y, y.copy(), return_clean)
