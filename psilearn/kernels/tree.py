"""Branch and bound for  min 1/2 ||w||^2 + sum_i cost_i l(u_i)  with a loss in normal form, two classes.

A node fixes some samples IN (u >= t, pays g) or OUT (u <= t, pays cap) and knows bounds low <= u <= high that every
better solution in it obeys; the other samples pay the convex envelope of their loss on [low, high]. Bounds are values
of dual feasible points. For multipliers alpha with dual value D and w_alpha = sum_i alpha_i a_i, every (w, b) of the
node obeys

    F(w, b) >= D + 1/2 ||w - w_alpha||^2 + sum_i FY_i(u_i),      FY_i(u) = phi_i(u) + alpha_i u - gain_i(alpha_i) >= 0,

because sum_i y_i alpha_i = 0. So what is better than the incumbent value UB satisfies 1/2 ||w - w_alpha||^2 + FY_j(u_j)
<= UB - D for every member j of the basis, and since u_i - u_i(alpha) = y_i <w - w_alpha, x_i - x_j> + y_i y_j (u_j -
tau_j), each margin is confined to an interval, the smaller the better the bound: samples whose interval lies on one
side of t are fixed, the others get a tighter envelope.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba.extending import overload
from numpy.typing import NDArray

from .ascent import CUT_OFF, Basis, Terms, ascend, clear, copy, dot
from .lp_ascent import Tableau, lp_ascend
from .pieces import (
    FREE,
    GONE,
    IN,
    OUT,
    TOP,
    convex_value,
    dual_gain,
    fill_piece,
    inner,
    kernel,
    loss_value,
    piece_value,
    top_margin,
)

#: Part of the incumbent value that rounding errors of a bound never reach.
ROUNDING = 1e-10
#: A margin this little below t satisfies u >= t.
FEASIBLE = 1e-7
_NODES, _FALSE_PROOF, _LOCAL_SEARCHES = 0, 1, 2


class Model(NamedTuple):
    """The scaled problem: rows a_i = y_i x_i, labels, costs, distances between samples, the loss, the power of the
    norm, and the states that every solution must respect (FREE, IN or TOP)."""

    a: NDArray[np.float64]
    y: NDArray[np.float64]
    cost: NDArray[np.float64]
    dist: NDArray[np.float64]
    knots: NDArray[np.float64]
    slopes: NDArray[np.float64]
    t: float
    cap: float
    norm: int
    given: NDArray[np.int8]


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


class Work(NamedTuple):
    """The node at hand and scratch memory."""

    state: NDArray[np.int8]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    alpha: NDArray[np.float64]
    w: NDArray[np.float64]
    b: NDArray[np.float64]
    u: NDArray[np.float64]
    terms: Terms
    basis: Basis | Tableau


@kernel
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


@inner
def fill_terms(model, work):
    """Write the pieces of all samples of the node at hand."""
    for i in range(model.y.size):
        fill_piece(
            i, work.state[i], work.low[i], work.high[i], model.cost[i], model.knots, model.slopes, model.t, model.cap,
            work.terms.tau, work.terms.vert, work.terms.number, work.terms.const,
        )  # fmt: skip


@inner
def penalty(model, w):
    """Evaluate 1/2 ||w||^2 or ||w||_1."""
    if model.norm == 2:
        return 0.5 * dot(w, w)
    total = 0.0
    for k in range(w.size):
        total += abs(w[k])
    return total


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


@kernel
def local_search(model, best, work, u):
    """Fix the regions that the margins ``u`` suggest, solve the convex rest, and repeat while that improves.

    ``work`` is scratch memory of its own; its multipliers are the warm start.
    """
    previous = np.inf
    for _ in range(10):
        for i in range(u.size):
            capped = u[i] < model.t - FEASIBLE or convex_value(u[i], model.knots, model.slopes) > model.cap
            work.state[i] = model.given[i] if model.given[i] != FREE else (GONE if capped else IN)
        value, flag = solve_node(model, work, best.value[0])
        if flag == CUT_OFF or value >= previous:
            return
        previous = value
        offer(model, best, work.w, work.b[0], work.u)
        u = work.u


def _bound_l2(basis, model, work, cutoff):
    limit = 20 * model.y.size + 100
    return ascend(model.a, model.y, work.alpha, work.w, work.b, work.u, work.terms, basis, cutoff, limit)


def _bound_l1(basis, model, work, cutoff):
    limit = 20 * model.y.size + 100
    return lp_ascend(work.alpha, work.w, work.b, work.u, work.terms, basis, cutoff, limit)


def bound_node(basis, model, work, cutoff):
    """Solve the node at hand by the ascent that its basis belongs to; returns (bound, flag)."""
    return (_bound_l2 if isinstance(basis, Basis) else _bound_l1)(basis, model, work, cutoff)


@overload(bound_node, jit_options={"error_model": "numpy"})
def _typed_bound_node(basis, model, work, cutoff):
    return _bound_l2 if basis.instance_class is Basis else _bound_l1


def _count_l2(basis):
    return basis.size[0]


def _count_l1(basis):
    return 1


def count_anchors(basis):
    """Number of ways :func:`anchor` has to confine a margin."""
    return (_count_l2 if isinstance(basis, Basis) else _count_l1)(basis)


@overload(count_anchors)
def _typed_count_anchors(basis):
    return _count_l2 if basis.instance_class is Basis else _count_l1


def _anchor_l2(basis, model, work, i, r):
    j, k = basis.members[r], basis.piece[r]
    rise, fall = work.alpha[j] - work.terms.vert[j, k], work.terms.vert[j, k + 1] - work.alpha[j]
    if model.y[i] != model.y[j]:
        rise, fall = fall, rise
    return model.dist[i, j] ** 2, rise, fall


def _anchor_l1(basis, model, work, i, r):
    rise, fall = np.inf, np.inf
    for q in range(basis.theta.size):
        share = dot(basis.rows[i], basis.inverse[:, q])
        if abs(share) > 1e-12:
            j, k = basis.members[q], basis.piece[q]
            up = max(0.0, basis.full[j] - work.terms.vert[j, k])
            down = max(0.0, work.terms.vert[j, k + 1] - basis.full[j])
            if share < 0.0:
                up, down = down, up
            rise, fall = min(rise, up / abs(share)), min(fall, down / abs(share))
    return 0.0, rise, fall


def anchor(basis, model, work, i, r):
    """Return (r2, rise, fall): moving the margin of i up by s costs at least min over x + z = s of x^2/2/r2 + rise |z|.

    2-norm, member j of the basis: r2 = ||x_i - x_j||^2, and ``rise`` is the least price per unit of moving u_j with it.
    1-norm: u_i - u_i(alpha) = sum_q share_q (u_q - tau_q) over the basic terms q, each of which has its price per unit.
    """
    return (_anchor_l2 if isinstance(basis, Basis) else _anchor_l1)(basis, model, work, i, r)


@overload(anchor, jit_options={"error_model": "numpy"})
def _typed_anchor(basis, model, work, i, r):
    return _anchor_l2 if basis.instance_class is Basis else _anchor_l1


@kernel
def solve_node(model, work, cutoff):
    """Write the terms of the node at hand and solve it; returns (bound, flag)."""
    fill_terms(model, work)
    return bound_node(work.basis, model, work, cutoff)


@inner
def _cost_of_shift(shift, r2, kappa):
    """Least 1/2 |x|^2 / r2 + kappa |z| with x + z = shift: what moving a margin by ``shift`` costs."""
    if shift <= 0.0:
        return 0.0
    if r2 <= 0.0:
        return kappa * shift
    if shift <= kappa * r2:
        return 0.5 * shift * shift / r2
    return kappa * shift - 0.5 * kappa * kappa * r2


@inner
def _reach(slack, r2, kappa):
    """Largest shift that costs at most ``slack``: the inverse of :func:`_cost_of_shift`."""
    if kappa <= 0.0:
        return np.inf
    if r2 <= 0.0:
        return slack / kappa
    if 2.0 * slack <= kappa * kappa * r2:
        return np.sqrt(2.0 * slack * r2)
    return slack / kappa + 0.5 * kappa * r2


@inner
def tighten(model, work, slack):
    """Shrink [low, high] of the free samples and fix those whose region is decided; returns the number of fixings."""
    terms, basis = work.terms, work.basis
    fixed = 0
    for i in range(model.y.size):
        if work.state[i] != FREE or basis.place[i] >= 0:
            continue
        alpha_i, u_i = work.alpha[i], work.u[i]
        paid = terms.const[i] + dual_gain(i, alpha_i, terms.tau, terms.vert, terms.number)
        low, high = work.low[i], work.high[i]
        out_cost, in_shift_cost = 0.0, 0.0
        for r in range(count_anchors(basis)):
            r2, rise, fall = anchor(basis, model, work, i, r)
            high = min(high, u_i + _reach(slack, r2, rise))
            low = max(low, u_i - _reach(slack, r2, fall))
            in_shift_cost = max(in_shift_cost, _cost_of_shift(model.t - u_i, r2, rise))
            if alpha_i < fall:
                shift = max(0.0, max(u_i - model.t, alpha_i * r2))
                cost = _cost_of_shift(shift, r2, fall) + alpha_i * (u_i - shift)
                out_cost = max(out_cost, cost + model.cost[i] * model.cap - paid)
        work.low[i], work.high[i] = low, high
        in_gain = _gain_inside(model, i, alpha_i)
        if low >= model.t or out_cost > slack:
            work.state[i] = IN
            fixed += 1
        elif high < model.t or in_shift_cost + in_gain - paid > slack:
            work.state[i] = OUT
            fixed += 1
    return fixed


@inner
def _gain_inside(model, i, alpha):
    """Least value of cost_i g(u) + alpha u over u >= t."""
    total, rest = 0.0, alpha
    for k in range(model.knots.size):
        if model.knots[k] > model.t and rest > 0.0:
            part = min(rest, model.cost[i] * model.slopes[k])
            total += model.knots[k] * part
            rest -= part
    return total + model.t * rest


@inner
def _is_false_proof(model, best, work, bound, allowance):
    """Whether the incumbent lies in the node and yet is below its bound: the one thing that must never happen.

    The incumbent may miss a floor u_i >= t by FEASIBLE. It is then worth its value plus the price of that, alpha_i
    (t - u_i): no less than the bound by weak duality, however large the costs are.
    """
    if bound <= best.value[0] + allowance:
        return False
    price = 0.0
    for i in range(model.y.size):
        u = best.u[i]
        if u < work.low[i] or u > work.high[i]:
            return False  # the node is only bound to hold what is better than the incumbent
        if work.state[i] == OUT and u >= model.t - FEASIBLE:
            return False
        if work.state[i] == IN:
            if u < model.t - FEASIBLE:
                return False
            price += work.alpha[i] * max(0.0, model.t - u)
        if work.state[i] == TOP:
            price += work.alpha[i] * max(0.0, top_margin(model.knots, model.t) - u)
    return bound > best.value[0] + allowance + price


@inner
def _branching_sample(model, work):
    """The free sample whose decision should lift both children most, and how far its envelope is below its loss.

    OUT raises the sample's cost to the cap. IN raises it to g, and where u < t the margin must also move, which costs
    about half the square of the distance (samples have unit size). The product of both estimates decides.
    """
    n = model.y.size
    most, who, gap_of_who = -1.0, n, 0.0
    t = work.terms
    for i in range(n):
        if work.state[i] == FREE:
            u = work.u[i]
            paid = piece_value(i, u, t.tau, t.vert, t.number, t.const)
            gap = model.cost[i] * loss_value(u, model.knots, model.slopes, model.t, model.cap, 0.0) - paid
            if gap > 1e-13 * model.cost[i]:
                out_rise = max(0.0, model.cost[i] * model.cap - paid)
                in_rise = max(0.0, model.cost[i] * convex_value(max(u, model.t), model.knots, model.slopes) - paid)
                if u < model.t:
                    in_rise += 0.5 * (model.t - u) ** 2
                score = out_rise * in_rise
                if score > most:
                    most, who, gap_of_who = score, i, gap
    return who, gap_of_who


@kernel
def advance(model, pool, best, work, search, counters, gap_tol, n_nodes, effort):
    """Process about ``n_nodes`` nodes, best bound first, each followed by a dive; fewer if tree or memory end."""
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
            value, _ = solve_node(model, work, target)
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
                local_search(model, best, search, work.u)
                allowance = ROUNDING * best.value[0]
                target = best.value[0] - gap_tol * min(best.value[0], penalty(model, best.w)) - allowance
            fixed = tighten(model, work, best.value[0] - value + allowance)
            if fixed == 0 and not improved:
                break
        if pruned:
            best.floor[0] = min(best.floor[0], bound)
            continue
        who, gap = _branching_sample(model, work)
        if who == n or gap <= 0.01 * allowance:
            if fixed > 0:  # the margins do not know of the last fixings yet
                diving = True
                continue
            best.floor[0] = min(best.floor[0], bound)
            continue
        go_in = work.u[who] >= model.t  # what the relaxation leaves far below t is probably left out
        work.state[who] = OUT if go_in else IN
        _open_node(pool, bound, work)
        work.state[who] = IN if go_in else OUT
        diving = pool.sizes[1] >= 4
        if not diving:
            _open_node(pool, bound, work)
