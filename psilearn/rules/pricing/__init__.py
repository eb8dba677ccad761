"""Exact pricing: the monomials of largest reward.

Tests: tests/rules/test_pricing.py.
"""
