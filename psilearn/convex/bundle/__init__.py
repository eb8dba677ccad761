"""The level-stabilised bundle method: solver, cutting-plane model, and master problem.

Tests: tests/convex/test_bundle.py.
"""
