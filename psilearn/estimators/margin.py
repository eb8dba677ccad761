"""The margin classifiers: each states its loss, everything else is shared."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from numbers import Integral, Real
from typing import Any, ClassVar

from sklearn.utils._param_validation import Interval, StrOptions

from ..core.losses import Hinge, Loss, Psi, TruncatedHinge
from ..core.problem import Problem
from ..core.result import Result
from ..core.solving import Clock, Options, SolverSettings
from ..solvers import settings, solve, solve_convex
from .base import MarginEstimator
from .docstrings import completed

_STARTS = {"n_starts": [Interval(Integral, 1, None, closed="left")]}


@completed
@dataclass(eq=False, repr=False, kw_only=True)
class SVMClassifier(MarginEstimator):
    """Support vector machine, two-class and joint multicategory, with a certified duality gap.

    Minimises ``P(w) + C sum_i weight_i (1 - u_i)_+``; for k > 2 classes jointly over f_1..f_k with sum zero and
    u = min_{j != y} (f_y - f_j).

    See Also
    --------
    TruncatedHingeClassifier : Robust to wrong labels.
    PsiClassifier : Robust, and nearly counts errors.
    RejectClassifier : May abstain.

    References
    ----------
    Weston and Watkins, Support vector machines for multi-class pattern recognition (1999); Crammer and Singer, On the
    algorithmic implementation of multiclass kernel-based vector machines (2001).

    Examples
    --------
    >>> import numpy as np
    >>> from psilearn import SVMClassifier
    >>> X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), ["no", "no", "yes", "yes"]
    >>> model = SVMClassifier(C=10.0).fit(X, y)
    >>> model.predict([[0.5], [2.5]]).tolist()
    ['no', 'yes']
    >>> model.gap_ <= 1e-4
    True
    """

    def _loss(self, n_classes: int) -> Loss:
        return Hinge()


@completed
@dataclass(eq=False, repr=False, kw_only=True)
class TruncatedHingeClassifier(MarginEstimator):
    """Support vector machine with the truncated hinge T_s(u) = min((1 - u)_+, 1 - s), robust to wrong labels.

    Liu and Wu, Robust Truncated-Hinge-Loss SVM (2006). Fisher consistent for -1/(k-1) <= s <= 0.

    Parameters
    ----------
    s : float or "auto", default="auto"
        Where the loss becomes flat; "auto" is -1/(k-1).
    n_starts : int, default=1
        Descents of the d.c. algorithm; the first starts at the SVM, the others at SVMs of reweighted samples.

    See Also
    --------
    PsiClassifier : The same idea with a steeper loss.
    truncation_path : Fits at many values of s.
    find_label_issues : Wrong labels in a table.

    References
    ----------
    Wu and Liu, Robust truncated hinge loss support vector machines (Journal of the American Statistical Association,
    2007).

    Examples
    --------
    >>> import numpy as np
    >>> from psilearn import TruncatedHingeClassifier
    >>> X = np.array([[-2.0], [-1.5], [-1.0], [1.0], [1.5], [2.0], [2.5]])
    >>> y = [0, 0, 0, 1, 1, 1, 0]
    >>> model = TruncatedHingeClassifier(C=10.0).fit(X, y)
    >>> model.suspects_.tolist()
    [6]
    >>> model.predict([[-1.0], [2.5]]).tolist()
    [0, 1]
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = (
        MarginEstimator._parameter_constraints
        | _STARTS
        | {"s": [StrOptions({"auto"}), Interval(Real, None, 1, closed="neither")]}
    )

    s: Any = "auto"
    n_starts: int = 1

    def _loss(self, n_classes: int) -> Loss:
        return TruncatedHinge(-1.0 / (n_classes - 1) if isinstance(self.s, str) else float(self.s))

    def _settings(self) -> tuple[SolverSettings, ...]:
        return (settings("dca", n_starts=int(self.n_starts)),)


