"""The figures printed in the papers, as data: one module per paper, one name per table, each with its source.

Tests: tests/app/test_experiments.py.
"""
