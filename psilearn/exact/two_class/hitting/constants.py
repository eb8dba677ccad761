"""Constants of the search by hitting sets."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class HittingConstants:
    """Constants of the search by hitting sets, its conflicts and its master problem.

    Those about effort were chosen on the hard-margin instances of ``benchmarks/hard_margin.py`` (UCI data, n < 200).

    Attributes
    ----------
    tries, first_tries, most_tries : int
        Rounds of separation of a fractional solution: in the tree, at first at the root, and at most.
    rounds : int
        Rounds of conflicts in a node of the tree.
    rise : float
        Least rise of a node's bound, in smallest prices, that makes another round pay.
    trial_variables, known_after, trial_iterations : int
        Variables tried before branching, branchings on one after which its history is trusted, and simplex iterations
        of a trial.
    idle, few_rows : int
        Relaxations for which a row may be slack before it leaves the master, and rows too few to be worth deleting.
    integral : float
        Distance from 0 or 1 up to which z counts as integral.
    rounding : float
        Part of a bound that rounding errors of its sums never reach.
    used_tolerance : float
        Part of the tolerance that is used; the rest is for incumbents that are better by less than that.
    violated : float
        Violation from which on a conflict is worth a row.
    levels : tuple of float
        Roundings of a fractional solution that are searched for conflicts where the loss is not a hard margin.
    lifted_rounds : int
        Solutions of the lifted problem per try.
    base_weight, used_weight : float
        What is added to the weights of all samples, and of those already in a conflict, so that conflicts differ.
    """

    tries: int = 3
    first_tries: int = 6
    most_tries: int = 48
    rounds: int = 4
    rise: float = 0.01
    trial_variables: int = 8
    known_after: int = 4
    trial_iterations: int = 50
    idle: int = 30
    few_rows: int = 300
    integral: float = 1e-6
    rounding: float = 1e-12
    used_tolerance: float = 0.9
    violated: float = 1e-4
    levels: tuple[float, ...] = (0.999, 0.5, 0.1)
    lifted_rounds: int = 3
    base_weight: float = 0.05
    used_weight: float = 0.3


CONSTANTS = HittingConstants()
