"""Choosing parameters by cross-validation: the grids, the folds, and the classifier that does it.

Tests: tests/estimators/test_tuned.py.
"""
