"""Label certificates: what would it cost to believe a suspect?

A suspect is a sample that the optimum leaves below t, where its loss is flat at the cap. Forcing u_i >= t and solving
again gives the best fit that believes the label. If every such fit costs at least (1 + x) times the optimum, then the
label is wrong in every solution within x of the optimum, and that is proved, not estimated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..core.problem import Problem
from ..core.result import Result, go_on_after
from ..core.solving import Clock, Options
from .sample_state_jit import FREE, IN
from .two_class import portfolio
from .two_class.reduction import reduce
from .two_class.solver import TAKES


@dataclass(frozen=True)
class LabelCertificate:
    """The price of believing one label.

    Attributes
    ----------
    index : int
        The sample.
    objective : float
        Best objective found with u_index >= t.
    bound : float
        Proved lower bound on every objective with u_index >= t.
    excess : float
        (bound - optimum) / optimum, at least 0: no solution within this part of the best known objective believes the
        label.
    proved : bool
        Whether the re-solve was finished within its limits (otherwise the bound is valid, but can be improved).
    """

    index: int
    objective: float
    bound: float
    excess: float
    proved: bool

    def __str__(self) -> str:
        return f"label of sample {self.index} is wrong in every solution within {100 * self.excess:.3g}% of the optimum"


def price_labels(
    problem: Problem, result: Result, options: Options, indices: Sequence[int] | None = None
) -> list[LabelCertificate]:
    """Re-solve once for each suspect (or each of ``indices``) with its label believed, warm from ``result``.

    Most expensive beliefs come first. ``options.time_limit`` covers all of them: each may take an equal part of what is
    left when its turn comes.
    """
    TAKES.check(problem)
    margins = problem.margins(result.coef, result.intercept)
    chosen = np.flatnonzero(problem.loss.is_capped(margins)) if indices is None else np.asarray(indices)
    reduction = reduce(problem)
    warm = [reduction.point(result.coef, result.intercept)]
    certificates = []
    clock = Clock(options.time_limit)
    for turn, index in enumerate(chosen):
        seconds = max(clock.left, 0.0) / (len(chosen) - turn)
        given = np.full(reduction.n, FREE, np.int8)
        given[reduction.group[index]] = IN
        outcome = portfolio.search(reduction, problem.loss, options, Clock(seconds), warm, given)
        go_on_after(outcome.status)
        bound = reduction.unit * outcome.bound
        excess = max(0.0, bound - result.objective) / max(abs(result.objective), np.finfo(float).eps)
        proved = outcome.status == "optimal"
        certificates.append(LabelCertificate(int(index), reduction.unit * outcome.value, bound, excess, proved))
    return sorted(certificates, key=lambda certificate: -certificate.excess)
