"""The one leaf of a convex proof: dual multipliers on a grid of integers, feasible exactly."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from ..core.penalties import best_shift
from ..core.problem import Problem
from . import check as checker
from . import integers
from .statement import Array, ProofError, Record, Statement


def convex_leaf(statement: Statement, R: Array) -> tuple[int, Record]:
    """Return (unit, leaf) with dual feasible multipliers near R."""
    problem, stated = statement.problem, statement.exact
    repaired = problem.repaired_multipliers(R)
    R = statement.collect(np.zeros_like(R) if repaired is None else repaired)
    slopes = [sum(cs[code] for _, cs in stated.hinges) for code in range(stated.k)]
    limits = [cost * slopes[code] for cost, code in zip(stated.cost, stated.code)]
    unit = integers.unit_of(float(max(limits)), integers.FINE_BITS)
    room = [integers.floor_units(limit, unit) for limit in limits]
    whole = [integers.to_integers(row, unit) for row in R]
    space = stated.space

    def leaf(theta: Fraction) -> Record | None:
        shrunk = [[int(theta * x) for x in row] for row in whole]
        record: Record = {"leaf": _entries(shrunk, stated, room)}
        _, rows = checker.Search(stated, Fraction(0), unit, 0)._read(record["leaf"])
        V = space.combine(rows)
        if stated.k > 2 and problem.penalty.has_l1:
            record["shift"] = _shift(V, unit + space.e, problem)
        try:
            nu = (record["shift"][0], record["shift"][1:]) if "shift" in record else None
            space.conjugate(V, unit, nu)
        except checker.Rejected:
            return None
        return record

    for attempt in range(42):
        record = leaf(1 - Fraction(1, 1 << (44 - attempt)) if attempt else Fraction(1))
        if record is not None:
            return unit, record
    raise ProofError("The multipliers cannot be made feasible for the l1 penalty.")


def _entries(R: list[list[int]], stated: checker.Problem, room: list[int]) -> list[list[int]]:
    if stated.k == 2:
        a = integers.balance_two_class([s * row[0] for s, row in zip(stated.sign, R)], stated.sign, room)
        return [[i, x] for i, x in enumerate(a) if x]
    A = integers.balance_k_class([[-x for x in row] for row in R], stated.code, room, stated.k)
    return [[i, j, x] for i, row in enumerate(A) for j, x in enumerate(row) if x]


def _shift(V: list[list[int]], e: int, problem: Problem) -> list[int]:
    """Return [unit, nu]: per feature the shift that makes the conjugate of an l1 part small, on a grid."""
    values = np.array([[math.ldexp(v, e) if abs(v) < 1 << 900 else 0.0 for v in row] for row in V])
    nu = best_shift(values, problem.penalty.l1_array(values.shape))
    unit = integers.unit_of(float(np.abs(nu).max(initial=0.0)), integers.FINE_BITS)
    return [unit, *integers.to_integers(nu, unit)]
