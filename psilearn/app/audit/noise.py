"""The noise model: held-out scores read as probabilities of the right class, where a share of the labels was changed.

    P(label = y | x) = (1 - e) p_y(x) + e (1 - p_y(x)) / (k - 1),        p = softmax(a s(x)),

where e is the share of changed labels, a the steepness, and s the held-out scores after :func:`stretched`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax, logsumexp
from scipy.stats import chi2, norm, rankdata

Array = NDArray[np.float64]
#: The share of wrong labels among rows whose label is certain.
NONE = np.zeros(1)
#: Distances between classes below this count as none; a hundred times its inverse is still a number.
NO_GAP = 1e-300


@dataclass(frozen=True)
class NoiseSettings:
    """Grids and priors of the noise model.

    Tuned on ionosphere, pima, vote, wdbc, clvheart, spambase, banknote, phoneme, satimage and glass, 400 rows each.

    Attributes
    ----------
    steepness : ndarray
        Logarithms of a, in units of one over the scores' mean size.
    shares : ndarray
        Values of e; the first one stands for "no label is wrong" and has half of the prior weight.
    powers : tuple of float
        Powers of the stretching that compete: how fast rows become unambiguous away from the boundary.
    rows : int
        Rows that the grids are evaluated on; more are thinned, the answer holds for all.
    temper : float
        Power of the likelihood in the posterior: the link is a model of the scores, not the truth.
    level : float
        Probability that the interval holds.
    pseudo : float
        Weight, in rows of each class, of "wrong labels are spread evenly" in the matrix of how labels go wrong.
    """

    steepness: Array
    shares: Array
    powers: tuple[float, ...] = (0.5, 0.7, 1.0, 1.4)
    rows: int = 4000
    temper: float = 0.6
    level: float = 0.9
    pseudo: float = 30.0


SETTINGS = NoiseSettings(
    steepness=np.linspace(-1.6, 3.4, 16),
    shares=np.array(
        [1e-4, 0.005, 0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.075, 0.09, 0.11, 0.13, 0.15, 0.175, 0.2, 0.225, 0.25, 0.275,
         0.3, 0.325, 0.35, 0.375, 0.4, 0.425, 0.45]
    ),
)  # fmt: skip


class Noise(NamedTuple):
    """What the noise model says.

    Attributes
    ----------
    wrong : ndarray of shape (n,)
        Probability that each label is wrong.
    share, interval : float, (float, float)
        Share of wrong labels among the given ones: posterior median and central interval.
    matrix : ndarray of shape (k, k)
        P(given label | true class), a row per true class.
    clean : float
        p-value of the likelihood-ratio test of "no label is wrong"; nan if some were and have been corrected.
    scores : ndarray of shape (n, k)
        Scores scaled so that their softmax are the probabilities of the classes.
    """

    wrong: Array
    share: float
    interval: tuple[float, float]
    matrix: Array
    clean: float
    scores: Array


def stretched(scores: Array, power: float = 1.0) -> Array:
    """Return scores whose distances between the best and the next class are exponential quantiles to a power.

    Scores of margin machines saturate near their margins, where the share of wrong labels is read off. The order of
    the distances is kept; their size is replaced by (-log(1 - rank))^power, so that the clearest rows are clear. A row
    is stretched at most ten times as much as usual, so that a tie does not blow up its distances to the other classes.
    """
    gap = _gaps(scores)
    factor = _factors(gap, (rankdata(gap) - 0.5) / gap.size, power)
    factor = np.minimum(factor, 10.0 * np.median(factor))
    return (scores - scores.max(axis=1, keepdims=True)) * factor[:, None]


def _gaps(scores: Array) -> Array:
    """Return the distances between the best and the next class."""
    ordered = np.sort(scores, axis=1)
    return np.asarray(ordered[:, -1] - ordered[:, -2])


def _factors(gap: Array, rank: Array, power: float) -> Array:
    """Return what turns distances into exponential quantiles to a power."""
    return (-np.log1p(-rank)) ** power / np.maximum(gap, NO_GAP)


def likelihood(scores: Array, codes: NDArray, steepness: Array, shares: Array) -> Array:
    """Return the log-likelihood at every steepness (rows) and share (columns)."""
    rows, others = np.arange(codes.size), scores.shape[1] - 1
    out = np.empty((steepness.size, shares.size))
    for at, log_a in enumerate(steepness):
        p = np.exp(log_softmax(np.exp(log_a) * scores, axis=1)[rows, codes])
        q = (1.0 - p) / others
        for column, e in enumerate(shares):
            out[at, column] = np.log(np.maximum(p + e * (q - p), 1e-12)).sum()
    return out


def fit_quality(scores: Array, codes: NDArray) -> float:
    """Return the largest mean log-likelihood on a coarse grid, by which machines are compared."""
    unit = _unit(stretched(scores))
    return float(likelihood(unit, codes, SETTINGS.steepness[::2], SETTINGS.shares[::3]).max()) / codes.size


def probabilities(scores: Array, codes: NDArray) -> Array:
    """Return the probabilities of the classes at the likeliest steepness and share on a coarse grid."""
    unit = _unit(stretched(scores))
    steepness = SETTINGS.steepness[::2]
    best = likelihood(unit, codes, steepness, SETTINGS.shares[::3]).max(axis=1).argmax()
    return np.exp(log_softmax(np.exp(steepness[best]) * unit, axis=1))


def log_mixture(chances: Sequence[Array], weights: Sequence[float]) -> Array:
    """Return logarithms of averaged probabilities, finite where none of them is above zero."""
    return np.log(np.maximum(np.average(chances, axis=0, weights=weights), 1e-9))


def fit_noise(scores: Array, codes: NDArray, known: NDArray | None = None, corrected: NDArray | None = None) -> Noise:
    """Fit the noise model to held-out scores.

    Parameters
    ----------
    scores : ndarray of shape (n, k)
        Scores of each row by machines fitted without it.
    codes : ndarray of shape (n,)
        Labels as 0 .. k - 1.
    known : ndarray of bool, optional
        Rows whose label a person has confirmed: it cannot be wrong.
    corrected : ndarray of bool, optional
        Which of them had another label before: they were wrong, so e is the share before any correction. Were they
        left out, the rows that were asked about, the doubtful ones, would be missing from the evidence.
    """
    free = np.ones(codes.size, dtype=bool) if known is None else ~known
    was_wrong = np.zeros(codes.size, dtype=bool) if corrected is None else corrected & ~free
    links = [_unit(stretched(scores, power)) for power in SETTINGS.powers]
    grids = _grids(links, codes, free, was_wrong)
    weights = _posterior(grids)
    wrong, counts, chances = np.zeros(codes.size), [], []
    quantiles = norm.ppf((np.arange(20) + 0.5) / 20)
    for at, a, e in np.argwhere(weights > 1e-4 * weights.max()):
        one = _wrong(links[at], codes, SETTINGS.steepness[a], SETTINGS.shares[e]) * free
        wrong += weights[at, a, e] * one
        spread = np.sqrt(np.sum(one * (1.0 - one)))
        counts.append(np.clip(one.sum() + spread * quantiles, 0.0, codes.size))
        chances.append(np.full(quantiles.size, weights[at, a, e]))
    wrong /= sum(chance[0] for chance in chances)
    low, middle, high = _quantiles(np.concatenate(counts) / codes.size, np.concatenate(chances))
    at, a, e = np.unravel_index(int(weights.argmax()), weights.shape)
    scaled = np.exp(SETTINGS.steepness[a]) * links[at]
    matrix = _matrix(scaled, codes, middle)
    clean = float("nan") if was_wrong.any() else _test_of_clean(grids)
    return Noise(wrong, middle, (low, high), matrix, clean, scaled)


def reader_of(scores: Array, codes: NDArray) -> Callable[[NDArray, NDArray], Array]:
    """Return a function that reads off the noise model of these rows how probably other rows' labels are wrong."""
    free = np.ones(codes.size, dtype=bool)
    links = [stretched(scores, power) for power in SETTINGS.powers]
    weights = _posterior(_grids([_unit(link) for link in links], codes, free, ~free))
    cells = np.argwhere(weights > 1e-4 * weights.max())
    total = float(sum(weights[tuple(cell)] for cell in cells))
    units = [max(float(np.abs(link).mean()), np.finfo(float).tiny) for link in links]
    gaps = np.sort(_gaps(scores))
    ranks = (rankdata(gaps) - 0.5) / gaps.size
    limits = [10.0 * np.median(_factors(gaps, ranks, power)) for power in SETTINGS.powers]

    def wrong(more: NDArray, more_codes: NDArray) -> Array:
        more = np.asarray(more, dtype=np.float64)
        gap = _gaps(more)
        place = (np.searchsorted(gaps, gap) + np.searchsorted(gaps, gap, "right")) / (2.0 * gaps.size)
        rank = np.clip(place, ranks[0], ranks[-1])
        below = more - more.max(axis=1, keepdims=True)
        factors = [np.minimum(_factors(gap, rank, p), limit) for p, limit in zip(SETTINGS.powers, limits)]
        there = [below * factor[:, None] / unit for factor, unit in zip(factors, units)]
        found = np.zeros(more_codes.size)
        for at, a, e in cells:
            found += weights[at, a, e] * _wrong(there[at], more_codes, SETTINGS.steepness[a], SETTINGS.shares[e])
        return found / total

    return wrong


