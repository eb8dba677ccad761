"""The convex problem of one node: envelopes of the losses and dual ascent.

Tests: tests/exact/test_ascent.py, tests/exact/test_exact_l1.py.
"""
