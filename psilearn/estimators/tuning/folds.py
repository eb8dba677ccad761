"""Scores of candidates on one fold: along a path of C where the classifier has one, else one fit after the other.

A path is solved at once, each fit helping the next, and its scores come from one product with the held-out samples. For
kernels the Gram matrix of all samples is computed once per kernel, and folds are blocks of it.
"""

from __future__ import annotations

import inspect
import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing
from sklearn.utils.metaestimators import _safe_split

from ...core.result import go_on_after
from ...core.solving import Clock
from ...core.spaces import KernelSpace
from ...solvers import solve_path
from ..base import MarginEstimator
from ..encode import encode

#: Fits that only compare candidates are accurate to the tolerance of the estimator times this.
SEARCH_TOL = 10.0
#: Bytes of a Gram matrix that folds share; of a larger one each fit computes what it needs.
MOST_SHARED = 1 << 30

Array = NDArray[np.float64]
Rows = NDArray[np.intp]


@dataclass(frozen=True)
class Family:
    """Candidates that differ in C alone, or a single candidate.

    Attributes
    ----------
    params : dict
        The parameters they share.
    Cs : tuple of float
        Values of ``C``, empty for a single candidate.
    at : tuple of int
        Their places in the list of all candidates.
    """

    params: dict[str, Any]
    Cs: tuple[float, ...]
    at: tuple[int, ...]


@dataclass(frozen=True)
class Data:
    """Samples, labels, weights (None if none were given) and how a classifier is scored."""

    X: Any
    y: NDArray[Any]
    weight: Array | None
    scorer: Callable[..., float]


def families_of(estimator: Any, candidates: Sequence[dict[str, Any]]) -> list[Family]:
    """Group candidates into paths of C."""
    name = _name_of_C(estimator)
    groups: dict[str, list[int]] = {}
    for at, candidate in enumerate(candidates):
        rest = {key: value for key, value in candidate.items() if key != name}
        is_on_path = name in candidate and follows_path(clone(estimator).set_params(**rest))
        groups.setdefault(f"{sorted(rest.items(), key=str)}{'' if is_on_path else at}", []).append(at)
    families = []
    for members in groups.values():
        first = candidates[members[0]]
        if name in first and (len(members) > 1 or follows_path(clone(estimator).set_params(**first))):
            rest = {key: value for key, value in first.items() if key != name}
            families.append(Family(rest, tuple(float(candidates[at][name]) for at in members), tuple(members)))
        else:
            families.append(Family(first, (), tuple(members)))
    return families


def _name_of_C(estimator: Any) -> str:
    return f"{estimator.steps[-1][0]}__C" if isinstance(estimator, Pipeline) else "C"


def follows_path(estimator: Any) -> bool:
    """Whether fits at several values of C can be made along one path."""
    last = estimator[-1] if isinstance(estimator, Pipeline) else estimator
    return isinstance(last, MarginEstimator) and last._follows_path


@dataclass(frozen=True)
class Shared:
    """What folds share of a kernel: the Gram matrix of all samples, or their features on landmarks.

    Attributes
    ----------
    kernel : {"precomputed", "linear"}
        How a classifier reads ``rows``.
    rows : ndarray
        The Gram matrix, or the features.
    known : tuple
        Whether the Gram matrix is positive semidefinite by construction, and the error of its entries.
    """

    kernel: str
    rows: NDArray[Any]
    known: tuple[bool, float] = (False, 0.0)

    def block(self, rows: Rows, against: Rows) -> NDArray[Any]:
        """Return what a classifier trained on ``against`` is shown of ``rows``."""
        return self.rows[np.ix_(rows, against)] if self.kernel == "precomputed" else self.rows[rows]


def shared_of(estimator: Any, data: Data) -> Shared | None:
    """Return what all folds can share: something, if the kernel does not depend on the fold."""
    if not isinstance(estimator, MarginEstimator) or not estimator._follows_path or estimator._is_linear:
        return None
    depends_on_fold = not callable(estimator.kernel) and isinstance(estimator.gamma, str)
    if estimator.kernel == "precomputed" or depends_on_fold:
        return None
    worker = clone(estimator)
    X, y = worker._validated(data.X, data.y)
    space = worker._space(encode(X, y, worker.classes_, None, None, is_precomputed=True), None)
    if isinstance(space, KernelSpace):
        if 8 * space.n**2 > MOST_SHARED:
            return None
        return Shared("precomputed", np.asarray(space.K), (space.known_psd, space.entry_error))
    return Shared("linear", np.asarray(space.X))


