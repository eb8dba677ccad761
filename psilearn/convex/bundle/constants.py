"""Constants of the bundle method."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class BundleConstants:
    """How the level method proceeds, and when it gives way to other solvers.

    Attributes
    ----------
    level : float
        Level between the bounds: 1 stays at the best point, 0 goes to the minimiser of the model.
    width : float
        How exactly the level is met, in units of the gap.
    patience : int
        Minimisations after which a cut without multiplier is dropped.
    local_from : int
        Samples from which the far ones are put on their linear piece.
    near, too_many : float
        Least share of the samples that count as near, and the share from which all samples are evaluated instead.
    sample, samples_per_coefficient, sample_tol : float
        The first start is solved on one sample in so many, but at least so many per coefficient, to this gap.
    zeros : tuple of float
        Sizes, relative to the largest, below which coefficients are tried at zero.
    evaluations : int
        Evaluations at most, by default.
    rounds : int
        Times the problem is solved again with a smaller tolerance, at most.
    finest : float
        Gap, in units of the mean risk, below which the engine's tolerances hide what a cut tells.
    tight : float
        Tolerances below this one are left to the finishing solver.
    """

    level: float = 0.75
    width: float = 0.1
    patience: int = 10
    local_from: int = 20_000
    near: float = 0.05
    too_many: float = 0.6
    sample: int = 16
    samples_per_coefficient: int = 100
    sample_tol: float = 3e-3
    zeros: tuple[float, ...] = (1e-1, 3e-2, 1e-2, 1e-3, 1e-5)
    evaluations: int = 1000
    rounds: int = 4
    finest: float = 1e-9
    tight: float = 1e-5


CONSTANTS = BundleConstants()
