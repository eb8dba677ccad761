"""Held-out scores: which machines compete, how they are cross-fitted, and how the noise model chooses among them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm, rankdata
from sklearn.base import clone
from sklearn.metrics.pairwise import laplacian_kernel
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold
from sklearn.utils import _safe_indexing

from ...estimators.margin import SVMClassifier
from .noise import Array, fit_quality

Parts = Sequence[tuple[NDArray, NDArray]]
Progress = Callable[[str, float], None]


@dataclass(frozen=True)
class MachineSettings:
    """Which machines compete, and on how many rows.

    Tuned on ionosphere, pima, vote and wdbc, and on clvheart, spambase, banknote, phoneme, satimage and glass.

    Attributes
    ----------
    linear_Cs : tuple of float
        Prices of loss that compete.
    gammas, laplace_gammas : tuple of float
        Inverse widths of the kernels that compete, times the number of features.
    rows : int
        Rows on which the machines compete; the chosen ones are cross-fitted on all rows.
    exact_rows : int
        With more rows the Gaussian kernel is approximated by landmarks, and the Laplace kernel does not compete.
    landmarks : int
        Number of them.
    near : float
        Families whose held-out log-likelihood per row is this close to the best one's are averaged with it.
    tol : float
        Relative duality gap of the fits.
    """

    linear_Cs: tuple[float, ...] = (0.001, 0.01, 0.1, 1.0)
    Cs: tuple[float, ...] = (1.0, 10.0)
    more_Cs: tuple[float, ...] = (0.3, 3.0, 30.0)
    gammas: tuple[float, ...] = (0.1, 0.3, 1.0, 3.0, 10.0)
    laplace_gammas: tuple[float, ...] = (0.3, 1.0, 3.0)
    rows: int = 600
    exact_rows: int = 6000
    landmarks: int = 300
    near: float = 0.02
    tol: float = 0.001


SETTINGS = MachineSettings()


@dataclass(frozen=True)
class Machine:
    """One support vector machine: what it reads, its kernel, and its parameters (gamma times the features)."""

    view: str
    kernel: str
    C: float
    gamma: float = 0.0

    def held_out(self, views: dict[str, Array], codes: NDArray, parts: Parts, keep: NDArray) -> Array:
        """Return scores of each row by a fit on the rows of the other folds that are kept."""
        X = views[self.view]
        return cross_fitted(self._classifier(len(X), X.shape[1]), X, codes, parts, keep)

    def _classifier(self, n_rows: int, n_features: int) -> Any:
        if self.kernel == "linear":
            return SVMClassifier(C=self.C, tol=SETTINGS.tol)
        gamma = self.gamma / n_features
        if self.kernel == "laplace":
            return SVMClassifier(C=self.C, kernel=partial(laplacian_kernel, gamma=gamma), tol=SETTINGS.tol)
        landmarks = SETTINGS.landmarks if n_rows > SETTINGS.exact_rows else None
        return SVMClassifier(C=self.C, kernel="rbf", gamma=gamma, n_components=landmarks, tol=SETTINGS.tol)

    @property
    def kind(self) -> str:
        """The kernel, and whether it reads ranks, in words."""
        return f"{self.kernel} SVM" + (" on ranks" if self.view == "ranks" else "")

    def __str__(self) -> str:
        """Say it in words."""
        width = f", gamma = {self.gamma:g}/features" if self.gamma else ""
        return f"{self.kind}, C = {self.C:g}{width}"


def standardised(X: Array) -> Array:
    """Return columns of mean 0 and deviation 1; constant columns become 0."""
    spread = X.std(axis=0)
    is_constant = spread <= 1e-12 * np.maximum(1.0, np.abs(X.mean(axis=0)))
    return (X - X.mean(axis=0)) / np.where(is_constant, np.inf, spread)


def views_of(X: Array) -> dict[str, Array]:
    """Return the features, standardised, and their normal scores, which heavy tails cannot stretch."""
    ranks = norm.ppf((rankdata(X, axis=0) - 0.5) / len(X))
    return {"values": standardised(X), "ranks": standardised(ranks)}


def divisions(codes: NDArray, groups: NDArray | None, folds: int, seed: int) -> list[tuple[NDArray, NDArray]]:
    """Return (train, test) pairs with the classes spread evenly; rows of a group stay together."""
    if groups is None:
        return list(StratifiedKFold(folds, shuffle=True, random_state=seed).split(codes, codes))
    return list(StratifiedGroupKFold(folds, shuffle=True, random_state=seed).split(codes, codes, groups))


def cross_fitted(estimator: Any, X: Any, codes: NDArray, parts: Parts, keep: NDArray) -> Array:
    """Return scores of each row by a fit on the rows of the other folds that are kept."""
    n_classes = int(codes.max()) + 1
    scores = np.zeros((codes.size, n_classes))
    for train, test in parts:
        rows = train[keep[train]]
        present = np.unique(codes[rows])
        if present.size < 2:  # a group holds all rows of the other classes
            scores[np.ix_(test, present)] = 1.0
            continue
        model = clone(estimator).fit(_safe_indexing(X, rows), codes[rows])
        scores[np.ix_(test, present)] = _as_scores(model, _safe_indexing(X, test))
    return scores


def chosen(views: dict[str, Array], codes: NDArray, parts: Parts, n_rows: int, progress: Progress) -> list[Machine]:
    """Return the machine of largest held-out likelihood, and the best one of every family that comes near.

    ``n_rows`` is how many rows the winners will be cross-fitted on.
    """
    kernels = {"rbf": SETTINGS.gammas, "laplace": SETTINGS.laplace_gammas}
    if n_rows > SETTINGS.exact_rows:
        del kernels["laplace"]
    keep = np.ones(codes.size, dtype=bool)
    quality: dict[Machine, float] = {}

    def compete(machines: Sequence[Machine]) -> Machine:
        for machine in machines:
            quality[machine] = fit_quality(machine.held_out(views, codes, parts, keep), codes)
            progress("choosing a model", min(1.0, len(quality) / 52))
        return max(machines, key=quality.__getitem__)

    best: list[Machine] = []
    for view in views:
        best.append(compete([Machine(view, "linear", C) for C in SETTINGS.linear_Cs]))
        for kernel, gammas in kernels.items():
            first = compete([Machine(view, kernel, C, gamma) for gamma in gammas for C in SETTINGS.Cs])
            more = [Machine(view, kernel, C, first.gamma) for C in SETTINGS.more_Cs]
            best.append(max(first, compete(more), key=quality.__getitem__))
    best.sort(key=quality.__getitem__, reverse=True)
    return [machine for machine in best if quality[machine] >= quality[best[0]] - SETTINGS.near]


def _as_scores(model: Any, X: Any) -> Array:
    """Return a score per class: decision values, or logarithms of probabilities."""
    if hasattr(model, "decision_function"):
        F = np.asarray(model.decision_function(X), dtype=np.float64)
    elif hasattr(model, "predict_proba"):
        F = np.log(np.clip(model.predict_proba(X), 1e-6, None))
    else:
        raise ValueError(f"estimator must have decision_function or predict_proba; {type(model).__name__} has neither.")
    return np.c_[-F, F] / 2 if F.ndim == 1 else F


def competition_rows(codes: NDArray, groups: NDArray | None, seed: int) -> NDArray[np.intp]:
    """Return the rows on which machines compete: all, or a random subset of whole groups."""
    if codes.size <= SETTINGS.rows:
        return np.arange(codes.size)
    rng = np.random.default_rng(seed)
    if groups is None:
        return np.sort(rng.permutation(codes.size)[: SETTINGS.rows])
    _, of = np.unique(groups, return_inverse=True)
    order = rng.permutation(of.max() + 1)[of]  # a random number per group
    return np.sort(np.argsort(order, kind="stable")[: SETTINGS.rows])
