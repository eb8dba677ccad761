"""What L0-RBoost returns, and what is known of it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...core.result import Status
from ..pricing.oracles import Column


@dataclass(frozen=True)
class RelaxationCertificate:
    """What is known about the relaxation (18) at the end.

    Attributes
    ----------
    objective : float
        z, recomputed from lambda, mu and xi.
    reduced_cost : float
        The smallest reduced cost of any classifier as proved by pricing (-inf if pricing proves nothing); >= -tol means
        that no classifier is missing.
    violation : float
        The largest violation of a cut, over all pairs.
    lower_bound : float
        A bound on z over all classifiers and hence, with valid cuts, on the integer optimum (15); recomputed from the
        multipliers. -inf with printed cuts.
    integer_bound : float
        The bound (23) on the integer optimum (15): ``lower_bound``, rounded up if weights and costs are integers.
    integer_value : float
        The value in (15) of an integral model, the best one found by rounding: with ``integer_bound`` it brackets the
        integer optimum.
    """

    objective: float
    reduced_cost: float
    violation: float
    lower_bound: float
    integer_bound: float
    integer_value: float = math.inf


@dataclass(frozen=True)
class L0BoostResult:
    """Voting classifiers with lambda and mu for margin rho, slacks xi of the observations, and the certificate.

    ``evidence`` holds the multipliers (w, v, alpha) of its lower bound and the pairs that v is about. A list of limited
    length (:mod:`.limited`) may have whole ``points``, and its bound is that with costs raised by ``theta``.
    """

    columns: list[Column]
    weights: NDArray[np.float64]
    mu: NDArray[np.float64]
    xi: NDArray[np.float64]
    certificate: RelaxationCertificate
    status: Status
    n_iter: int
    n_nodes: int
    n_cuts: int
    history: tuple
    evidence: tuple[NDArray, NDArray, float, NDArray, NDArray] | None = None
    points: NDArray[np.float64] | None = None
    theta: float = 0.0
    rho: float = math.nan

    @property
    def votes(self) -> NDArray[np.float64]:
        """What each rule counts: its points, or lambda if there are none."""
        return self.weights if self.points is None else self.points

    @property
    def objective(self) -> float:
        """z of (18)."""
        return self.certificate.objective

    @property
    def lower_bound(self) -> float:
        """The certified lower bound."""
        return self.certificate.lower_bound
