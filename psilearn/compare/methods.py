"""The methods that are compared: how each is built, what is tuned, and what it promises in plain words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .. import SVMClassifier, TruncatedHingeClassifier
from ..estimators.margin import PsiClassifier

#: Values of C that are tried: samples are standardised, so a wide and sparse grid finds the right order of magnitude.
GRID = (0.001, 0.01, 0.1, 1.0, 10.0)


@dataclass(frozen=True)
class Method:
    """One row of the comparison.

    Attributes
    ----------
    key, label, says : str
        Name on the command line, name in tables, one plain sentence.
    build : callable
        (value of the tuned parameter, time limit in seconds, seed) -> unfitted classifier.
    grid : tuple of float
        Values tried for the tuned parameter; one value means nothing is tuned.
    parameter : str
        What is tuned.
    is_ours : bool
        False for the outside baselines.
    share : float
        Weight in dividing the time budget.
    max_rows : int
        More training rows than this are thinned to a random subset, and the report says so.
    tuned_by : callable, optional
        Builds a cheaper stand-in for tuning; None tunes the method itself.
    option : str, optional
        Command-line switch without which the method is not run.
    """

    key: str
    label: str
    says: str
    build: Callable[[float, float | None, int], Any]
    grid: tuple[float, ...] = GRID
    parameter: str = "C"
    is_ours: bool = True
    share: float = 1.0
    max_rows: int = 200_000
    tuned_by: Callable[[float, float | None, int], Any] | None = None
    option: str | None = None


def _svm_l2(C: float, limit: float | None, seed: int) -> Any:
    return SVMClassifier(C=C, time_limit=limit, random_state=seed)


def _svm_l1(C: float, limit: float | None, seed: int) -> Any:
    return SVMClassifier(C=C, penalty="l1", time_limit=limit, random_state=seed)


def _truncated(C: float, limit: float | None, seed: int) -> Any:
    return TruncatedHingeClassifier(C=C, time_limit=limit, random_state=seed)


def _truncated_adaptive(C: float, limit: float | None, seed: int) -> Any:
    return TruncatedHingeClassifier(C=C, penalty="adaptive-l1", time_limit=limit, random_state=seed)


def _psi_dca(C: float, limit: float | None, seed: int) -> Any:
    return PsiClassifier(a=2.0, C=C, solver="dca", time_limit=limit, random_state=seed)


def _logistic(C: float, limit: float | None, seed: int) -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(C=C, max_iter=2000)


def _svc(C: float, limit: float | None, seed: int) -> Any:
    from sklearn.svm import SVC

    return SVC(C=C, random_state=seed)


def _boosting(rate: float, limit: float | None, seed: int) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(learning_rate=rate, random_state=seed)


METHODS: tuple[Method, ...] = (
    Method("svm-l2", "SVM, l2", "The baseline every robust method is measured against.", _svm_l2),
    Method("svm-l1", "SVM, l1", "A support vector machine that sets unneeded coefficients to zero.", _svm_l1),
    Method(
        "truncated", "Truncated hinge",
        "An SVM whose loss stops growing: a sample far on the wrong side is not believed.", _truncated,
    ),
    Method(
        "truncated-adaptive", "Truncated hinge, adaptive l1",
        "Robust and sparse: coefficients the robust fit found small are penalised more.", _truncated_adaptive,
    ),
    Method("psi", "psi (d.c.)", "psi-learning: counts mistakes almost as they are; a local optimum.", _psi_dca),
    Method(
        "logistic", "Logistic regression", "Outside baseline (scikit-learn).", _logistic, is_ours=False,
    ),
    Method("svc", "SVC, rbf kernel", "Outside baseline (scikit-learn), not linear.", _svc,
           grid=(0.1, 1.0, 10.0), is_ours=False, max_rows=5000),
    Method("boosting", "Gradient boosting", "Outside baseline (scikit-learn), not linear.", _boosting,
           grid=(0.1,), parameter="learning rate", is_ours=False),
)  # fmt: skip
