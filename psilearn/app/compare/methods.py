"""The methods that are compared: how each is built, what is tuned, and what it promises in plain words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from ... import PsiClassifier, RejectClassifier, SVMClassifier, TruncatedHingeClassifier
from ...estimators.rules import L0BoostClassifier, LPBoostClassifier

#: Where the loss of a robust fit stops growing. The earliest point for k classes, -1/(k-1), often refuses one of two
#: classes that are hard to tell apart wholesale.
TRUNCATION = -1.0
#: Values of C that are tried: samples are standardised, so a wide and sparse grid finds the right order of magnitude.
GRID = (0.001, 0.01, 0.1, 1.0, 10.0)
#: Exhaustive search: the most training rows, and the most seconds. What is not proved by then rarely is in a minute.
EXACT_ROWS, EXACT_SECONDS = 2000, 8.0


@dataclass(frozen=True)
class Context:
    """What a method is built for: seconds, seed, the sizes of the problem, and the price of an abstention."""

    limit: float | None
    seed: int
    n_classes: int
    n_rows: int
    d: float = 0.2


Build = Callable[[float, Context], Any]


@dataclass(frozen=True)
class Method:
    """One row of the comparison.

    Attributes
    ----------
    key, label, says : str
        Name on the command line, name in tables, one plain sentence.
    build : callable
        (value of the tuned parameter, context) -> unfitted classifier.
    grid : tuple of float
        Values tried for the tuned parameter; one value means nothing is tuned.
    parameter : str
        What is tuned.
    is_ours, is_robust : bool
        Whether it is no outside baseline; whether its loss is capped, so that it can refuse a label.
    on_table : bool
        True if it reads the table itself (rules in the original units), not the encoded matrix.
    share : float
        Weight in dividing the time budget.
    max_rows : int
        More training rows than this are thinned to a random subset, and the report says so.
    tuned_by : callable, optional
        Builds a cheaper stand-in for tuning; None tunes the method itself.
    """

    key: str
    label: str
    says: str
    build: Build
    grid: tuple[float, ...] = GRID
    parameter: str = "C"
    is_ours: bool = True
    is_robust: bool = False
    on_table: bool = False
    share: float = 1.0
    max_rows: int = 200_000
    tuned_by: Build | None = None


def _common(C: float, context: Context) -> dict[str, Any]:
    return {"C": C, "time_limit": context.limit, "random_state": context.seed}


def _svm_l2(C: float, context: Context) -> Any:
    return SVMClassifier(**_common(C, context))


def _svm_l1(C: float, context: Context) -> Any:
    return SVMClassifier(penalty="l1", **_common(C, context))


def _truncated(C: float, context: Context) -> Any:
    return TruncatedHingeClassifier(s=TRUNCATION, solver="dca", **_common(C, context))


def _truncated_adaptive(C: float, context: Context) -> Any:
    return TruncatedHingeClassifier(s=TRUNCATION, penalty="adaptive-l1", solver="dca", **_common(C, context))


def _psi_dca(C: float, context: Context) -> Any:
    return PsiClassifier(a=2.0, solver="dca", **_common(C, context))


def _psi(C: float, context: Context) -> Any:
    """Exhaustive search where it is possible at all, a local optimum otherwise."""
    if context.n_classes == 2 and context.n_rows <= EXACT_ROWS:
        limit = EXACT_SECONDS if context.limit is None else min(context.limit, EXACT_SECONDS)
        return PsiClassifier(a=1.0, solver="mip", **_common(C, replace(context, limit=limit)))
    return _psi_dca(C, context)


def _reject(C: float, context: Context) -> Any:
    return RejectClassifier(d=context.d, **_common(C, context))


def _lp_boost(nu: float, context: Context) -> Any:
    return LPBoostClassifier(nu=nu, max_order=1, time_limit=context.limit)


def _l0_boost(order: float, context: Context) -> Any:
    return L0BoostClassifier(max_order=int(order), time_limit=context.limit)


def _logistic(C: float, context: Context) -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(C=C, max_iter=2000)


def _svc(C: float, context: Context) -> Any:
    from sklearn.svm import SVC

    return SVC(C=C, random_state=context.seed)


def _boosting(rate: float, context: Context) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(learning_rate=rate, random_state=context.seed)


METHODS: tuple[Method, ...] = (
    Method("svm-l2", "SVM, l2", "The baseline every robust method is measured against.", _svm_l2),
    Method("svm-l1", "SVM, l1", "A support vector machine that sets unneeded coefficients to zero.", _svm_l1,
           share=1.2),
    Method("truncated", "Truncated hinge",
           "An SVM whose loss stops growing: a sample far on the wrong side is not believed.", _truncated,
           is_robust=True),
    Method("truncated-adaptive", "Truncated, adaptive l1",
           "Robust and sparse: coefficients the robust fit found small are penalised more.", _truncated_adaptive,
           is_robust=True, share=1.5),
    Method("psi", "psi-learning",
           "Counts mistakes almost as they are. Small two-class problems are searched exhaustively as far as time "
           "allows; the last column says what is proved.", _psi, is_robust=True, share=1.5, tuned_by=_psi_dca),
    Method("reject", "Reject option, l1",
           "May answer \"I don't know\" where it is not sure; here it has to answer every row, and the notes tell "
           "what it would have abstained from.", _reject, share=1.2),
    Method("lp-boost", "LP-Boost", "A weighted vote of simple rules with the largest soft margin.", _lp_boost,
           grid=(0.3, 0.5, 0.7), parameter="nu", on_table=True, max_rows=2000),
    Method("l0-boost", "L0-RBoost", "A short list of rules: every further rule has to pay for itself.", _l0_boost,
           grid=(1.0,), parameter="order", on_table=True, max_rows=2000),
    Method("logistic", "Logistic regression", "Outside baseline (scikit-learn).", _logistic, is_ours=False),
    Method("svc", "SVC, rbf kernel", "Outside baseline (scikit-learn), not linear.", _svc,
           grid=(0.1, 1.0, 10.0), is_ours=False, share=1.6, max_rows=5000),
    Method("boosting", "Gradient boosting", "Outside baseline (scikit-learn), not linear.", _boosting,
           grid=(0.1,), parameter="learning rate", is_ours=False),
)  # fmt: skip
