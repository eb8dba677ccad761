"""Groups of samples, each solved exactly with a share of the penalty: the sum of their optima is a lower bound.

Let the samples be divided into groups g with shares p_g > 0 of the penalty, sum_g p_g = 1, and let multipliers lambda_g
sum to 0. For every (w, b)

    P(w) + sum_i cost_i l(u_i)  =  sum_g [ p_g P(w) + <lambda_g, (w, b)> + sum_{i in g} cost_i l(u_i) ]  >=  sum_g V_g,

    V_g = min over (w, b) of  p_g P(w) + <lambda_g, (w, b)> + sum_{i in g} cost_i l(u_i),

because on the right every group has its own (w, b). Every V_g is a problem of the same kind with few samples and a
linear term, which the tree solves fast, and any lower bound on it will do. What a sample costs against its neighbours
is counted in full, so these bounds are far above those of envelopes where many samples are left out. Only a (w, b)
better than the incumbent counts, so each group may know the bounds on all margins that such a (w, b) obeys, and those
on b that follow: without them a term in b has no minimum.

Multipliers are improved by a bundle method (:mod:`.multipliers`), for the 2-norm; they begin where the relaxation of
all samples is reached, so that no group is worse than its envelopes. When that hardly raises the bound any more, pairs
of groups are merged, their shares and multipliers added: V of the union is at least the sum of both, so the bound never
falls. The last two groups are not merged, because that is the tree itself.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...core.solving import Options
from ..envelope_jit import FEASIBLE
from ..sample_state_jit import FLOOR, LINEAR
from ..search import Budget
from .incumbent import Points, empty_incumbent
from .incumbent_jit import Best, alternate_from, offer, true_value
from .model import make_workspace, margin_bounds
from .multipliers import Bundle, balanced
from .node.node_jit import Model, NodeWorkspace, solve_node
from .tree.search import TreeSearch

Array = NDArray[np.float64]
Rows = NDArray[np.intp]


@dataclass(frozen=True)
class GroupConstants:
    """Constants of the group search.

    Attributes
    ----------
    first_size : int
        Samples of a group at the beginning, at most: the tree solves so few within hundredths of a second.
    means_rounds : int
        Rounds of 2-means in a bisection: the groups need not be the best ones.
    slice_nodes : int
        Nodes that a group gets before another one that has had fewer is continued.
    gap_tol : float
        Relative gap to which groups are solved.
    rounding : float
        Part of all sums by which the bound is lowered: more than their rounding errors.
    patience, least_rise : int, float
        Groups are merged where this many steps have raised the bound by less than this part of the gap.
    """

    first_size: int = 50
    means_rounds: int = 10
    slice_nodes: int = 256
    gap_tol: float = 1e-3
    rounding: float = 1e-10
    patience: int = 3
    least_rise: float = 0.05


CONSTANTS = GroupConstants()


def divide(X: Array, most: int) -> list[Rows]:
    """Divide the rows of X into groups of neighbours by bisection, 2^k of about equal size and at most ``most``."""
    parts = [np.arange(len(X))]
    while max(part.size for part in parts) > most:
        parts = [part[half] for part in parts for half in _bisect(X[part])]
    return parts


def _bisect(X: Array) -> tuple[Rows, Rows]:
    """Divide rows in two halves by 2-means, begun at two rows that are far apart; equal rows by their order."""
    first = X[np.argmax(np.sum((X - X.mean(axis=0)) ** 2, axis=1))]
    centres = np.stack([first, X[np.argmax(np.sum((X - first) ** 2, axis=1))]])
    half = len(X) // 2
    for _ in range(CONSTANTS.means_rounds):
        order = np.argsort(X @ (centres[1] - centres[0]), kind="stable")
        now = np.stack([X[order[:half]].mean(axis=0), X[order[half:]].mean(axis=0)])
        if np.array_equal(now, centres):
            break
        centres = now
    return np.sort(order[:half]), np.sort(order[half:])


def suits_groups(model: Model) -> bool:
    """Whether there are samples for more than two groups, and of both classes."""
    return model.y.size > 2 * CONSTANTS.first_size and bool(np.ptp(model.y) > 0.0)


class Box(NamedTuple):
    """What every solution better than the incumbent obeys: bounds on its margins and on its intercept."""

    low: Array
    high: Array
    least: float
    most: float


def box_of(model: Model, upper: float) -> Box:
    """Return bounds on solutions with an objective below ``upper``: b = y (u - <w, a>) and ||w|| <= sqrt(2 upper)."""
    low, high = margin_bounds(model, upper)
    reach = math.sqrt(2.0 * upper) * np.sqrt(np.einsum("ij,ij->i", model.a, model.a))
    below, above = low - reach, high + reach
    is_positive = model.y > 0
    least = float(np.where(is_positive, below, -above).max())
    most = float(np.where(is_positive, above, -below).min())
    slack = FEASIBLE * (1.0 + abs(least) + abs(most))
    return Box(low, high, least - slack, most + slack)


class Group:
    """Some of the samples, their share of the penalty and multipliers, and the search for the optimum of the three.

    Attributes
    ----------
    work : int
        Nodes times their size.
    bound : float
        Lower bound on the share of the optimum; at first ``known``, the sum of the bounds of what was merged.
    found : list of (w, b)
        Where its search begins, and its solution when it is done.
    """

    def __init__(self, rows: Rows, share: float, tilt: Array | None, known: float, found: Points) -> None:
        self.rows, self.share, self.tilt, self.bound, self.found = rows, share, tilt, known, list(found)
        self.search: TreeSearch | None = None
        self.done, self.work, self.shift = False, 0, 0.0

    def run(self, model: Model, box: Box, options: Options, budget: Budget) -> None:
        """Go on with the search; forget its tree when it is done."""
        if self.search is None:
            if self.tilt is None and np.ptp(model.y[self.rows]) == 0.0:  # one class: a constant costs nothing
                self.done = True
                return
            self.search = self._begin(model, box, options, budget)
        self.search.run(budget)
        self.work, self.done = self.search.work * self.rows.size, self.search.done
        lowered = self.search.bound * (1.0 - CONSTANTS.rounding) - self.shift * (1.0 + CONSTANTS.rounding)
        self.bound = max(self.bound, self.share * lowered)
        if self.done:
            best = self.search.best
            self.found, self.search = [(best.w, float(best.b[0]))], None

    def cost(self, model: Model, w: Array, b: float) -> float:
        """Return what (w, b) costs the group without its multipliers."""
        rows = self.rows
        part = model._replace(cost=model.cost[rows] / self.share, given=model.given[rows])
        return self.share * true_value(part, w, model.a[rows] @ w + model.y[rows] * b)

    def _begin(self, model: Model, box: Box, options: Options, budget: Budget) -> TreeSearch:
        part, bounds = self._part(model, box)
        best, scratch = empty_incumbent(part), make_workspace(part)
        margins = [part.a @ w + part.y * b for w, b in self.found]
        for (w, b), u in zip(self.found, margins):
            offer(part, best, w, b, u)
        for u in margins:
            scratch.alpha[:] = 0.0
            alternate_from(part, best, scratch, u)
        return TreeSearch(part, best, scratch, replace(options, gap_tol=CONSTANTS.gap_tol), bounds)

    def _part(self, model: Model, box: Box) -> tuple[Model, tuple[Array, Array] | None]:
        """Return the problem of the group and bounds on its margins; the multipliers and the bounds on b are rows.

        Its objective is raised by ``shift``, which makes all values positive: P(w) + <v, w> >= -1/2 ||v||^2.
        """
        rows, n = self.rows, self.rows.size
        a, y, cost, given = model.a[rows], model.y[rows], model.cost[rows] / self.share, model.given[rows]
        low, high, distance = box.low[rows], box.high[rows], model.dist[np.ix_(rows, rows)]
        if self.tilt is not None:
            v, m = self.tilt[:-1] / self.share, self.tilt[-1] / self.share
            self.shift = 1.0 + 0.51 * float(v @ v) + 1.01 * abs(m) * max(abs(box.least), abs(box.most))
            a = np.vstack([a, v, np.zeros((2, v.size))])
            y = np.concatenate([y, [m, 1.0, -1.0]])
            cost = np.concatenate([cost, [self.shift / model.cap, box.least, -box.most]])
            given = np.concatenate([given, [LINEAR, FLOOR, FLOOR]]).astype(np.int8)
            low, high = np.append(low, [model.t, box.least, -box.most]), np.append(high, [np.inf] * 3)
            distance = np.pad(distance, (0, 3))  # a bound on b is a sample at 0
            size = np.sqrt(np.einsum("ij,ij->i", a[:n], a[:n]))
            distance[:n, n:], distance[n:, :n] = size[:, None], size
        part = model._replace(a=a, y=y, cost=cost, given=given, dist=np.ascontiguousarray(distance))
        return part, None if self.tilt is None else (low, high)


class GroupSearch:
    """The bound by groups. Stuck when the last two groups are solved and better multipliers do not pay.

    Work is counted in nodes of all samples: a node of half of them is half a node.
    """

    is_outdated = False

    def __init__(self, model: Model, best: Best, scratch: NodeWorkspace, options: Options) -> None:
        self.model, self.best, self.scratch, self.options = model, best, scratch, options
        self.spent_work, self.bound, self.upper = 0, 0.0, float(best.value[0])
        self.box = box_of(model, self.upper)
        parts = divide(model.a * model.y[:, None], CONSTANTS.first_size)
        share = 1.0 / len(parts)
        if model.norm == 2:  # with multipliers a group may have a negative optimum
            tilts = self._first_multipliers(parts)
            self._open([Group(rows, share, tilt, -math.inf, self._points) for rows, tilt in zip(parts, tilts)])
        else:
            self._open([Group(rows, share, None, 0.0, self._points) for rows in parts])

    @property
    def _points(self) -> Points:
        return [(self.best.w.copy(), float(self.best.b[0]))]

    def _first_multipliers(self, parts: list[Rows]) -> Array:
        """Return the multipliers with which the envelopes of all samples have their optimum in every group."""
        model, work = self.model, make_workspace(self.model)
        work.state[:], work.low[:], work.high[:] = model.given, self.box.low, self.box.high
        solve_node(model, work, self.upper)
        own = [np.append(work.alpha[rows] @ model.a[rows], work.alpha[rows] @ model.y[rows]) for rows in parts]
        return balanced(np.array(own) - np.append(work.w, 0.0) / len(parts))

    def _open(self, groups: list[Group]) -> None:
        """Go on with groups of other samples."""
        self.groups, self.leaders, self.base, self.steps = groups, groups, -math.inf, 0
        self.bundle = None
        if self.model.norm == 2:
            self.bundle = Bundle(np.array([group.tilt for group in groups]), self.upper)
            self._add_cuts()

    def _add_cuts(self) -> None:
        assert self.bundle is not None
        for g, group in enumerate(self.groups):
            for w, b in group.found:
                self.bundle.add(g, np.append(w, b), group.cost(self.model, w, b))

    @property
    def done(self) -> bool:
        """Whether the incumbent is proved to the tolerance asked for."""
        value, w = float(self.best.value[0]), self.best.w
        penalty = 0.5 * float(w @ w) if self.model.norm == 2 else float(np.abs(w).sum())
        return self.bound >= value - self.options.gap_tol * min(value, penalty)

    @property
    def is_stuck(self) -> bool:
        """Whether all groups are solved, at most two are left, and better multipliers do not pay."""
        return len(self.groups) <= 2 and not self._pays and all(group.done for group in self.groups)

    @property
    def _pays(self) -> bool:
        """Whether better multipliers are worth solving the groups again."""
        return self.bundle is not None and self.steps < CONSTANTS.patience

    @property
    def work(self) -> int:
        """Nodes so far, each counted by its part of the samples."""
        return math.ceil((self.spent_work + sum(group.work for group in self.groups)) / self.model.y.size)

    def run(self, budget: Budget) -> None:
        """Solve groups, improve their multipliers, and merge them, until done or stuck or the budget is spent."""
        end = self.work + budget.work
        while not self.done and not self.is_stuck and not budget.is_over and self.work < end:
            open_groups = [group for group in self.groups if not group.done]
            if not open_groups:
                self._go_on()
                continue
            group = min(open_groups, key=lambda group: group.work)
            nodes = math.ceil(min(CONSTANTS.slice_nodes, (end - self.work) * self.model.y.size / group.rows.size))
            group.run(self.model, self.box, self.options, Budget(nodes, budget.clock, budget.until))
            if group.done:
                self._offer(*group.found[-1])
            self.bound = max(self.bound, min(self._total, self.upper, float(self.best.value[0])))

    @property
    def _total(self) -> float:
        """What the groups prove together, rounded down; nothing before each of them has proved something."""
        bounds = [group.bound for group in self.groups]
        size = math.fsum(map(abs, bounds))
        return math.fsum(bounds) - CONSTANTS.rounding * size if size < math.inf else -math.inf

    def _go_on(self) -> None:
        """All groups are solved: give them better multipliers while that pays, else merge pairs of them."""
        value = self._total
        if self.best.value[0] < self.upper:
            self.upper = float(self.best.value[0])
            self.box = box_of(self.model, self.upper)
        if value > math.fsum(group.bound for group in self.leaders) or self.leaders[0] is self.groups[0]:
            self.leaders = self.groups
        self.steps += 1
        if self.base == -math.inf or value - self.base > CONSTANTS.least_rise * (self.upper - self.base):
            self.base, self.steps = value, 0
        tilts = None
        if self.bundle is not None and self._pays:
            self._add_cuts()
            tilts = self.bundle.next(value)
        if tilts is None and len(self.groups) <= 2:
            self.steps = CONSTANTS.patience
            return
        self.spent_work += sum(group.work for group in self.groups)
        if tilts is None:
            self._open([self._union(*self.leaders[k : k + 2]) for k in range(0, len(self.leaders), 2)])
            return
        self.groups = [
            Group(group.rows, group.share, tilt, -math.inf, [*self._points, *group.found])
            for group, tilt in zip(self.groups, tilts)
        ]

    def _union(self, a: Group, b: Group) -> Group:
        tilt = None if a.tilt is None or b.tilt is None else a.tilt + b.tilt
        found = [*self._points, *a.found, *b.found]
        return Group(np.concatenate([a.rows, b.rows]), a.share + b.share, tilt, a.bound + b.bound, found)

    def _offer(self, w: Array, b: float) -> None:
        """Try a group's solution, and what alternating minimisation makes of it, on all samples."""
        margins = self.model.a @ w + self.model.y * b
        offer(self.model, self.best, w, b, margins)
        self.scratch.alpha[:] = 0.0
        alternate_from(self.model, self.best, self.scratch, margins)
