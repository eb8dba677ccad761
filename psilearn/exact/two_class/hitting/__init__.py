"""Search by implicit hitting sets.

Tests: tests/exact/test_hitting.py.
"""
