"""The classifier that may say "I don't know"."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from ..core.losses import Loss, RejectHinge, TruncatedReject, reject_by_class
from ..core.result import go_on_after
from ..core.solving import Clock, SolverSettings
from ..evaluation.metrics import chow_loss
from ..evaluation.selective import Guarantee, cheapest_threshold, confidence_of, guaranteed_threshold
from ..solvers import settings
from .base import MarginEstimator
from .chunked import fits_in_blocks
from .docstrings import completed

#: Part of the time limit for the fit on all samples where folds choose the threshold, and the seconds that all folds
#: together have at least.
FIT_SHARE, LEAST_SECONDS = 0.5, 0.01


@completed
@dataclass(eq=False, repr=False, kw_only=True)
class RejectClassifier(MarginEstimator):
    """Classifier with a reject option: answers only where it is confident.

    Minimises ``P(w) + C sum_i weight_i phi_d(u_i)`` with phi_d(u) = (1 - u)_+ + (1 - 2d)/d (-u)_+, whose population
    minimiser is the sign of Chow's rule where that answers and 0 where it abstains (Bartlett and Wegkamp,
    Classification with a reject option using a hinge loss, 2008; Choi, Kim, Han and Kang, An algorithm for support
    vector machines with a reject option using bundle method, 2009).

    Parameters
    ----------
    d : float, pair or dict, default=0.2
        Cost of an abstention when a wrong answer costs 1, in (0, 1/2). For two classes also one cost per class, as a
        pair in the order of ``classes_`` or a dict from labels to costs: positive, with sum below 1. The loss then is
        :func:`psilearn.core.losses.reject_by_class`. Errors that cost differently are ``class_weight``.
    threshold : float or "auto", default=0.5
        Abstain where ``|f|`` (for k > 2: the lead of the best class) does not exceed it. "auto" minimises Chow's cost
        on held-out folds.
    s : float, default=None
        Also truncate the loss at margin s: robust and abstaining.
    threshold_folds : int, default=5
        Folds for ``threshold="auto"``.
    n_starts : int, default=1
        Descents of the d.c. algorithm if ``s`` is given.
    penalty : {"l2", "l1", "adaptive-l1", "elastic-net", "scad"}, default="l1"
        As in the other classifiers.

    Attributes
    ----------
    threshold_ : float
        The threshold in use.
    guarantee_ : Guarantee or None
        What :meth:`calibrate` proved.
    candidate_thresholds_ : ndarray
        Thresholds that :meth:`calibrate` chooses from.

    See Also
    --------
    SVMClassifier : Always answers.
    psilearn.metrics : Scores of classifiers that may abstain.

    Examples
    --------
    >>> import numpy as np
    >>> from psilearn import RejectClassifier
    >>> X = np.array([[-3.0], [-2.0], [-0.1], [0.1], [2.0], [3.0]])
    >>> y = [0, 0, 1, 0, 1, 1]
    >>> model = RejectClassifier(d=0.2).fit(X, y)
    >>> model.predict_or_abstain([[-3.0], [0.0], [3.0]], abstain=-1).tolist()
    [0, -1, 1]
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = MarginEstimator._parameter_constraints | {
        "d": [Interval(Real, 0, 0.5, closed="neither"), tuple, list, dict],
        "threshold": [StrOptions({"auto"}), Interval(Real, 0, None, closed="left")],
        "s": [Interval(Real, None, 1, closed="neither"), None],
        "threshold_folds": [Interval(Integral, 2, None, closed="left")],
        "n_starts": [Interval(Integral, 1, None, closed="left")],
    }

    d: Any = 0.2
    threshold: Any = 0.5
    s: float | None = None
    threshold_folds: int = 5
    n_starts: int = 1
    penalty: str = "l1"

    def _loss(self, n_classes: int) -> Loss:
        s = None if self.s is None else float(self.s)
        costs = self._costs()
        if not isinstance(self.d, Real):
            return reject_by_class((costs[0], costs[1]), s)
        return RejectHinge(costs[0]) if s is None else TruncatedReject(costs[0], s)

    def _costs(self) -> NDArray[np.float64]:
        """Return the cost of an abstention on each of ``classes_``."""
        if isinstance(self.d, Real):
            return np.full(self.classes_.size, float(self.d))
        if self.classes_.size != 2:
            raise ValueError("Costs of abstaining per class are for two classes; give one number d.")
        if isinstance(self.d, dict):
            if set(self.d) != set(self.classes_.tolist()):
                raise ValueError(
                    f"d must have a cost for each of the classes {self.classes_.tolist()}, got {self.d!r}."
                )
            return np.array([float(self.d[label]) for label in self.classes_.tolist()])
        if len(self.d) != 2:
            raise ValueError(f"d must be a number, a dict or a pair of costs, got {self.d!r}.")
        return np.array(self.d, dtype=np.float64)

    def _costs_of(self, y: Any) -> NDArray[np.float64]:
        """Return the cost of abstaining on each sample; a label never seen in ``fit`` costs the largest."""
        y, costs = np.asarray(y), self._costs()
        out = np.full(y.shape, costs.max())
        for label, cost in zip(self.classes_, costs):
            out[y == label] = cost
        return out

    def _settings(self) -> tuple[SolverSettings, ...]:
        return (settings("dca", n_starts=int(self.n_starts)),)

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit; with ``threshold="auto"`` also on ``threshold_folds`` folds to choose the threshold.

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
        RejectClassifier
            The fitted classifier itself.
        """
        clock = Clock(self._limit)
        X = X.tocsr() if sp.issparse(X) else X
        if fits_in_blocks(self, X) and isinstance(self.threshold, str):
            raise ValueError("threshold='auto' needs folds of data in memory; give a number, or call calibrate().")
        self.guarantee_: Guarantee | None = None
        super().fit(X, y, sample_weight)
        if fits_in_blocks(self, X):
            self.threshold_ = float(self.threshold)
            return self
        if isinstance(self.threshold, str):
            go_on_after(self.status_)
            self.threshold_ = self._threshold_by_cost(X, y, sample_weight, clock)
        else:
            self.threshold_ = float(self.threshold)
        self._fix_candidates(self.decision_function(X))
        return self

    def _learn_from(self, rows: Any) -> None:
        self._fix_candidates(self._scores(rows))

    def _fix_candidates(self, decisions: NDArray[np.float64]) -> None:
        """Fix, by training scores, the thresholds a guarantee may choose from: before it sees a calibration sample."""
        scores = confidence_of(decisions)
        self.candidate_thresholds_ = np.unique(np.r_[0.0, np.quantile(scores, np.linspace(0.0, 0.99, 100))])

    @property
    def _fit_share(self) -> float:
        return FIT_SHARE if isinstance(self.threshold, str) else 1.0

    @property
    def _follows_path(self) -> bool:
        return not isinstance(self.threshold, str)

    def _with_decisions(self, F: NDArray[np.float64]) -> Self:
        model = super()._with_decisions(F)
        model.threshold_ = float(self.threshold)
        return model

    def _threshold_by_cost(self, X: Any, y: Any, sample_weight: Any, clock: Clock) -> float:
        y = np.asarray(y)
        X = X if hasattr(X, "shape") else np.asarray(X)
        weight = np.ones(y.size) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        smallest = int(np.unique(y, return_counts=True)[1].min())
        folds = min(self.threshold_folds, smallest)
        if folds < 2:
            raise ValueError("threshold='auto' needs at least two samples of every class; give a number instead.")
        confidence, correct = np.zeros(y.size), np.zeros(y.size, dtype=bool)
        splits = StratifiedKFold(folds, shuffle=True, random_state=0).split(np.zeros(y.size), y)
        for fold, (train, test) in enumerate(splits):
            model = clone(self).set_params(threshold=0.0)
            if self.time_limit is not None:
                model.time_limit = max(clock.left, LEAST_SECONDS) / (folds - fold)
            model.fit(_rows(X, train), y[train], weight[train])
            go_on_after(model.status_)
            confidence[test] = confidence_of(model.decision_function(_rows(X, test)))
            correct[test] = model.predict(_rows(X, test)) == y[test]
        return cheapest_threshold(confidence, correct, self._costs_of(y), weight)

    def calibrate(self, X: Any, y: Any, risk: float = 0.05, level: float = 0.95) -> Guarantee:
        """Choose the threshold so that errors among answered are at most ``risk`` with probability ``level``.

        Sets ``threshold_`` and ``guarantee_``.

        Parameters
        ----------
        X, y : array-like
            Samples and labels that were not used for fitting.
        risk : float, default=0.05
            Largest share of wrong answers among the answers.
        level : float, default=0.95
            Probability with which that holds.

        Returns
        -------
        Guarantee
            What is promised, and the threshold that keeps the promise.
        """
        check_is_fitted(self)
        correct = self.predict(X) == np.asarray(y)
        confidence = confidence_of(self.decision_function(X))
        promise = guaranteed_threshold(confidence, correct, self.candidate_thresholds_, risk, level)
        self.guarantee_, self.threshold_ = promise, promise.threshold
        return promise

    def abstains(self, X: Any) -> NDArray[np.bool_]:
        """Return where the classifier does not answer.

        Parameters
        ----------
        X : {array-like, CSR matrix} of shape (n, d)
            Samples.

        Returns
        -------
        ndarray of bool, shape (n,)
            True where it abstains.
        """
        return confidence_of(self.decision_function(X)) <= self.threshold_

    def predict_or_abstain(self, X: Any, abstain: Any) -> NDArray[Any]:
        """Return the class where the classifier answers and ``abstain`` elsewhere.

        Parameters
        ----------
        X : {array-like, CSR matrix} of shape (n, d)
            Samples.
        abstain : object
            What stands for no answer.

        Returns
        -------
        ndarray of shape (n,)
            Labels, of type object if ``abstain`` is of another type.
        """
        answer = self.predict(X)
        mark = np.asarray([abstain])
        kind = np.result_type(answer, mark) if answer.dtype.kind == mark.dtype.kind else object
        out = answer.astype(kind)
        out[self.abstains(X)] = abstain
        return out

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return 1 - Chow's loss: an error costs 1, an abstention d (of its class).

        Parameters
        ----------
        X : {array-like, CSR matrix} of shape (n, d)
            Samples.
        y : array-like of shape (n,)
            Their labels.
        sample_weight : array-like of shape (n,), optional
            Weights.

        Returns
        -------
        float
            At most 1; answering never is worth 1 - d.
        """
        return 1.0 - chow_loss(y, self.predict(X), self.abstains(X), self._costs_of(y), sample_weight)


def _rows(X: Any, rows: NDArray[np.intp]) -> Any:
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]
