"""Which labels are wrong? Samples whose label is contradicted by fits made without them and without doubtful ones."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax, logsumexp
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedKFold
from sklearn.utils import check_X_y

from ..core.extras import optional
from ..estimators.margin import SVMClassifier, TruncatedHingeClassifier
from ..estimators.path import regularization_path
from .words import shown

if TYPE_CHECKING:
    import pandas as pd

Array = NDArray[np.float64]

#: Values of C that compete.
CS = (0.001, 0.01, 0.1, 1.0)
#: How often the fits are repeated without the labels they made doubtful.
ROUNDS = 3
#: Relative duality gap of the held-out fits.
TOL = 0.03
#: Weight of a sample that is left out: it keeps its class alive where all samples of a class are doubtful.
LEFT_OUT = 1e-6
#: A value of C whose loss in the first fold is larger than the best one's by more than this is not tried in the others.
HOPELESS = 0.05
#: Where the loss of a robust fit stops growing. The earliest point for k classes, -1/(k-1), often refuses one of two
#: classes that are hard to tell apart wholesale.
TRUNCATION = -1.0
#: More samples than this are not searched exhaustively.
EXACT_ROWS = 2000
#: Logarithms of slopes, in units of the scores' mean size, and shares of wrong labels that the noise model chooses
#: from; then it looks as closely again around its choice.
LOG_SLOPES = np.linspace(-1.6, 3.0, 13)
SHARES = np.array([0.005, 0.01, 0.02, 0.035, 0.05, 0.075, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4])


class Noisy(NamedTuple):
    """Scores read as probabilities of the right class, where a share of the labels was changed to another class.

        P(label | x) = (1 - share) p + share (1 - p) / (k - 1),        p = softmax(scores)_label

    ``scores`` (n, k) are scaled to fit; ``loss`` is the mean negative log-likelihood.
    """

    scores: Array
    share: float
    loss: float

    @classmethod
    def fitted(cls, scores: Array, codes: NDArray) -> Noisy:
        """Choose slope and share by maximum likelihood, on a grid and a finer one."""
        rows, others = np.arange(codes.size), scores.shape[1] - 1
        unit = scores / max(float(np.abs(scores).mean()), np.finfo(float).tiny)
        slopes, shares = LOG_SLOPES, SHARES
        for last in (False, True):
            p = np.exp([log_softmax(np.exp(a) * unit, axis=1)[rows, codes] for a in slopes])
            losses = np.array([-np.log((1 - e) * p + e / others * (1 - p)).mean(axis=1) for e in shares])
            e, a = np.unravel_index(int(losses.argmin()), losses.shape)
            if not last:
                slopes, shares = _around(slopes, a), _around(shares, e)
        return cls(np.exp(slopes[a]) * unit, float(shares[e]), float(losses[e, a]))

    def trust(self, codes: NDArray) -> Array:
        """Return the probability that each label is right: (1 - share) p / P(label | x)."""
        p = np.exp(log_softmax(self.scores, axis=1)[np.arange(codes.size), codes])
        right, wrong = (1 - self.share) * p, self.share * (1 - p) / (self.scores.shape[1] - 1)
        return right / (right + wrong)


def find_label_issues(
    X: Any,
    y: Any,
    *,
    Cs: Sequence[float] = CS,
    cv: int = 5,
    repeats: int = 1,
    random_state: int = 0,
    exact: float | None = None,
    progress: Callable[[str, float], None] = lambda text, done: None,
) -> pd.DataFrame:
    """Rank samples by how strongly fits made without them contradict their label.

    Support vector machines are fitted at every C on the other folds; held-out scores are read as probabilities by a
    model with a share of wrong labels (:class:`Noisy`), whose likelihood chooses C. Labels that are more probably wrong
    than right are left out of the training, and the fits are repeated, so that wrong labels stop misleading them. The
    rounds and the repeats are averaged.

    Parameters
    ----------
    X : array-like of shape (n, d)
        Features, standardised.
    y : array-like of shape (n,)
        The labels in doubt.
    Cs : sequence of float
        Values of C that compete.
    cv : int
        Folds.
    repeats : int
        How often the samples are divided anew.
    random_state : int
        Seed of the divisions.
    exact : float, optional
        Seconds for an exhaustive search behind ``refused``, two classes only; None is satisfied with a local optimum.
    progress : callable
        Called with a text and the share done.

    Returns
    -------
    DataFrame
        One row per sample, most suspicious first: ``index``, ``given``, ``suggested`` (the most probable class),
        ``score`` (estimated probability that the label is wrong, if wrong labels are spread evenly), ``margin`` (log
        odds of the label against the best other class; negative if another class is suggested), ``agreement`` (share
        of the held-out fits that agree with the label) and ``refused`` (the truncated-hinge fit on all samples, Liu and
        Wu, Robust Truncated-Hinge-Loss SVM, 2006, caps the loss of this one: it was not believed). ``attrs["fit"]`` is
        that fit, with its certificate, ``attrs["share"]`` the estimated share of wrong labels.
    """
    pd = optional("pandas", "cli", "find_label_issues")
    X, y = check_X_y(X, y, dtype=np.float64)
    classes, codes = np.unique(y, return_inverse=True)
    if classes.size < 2:
        raise ValueError(f"y must contain at least two classes, got only one class: {classes.tolist()}.")
    folds = min(cv, int(np.bincount(codes).min()))
    if folds < 2:
        raise ValueError("Every class needs at least two samples.")
    found: list[Noisy] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for repeat in range(repeats):
            parts = list(StratifiedKFold(folds, shuffle=True, random_state=random_state + repeat).split(X, codes))
            values, weights = sorted(Cs), None
            for at in range(ROUNDS):
                fits = _held_out(X, codes, values, parts, weights)
                best = min(fits, key=lambda C: (fits[C].loss, C))
                found.append(fits[best])
                weights, values = _believed(fits[best].trust(codes), codes), [best]
                progress("held-out fits", (repeat * ROUNDS + at + 1) / (repeats * ROUNDS + 1))
        robust = _robust_fit(X, codes, best, exact)
    mean = Noisy(
        np.mean([f.scores for f in found], axis=0),
        float(np.mean([f.share for f in found])),
        float(np.mean([f.loss for f in found])),
    )
    wrong = 1.0 - mean.trust(codes)
    table = pd.DataFrame(
        {
            "index": np.arange(y.size),
            "given": y,
            "suggested": classes[mean.scores.argmax(axis=1)],
            "score": wrong,
            "margin": _margins(mean.scores, codes),
            "agreement": np.mean([_margins(f.scores, codes) > 0 for f in found], axis=0),
            "refused": np.isin(np.arange(y.size), robust.suspects_),
        }
    )
    progress("done", 1.0)
    table = table.iloc[np.lexsort((table["index"], _log_odds(mean.scores, codes)))].reset_index(drop=True)
    table.attrs.update(fit=robust, share=float(wrong.mean()))
    return table


def given_up(labels: Any, refused: Any) -> list[str]:
    """Say of which classes a fit refuses more than half of the labels: it has given them up, whatever their labels.

    Parameters
    ----------
    labels : array-like of shape (n,)
        The labels.
    refused : array-like of int or bool
        Which of them are refused.
    """
    labels = np.asarray(labels)
    classes, codes = np.unique(labels, return_inverse=True)
    counts, lost = np.bincount(codes), np.bincount(codes[np.asarray(refused)], minlength=classes.size)
    return [
        f"refuses {lost[j]} of the {counts[j]} labels '{shown(classes[j], 40)}': it has given this class up, which "
        "says little about the labels"
        for j in np.flatnonzero(2 * lost > counts)
    ]


def _held_out(
    X: Array, codes: NDArray, Cs: Sequence[float], parts: Sequence[Any], weights: Array | None
) -> dict[float, Noisy]:
    """Return, for every C worth it, scores of each sample by fits made without it."""
    scores = {C: np.zeros((codes.size, int(codes.max()) + 1)) for C in Cs}

    def fit(train: NDArray, test: NDArray, values: Sequence[float]) -> None:
        given = None if weights is None else weights[train]
        path = regularization_path(SVMClassifier(tol=TOL), X[train], codes[train], values, sample_weight=given)
        for C, W, b in zip(values, path.coefs, path.intercepts):
            F = X[test] @ W.T + b
            scores[C][test] = np.hstack([-F, F]) / 2 if F.shape[1] == 1 else F

    losses: dict[float, float] = {}
    train, test = parts[0]
    for C in Cs:  # from the cheapest fit to the dearest, as long as there is hope
        fit(train, test, [C])
        losses[C] = Noisy.fitted(scores[C][test], codes[test]).loss
        if losses[C] > min(losses.values()) + HOPELESS:
            break
    values = [C for C, loss in losses.items() if loss <= min(losses.values()) + HOPELESS]
    for train, test in parts[1:]:
        fit(train, test, values)
    return {C: Noisy.fitted(scores[C], codes) for C in values}


def _believed(trust: Array, codes: NDArray) -> Array:
    """Return weights that leave out the labels more probably wrong than right, at most half of a class."""
    weights = np.ones(codes.size)
    for code in range(int(codes.max()) + 1):
        mine = codes == code
        weights[mine & (trust < min(0.5, float(np.median(trust[mine]))))] = LEFT_OUT
    return weights


def _robust_fit(X: Array, codes: NDArray, C: float, exact: float | None) -> TruncatedHingeClassifier:
    """Return the truncated-hinge fit on all samples, searched exhaustively if that is asked for and possible."""
    robust = TruncatedHingeClassifier(C=C, s=TRUNCATION, tol=1e-3, time_limit=exact, solver="dca")
    if exact is not None and int(codes.max()) == 1 and codes.size <= EXACT_ROWS:
        robust.set_params(solver="mip")
    return robust.fit(X, codes)


def _around(grid: Array, at: Any) -> Array:
    """Return seven values from the left to the right neighbour of a grid's value."""
    return np.linspace(grid[max(at - 1, 0)], grid[min(at + 1, grid.size - 1)], 7)


def _others(scores: Array, codes: NDArray) -> tuple[Array, Array]:
    """Return the scores of the labels, and those of the other classes (-inf at the label)."""
    rows = np.arange(codes.size)
    others = scores.copy()
    others[rows, codes] = -np.inf
    return scores[rows, codes], others


def _margins(scores: Array, codes: NDArray) -> Array:
    """Return min_j (f_y - f_j)."""
    own, others = _others(scores, codes)
    return own - others.max(axis=1)


def _log_odds(scores: Array, codes: NDArray) -> Array:
    """Return the log odds of the label against all other classes together."""
    own, others = _others(scores, codes)
    return own - logsumexp(others, axis=1)
