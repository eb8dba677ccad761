"""Rules: binarization, monomials, exact pricing, LP-Boost and L0-RBoost.

Tests: tests/rules/.
"""
