"""Kernel problems by decomposition along cycles of the class graph: the loop, its state, and the moves.

Tests: tests/convex/test_kernel_convex.py.
"""
