"""Data that lie in blocks of rows: what is summed over them, and who does the work.

Tests: tests/estimators/test_chunked.py.
"""
