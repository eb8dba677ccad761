"""One node of the branch and bound for  min 1/2 ||w||^2 + sum_i cost_i l(u_i)  with a loss in normal form, two classes.

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

from typing import Any, NamedTuple

import numpy as np
from numba.extending import overload
from numpy.typing import NDArray

from ....core._jit import inner, shared_kernel
from ...envelope_jit import FEASIBLE
from ...sample_state_jit import FREE, IN, OUT
from .active_set_jit import Basis, Terms, dot
from .ascent_jit import ascend
from .pieces_jit import dual_gain, fill_piece
from .simplex_jit import Tableau, lp_ascend


class Model(NamedTuple):
    """The scaled problem: rows a_i = y_i x_i, labels, costs, distances between samples, the loss, the power of the
    norm, and the states that every solution must respect (FREE, IN or TOP)."""

    a: NDArray[np.float64]
    y: NDArray[np.float64]
    cost: NDArray[np.float64]
    dist: NDArray[np.float64]
    breakpoints: NDArray[np.float64]
    slopes: NDArray[np.float64]
    t: float
    cap: float
    norm: int
    given: NDArray[np.int8]


class NodeWorkspace(NamedTuple):
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


@inner
def fill_terms(model, work):
    """Write the pieces of all samples of the node at hand.

    Arrays are handed over one by one: numba passes a tuple by value, which takes longer than the work itself.
    """
    for i in range(model.y.size):
        fill_piece(
            i, work.state[i], work.low[i], work.high[i], model.cost[i], model.breakpoints, model.slopes, model.t,
            model.cap, work.terms.tau, work.terms.vert, work.terms.number, work.terms.const,
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
    return model.dist[i, j] * model.dist[i, j], rise, fall


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


@shared_kernel
def solve_l2(model, work, cutoff):
    """Write the terms of the node at hand and solve it, 2-norm."""
    fill_terms(model, work)
    limit = 20 * model.y.size + 100
    return ascend(model.a, model.y, work.alpha, work.w, work.b, work.u, work.terms, work.basis, cutoff, limit)


@shared_kernel
def solve_l1(model, work, cutoff):
    """Write the terms of the node at hand and solve it, 1-norm."""
    fill_terms(model, work)
    limit = 20 * model.y.size + 100
    return lp_ascend(work.alpha, work.w, work.b, work.u, work.terms, work.basis, cutoff, limit)


def node_solver(model: Model) -> Any:
    """Return the kernel that solves nodes of this model."""
    return solve_l2 if model.norm == 2 else solve_l1


def solve_node(model: Model, work: NodeWorkspace, cutoff: float) -> tuple[float, int]:
    """Solve the node at hand; returns (bound, flag) and leaves the solution in ``work``."""
    return node_solver(model)(model, work, float(cutoff))


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
        paid = terms.const[i] + dual_gain(i, alpha_i, terms)
        low, high = work.low[i], work.high[i]
        out_cost, in_shift_cost = 0.0, 0.0
        for r in range(count_anchors(basis)):
            r2, rise, fall = anchor(basis, model, work, i, r)
            high = min(high, u_i + _reach(slack, r2, rise))
            low = max(low, u_i - _reach(slack, r2, fall))
            in_shift_cost = max(in_shift_cost, _cost_of_shift(model.t - FEASIBLE - u_i, r2, rise))
            if alpha_i < fall:
                shift = max(0.0, max(u_i - model.t, alpha_i * r2))
                cost = _cost_of_shift(shift, r2, fall) + alpha_i * (u_i - shift)
                out_cost = max(out_cost, cost + model.cost[i] * model.cap - paid)
        work.low[i], work.high[i] = low, high
        in_gain = _gain_inside(model, i, alpha_i)
        if low >= model.t or out_cost > slack:
            work.state[i] = IN
            fixed += 1
        elif high < model.t - FEASIBLE or in_shift_cost + in_gain - paid > slack:
            work.state[i] = OUT
            fixed += 1
    return fixed


@inner
def _gain_inside(model, i, alpha):
    """Least value of cost_i g(u) + alpha u over u >= t."""
    total, rest = 0.0, alpha
    for k in range(model.breakpoints.size):
        if model.breakpoints[k] > model.t and rest > 0.0:
            part = min(rest, model.cost[i] * model.slopes[k])
            total += model.breakpoints[k] * part
            rest -= part
    return total + model.t * rest
