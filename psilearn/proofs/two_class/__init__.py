"""Trees of dual bounds that prove a two-class optimum: a branch and bound, a search by conflicts, and their records.

Tests: tests/proofs/test_soundness.py, tests/exact/test_tree_record.py.
"""
