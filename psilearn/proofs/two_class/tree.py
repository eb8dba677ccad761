"""The branch and bound that writes a tree of dual bounds: two classes, a truncated loss, l2 (also in an RKHS) or l1.

    minimise  P(w) + sum_i cost_i l(y_i f(x_i))

The optimum is known (or the best point found); what is searched for is a proof that nothing is better than ``goal``.
Nodes confine margins to intervals [low, high); the node solver of the exact search finds multipliers, which are rounded
to a grid of integers and valued as the checker values them,

    D = sum_i min over [low_i, high_i) of (cost_i l(u) + alpha_i u) - P*(sum_i alpha_i y_i x_i),

in floating point here, with a margin for rounding, and exactly by the checker. Margins are those of the
given data; multipliers are those of the scaled problem times ``unit_value``.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.clock import now
from ...exact.sample_state_jit import FREE, IN, OUT, TILTED
from ...exact.two_class.model import make_workspace, margin_bounds
from ...exact.two_class.node.active_set_jit import Basis
from ...exact.two_class.node.node_jit import solve_node
from ...exact.two_class.node.simplex_jit import Tableau
from .. import integers
from ..statement import Record
from . import cuts_jit
from .node import Hints, Node, sparse
from .records import records
from .scaled import Array, Scaled

#: Ends of intervals are multiples of 2^MARGIN_UNIT, but for t itself.
MARGIN_UNIT = -30
_GRID = 2.0**MARGIN_UNIT
#: Part of the goal that rounding errors of a floating-point bound never reach.
ROUNDING = 1e-9
#: Room that multipliers of an l1 penalty leave below its weights, so that rounding to the grid keeps them feasible.
_L1_ROOM = 1e-8
#: Solves of a node with tighter intervals each time, samples tried for branching, and the part of the distance to t by
#: which an interval must shrink to be worth a cut in the file.
_ROUNDS, _TRIED, _WORTH = 4, 8, 0.1
#: Lower ends raised between two solutions of their node, and the part of what a node lacks by which a sample's envelope
#: must be below its loss for that.
_BATCH, _LEAST_GAP = 16, 0.005


class Replay:
    """Search for a tree that proves ``goal``; :meth:`run` returns the bound that was proved in time.

    All numbers are those of the scaled problem. With hints the tree is searched in depth, which needs little memory,
    else the weakest node comes first.
    """

    def __init__(self, scaled: Scaled, goal: float, hints: Hints | None = None, believed: Iterable[int] = ()) -> None:
        self.hints = hints
        self.scaled, self.model, self.value = scaled, scaled.model, scaled.unit_value
        model = self.model
        self.goal = goal / self.value
        self.safe_goal = self.goal * (1.0 + ROUNDING) + 1e-300
        steepest = float(model.cost.max()) * max(1.0, float(model.slopes.sum()))
        self.peak = float(np.abs(model.a).max(initial=0.0)) * model.y.size
        self.unit = integers.unit_of(steepest * self.value, integers.COARSE_BITS)
        if model.norm == 1:  # rounding must not reach the weights of the penalty
            self.unit = min(self.unit, integers.unit_of(0.1 * _L1_ROOM / max(self.peak, 1e-300) * self.value, 0))
        self.quantum = math.ldexp(1.0, self.unit) / self.value
        self.top = float(np.append(model.breakpoints, model.t).max())
        self._set_rounding(np.array([self.top]))
        self.work, self.trial = make_workspace(model), make_workspace(model)
        self.count = 0
        n, m = model.y.size, model.a.shape[1] + 3
        self.terms, self.v, self.moved = np.zeros(n), np.zeros(model.a.shape[1]), np.zeros(model.a.shape[1])
        whole = np.zeros(4 * n, np.int64), np.zeros(4 * n, np.int64), np.zeros(4 * n), np.zeros(4 * n, np.int64)
        self.cuts = *whole, np.zeros((4 * n, m), np.int64), np.zeros((4 * n, m))
        self.root = self._node(np.full(n, -np.inf), np.full(n, np.inf), np.zeros(n), 0.0)
        self.root.number = -1 if hints is None else 0
        self.root.low[list(believed)] = model.t
        self.stuck: list[Node] = []
        self.reach = np.maximum(np.median(model.dist, axis=1), 1e-9)

    def _set_rounding(self, ends: Array) -> None:
        """What rounding may do to sums over the samples, per unit of all |alpha_i|: to terms, and to an entry of v."""
        model, scaled = self.model, self.scaled
        unit = 2.0**-53 * (model.y.size + 8)
        reach = float(np.abs(np.append(ends[np.isfinite(ends)], [model.t, self.top])).max())
        given = float(np.abs(scaled.X).max(initial=0.0)) * scaled.stretch
        self.slip, self.blur = unit * reach, unit * float(np.abs(model.a).max(initial=0.0)) + 2.0**-50 * given

    # values of multipliers

    def rounded(self, alpha: Array, low: Array, high: Array) -> Array:
        """Multipliers as whole numbers of quanta, balanced, and within what infinite intervals allow."""
        model, a = self.model, np.empty(alpha.size)
        if model.norm == 1:
            size = float(np.abs(alpha @ model.a).max(initial=0.0))
            total = float(np.abs(alpha).sum())
            room = _L1_ROOM + total * (2.0 * self.blur + 2.0**-49 * self.peak)
            alpha = alpha * (max(1.0 - room, 0.0) / max(1.0, size))
        cuts_jit.whole(alpha, self.quantum, low, high, model.y, a)
        return a

    def dual(self, a: Array, low: Array, high: Array) -> float:
        """Value of whole multipliers; leaves their terms and sum_i alpha_i a_i in ``terms`` and ``v``."""
        model = self.model
        return cuts_jit.dual_value(
            a, self.quantum, low, high, model.a, model.cost, model.breakpoints, model.slopes, model.t, model.cap,
            model.norm, self.slip, self.blur, self.terms, self.v,
        )  # fmt: skip

    # nodes

    def _node(self, low: Array, high: Array, alpha: Array, b: float, leaf: Array | None = None) -> Node:
        leaf = np.zeros(low.size) if leaf is None else leaf
        self.count += 1
        bound = self.dual(leaf, low, high)
        rank = bound if self.hints is None else -float(self.count)
        return Node(rank, bound, self.count, low.copy(), high.copy(), alpha.copy(), b, leaf)

    def _load(self, work: Any, node: Node) -> None:
        t = self.model.t
        work.state[:] = np.where(node.low >= t, IN, np.where(node.high <= t, OUT, FREE))
        work.low[:], work.high[:], work.alpha[:], work.b[0] = node.low, node.high, node.alpha, node.b

    def _solve(self, node: Node, work: Any) -> None:
        """Solve the relaxation of a node and keep the best multipliers."""
        value, _ = solve_node(self.model, work, self.safe_goal * (1.0 + ROUNDING))
        node.alpha, node.b = work.alpha.copy(), float(work.b[0])
        alpha = node.alpha
        if value > 1.1 * self.safe_goal and node.bound < self.safe_goal:
            # The dual of a contradictory node has no end; by concavity a shorter step reaches the goal as well.
            start = node.leaf * self.quantum
            alpha = start + (1.05 * self.safe_goal - node.bound) / (value - node.bound) * (alpha - start)
        a = self.rounded(alpha, node.low, node.high)
        bound = self.dual(a, node.low, node.high)
        if bound > node.bound:
            node.bound, node.leaf = bound, a

    def run(self, seconds: float) -> float:
        """Divide nodes, weakest first, until all reach the goal or time is over; returns the proved bound."""
        self.end = end = now() + seconds
        self._plant(end)
        heap = [] if self.last.bound >= self.safe_goal else [self.last]
        while heap and now() < end:
            node = heapq.heappop(heap)
            for child in self._divide(node):
                if child.bound < self.safe_goal:
                    heapq.heappush(heap, child)
        weakest = min((node.bound for node in [*heap, *self.stuck]), default=math.inf)
        return min(self.goal, weakest - ROUNDING * abs(weakest)) * self.value

    def _plant(self, end: float) -> None:
        """Confine the margins at the root: by neighbours, and (2-norm) by bounds of leaning relaxations."""
        root, model = self.root, self.model
        self.last = root
        if self.goal <= 0.0:
            return
        believed = root.low >= model.t
        low, high = margin_bounds(model, self.goal * (1.0 + ROUNDING))
        for label in (-1.0, 1.0):  # neighbours hold a margin only where not all of them can be given up
            own = model.y == label
            if model.cap * model.cost[own].sum() < self.goal * (1.0 + ROUNDING) and not believed[own].any():
                low[own], high[~own] = -np.inf, np.inf
        low[believed] = -np.inf
        low = np.floor((low - ROUNDING * (1.0 + np.abs(low))) / _GRID) * _GRID
        high = np.ceil((high + ROUNDING * (1.0 + np.abs(high))) / _GRID) * _GRID
        high = np.where(high < self.top, np.maximum(high, _GRID - model.t), np.inf)
        high = np.where(high > low, high, np.inf)
        self._set_rounding(np.append(low, high))
        self._record_ends(root, "floor", low)
        self._record_ends(root, "ceiling", high)
        root.low, root.high = np.where(believed, model.t, low), high
        self._load(self.work, root)
        self._solve(root, self.work)
        if model.norm == 2:
            self.last = self._squeezed(self._squeezed(root, end), end)

    def _record_ends(self, node: Node, name: str, ends: Array) -> None:
        pairs = [[int(i), self._margin(ends[i])] for i in np.flatnonzero(np.isfinite(ends))]
        if pairs:
            node.records.append({name: pairs})

    def _margin(self, c: float) -> int | str:
        return "t" if c == self.model.t else round(c / _GRID)

    def _squeezed(self, node: Node, end: float) -> Node:
        """Raise lower ends of a solved node's free samples, those farthest above their envelope first.

        Returns what is left of the node, solved with the new ends after every few of them.
        """
        is_tried = np.zeros(self.model.y.size, np.bool_)
        while node.bound < self.safe_goal and now() < end:
            gaps = self._envelope_gaps(node)
            gaps[is_tried] = 0.0
            order = np.argsort(-gaps, kind="stable")[:_BATCH]
            order = order[gaps[order] > _LEAST_GAP * (self.safe_goal - node.bound)]
            if order.size == 0:
                break
            is_tried[order] = True
            for i in order:
                node = self._raised(node, int(i))
            self._load(self.work, node)
            self._solve(node, self.work)
        return node

    def _envelope_gaps(self, node: Node) -> Array:
        """Return by how much each free sample pays less in the relaxation of a node than its loss."""
        model, u = self.model, self.work.u
        self.dual(node.leaf, node.low, node.high)
        paid = self.terms - node.leaf * self.quantum * u
        inside = np.maximum(model.breakpoints - np.maximum(u, model.t)[:, None], 0.0) @ model.slopes
        loss = np.where(u >= model.t, np.minimum(inside, model.cap), model.cap)
        return np.where((node.low < model.t) & (node.high > model.t), model.cost * loss - paid, 0.0)

    def _raised(self, node: Node, i: int) -> Node:
        """Raise the lower end of sample i by a relaxation that leans on it: one split and one leaf.

        With u_i < c given up and s u_i added to the objective, multipliers of value D(s) prove F >= D(s) - s c there.
        """
        model, trial = self.model, self.trial
        slack = max(self.safe_goal - node.bound, 1e-300)
        price = math.sqrt(2.0 * slack) / self.reach[i]
        self._load(trial, node)
        trial.state[i], trial.low[i] = TILTED, price
        value, _ = solve_node(model, trial, self.safe_goal + price * abs(model.t))
        s = -float(trial.alpha[i])
        if not 0.5 * price < s < 2.0 * price:
            return node
        relaxed = value - s * trial.u[i] - node.bound
        self.reach[i] *= min(max((max(relaxed, 1e-300) / slack) ** 0.3, 0.1), 10.0)
        return self._cut_by_split(node, i, (value - self.safe_goal) / s)

    def _cut_by_split(self, node: Node, i: int, c: float) -> Node:
        """Divide at the margin c if the trial's multipliers close the lower child; returns what is left of the node."""
        t = self.model.t
        c = t if c >= t else math.floor((c - ROUNDING * (1.0 + abs(c))) / _GRID) * _GRID
        least = node.low[i] + _WORTH * (t - node.low[i]) if node.low[i] > -np.inf else -np.inf
        if not least < c < node.high[i]:
            return node
        lower, upper = self._children(node, i, c)
        lower.leaf = self.rounded(self.trial.alpha, lower.low, lower.high)
        lower.bound = self.dual(lower.leaf, lower.low, lower.high)
        if lower.bound < self.safe_goal:
            return node
        upper.number = node.number
        node.split, node.children = (i, c), (lower, upper)
        self._forget(node, lower)
        return upper

    def _children(self, node: Node, i: int, c: float) -> tuple[Node, Node]:
        lower = self._node(node.low, node.high, node.alpha, node.b, node.leaf)
        upper = self._node(node.low, node.high, node.alpha, node.b, node.leaf)
        lower.high[i] = upper.low[i] = c
        for child in (lower, upper):
            child.bound = self.dual(child.leaf, child.low, child.high)
        return lower, upper

    def _forget(self, *nodes: Node) -> None:
        """Free the memory of nodes that are closed or divided: all but their multipliers that are not zero."""
        for node in nodes:
            node.closing = sparse(node.leaf)
            node.low = node.high = node.alpha = node.leaf = np.zeros(0)

    def _divide(self, node: Node) -> tuple[Node, ...]:
        """Tighten a node and divide it; returns the open nodes that are left of it."""
        while True:
            for _ in range(_ROUNDS):
                self._load(self.work, node)
                self._solve(node, self.work)
                if node.bound >= self.safe_goal:
                    self._forget(node)
                    return ()
                if not self._tighten(node):
                    break
            else:
                self._load(self.work, node)
                self._solve(node, self.work)
            if self.model.norm == 2 and node.bound < self.safe_goal:
                node = self._squeezed(node, self.end)
            if node.bound >= self.safe_goal:
                self._forget(node)
                return ()
            children = self._branch(node)
            still_open = [child for child in children if child.bound < self.safe_goal]
            self._forget(node, *(child for child in children if child.bound >= self.safe_goal))
            if len(still_open) != 1 or len(children) < 2:
                return tuple(still_open)
            node = still_open[0]

    def _branch(self, node: Node) -> tuple[Node, ...]:
        """Divide at t by the sample whose two children have the best bounds, trying the most promising ones."""
        model, work = self.model, self.work
        known = -1 if self.hints is None else self.hints.of(node, model.t)
        if known >= 0:
            assert self.hints is not None
            children, first = self._children(node, known, model.t), int(self.hints.child[node.number])
            children[0].number, children[1].number = first, first + 1
            node.split, node.children = (known, model.t), children
            return children
        free = np.flatnonzero((node.low < model.t) & (node.high > model.t))
        self.dual(node.leaf, node.low, node.high)
        u, cost = work.u[free], model.cost[free]
        paid = self.terms[free] - node.leaf[free] * self.quantum * u
        given_up = np.maximum(cost * model.cap - paid, 0.0)
        loss = np.maximum(model.breakpoints - np.maximum(u, model.t)[:, None], 0.0) @ model.slopes
        believed = np.maximum(cost * loss - paid, 0.0) + 0.5 * np.maximum(model.t - u, 0.0) ** 2
        order = free[np.argsort(-(given_up * believed + 1e-12 * given_up), kind="stable")[:_TRIED]]
        best, chosen = -1.0, None
        for i in order:
            children = self._children(node, int(i), model.t)
            for child in children:
                self._load(self.trial, child)
                self._solve(child, self.trial)
            gains = [min(child.bound, self.safe_goal) - node.bound for child in children]
            score = max(gains[0], 1e-9 * self.goal) * max(gains[1], 1e-9 * self.goal)
            if max(child.bound for child in children) >= self.safe_goal:
                score = math.inf
            if score > best:
                best, chosen = score, (int(i), children)
            if score == math.inf:
                break
        if chosen is None:  # every sample has its side, so the node holds something better than the goal
            self.stuck.append(node)
            return ()
        node.split, node.children = (chosen[0], model.t), chosen[1]
        return chosen[1]

    # cuts

    def _tighten(self, node: Node) -> bool:
        """Shrink intervals by changes of the node's multipliers; returns whether that is worth another solve."""
        model = self.model
        free = np.flatnonzero((node.low < model.t) & (node.high > model.t))
        if free.size == 0:
            return False
        self.dual(node.leaf, node.low, node.high)
        low, high = node.low.copy(), node.high.copy()
        count = cuts_jit.find_cuts(
            free, self.work.u, node.leaf, self.quantum, low, high, self.terms, self.v, *self._rooms(free), model.a,
            model.y, model.cost, model.breakpoints, model.slopes, model.t, model.cap, model.norm, self.safe_goal,
            self.slip, self.blur, _GRID, _WORTH, self.moved, *self.cuts,
        )  # fmt: skip
        if count == 0:
            return False
        node.cuts.append((sparse(node.leaf), *(part[:count].copy() for part in self.cuts)))
        node.low, node.high = low, high
        return bool(np.any(self.cuts[2][:count] == model.t)) or count > 2

    def _rooms(self, free: NDArray[np.intp]) -> tuple[NDArray[np.int64], Array, Array, Array, Array]:
        """Partners, their shares, and per (free sample, partner) r2 and the room for the margin to rise and fall."""
        model, work = self.model, self.work
        if model.norm == 1:
            return self._rooms_l1(free)
        assert isinstance(work.basis, Basis)
        members = work.basis.members[: work.basis.size[0]]
        piece = work.basis.piece[: members.size]
        below = np.maximum(work.alpha[members] - work.terms.vert[members, piece], 0.0)
        above = np.maximum(work.terms.vert[members, piece + 1] - work.alpha[members], 0.0)
        same = model.y[free][:, None] == model.y[members][None, :]
        rise, fall = np.where(same, below, above), np.where(same, above, below)
        is_itself = free[:, None] == members[None, :]
        rise, fall = np.where(is_itself, 0.0, rise), np.where(is_itself, 0.0, fall)
        return members.copy(), np.zeros((1, 1)), model.dist[np.ix_(free, members)] ** 2, rise, fall

    def _rooms_l1(self, free: NDArray[np.intp]) -> tuple[NDArray[np.int64], Array, Array, Array, Array]:
        """1-norm: one direction per sample, along which all basic terms move and the penalty's conjugate stays 0."""
        basis, terms = self.work.basis, self.work.terms
        assert isinstance(basis, Tableau)
        shares = basis.rows[free] @ basis.inverse
        held = basis.full[basis.members]
        below = np.maximum(held - terms.vert[basis.members, basis.piece], 0.0)
        above = np.maximum(terms.vert[basis.members, basis.piece + 1] - held, 0.0)
        size = np.abs(shares)
        with np.errstate(divide="ignore", invalid="ignore"):
            up, down = np.where(shares < 0, above, below) / size, np.where(shares < 0, below, above) / size
        rise = np.where(size > 1e-12, up, np.inf).min(axis=1, keepdims=True)
        fall = np.where(size > 1e-12, down, np.inf).min(axis=1, keepdims=True)
        is_basic = basis.place[free][:, None] >= 0
        rise, fall = np.where(is_basic, 0.0, rise), np.where(is_basic, 0.0, fall)
        return basis.members.copy(), shares, np.zeros((free.size, 1)), rise, fall

    def records(self) -> Iterator[Record]:
        """Yield the records of the tree in the order of the file."""
        return records(self.root, self._margin)
