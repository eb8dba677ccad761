"""Benchmarks of psilearn: ``python -m benchmarks --help``; how to write one stands in ``benchmarks/runner/rows.py``."""
