"""psilearn: robust, sparse, abstaining classifiers that prove how good their fit is."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from .core.chunks.blocks import RowBlocks
from .core.losses import HardMargin, Hinge, Psi, RejectHinge, TruncatedHinge, TruncatedReject
from .core.penalties import Penalty
from .core.problem import Problem
from .core.result import Certificate, Result, Verification
from .core.solving import Options
from .estimators.margin import MarginClassifier, PsiClassifier, SVMClassifier, TruncatedHingeClassifier
from .estimators.path import Path, regularization_path, truncation_path
from .estimators.reject import RejectClassifier
from .solvers import solve

__version__ = "0.2.0"

if TYPE_CHECKING:
    from .app.audit import find_label_issues
    from .app.cards import score_card, what_if_form
    from .app.export.write import export
    from .app.label_prices import certify_labels
    from .app.persist import load, save
    from .estimators.rules import L0BoostClassifier, LPBoostClassifier, SlipperClassifier
    from .estimators.rules.path import rules_path
    from .estimators.tuning.classifier import TunedClassifier
    from .proofs.rules import prove_monomial
    from .proofs.write import check, prove
    from .rules.binarize import LogicalBinarizer
    from .rules.rules import best_monomial

#: Names whose modules need numba, HiGHS or pandas: they load when first asked for, so that importing psilearn is quick.
_LAZY = {
    "L0BoostClassifier": "estimators.rules",
    "LPBoostClassifier": "estimators.rules",
    "LogicalBinarizer": "rules.binarize",
    "SlipperClassifier": "estimators.rules",
    "TunedClassifier": "estimators.tuning.classifier",
    "best_monomial": "rules.rules",
    "certify_labels": "app.label_prices",
    "check": "proofs.write",
    "export": "app.export.write",
    "find_label_issues": "app.audit",
    "load": "app.persist",
    "prove": "proofs.write",
    "prove_monomial": "proofs.rules",
    "rules_path": "estimators.rules.path",
    "save": "app.persist",
    "score_card": "app.cards",
    "what_if_form": "app.cards",
}
_LAZY_MODULES = {
    "datasets": "datasets",
    "losses": "core.losses",
    "metrics": "evaluation.metrics",
    "plots": "estimators.plots",
}

__all__ = [
    "Certificate",
    "HardMargin",
    "Hinge",
    "L0BoostClassifier",
    "LPBoostClassifier",
    "LogicalBinarizer",
    "MarginClassifier",
    "Options",
    "Path",
    "Penalty",
    "Problem",
    "Psi",
    "PsiClassifier",
    "RejectClassifier",
    "RejectHinge",
    "Result",
    "RowBlocks",
    "SVMClassifier",
    "SlipperClassifier",
    "TruncatedHinge",
    "TruncatedHingeClassifier",
    "TruncatedReject",
    "TunedClassifier",
    "Verification",
    "__version__",
    "best_monomial",
    "certify_labels",
    "check",
    "export",
    "find_label_issues",
    "load",
    "prove",
    "prove_monomial",
    "regularization_path",
    "rules_path",
    "save",
    "score_card",
    "solve",
    "truncation_path",
    "what_if_form",
]


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(importlib.import_module(f".{_LAZY[name]}", __name__), name)
    if name in _LAZY_MODULES:
        return importlib.import_module(f".{_LAZY_MODULES[name]}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*__all__, *_LAZY_MODULES})