def scores_on_fold(
    estimator: Any, family: Family, data: Data, train: Rows, test: Rows, shared: Shared | None, seconds: float
) -> Array:
    """Return the held-out scores of a family on one fold, in about ``seconds`` at most."""
    clock = Clock(seconds)
    model = clone(estimator).set_params(**family.params)
    y, weight = _safe_indexing(data.y, train), None if data.weight is None else data.weight[train]
    held_out = replace(data, y=_safe_indexing(data.y, test), weight=None if data.weight is None else data.weight[test])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", message=".* is constant")
        if shared is not None:
            model.set_params(kernel=shared.kernel, n_components=None)
            across = replace(held_out, X=shared.block(test, train))
            return _along_path(model, family, shared.block(train, train), y, weight, across, clock, shared.known)
        X, _ = _safe_split(model, data.X, data.y, train)
        rest = replace(held_out, X=_safe_split(model, data.X, data.y, test, train)[0])
        if isinstance(model, Pipeline):
            head, model = model[:-1], model[-1]
            if head.steps:
                X = head.fit_transform(X, y)
                rest = replace(rest, X=head.transform(rest.X))
        if family.Cs:
            return _along_path(model, family, X, y, weight, rest, clock)
        _limit(model, clock.left)
        model.fit(X, y) if weight is None else model.fit(X, y, sample_weight=weight)
        go_on_after(getattr(model, "status_", None))
        return np.array([_score(model, rest)])


def _limit(model: Any, seconds: float) -> None:
    """Give a fit no more than that, if it knows time limits."""
    if "time_limit" in model.get_params() and math.isfinite(seconds):
        own = math.inf if model.time_limit is None else model.time_limit
        model.time_limit = max(1e-3, min(own, seconds))


def _along_path(
    model: MarginEstimator, family: Family, X: Any, y: NDArray[Any], weight: Array | None, held_out: Data, clock: Clock,
    known: tuple[bool, float] = (False, 0.0),
) -> Array:  # fmt: skip
    """Scores along a path; ``known`` says what is known of a given Gram matrix."""
    order = np.argsort(family.Cs, kind="stable")
    model._validate_params()
    problem, sample = model._prepare(X, y, weight, clock)
    if any(known):
        assert isinstance(problem.space, KernelSpace)
        problem = replace(problem, space=KernelSpace(problem.space.K, *known))
    problems = []
    for at in order:
        model.C = float(family.Cs[at])
        model._validate_params()
        here = replace(problem, C=model.C)
        if model.penalty == "adaptive-l1":
            here = replace(here, penalty=model._penalty(here, clock))
        problems.append(here)
    options = model._options(clock.left / len(problems))
    options = replace(options, certify=False, tol=SEARCH_TOL * options.tol)
    results = solve_path(problems, model.solver, options)
    W, b = np.vstack([r.coef for r in results]), np.concatenate([r.intercept for r in results])
    F = model._scores_of(held_out.X, sample, W, b)
    scores = np.empty(order.size)
    m = problem.n_functions
    for at, first in zip(order, range(0, F.shape[1], m)):
        part = F[:, first : first + m]
        scores[at] = _score_of_values(model, part[:, 0] if m == 1 else part, held_out)
    return scores


def _score_of_values(model: MarginEstimator, F: Array, held_out: Data) -> float:
    """Score a classifier by its decision values on the held-out samples."""
    if _is_accuracy(model, held_out.scorer):
        right = model.classes_[(F > 0).astype(int) if F.ndim == 1 else F.argmax(axis=1)] == held_out.y
        return float(np.average(right, weights=held_out.weight))
    return _score(model._with_decisions(F), held_out)


def _is_accuracy(model: Any, scorer: Any) -> bool:
    own = getattr(scorer, "_score_func", None)
    if own is not None:
        return getattr(own, "__name__", "") == "accuracy_score" and not getattr(scorer, "_kwargs", {})
    return type(scorer).__name__ == "_PassthroughScorer" and type(model).score is ClassifierMixin.score


def _score(model: Any, held_out: Data) -> float:
    if held_out.weight is None or not _takes_weights(held_out.scorer):
        return float(held_out.scorer(model, held_out.X, held_out.y))
    return float(held_out.scorer(model, held_out.X, held_out.y, sample_weight=held_out.weight))


def _takes_weights(scorer: Callable[..., float]) -> bool:
    known = inspect.signature(getattr(scorer, "_score_func", scorer)).parameters
    return "sample_weight" in known or any(p.kind is p.VAR_KEYWORD for p in known.values())
