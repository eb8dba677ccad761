"""The only place that speaks to HiGHS and SCIP: sessions that grow by rows and columns and stay warm.

Tests: tests/convex/test_program.py, tests/exact/test_exact_programs.py.
"""
