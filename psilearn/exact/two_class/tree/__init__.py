"""Branch and bound over samples that are believed or given up.

Tests: tests/exact/test_exact.py, tests/exact/test_tree_record.py.
"""
