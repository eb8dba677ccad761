"""Branch and bound for  min 1/2 ||w||^2 + sum_i cost_i l(u_i)  with a loss in normal form, two classes.

Open nodes wait in a heap, smallest bound first; each node taken out is followed down to a leaf (a dive). What a node is
and how it is bounded is written in :mod:`psilearn.exact.two_class.node.node_jit`, which sample
divides it in :mod:`.branching_jit`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ....core._jit import inner, kernel
from ..node.active_set_jit import clear, copy
from ..node.ascent_jit import CUT_OFF
from ..node.envelope_jit import FEASIBLE, FREE, GONE, IN, OUT, TOP, convex_value, loss_value, top_margin
from ..node.node_jit import Model, Work, penalty, solve_node, tighten
from ..node.pointers_jit import by_pointer
from .branching_jit import branching_sample

#: Part of the incumbent value that rounding errors of a bound never reach.
ROUNDING = 1e-10
#: Value beyond which nothing is a solution.
UNBEARABLE = 1e15
_NODES, _FALSE_PROOF, _LOCAL_SEARCHES = 0, 1, 2
#: Nodes by which a dive may exceed the number asked for, so that the clock is looked at in time.
_LONGEST_DIVE = 64


class Pool(NamedTuple):
    """Open nodes: a heap of slots ordered by bound, and the slots' contents."""

    heap: NDArray[np.int64]
    spare: NDArray[np.int64]
    sizes: NDArray[np.int64]
    bound: NDArray[np.float64]
    intercept: NDArray[np.float64]
    state: NDArray[np.int8]
    alpha: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]


class Best(NamedTuple):
    """The incumbent: value, w, b, and its margins; ``floor`` is the smallest bound of a discarded node."""

    value: NDArray[np.float64]
    w: NDArray[np.float64]
    b: NDArray[np.float64]
    u: NDArray[np.float64]
    floor: NDArray[np.float64]


