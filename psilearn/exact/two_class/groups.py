"""Groups of samples, each solved exactly with a share of the penalty: the sum of their optima is a lower bound.

Let the samples be divided into groups g with shares p_g > 0 of the penalty, sum_g p_g = 1. For every (w, b)

    P(w) + sum_i cost_i l(u_i)  =  sum_g [ p_g P(w) + sum_{i in g} cost_i l(u_i) ]  >=  sum_g p_g V_g,

    V_g = min over (w, b) of  P(w) + sum_{i in g} (cost_i / p_g) l(u_i),

because on the right every group has its own (w, b). This is a Lagrangian decomposition with the multipliers of the
copies of w at zero (Guignard and Kim, Lagrangean decomposition, 1987). Every V_g is a problem of the same kind with few
samples, which the tree solves fast, and any lower bound on it will do. What a sample costs against its neighbours is
counted in full, so these bounds are far above those of envelopes where many samples are left out.

Two groups can be merged, their shares added: V of the union is at least the sum of both, so the bound never falls. The
search begins with small groups and merges the two smallest whenever all are solved; the last two are not merged,
because that is the tree itself.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ...core.solving import Clock, Options
from ..search import Budget
from .incumbent import Points, given_incumbent, improve_incumbent
from .incumbent_jit import Best, alternate_from, offer
from .node.node_jit import Model, NodeWorkspace
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
        Part of the sum of the groups' bounds by which it is lowered: more than rounding errors of the sum.
    """

    first_size: int = 50
    means_rounds: int = 10
    slice_nodes: int = 256
    gap_tol: float = 1e-3
    rounding: float = 1e-12


CONSTANTS = GroupConstants()


def divide(X: Array, most: int) -> list[Rows]:
    """Divide the rows of X into groups of at most ``most`` neighbours, by bisection."""
    done, open_groups = [], [np.arange(len(X))]
    while open_groups:
        rows = open_groups.pop()
        if rows.size <= most:
            done.append(rows)
        else:
            is_near = _bisect(X[rows])
            open_groups += [rows[is_near], rows[~is_near]]
    return done


def _bisect(X: Array) -> NDArray[np.bool_]:
    """Divide rows by 2-means, begun at two rows that are far apart; equal rows by their order."""
    first = X[np.argmax(np.sum((X - X.mean(axis=0)) ** 2, axis=1))]
    centres = np.stack([first, X[np.argmax(np.sum((X - first) ** 2, axis=1))]])
    is_near = np.arange(len(X)) % 2 == 0
    for _ in range(CONSTANTS.means_rounds):
        distance = np.sum((X[:, None, :] - centres) ** 2, axis=2)
        now = distance[:, 0] < distance[:, 1]
        if now.all() or not now.any():
            break
        is_near = now
        centres = np.stack([X[is_near].mean(axis=0), X[~is_near].mean(axis=0)])
    return is_near


def suits_groups(model: Model) -> bool:
    """Whether there are samples for more than two groups."""
    return model.y.size > 2 * CONSTANTS.first_size


