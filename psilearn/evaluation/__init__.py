"""How good a classifier is: metrics, and when to answer.

Tests: tests/evaluation/, tests/estimators/test_reject.py.
"""
