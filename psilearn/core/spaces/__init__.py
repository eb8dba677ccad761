"""Where f lives. A space needs only: scores of coefficients, and the combination of samples by multipliers."""

from .kernel import KernelSpace
from .linear import LinearSpace
from .low_rank import LowRank

Space = LinearSpace | KernelSpace

__all__ = ["KernelSpace", "LinearSpace", "LowRank", "Space"]
