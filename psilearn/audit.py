"""Which labels are wrong? Samples whose label robust fits, made without them, refuse; most suspicious first."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedKFold
from sklearn.utils import check_X_y

from .estimators.margin import SVMClassifier, TruncatedHingeClassifier
from .estimators.path import Path, regularization_path

if TYPE_CHECKING:
    import pandas as pd

#: Values of C of the committee for two classes and for more.
TWO_CLASS_CS = (0.001, 0.01, 0.1, 1.0)
MANY_CLASS_CS = (0.01, 0.1, 1.0, 10.0)
#: The truncation point for two classes and for more. A later point for many classes: with s = -1/(k-1) two classes that
#: are hard to tell apart are refused wholesale, which ruins the ranking.
TWO_CLASS_S, MANY_CLASS_S = -1.0, -2.0
#: Problems with more numbers (samples x features x classes) than this are divided once only.
LARGE = 300_000
#: More samples than this are not searched exhaustively.
EXACT_ROWS = 2000


def find_label_issues(
    X: Any,
    y: Any,
    *,
    Cs: Sequence[float] | None = None,
    cv: int = 5,
    repeats: int | None = None,
    random_state: int = 0,
    exact: float | None = None,
    progress: Callable[[str, float], None] = lambda text, done: None,
) -> pd.DataFrame:
    """Rank samples by how strongly robust fits made without them contradict their label.

    Linear support vector machines with the hinge and with the truncated hinge T_s(u) = min((1 - u)_+, 1 - s) (Liu and
    Wu, Robust Truncated-Hinge-Loss SVM, 2006) are fitted at every C on the other folds, and each held-out sample gets a
    margin u from each. Margins are divided by their mean size and averaged over the repeats and the fits, a fit
    weighing exp(-5 (e - e_min) / e_min) if it contradicts the share e of the labels and the best fit e_min.

    Parameters
    ----------
    X : array-like of shape (n, d)
        Features, standardised.
    y : array-like of shape (n,)
        The labels in doubt.
    Cs : sequence of float, optional
        Values of C; by default four powers of ten.
    cv : int
        Folds.
    repeats : int, optional
        How often the samples are divided anew; by default three times, once if the problem is large.
    random_state : int
        Seed of the divisions.
    exact : float, optional
        Seconds for an exhaustive search behind ``refused``, two classes only; None is satisfied with a local optimum.
    progress : callable
        Called with a text and the share done.

    Returns
    -------
    DataFrame
        One row per sample, most suspicious first: ``index``, ``given``, ``suggested`` (the class with the largest mean
        score), ``score`` (in (0, 1), above 1/2 if the label is contradicted), ``margin`` (mean scaled margin),
        ``agreement`` (weighted share of held-out fits that agree with the label) and ``refused`` (the truncated fit on
        all samples caps the loss of this one: it was not believed). ``attrs["fit"]`` is that truncated fit, with its
        certificate.
    """
    import pandas as pd

    X, y = check_X_y(X, y, dtype=np.float64)
    classes, codes = np.unique(y, return_inverse=True)
    if classes.size < 2:
        raise ValueError(f"y must contain at least two classes, got only one class: {classes.tolist()}.")
    folds = min(cv, int(np.bincount(codes).min()))
    if folds < 2:
        raise ValueError("Every class needs at least two samples.")
    is_binary = classes.size == 2
    Cs = Cs or (TWO_CLASS_CS if is_binary else MANY_CLASS_CS)
    repeats = repeats or (1 if X.size * classes.size > LARGE else 3)
    robust = TruncatedHingeClassifier(s=TWO_CLASS_S if is_binary else MANY_CLASS_S, tol=1e-3, solver="dca")
    committee = [SVMClassifier(tol=1e-3), robust]
    scores = np.zeros((len(committee) * len(Cs), y.size, classes.size))
    wrong = np.zeros(len(scores))
    agree = np.zeros((len(scores), y.size))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for repeat in range(repeats):
            held_out = _held_out_scores(committee, X, codes, Cs, folds, random_state + repeat)
            u = _margins(held_out, codes)
            size = np.maximum(np.abs(u).mean(axis=1), np.finfo(float).tiny)
            scores += held_out / size[:, None, None] / repeats
            wrong += np.mean(u <= 0, axis=1) / repeats
            agree += (u > 0) / repeats
            progress("held-out fits", (repeat + 1) / (repeats + 1))
        robust.set_params(C=Cs[int(np.argmin(wrong)) % len(Cs)], tol=1e-4, time_limit=exact)
        if exact is not None and is_binary and y.size <= EXACT_ROWS:
            robust.set_params(solver="mip")
        robust.fit(X, codes)
    weights = np.exp(-5.0 * (wrong - wrong.min()) / max(wrong.min(), 1.0 / y.size))
    weights /= weights.sum()
    mean = np.tensordot(weights, scores, 1)
    margin = _margins(mean[None], codes)[0]
    table = pd.DataFrame(
        {
            "index": np.arange(y.size),
            "given": y,
            "suggested": classes[mean.argmax(axis=1)],
            "score": 1.0 / (1.0 + np.exp(np.clip(margin, -500, 500))),
            "margin": margin,
            "agreement": weights @ agree,
            "refused": np.isin(np.arange(y.size), robust.suspects_),
        }
    )
    progress("done", 1.0)
    table = table.sort_values(["margin", "index"], kind="stable").reset_index(drop=True)
    table.attrs["fit"] = robust
    return table


def _held_out_scores(
    committee: list[Any], X: NDArray, codes: NDArray, Cs: Sequence[float], folds: int, seed: int
) -> NDArray[np.float64]:
    """Return scores of shape (committee x Cs, n, k): each sample by fits made without it."""
    k = int(codes.max()) + 1
    out = np.zeros((len(committee) * len(Cs), codes.size, k))
    for train, test in StratifiedKFold(folds, shuffle=True, random_state=seed).split(X, codes):
        for at, estimator in enumerate(committee):
            path = regularization_path(estimator, X[train], codes[train], list(Cs))
            out[at * len(Cs) : (at + 1) * len(Cs), test] = _path_scores(path, X[test])
    return out


def _path_scores(path: Path, X: NDArray) -> NDArray[np.float64]:
    F = np.einsum("pmd,nd->pnm", path.coefs, X) + path.intercepts[:, None, :]
    return np.concatenate([-F, F], axis=2) / 2 if F.shape[2] == 1 else F


def _margins(scores: NDArray[np.float64], codes: NDArray) -> NDArray[np.float64]:
    """Return min_j (f_y - f_j) of scores (fits, n, k)."""
    rows = np.arange(codes.size)
    own = scores[:, rows, codes]
    others = scores.copy()
    others[:, rows, codes] = -np.inf
    return own - others.max(axis=2)
