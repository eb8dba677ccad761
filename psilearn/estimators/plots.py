"""Pictures by matplotlib, in the manner of scikit-learn's displays.

Each display keeps the numbers it shows, is made by a ``from_...`` class method, and draws with ``plot``, which returns
the Axes; ``ax_`` and ``figure_`` are kept. Matplotlib is imported when the first picture is drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from ..core.extras import optional
from ..core.losses import Loss
from .path import Path, regularization_path

#: Class colours and markers; told apart without colour, too.
_COLOURS = ("#0d7a6a", "#a3246f", "#3346c2", "#b8500c", "#5b6472", "#8a6d3b")
_MARKERS = ("o", "s", "^", "D", "v", "P")


@dataclass
class _Display:
    """What displays share: finding axes and keeping them."""

    ax_: Any = field(default=None, init=False, repr=False)
    figure_: Any = field(default=None, init=False, repr=False)

    def _axes(self, ax: Any) -> Any:
        if ax is None:
            _, ax = optional("matplotlib.pyplot", "plots", "A picture").subplots()
        self.ax_, self.figure_ = ax, ax.figure
        return ax


@dataclass
class LossDisplay(_Display):
    """Losses over the functional margin u.

    Parameters
    ----------
    margins : ndarray of shape (p,)
    values : dict of str to ndarray of shape (p,)
        Name of a loss -> its values; nan where the loss jumps.
    """

    margins: NDArray[np.float64]
    values: dict[str, NDArray[np.float64]]

    @classmethod
    def from_losses(cls, losses: Sequence[Loss], *, low: float = -2.0, high: float = 2.0, ax: Any = None) -> Self:
        """Draw losses of the normal form between two margins."""
        u = np.linspace(low, high, 801)
        values = {}
        for loss in losses:
            v = np.asarray(loss.value(u), dtype=np.float64)
            # The line of a loss that jumps is broken at the jump.
            jumps = np.flatnonzero(np.abs(np.diff(v)) > 10 * (high - low) / 800 * max(loss.max_slope, 1.0))
            v[jumps] = np.nan
            values[str(loss)] = v
        display = cls(u, values)
        display.plot(ax)
        return display

    def plot(self, ax: Any = None) -> Any:
        """Draw; return the Axes."""
        ax = self._axes(ax)
        for name, v in self.values.items():
            ax.plot(self.margins, v, label=name)
        ax.set(xlabel="margin u", ylabel="loss")
        ax.legend()
        return ax


@dataclass
class BoundaryDisplay(_Display):
    """The plane of two features: regions, margins, samples, support vectors (circled) and suspects (crossed).

    Parameters
    ----------
    xx, yy : ndarray of shape (g, g)
        The grid.
    scores : ndarray of shape (g, g) or (g, g, k)
        f on the grid.
    X : ndarray of shape (n, 2)
    labels, classes : ndarray
        Labels of the samples, and all classes in the order of the scores.
    support, suspects : ndarray
        Positions of samples to mark.
    names : tuple of str
        Names of the features.
    """

    xx: NDArray[np.float64]
    yy: NDArray[np.float64]
    scores: NDArray[np.float64]
    X: NDArray[np.float64]
    labels: NDArray[Any]
    classes: NDArray[Any]
    support: NDArray[np.intp]
    suspects: NDArray[np.intp]
    names: tuple[str, ...] = ("feature 0", "feature 1")

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: ArrayLike, *, resolution: int = 150, ax: Any = None) -> Self:
        """Draw a classifier fitted on these samples of two features."""
        check_is_fitted(estimator)
        names = tuple(map(str, X.columns)) if hasattr(X, "columns") else ("feature 0", "feature 1")
        points = np.asarray(X, dtype=np.float64)
        if points.ndim != 2 or points.shape[1] != 2:
            raise ValueError(f"A boundary is drawn for two features, got X of shape {points.shape}.")
        pad = 0.08 * np.maximum(np.ptp(points, axis=0), 1e-12)
        sides = [np.linspace(points[:, j].min() - pad[j], points[:, j].max() + pad[j], resolution) for j in range(2)]
        xx, yy = np.meshgrid(*sides)
        grid: Any = np.c_[xx.ravel(), yy.ravel()]
        if hasattr(X, "columns"):
            grid = type(X)(grid, columns=X.columns)
        F = np.asarray(estimator.decision_function(grid))
        scores = F.reshape(xx.shape + F.shape[1:])
        none = np.array([], dtype=np.intp)
        support, suspects = (np.asarray(getattr(estimator, name, none)) for name in ("support_", "suspects_"))
        display = cls(xx, yy, scores, points, np.asarray(y), estimator.classes_, support, suspects, names)
        display.plot(ax)
        return display

    def plot(self, ax: Any = None) -> Any:
        """Draw; return the Axes."""
        ax = self._axes(ax)
        if self.scores.ndim == 2:
            ax.contour(self.xx, self.yy, self.scores, levels=[-1, 0, 1], colors="0.3", linestyles=["--", "-", "--"])
            winner = (self.scores > 0).astype(float)
        else:
            winner = self.scores.argmax(axis=2).astype(float)
            ax.contour(self.xx, self.yy, winner, levels=np.arange(len(self.classes)) + 0.5, colors="0.3")
        levels = np.arange(len(self.classes) + 1) - 0.5
        colours = [_COLOURS[i % len(_COLOURS)] for i in range(len(self.classes))]
        ax.contourf(self.xx, self.yy, winner, levels=levels, colors=colours, alpha=0.12)
        for i, label in enumerate(self.classes):
            mine = self.labels == label
            marker = _MARKERS[i % len(_MARKERS)]
            ax.scatter(*self.X[mine].T, s=24, c=colours[i], marker=marker, label=str(label), zorder=3)
        if self.support.size:
            ax.scatter(*self.X[self.support].T, s=80, facecolors="none", edgecolors="0.4", label="support", zorder=2)
        if self.suspects.size:
            ax.scatter(*self.X[self.suspects].T, s=110, c="k", marker="x", label="suspect", zorder=4)
        ax.set(xlabel=self.names[0], ylabel=self.names[1])
        ax.legend()
        return ax


@dataclass
class PathDisplay(_Display):
    """Coefficients along a regularization path, the largest named.

    Parameters
    ----------
    path : Path
        From :func:`psilearn.regularization_path`.
    names : sequence of str
        Names of the features.
    n_named : int
        Features that get a name and a colour; the others are grey.
    """

    path: Path
    names: Sequence[str]
    n_named: int = 8

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: ArrayLike, *, Cs: ArrayLike | None = None, n_named: int = 8, ax: Any = None
    ) -> Self:
        """Fit the path of an estimator and draw it."""
        grid = np.logspace(-3, 1, 25) if Cs is None else np.asarray(Cs, dtype=np.float64)
        path = regularization_path(estimator, X, y, grid)
        names = list(map(str, X.columns)) if hasattr(X, "columns") else [f"feature {j}" for j in range(np.shape(X)[1])]
        display = cls(path, names, n_named)
        display.plot(ax)
        return display

    def plot(self, ax: Any = None) -> Any:
        """Draw; return the Axes. With several classes a feature's largest coefficient in size is shown."""
        ax = self._axes(ax)
        order = np.argsort(self.path.Cs)
        coefs = self.path.coefs[order]
        lines = coefs[:, 0] if coefs.shape[1] == 1 else np.abs(coefs).max(axis=1)
        ranked = np.argsort(-np.abs(lines).max(axis=0), kind="stable")
        for rank, j in enumerate(ranked[::-1]):
            named = rank >= len(ranked) - self.n_named
            ax.plot(
                self.path.Cs[order], lines[:, j], color=None if named else "0.8", label=self.names[j] if named else None
            )
        ax.set(xscale="log", xlabel="C", ylabel="coefficient")
        ax.legend(fontsize="small")
        return ax


