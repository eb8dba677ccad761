"""L0-RBoost: the tightened relaxation of the L0 penalty.

Tests: tests/rules/test_l0boost.py, tests/rules/test_integer_program.py.
"""
