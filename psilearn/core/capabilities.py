"""What a solver takes, declared: a problem with a trait that is not declared is refused, in a sentence for the user.

A problem has traits: those of its loss (:attr:`psilearn.core.losses.Loss.traits`), its penalty
(:attr:`psilearn.core.penalties.Penalty.parts`) and its space (``space.kind``), its number of classes, and the
tilt. A solver
takes the problem iff it declares every one of them. So a new part of the penalty, a new property of a loss or a new
kind of space is refused by every solver until somebody declares it, proves it and tests it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .problem import Problem

#: Trait -> how a sentence calls it ("does not take ...").
LOSS_TRAITS = {
    "convex": "convex losses",
    "truncated": "losses that are not convex (truncated ones)",
    "slopes by class": "losses that differ by class (it needs one loss for all classes)",
    "jump": "losses with jumps",
    "truncated elsewhere than 0": "losses truncated elsewhere than at margin 0",
    "no hinge": "losses without a hinge",
}
SPACE_TRAITS = {
    "dense": "linear functions (but a kernel's Gram matrix)",
    "CSR": "sparse linear data",
    "chunked": "data in blocks (dask, memory-mapped files)",
    "kernel": "kernels (it needs a linear space)",
    "kernel without l2 alone": "kernels with another penalty than l2 (it has no meaning there)",
    "indefinite kernel": "kernel matrices that are not positive semidefinite (or too large to check)",
}
CLASS_TRAITS = {"two classes": "two classes", "k classes": "more than two classes"}
TILT_TRAITS = {"tilt": "linear terms on the scores"}
PENALTY_TRAITS = {
    "no penalty": "problems without a penalty",
    "l0": "prices of non-zero coefficients (l0)",
    "scad": "folded penalties (scad)",
    "l2": "penalties with an l2 part",
    "l1": "penalties with an l1 part",
    "elastic net": "elastic nets (l2 or l1, not both)",
    "zero l1 weights": "l1 weights of 0 (every coefficient needs a positive one)",
    "free coefficients": "penalties that leave a coefficient free",
    "infinite l1 weights": "infinite l1 weights (leave these features out)",
    "l1 weights": "l1 weights that differ by coefficient",
}
_GROUPS = {
    "losses": LOSS_TRAITS,
    "spaces": SPACE_TRAITS,
    "classes": CLASS_TRAITS,
    "tilts": TILT_TRAITS,
    "penalties": PENALTY_TRAITS,
}


def traits_of(problem: Problem) -> dict[str, frozenset[str]]:
    """Return the traits of a problem by group."""
    spaces = {problem.space.kind}
    if problem.is_kernel and problem.penalty.parts != {"l2"}:
        spaces.add("kernel without l2 alone")
    return {
        "losses": problem.loss.traits,
        "spaces": frozenset(spaces),
        "classes": frozenset({"two classes" if problem.n_classes == 2 else "k classes"}),
        "tilts": frozenset() if problem.tilt is None else frozenset({"tilt"}),
        "penalties": problem.penalty.parts,
    }


def _in_words(group: str, traits: frozenset[str]) -> list[str]:
    """Return how a sentence calls traits, those that nobody has described first."""
    known = _GROUPS[group]
    strange = [f"{group} of the kind {trait!r}" for trait in sorted(traits - set(known))]
    return strange + [words for trait, words in known.items() if trait in traits]


@dataclass(frozen=True)
class Takes:
    """The problems a solver takes.

    Attributes
    ----------
    solver : str
        Its name in the registry.
    losses, spaces, classes, penalties : frozenset of str
        The traits it can handle; see :data:`LOSS_TRAITS` and the other tables for their meaning.
    tilts : frozenset of str
        {"tilt"} if it takes linear terms on the scores.
    needs : frozenset of str
        Parts that the penalty must have.
    limit : callable or None
        Problem -> a sentence on a number that is too large, or None.
    """

    solver: str
    losses: frozenset[str]
    spaces: frozenset[str]
    classes: frozenset[str]
    penalties: frozenset[str]
    tilts: frozenset[str] = frozenset()
    needs: frozenset[str] = frozenset()
    limit: Callable[[Problem], str | None] | None = None

    def __post_init__(self) -> None:
        for group, known in _GROUPS.items():
            unknown = getattr(self, group) - set(known)
            if unknown:
                raise ValueError(f"{self.solver} declares unknown {group}: {sorted(unknown)}.")

    def refusal(self, problem: Problem) -> str | None:
        """Say in one sentence why the solver does not take the problem; None if it does."""
        undeclared = {group: traits - getattr(self, group) for group, traits in traits_of(problem).items()}
        what = [words for group, traits in undeclared.items() for words in _in_words(group, traits)]
        if what:
            takes = [f"{group}: {self._listed(group)}" for group, traits in undeclared.items() if traits]
            return f"solver={self.solver!r} does not take {', nor '.join(what)}. It takes {'; '.join(takes)}."
        missing = self.needs - problem.penalty.parts
        if missing:
            return f"solver={self.solver!r} needs a penalty with the part {', '.join(sorted(missing))}."
        return None if self.limit is None else self.limit(problem)

    def _listed(self, group: str) -> str:
        return ", ".join(trait for trait in _GROUPS[group] if trait in getattr(self, group)) or "none"

    def check(self, problem: Problem) -> None:
        """Raise ValueError with the sentence of :meth:`refusal` if the problem is refused."""
        reason = self.refusal(problem)
        if reason is not None:
            raise ValueError(reason)


#: Declarations that several solvers share.
ANY_CONVEX = frozenset({"convex", "slopes by class"})
ANY_LINEAR = frozenset({"dense", "CSR"})
ANY_CLASSES = frozenset({"two classes", "k classes"})
TWO_CLASSES = frozenset({"two classes"})
TILT = frozenset({"tilt"})
L1_KINDS = frozenset({"l1", "l1 weights", "infinite l1 weights"})
CONVEX_PENALTIES = L1_KINDS | {"l2", "elastic net", "zero l1 weights", "free coefficients"}
