"""Truncated losses as mixed-integer programs, two classes: the published formulation and a tight one.

Both are stated for the scaled problem of :mod:`.reduction` over x = (w, b, ...) and can be handed to SCIP,
Gurobi or HiGHS. They are the references against which our own branch and bound is tested and timed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ...core.losses import Loss
from ...engines.gurobi import solve_gurobi
from ...engines.highs import Answer, HighsSession
from ...engines.mixed import MixedProgram
from ...engines.scip import solve_scip
from .reduction import Reduction

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Program(MixedProgram):
    """A mixed-integer program whose first ``dim`` variables are w; its value is without ``constant``."""

    constant: float
    dim: int

    def solve(self, engine: str, time_limit: float = math.inf, gap_tol: float = 0.0) -> Answer:
        """Solve with "scip", "gurobi" or "highs" (no quadratic term); value and bound are without :attr:`constant`."""
        if engine in ("scip", "gurobi"):
            return (solve_scip if engine == "scip" else solve_gurobi)(self, time_limit, gap_tol)
        if engine != "highs" or np.any(self.quadratic):
            raise ValueError(
                f"engine {engine!r} cannot take this program; use 'scip' or 'gurobi', or 'highs' for an l1 penalty."
            )
        session = HighsSession(mip_rel_gap=gap_tol)
        for flag in (False, True):
            which = self.integer == flag
            session.add_columns(self.cost[which], self.lower[which], self.upper[which], integer=flag)
        order = np.argsort(self.integer, kind="stable")
        session.add_rows(self.rows[:, order], self.row_lower, self.row_upper)
        answer = session.solve(time_limit)
        x = np.empty_like(answer.x)
        x[order] = answer.x
        return Answer(
            x, answer.row_dual, answer.reduced_cost, answer.value, answer.bound, answer.is_optimal, answer.status,
            answer.iterations,
        )  # fmt: skip

    def point(self, answer: Answer) -> tuple[Array, float]:
        """Return scaled (w, b) of an answer."""
        w = answer.x[: self.dim]
        if not np.any(self.quadratic):  # w = positive part - negative part
            return w - answer.x[self.dim : 2 * self.dim], float(answer.x[2 * self.dim])
        return w, float(answer.x[self.dim])


def _head(reduction: Reduction) -> tuple[Array, Array, Array, Array]:
    """Columns of the margins, costs, quadratic terms and lower bounds of w (two parts for the 1-norm) and b."""
    a, d = reduction.z * reduction.y[:, None], reduction.z.shape[1]
    if reduction.norm == 2:
        margins = np.column_stack([a, reduction.y])
        return margins, np.zeros(d + 1), np.append(np.ones(d), 0.0), np.full(d + 1, -np.inf)
    margins = np.column_stack([a, -a, reduction.y])
    cost = np.append(np.ones(2 * d), 0.0)
    return margins, cost, np.zeros(2 * d + 1), np.append(np.zeros(2 * d), -np.inf)


def paper_program(reduction: Reduction, loss: Loss, big: float = 1000.0, forced: NDArray | None = None) -> Program:
    """Liu and Wu (2006), (3.14) subject to (3.8)-(3.13), for a loss with one hinge (a, t_1), t < t_1.

    u = t + Z1 + Z2 + Z3 with binaries d3 <= d2 per sample, Z1 in [-M, 0], Z2 in [0, t_1 - t], Z3 in [0, M], pays
    cap - a Z2 - (cap - g(t)) d2. ``big`` is the paper's M = 1000 (in units of the margin; it may cut off the optimum).
    Samples in ``forced`` (a mask) are fixed to d2 = d3 = 1, the restricted variant of section 3.3.
    """
    if len(loss.hinges) != 1 or not loss.hinges[0][1] > loss.t:
        raise ValueError("The published formulation needs a loss with exactly one hinge above its truncation point.")
    (a, top), t, cap = loss.hinges[0], loss.t, loss.cap
    width, n = top - t, reduction.n
    margins, cost, quadratic, lower = _head(reduction)
    m = cost.size
    eye, none = sp.identity(n, format="csr"), sp.csr_matrix((n, n))
    blocks = [
        ([-sp.csr_matrix(margins), eye, eye, eye, none, none], -t, -t),  # (3.8)
        ([None, none, none, none, -eye, eye], -np.inf, 0.0),  # (3.9)
        ([None, none, -eye, none, none, width * eye], -np.inf, 0.0),  # (3.10)
        ([None, none, eye, none, -width * eye, none], -np.inf, 0.0),
        ([None, none, none, eye, none, -(big - 1.0) * eye], -np.inf, 0.0),  # (3.11)
        ([None, -eye, none, none, 2.0 * big * eye, none], -np.inf, 2.0 * big),  # (3.12)
    ]
    rows = sp.vstack([sp.hstack([sp.csr_matrix((n, m)) if b[0] is None else b[0], *b[1:]]) for b, _, _ in blocks])
    zero, one = np.zeros(n), np.ones(n)
    fixed = zero if forced is None else forced.astype(np.float64)
    jump = cap - a * width
    return Program(
        np.concatenate([cost, zero, -a * reduction.cost, zero, -jump * reduction.cost, zero]),
        np.concatenate([quadratic, np.zeros(5 * n)]),
        sp.csr_matrix(rows),
        np.concatenate([np.full(n, low) for _, low, _ in blocks]),
        np.concatenate([np.full(n, high) for _, _, high in blocks]),
        np.concatenate([lower, -big * one, zero, zero, fixed, fixed]),
        np.concatenate([np.full(m, np.inf), zero, width * one, (big - 1.0) * one, one, one]),
        np.concatenate([np.zeros(m + 3 * n, bool), np.ones(2 * n, bool)]),
        cap * float(reduction.cost.sum()),
        reduction.z.shape[1],
    )


def tight_program(reduction: Reduction, loss: Loss, low: Array) -> Program:
    """One binary z per sample and per-sample big-M, from margins u >= low that every better solution obeys.

    z = 0 forces u >= t and pays g(u) = sum_k c_k xi_k, xi_k >= t_k - u; z = 1 pays cap and frees both:
    u + (t - low) z >= t and u + xi_k + (t_k - low) z >= t_k.
    """
    n, K = reduction.n, len(loss.hinges)
    margins, cost, quadratic, lower = _head(reduction)
    m = cost.size
    breakpoints = [loss.t, *(point for _, point in loss.hinges)]
    parts = []
    for h, point in enumerate(breakpoints):
        slacks = [sp.identity(n) if k == h - 1 else sp.csr_matrix((n, n)) for k in range(K)]
        parts.append(sp.hstack([sp.csr_matrix(margins), *slacks, sp.diags(point - low)]))
    size = K * n
    return Program(
        np.concatenate([cost, *(c * reduction.cost for c, _ in loss.hinges), loss.cap * reduction.cost]),
        np.concatenate([quadratic, np.zeros(size + n)]),
        sp.csr_matrix(sp.vstack(parts)),
        np.repeat(breakpoints, n).astype(np.float64),
        np.full((K + 1) * n, np.inf),
        np.concatenate([lower, np.zeros(size + n)]),
        np.concatenate([np.full(m + size, np.inf), np.ones(n)]),
        np.concatenate([np.zeros(m + size, bool), np.ones(n, bool)]),
        0.0,
        reduction.z.shape[1],
    )
