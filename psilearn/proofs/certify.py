"""A proof of a fit's global bound in memory: what :meth:`psilearn.core.result.Certificate.verify` replays.

The tree is searched once more, guided by the record of the first search, and every step is checked by the checker's own
code (:mod:`.check`) in exact arithmetic. So the bound rests on that code and on nothing the fit has stored.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from ..core.losses import JUMP_TOLERANCE
from ..core.problem import Problem
from ..core.result import Certificate
from . import check as checker
from .files import rounded_down
from .statement import Evidence, ProofError, Statement, state_problem
from .write import refuse_tree, tree_hints

#: Part of a bound by which the proof may fall short of it: floating-point bounds are not trusted beyond that, and where
#: a loss jumps, margins that miss t by up to 1e-6 are counted as there, which costs the bound more.
SHORTFALL, SHORTFALL_AT_JUMPS = 1e-6, 1e-5


@dataclass(frozen=True)
class TreeProof:
    """The proof of a certificate's bound, made when it is asked for.

    Attributes
    ----------
    certificate : Certificate
        What is claimed, and the record of the search.
    shortfall : float
        Part of the bound that may remain unproved.
    seconds : float
        Time for the search; if it ends early, a smaller bound is proved.
    """

    certificate: Certificate
    shortfall: float
    seconds: float = 60.0

    def bound(self, problem: Problem) -> float:
        """Return the lower bound on the optimum of ``problem`` that is proved; -inf if there is no proof."""
        goal = self.certificate.bound * (1.0 - self.shortfall)
        point = self.certificate.point
        if point is None or point[0].shape != (problem.n_functions, problem.space.dim):
            return -math.inf
        if not 0.0 < goal <= problem.value(*point):
            return -math.inf  # nothing to prove, or nothing that can be proved
        try:
            statement = state_problem(problem)
            if not problem.loss.is_continuous:
                statement.allow(JUMP_TOLERANCE)
            evidence = self._evidence(statement, goal)
            proved = rounded_down(Fraction(evidence.bound))
            follower = checker.Search(statement.exact, Fraction(proved), evidence.unit, evidence.margin_unit)
            follower.follow(iter(evidence.records))
        except (ProofError, checker.Rejected):
            return -math.inf
        return proved

    def _evidence(self, statement: Statement, goal: float) -> Evidence:
        if statement.problem.n_classes > 2:
            from .k_class import search_k_class  # numba

            return search_k_class(statement, goal, self.seconds)
        from .two_class.search import make_model, search  # numba

        model = make_model(statement)
        model.allow(float(statement.exact.tolerance))
        return search(statement, model, goal, tree_hints(statement, self.certificate.record), self.seconds)


def tree_proof(certificate: Certificate, problem: Problem) -> TreeProof | None:
    """Return the proof of a certificate's global bound on a problem that is not convex; None if there can be none."""
    try:
        refuse_tree(problem)
    except ProofError:
        return None
    return TreeProof(certificate, SHORTFALL if problem.loss.is_continuous else SHORTFALL_AT_JUMPS)
