"""Held-out scores: which models compete, how they are cross-fitted, and how the noise model weighs them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm, rankdata
from sklearn.base import clone
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics.pairwise import laplacian_kernel
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold
from sklearn.utils import _safe_indexing

from ...estimators.margin import SVMClassifier
from .noise import Array, fit_quality, log_mixture, probabilities

Parts = Sequence[tuple[NDArray, NDArray]]
Progress = Callable[[str, float], None]


@dataclass(frozen=True)
class MachineSettings:
    """Which models compete, and on how many rows.

    Tuned on ionosphere, pima, vote and wdbc, and on clvheart, huheart, spambase, banknote, phoneme, satimage, glass
    and vowel.

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
    logistic_Cs : tuple of float
        Inverse strengths of the ridge of logistic regression that compete.
    trees, leaf : int
        Randomised trees, and rows in a leaf of them, at least; no tree sees more than ``exact_rows`` rows.
    boosts, leaves : int
        Boosted trees, and leaves of each of them, at most.
    boosted_features : int
        With more features no trees are boosted: with 5000 of them and 200 rows that takes most of a minute.
    fade : float
        A kind whose held-out log-likelihood per row is this much below the best one's has 1/e of its weight.
    least_weight : float
        Kinds with a smaller share of the weight are left out.
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
    logistic_Cs: tuple[float, ...] = (0.03, 0.3, 3.0)
    trees: int = 100
    leaf: int = 2
    boosts: int = 60
    leaves: int = 8
    boosted_features: int = 500
    fade: float = 0.05
    least_weight: float = 0.05
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


@dataclass(frozen=True)
class Other:
    """A classifier that gives probabilities; it reads the standardised features."""

    kind: str
    seed: int
    C: float = 0.0

    def held_out(self, views: dict[str, Array], codes: NDArray, parts: Parts, keep: NDArray) -> Array:
        """Return scores of each row by a fit on the rows of the other folds that are kept."""
        X = views["values"]
        return cross_fitted(self._classifier(len(X)), X, codes, parts, keep)

    def _classifier(self, n_rows: int) -> Any:
        if self.kind == "logistic regression":
            return LogisticRegression(C=self.C, max_iter=500)
        if self.kind == "boosted trees":
            return HistGradientBoostingClassifier(
                max_iter=SETTINGS.boosts, max_leaf_nodes=SETTINGS.leaves, random_state=self.seed
            )
        part = SETTINGS.exact_rows / n_rows
        sampled: dict[str, Any] = {"bootstrap": True, "max_samples": part} if part < 1.0 else {}
        return _Voting(SETTINGS.trees, min_samples_leaf=SETTINGS.leaf, random_state=self.seed, **sampled)

    def __str__(self) -> str:
        """Say it in words."""
        return self.kind + (f", C = {self.C:g}" if self.C else "")


class _Voting(ExtraTreesClassifier):
    """Randomised trees whose scores are logarithms of their shares of votes, none of them zero."""

    def decision_function(self, X: Array) -> Array:
        p = self.predict_proba(X)
        return np.log((self.n_estimators * p + 1.0 / p.shape[1]) / (self.n_estimators + 1.0))


Model = Machine | Other


@dataclass(frozen=True)
class Panel:
    """Models that judge the labels together: the probabilities that each one gives, weighted by how well it does."""

    members: tuple[Model, ...]
    weights: tuple[float, ...]

    def held_out(self, views: dict[str, Array], codes: NDArray, parts: Parts, keep: NDArray) -> tuple[Array, Array]:
        """Return logarithms of held-out probabilities (n, k), and how much of the weight agrees with each label."""
        scores = [member.held_out(views, codes, parts, keep) for member in self.members]
        agreement = np.average([one.argmax(axis=1) == codes for one in scores], axis=0, weights=self.weights)
        return log_mixture([probabilities(one, codes) for one in scores], self.weights), agreement

    def __str__(self) -> str:
        """Say it in words."""
        best, *others = self.members
        return str(best) + (", averaged with " + ", ".join(m.kind for m in others) if others else "")


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
    """Return scores of each row by a fit on the rows of the other folds that are kept.

    A class that none of them has gets the mean of the other classes' scores: the fit says nothing about it.
    """
    n_classes = int(codes.max()) + 1
    scores = np.zeros((codes.size, n_classes))
    for train, test in parts:
        rows = train[keep[train]]
        present = np.unique(codes[rows])
        if present.size < 2:  # a group holds all rows of the other classes
            scores[np.ix_(test, present)] = 1.0
            continue
        model = clone(estimator).fit(_safe_indexing(X, rows), codes[rows])
        found = _as_scores(model, _safe_indexing(X, test))
        scores[test] = found.mean(axis=1, keepdims=True)
        scores[np.ix_(test, present)] = found
    return scores


def chosen(views: dict[str, Array], codes: NDArray, parts: Parts, n_rows: int, seed: int, progress: Progress) -> Panel:
    """Return the best model of every kind, weighted by its held-out likelihood.

    ``n_rows`` is how many rows the panel will be cross-fitted on.
    """
    kernels = {"rbf": SETTINGS.gammas, "laplace": SETTINGS.laplace_gammas}
    if n_rows > SETTINGS.exact_rows:
        del kernels["laplace"]
    keep = np.ones(codes.size, dtype=bool)
    quality: dict[Model, float] = {}

    def compete(models: Sequence[Model]) -> Any:
        for model in models:
            quality[model] = fit_quality(model.held_out(views, codes, parts, keep), codes)
            progress("choosing a model", min(1.0, len(quality) / 57))
        return max(models, key=quality.__getitem__)

    best: list[Model] = [compete([Other("randomised trees", seed)])]
    if views["values"].shape[1] <= SETTINGS.boosted_features:
        best.append(compete([Other("boosted trees", seed)]))
    best.append(compete([Other("logistic regression", seed, C) for C in SETTINGS.logistic_Cs]))
    for view in views:
        best.append(compete([Machine(view, "linear", C) for C in SETTINGS.linear_Cs]))
        for kernel, gammas in kernels.items():
            first = compete([Machine(view, kernel, C, gamma) for gamma in gammas for C in SETTINGS.Cs])
            more = [Machine(view, kernel, C, first.gamma) for C in SETTINGS.more_Cs]
            best.append(max(first, compete(more), key=quality.__getitem__))
    best.sort(key=quality.__getitem__, reverse=True)
    weights = np.exp((np.array([quality[model] for model in best]) - quality[best[0]]) / SETTINGS.fade)
    counts = weights >= SETTINGS.least_weight * weights.sum()
    return Panel(tuple(m for m, is_in in zip(best, counts) if is_in), tuple(weights[counts].tolist()))


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
