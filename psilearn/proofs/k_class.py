"""The branch and bound that writes a tree of dual bounds for k classes: a truncated loss, linear, penalty l2.

    minimise  P(W) + sum_i cost_i l(u_i),     u_i = min_j (f_{y_i}(x_i) - f_j(x_i))

Nodes are searched in depth, in the order of the file, each solved by the interior point method of the exact search; its
multipliers are rounded to whole numbers and valued by the checker's own code, exactly, so a record is written only once
it has been checked. A node is made smaller before it is divided: neighbours hold a margin up (at the cost of P, and
near the node's own solution, where everything better than the goal lies), and the side of a sample that the node's
multipliers close already is cut off.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from ..core.clock import now
from ..core.problem import Problem
from ..core.spaces import LinearSpace
from ..exact.k_class import hinge_qp_jit as hinge_qp
from ..exact.k_class import relaxation_jit as relaxation
from ..exact.k_class.coordinates import Coordinates
from ..exact.k_class.truncation import Truncation
from . import check as checker
from . import integers
from .statement import Array, Evidence, ProofError, Record, Statement

#: Ends of intervals are multiples of 2^MARGIN_UNIT.
MARGIN_UNIT = -30
_GRID = 2.0**MARGIN_UNIT
#: Part of the goal that rounding may cost a bound, accuracy of a node, and the part of its distance to t by which an
#: end must rise to be worth a place in the file.
ROUNDING, _ACCURACY, _WORTH = 1e-9, 1e-4, 0.05
#: Parts of the goal that are proved one after the other: a search in depth that ends early proves little.
SHARES = (0.3, 0.6, 0.8, 0.9, 1.0)
#: Solves of a node with tighter intervals each time.
_ROUNDS = 4


class Node:
    """A relaxation's whole multipliers, their exact value, its point and what each sample pays there."""

    def __init__(self, record: Record, value: Fraction, theta: Array, paid: Array) -> None:
        self.record, self.value, self.theta, self.paid = record, value, theta, paid


