"""The faces of the rule learners."""

from .l0boost import L0BoostClassifier
from .lpboost import LPBoostClassifier
from .slipper import SlipperClassifier

__all__ = ["L0BoostClassifier", "LPBoostClassifier", "SlipperClassifier"]
