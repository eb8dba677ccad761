"""Exact search with two features, by enumeration: divisions of the plane by lines, and support sets.

Tests: tests/exact/test_lines.py.
"""
