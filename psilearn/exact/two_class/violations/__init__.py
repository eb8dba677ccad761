"""Search over the sets of violated samples, for the hard margin.

Tests: tests/exact/test_violations.py.
"""
