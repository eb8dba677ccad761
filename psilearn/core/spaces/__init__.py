"""Where f lives. A space needs only: scores of coefficients, and the combination of samples by multipliers.

Tests: tests/core/test_rigorous_bounds.py, tests/estimators/test_low_rank.py, tests/convex/test_kernel_convex.py.
"""

from .kernel import KernelSpace
from .linear import LinearSpace
from .low_rank import LowRank

Space = LinearSpace | KernelSpace

__all__ = ["KernelSpace", "LinearSpace", "LowRank", "Space"]