def log_odds(scores: Array, codes: NDArray) -> Array:
    """Return the log odds of the label against all other classes together."""
    rows = np.arange(codes.size)
    others = scores.copy()
    others[rows, codes] = -np.inf
    return scores[rows, codes] - logsumexp(others, axis=1)


def _unit(scores: Array) -> Array:
    return scores / max(float(np.abs(scores).mean()), np.finfo(float).tiny)


def _grids(links: Sequence[Array], codes: NDArray, free: NDArray, was_wrong: NDArray) -> Array:
    """Return the log-likelihood at every power, steepness and share, on some of the rows if there are many."""
    rows = np.arange(codes.size)
    if codes.size > SETTINGS.rows:
        rows = np.random.default_rng(0).choice(codes.size, SETTINGS.rows, replace=False)
    open_rows, settled = rows[free[rows]], rows[~free[rows]]
    changed = int(was_wrong[rows].sum())
    a, e = SETTINGS.steepness, SETTINGS.shares
    told = (settled.size - changed) * np.log1p(-e) + changed * np.log(e)
    in_doubt = np.array([likelihood(link[open_rows], codes[open_rows], a, e) for link in links])
    certain = np.array([likelihood(link[settled], codes[settled], a, NONE) for link in links])
    return in_doubt + certain + told


