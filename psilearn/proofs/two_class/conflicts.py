"""A search that proves bounds by conflicts: for losses where giving samples up is what costs most.

A *state* believes some samples (kept), gives some up (out), and leaves the others open. If believing a set of open
samples as well makes the objective reach the goal, the set is a conflict: each better function gives one of them up,
and pays at least the smallest price among them. Conflicts without common samples add up. A sample whose price on top of
that would reach the goal is kept, which makes other conflicts smaller. A state that all this does not close is divided
over a conflict: its first sample is out; or it is kept and the second is out; and so on; they cannot all be kept.

The convex problems are those of the exact search, and all that counts are their multipliers, rounded to whole numbers
and valued as the checker does (:mod:`.tree`). Disjoint conflicts as bounds are those of Codato and Fischetti,
Combinatorial Benders' cuts for mixed-integer linear programming, 2006; the division is Reiter's tree of hitting sets (A
theory of diagnosis from first principles, 1987).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ...core.clock import now
from ...exact.sample_state_jit import GONE, IN, OUT
from ...exact.two_class.model import make_workspace, solve_fixed
from ..statement import Record
from .node import Sparse, entries, sparse
from .tree import Replay

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

#: Part of the goal beyond which a convex problem is not solved: room for the rounding of its multipliers.
_BEYOND = 1e-4
#: States of samples as plain numbers, which numpy takes much faster than members of an enumeration.
_IN, _OUT, _GONE = int(IN), int(OUT), int(GONE)


class GivenUp(Exception):
    """The search ends without a proof: time is over, or a state has no conflict."""


@dataclass(eq=False, slots=True)
class Conflict:
    """Samples that are not all believed, the multipliers that show it, and the weights of earlier conflicts."""

    members: list[int]
    multipliers: Sparse
    weights: list[Weight]


@dataclass(eq=False, slots=True)
class Weight:
    """How much of a conflict counts, in units of multipliers, and which members must be known to be kept for that."""

    conflict: Conflict
    size: int
    needs: list[int]


@dataclass(eq=False, slots=True)
class Kept:
    """A sample that is believed, since giving it up reaches the goal with these conflicts, but for one of them.

    That one holds the sample itself (-1: none does). Samples that are kept at the same time share the list.
    """

    sample: int
    shared: list[Weight]
    without: int

    @property
    def weights(self) -> list[Weight]:
        """The weights that count."""
        return self.shared if self.without < 0 else self.shared[: self.without] + self.shared[self.without + 1 :]


@dataclass(eq=False, slots=True)
class State:
    """What was found in a state, and how it ends: by a leaf, after a division if there are ``parts``."""

    steps: list[Conflict | Kept] = field(default_factory=list)
    parts: list[tuple[int, State]] = field(default_factory=list)
    leaf: Sparse = field(default_factory=lambda: (np.zeros(0, np.intp), np.zeros(0)))
    weights: list[Weight] = field(default_factory=list)
    is_closed: bool = False

    def close(self, leaf: Sparse | None = None, weights: list[Weight] | None = None) -> None:
        """End the state by a leaf."""
        self.leaf, self.weights, self.is_closed = leaf or self.leaf, weights or [], True


@dataclass(eq=False, slots=True)
class Disjoint:
    """A conflict of a packing, its open members, and what it adds to the bound: the smallest price of those."""

    conflict: Conflict
    free: list[int]
    weight: Weight

    @classmethod
    def of(cls, conflict: Conflict, free: list[int], prices: list[int]) -> Disjoint:
        """Return the conflict with these members open."""
        size = min([prices[i] for i in free], default=0)
        needs = [i for i in conflict.members if prices[i] < size and i not in free]
        return cls(conflict, free, Weight(conflict, size, needs))


class Active:
    """Disjoint conflicts of a state: what they add to the bound adds up."""

    def __init__(self, prices: list[int], sets: list[Disjoint]) -> None:
        self.prices, self.sets = prices, sets

    def total(self, without: int = -1) -> int:
        """Return what all of them cost, but for one place in the list."""
        return sum(one.weight.size for place, one in enumerate(self.sets) if place != without)

    def weights(self, without: int = -1) -> list[Weight]:
        """Return what each of them counts, but for one place in the list."""
        return [one.weight for place, one in enumerate(self.sets) if place != without]

    def restrict(self, kept: Mask, out: Mask) -> None:
        """Forget conflicts that are resolved, and members that are kept."""
        sets = []
        for one in self.sets:
            if out[one.conflict.members].any():
                continue
            is_kept = kept[one.free]
            if is_kept.any():
                free = [i for i, known in zip(one.free, is_kept.tolist()) if not known]
                one = Disjoint.of(one.conflict, free, self.prices)
            sets.append(one)
        self.sets = sets

    def broken(self) -> Conflict | None:
        """Return a conflict whose members are all kept."""
        return next((one.conflict for one in self.sets if not one.free), None)


class ConflictSearch:
    """Proves the goal of a :class:`.tree.Replay` by conflicts; ``prices`` are the caps in units of multipliers."""

    def __init__(self, replay: Replay, prices: list[int], believed: list[int]) -> None:
        self.replay, self.model, self.prices = replay, replay.model, prices
        self.unit, self.goal, self.quantum = replay.unit, replay.safe_goal, replay.quantum
        self.price = np.array(prices, dtype=np.float64) * replay.quantum
        self.work, self.kept = make_workspace(self.model), np.zeros(self.model.y.size, np.bool_)
        self.kept[believed] = True
        self.root: State | None = None
        self.end = math.inf

    def run(self, seconds: float) -> bool:
        """Search; returns whether the goal is proved."""
        self.end = now() + seconds
        out = np.zeros(self.kept.size, np.bool_)
        try:
            self.root = self._expand(self.kept.copy(), out, [])
        except (GivenUp, RecursionError):
            return False
        return True

    # convex problems

    def _prove(self, believed: Mask, out: Mask, cutoff: float) -> Array | None:
        """Return whole multipliers that reach the cutoff where some are believed, some out, and others ignored."""
        state = np.where(out, _OUT, np.where(believed, _IN, _GONE)).astype(np.int8)
        ignored = float(self.price[state == _GONE].sum())
        solve_fixed(self.model, self.work, state, cutoff * (1.0 + _BEYOND) + ignored)
        low = np.where(state == _IN, self.model.t, -np.inf)
        high = np.where(state == _OUT, self.model.t, np.inf)
        a = self.replay.rounded(self.work.alpha, low, high)
        return a.copy() if self.replay.dual(a, low, high) >= cutoff else None

    def _conflict(self, open_: Mask, kept: Mask, out: Mask, active: Active, without: int = -1) -> Conflict | None:
        """Return a conflict among the open samples, made minimal by deletion; no members: the state is closed."""
        weights = active.weights(without)
        cutoff = self.goal - active.total(without) * self.quantum
        a = self._prove(open_ | kept, out, cutoff)
        if a is None:
            return None
        members = np.flatnonzero((a != 0) & open_)
        for i in members[np.argsort(np.abs(a[members]), kind="stable")]:
            if members.size < 2 or i not in members:
                continue
            fewer = kept.copy()
            fewer[members[members != i]] = True
            better = self._prove(fewer, out, cutoff)
            if better is not None:
                a, members = better, np.flatnonzero((better != 0) & open_)
        return Conflict(members.tolist(), sparse(a), weights)

    # states

    def _expand(self, kept: Mask, out: Mask, known: list[Disjoint]) -> State:
        """Close a state, dividing it if need be."""
        if now() > self.end:
            raise GivenUp
        state, active = State(), Active(self.prices, list(known))
        active.restrict(kept, out)
        while not self._closes(state, active, out):
            if self._keep(state, active, kept, out):
                self._shrink(state, active, kept, out)
                continue
            taken = np.zeros(kept.size, np.bool_)
            for one in active.sets:
                taken[one.free] = True
            conflict = self._conflict(~kept & ~out & ~taken, kept, out, active)
            if conflict is None:
                return self._divided(state, active, kept, out)
            self._add(state, active, conflict)
        return state

    def _closes(self, state: State, active: Active, out: Mask) -> bool:
        """Whether the state is closed, after trying to close it by its conflicts alone."""
        broken = active.broken()
        if broken is not None and not state.is_closed:
            state.close(weights=[self._all_of(broken)])
        if not state.is_closed and float(self.price[out].sum()) + active.total() * self.quantum >= self.goal:
            state.close(weights=active.weights())
        return state.is_closed

    def _all_of(self, conflict: Conflict) -> Weight:
        """Return a weight that closes a state in which all members are kept."""
        return Weight(conflict, math.ceil(self.goal / self.quantum) + 1, conflict.members)

    def _add(self, state: State, active: Active, conflict: Conflict, place: int = -1) -> None:
        """Note a conflict in place of another one or as a new one; without members it closes the state."""
        if not conflict.members:
            state.close(conflict.multipliers, conflict.weights)
            return
        state.steps.append(conflict)
        if place >= 0:
            active.sets.pop(place)
        active.sets.insert(max(place, 0), Disjoint.of(conflict, list(conflict.members), self.prices))

    def _keep(self, state: State, active: Active, kept: Mask, out: Mask) -> bool:
        """Keep the samples that cannot be given up; returns whether there are any."""
        paid, total = float(self.price[out].sum()), active.total() * self.quantum
        spared, holder = np.zeros(kept.size), np.full(kept.size, -1)
        for place, one in enumerate(active.sets):
            spared[one.free], holder[one.free] = one.weight.size * self.quantum, place
        new = np.flatnonzero(~kept & ~out & (paid + total + self.price - spared >= self.goal))
        shared = active.weights()
        state.steps += [Kept(i, shared, place) for i, place in zip(new.tolist(), holder[new].tolist())]
        kept[new] = True
        active.restrict(kept, out)
        return new.size > 0

    def _shrink(self, state: State, active: Active, kept: Mask, out: Mask) -> None:
        """Replace conflicts by smaller ones, now that more samples are kept."""
        for place in range(len(active.sets)):
            if active.broken() is not None or state.is_closed:
                return
            free, open_ = active.sets[place].free, np.zeros(kept.size, np.bool_)
            open_[free] = True
            conflict = self._conflict(open_, kept, out, active, place)
            if conflict is not None and len(conflict.members) < len(free):
                self._add(state, active, conflict, place)

    def _divided(self, state: State, active: Active, kept: Mask, out: Mask) -> State:
        """Divide over the conflict with the fewest open members."""
        if not active.sets:
            raise GivenUp
        fewest = min(active.sets, key=lambda one: len(one.free))
        kept = kept.copy()
        for i in fewest.free:
            gone = out.copy()
            gone[i] = True
            state.parts.append((i, self._expand(kept.copy(), gone, active.sets)))
            kept[i] = True
        state.close(weights=[self._all_of(fewest.conflict)])
        return state

    # the file

    def records(self) -> Iterator[Record]:
        """Yield the records of the proof, without conflicts and kept samples that nothing rests on."""
        assert self.root is not None
        _prune(self.root)
        number: dict[Conflict, int] = {}
        stack = [self._records(self.root, number)]
        while stack:
            item = next(stack[-1], None)
            if item is None:
                stack.pop()
            elif isinstance(item, State):
                stack.append(self._records(item, number))
            else:
                yield item

    def _records(self, state: State, number: dict[Conflict, int]) -> Iterator[Record | State]:
        """Yield the records of a state; a part of it stands for its own records."""
        known = len(number)
        for step in state.steps:
            if isinstance(step, Conflict):
                multipliers = {"multipliers": entries(step.multipliers)}
                yield {"conflict": step.members, **multipliers, **_weights(step.weights, number)}
                number[step] = len(number)
            else:
                yield {"split": [step.sample, "t"]}
                yield {"leaf": [], **_weights(step.weights, number)}
        for i, part in state.parts:
            yield {"split": [i, "t"]}
            yield part
        yield {"leaf": entries(state.leaf), **_weights(state.weights, number)}
        for conflict in list(number)[known:]:
            del number[conflict]


def _weights(weights: list[Weight], number: dict[Conflict, int]) -> Record:
    pairs = sorted([number[weight.conflict], weight.size] for weight in weights)
    return {"weights": pairs} if pairs else {}


def _prune(state: State) -> tuple[set[int], set[Conflict]]:
    """Drop steps that nothing later rests on; returns the kept samples and the conflicts that the state rests on."""
    samples, conflicts = set(state.leaf[0].tolist()), set[Conflict]()
    _rest_on(state.weights, samples, conflicts)
    for _, part in reversed(state.parts):
        for mine, theirs in zip((samples, conflicts), _prune(part)):
            mine.update(theirs)  # type: ignore[arg-type]
    steps = []
    for step in reversed(state.steps):
        if isinstance(step, Conflict):
            if step not in conflicts:
                continue
            samples.update(set(step.multipliers[0].tolist()) - set(step.members))
        elif step.sample not in samples:
            continue
        _rest_on(step.weights, samples, conflicts)
        steps.append(step)
    state.steps = steps[::-1]
    return samples, conflicts


def _rest_on(weights: list[Weight], samples: set[int], conflicts: set[Conflict]) -> None:
    for weight in weights:
        conflicts.add(weight.conflict)
        samples.update(weight.needs)
