"""Lower bounds that hold in real arithmetic: exact repair of multipliers, rounding to the safe side, corrections.

Tests: tests/core/test_rigorous_bounds.py.
"""