@completed
@dataclass(eq=False, repr=False, kw_only=True)
class PsiClassifier(MarginEstimator):
    """Classifier by psi-learning: psi(u) = 2 if u < 0, a (1 - u) on [0, 1], 0 above.

    Liu and Wu, Optimizing psi-learning via mixed integer programming (2006); Liu, Shen and Doss, Multicategory
    psi-learning and support vector machine: computational tools (2005).

    Parameters
    ----------
    a : float, default=1.0
        Height of the loss just inside the margin, in (0, 2]. At a = 2 the loss is continuous and the d.c. algorithm
        applies; below it jumps at 0 and only exact methods do. ``solver="auto"`` descends and then spends about
        half a second on a proof; ``solver="mip"`` searches until it is proved or ``time_limit`` is over.
    restrict : {"svm"}, default=None
        "svm" binds the samples a support vector machine puts beyond ``restrict_threshold`` to u >= 1, which makes the
        search smaller (Liu and Wu, section 3.3). It is another problem: the result is labelled an upper bound only.
    restrict_threshold : float, default=1.0
        The paper uses 1 on simulated and 1.1 on real data.
    restrict_C : float, default=None
        C of that support vector machine, in the paper the tuned one; None is the classifier's own.
    n_starts : int, default=1
        Descents of the d.c. algorithm.

    See Also
    --------
    TruncatedHingeClassifier : A wider ramp, fitted faster.
    prove : A proof of optimality that anybody can check.

    References
    ----------
    Shen, Tseng, Zhang and Wong, On psi-learning, Journal of the American Statistical Association (2003).

    Examples
    --------
    >>> import numpy as np
    >>> from psilearn import PsiClassifier
    >>> X = np.array([[-2.0], [-1.5], [-1.0], [1.0], [1.5], [2.0], [2.5]])
    >>> y = [0, 0, 0, 1, 1, 1, 0]
    >>> model = PsiClassifier(C=10.0).fit(X, y)
    >>> model.suspects_.tolist()
    [6]
    >>> model.predict([[-1.0], [2.5]]).tolist()
    [0, 1]
    >>> model.status_.value
    'optimal'
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = (
        MarginEstimator._parameter_constraints
        | _STARTS
        | {
            "a": [Interval(Real, 0, 2, closed="right")],
            "restrict": [StrOptions({"svm"}), None],
            "restrict_threshold": [Interval(Real, 1, None, closed="left")],
            "restrict_C": [Interval(Real, 0, None, closed="neither"), None],
        }
    )

    a: float = 1.0
    restrict: str | None = None
    restrict_threshold: float = 1.0
    restrict_C: float | None = None
    n_starts: int = 1

    def _loss(self, n_classes: int) -> Loss:
        return Psi(float(self.a))

    def _settings(self) -> tuple[SolverSettings, ...]:
        return (settings("dca", n_starts=int(self.n_starts)),)

    @property
    def _follows_path(self) -> bool:
        return self.restrict is None

    def _solve(self, problem: Problem, options: Options) -> Result:
        if self.restrict is None:
            return super()._solve(problem, options)
        if self.solver not in ("auto", "mip"):
            raise ValueError(f"restrict='svm' needs solver='mip' (or 'auto'), got {self.solver!r}.")
        C = float(self.C if self.restrict_C is None else self.restrict_C)
        clock = Clock(options.time_limit)
        svm = solve_convex(replace(problem, loss=Hinge(), C=C), options)
        point = (svm.coef, svm.intercept)
        limits = settings("mip", restrict="svm", restrict_threshold=float(self.restrict_threshold), svm=point)
        return solve(problem, "mip", replace(options, time_limit=clock.left, settings=(limits,)), svm)


@completed
@dataclass(eq=False, repr=False, kw_only=True)
class MarginClassifier(MarginEstimator):
    """The classifier of any loss of the normal form.

    Minimises ``P(w) + C sum_i weight_i l(u_i)`` with l(u) = g(u) for u >= t and a constant cap below, g convex and
    piecewise linear. A loss of your own is a frozen dataclass that states these numbers.

    Parameters
    ----------
    loss : Loss, default=None
        ``Hinge(), Psi(a), TruncatedHinge(s), RejectHinge(d), TruncatedReject(d, s), HardMargin()`` or your own; None is
        the hinge.

    See Also
    --------
    SVMClassifier : The hinge.
    TruncatedHingeClassifier : The truncated hinge.

    References
    ----------
    Losses and their properties are in :mod:`psilearn.core.losses`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from psilearn import MarginClassifier, TruncatedReject
    >>> X, y = load_iris(return_X_y=True)
    >>> model = MarginClassifier(TruncatedReject(d=0.2, s=-0.5)).fit(X, y)
    >>> model.score(X, y) > 0.95
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = MarginEstimator._parameter_constraints | {"loss": [Loss, None]}

    loss: Loss | None = field(default=None, kw_only=False)

    def _loss(self, n_classes: int) -> Loss:
        return Hinge() if self.loss is None else self.loss