class Tree:
    """Search for a tree that proves ``goal``; :meth:`run` returns the bound that was proved in time.

    The checker (``follower``) is at the same node all the time and holds the intervals.
    """

    def __init__(self, statement: Statement, goal: float) -> None:
        exact, given = statement.exact, statement.problem
        if given.penalty.has_l1 or given.is_kernel:
            raise ProofError("Proofs of truncated losses for three classes or more take linear functions, penalty l2.")
        X, codes = np.array(exact.rows, dtype=np.float64), np.array(exact.code)
        costs = np.array([float(c) for c in exact.cost])
        self.problem = Problem(LinearSpace(X), codes, exact.k, given.loss, given.penalty, 1.0, costs)
        self.at = Coordinates.of(self.problem)
        self.goal, self.exact = goal, exact
        tolerance, samples = float(exact.tolerance), Truncation(self.at).samples
        self.data = samples._replace(breakpoints=samples.breakpoints - tolerance, t=samples.t - tolerance)
        self.rivals = np.array([[j for j in range(exact.k) if j != c] for c in codes])
        self.box = self.at.box(self.problem.best_constant()[0])
        steepest = float(costs.max()) * max(1.0, float(self.data.slopes.sum()))
        self.unit = integers.unit_of(steepest, integers.COARSE_BITS)
        self.distance = np.sqrt(((X[:, None, :] - X[None, :, :]) ** 2).sum(axis=2))
        self.X, self.costs, self.codes, self.records = X, costs, codes, list[Record]()
        self.follower = checker.Search(exact, Fraction(goal), self.unit, MARGIN_UNIT)
        self.jump = self.follower.jump
        self.bound = Fraction(goal)

    def run(self, seconds: float) -> Fraction:
        """Search in depth until the tree is complete; nodes that time leaves open are closed with what they have."""
        end = now() + seconds
        self._floors(None)
        while not self.follower.is_done:
            node = self._solved()
            if now() > end:
                self._close(node)
            else:
                self._step(node)
        return self.bound

    # one node

    def _step(self, node: Node) -> None:
        """Close the node at hand or divide it, after making it smaller."""
        for _ in range(_ROUNDS):
            if node.value >= self.follower.bound or not (self._floors(node) + self._cut(node)):
                break
            node = self._solved()
        sample = None if node.value >= self.follower.bound else self._promising(node)
        if sample is None:  # closed, or every sample has its side and the node holds something better than the goal
            self._close(node)
        else:
            self._record({"split": [sample, "t"]}, self.follower.split)

    def _record(self, record: Record, rule: Any) -> None:
        rule(record)
        self.records.append(record)

    def _close(self, node: Node) -> None:
        """Write a leaf; one that does not reach the goal lowers the bound of the whole tree."""
        self.bound = min(self.bound, node.value)
        self.follower._close()
        self.records.append(node.record)

    def _ends(self) -> tuple[Array, Array]:
        """Return the intervals of the checker's node in floating point."""
        size = 2.0**self.follower.um
        low = np.array([-math.inf if x is None else x * size for x in self.follower.low])
        high = np.array([math.inf if x is None else x * size for x in self.follower.high])
        return low, high

    def _solved(self) -> Node:
        """Solve the relaxation of the node at hand."""
        low, high = self._ends()
        data, t = self.data, self.data.t
        breakpoints, coef = relaxation.envelopes(low, data)
        coef[high <= t] = 0.0
        floor = np.where((low >= t) & data.has_jump, t, -np.inf)
        paid_for = float(data.cap * self.costs[high <= t].sum())
        A, tau, first, c = hinge_qp.assemble(
            data.rows, breakpoints, coef, floor, np.zeros((0, self.at.p)), np.zeros(0), np.zeros(0)
        )
        theta, goal = np.zeros(self.at.p), float(self.follower.bound)
        _, alpha = hinge_qp.solve_hinge_qp(
            A, tau, first, c, np.zeros(self.at.p), self.at.curvature, *self.box, theta, 0.0, _ACCURACY * 1e-2 * goal,
            goal * (1.0 + _ACCURACY) - paid_for, 0.0,
        )  # fmt: skip
        R = np.zeros((self.costs.size, self.exact.k))
        n_groups = np.sum(coef > 0.0, axis=1) + np.isfinite(floor)
        for g, i in enumerate(np.repeat(np.arange(n_groups.size), n_groups).tolist()):
            R[i, self.rivals[i]] += alpha[first[g] : first[g + 1]]
        margins = (data.rows @ theta).min(axis=1)
        paid = (coef * np.maximum(breakpoints - margins[:, None], 0.0)).sum(axis=1)
        record = {"leaf": self._entries(R, low)}
        return Node(record, self.follower.dual_value(record), theta, paid)

    def _entries(self, R: Array, low: Array) -> list[list[int]]:
        """Whole multipliers that balance; where the margin has no lower end they are zero."""
        whole = [[max(x, 0) for x in integers.to_integers(row, self.unit)] for row in R]
        limits = [0 if math.isinf(end) else 1 << 200 for end in low.tolist()]
        A = integers.balance_k_class(whole, self.codes.tolist(), limits, self.exact.k)
        return [[i, j, x] for i, row in enumerate(A) for j, x in enumerate(row) if x]

    def _promising(self, node: Node) -> int | None:
        """Return the free sample for which both sides cost more than the relaxation pays; None if none is free."""
        low, high = self._ends()
        free = (low < self.data.t) & (high > self.data.t)
        if not free.any():
            return None
        u = (self.data.rows @ node.theta).min(axis=1)
        inside = np.maximum(self.data.breakpoints - u[:, None], 0.0) @ self.data.slopes
        given_up = np.maximum(self.costs * self.data.cap - node.paid, 0.0)
        push = self.data.cap * np.maximum(self.data.t - u, 0.0) if self.data.has_jump else 0.0
        believed = np.maximum(self.costs * (inside + push) - node.paid, 0.0)
        score = np.where(free, given_up * believed + 1e-12 * given_up, -np.inf)
        return int(np.argmax(score))

    # smaller intervals

    def _cut(self, node: Node) -> bool:
        """Cut off the sides of samples that the node's multipliers close; returns whether there are any."""
        follower, t = self.follower, self.jump
        alpha, _ = follower._read(node.record["leaf"])
        lines: list[list[Any]] = []
        missing = (follower.bound - node.value) / checker.power(follower.e)
        before = len(follower.changes)
        for i in range(self.exact.n):
            low, high = follower.low[i], follower.high[i]
            if (low is not None and low >= t) or (high is not None and high <= t):
                continue
            a, term = alpha.get(i, 0), follower._term(i, alpha.get(i, 0))
            for side, ends, rest in (("<", (low, t), (t, high)), (">", (t, high), (low, t))):
                follower._set(i, *ends)
                gain = follower._term(i, a) - term
                follower._undo(before)
                if gain >= missing and (side == "<" or low is not None or a == 0):
                    lines.append([i, side, "t", []])
                    follower._set(i, *rest)
                    missing -= follower._term(i, a) - term
                    before = len(follower.changes)
                    break
        if not lines:
            return False
        follower._undo(before - len(lines))
        self._record({"multipliers": node.record["leaf"], "cuts": lines}, follower.cuts)
        return True

    def _floors(self, node: Node | None) -> bool:
        """Raise lower ends by neighbours; returns whether that was worth it."""
        low, high = self._ends()
        t, goal = self.data.t, float(self.follower.bound) * (1.0 + ROUNDING)
        far = 2.0 / math.sqrt(self.problem.penalty.l2)
        spent = float(self.data.cap * self.costs[high <= t].sum())
        W, radius = None, math.inf
        if node is not None:
            W = self._centre(node)
            radius = far * math.sqrt(max(goal - float(node.value), 0.0) + ROUNDING * goal)
        pairs = []
        for i in np.flatnonzero((low < t) & (high > t)):
            drop = self._drop(int(i), low, high, spent, goal, far, radius, W)
            if math.isinf(drop):
                continue
            c = t - drop
            c = math.floor((c - ROUNDING * (1.0 + abs(c))) / _GRID) * _GRID if c < t else t
            least = low[i] + _WORTH * (t - low[i]) if low[i] > -math.inf else -math.inf
            if c > least:
                pairs.append([int(i), "t" if c == t else round(c / _GRID)])
        if not pairs:
            return False
        record: Record = {"floor": pairs}
        if node is not None:
            record["multipliers"] = node.record["leaf"]
        self._record(record, self.follower.floor)
        return True

    def _centre(self, node: Node) -> Array:
        """Return V / l2 for the node's multipliers: everything better than the goal lies in a ball around it."""
        _, R = self.follower._read(node.record["leaf"])
        rows = np.zeros((self.exact.k, self.costs.size))
        for j, row in enumerate(R):
            for i, x in row.items():
                rows[j, i] = math.ldexp(x, self.unit)
        return rows @ self.X / self.problem.penalty.l2

    def _drop(
        self, i: int, low: Array, high: Array, spent: float, goal: float, far: float, radius: float, W: Array | None
    ) -> float:
        """Return by how much the margin of i may lie below t where the objective is below the goal."""
        own = np.flatnonzero((self.codes == self.codes[i]) & (high > self.data.t))
        order = own[np.argsort(self.distance[i, own], kind="stable")]
        drop = 0.0
        for j in order.tolist():
            left = goal - spent
            if left <= 0.0:
                return drop
            reach = far * math.sqrt(left) * self.distance[i, j]
            if W is not None:
                shift = (W[self.codes[i]] - W[self.rivals[i]]) @ (self.X[i] - self.X[j])
                reach = min(reach, radius * self.distance[i, j] - float(shift.min()))
            drop = max(drop, reach)
            if low[j] >= self.data.t:
                return drop
            spent += float(self.costs[j] * self.data.cap)
        return drop if spent >= goal else math.inf


def search_k_class(statement: Statement, goal: float, seconds: float) -> Evidence:
    """Prove ``goal``, or as much as there is time for: parts of it first, which cost little beside the whole."""
    end, best = now() + seconds, None
    for share in SHARES:
        tree = Tree(statement, share * goal)
        bound = tree.run(end - now())
        if best is None or bound > best.bound:
            best = Evidence(bound, tree.unit, MARGIN_UNIT, tree.records)
        if bound < tree.follower.bound:
            break
    assert best is not None
    return best
