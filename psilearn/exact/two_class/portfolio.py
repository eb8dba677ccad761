"""The exact searches on one incumbent, in slices of time: they take turns, and the best bound counts.

Bounds of branch and bound rise about by the logarithm of time. So each search's record says how long it would take to
close the gap, and the one that would be done first has the next turn (an algorithm portfolio; Gomes and Selman,
Algorithm portfolios, 2001). With a limit on nodes the tree searches alone, without a clock: that can be repeated.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray

from ...core.losses import Loss
from ...core.result import InconsistentBoundError, Status
from ...core.solving import Clock, Options
from ..search import Budget, Search
from .groups import GroupSearch, suits_groups
from .hitting.search import HittingSearch
from .incumbent import Points, given_incumbent, improve_incumbent, polish
from .incumbent_jit import Best
from .local_search import LocalSearch
from .model import make_model
from .node.node_jit import Model, NodeWorkspace
from .plane.search import plane_search
from .progress import Progress
from .reduction import Reduction
from .settings import Settings
from .tree.crews import Crew, make_crew
from .tree.parallel import ParallelTree
from .tree.record_jit import TreeRecord, trimmed
from .tree.search import TreeSearch
from .violations.search import ViolationSearch, suits_violations

Array = NDArray[np.float64]


@dataclass(frozen=True)
class PortfolioConstants:
    """Constants of the portfolio, chosen on ``benchmarks/hard_margin.py`` and ``benchmarks/exact_psi.py``.

    Attributes
    ----------
    slice_growth : float
        Length of a slice as part of the seconds so far, if that is more than ``Settings.slice_seconds``.
    easy_seconds : float
        Seconds of a search's first turn before time goes to incumbents: easy problems are done by then.
    incumbent_share, far_share : float
        Part of a slice that goes to incumbents, and that part where the bound is far away.
    far : float
        Part of the incumbent value below which a bound is far away.
    vain_share : float
        What is left of that part if the second half of all the time for incumbents has brought nothing better.
    hopeless : float
        Multiple of the time left beyond which an expected time says nothing.
    near : float
        Part of the best bound that counts as near it.
    least_share, behind_share : float
        Part of the time that every search gets, however little its record promises, and that part where its bound is
        below half of the best.
    bound_share : float
        The same for the groups while they have the best bound: they cannot prove it, but if no search can in time,
        theirs is the bound that is reported.
    least_nodes, trial_share, hopeless_nodes, counted_share : float
        Where nodes are limited: the shortest slice, the part of all nodes after which the tree's record counts, the
        multiple of those left beyond which it leaves them to the groups, and the part of its nodes that these get
        anyway. A record of nodes says more than one of time.
    most_steps : int
        Steps of the local search where nodes are limited, at most.
    rounding : float
        Part of an objective by which a bound may exceed it: margins may miss t by 1e-7, which large costs multiply
        (4e-9 seen at C = 1e7).
    restart_seconds, restart_share : float
        Seconds for incumbents before a search begins anew, and after which they were in vain; and the part of the time
        limit that these may not exceed.
    """

    slice_growth: float = 0.25
    easy_seconds: float = 0.1
    incumbent_share: float = 0.15
    far_share: float = 0.3
    far: float = 0.8
    vain_share: float = 0.2
    hopeless: float = 100.0
    near: float = 0.9
    least_share: float = 0.08
    behind_share: float = 0.03
    bound_share: float = 0.1
    least_nodes: int = 128
    trial_share: float = 0.25
    hopeless_nodes: float = 16.0
    counted_share: float = 0.15
    most_steps: int = 4000
    rounding: float = 1e-7
    restart_seconds: float = 3.0
    restart_share: float = 0.05


CONSTANTS = PortfolioConstants()


@dataclass
class Outcome:
    """Incumbent (scaled), proved bound (scaled), multipliers of the convex rest, why the search ended, and its tree."""

    v: Array
    b: float
    alpha: Array
    value: float
    bound: float
    status: Status
    nodes: int
    engine: str = "psilearn"
    record: TreeRecord | None = None


def search(
    reduction: Reduction,
    loss: Loss,
    options: Options,
    clock: Clock,
    points: Points = (),
    given: NDArray[np.int8] | None = None,
) -> Outcome:
    """Search until the gap is closed, or time, nodes or the user's patience end.

    ``points`` are scaled (v, b) to start from; ``given`` states per group (FREE, IN or TOP) restrict the solutions.
    """
    model = make_model(reduction, loss, given)
    best, scratch = given_incumbent(model, points)
    portfolio, status, bound = None, Status.INTERRUPTED, 0.0
    crew = make_crew(options) if options.max_iter is None else None
    try:
        improve_incumbent(model, best, scratch, points, clock)
        portfolio = make_portfolio(model, best, scratch, options, crew)
        status = _run(portfolio, reduction.unit, options, clock)
        bound = portfolio.bound
    except KeyboardInterrupt:
        bound = portfolio.bound if portfolio else 0.0
    except InconsistentBoundError:  # the incumbent stands, bounds are withdrawn but for losses >= 0
        status = Status.STALLED
    finally:
        if crew is not None:
            crew.close()
    alpha = polish(model, best, scratch)
    value = float(best.value[0])
    nodes, engine = (portfolio.work, portfolio.engine) if portfolio else (0, "psilearn")
    tree = portfolio.tree.search if portfolio else None
    record = trimmed(tree.record) if isinstance(tree, TreeSearch) else None
    bound, status = not_above(bound, value, status)
    return Outcome(best.w, float(best.b[0]), alpha, value, bound, status, nodes, engine, record)


def not_above(bound: float, value: float, status: Status, rounding: float = CONSTANTS.rounding) -> tuple[float, Status]:
    """Return bound and status; a bound above a value that is attained by more than rounding is withdrawn."""
    if bound > value + rounding * abs(value):
        return 0.0, Status.STALLED  # penalty and losses are not negative
    return min(bound, value), status


def _run(portfolio: Portfolio, unit: float, options: Options, clock: Clock) -> Status:
    """Run slices, noting their bounds, until something ends the search; returns what."""
    settings, value = portfolio.settings, portfolio.best.value
    most = math.inf if options.max_iter is None else options.max_iter
    until = settings.first_slice_seconds if math.isinf(most) else math.inf
    while not portfolio.run(Budget(most - portfolio.work, clock, min(until, clock.limit))):
        clock.note(unit * value[0], unit * min(portfolio.bound, value[0]))
        if settings.enough(clock.history[-1].objective, clock.history[-1].bound):
            return Status.INTERRUPTED
        if clock.is_over or portfolio.work >= most:
            return Status.TIME_LIMIT if clock.is_over else Status.ITERATION_LIMIT
        until = clock.seconds + max(settings.slice_seconds, CONSTANTS.slice_growth * clock.seconds)
    return Status.OPTIMAL


@dataclass(eq=False)
class Member:
    """A search of the portfolio, made when its first turn comes, whether it ever ends with a proof, and its record."""

    make: Callable[[], Search]
    engine: str = "psilearn"
    can_prove: bool = True
    progress: Progress = field(default_factory=Progress)
    search: Search | None = None

    @property
    def is_able(self) -> bool:
        """Whether another turn can help."""
        return self.search is None or not self.search.is_stuck or self.search.is_outdated


def make_portfolio(
    model: Model, best: Best, scratch: NodeWorkspace, options: Options, crew: Crew | None = None
) -> Portfolio:
    """Collect the searches that suit the model. The tree knows the first incumbent; the others are made when needed."""
    if crew is None:
        tree = Member(lambda: TreeSearch(model, best, scratch, options))
    else:
        tree = Member(lambda: ParallelTree(model, best, scratch, options, crew))
    tree.search = tree.make()
    members = [tree, Member(lambda: HittingSearch(model, best, scratch, options), "psilearn with HiGHS")]
    groups = None
    if suits_groups(model):
        groups = Member(lambda: GroupSearch(model, best, scratch, options), can_prove=False)
    if groups is not None:
        members.insert(1, groups)
    if suits_violations(model):
        members.insert(0, Member(lambda: ViolationSearch(model, best, options)))
    enumeration = plane_search(model) if options.max_iter is None else None
    plane = None if enumeration is None else Member(partial(enumeration, model, best, options))
    local = LocalSearch(model, best, options.random_state)
    return Portfolio(best, local, members, tree, plane, groups, options.of(Settings))


class Portfolio:
    """Whose turn it is, and the best bound of all.

    In the plane an enumeration goes first, where the loss allows one, until it is done or stuck.
    Otherwise the search over violated sets (where it suits the loss), the tree and the hitting sets each have a turn,
    and from then on the one that is expected to be done first; the others keep a small share of the time. The search
    over violated sets begins anew when a better incumbent is known than at its root, since its bounds are built around
    the incumbent; more time goes to incumbents before that.
    """

    def __init__(
        self, best: Best, local: LocalSearch, members: list[Member], tree: Member, plane: Member | None = None,
        groups: Member | None = None, settings: Settings | None = None,
    ) -> None:  # fmt: skip
        self.best, self.local, self.members, self.tree, self.plane = best, local, members, tree, plane
        self.groups = groups
        self.settings = settings or Settings()
        self.bound, self.turn, self.engine = 0.0, 0, "psilearn"
        self.seconds, self.improved_at = 0.0, 0.0  # spent on incumbents, and how many when the last was found

    @property
    def work(self) -> int:
        """Nodes, states and convex problems of all searches."""
        members = self.members if self.plane is None else [self.plane, *self.members]
        return sum(member.search.work for member in members if member.search is not None)

    def run(self, budget: Budget) -> bool:
        """Give the next in turn its slice; whether the incumbent is proved."""
        self.turn += 1
        if self.plane is not None and self.plane.is_able:
            is_proved = self._run_alone(self.plane, budget)
            if self.plane.is_able:
                return is_proved
        if math.isfinite(budget.work):
            if self.turn == 1:
                steps = min(int(self.settings.steps_per_node * budget.work), CONSTANTS.most_steps)
                self.local.run(Budget(steps, budget.clock, budget.clock.limit))
            return self._run_counted(budget)
        member = self.next(budget.clock.left)
        if self._is_neglected(member):  # a long turn would take more than its share
            budget = budget.for_seconds(max(self.settings.slice_seconds, CONSTANTS.least_share * budget.clock.seconds))
        return self._run_turn(member, budget)

    def _run_counted(self, budget: Budget) -> bool:
        """Share a number of nodes between the tree and the groups. No clock is read, so the outcome can be repeated.

        The tree proves easy problems at once. Then the groups get a share, because their bounds rise fast, and if the
        tree, after a fair trial, will not be done in anything like the nodes that are left, all of them.
        """
        end = self.work + budget.work
        while self.work < end and not budget.is_over:
            left = end - self.work
            member, most = self._next_counted(left)
            nodes = math.ceil(min(max(CONSTANTS.least_nodes, min(CONSTANTS.slice_growth * self.work, most)), left))
            before = member.search.work if member.search is not None else 0
            if self._run_alone(member, Budget(nodes, budget.clock, budget.until)):
                return True
            assert member.search is not None
            member.progress.note(float(member.search.work - before), member.search.bound)
        return False

    def _next_counted(self, left: float) -> tuple[Member, float]:
        """Whose nodes come next, and how many at most."""
        groups, tree = self.groups, self.tree
        if groups is None or not groups.is_able or tree.progress.total == 0.0:
            return tree, left
        share = CONSTANTS.counted_share * tree.progress.total - groups.progress.total
        if share >= 0.0:
            return groups, share
        is_tried = tree.progress.total >= CONSTANTS.trial_share * (self.work + left)
        expected = tree.progress.expected_seconds(float(self.best.value[0]))
        return (groups if is_tried and expected > CONSTANTS.hopeless_nodes * left else tree), left

    def _run_alone(self, member: Member, budget: Budget) -> bool:
        """Give a search the whole budget."""
        member.search = member.search or member.make()
        member.search.run(budget)
        return self._is_proved_by(member)

    def _is_neglected(self, member: Member) -> bool:
        """Whether a search has had less than its least share of the time."""
        best = max(other.progress.bounds[-1] for other in self.members)
        bound, share = member.progress.bounds[-1], CONSTANTS.least_share
        if not member.can_prove and bound >= best:
            share = CONSTANTS.bound_share
        elif member.progress.total > 0.0 and bound < 0.5 * best:
            share = CONSTANTS.behind_share
        return member.progress.total <= share * sum(other.progress.total for other in self.members)

    def next(self, left: float = math.inf) -> Member:
        """Return the search that has had no turn or too little time, else the one expected to be done first.

        If none will be done in anything like the seconds that are left, those with the best bounds share them.
        """
        able = [member for member in self.members if member.is_able]
        for member in able:
            if self._is_neglected(member):
                return member
        goal = float(self.best.value[0])
        expected = [member.progress.expected_seconds(goal) if member.can_prove else math.inf for member in able]
        if min(expected) < CONSTANTS.hopeless * left:
            return able[int(np.argmin(expected))]
        best = max(member.progress.bounds[-1] for member in able)
        near = [member for member in able if member.progress.bounds[-1] >= CONSTANTS.near * best]
        return min(near, key=lambda member: member.progress.total)

    def _run_turn(self, member: Member, budget: Budget) -> bool:
        """Run a search for a slice, after a share of it went to incumbents; easy problems need none."""
        clock, began, seconds = budget.clock, budget.clock.seconds, 0.0
        search = member.search = member.search or member.make()
        patience = min(CONSTANTS.restart_seconds, CONSTANTS.restart_share * clock.limit)
        effort = self._incumbent_share(patience) * (budget.until - began)
        if member.progress.total == 0.0:
            search.run(budget.for_seconds(CONSTANTS.easy_seconds))
        elif search.is_outdated:
            effort = max(effort, patience)
            budget = Budget(budget.work, clock, min(budget.until + 1.5 * effort, clock.limit))
        if not search.done:
            with self._tree_beside(budget):
                seconds = self._improve(clock, effort)
            if search.is_outdated:
                member.progress = Progress(member.progress.total)
            with self._tree_beside(budget) if member is not self.tree else nullcontext():
                search.run(budget)
        member.progress.note(min(clock.seconds, budget.until) - began - seconds, search.bound)
        return self._is_proved_by(member) or (self._has_crew and self._is_proved_by(self.tree))

    @property
    def _has_crew(self) -> bool:
        """Whether the tree is searched by several hands, and so goes on beside the others."""
        return isinstance(self.tree.search, ParallelTree)

    def _tree_beside(self, budget: Budget) -> AbstractContextManager[None]:
        """Let the tree go on with the hands that are free while one thing is done that takes only one."""
        tree = self.tree.search
        return tree.beside(budget) if isinstance(tree, ParallelTree) else nullcontext()

    def _incumbent_share(self, patience: float) -> float:
        """Part of a slice that goes to incumbents; so many seconds without a better one are in vain."""
        is_far = self.turn > 2 and self.bound < CONSTANTS.far * self.best.value[0]
        in_vain = self.seconds > max(2.0 * self.improved_at, patience)
        share = CONSTANTS.far_share if is_far else CONSTANTS.incumbent_share
        return share * (CONSTANTS.vain_share if in_vain else 1.0)

    def _improve(self, clock: Clock, seconds: float) -> float:
        """Look for incumbents; the seconds that took."""
        began, before = clock.seconds, float(self.best.value[0])
        self.local.run(Budget(clock=clock, until=began + seconds))
        took = clock.seconds - began
        self.seconds += took
        if self.best.value[0] < before:
            self.improved_at = self.seconds
        return took

    def _is_proved_by(self, member: Member) -> bool:
        """Take over a search's bound if it is the best; whether it proves the incumbent."""
        assert member.search is not None
        if member.search.bound > self.bound:
            self.bound, self.engine = member.search.bound, member.engine
        return member.search.done
