"""The methods that ``psilearn prove`` offers."""

from __future__ import annotations

from collections.abc import Callable

from ..estimators.base import MarginEstimator
from ..estimators.margin import PsiClassifier, SVMClassifier, TruncatedHingeClassifier
from ..estimators.reject import RejectClassifier
from ..estimators.rules import L0BoostClassifier, LPBoostClassifier
from ..estimators.rules.booster import RuleBooster

#: Rule learners of the command line: name -> seconds -> unfitted classifier.
PROVABLE_RULES: dict[str, Callable[[float], RuleBooster]] = {
    "lp-boost": lambda limit: LPBoostClassifier(nu="auto", time_limit=limit),
    "l0-boost": lambda limit: L0BoostClassifier(time_limit=limit),
}

#: Its margin classifiers: name -> (C, seconds) -> unfitted classifier.
PROVABLE: dict[str, Callable[[float, float], MarginEstimator]] = {
    "svm-l2": lambda C, limit: SVMClassifier(C=C, time_limit=limit),
    "svm-l1": lambda C, limit: SVMClassifier(C=C, penalty="l1", time_limit=limit),
    "truncated": lambda C, limit: TruncatedHingeClassifier(C=C, s=0.0, solver="mip", time_limit=limit),
    "psi": lambda C, limit: PsiClassifier(C=C, solver="mip", time_limit=limit),
    "reject": lambda C, limit: RejectClassifier(C=C, time_limit=limit),
}