class Group:
    """Some of the samples, their share of the penalty, and the search for the optimum of the two.

    Attributes
    ----------
    work : int
        Nodes times their size.
    bound : float
        Lower bound on the share of the optimum; at first ``known``, the sum of the bounds of what was merged.
    found : list of (w, b)
        Where its search begins, and its solution when it is done.
    """

    def __init__(self, rows: Rows, share: float, known: float, found: Points) -> None:
        self.rows, self.share, self.bound, self.found = rows, share, known, list(found)
        self.search: TreeSearch | None = None
        self.done, self.work = False, 0

    def run(self, model: Model, options: Options, budget: Budget) -> None:
        """Go on with the search; forget its tree when it is done."""
        if self.search is None:
            if np.ptp(model.y[self.rows]) == 0.0:  # one class: a constant costs nothing
                self.done = True
                return
            self.search = self._begin(model, options, budget)
        self.search.run(budget)
        self.work, self.done = self.search.work * self.rows.size, self.search.done
        self.bound = max(self.bound, self.share * self.search.bound)
        if self.done:
            best = self.search.best
            self.found, self.search = [(best.w, float(best.b[0]))], None

    def _begin(self, model: Model, options: Options, budget: Budget) -> TreeSearch:
        rows = self.rows
        part = model._replace(
            a=model.a[rows], y=model.y[rows], cost=model.cost[rows] / self.share, given=model.given[rows],
            dist=np.ascontiguousarray(model.dist[np.ix_(rows, rows)]),
        )  # fmt: skip
        best, scratch = given_incumbent(part, self.found)
        clock = Clock(budget.until)
        clock.start = budget.clock.start
        improve_incumbent(part, best, scratch, self.found, clock)
        return TreeSearch(part, best, scratch, replace(options, gap_tol=CONSTANTS.gap_tol))


class GroupSearch:
    """The bound by groups. Stuck when the last two groups are solved.

    Work is counted in nodes of all samples: a node of half of them is half a node.
    """

    is_outdated = False

    def __init__(self, model: Model, best: Best, scratch: NodeWorkspace, options: Options) -> None:
        self.model, self.best, self.scratch, self.options = model, best, scratch, options
        parts = divide(model.a * model.y[:, None], CONSTANTS.first_size)
        self.groups = [Group(rows, 1.0 / len(parts), 0.0, self._points) for rows in parts]
        self.merged_work, self.bound = 0, 0.0

    @property
    def _points(self) -> Points:
        return [(self.best.w.copy(), float(self.best.b[0]))]

    @property
    def done(self) -> bool:
        """Whether the incumbent is proved to the tolerance asked for."""
        value, w = float(self.best.value[0]), self.best.w
        penalty = 0.5 * float(w @ w) if self.model.norm == 2 else float(np.abs(w).sum())
        return self.bound >= value - self.options.gap_tol * min(value, penalty)

    @property
    def is_stuck(self) -> bool:
        """Whether all groups are solved and at most two are left."""
        return len(self.groups) <= 2 and all(group.done for group in self.groups)

    @property
    def work(self) -> int:
        """Nodes so far, each counted by its part of the samples."""
        return math.ceil((self.merged_work + sum(group.work for group in self.groups)) / self.model.y.size)

    def run(self, budget: Budget) -> None:
        """Solve groups and merge them until done or stuck, or until the budget is spent."""
        end = self.work + budget.work
        while not self.done and not self.is_stuck and not budget.is_over and self.work < end:
            open_groups = [group for group in self.groups if not group.done]
            if not open_groups:
                self._merge()
                continue
            group = min(open_groups, key=lambda group: group.work)
            nodes = math.ceil(min(CONSTANTS.slice_nodes, (end - self.work) * self.model.y.size / group.rows.size))
            group.run(self.model, self.options, Budget(nodes, budget.clock, budget.until))
            if group.done:
                self._offer(*group.found[-1])
            total = math.fsum(group.bound for group in self.groups) * (1.0 - CONSTANTS.rounding)
            self.bound = max(self.bound, min(total, float(self.best.value[0])))

    def _offer(self, w: Array, b: float) -> None:
        """Try a group's solution, and what alternating minimisation makes of it, on all samples."""
        margins = self.model.a @ w + self.model.y * b
        offer(self.model, self.best, w, b, margins)
        self.scratch.alpha[:] = 0.0
        alternate_from(self.model, self.best, self.scratch, margins)

    def _merge(self) -> None:
        """Replace the two smallest groups by their union."""
        self.groups.sort(key=lambda group: group.rows.size)
        a, b, *others = self.groups
        self.merged_work += a.work + b.work
        rows = np.concatenate([a.rows, b.rows])
        union = Group(rows, a.share + b.share, a.bound + b.bound, [*self._points, *a.found, *b.found])
        self.groups = [*others, union]
