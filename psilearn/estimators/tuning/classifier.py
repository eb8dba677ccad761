"""A classifier whose parameters are chosen by cross-validation, with the fits of all folds warm."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import Any, Self

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.metrics import check_scoring
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold, check_cv
from sklearn.pipeline import Pipeline
from sklearn.utils import assert_all_finite, get_tags, indexable
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, column_or_1d, has_fit_parameter

from ...core.solving import LOGGER, Clock
from ..base import MarginEstimator
from ..chunked import needs_memory
from ..encode import classes_of
from ..reject import RejectClassifier
from .folds import Data, Family, Rows, families_of, scores_on_fold, shared_of
from .grids import candidates_of, default_grid

#: Part of the estimator's time limit that the cross-validation may take; the rest is for the final fit.
TUNING_SHARE = 0.5


def _is_there(name: str) -> Callable[[Any], bool]:
    """Return a check of whether the fitted estimator, or the one to be fitted, has a method."""
    return lambda tuned: hasattr(getattr(tuned, "best_estimator_", tuned.estimator), name)


def _asked_of_best(method: Callable[..., Any]) -> Any:
    """Return a method that asks ``best_estimator_``, documented as the given one, if the estimator has it."""
    name = method.__name__

    @wraps(method)
    def ask(self: Any, *args: Any, **kwargs: Any) -> Any:
        check_is_fitted(self)
        return getattr(self.best_estimator_, name)(*args, **kwargs)

    return available_if(_is_there(name))(ask)


class TunedClassifier(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):
    """A classifier whose parameters are chosen by cross-validation.

    Does what ``sklearn.model_selection.GridSearchCV`` does, in a fraction of its time where the estimator is one of our
    margin classifiers: fits at several values of C are made along a path, a kernel matrix is computed once for all
    folds, and held-out samples are scored together. Fits of losses that are not convex are never worse than fits made
    alone. Other classifiers are fitted once for each fold and candidate.

    Parameters
    ----------
    estimator : classifier
        What is tuned: a classifier of psilearn, a pipeline that ends in one, or any other classifier (which needs a
        ``param_grid``). Its ``time_limit`` is that of the whole fit: half of it at most is for the cross-validation.
    param_grid : "auto", dict or list of dict, default="auto"
        Lists of values for each parameter. "auto" tries C (and ``gamma`` around "scale" for kernels, ``s`` of the
        truncated hinge while it is "auto", ``nu`` and ``max_order`` of boosters), in units of the data.
    cv : int, splitter or iterable, default=5
        Folds, stratified by class (and respecting ``groups``); no more than the smallest class has samples.
    criterion : {"cv"}, default="cv"
        How candidates are compared: by the mean score of the held-out folds.
    scoring : str, callable or None, default=None
        Any scorer of scikit-learn; None is the estimator's own ``score``. Sample weights are used in scores that take
        them.
    rule : {"best", "1se"}, default="best"
        "best" takes the best mean score; "1se" the simplest candidate whose mean score is within one standard error of
        it. Of equal candidates the simplest is taken: smaller order, larger nu, smaller gamma, smaller C.
    n_jobs : int, default=None
        Processes over the folds.
    random_state : int, RandomState or None, default=None
        Seed with which samples are shuffled before they are divided into folds; None does not shuffle them.

    Attributes
    ----------
    best_params_ : dict
        The parameters chosen.
    best_estimator_ : classifier
        The estimator with these parameters, fitted on all samples.
    best_score_ : float
        Mean held-out score of the choice.
    best_index_ : int
        Its place in ``cv_results_``.
    cv_results_ : dict
        "params", "mean_test_score", "std_test_score", "rank_test_score", "split0_test_score" ... and "param_C" ..., as
        in GridSearchCV. A score is nan where the time limit left no time for it.
    n_splits_ : int
        Number of folds.
    classes_ : ndarray of shape (k,)
        The labels, in order.
    n_features_in_ : int
        Number of features seen in ``fit``.
    feature_names_in_ : ndarray of str
        Their names, if ``X`` had some.

    See Also
    --------
    regularization_path : Fits at many values of C.

    Examples
    --------
    >>> from psilearn import SVMClassifier, TunedClassifier
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = TunedClassifier(SVMClassifier(), {"C": [0.01, 1.0]}).fit(X, y)
    >>> model.best_params_
    {'C': 1.0}
    """

    def __init__(
        self,
        estimator: Any,
        param_grid: Any = "auto",
        cv: Any = 5,
        criterion: str = "cv",
        scoring: Any = None,
        rule: str = "best",
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.param_grid = param_grid
        self.cv = cv
        self.criterion = criterion
        self.scoring = scoring
        self.rule = rule
        self.n_jobs = n_jobs
        self.random_state = random_state

    # -- fit ----------------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None, groups: Any = None) -> Self:
        """Choose the parameters, then fit with them on all samples.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (n, d)
            What the estimator takes.
        y : array-like of shape (n,)
            Labels, at least two different ones.
        sample_weight : array-like of shape (n,), optional
            Weights of the samples, in fits and in scores.
        groups : array-like of shape (n,), optional
            Samples of one group (a patient, say) are never on both sides of a fold.

        Returns
        -------
        TunedClassifier
            The fitted classifier itself.
        """
        self._check_choices()
        needs_memory(X, type(self).__name__)
        clock = Clock(_limit_of(self.estimator))
        X, y, groups = indexable(X, y, groups)
        y = column_or_1d(y, warn=True)
        assert_all_finite(y, input_name="y")
        classes_of(y)
        data = Data(X, y, self._weights(sample_weight, X), check_scoring(self.estimator, scoring=self.scoring))
        candidates = self._candidates(data)
        splits = self._splits(data, groups)
        scores = np.full((len(candidates), len(splits)), np.nan)
        if splits and len(candidates) > 1:
            self._score(candidates, splits, data, scores, Clock(TUNING_SHARE * clock.limit))
        self._choose(candidates, scores)
        self._refit(data, clock)
        return self

    def _check_choices(self) -> None:
        if self.criterion != "cv":
            raise ValueError(f"criterion must be 'cv', got {self.criterion!r}.")
        if self.rule not in ("best", "1se"):
            raise ValueError(f"rule must be 'best' or '1se', got {self.rule!r}.")

    def _weights(self, sample_weight: ArrayLike | None, X: Any) -> NDArray[np.float64] | None:
        if sample_weight is None:
            return None
        last = self.estimator[-1] if isinstance(self.estimator, Pipeline) else self.estimator
        if not has_fit_parameter(last, "sample_weight"):
            raise ValueError(f"{type(last).__name__} takes no sample_weight.")
        return _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)

    def _candidates(self, data: Data) -> list[dict[str, Any]]:
        if not (isinstance(self.param_grid, str) and self.param_grid == "auto"):
            return candidates_of(self.param_grid)
        if not isinstance(self.estimator, Pipeline):
            return candidates_of(default_grid(self.estimator, data.X, data.weight))
        name, last = self.estimator.steps[-1]
        head = clone(self.estimator[:-1])
        X = head.fit_transform(data.X, data.y) if head.steps else data.X
        grid = default_grid(last, X, data.weight)
        return candidates_of({f"{name}__{key}": values for key, values in grid.items()})

    def _splits(self, data: Data, groups: Any) -> list[tuple[Rows, Rows]]:
        """Return the folds; none if a class is too small to be held out."""
        cv = self.cv
        if isinstance(cv, (int, np.integer)):
            used = slice(None) if data.weight is None else data.weight > 0
            smallest = int(np.unique(data.y[used], return_counts=True)[1].min())
            count = min(int(cv), smallest)
            if count < 2:
                return []
            kind = StratifiedKFold if groups is None else StratifiedGroupKFold
            is_shuffled = self.random_state is not None
            cv = kind(count, shuffle=is_shuffled, random_state=self.random_state if is_shuffled else None)
        splitter = check_cv(cv, data.y, classifier=True)
        return list(splitter.split(data.X, data.y, groups))

    def _score(
        self,
        candidates: list[dict[str, Any]],
        splits: list[tuple[Rows, Rows]],
        data: Data,
        scores: NDArray[Any],
        clock: Clock,
    ) -> None:
        """Fill in the scores, family by family; what there is no time for stays nan."""
        families = families_of(self.estimator, candidates)
        jobs = 1 if self.n_jobs is None else self.n_jobs
        for done, family in enumerate(families):
            if done and clock.is_over:
                return
            shared = shared_of(clone(self.estimator).set_params(**family.params), data)
            left = max(0.0, clock.left) / (len(families) - done)
            if jobs == 1:
                self._score_in_turn(family, splits, data, shared, scores, clock, left)
            else:
                found = Parallel(n_jobs=jobs)(
                    delayed(scores_on_fold)(self.estimator, family, data, train, test, shared, left / len(splits))
                    for train, test in splits
                )
                scores[list(family.at)] = np.transpose(found)
            LOGGER.info(
                "TunedClassifier: %d of %d families of candidates after %.2f s", done + 1, len(families), clock.seconds
            )

    def _score_in_turn(
        self,
        family: Family,
        splits: list[tuple[Rows, Rows]],
        data: Data,
        shared: Any,
        scores: NDArray[Any],
        clock: Clock,
        left: float,
    ) -> None:
        mine = Clock(left)
        for fold, (train, test) in enumerate(splits):
            if fold and clock.is_over:
                return
            seconds = max(0.0, mine.left) / (len(splits) - fold)
            scores[list(family.at), fold] = scores_on_fold(self.estimator, family, data, train, test, shared, seconds)

    def _choose(self, candidates: list[dict[str, Any]], scores: NDArray[np.float64]) -> None:
        """Take the best (or the simplest good) candidate of those that were scored on the most folds."""
        seen = (~np.isnan(scores)).sum(axis=1)
        rivals = np.flatnonzero(seen == seen.max())
        mean, spread = np.full(len(candidates), np.nan), np.full(len(candidates), np.nan)
        if seen.max() > 0:
            scored = seen > 0
            mean[scored], spread[scored] = np.nanmean(scores[scored], axis=1), np.nanstd(scores[scored], axis=1)
            best = rivals[np.argmax(mean[rivals])]
            if self.rule == "1se":
                least = mean[best] - spread[best] / math.sqrt(seen[best])
                best = rivals[np.argmax(mean[rivals] >= least)]
        else:  # nothing could be held out, or there was no time: the middle of the grid
            best = len(candidates) // 2
        self.best_index_, self.best_params_ = int(best), candidates[best]
        self.best_score_, self.n_splits_ = float(mean[best]), scores.shape[1]
        self.cv_results_ = _table(candidates, scores, mean, spread)

    def _refit(self, data: Data, clock: Clock) -> None:
        model = clone(self.estimator).set_params(**self.best_params_)
        last = model[-1] if isinstance(model, Pipeline) else model
        prefix = f"{model.steps[-1][0]}__" if isinstance(model, Pipeline) else ""
        if math.isfinite(clock.limit):
            last.time_limit = max(clock.left, 1e-3)
        given = {} if data.weight is None else {f"{prefix}sample_weight": data.weight}
        self.best_estimator_ = model.fit(data.X, data.y, **given)
        if math.isfinite(clock.limit):
            last.time_limit = clock.limit
        self.classes_ = self.best_estimator_.classes_

    # -- what the fitted estimator answers ----------------------------------------------------------------------------

    @property
    def n_features_in_(self) -> int:
        """Number of features seen in ``fit``."""
        return self._fitted_part("n_features_in_")

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """Names of the features seen in ``fit``, if they have names."""
        return self._fitted_part("feature_names_in_")

    def _fitted_part(self, name: str) -> Any:
        if not hasattr(self, "best_estimator_"):
            raise AttributeError(f"{name} is known after fit.")
        return getattr(self.best_estimator_, name)

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the class of each sample.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (n, d)
            Samples.

        Returns
        -------
        ndarray of shape (n,)
            Labels.
        """
        check_is_fitted(self)
        return self.best_estimator_.predict(X)

    @available_if(_is_there("predict_proba"))
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the probabilities of the fitted estimator, if it has any.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (n, d)
            Samples.

        Returns
        -------
        ndarray of shape (n, k)
            What ``best_estimator_`` returns.
        """
        check_is_fitted(self)
        return self.best_estimator_.predict_proba(X)

    decision_function = _asked_of_best(MarginEstimator.decision_function)
    abstains = _asked_of_best(RejectClassifier.abstains)
    predict_or_abstain = _asked_of_best(RejectClassifier.predict_or_abstain)
    verify = _asked_of_best(MarginEstimator.verify)
    problem = _asked_of_best(MarginEstimator.problem)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the score by which candidates were compared.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (n, d)
            Samples.
        y : array-like of shape (n,)
            Their labels.
        sample_weight : array-like of shape (n,), optional
            Weights.

        Returns
        -------
        float
            The score of ``best_estimator_``.
        """
        check_is_fitted(self)
        scorer = check_scoring(self.best_estimator_, scoring=self.scoring)
        given = {} if sample_weight is None else {"sample_weight": sample_weight}
        return float(scorer(self.best_estimator_, X, y, **given))

    def __sklearn_tags__(self) -> Any:
        tags, inner = super().__sklearn_tags__(), get_tags(self.estimator)
        tags.classifier_tags = replace(inner.classifier_tags, multi_label=False)
        tags.input_tags = inner.input_tags
        return tags


def _limit_of(estimator: Any) -> float:
    last = estimator[-1] if isinstance(estimator, Pipeline) else estimator
    limit = getattr(last, "time_limit", None)
    return math.inf if limit is None else float(limit)


def _table(
    candidates: list[dict[str, Any]],
    scores: NDArray[np.float64],
    mean: NDArray[np.float64],
    spread: NDArray[np.float64],
) -> dict[str, Any]:
    """Return the scores as GridSearchCV shows them."""
    table: dict[str, Any] = {"params": candidates}
    for name in sorted({name for candidate in candidates for name in candidate}):
        table[f"param_{name}"] = np.ma.masked_array(
            [candidate.get(name) for candidate in candidates],
            mask=[name not in candidate for candidate in candidates],
            dtype=object,
        )
    for fold in range(scores.shape[1]):
        table[f"split{fold}_test_score"] = scores[:, fold].copy()
    ranked = np.where(np.isnan(mean), -np.inf, mean)
    rank = np.array([1 + int(np.sum(ranked > value)) for value in ranked], dtype=np.int32)
    return table | {"mean_test_score": mean, "std_test_score": spread, "rank_test_score": rank}