def _posterior(grids: Array) -> Array:
    """Return posterior weights over power, steepness and share; half of the prior is on "no label is wrong"."""
    steps = np.gradient(SETTINGS.shares)
    prior = np.r_[0.5, 0.5 * steps[1:] / steps[1:].sum()]
    weights = SETTINGS.temper * grids + np.log(prior)
    weights = np.exp(weights - weights.max())
    return weights / weights.sum()


def _wrong(scores: Array, codes: NDArray, log_a: float, e: float) -> Array:
    p = np.exp(log_softmax(np.exp(log_a) * scores, axis=1)[np.arange(codes.size), codes])
    changed = e * (1.0 - p) / (scores.shape[1] - 1)
    return changed / ((1.0 - e) * p + changed)


def _quantiles(values: Array, weights: Array) -> tuple[float, float, float]:
    order = np.argsort(values)
    reached = np.cumsum(weights[order]) / weights.sum()
    tail = (1.0 - SETTINGS.level) / 2
    low, middle, high = (float(values[order][np.searchsorted(reached, q)]) for q in (tail, 0.5, 1.0 - tail))
    return low, middle, high


def _test_of_clean(grids: Array) -> float:
    """Return the p-value; twice the log ratio is zero or chi-square with one degree, half and half, under "clean"."""
    ratio = 2.0 * (grids.max() - grids[:, :, 0].max())
    return 1.0 if ratio <= 0 else 0.5 * float(chi2.sf(ratio, 1))


def _matrix(scaled: Array, codes: NDArray, share: float) -> Array:
    """Return P(given | true) by expectation maximisation, drawn towards an even spread of the share."""
    k = scaled.shape[1]
    p = np.exp(log_softmax(scaled, axis=1))
    given = np.eye(k)[codes]
    even = (1.0 - share) * np.eye(k) + share / (k - 1) * (1.0 - np.eye(k))
    T = even
    for _ in range(30):
        R = p * T.T[codes]
        R /= R.sum(axis=1, keepdims=True)
        T = R.T @ given + SETTINGS.pseudo * even
        T /= T.sum(axis=1, keepdims=True)
    return T