@dataclass
class RiskCoverageDisplay(_Display):
    """Error among the answered samples against the share answered, the surest first.

    Parameters
    ----------
    coverage, risk : ndarray
    answered, error : float
        Where the classifier's own threshold stands; nan if it never abstains.
    """

    coverage: NDArray[np.float64]
    risk: NDArray[np.float64]
    answered: float = np.nan
    error: float = np.nan

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: ArrayLike, *, ax: Any = None) -> Self:
        """Draw a fitted classifier on samples it has not seen."""
        check_is_fitted(estimator)
        scores = np.asarray(estimator.decision_function(X))
        confidence = np.abs(scores) if scores.ndim == 1 else np.diff(np.sort(scores, axis=1)[:, -2:], axis=1)[:, 0]
        wrong = np.asarray(estimator.predict(X)) != np.asarray(y)
        counts = np.arange(1, wrong.size + 1)
        risk = np.cumsum(wrong[np.argsort(-confidence, kind="stable")]) / counts
        display = cls(counts / wrong.size, risk)
        if hasattr(estimator, "abstains"):
            answers = ~estimator.abstains(X)
            display.answered = float(answers.mean())
            display.error = float(wrong[answers].mean()) if answers.any() else 0.0
        display.plot(ax)
        return display

    def plot(self, ax: Any = None) -> Any:
        """Draw; return the Axes."""
        ax = self._axes(ax)
        ax.plot(self.coverage, self.risk)
        if np.isfinite(self.answered):
            ax.plot([self.answered], [self.error], "o", label="threshold in use")
            ax.legend()
        ax.set(xlabel="share answered", ylabel="error among the answered", ylim=(0, None))
        return ax


