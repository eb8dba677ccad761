"""psilearn: robust, sparse, abstaining classifiers that prove how good their fit is."""

from ._version import __version__
from .estimators.margin import MarginClassifier, PsiClassifier, SVMClassifier, TruncatedHingeClassifier
from .estimators.path import Path, regularization_path, truncation_path
from .estimators.reject import RejectClassifier
from .losses import HardMargin, Hinge, Psi, RejectHinge, TruncatedHinge, TruncatedReject

__all__ = [
    "HardMargin",
    "Hinge",
    "MarginClassifier",
    "Path",
    "Psi",
    "PsiClassifier",
    "RejectClassifier",
    "RejectHinge",
    "SVMClassifier",
    "TruncatedHinge",
    "TruncatedHingeClassifier",
    "TruncatedReject",
    "__version__",
    "regularization_path",
    "truncation_path",
]
