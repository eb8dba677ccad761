"""Newton's method on smoothed hinges.

Tests: tests/convex/test_smoothed.py.
"""
