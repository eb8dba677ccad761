"""The faces of the rule learners.

Tests: tests/estimators/test_rule_estimators.py, tests/estimators/test_verify_rules.py.
"""

from .l0boost import L0BoostClassifier
from .lpboost import LPBoostClassifier
from .slipper import SlipperClassifier

__all__ = ["L0BoostClassifier", "LPBoostClassifier", "SlipperClassifier"]
