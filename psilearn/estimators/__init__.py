"""The scikit-learn faces: flat parameters, no algorithms.

Tests: tests/estimators/.
"""
