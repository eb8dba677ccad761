"""Solvers of convex problems, and the d.c. loop that solves a sequence of them.

Tests: tests/convex/, tests/core/test_capabilities.py.
"""
