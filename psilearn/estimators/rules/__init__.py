"""The faces of the rule learners."""

from .classifiers import L0BoostClassifier, LPBoostClassifier, SlipperClassifier

__all__ = ["L0BoostClassifier", "LPBoostClassifier", "SlipperClassifier"]
