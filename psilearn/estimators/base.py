"""What all margin classifiers share: the way of ``fit``, what it leaves behind, and prediction."""

from __future__ import annotations

import copy
import warnings
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from ..core.problem import Problem
from ..core.result import Result, Status
from ..core.solving import LOGGER, Clock, Options
from ..core.spaces import LinearSpace
from ..solvers import solve
from .certified import Certified
from .chunked import fit_blocks, fits_in_blocks, is_chunked, lazily
from .encode import Sample
from .progress import shown

#: Multipliers below this share of their cost are rounding, not support.
SUPPORT_SHARE = 1e-7


@dataclass(eq=False, repr=False, kw_only=True)
class MarginEstimator(ClassifierMixin, Certified):
    """Base of the margin classifiers; a subclass states its loss in :meth:`_loss`.

    Attributes
    ----------
    classes_ : ndarray of shape (k,)
        The labels, in order; for two classes the second is the positive one.
    coef_ : ndarray of shape (1, d) or (k, d)
        Coefficients of linear functions: one row for two classes, a row for each of more.
    intercept_ : ndarray of shape (1,) or (k,)
        Intercepts.
    objective_ : float
        The minimised objective at the fitted coefficients, evaluated with the exact loss.
    lower_bound_ : float
        A valid lower bound on the global optimum, -inf if none is known.
    gap_ : float
        Relative gap (objective - bound) / max(|objective|, eps), inf without a bound.
    status_ : Status
        Why the solver stopped.
    certificate_ : Certificate
        What is claimed of the fit, and on what evidence; objective, bound and gap are read from it.
    n_iter_ : int
        Iterations, or nodes of an exact search.
    history_ : list of Step
        (seconds, objective, bound) as the fit went on.
    support_ : ndarray of int
        Indices of the samples that the solution depends on.
    suspects_ : ndarray of int
        Indices of the samples whose loss is flat at its cap: the fit refused to believe their labels.
    kernel_ : Kernel
        The kernel with the number behind ``gamma``; not for linear functions.
    dual_coef_ : ndarray of shape (1, s) or (k, s)
        For kernels: coefficients of the expansion over ``support_vectors_``.
    support_vectors_ : array of shape (s, d) or None
        For kernels: the samples, or landmarks, with coefficients that are not zero; None for a precomputed kernel.
    dual_support_ : ndarray of shape (s,) or None
        For kernels: indices of ``support_vectors_`` among the samples; None for landmarks.
    low_rank_ : LowRank or None
        The landmarks of a low-rank kernel and their features.
    component_coef_ : ndarray
        For low-rank kernels: coefficients of those features.
    adaptive_weights_ : ndarray
        For penalty="adaptive-l1": the weights 1 / |w0_j| of the pilot fit.
    n_features_in_ : int
        Number of features seen in ``fit``.
    feature_names_in_ : ndarray of str
        Their names, if ``X`` had some.
    """

    # -- fit ----------------------------------------------------------------------------------------------------------

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the classifier.

        Parameters
        ----------
        X : {array-like, CSR matrix} of shape (n, d)
            Samples; a (n, n) Gram matrix if ``kernel="precomputed"``.
        y : array-like of shape (n,)
            Labels of any type, at least two different ones.
        sample_weight : array-like of shape (n,), optional
            Weights; a weight of 2 equals the row given twice, 0 equals its absence.

        Returns
        -------
        MarginEstimator
            The fitted classifier itself.
        """
        clock = Clock(self._fit_share * self._limit)
        with shown(self.verbose):
            if fits_in_blocks(self, X):
                fit_blocks(self, X, y, sample_weight, self._options(clock.left))
            else:
                problem, sample = self._prepare(X, y, sample_weight, clock)
                self._keep(self._solve(problem, self._options(clock.left)), problem, sample)
            LOGGER.info(
                "%s: %s after %.2f s, objective %.6g, bound %.6g, gap %.3g", type(self).__name__,
                self.status_.value, clock.seconds, self.objective_, self.lower_bound_, self.gap_,
            )  # fmt: skip
        self._warn_unless_done()
        return self

    @property
    def _fit_share(self) -> float:
        """Part of the time limit for the fit on all samples."""
        return 1.0

    def _solve(self, problem: Problem, options: Options) -> Result:
        return solve(problem, self.solver, options, None)

    def _keep(self, result: Result, problem: Problem, sample: Sample) -> None:
        """Turn a Result into fitted attributes."""
        self.status_ = result.status
        self.certificate_ = result.certificate
        self.n_iter_ = max(1, result.n_iter)
        self.history_ = list(result.history)
        self.intercept_ = result.intercept
        F = problem.space.scores(result.coef, result.intercept)
        u = problem.margins_of_scores(F)
        self.suspects_ = sample.given(problem.loss.is_capped(u))
        highest = max((t for _, t in problem.loss.hinges), default=problem.loss.t)
        carries = self._carries(result, problem, u, highest)
        self.support_ = sample.given(carries)
        if self._is_linear:
            self.coef_ = result.coef
        elif self.low_rank_ is not None:
            self.component_coef_ = result.coef
            self.dual_coef_ = self.low_rank_.expansion(result.coef)
            self.support_vectors_, self.dual_support_ = self.low_rank_.landmarks, None  # landmarks are no samples
        else:
            used = np.flatnonzero(np.any(result.coef != 0, axis=0))
            self.dual_coef_ = result.coef[:, used]
            first_given = _first_positions(sample.position, problem.n)
            self.dual_support_ = first_given[used]
            self.support_vectors_ = None if self.kernel == "precomputed" else sample.X[used]

    def _carries(self, result: Result, problem: Problem, u: NDArray[Any], highest: float) -> NDArray[np.bool_]:
        """Which samples the solution depends on: not capped, and with a multiplier that is not zero (else u <= 1)."""
        if result.multipliers is None:
            carries = u <= highest + 1e-6
        else:
            tilt = result.extra.get("tilt")
            net = result.multipliers if tilt is None else result.multipliers - tilt
            carries = np.abs(net).max(axis=1) > SUPPORT_SHARE * np.maximum(problem.dual_limits, problem.costs)
        return carries & ~problem.loss.is_capped(u)

    def _warn_unless_done(self) -> None:
        if self.status_ is Status.HEURISTIC:
            message = f"{type(self).__name__} keeps a solution without a proof; {self.certificate_.note}"
            warnings.warn(message, ConvergenceWarning, stacklevel=3)
        elif self.status_ not in (Status.OPTIMAL, Status.CRITICAL):
            message = (
                f"{type(self).__name__} stopped by {self.status_.value!r} with a relative gap of {self.gap_:.3g}; "
                "the best solution found is kept. Raise time_limit, max_iter or tol."
            )
            warnings.warn(message, ConvergenceWarning, stacklevel=3)

    # -- cross-validation ---------------------------------------------------------------------------------------------

    @property
    def _follows_path(self) -> bool:
        """Whether fits at several values of C are one path, and nothing but the solution differs."""
        return True

    def _scores_of(self, X: Any, sample: Sample, W: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the scores (n, functions) of samples under coefficients of a problem made of ``sample``."""
        X = validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=False)
        if self._is_linear:
            return LinearSpace(X).scores(W, b)
        if self.low_rank_ is not None:
            return self.low_rank_.space(X).scores(W, b)
        if self.kernel == "precomputed":
            return np.asarray(X[:, np.flatnonzero(sample.position >= 0)] @ W.T) + b
        used = np.flatnonzero(W.any(axis=0))
        return self.kernel_.scores(X, sample.X[used], W[:, used], b)

    def _with_decisions(self, F: NDArray[np.float64]) -> Self:
        """Return a classifier that answers as if its decision values were ``F``, whatever samples it is shown."""

        def decision_function(X: Any) -> NDArray[np.float64]:
            return F

        model = copy.copy(self)
        model.__dict__["decision_function"] = decision_function
        return model

    # -- prediction ---------------------------------------------------------------------------------------------------

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return the decision values f(x).

        Parameters
        ----------
        X : {array-like, CSR matrix} of shape (n, d)
            Samples; for a precomputed kernel, its values between them and the samples of the fit.

        Returns
        -------
        ndarray of shape (n,) or (n, k)
            One number for two classes, positive for ``classes_[1]``, else one for each class. Lazy (a dask
            array) for dask arrays and data frames.
        """
        check_is_fitted(self)
        if is_chunked(X):
            return lazily(self, self._scores, X, None if self.classes_.size == 2 else self.classes_.size, np.float64)
        X = validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=False)
        return self._scores(X)

    def _scores(self, X: Any) -> NDArray[np.float64]:
        if self._is_linear:
            F = LinearSpace(X).scores(self.coef_, self.intercept_)
        else:
            against = X[:, self.dual_support_] if self.kernel == "precomputed" else X
            F = self.kernel_.scores(against, self.support_vectors_, self.dual_coef_, self.intercept_)
        return F[:, 0] if self.classes_.size == 2 else F

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the class with the largest f; f = 0 of a two-class problem counts as ``classes_[0]``.

        Parameters
        ----------
        X : {array-like, CSR matrix} of shape (n, d)
            Samples, as for :meth:`decision_function`.

        Returns
        -------
        ndarray of shape (n,)
            Labels; lazy (a dask array) for dask arrays and data frames.
        """
        if is_chunked(X):
            check_is_fitted(self)
            return lazily(self, lambda rows: self._chosen(self._scores(rows)), X, None, self.classes_.dtype)
        return self._chosen(self.decision_function(X))

    def _chosen(self, F: NDArray[np.float64]) -> NDArray[Any]:
        return self.classes_[(F > 0).astype(int) if F.ndim == 1 else F.argmax(axis=1)]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = isinstance(self.kernel, str) and self.kernel == "precomputed"
        return tags


def _first_positions(position: NDArray[np.intp], n: int) -> NDArray[np.intp]:
    """For each row of the solver's sample, the first given row that went there."""
    first = np.full(n, -1, dtype=np.intp)
    rows = np.flatnonzero(position >= 0)[::-1]
    first[position[rows]] = rows
    return first
