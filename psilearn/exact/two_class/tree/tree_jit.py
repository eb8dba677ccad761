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
from ...envelope_jit import FEASIBLE, top_margin
from ...sample_state_jit import FLOOR, IN, LINEAR, OUT, TOP
from ..incumbent_jit import ROUNDING, alternate, offer, target_value
from ..node.active_set_jit import clear, copy
from ..node.node_jit import tighten
from ..node.pointers_jit import by_pointer
from ..slots_jit import pop, push
from .branching_jit import REACH, SCORE, branching_sample
from .record_jit import note_division
from .tightening_jit import tighten_lows

#: Counters of a search: nodes, proofs that contradict an incumbent (there must be none), and how many there are.
NODES, FALSE_PROOFS, COUNTERS = 0, 1, 2
#: Nodes by which a dive may exceed the number asked for, so that the clock is read in time.
_LONGEST_DIVE = 64
#: Nodes between two alternating minimisations from the margins of a relaxation that is no incumbent.
_ALTERNATE_EVERY = 32
#: Part of the distance between bound and incumbent that a bound must rise for its node to be solved once more.
_RISE = 0.1


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
    number: NDArray[np.int64]


@inner
def _take_node(pool, slot, work):
    work.b[0] = pool.intercept[slot]
    copy(pool.state[slot], work.state)
    copy(pool.alpha[slot], work.alpha)
    copy(pool.low[slot], work.low)
    copy(pool.high[slot], work.high)


@inner
def _open_node(pool, bound, work, number):
    slot = push(pool, bound)
    pool.number[slot] = number
    pool.intercept[slot] = work.b[0]
    copy(work.state, pool.state[slot])
    copy(work.alpha, pool.alpha[slot])
    copy(work.low, pool.low[slot])
    copy(work.high, pool.high[slot])


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
        if work.state[i] == LINEAR:
            continue
        u, least = best.u[i], model.t
        if u < work.low[i] or u > work.high[i]:
            return False  # the node is only bound to hold what is better than the incumbent
        if work.state[i] == OUT and u >= model.t - FEASIBLE:
            return False
        if work.state[i] == IN and u < model.t - FEASIBLE:
            return False
        if work.state[i] == TOP:
            least = top_margin(model.breakpoints, model.t)
        elif work.state[i] == FLOOR:
            least = model.cost[i]
        if least - FEASIBLE <= u < least:
            price += work.alpha[i] * (least - u)
    return bound > best.value[0] + allowance + price


@by_pointer
@kernel
def advance(solve, model, work, pool, best, scratch, history, floor, counters, record, gap_tol, n_nodes, effort):
    """Process about ``n_nodes`` nodes, best bound first, each followed by a dive; fewer if tree or memory end.

    A trial of both children of a sample counts as a node, and so does a tilted problem. ``scratch`` is memory for
    alternating minimisation and trials, ``history`` what :mod:`.branching_jit` and :mod:`.tightening_jit` learn,
    ``floor`` the smallest bound of a discarded node, ``record`` the divisions (:mod:`.record_jit`).
    """
    n = model.y.size
    diving = False
    done, number = 0, np.int64(-1)
    while done < n_nodes or diving:
        allowance = ROUNDING * best.value[0]
        target = target_value(model, best, gap_tol)
        if not diving:
            if pool.sizes[0] == 0 or pool.sizes[1] < 4:
                return
            slot = pop(pool, pool.sizes[1] < n + 8)
            bound = pool.bound[slot]
            if bound >= target:
                floor[0] = min(floor[0], bound)
                continue
            _take_node(pool, slot, work)
            number = pool.number[slot]
        diving = False
        done += 1
        counters[NODES] += 1
        pruned, fixed = False, 0
        for round in range(effort):
            value, _ = solve(model, work, target)
            if _is_false_proof(model, best, work, value, allowance):
                counters[FALSE_PROOFS] += 1
                return
            improved = value > bound + _RISE * (best.value[0] - bound)
            bound = max(bound, value)
            if bound >= target:
                pruned = True
                break
            if offer(model, best, work.w, work.b[0], work.u) or (
                round == 0 and counters[NODES] % _ALTERNATE_EVERY == 1
            ):
                clear(scratch.alpha)
                scratch.b[0] = work.b[0]
                alternate(solve, model, scratch, best, work.u)
                allowance = ROUNDING * best.value[0]
                target = target_value(model, best, gap_tol)
            fixed = tighten(model, work, best.value[0] - value + allowance)
            if fixed == 0 and not improved:
                break
        if not pruned and model.norm == 2:
            bound, solved = tighten_lows(
                solve, model, work, scratch, history[REACH], history[SCORE], best.value[0] + allowance, bound, target,
                0.01 * allowance, n_nodes + _LONGEST_DIVE,
            )  # fmt: skip
            counters[NODES] += solved
            done += solved
            offer(model, best, work.w, work.b[0], work.u)
            if _is_false_proof(model, best, work, bound, allowance):
                counters[FALSE_PROOFS] += 1
                return
            pruned = bound >= target
        if pruned:
            floor[0] = min(floor[0], bound)
            continue
        who, is_decided, trials = branching_sample(
            solve, model, work, scratch, history, bound, target, 0.01 * allowance
        )
        done += trials
        counters[NODES] += trials
        if who < n:
            number = note_division(record, number, who)
        if is_decided and number >= 0 and work.state[who] == IN:
            number += 1
        if is_decided or (who == n and fixed > 0):  # the margins do not know of the last fixings yet
            diving = done < n_nodes + _LONGEST_DIVE
            if not diving:
                _open_node(pool, bound, work, number)
            continue
        if who == n:
            floor[0] = min(floor[0], bound)
            continue
        go_in = work.u[who] >= model.t  # what the relaxation leaves far below t is probably left out
        work.state[who] = OUT if go_in else IN
        other = number + 1 if number >= 0 else number
        _open_node(pool, bound, work, number if go_in else other)
        work.state[who] = IN if go_in else OUT
        number = other if go_in else number
        diving = pool.sizes[1] >= 4 and done < n_nodes + _LONGEST_DIVE
        if not diving:
            _open_node(pool, bound, work, number)
