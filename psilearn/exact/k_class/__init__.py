"""Exact search for more than two classes.

Tests: tests/exact/test_outer.py, tests/exact/test_global_bounds.py.
"""
