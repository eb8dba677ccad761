"""Exact search for two classes.

Tests: tests/exact/test_exact.py, tests/exact/test_exact_portfolio.py, tests/exact/test_search_contract.py.
"""