@inner
def push(pool, bound):
    """Open a node and return its slot; the caller fills it."""
    slot = pool.spare[pool.sizes[1] - 1]
    pool.sizes[1] -= 1
    pool.bound[slot] = bound
    heap, i = pool.heap, pool.sizes[0]
    pool.sizes[0] += 1
    while i > 0 and pool.bound[heap[(i - 1) // 2]] > bound:
        heap[i] = heap[(i - 1) // 2]
        i = (i - 1) // 2
    heap[i] = slot
    return slot


@inner
def pop(pool, scarce):
    """Close a node and return its slot, whose contents stay until the next push.

    It is the node with the smallest bound, or, when memory is scarce, the last leaf of the heap.
    """
    heap = pool.heap
    pool.sizes[0] -= 1
    size = pool.sizes[0]
    last = heap[size]
    if scarce:
        pool.spare[pool.sizes[1]] = last
        pool.sizes[1] += 1
        return last
    first = heap[0]
    i = 0
    while 2 * i + 1 < size:
        c = 2 * i + 1
        if c + 1 < size and pool.bound[heap[c + 1]] < pool.bound[heap[c]]:
            c += 1
        if pool.bound[heap[c]] >= pool.bound[last]:
            break
        heap[i] = heap[c]
        i = c
    heap[i] = last
    pool.spare[pool.sizes[1]] = first
    pool.sizes[1] += 1
    return first


@inner
def _take_node(pool, slot, work):
    work.b[0] = pool.intercept[slot]
    for i in range(work.alpha.size):
        work.state[i] = pool.state[slot, i]
        work.alpha[i] = pool.alpha[slot, i]
        work.low[i] = pool.low[slot, i]
        work.high[i] = pool.high[slot, i]


@inner
def _open_node(pool, bound, work):
    slot = push(pool, bound)
    pool.intercept[slot] = work.b[0]
    for i in range(work.alpha.size):
        pool.state[slot, i] = work.state[i]
        pool.alpha[slot, i] = work.alpha[i]
        pool.low[slot, i] = work.low[i]
        pool.high[slot, i] = work.high[i]


@kernel
def true_value(model, w, u):
    """Evaluate the objective at (w, margins)."""
    total = penalty(model, w)
    for i in range(u.size):
        total += model.cost[i] * loss_value(u[i], model.knots, model.slopes, model.t, model.cap, FEASIBLE)
    return total


@kernel
def offer(model, best, w, b, u):
    """Make (w, b) the incumbent if it is better and respects the given states; returns whether it did."""
    value = true_value(model, w, u)
    if value < best.value[0]:
        for i in range(u.size):
            if model.given[i] == IN and u[i] < model.t - FEASIBLE:
                return False
            if model.given[i] == TOP and u[i] < top_margin(model.knots, model.t) - FEASIBLE:
                return False
        best.value[0] = value
        best.b[0] = b
        copy(w, best.w)
        copy(u, best.u)
        return True
    return False


@inner
def _improve(solve, model, work, best, u):
    previous = np.inf
    for _ in range(10):
        for i in range(u.size):
            capped = u[i] < model.t - FEASIBLE or convex_value(u[i], model.knots, model.slopes) > model.cap
            work.state[i] = model.given[i] if model.given[i] != FREE else (GONE if capped else IN)
        value, flag = solve(model, work, min(best.value[0], UNBEARABLE))
        if flag == CUT_OFF or value >= previous:
            return
        previous = value
        offer(model, best, work.w, work.b[0], work.u)
        u = work.u


@by_pointer
@kernel
def _search_locally(solve, model, work, best, u):
    _improve(solve, model, work, best, u)


def local_search(model: Model, best: Best, work: Work, u: NDArray[np.float64]) -> None:
    """Fix the regions that the margins ``u`` suggest, solve the convex rest, and repeat while that improves.

    ``work`` is scratch memory of its own; its multipliers are the warm start.
    """
    _search_locally(model, work, best, np.ascontiguousarray(u, dtype=np.float64))


@inner
def _is_false_proof(model, best, work, bound, allowance):
    """Whether the incumbent lies in the node and yet is below its bound: the one thing that must never happen.

    The incumbent may miss t (or the top) by FEASIBLE and pay as if it did not. Its worth is then its value plus the
    price of that, alpha_i (t - u_i): no less than the bound by weak duality, however large the costs are.
    """
    if bound <= best.value[0] + allowance:
        return False
    price = 0.0
    for i in range(model.y.size):
        u, floor = best.u[i], model.t
        if u < work.low[i] or u > work.high[i]:
            return False  # the node is only bound to hold what is better than the incumbent
        if work.state[i] == OUT and u >= model.t - FEASIBLE:
            return False
        if work.state[i] == IN and u < model.t - FEASIBLE:
            return False
        if work.state[i] == TOP:
            floor = top_margin(model.knots, model.t)
        if floor - FEASIBLE <= u < floor:
            price += work.alpha[i] * (floor - u)
    return bound > best.value[0] + allowance + price


@by_pointer
@kernel
def advance(solve, model, work, pool, best, search, history, counters, gap_tol, n_nodes, effort):
    """Process about ``n_nodes`` nodes, best bound first, each followed by a dive; fewer if tree or memory end.

    A trial of both children of a sample counts as a node.

    ``search`` is scratch memory for local searches and trials, ``history`` what :mod:`.branching_jit` learns.
    """
    n = model.y.size
    diving = False
    done = 0
    while done < n_nodes or diving:
        allowance = ROUNDING * best.value[0]
        target = best.value[0] - gap_tol * min(best.value[0], penalty(model, best.w)) - allowance
        if not diving:
            if pool.sizes[0] == 0 or pool.sizes[1] < 4:
                return
            slot = pop(pool, pool.sizes[1] < n + 8)
            bound = pool.bound[slot]
            if bound >= target:
                best.floor[0] = min(best.floor[0], bound)
                continue
            _take_node(pool, slot, work)
        diving = False
        done += 1
        counters[_NODES] += 1
        pruned, fixed = False, 0
        for round in range(effort):
            value, _ = solve(model, work, target)
            if _is_false_proof(model, best, work, value, allowance):
                counters[_FALSE_PROOF] += 1
                return
            improved = value > bound + 0.1 * (best.value[0] - bound)
            bound = max(bound, value)
            if bound >= target:
                pruned = True
                break
            if offer(model, best, work.w, work.b[0], work.u) or (round == 0 and counters[_NODES] % 32 == 1):
                counters[_LOCAL_SEARCHES] += 1
                clear(search.alpha)
                search.b[0] = work.b[0]
                _improve(solve, model, search, best, work.u)
                allowance = ROUNDING * best.value[0]
                target = best.value[0] - gap_tol * min(best.value[0], penalty(model, best.w)) - allowance
            fixed = tighten(model, work, best.value[0] - value + allowance)
            if fixed == 0 and not improved:
                break
        if pruned:
            best.floor[0] = min(best.floor[0], bound)
            continue
        who, is_decided, trials = branching_sample(solve, model, work, search, history, bound, target, 0.01 * allowance)
        done += trials
        counters[_NODES] += trials
        if is_decided:
            diving = True
            continue
        if who == n:
            if fixed > 0:  # the margins do not know of the last fixings yet
                diving = True
                continue
            best.floor[0] = min(best.floor[0], bound)
            continue
        go_in = work.u[who] >= model.t  # what the relaxation leaves far below t is probably left out
        work.state[who] = OUT if go_in else IN
        _open_node(pool, bound, work)
        work.state[who] = IN if go_in else OUT
        diving = pool.sizes[1] >= 4 and done < n_nodes + _LONGEST_DIVE
        if not diving:
            _open_node(pool, bound, work)


__all__ = ["FEASIBLE", "ROUNDING", "UNBEARABLE", "Best", "Model", "Pool", "Work", "advance", "local_search",
           "loss_value", "offer", "pop", "push", "solve_node", "true_value"]  # fmt: skip