@dataclass
class BoundsDisplay(_Display):
    """The best solution found and the bound proved, over time.

    Parameters
    ----------
    seconds, objective, bound : ndarray
    """

    seconds: NDArray[np.float64]
    objective: NDArray[np.float64]
    bound: NDArray[np.float64]

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> Self:
        """Draw the history of a fit."""
        check_is_fitted(estimator)
        if len(estimator.history_) == 0:
            raise ValueError("The fit kept no history.")
        history = np.array([tuple(step)[:3] for step in estimator.history_], dtype=np.float64)
        display = cls(*np.where(np.isfinite(history), history, np.nan).T)
        display.plot(ax)
        return display

    def plot(self, ax: Any = None) -> Any:
        """Draw; return the Axes."""
        ax = self._axes(ax)
        ax.step(self.seconds, self.objective, where="post", marker=".", label="solution")
        ax.step(self.seconds, self.bound, where="post", marker=".", linestyle="--", label="bound")
        ax.fill_between(self.seconds, self.bound, self.objective, step="post", alpha=0.12)
        ax.set(xlabel="seconds", ylabel="objective")
        ax.legend()
        return ax


@dataclass
class RulesDisplay(_Display):
    """The rules of a booster as bars: to the right for one class, to the left for the other.

    Parameters
    ----------
    texts : list of str
    weights : ndarray
        Signed: positive votes for ``classes[1]`` (of several classes: for the rule's class).
    classes : tuple of str
    """

    texts: list[str]
    weights: NDArray[np.float64]
    classes: tuple[str, ...]

    @classmethod
    def from_estimator(cls, estimator: Any, *, n_rules: int = 15, ax: Any = None) -> Self:
        """Draw the heaviest rules of a fitted booster."""
        check_is_fitted(estimator)
        top = np.argsort(-np.asarray(estimator.weights_), kind="stable")[:n_rules]
        signs = np.array([getattr(estimator.rules_[k], "sign", 1) for k in top], dtype=np.float64)
        texts = [str(estimator.rules_[k]) for k in top]
        display = cls(texts, signs * np.asarray(estimator.weights_)[top], tuple(map(str, estimator.classes_)))
        display.plot(ax)
        return display

    def plot(self, ax: Any = None) -> Any:
        """Draw; return the Axes."""
        ax = self._axes(ax)
        at = np.arange(len(self.texts))[::-1]
        ax.barh(at, self.weights, color=[_COLOURS[1] if w > 0 else _COLOURS[0] for w in self.weights])
        ax.set_yticks(at, self.texts)
        ax.axvline(0, color="0.3", linewidth=1)
        ax.set(xlabel=f"← {self.classes[0]}    weight    {self.classes[1]} →" if len(self.classes) == 2 else "weight")
        return ax
