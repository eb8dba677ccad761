"""LP-Boost of very many observations and of all cut points.

Tests: tests/rules/test_large.py.
"""
