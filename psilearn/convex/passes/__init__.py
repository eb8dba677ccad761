"""Convex problems on data in blocks: a few passes, each one map over the blocks and one small sum.

Tests: tests/estimators/test_chunked.py, tests/core/test_capabilities.py.
"""
